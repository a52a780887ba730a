"""CSV and TSV as a stream of records: encoding and dialect found, nothing dropped, nothing invented."""

from __future__ import annotations

import csv
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid_rag.loading.body import Body
from hybrid_rag.loading.encoding import detect_file, open_text
from hybrid_rag.records import Notice, RowStream

if TYPE_CHECKING:
    from hybrid_rag.loading import Limits

DIALECT_SAMPLE = 64 * 1024  # characters
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blank", ":": "colon"}
SHOWN_ROWS = 5  # record numbers named in a notice

csv.field_size_limit(min(sys.maxsize, 2**31 - 1))


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the file is written. ``escape``: the character that escapes a quote, "" when quotes are doubled."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""

    def describe(self) -> str:
        name = _NAMES.get(self.delimiter, repr(self.delimiter)) if self.delimiter else "none (one column)"
        quote = f", quote {self.quote}" if self.quote else ", no quotes"
        return f"delimiter {name}{quote}{', escape ' + self.escape if self.escape else ''}"


def read(path: Path, limits: Limits) -> Body:
    """Open a table file. The whole file is passed once, to count its records and find ragged ones."""
    encoding = detect_file(path)
    with open_text(path, encoding) as file:
        sample = file.read(DIALECT_SAMPLE).replace("\0", "")
    dialect = find_dialect(sample, complete=path.stat().st_size <= DIALECT_SAMPLE, tabs=path.suffix.lower() in (".tsv", ".tab"))
    records = _records(path, encoding, dialect)
    first = next(iter(records), None)
    if first is None:
        return Body(rows=RowStream((), lambda: ()), encoding=_shown(encoding), dialect=dialect.describe(), notices=(Notice("The file is empty."),))
    header, notices = make_header(first)
    notices += _survey(path, encoding, dialect, len(header))
    stream = RowStream(header, lambda: _skip_first(_records(path, encoding, dialect)))
    return Body(rows=stream, encoding=_shown(encoding), dialect=dialect.describe(), notices=notices)


def find_dialect(sample: str, *, complete: bool, tabs: bool = False) -> Dialect:
    """The dialect of a sample of the file, by consistency of the records that it gives."""
    lines = sample.splitlines()
    sample = "\n".join(lines if complete or len(lines) < 2 else lines[:-1])
    counts = {d: sample.count(d) for d in ",;\t|"}
    if tabs and counts["\t"]:
        return Dialect("\t", '"', _escape(sample))
    if not any(counts.values()):
        return Dialect(",", '"')
    scored = [(_consistency(sample, d), d) for d in ",;\t|" if counts[d]]
    best, delimiter = max(scored, key=lambda item: (item[0], counts[item[1]]))
    if best >= 0.9:
        return Dialect(delimiter, '"', _escape(sample))
    return _clever(sample) or Dialect(delimiter, '"', _escape(sample))


def _consistency(sample: str, delimiter: str) -> float:
    """Share of records that have as many cells as most have; 0 when that is one cell."""
    from collections import Counter

    widths: Counter[int] = Counter()
    for row in csv.reader(sample.splitlines(keepends=True), delimiter=delimiter, doublequote=True, strict=False):
        if row:
            widths[len(row)] += 1
    if not widths:
        return 0.0
    width, n = widths.most_common(1)[0]
    return n / sum(widths.values()) if width > 1 else 0.0


def _clever(sample: str) -> Dialect | None:
    """clevercsv's judgement for the files where counting is not clear."""
    import clevercsv

    try:
        found = clevercsv.Detector().detect(sample[:DIALECT_SAMPLE // 4], verbose=False)
    except (clevercsv.Error, ValueError, IndexError, RecursionError):
        return None
    if found is None or not found.delimiter or found.delimiter.isalnum():
        return None
    return Dialect(found.delimiter, found.quotechar or '"', found.escapechar or _escape(sample))


def _escape(sample: str) -> str:
    """A backslash, when the file escapes quotes by it: \\" inside quoted cells, and more often than not before a quote."""
    return "\\" if sample.count('\\"') and sample.count('\\"') * 2 > sample.count('""') and not sample.count('\\",') else ""


def _records(path: Path, encoding: str, dialect: Dialect) -> Iterator[list[str]]:
    """Records as lists of cells; blank lines are no records."""
    with open_text(path, encoding) as file:
        lines: Iterable[str] = (line.replace("\0", "") for line in file)
        reader = csv.reader(
            lines,
            delimiter=dialect.delimiter or ",",
            quotechar=dialect.quote or None,
            quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
            doublequote=True,
            escapechar=dialect.escape or None,
            strict=False,
        )
        for row in reader:
            if row and not (len(row) == 1 and not row[0].strip()):
                yield [_cell(cell) for cell in row]


def _cell(cell: str) -> str:
    if cell.isascii():
        return cell
    return unicodedata.normalize("NFC", cell.encode("utf-8", "replace").decode("utf-8")).lstrip("\ufeff")


def _skip_first(records: Iterator[list[str]]) -> Iterator[list[str]]:
    next(records, None)
    return records


def make_header(first: list[str]) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    """Unique, non-empty column names from the first record; what had to be changed is said."""
    seen: dict[str, int] = {}
    out: list[str] = []
    empty, doubled = 0, []
    for i, cell in enumerate(first, start=1):
        name = " ".join(cell.split())
        if not name:
            empty += 1
            name = f"column_{i}"
        base, n = name, 1
        while name.casefold() in seen:
            n += 1
            name = f"{base}_{n}"
        if n > 1:
            doubled.append(base)
        seen[name.casefold()] = i
        out.append(name)
    notices = []
    if empty:
        notices.append(Notice(f"{empty} columns have no name and were named by their position."))
    if doubled:
        notices.append(Notice(f"The column name {doubled[0]!r} occurs more than once; numbers were added."))
    return tuple(out), tuple(notices)


def _survey(path: Path, encoding: str, dialect: Dialect, width: int) -> tuple[Notice, ...]:
    """Which records are longer or shorter than the header, and whether bytes were undecodable."""
    long: list[int] = []
    short: list[int] = []
    n_long = n_short = 0
    for number, row in enumerate(_records(path, encoding, dialect)):
        if len(row) > width:
            n_long += 1
            long[SHOWN_ROWS:] = []
            long.append(number)
        elif len(row) < width:
            n_short += 1
            short[SHOWN_ROWS:] = []
            short.append(number)
    out = []
    if n_long:
        out.append(Notice(f"{n_long} records have more cells than the header; the extra cells were kept ({_named(long, n_long)})."))
    if n_short:
        out.append(Notice(f"{n_short} records have fewer cells than the header ({_named(short, n_short)})."))
    return tuple(out)


def _named(numbers: list[int], total: int) -> str:
    shown = ", ".join(map(str, numbers[:SHOWN_ROWS]))
    return f"row {shown}" if total == 1 else f"rows {shown}{' …' if total > SHOWN_ROWS else ''}"


def _shown(encoding: str) -> str:
    return encoding.removesuffix("-sig").replace("_", "-")
