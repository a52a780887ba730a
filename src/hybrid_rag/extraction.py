"""Answers without a language model: the sentences of the found passages that answer best, quoted as they stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid_rag import sentences
from hybrid_rag.abstention import identifiers, weights
from hybrid_rag.analysis import Analyzer, normalise
from hybrid_rag.citations import spans_of_support
from hybrid_rag.records import Chunk, Citation, Hit

if TYPE_CHECKING:
    from hybrid_rag.reranking import Reranker

SENTENCES_SCORED = 8  # of those that overlap the question best
CHUNKS_READ = 5
LONGEST_QUOTE = 700  # characters
LONGEST_SENTENCE = 500
_ASKS = re.compile(r"[?？][\"'”’)\]*_]*$")


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence of a chunk, or a whole record of a table chunk. Spans are within the chunk's text."""

    chunk: Chunk
    chunk_id: str
    start: int
    end: int
    record: int | None = None  # its number in the table file

    @property
    def text(self) -> str:
        return self.chunk.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Extract:
    """A quote with its score (cross-encoder logit; None when there is no cross-encoder)."""

    unit: Unit
    start: int
    end: int
    score: float | None

    def citation(self, n: int, support: str) -> Citation:
        chunk = self.unit.chunk
        quote = chunk.text[self.start : self.end]
        rows = (self.unit.record, self.unit.record) if self.unit.record is not None else chunk.rows
        return Citation(
            n=n,
            source=chunk.source,
            kind=chunk.kind,
            page=chunk.page,
            page_label=chunk.page_label,
            rows=rows,
            heading=chunk.heading,
            quote=quote,
            verified=True,
            chunk_id=self.unit.chunk_id,
            start=chunk.start + self.start,
            end=chunk.start + self.end,
            marks=spans_of_support(quote, support),
        )


def extract(
    question: str,
    hits: Sequence[Hit],
    *,
    analyzer: Analyzer,
    frequency: Callable[[str], int],
    total: int,
    reranker: Reranker | None,
    sure_from: float,
) -> list[Extract]:
    """Quotes for a question, best first. ``frequency`` tells in how many of ``total`` chunks a term occurs.

    Below the logit ``sure_from`` the sentences are scored a second time, with their title and heading.
    """
    import numpy as np

    wanted = weights(question, analyzer, frequency, total)
    units = [unit for hit in hits[:CHUNKS_READ] if hit.chunk.role != "card" for unit in _units(hit) if unit.text.strip()]
    units = _holding(units, identifiers(question))
    ranked = sorted(range(len(units)), key=lambda i: (-_overlap(units[i], wanted, analyzer), i))
    chosen = [units[i] for i in ranked[:SENTENCES_SCORED]]
    if not chosen:
        return []
    if reranker is None:
        return [_widened(unit, None) for unit in chosen]
    logits = reranker.score(question, [_in_context(unit) if unit.record is not None else unit.text for unit in chosen])
    if float(max(logits)) < sure_from:  # what is asked about may stand only in the title, the heading or the sentence before
        logits = np.maximum(logits, reranker.score(question, [_in_context(unit) for unit in chosen]))
    order = sorted(range(len(chosen)), key=lambda i: (-float(logits[i]), i))
    return [_widened(chosen[i], float(logits[i])) for i in order]


def _holding(units: list[Unit], wanted: Sequence[str]) -> list[Unit]:
    """The units that hold the question's identifiers themselves; else those under a title or heading that does; else all."""
    if not wanted:
        return units
    inside = [u for u in units if all(i in normalise(u.text) for i in wanted)]
    around = [u for u in units if all(i in normalise(f"{u.chunk.source} {_in_context(u)}") for i in wanted)]
    return inside if any(u.record is not None for u in inside) else around or inside or units


def _in_context(unit: Unit) -> str:
    return f"{unit.chunk.context}\n{unit.text}"


def _units(hit: Hit) -> list[Unit]:
    chunk = hit.chunk
    if chunk.kind == "table" and chunk.rows:
        return list(_records(chunk, hit.chunk_id))
    return [Unit(chunk, hit.chunk_id, start, end) for start, end in _statements(chunk.text)]


def _statements(text: str) -> list[tuple[int, int]]:
    """Spans of sentences; a question, which answers nothing by itself, goes with what is said next, or not at all."""
    out: list[tuple[int, int]] = []
    asked: int | None = None
    for start, end in sentences.split(text):
        if _ASKS.search(text, start, end):
            asked = start if asked is None else asked
            continue
        out.append((start if asked is None else asked, end))
        asked = None
    return out


def _records(chunk: Chunk, chunk_id: str) -> list[Unit]:
    """The records of a table chunk; blank lines part them (a chunk with one record, or a piece of one, is one unit)."""
    assert chunk.rows is not None
    first, last = chunk.rows
    parts = chunk.text.split("\n\n")
    whole = len(parts) == last - first + 1
    if not whole:
        return [Unit(chunk, chunk_id, 0, len(chunk.text))]
    out, at = [], 0
    for i, part in enumerate(parts):
        out.append(Unit(chunk, chunk_id, at, at + len(part), first + i))
        at += len(part) + 2
    return out


def _overlap(unit: Unit, wanted: dict[str, float], analyzer: Analyzer) -> float:
    """Weight of the question's terms in the unit; those in the heading count half."""
    own = set(analyzer.terms(unit.text[: LONGEST_SENTENCE * 4]))
    around = set(analyzer.terms(unit.chunk.context))
    return sum(weight if term in own else 0.5 * weight if term in around else 0.0 for term, weight in wanted.items())


def _widened(unit: Unit, score: float | None) -> Extract:
    """The unit with the sentences before and after it, as far as a quote may go."""
    if unit.record is not None:
        return Extract(unit, unit.start, min(unit.end, unit.start + 4 * LONGEST_QUOTE), score)
    spans = sentences.split(unit.chunk.text)
    before = [s for s, e in spans if e <= unit.start]
    after = [e for s, e in spans if s >= unit.end]
    start, end = unit.start, min(unit.end, unit.start + LONGEST_QUOTE)
    if end == unit.end:
        if after and after[0] - start <= LONGEST_QUOTE:
            end = after[0]
        if before and end - before[-1] <= LONGEST_QUOTE:
            start = before[-1]
    return Extract(unit, start, end, score)
