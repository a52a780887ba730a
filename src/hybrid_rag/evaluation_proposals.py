"""Questions proposed from a collection, for people to edit: by the language model when there is one, else from headings and tables.

What is proposed is what an editor starts from: each entry names its place and an answer that stands there.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import TYPE_CHECKING, Any

import yaml

from hybrid_rag.answer_metrics import holds
from hybrid_rag.errors import IndexEmptyError
from hybrid_rag.evaluation_questions import UNANSWERABLE
from hybrid_rag.sentences import split

if TYPE_CHECKING:
    from hybrid_rag.llm import OllamaChat
    from hybrid_rag.records import Chunk, TableCard, TableColumn
    from hybrid_rag.service import Service

SHARES = {"text": 0.5, "identifier": 0.2, "table": 0.15, UNANSWERABLE: 0.15}  # of the questions, where the collection gives each kind
SHORTEST, LONGEST = 40, 220  # characters of a sentence that can be an answer
HEAD = """# Proposed questions: edit them before you measure with them. Take away what nobody would ask, put it as people would,
# and shorten each answer to the words that a right answer must hold. The forms are described in docs/evaluation.md.
"""
PROMPT = """Write one question that a reader of this passage could ask and that the passage answers. Do not mention the passage.
The answer must be copied from the passage word for word and be as short as possible, at most ten words.
Passage ({title}):
{text}"""
SCHEMA = {
    "type": "object",
    "properties": {"question": {"type": "string"}, "answer": {"type": "string"}},
    "required": ["question", "answer"],
}
_WORD = re.compile(r"[^\W\d_]{4,}")
Entry = dict[str, Any]


def propose(service: Service, n: int, *, seed: int = 0) -> list[Entry]:
    """Up to ``n`` entries in the form of ``questions.yaml``; the same seed gives the same. Raises IndexEmptyError and OllamaError."""
    chance = random.Random(seed)
    chunks = [c for c in service.chunks() if c.kind == "text" and c.role == "body"]
    cards = [card for card in service.tables() if card.rows]
    chance.shuffle(chunks)
    chance.shuffle(cards)
    sources = {
        "text": _spread(_texts(chunks, service.parts.chat())),
        "identifier": _alternating([_lookups(service, card, chance) for card in cards]),
        "table": _alternating([_sums(service, card) for card in cards]),
        UNANSWERABLE: _alternating([_absent(service, card, chance) for card in cards]),
    }
    out = _take(sources, n)
    if not out:
        raise IndexEmptyError("The index holds no text and no table to ask about.", "Run `hybrid-rag index`.")
    return [{"id": f"q{number:02}", **entry} for number, entry in enumerate(out, start=1)]


def as_yaml(entries: Sequence[Entry]) -> str:
    """The entries as a file of questions, one a line."""
    lines = [yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6).strip() for entry in entries]
    return HEAD + "".join(f"- {line}\n" for line in lines)


def _take(sources: dict[str, Iterator[Entry]], n: int) -> list[Entry]:
    """By shares; what a kind cannot give is taken from the others."""
    found: dict[str, list[Entry]] = {kind: [] for kind in sources}
    wanted = {kind: max(1, round(n * share)) for kind, share in SHARES.items()}
    for kind, entries in sources.items():
        found[kind] += [entry for _, entry in zip(range(wanted[kind]), entries, strict=False)]
    for kind, entries in sources.items():
        missing = n - sum(map(len, found.values()))
        found[kind] += [entry for _, entry in zip(range(missing), entries, strict=False)]
    return [entry for entries in found.values() for entry in entries][:n]


def _alternating(streams: Sequence[Iterator[Entry]]) -> Iterator[Entry]:
    """One of each in turn."""
    held = list(streams)
    while held:
        for stream in list(held):
            entry = next(stream, None)
            if entry is None:
                held.remove(stream)
            else:
                yield entry


# ---------------------------------------------------------------- text


def _spread(entries: Iterator[tuple[str, Entry]]) -> Iterator[Entry]:
    """Entries of documents in turn, so that a long one does not give them all."""
    waiting: list[tuple[str, Entry]] = []
    seen: set[str] = set()
    for source, entry in entries:
        if source in seen:
            waiting.append((source, entry))
        else:
            seen.add(source)
            yield entry
    yield from (entry for _, entry in waiting)


def _texts(chunks: Sequence[Chunk], chat: OllamaChat | None) -> Iterator[tuple[str, Entry]]:
    frequency = Counter(word for chunk in chunks for word in set(_words(chunk.text)))
    asked: set[tuple[str, str]] = set()
    for chunk in chunks:
        topic = _topic(chunk, frequency, len(chunks))
        if (chunk.source, topic) in asked:
            continue
        entry = (_by_model(chunk, chat) if chat else None) or _by_heading(chunk, topic)
        if entry:
            asked.add((chunk.source, topic))
            yield chunk.source, entry | _place(chunk)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _topic(chunk: Chunk, frequency: Counter[str], total: int) -> str:
    """The innermost heading, or the word that tells the passage best from the others."""
    if chunk.heading and chunk.heading[-1] != chunk.title:
        return chunk.heading[-1]
    words = Counter(_words(chunk.text))
    return max(words, key=lambda w: (words[w] * log(1 + total / frequency[w]), w), default="")


def _by_heading(chunk: Chunk, topic: str) -> Entry | None:
    lines = [" ".join(chunk.text[start:end].split()) for start, end in split(chunk.text)]
    held = [line for line in lines if SHORTEST <= len(line) <= LONGEST and line != topic]
    if not held or not topic:
        return None
    answer = max(held, key=lambda line: (any(c.isdigit() for c in line), -held.index(line)))
    return {"type": "text", "question": f"What does “{chunk.title or chunk.source}” say about “{topic}”?", "answer": answer}


def _by_model(chunk: Chunk, chat: OllamaChat) -> Entry | None:
    """The model's question, when its answer really stands in the passage. Raises OllamaError."""
    try:
        written = chat.generate([("human", PROMPT.format(title=chunk.context, text=chunk.text))], schema=SCHEMA)
        found = json.loads(written.text)
        question, answer = str(found["question"]).strip(), str(found["answer"]).strip()
    except (ValueError, KeyError, TypeError):
        return None  # it did not keep to the form; a template is proposed in its place
    if not question.endswith("?") or not holds(chunk.text, [answer]):
        return None
    return {"type": "text", "question": question, "answer": answer}


