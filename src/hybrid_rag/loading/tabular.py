"""CSV and TSV as a stream of records: encoding, dialect and header found, nothing dropped, nothing invented."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid_rag.loading.alignment import Alignment
from hybrid_rag.loading.body import Body
from hybrid_rag.loading.csv_records import records
from hybrid_rag.loading.dialect import Dialect, find_dialect
from hybrid_rag.loading.encoding import Decoded, detect_file, open_text, replaced_in, shown
from hybrid_rag.loading.plain import refuse_binary, replaced
from hybrid_rag.records import Notice, RowStream

if TYPE_CHECKING:
    from hybrid_rag.loading import Limits

DIALECT_SAMPLE = 64 * 1024  # characters
HEADER_SAMPLE = 100  # records looked at to find the header
LONGEST_PREAMBLE = 25  # records that may stand above the header
FEW_RECORDS, FEW_SHARE = 3, 0.02  # of which a slip is believed
SHOWN_ROWS = 5  # record numbers named in a notice
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*%?")
_DECIMAL = re.compile(r"[-+]?\d+\.\d{3,}")  # like the next, never the name of a column above such values
_DAY = re.compile(r"(?:\d{4}-\d\d-\d\d|\d{1,2}[/.]\d{1,2}[/.]\d{4})(?:[ T].*)?")


def read(path: Path, limits: Limits) -> Body:
    """Open a table file. The whole file is passed once, to find ragged records, before it is streamed."""
    encoding = detect_file(path)
    with open_text(path, encoding) as file:
        sample = file.read(DIALECT_SAMPLE).replace("\0", "")
    refuse_binary(Decoded(sample, encoding))
    dialect = find_dialect(sample, complete=len(sample) < DIALECT_SAMPLE, tabs=path.suffix.lower() in (".tsv", ".tab"))
    first = list(islice(records(path, encoding, dialect), HEADER_SAMPLE))
    if not first:
        rows = RowStream((), lambda: ())
        return Body(rows=rows, encoding=shown(encoding), dialect=dialect.describe(), notices=(Notice("The file has no records."),))
    above = find_header(first)
    named = above >= 0
    cells = first[above] if named else [""] * len(first[0])
    survey = _survey(_below(path, encoding, dialect, len(cells), max(above + 1, 0), found := _Found()), cells)
    alignment = Alignment.of(first[above + 1 :], len(cells)) if survey.few_are_wider else Alignment()
    if alignment.columns:
        survey = _survey(alignment.stream(_below(path, encoding, dialect, len(cells), max(above + 1, 0))), cells)
        found.mended = list(alignment.mended)
    width = survey.width
    header, notices = make_header(cells[:width], named=named)
    preamble = [" ".join(cell for cell in row if cell.strip()) for row in first[: max(above, 0)]]
    if preamble:
        said = "1 line stands above the header; it is" if len(preamble) == 1 else f"{len(preamble)} lines stand above the header; they are"
        notices = (Notice(f"{said} kept in the table's card."), *notices)

    def stream() -> Iterator[list[str]]:
        below = _below(path, encoding, dialect, len(cells), max(above + 1, 0))
        below = Alignment(alignment.columns).stream(below) if found.mended else below
        return _trimmed(below, width) if survey.widest > width else below

    return Body(
        rows=RowStream(header, stream),
        encoding=shown(encoding),
        dialect=dialect.describe(),
        metadata={"above": "\n".join(preamble)} if preamble else {},
        notices=(*notices, *survey.notices(), *found.notices(), *replaced(replaced_in(path, encoding), shown(encoding))),
    )


@dataclass
class _Found:
    """What the reader of records had to repair."""

    repaired: int = 0
    mended: list[int] = field(default_factory=list)  # records that had one empty cell too many

    def __call__(self) -> None:
        self.repaired += 1

    def notices(self) -> Iterator[Notice]:
        if self.repaired:
            yield Notice(f"{self.repaired} records hold a quote that is not closed; they were read as single records.")
        if n := len(self.mended):
            shown_rows = _named(self.mended[:SHOWN_ROWS], n)
            yield Notice(f"{_count(n)} an empty cell too many, which shifted the others; it was left out ({shown_rows}).")


def _below(path: Path, encoding: str, dialect: Dialect, width: int, above: int, found: _Found | None = None) -> Iterator[list[str]]:
    """The records below the header."""
    stream = records(path, encoding, dialect, width=width, repaired=found)
    next(islice(stream, above, above), None)
    return stream


def _trimmed(stream: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    """Records without empty cells beyond the header."""
    for row in stream:
        while len(row) > width and not row[-1].strip():
            row.pop()
        yield row


def find_header(first: Sequence[list[str]]) -> int:
    """The position of the header among the first records: 0, more below a preamble, -1 when there is none.

    A preamble is recognised when most records are as wide as the header and the ones above it hold at most half as
    many cells. There is no header when the first record has cells that are no names (decimals, dates) in columns of such.
    """
    extents = [_extent(row) for row in first]
    width, n = max(Counter(extents).items(), key=lambda item: (item[1], item[0]))
    if (
        len(first) > 2
        and width >= 2
        and n >= 0.5 * (len(first) - LONGEST_PREAMBLE if len(first) > 2 * LONGEST_PREAMBLE else len(first) - 3)
    ):
        for at, row in enumerate(first[: LONGEST_PREAMBLE + 1]):
            filled = sum(1 for cell in row if cell.strip())
            if extents[at] >= width and filled >= max(2, 0.6 * width):
                if at and not any(_NUMBER.fullmatch(cell.strip()) for cell in row):
                    return at
                break
            if filled > max(1, width // 2):
                break
    return -1 if _is_data(first) else 0


def _is_data(first: Sequence[list[str]]) -> bool:
    """Whether the first record is a record like those below it."""
    head, rest = first[0], [row for row in first[1:] if len(row) == len(first[0])]
    if not rest:
        return False
    if all(_NUMBER.fullmatch(cell.strip()) for cell in head if cell.strip()) and len(set(head)) < len(head):
        return all(_NUMBER.fullmatch(cell.strip()) for cell in rest[0] if cell.strip())
    for i, cell in enumerate(head):
        column = [row[i].strip() for row in rest]
        like = next((kind for kind in (_DECIMAL, _DAY) if kind.fullmatch(cell.strip())), None)
        if like is not None:
            wanted = _NUMBER if like is _DECIMAL else _DAY
            if sum(1 for value in column if wanted.fullmatch(value)) >= 0.9 * sum(1 for value in column if value) > 0:
                return True
    return False


def _extent(row: Sequence[str]) -> int:
    """Cells up to the last that is filled."""
    return max((i for i, cell in enumerate(row, start=1) if cell.strip()), default=0)


def make_header(first: Sequence[str], *, named: bool = True) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    """Unique, non-empty column names from the first record; what had to be changed is said."""
    seen: set[str] = set()
    out: list[str] = []
    empty, doubled = 0, []
    for i, cell in enumerate(first, start=1):
        base = " ".join(cell.split())
        if not base:
            empty += 1
            base = f"column_{i}"
        name, n = base, 1
        while name.casefold() in seen:
            n += 1
            name = f"{base}_{n}"
        if n > 1:
            doubled.append(base)
        seen.add(name.casefold())
        out.append(name)
    notices = []
    if not named:
        notices.append(Notice("The first record holds values, not names; it was taken as a record and columns are named by position."))
    elif empty:
        notices.append(Notice(f"{empty} columns have no name and were named by their position."))
    if doubled:
        notices.append(Notice(f"The column name {doubled[0]!r} occurs more than once; numbers were added."))
    return tuple(out), tuple(notices)


@dataclass
class _Survey:
    """The widths of a table's records."""

    width: int  # of the header, without unnamed columns at its end that are empty throughout
    widest: int  # cells of the longest record
    records: int = 0
    n_wider: int = 0  # records with more cells than the header, empty ones counted
    long: list[int] = field(default_factory=list)
    short: list[int] = field(default_factory=list)
    n_long: int = 0
    n_short: int = 0

    @property
    def few_are_wider(self) -> bool:
        """Some records have more cells, so few that it is a slip and no second table."""
        return 0 < self.n_wider <= max(FEW_RECORDS, FEW_SHARE * self.records)

    def notices(self) -> Iterator[Notice]:
        if self.n_long:
            yield Notice(f"{_count(self.n_long)} more cells than the header; the extra cells were kept ({_named(self.long, self.n_long)}).")
        if self.n_short:
            yield Notice(f"{_count(self.n_short)} fewer cells than the header ({_named(self.short, self.n_short)}).")


def _survey(stream: Iterator[list[str]], header: Sequence[str]) -> _Survey:
    """Pass over all records below the header."""
    full = len(header)
    named = _extent(header)
    out = _Survey(width=named or full, widest=full)
    number = 0
    for number, row in enumerate(stream, start=1):
        length = len(row)
        if length == full == out.width:
            continue
        extent = _extent(row)
        out.widest = max(out.widest, length)
        out.n_wider += length > full
        if out.width < extent <= full:
            out.width = extent
        if extent > full:
            out.n_long += 1
            if len(out.long) < SHOWN_ROWS:
                out.long.append(number)
        elif length < named:
            out.n_short += 1
            if len(out.short) < SHOWN_ROWS:
                out.short.append(number)
    out.records = number
    return out


def _count(n: int) -> str:
    return "1 record has" if n == 1 else f"{n} records have"


def _named(numbers: list[int], total: int) -> str:
    shown_numbers = ", ".join(map(str, numbers))
    return f"row {shown_numbers}" if total == 1 else f"rows {shown_numbers}{' …' if total > len(numbers) else ''}"
