"""Plain table questions to readings by rules. A reading is made only when every content word of the question is accounted for.

The question's words become items (operators, columns, values, numbers, dates); conditions are taken out; what is left must be
one of the known shapes, with no word over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hybrid_rag.question_conditions import reduce
from hybrid_rag.question_fields import Fields, Find, Match, Values
from hybrid_rag.question_frame import BEFORE_NOUNS
from hybrid_rag.question_items import Item, is_known, rows_of_items
from hybrid_rag.question_reading import Reading
from hybrid_rag.question_shapes import Shapes
from hybrid_rag.question_words import Word, is_filler, words_of

LONGEST_IDENTIFIER = 5  # words of a cell that only the table itself knows
UNSURE = 10  # added to the rank of a reading for each way in which words were left out


def read(question: str, fields: Fields, values: Values, find: Find, *, loosely: bool = False) -> list[Reading]:
    """All readings over one table, without doubles. ``find`` looks up cells that ``values`` does not hold; it is asked only
    when everything else but identifiers and names is accounted for. ``loosely``: words that nothing explains are left out, which
    is no answer but what a language model can begin with.
    """
    words = words_of(question)
    if not words or not fields.card.rows:
        return []
    unknown = [w for w in words if not is_known(w) and w.stem not in fields.stems and w.stem not in values.stems]
    allowed = len(words) if loosely else 1 if fields.wide else 0
    if sum(not _telling(w) for w in unknown) > allowed or not (fields.wide or any(w.stem in fields.stems for w in words)):
        return []
    found = (
        [Match(field, (cell,), 0) for field, _, cell in find(_spans(words))]
        if any(map(_telling, words)) and (unknown or fields.wide)
        else []
    )
    out: list[Reading] = []
    for items in rows_of_items(words, fields, values, found):
        if sum(i.kind == "u" for i in items) > allowed:
            continue
        for unsure, row in _without_unknown(items) if loosely else ((0, items),):
            for reduced in reduce(row, fields):
                for reading in Shapes(reduced, fields).readings():
                    ranked = replace(reading, rank=reading.rank + unsure * UNSURE)
                    if ranked not in out:
                        out.append(ranked)
    return out


def _without_unknown(items: Sequence[Item]) -> Iterator[tuple[int, list[Item]]]:
    """(how unsure, the items) without the unknown words: with the first one that can be what the records are called, and without it."""
    noun = next((i for i, item in enumerate(items) if item.kind == "u" and i and items[i - 1].kind in BEFORE_NOUNS), -1)
    if noun >= 0:
        yield 1, [item for i, item in enumerate(items) if item.kind != "u" or i == noun]
    yield 2, [item for item in items if item.kind != "u"]


def _telling(word: Word) -> bool:
    """Could the word be of an identifier or a name?"""
    return any(c.isdigit() or c.isupper() for c in word.text)


def _spans(words: Sequence[Word]) -> list[str]:
    """Texts of the question that could be a whole cell: with a digit or a capital letter, as identifiers and names have."""
    out: list[str] = []
    for start in range(len(words)):
        for length in range(1, LONGEST_IDENTIFIER + 1):
            span = words[start : start + length]
            text = " ".join(w.text for w in span)
            if (
                len(span) == length
                and any(map(_telling, span))
                and not is_filler(span[0])
                and not (length == 1 and span[0].number is not None and len(text) < 5)
            ):
                out.append(text)
    return out
