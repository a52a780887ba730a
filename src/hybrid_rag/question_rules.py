"""Plain table questions to readings by rules. A reading is made only when every content word of the question is accounted for.

The question's words become items (operators, columns, values, numbers, dates); conditions are taken out; what is left must be
one of the known shapes, with no word over.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid_rag.question_conditions import reduce
from hybrid_rag.question_fields import Fields, Find, Match, Values
from hybrid_rag.question_items import is_known, rows_of_items
from hybrid_rag.question_reading import Reading
from hybrid_rag.question_shapes import Shapes
from hybrid_rag.question_words import Word, is_filler, words_of

LONGEST_IDENTIFIER = 5  # words of a cell that only the table itself knows


def read(question: str, fields: Fields, values: Values, find: Find) -> list[Reading]:
    """All readings over one table, without doubles. ``find`` looks up cells that ``values`` does not hold; it is asked only
    when everything else but identifiers and names is accounted for.
    """
    words = words_of(question)
    if not words or not fields.card.rows:
        return []
    unknown = [w for w in words if not is_known(w) and w.stem not in fields.stems and w.stem not in values.stems]
    allowed = 1 if fields.wide else 0
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
        for reduced in reduce(items, fields):
            for reading in Shapes(reduced, fields).readings():
                if reading not in out:
                    out.append(reading)
    return out


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
