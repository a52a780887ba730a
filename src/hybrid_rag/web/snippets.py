"""What is shown of a hit: the part of its text where the query's words are thickest, cut into marked and unmarked pieces."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

LENGTH = 320  # characters of a snippet
SHORTEST_TERM = 3  # shorter terms are not marked, unless they hold a digit
_WORD = re.compile(r"[^\W_]+(?:[-_.@/:+'&][^\W_]+)*")
_INNER = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text, marked or not."""

    text: str
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A field of a record as shown in a snippet."""

    name: str
    value: tuple[Piece, ...]


def fold(text: str) -> str:
    """Case and accents folded; the length may change."""
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))


def spans(text: str, terms: Sequence[str]) -> list[tuple[int, int]]:
    """Where words of the text begin with one of the terms (which are stems), in order and apart from each other."""
    wanted = tuple(fold(t) for t in terms if len(t) >= SHORTEST_TERM or any(c.isdigit() for c in t))
    if not wanted:
        return []
    out: list[tuple[int, int]] = []
    for word in _WORD.finditer(text):
        if fold(word[0]).startswith(wanted) and _fits(word[0], wanted):
            out.append(word.span())
        else:
            out += [(word.start() + m.start(), word.start() + m.end()) for m in _INNER.finditer(word[0]) if _fits(m[0], wanted)]
    return out


def _fits(word: str, wanted: Sequence[str]) -> bool:
    """A stem fits a word that goes on with an ending of at most four letters; a number must be the whole word."""
    folded = fold(word)
    for term in wanted:
        if folded == term:
            return True
        if folded.startswith(term) and not term[-1].isdigit() and len(folded) - len(term) <= 4:
            return True
        if term.endswith("i") and len(term) > 4 and folded.startswith(term[:-1]) and len(folded) - len(term) <= 3:
            return True  # Porter writes y as i: "batteri"
    return False


def pieces(text: str, marked: Sequence[tuple[int, int]], start: int = 0, end: int | None = None) -> tuple[Piece, ...]:
    """``text[start:end]`` cut at the spans to mark; they may overlap."""
    end = len(text) if end is None else end
    out: list[Piece] = []
    at = start
    for first, last in sorted(marked):
        first, last = max(first, at), min(last, end)
        if first >= last:
            continue
        if first > at:
            out.append(Piece(text[at:first]))
        out.append(Piece(text[first:last], True))
        at = last
    if at < end:
        out.append(Piece(text[at:end]))
    return tuple(out)


def snippet(text: str, terms: Sequence[str], length: int = LENGTH) -> tuple[Piece, ...]:
    """The stretch of about ``length`` characters with most different terms, white space folded, "…" where something is cut."""
    text = " ".join(text.split())
    found = spans(text, terms)
    start = _best_start(text, found, length)
    end = min(len(text), start + length)
    if end < len(text):
        end = text.rfind(" ", start, end) if text.rfind(" ", start + length // 2, end) > 0 else end
    inner = pieces(text, found, start, end)
    return (*((Piece("… "),) if start else ()), *inner, *((Piece(" …"),) if end < len(text) else ()))


def _best_start(text: str, found: Sequence[tuple[int, int]], length: int) -> int:
    if len(text) <= length or not found:
        return 0
    best, start = (0, 0), 0
    for first, _ in found:
        words = {fold(text[s:e]) for s, e in found if first <= s and e <= first + length}
        if (len(words), -first) > best:
            best, start = (len(words), -first), first
    if start < length // 3:
        return 0
    start = max(0, start - length // 6)
    return text.find(" ", start) + 1 if start else 0


def record(text: str, terms: Sequence[str]) -> tuple[int, tuple[Cell, ...]]:
    """Of a table chunk, the record that holds most of the terms: (its place among the records, from 0; its cells)."""
    blocks = [b for b in re.split(r"\n\s*\n", text) if b.strip()]
    if not blocks:
        return 0, ()
    weights = [sum(map(len, {fold(b[s:e]) for s, e in spans(b, terms)})) for b in blocks]  # a whole identifier outweighs a part of it
    place = max(range(len(blocks)), key=lambda i: (weights[i], -i))
    cells = []
    for line in blocks[place].split("\n"):
        name, sign, value = line.partition(": ")
        if not sign:
            return place, ()
        cells.append(Cell(name, pieces(value, spans(value, terms))))
    return place, tuple(cells)
