"""Records with one delimiter too many: the empty cell that shifts all others out of their columns is found by what columns hold.

No content is changed or dropped: only an empty cell is left out, and only where one way makes the cells look like the others of
their columns, clearly more than the record as it stands.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

FEWEST_RECORDS = 8  # of the header's width, before a column is judged
MOST_ODD = 1  # cells of a record put right that still look unlike their column
CLEARLY = 2  # more of them must have looked so before
TYPICAL = 0.9  # share of a column's cells that must look alike
LONGEST_LOOKED_AT = 200  # characters of a cell
_LETTERS, _DIGITS = re.compile(r"[^\W\d_]+"), re.compile(r"\d+")


def shape(cell: str) -> str:
    """What a cell looks like: "28/01/2018" is "9/9/9", "MG-8769" is "a-9", several words are "a a"."""
    text = _LETTERS.sub("a", _DIGITS.sub("9", cell[:LONGEST_LOOKED_AT].strip()))
    return "a a" if " " in text else text


@dataclass(frozen=True, slots=True)
class _Column:
    shape: str | None  # of nearly all filled cells; "" when none is filled, None when they differ
    empty: bool  # whether some cell is

    def takes(self, cell: str) -> bool:
        if not cell.strip():
            return self.empty
        return self.shape is None or shape(cell) == self.shape


@dataclass
class Alignment:
    """The columns of a table, by its first records; ``mended`` are the numbers of the records that were put right."""

    columns: tuple[_Column, ...] = ()
    mended: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, records: Iterable[Sequence[str]], width: int) -> Alignment:
        whole = [record for record in records if len(record) == width]
        return cls(tuple(map(_column, zip(*whole, strict=True)))) if len(whole) >= FEWEST_RECORDS else cls()

    def stream(self, records: Iterable[list[str]]) -> Iterator[list[str]]:
        """The records, those with one empty cell too many without it."""
        self.mended.clear()
        width = len(self.columns)
        for number, record in enumerate(records, start=1):
            if len(record) == width + 1 and (better := self._mend(record)) is not None:
                self.mended.append(number)
                record = better
            yield record

    def _mend(self, record: list[str]) -> list[str] | None:
        as_it_is = self._odd(record[:-1])
        ways = {tuple(record[:i] + record[i + 1 :]) for i, cell in enumerate(record[:-1]) if not cell.strip()}
        odd = sorted((self._odd(way), way) for way in ways)
        if not odd or odd[0][0] > MOST_ODD or as_it_is < odd[0][0] + CLEARLY or (len(odd) > 1 and odd[1][0] == odd[0][0]):
            return None
        return list(odd[0][1])

    def _odd(self, record: Sequence[str]) -> int:
        """Cells that do not look like their column."""
        return sum(not column.takes(cell) for column, cell in zip(self.columns, record, strict=True))


def _column(cells: Sequence[str]) -> _Column:
    filled = [cell for cell in cells if cell.strip()]
    if not filled:
        return _Column("", True)
    most, count = Counter(map(shape, filled)).most_common(1)[0]
    return _Column(most if count >= TYPICAL * len(filled) else None, len(filled) < len(cells))