def _place(chunk: Chunk) -> Entry:
    place: Entry = {"source": chunk.source}
    if chunk.page is not None:
        place["page"] = chunk.page
    elif chunk.heading:
        place["heading"] = chunk.heading[-1]
    return place


# ---------------------------------------------------------------- tables


def _key(card: TableCard) -> TableColumn | None:
    """The column that names the records: unique text with a digit, such as an order number."""
    keys = [c for c in card.columns if c.is_key and c.type == "text" and any(ch.isdigit() for ch in str(c.minimum or ""))]
    return keys[0] if keys else None


def _lookups(service: Service, card: TableCard, chance: random.Random) -> Iterator[Entry]:
    key = _key(card)
    if key is None:
        return
    places = {column.label: n for n, column in enumerate(card.columns)}
    numbers = list(range(1, card.rows + 1))
    chance.shuffle(numbers)
    for number in numbers:
        record = service.read(card.source, rows=(number, number)).records[0]
        named = record[places[key.label]]
        others = [c for c in card.columns if c is not key and not c.is_key and len(record) > places[c.label] and record[places[c.label]]]
        if named and others:
            column = chance.choice(others)
            yield {"type": "identifier", "question": f"What is the {_spoken(column)} of {named}?", "answer": record[places[column.label]],
                   "source": card.source, "rows": number}  # fmt: skip


def _sums(service: Service, card: TableCard) -> Iterator[Entry]:
    title = card.name.replace("_", " ")
    for question, sql in _calculations(card, title):
        rows = service.sql(sql).rows
        if len(rows) == 1 and rows[0][0] is not None:
            value = rows[0][0]
            yield {
                "type": "table",
                "question": question,
                "answer": f"{value:.2f}" if isinstance(value, float) else str(value),
                "source": card.source,
            }


def _calculations(card: TableCard, title: str) -> Iterable[tuple[str, str]]:
    table = _quoted(card.name)
    yield f"How many records are in {title}?", f"SELECT count(*) FROM {table}"
    for column in card.columns:
        name = _quoted(column.name)
        if column.type == "decimal":
            yield f"What is the average {_spoken(column)} in {title}?", f"SELECT round(avg({name}), 2) FROM {table}"
            yield f"What is the total {_spoken(column)} in {title}?", f"SELECT round(sum({name}), 2) FROM {table}"
        elif column.type == "text" and 2 <= len(column.values) <= 20:
            value = column.values[0].replace("'", "''")
            yield (
                f"How many {title} have the {_spoken(column)} {column.values[0]}?",
                f"SELECT count(*) FROM {table} WHERE {name} = '{value}'",
            )


def _absent(service: Service, card: TableCard, chance: random.Random) -> Iterator[Entry]:
    """Questions about an identifier that the table does not have: nothing may be answered."""
    key = _key(card)
    others = [c for c in card.columns if c is not key and not c.is_key]
    if key is None or not others:
        return
    for column in others:
        name = re.sub(r"\d", lambda _: str(chance.randrange(10)), str(key.maximum))
        if not service.sql(f"SELECT 1 FROM {_quoted(card.name)} WHERE {_quoted(key.name)} = '{name}'").rows:
            yield {"type": UNANSWERABLE, "question": f"What is the {_spoken(column)} of {name}?", "absent": [name]}


def _spoken(column: TableColumn) -> str:
    return " ".join(column.label.replace("_", " ").split())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
