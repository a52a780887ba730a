"""Table questions: which can be answered by one query, by which query, and the answer with its proof."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hybrid_rag import question_model
from hybrid_rag.errors import OllamaError
from hybrid_rag.filters import Filters
from hybrid_rag.question_reading import Reading
from hybrid_rag.question_rules import read
from hybrid_rag.question_sentences import columns_of, sentence
from hybrid_rag.question_sql import Query, anchors, compose, is_row_level, plainly, records, source, where
from hybrid_rag.question_tables import TableWords
from hybrid_rag.records import Answer, Citation, TableCard, TableResult
from hybrid_rag.retrieval import Retriever
from hybrid_rag.table_database import plain
from hybrid_rag.table_sql import columns_in, records_of
from hybrid_rag.table_store import TableStore
from hybrid_rag.tables import RAW, ROW, q

if TYPE_CHECKING:
    from hybrid_rag.llm import OllamaChat

SHOWN_RECORDS = 20  # record numbers in the proof
QUOTED_RECORDS = 3  # records quoted when the result stands on few
SHOWN_EXCLUDED = 10
GROUPS_SHOWN = 60
UNREADABLE_SHARE = 0.02  # of the records whose number cannot be read, up to which an extreme is told
_CALCULATION = re.compile(
    r"\b(how many|how much|number of|count|total|sum|average|mean|highest|lowest|most|least|fewest|maximum|minimum|largest|smallest|top \d+|per (?:month|year|\w+))\b",
    re.IGNORECASE,
)


class TableAnswerer:
    """Answers table questions by one read-only query; declines everything else. Thread-safe."""

    def __init__(
        self,
        store: TableStore,
        retriever: Retriever | None,
        chat: Callable[[], OllamaChat | None],
        *,
        synonyms: Mapping[str, Sequence[str]],
        quote_on_failure: bool = False,
    ) -> None:
        """``quote_on_failure``: a failing model is told of in a note, and the question goes on to the texts."""
        self._store, self._retriever, self._chat = store, retriever, chat
        self._quote_on_failure = quote_on_failure
        self._words = TableWords(store, synonyms)

    def answer(self, question: str, *, filters: Filters | None = None, only: str | None = None) -> Answer | None:
        """The answer with its SQL and rows; None when this is no table question, or none that can be answered surely.

        Rules first, then the language model where there is one. ``only``: the question is known to be about this table
        (its name or file). Raises OllamaError when a model that must be there fails.
        """
        return self.attempt(question, filters=filters, only=only)[0]

    def attempt(
        self,
        question: str,
        *,
        filters: Filters | None = None,
        only: str | None = None,
        chat: OllamaChat | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> tuple[Answer | None, tuple[str, ...]]:
        """(the answer or None, what to tell about the failed attempt). ``cancel`` stops the model: Cancelled is raised."""
        started = time.perf_counter()
        cards, wide = self._scope(filters, only)
        readings = [r for card in cards for r in self._readings(question, card, wide)]
        answer, notes = self._surest(question, readings), ()
        if answer is None and (shown := self._for_model(question, cards, wide)) and (model := chat or self._chat()):
            answer, notes = self._by_model(question, shown, model, wide, cancel)
        if answer is not None:
            times = {"table": (time.perf_counter() - started) * 1000}
            answer = replace(answer, milliseconds=times)
        return answer, notes

    def guard(self, answer: Answer, *, filters: Filters | None = None) -> Answer:
        """A calculation is never answered from the few rows that a search has found: then say what it needs.

        An answer that stands in a text stays.
        """
        if answer.mode == "table" or not _CALCULATION.search(answer.question):
            return answer
        if not answer.abstained and not any(c.kind == "table" for c in answer.citations[:1]):
            return answer
        cards, wide = self._scope(filters, None)
        about = cards[:1] if wide else self._words.relevant(answer.question, cards)
        cited = [card for c in answer.citations[:1] if c.kind == "table" and not answer.abstained and (card := self._store.card(c.source))]
        card = next(iter(about or cited), None)
        if card is None:
            return answer
        text = f"This needs a calculation over {card.name} ({card.source}); the question could not be read as one."
        advice = "Ask for a count, sum, average, extreme or look-up by the names of its columns, or use `hybrid-rag sql`."
        return replace(answer, answer=text, mode="none", abstained=True, citations=(), needs=card, notes=(*answer.notes, advice))

    # ------------------------------------------------------------ reading

    def _scope(self, filters: Filters | None, only: str | None) -> tuple[list[TableCard], bool]:
        """(tables that may be meant, whether the question can be about nothing else)."""
        if only is not None:
            card = self._store.card(only)
            return ([card] if card else []), True
        cards = self._store.cards()
        if self._retriever is None:
            return cards, False
        catalog = self._retriever.index.catalog
        if filters is None or filters.empty:
            return cards, catalog.value("SELECT count(*) FROM documents WHERE ready = 1") == 1
        documents = [d for d in catalog.documents() if filters.matches(d)]
        allowed = {d.source for d in documents}
        return [card for card in cards if card.source in allowed], len(documents) == 1

    def _readings(self, question: str, card: TableCard, wide: bool, *, loosely: bool = False) -> list[Reading]:
        fields, values = self._words.of(card, wide)
        return read(question, fields, values, lambda texts: self._words.find(fields, texts), loosely=loosely)

    # ------------------------------------------------------------ choosing

    def _surest(self, question: str, readings: Sequence[Reading]) -> Answer | None:
        """The answer of the reading that holds; None when two that hold as well give different answers."""
        found = self._holding(readings)
        return self._answer(question, *found) if found else None

    def _holding(self, readings: Sequence[Reading]) -> tuple[Reading, list[tuple[Any, ...]]] | None:
        if not readings:
            return None
        best = max(map(_closeness, readings))
        chosen = [r for r in readings if _closeness(r) == best]
        if len({r.card.name for r in chosen}) > 1:
            return None  # two tables could be meant
        for rank in sorted({r.rank for r in chosen}):
            results = [(r, rows) for r in chosen if r.rank == rank if (rows := self._run(r)) is not None]
            if not results:
                continue
            return results[0] if len({_denotation(rows) for _, rows in results}) == 1 else None
        return None

    # ------------------------------------------------------------ language model

    def _for_model(self, question: str, cards: Sequence[TableCard], wide: bool) -> list[TableCard]:
        """The tables that a model may be asked about this question; none when it does not sound like a table question."""
        if wide:
            return list(cards)
        if not _CALCULATION.search(question):
            return []
        found = self._words.relevant(question, cards)
        by_name = {card.name: card for card in cards}
        joined = [by_name[j.other_table] for card in found for j in card.joins if j.other_table in by_name]
        return list({card.name: card for card in (*found, *joined)}.values())

    def _by_model(
        self, question: str, cards: Sequence[TableCard], chat: OllamaChat, wide: bool, cancel: Callable[[], bool] | None
    ) -> tuple[Answer | None, tuple[str, ...]]:
        loose = self._holding([r for card in cards for r in self._readings(question, card, True, loosely=True)])
        draft = plainly(loose[0]) if loose else ""
        try:
            outcome = question_model.ask(question, cards, self._words, self._store, chat, wide=wide, draft=draft, cancel=cancel)
        except OllamaError as error:
            if not self._quote_on_failure:
                raise
            return None, (f"The language model did not write a query: {error.message}",)
        if outcome.result is None or outcome.result.tables == ():
            return None, outcome.notes
        found = outcome.result
        standing = records_of(found.sql)
        numbers = [int(r[0]) for r in self._store.fetch(standing, (), found.tables)] if standing else None
        card = next(c for c in cards if c.name == found.tables[0]) if len(found.tables) == 1 else None
        result = replace(
            found,
            row_count=None if numbers is None else len(numbers),
            record_numbers=tuple((numbers or [])[:SHOWN_RECORDS]),
            excluded=self._unreadable(card, found.sql) if card else (),
        )
        cited = (
            self._citations(card, numbers or [])
            if card
            else tuple(Citation(n, source, "table", verified=True) for n, source in enumerate(found.sources, start=1))
        )
        tokens = {"prompt": outcome.tokens[0], "answer": outcome.tokens[1]}
        check = "Every number of the answer stands in the result of the query."
        tried = (*outcome.notes, *(("A first query failed and was written anew.",) if len(outcome.tried) > 1 else ()))
        answer = Answer(
            question, outcome.sentence, "table", False, cited, sql=found.sql, table=result, model=chat.model, tokens=tokens,
            checks=(check,), notes=tried,
        )  # fmt: skip
        return answer, ()

    def _unreadable(self, card: TableCard, sql: str) -> tuple[str, ...]:
        """Records whose cell in a column of the query cannot be read."""
        used = columns_in(sql)
        out = []
        for column in card.columns:
            if column.unreadable and column.name.casefold() in used:
                filled = f"{q(column.name)} IS NULL AND {q(column.name + RAW)} <> ''"
                found = [
                    int(r[0]) for r in self._store.fetch(f"SELECT {q(ROW)} FROM {q(card.name)} WHERE {filled} ORDER BY 1", (), [card.name])
                ]
                out.append(f"{_records(len(found))} no readable {column.label} ({_rows(found)}).")
        return tuple(out)

    # ------------------------------------------------------------ running

    def _fetch(self, query: Query) -> list[tuple[Any, ...]]:
        return self._store.fetch(query.sql, query.parameters, query.tables)

    def _run(self, reading: Reading) -> list[tuple[Any, ...]] | None:
        """The rows of a reading; None when it does not hold, as when one record is meant and several are found."""
        if reading.anchor and len(self._fetch(anchors(reading))) != 1:
            return None
        for condition in reading.conditions:
            if condition.one_of is not None:
                other = replace(reading, shape="lookup", conditions=(condition.one_of,), anchor=())
                if len(self._fetch(records(other))) != 1:
                    return None
        if reading.shape == "difference" and len(self._fetch(records(reading))) != 2:
            return None
        if reading.one and reading.shape in ("total", "count") and len(self._fetch(records(reading))) != 1:
            return None
        rows = self._fetch(compose(reading))
        if reading.shape == "count" and reading.guessed and rows[0][0] < 2:
            return None  # what is counted is not known to be a record: then 1 or 0 is more likely the wrong question
        if reading.shape in ("lookup", "place", "neighbour"):
            if not rows or any(row[0] is None or row[0] == "" for row in rows):
                return None
            if reading.one and len({row[0] for row in rows}) != 1:
                return None
        unsure = [reading.measure] if reading.shape in ("extreme", "ranked") else []
        if any(
            f.column.unreadable > UNREADABLE_SHARE * reading.card.rows
            for f in (*unsure, *(f for c in reading.conditions for f in c.fields))
        ):
            return None  # it may be one of those that cannot be read
        if reading.signed and (rows[0][0] is None or rows[0][0] < 0):
            return None
        if reading.shape == "difference" and rows[0][0] is None:
            return None
        return rows

    def _answer(self, question: str, reading: Reading, rows: Sequence[tuple[Any, ...]]) -> Answer:
        card, query = reading.card, compose(reading)
        numbers = [int(r[0]) for r in self._fetch(records(reading))]
        by_row = is_row_level(reading)
        proof = [int(row[-1]) for row in rows] if by_row else numbers
        sources = {c.name: c.source for c in self._store.cards()}
        result = TableResult(
            sql=query.shown,
            columns=columns_of(reading),
            rows=tuple(tuple(_rounded(v) for v in (row[:-1] if by_row else row)) for row in rows[:GROUPS_SHOWN]),
            tables=query.tables,
            sources=tuple(sources[name] for name in query.tables),
            row_count=len(proof),
            record_numbers=tuple(proof[:SHOWN_RECORDS]),
            excluded=self._excluded(reading),
            truncated=len(rows) > GROUPS_SHOWN,
        )
        return Answer(question, sentence(reading, result), "table", False, self._citations(card, proof), sql=query.shown, table=result)

    # ------------------------------------------------------------ proof

    def _excluded(self, reading: Reading) -> tuple[str, ...]:
        """What the result leaves out: records without a readable number, rows that add others up, records without a partner."""
        out = []
        table, names = source(reading)

        def rows(condition: str) -> list[int]:
            clause, parameters = where(reading, None, condition)
            return [int(r[0]) for r in self._store.fetch(f"SELECT {q(ROW)} FROM {table}{clause} ORDER BY 1", parameters, names)]

        measure = reading.measure
        if measure is not None and reading.shape != "difference" and (found := rows(f"{measure.sql} IS NULL")):
            out.append(
                f"{_records(len(found))} no readable {measure.label} and {'were' if len(found) > 1 else 'was'} left out ({_rows(found)})."
            )
        for field in dict.fromkeys(f for c in reading.conditions for f in c.fields if f.column.unreadable and f.join is None):
            others = tuple(c for c in reading.conditions if field not in c.fields)
            clause, parameters = where(reading, others, f"{field.sql} IS NULL", f"{q(field.column.name + RAW)} <> ''")
            found = [int(r[0]) for r in self._store.fetch(f"SELECT {q(ROW)} FROM {table}{clause} ORDER BY 1", parameters, names)]
            if found:
                out.append(
                    f"{_records(len(found))} no readable {field.label}, so the condition does not hold for {'them' if len(found) > 1 else 'it'} ({_rows(found)})."
                )
        joined = reading.target if reading.shape == "groups" and reading.target is not None and reading.target.join is not None else None
        if joined and (found := rows(f"{joined.sql} IS NULL")):
            out.append(f"{_records(len(found))} no {joined.label} in {joined.join.other_table} ({_rows(found)}).")
        if reading.card.total_rows and reading.shape not in ("lookup", "difference"):
            several = len(reading.card.total_rows) > 1
            out.append(
                f"{'Records that add' if several else 'The record that adds'} others up {'were' if several else 'was'} left out ({_rows(reading.card.total_rows)})."
            )
        return tuple(out)

    def _citations(self, card: TableCard, numbers: Sequence[int]) -> tuple[Citation, ...]:
        if not numbers:
            return (Citation(1, card.source, "table", verified=True),)
        if len(numbers) > QUOTED_RECORDS:
            return (Citation(1, card.source, "table", rows=(numbers[0], numbers[-1]), verified=True),)
        out = []
        for n, number in enumerate(numbers, start=1):
            header, found = self._store.rows(card.source, number, number)
            quote = "\n".join(f"{name}: {cell}" for name, cell in zip(header, found[0], strict=True) if cell)
            out.append(Citation(n, card.source, "table", rows=(number, number), quote=quote, verified=True))
        return tuple(out)


def _closeness(reading: Reading) -> tuple[bool, int, bool]:
    """Of two tables that could be meant: the one that is named, more of whose names are, whose key is asked for."""
    return reading.by_noun, reading.matched, bool(reading.target and reading.target.column.is_key and reading.target.join is None)


def _denotation(rows: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    """What rows answer: the values of their first column, in whatever order."""
    return tuple(sorted({str(_rounded(row[0])) for row in rows}))


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else plain(value)


def _records(n: int) -> str:
    return "1 record has" if n == 1 else f"{n:,} records have"


def _rows(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers[:SHOWN_EXCLUDED])) + (" …" if len(numbers) > SHOWN_EXCLUDED else "")
    return f"row{'s' if len(numbers) > 1 else ''} {listed}"
