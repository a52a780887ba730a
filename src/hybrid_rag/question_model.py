"""Table questions that the rules leave, by a language model: it writes the query, the result supplies every number.

The model sees only the cards of the given tables. It answers as JSON under a schema: a query, or that this is no question for
tables. A query that fails goes back once with its error. What it then says of the result is held against the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid_rag import question_prompt
from hybrid_rag.errors import OllamaError, SqlLimitError, TableError
from hybrid_rag.llm import Message, OllamaChat
from hybrid_rag.prompts import neutral
from hybrid_rag.question_cells import mentions
from hybrid_rag.question_grounding import invented, said, without
from hybrid_rag.question_items import is_known
from hybrid_rag.question_mending import Mended, mended
from hybrid_rag.question_sentences import shown, years
from hybrid_rag.question_tables import TableWords
from hybrid_rag.question_words import NUMBER_WORDS, is_filler, words_of
from hybrid_rag.records import TableCard, TableColumn, TableResult
from hybrid_rag.table_store import TableStore

CHARACTERS_A_TOKEN = 3  # at least, so that the prompt fits
RESERVED = 1000  # characters of a prompt, for the question and for a second try
PHRASED_CELLS = 24  # of a result that the model may put into words
LONGEST_TITLE = 40  # characters
LISTED_ROWS = 20  # of a result, in a sentence
RETRY_TEMPERATURE = 0.6  # of a second query: at 0 small models write the first one again
_COUNTED = {"count_star()": "Count"}
_COMPARES = re.compile(r"\b(?:or|than|versus|vs|between|compared|both)\b", re.IGNORECASE)  # then a sentence can twist what it names
_COMPARISON = frozenset("more less fewer than higher lower larger smaller greater better worse longer shorter most least".split())
_NUMBER = re.compile(r"[-−]?\d+(?:,\d{3})+(?:\.\d+)?|[-−]?\d+(?:\.\d+)?")
_DRAFT_NOTE = "The rules' reading of a part of the question was taken: the language model's query accounts for no more of it."
_SCHEMA = {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}
_PHRASE = (
    "Say this result as one short sentence that answers the question. Use only its values, each exactly as it stands there, and no other "
    "number or name. No JSON."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """``result`` None: no table question, or no query that ran; ``notes`` say which. ``tried``: the statements, in order."""

    result: TableResult | None
    sentence: str = ""
    tried: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tokens: tuple[int, int] = (0, 0)  # of the prompts, of the answers
    declined: bool = False  # the model says that the tables cannot answer


def ask(
    question: str,
    cards: Sequence[TableCard],
    words: TableWords,
    store: TableStore,
    chat: OllamaChat,
    *,
    wide: bool = False,
    draft: str = "",
    cancel: Callable[[], bool] | None = None,
) -> Outcome:
    """Let the model query the tables. ``wide``: the question can be about nothing else. ``draft``: a query for a part of the question.
    Raises OllamaError when the model fails at its first word, Cancelled.
    """
    named = [(card, match) for card in cards for match in mentions(question, *words.of(card, wide))]
    characters = max(chat.budget, 500) * CHARACTERS_A_TOKEN
    system = question_prompt.system(not (wide and (named or words.relevant(question, cards))), characters)
    room = max(characters - len(system) - RESERVED, characters // 4)
    messages: list[Message] = [("system", system), ("human", question_prompt.told(question, cards, named, store, room, draft))]
    columns = [column for card in cards for column in card.columns]
    drafted = _run(store, draft) if draft and wide else None  # over many tables it may be none of a table question at all
    tried: list[str] = []
    doubtful: list[_Doubtful] = []
    prompt = answer = 0
    problem = ""
    for second in (False, True):
        generation = chat.generate(messages, schema=_SCHEMA, temperature=RETRY_TEMPERATURE if second else None, cancel=cancel)
        prompt, answer = prompt + generation.prompt_tokens, answer + generation.answer_tokens
        wanted, sql = _read(generation.text)
        if not wanted:
            break
        tried.append(sql)
        unknown = ""
        try:
            found = mended(sql, cards, words.cells)
            unknown = " ".join(found.unknown)
            result = store.query(found.sql)
        except SqlLimitError as error:
            problem = error.message
            break
        except TableError as error:
            problem = error.message
            told = f"The query failed: {unknown or problem}"
        else:
            strange = invented(sql, question, words.synonyms)
            if not _is_empty(result, bool(unknown)) and not strange:
                if drafted is not None and drafted.rows != result.rows and said(sql, question) <= said(draft, question):
                    break
                sentence, more = _sentence(question, result, columns, [*messages, ("ai", generation.text)], chat, cancel)
                return Outcome(result, sentence, tuple(tried), found.changes, (prompt + more[0], answer + more[1]))
            doubtful.append(_Doubtful(result, found, sql, strange, _is_empty(result, bool(unknown)), len(tried)))
            told = unknown or "No record meets these conditions."
            told = told if doubtful[-1].empty else f"The question does not say {_quoted(strange)}: ask only for what it says."
        messages += [("ai", generation.text), ("human", f"{told} Write the query anew, as JSON.")]
    if tried and (best := _best(question, drafted, doubtful, cards, words, store)):
        result, notes, count = best
        return Outcome(result, by_code(result, columns), tuple(tried[:count]), notes, (prompt, answer))
    if not problem:
        return Outcome(None, tried=tuple(tried), tokens=(prompt, answer), declined=True)
    note = f"The language model's query did not run: {problem}"
    return Outcome(None, tried=tuple(tried), notes=(note,), tokens=(prompt, answer))


@dataclass(frozen=True, slots=True)
class _Doubtful:
    """A result that a second query may better: without a record, or with a condition that the question does not have (``strange``)."""

    result: TableResult
    query: Mended
    written: str
    strange: tuple[str, ...]
    empty: bool
    tried: int  # statements up to this one


def _best(
    question: str,
    drafted: TableResult | None,
    doubtful: Sequence[_Doubtful],
    cards: Sequence[TableCard],
    words: TableWords,
    store: TableStore,
) -> tuple[TableResult, tuple[str, ...], int] | None:
    """(result, notes, statements tried up to it) when no query of the model was good.

    The draft, whose words at least are the question's; else the first query that found something: without what was invented where the
    question has no word that it could stand for, else as it is, with a remark; else the empty result.
    """
    if drafted is not None:
        return drafted, (_DRAFT_NOTE,), 1
    if not doubtful:
        return None
    best = min(doubtful, key=lambda d: d.empty)
    if best.empty:
        return best.result, best.query.changes, best.tried
    if _is_explained(question, cards, words) and (less := without(best.written, question, words.synonyms)):
        query = mended(less, cards, words.cells)
        if (result := _run(store, query.sql)) is not None:
            note = f"The language model also asked for {_quoted(best.strange)}; that was left out, for the question does not say it."
            return result, (*query.changes, note), best.tried
    note = f"The query asks for {_quoted(best.strange)}, which the question does not say."
    return best.result, (*best.query.changes, note), best.tried


def _is_explained(question: str, cards: Sequence[TableCard], words: TableWords) -> bool:
    """Are all words of the question operators, numbers, fillers, or names of columns and tables?"""
    names = {stem for card in cards for stem in words.of(card, True)[0].stems}
    return all(is_filler(w) or is_known(w) or w.stem in names for w in words_of(question))


def _quoted(texts: Sequence[str]) -> str:
    return " and ".join(f"“{text}”" for text in texts)


def _run(store: TableStore, sql: str) -> TableResult | None:
    """The result of a query that the model did not write so; None when there is none to speak of."""
    try:
        result = store.query(sql)
    except TableError:
        return None
    return None if _is_empty(result, False) else result


def _read(text: str) -> tuple[bool, str]:
    """(is it a table question, the SQL) of the model's JSON; what is no such JSON counts as a query that will fail."""
    try:
        found = json.loads(text)
    except ValueError:
        return True, ""
    if not isinstance(found, dict) or not isinstance(found.get("sql"), str):
        return True, ""
    sql = re.sub(r"^\s*```(?:sql)?\s*|\s*```\s*$", "", found["sql"]).strip()
    return bool(sql), sql


