"""Which cells of a table a text means: the same words, words inside a cell, a cell inside the text, a misspelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hybrid_rag.analysis import normalise
from hybrid_rag.question_fields import Fields, Match, Values
from hybrid_rag.question_items import hints, is_known
from hybrid_rag.question_words import Word, is_filler, words_of

SHORTEST_MISSPELT = 5  # letters of what one slip may make into something else; two slips may from
LONG_MISSPELT = 9  # letters on: "Austria" is no misspelt "Australia"
MOST_MEANT = 60  # cells that one text may mean


@dataclass(frozen=True, slots=True)
class Meant:
    """Cells that a text means. ``sure``: the same words, whatever their case, accents, brackets and footnotes."""

    cells: tuple[str, ...]
    sure: bool


def meant(text: str, cells: Sequence[str], *, whole: bool = False) -> Meant | None:
    """The cells of a column that ``text`` means; None when there are none. ``whole``: only cells of the same words."""
    wanted = _folded(text)
    if same := [c for c in cells if _folded(c) == wanted]:
        return Meant(tuple(same), True)
    stems = _stems(text)
    if not stems:
        return None
    by_cell = [(c, _stems(c), _stems(_bare(c))) for c in cells]
    if same := [c for c, full, bare in by_cell if stems in (full, bare)]:
        return Meant(tuple(same), True)
    if whole:
        return None
    if inside := [c for c, full, _ in by_cell if _holds(full, stems)]:
        return Meant(tuple(inside), False) if len(inside) <= MOST_MEANT else None
    around = [(len(bare), c) for c, _, bare in by_cell if bare and _holds(stems, bare)]
    longest = [c for n, c in around if n == max(around)[0]]
    if len(longest) == 1 and len(longest[0]) >= SHORTEST_MISSPELT:
        return Meant(tuple(longest), False)
    spelt = {_folded(c): c for c in reversed(cells)}
    close = nearest(wanted, spelt)
    return Meant((spelt[close],), False) if close else None


def nearest(text: str, others: Iterable[str]) -> str | None:
    """The only one of ``others`` that ``text`` can be a misspelling of; numbers are not misspelt."""
    digits = re.findall(r"\d+", text)
    near = [o for o in others if abs(len(o) - len(text)) <= 2 and re.findall(r"\d+", o) == digits]
    for slips in (1, 2):
        shortest = SHORTEST_MISSPELT if slips == 1 else LONG_MISSPELT
        found = [o for o in near if min(len(o), len(text)) >= shortest and _slips(text, o, slips) <= slips]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _slips(one: str, two: str, most: int) -> int:
    """Letters left out, added, changed or swapped with their neighbour (restricted Damerau-Levenshtein distance), at most ``most`` + 1."""
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, a in enumerate(one, start=1):
        before, last, row = row, before, [i]
        for j, b in enumerate(two, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == two[j - 2] and b == one[i - 2]:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]


def mentions(question: str, fields: Fields, values: Values) -> Iterator[Match]:
    """Cells that the words of a question name, from left to right, the best column first for each mention."""
    words = words_of(question)
    i = 0
    while i < len(words):
        found = next((entry for entry in values.at(words, i) if entry[1] and not _empty(words[i : i + entry[0]], entry[1])), None)
        if found is not None:
            length, matches = found
            if length > 1 or len(matches) == 1 or matches[0].level < 2:  # one word inside cells of several columns tells nothing
                yield from matches
            i += length
            continue
        word = words[i]
        if not is_known(word) and word.stem not in fields.stems and (close := nearest(word.stem, values.stems)):
            for _, matches in values.at([Word(close, close, close)], 0):
                yield from matches
        i += 1


def _empty(words: Sequence[Word], matches: Sequence[Match]) -> bool:
    """Words that say nothing, or a number or a word like "long" inside some cell."""
    return all(map(is_filler, words)) or (len(words) == 1 and (is_known(words[0]) or bool(hints(words[0].plain))) and matches[0].level > 0)


def _folded(text: str) -> str:
    """Without case, accents and footnotes."""
    return normalise(re.sub(r"(?<=.)\[[^\]]*\]|[*†‡]+$", "", text.strip())).strip()


def _stems(text: str) -> tuple[str, ...]:
    return tuple(w.stem for w in words_of(text))


def _bare(cell: str) -> str:
    return re.sub(r"\([^)]*\)|\[[^\]]*\]", " ", cell)


def _holds(whole: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return any(whole[i : i + len(part)] == part for i in range(len(whole) - len(part) + 1))
