"""Which cells of a table a text means: the same words, words inside a cell, a cell inside the text, a misspelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from hybrid_rag.analysis import normalise
from hybrid_rag.question_fields import Fields, Match, Values
from hybrid_rag.question_items import hints, is_known
from hybrid_rag.question_words import Word, is_filler, words_of

CLOSE = 0.82  # of difflib's ratio, from which one spelling is taken for another
SHORTEST_MISSPELT = 5  # letters
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
    close = get_close_matches(wanted, spelt, 1, CLOSE) if len(wanted) >= SHORTEST_MISSPELT else []
    return Meant((spelt[close[0]],), False) if close else None


def mentions(question: str, fields: Fields, values: Values) -> Iterator[Match]:
    """Cells that the words of a question name, from left to right, the best column first for each mention."""
    words = words_of(question)
    spellings: dict[str, str] | None = None
    i = 0
    while i < len(words):
        found = next((entry for entry in values.at(words, i) if entry[1] and not _empty(words[i : i + entry[0]], entry[1])), None)
        if found is not None:
            yield from found[1]
            i += found[0]
            continue
        word = words[i]
        if (
            not is_known(word)
            and word.stem not in fields.stems
            and len(word.plain) >= SHORTEST_MISSPELT
            and not any(map(str.isdigit, word.plain))
        ):
            spellings = {stem: stem for stem in values.stems} if spellings is None else spellings
            for close in get_close_matches(word.stem, spellings, 1, CLOSE):
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