def _is_empty(result: TableResult, doubtful: bool) -> bool:
    """No record, or nothing but missing values; ``doubtful``: a text of the query stands in no cell, so that nothing counted is no result either."""
    return not result.rows or all(cell in (None, "") or (doubtful and cell == 0) for row in result.rows for cell in row)


# ---------------------------------------------------------------- the sentence


def _sentence(
    question: str,
    result: TableResult,
    columns: Sequence[TableColumn],
    told: Sequence[Message],
    chat: OllamaChat,
    cancel: Callable[[], bool] | None,
) -> tuple[str, tuple[int, int]]:
    """The result in words, by the model where every number and name of its sentence stands in the result, else by code.

    ``told``: the conversation up to the query; to go on with it spares the server from reading the tables again.
    """
    written = by_code(result, columns)
    if not result.rows or len(result.rows) * len(result.columns) > PHRASED_CELLS or _COMPARES.search(question):
        return written, (0, 0)
    table = neutral("\n".join(" | ".join(map(shown, row, result.columns)) for row in result.rows))
    asked = f"The query gives:\n{' | '.join(result.columns)}\n{table}\n{_PHRASE}\nQuestion: {question}"
    try:
        generation = chat.generate([*told, ("human", asked)], cancel=cancel)
    except OllamaError:
        return written, (0, 0)  # the result is there; only its wording is missing
    text = " ".join(generation.text.split())
    good = generation.done_reason == "stop" and 0 < len(text) <= 400 and stands(text, result, question)
    return (text if good else written), (generation.prompt_tokens, generation.answer_tokens)


