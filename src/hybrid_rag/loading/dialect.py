"""The dialect of a CSV file: delimiter, quote and escape, judged by how regular the records come out."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass, replace

DELIMITERS = ",;\t|"
CLEAR = 0.9  # share of records of one width from which counting decides alone
CLEVER_SAMPLE = 16 * 1024  # characters that clevercsv looks at; its time grows faster than the sample
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "blank", ":": "colon"}
_QUOTED = {q: re.compile(rf"(?:^|[{DELIMITERS}]){q}[^{q}\n]*{q}(?=[{DELIMITERS}\r\n]|$)", re.MULTILINE) for q in "\"'"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file is written. ``escape``: a backslash when quotes inside cells are written so, "" when they are doubled.
    ``blanks``: quoted cells stand behind blanks, which are no part of cells then."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    one_column: bool = False
    blanks: bool = False

    def describe(self) -> str:
        if self.one_column:
            return "one column"
        escape = f", escape {self.escape}" if self.escape else ""
        return f"delimiter {_NAMES.get(self.delimiter, repr(self.delimiter))}, quote {self.quote}{escape}"


def find_dialect(sample: str, *, complete: bool, tabs: bool = False) -> Dialect:
    """The dialect of the beginning of a file; ``complete`` when it is all of it, ``tabs`` when the name says so."""
    sample = _whole_lines(sample, complete)
    found = _find(sample, tabs)
    d, q = re.escape(found.delimiter), re.escape(found.quote)
    behind = not found.one_column and found.delimiter != " " and re.search(rf"{d} +{q}[^{q}\n]*{q} *(?:{d}|$)", sample, re.MULTILINE)
    return replace(found, blanks=True) if behind else found


def _find(sample: str, tabs: bool) -> Dialect:
    present = [d for d in DELIMITERS if d in sample]
    quote, escape = _quote(sample), _escape(sample)
    if tabs and "\t" in present:
        return Dialect("\t", quote, escape)
    if not present:
        return _clever(sample) or Dialect(one_column=True)
    scored = {d: _regularity(sample, d, quote, escape) for d in present}
    delimiter = max(present, key=lambda d: (scored[d], sample.count(d)))
    share, width = scored[delimiter]
    if share >= CLEAR and width > 1:
        return Dialect(delimiter, quote, escape)
    if not any(width > 1 for _, width in scored.values()):
        return Dialect(delimiter, quote, escape)
    return _clever(sample) or Dialect(delimiter, quote, escape)


def _whole_lines(sample: str, complete: bool) -> str:
    """The sample without a last line that is cut off."""
    cut = max(sample.rfind("\n"), sample.rfind("\r"))
    return sample if complete or cut < 0 else sample[: cut + 1]


def _regularity(sample: str, delimiter: str, quote: str, escape: str) -> tuple[float, int]:
    """(share of records that have the most frequent number of cells, that number); (0, 1) when that is one cell."""
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter, quotechar=quote, escapechar=escape or None)
    widths = Counter(len(row) for row in reader if row)
    if not widths:
        return 0.0, 1
    width, n = max(widths.items(), key=lambda item: (item[1], item[0]))
    return (n / sum(widths.values()), width) if width > 1 else (0.0, max(widths))


def _quote(sample: str) -> str:
    """Single quotes only when cells are quoted by them and none by double quotes."""
    single, double = (len(_QUOTED[q].findall(sample)) for q in "'\"")
    return "'" if single > 1 and not double else '"'


def _escape(sample: str) -> str:
    """A backslash, when it stands before quotes inside quoted cells more often than quotes are doubled."""
    inside = len(re.findall(r'\\"(?![,;\t|\r\n"]|$)', sample))
    return "\\" if inside and inside > len(re.findall(r'[^,;\t|\r\n\\]""', sample)) else ""


def _clever(sample: str) -> Dialect | None:
    """clevercsv's judgement, for files where counting is not clear."""
    import clevercsv

    try:
        found = clevercsv.Detector().detect(sample[:CLEVER_SAMPLE], verbose=False)
    except (clevercsv.Error, ValueError, IndexError, RecursionError):
        return None
    if found is None or not found.delimiter or found.delimiter.isalnum() or found.delimiter in "\r\n'\"":
        return None
    reader = csv.reader(io.StringIO(sample, newline=""), delimiter=found.delimiter, quotechar=found.quotechar or '"')
    widths = Counter(len(row) for row in reader if row)
    if found.delimiter not in DELIMITERS and (len(widths) > 1 or max(widths, default=1) < 2):
        return None  # a blank or a colon separates only when every record has the same number of cells
    return Dialect(found.delimiter, found.quotechar or '"', _escape(sample))