def by_code(result: TableResult, columns: Sequence[TableColumn] = ()) -> str:
    """The result as a plain sentence: cells and names of columns alone. ``columns``: of the tables, for their names as written."""
    plain = years(columns)
    labels = {c.name: " ".join(c.label.split()) for c in columns}
    if not result.rows:
        return "No record meets this."
    if len(result.rows) == 1 and len(result.columns) == 1:
        return f"{_title(result.columns[0], labels)}: {shown(result.rows[0][0], result.columns[0], plain)}."
    cells = [", ".join(shown(cell, column, plain) for cell, column in zip(row, result.columns, strict=True)) for row in result.rows]
    more = "; and more" if len(cells) > LISTED_ROWS else ""
    return f"{', '.join(_title(column, labels) for column in result.columns)}: {'; '.join(cells[:LISTED_ROWS])}{more}."


def _title(column: str, labels: Mapping[str, str]) -> str:
    """What people read as the name of a result's column; a long expression without a name of its own is no name."""
    return _COUNTED.get(column) or labels.get(column) or (column if len(column) <= LONGEST_TITLE else "Result")


def stands(text: str, result: TableResult, question: str = "") -> bool:
    """Do the numbers of the text, in digits or letters, stand in the result, its names there or in the question, and the first cells in it?

    It may compare only as the question does.
    """
    numbers = {n for row in result.rows for cell in row for n in _numbers(shown(cell)) | _numbers(str(cell))}
    words = (w for w in re.findall(r"[a-z]+", text.casefold()) if w in NUMBER_WORDS and w != "one")
    told = _numbers(text) | {float(NUMBER_WORDS[w]) for w in words}
    if not told <= numbers:
        return False
    known = {
        w.stem
        for part in (question, *result.columns, *(shown(c) for row in result.rows for c in row))
        for w in words_of(part.replace("_", " "))
    }
    if any(w.text[:1].isupper() and w.stem not in known and not is_known(w) for w in words_of(text)):
        return False
    if {w.plain for w in words_of(text)} & _COMPARISON - {w.plain for w in words_of(question)}:
        return False
    folded = text.casefold()
    firsts = [row[0] for row in result.rows if row[0] is not None]
    return all(str(f).casefold() in folded or shown(f).casefold() in folded or _numbers(shown(f)) & told for f in firsts)


def _numbers(text: Any) -> set[float]:
    return {round(float(m.replace(",", "").replace("−", "-")), 6) for m in _NUMBER.findall(str(text))}
