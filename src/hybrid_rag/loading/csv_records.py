"""CSV text to records, as a stream. A stray quote that swallows lines is found and costs its own record only."""

from __future__ import annotations

import csv
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from hybrid_rag.loading.body import readable
from hybrid_rag.loading.dialect import Dialect
from hybrid_rag.loading.encoding import open_text

MOST_LINES = 20_000  # lines of one record; a quote that stays open longer is a stray one
LONGEST_REPAIR = 30  # lines joined when a broken record is read again
MOST_TRIES = 200  # ways to read a broken record
_ESCAPED = re.compile(r'\\([\\"])')
_MARKS = {"\\": "\ue0f0", '"': "\ue0f1"}  # stand for escaped characters while csv reads
_UNMARK = str.maketrans({mark: char for char, mark in _MARKS.items()})

csv.field_size_limit(min(sys.maxsize, 2**31 - 1))


def records(
    path: Path, encoding: str, dialect: Dialect, *, width: int = 0, repaired: Callable[[], None] | None = None
) -> Iterator[list[str]]:
    """Records as lists of cells, as written but for NULs and escapes; records without any text are left out.

    ``width``: cells of the header; with it, a record broken by a stray quote is read again so that it has that many.
    """
    with open_text(path, encoding) as file:
        lines = _Lines(file, dialect)
        while not lines.ended:
            for row in csv.reader(lines.feed(), **_format(dialect)):
                odd = len(row) != width or len(lines.taken) != 1 or lines.taken[0].count(dialect.quote) & 1
                if width and odd and _broken(lines.taken, dialect):
                    seen = len(lines.taken)
                    if len(row) != width:
                        lines.take_more(LONGEST_REPAIR)  # the cell may go on below what csv took
                    fixed, used = _read_again(lines.taken, dialect, width)
                    lines.put_back(used or seen)
                    if fixed is not None:
                        row = fixed
                        if repaired:
                            repaired()
                plain = not dialect.escape and all(map(str.isascii, lines.taken))
                lines.taken.clear()
                if any(map(str.strip, row)):
                    yield row if plain else _cells(row, dialect)


class _Lines:
    """Physical lines for csv.reader; those of the present record are kept, and can be put back."""

    def __init__(self, file: Iterator[str], dialect: Dialect) -> None:
        self._file, self._escape = file, dialect.escape
        self._waiting: deque[str] = deque()
        self.taken: list[str] = []
        self.ended = False

    def feed(self) -> Iterator[str]:
        """Lines until the end of the file, or until one record has taken too many."""
        taken, waiting = self.taken, self._waiting
        while len(taken) < MOST_LINES:
            line = waiting.popleft() if waiting else self._next()
            if line is None:
                self.ended = True
                return
            taken.append(line)
            yield line

    def _next(self) -> str | None:
        """The next line of the file without NULs, escapes marked."""
        line = next(self._file, None)
        if line is None:
            return None
        if "\0" in line:
            line = line.replace("\0", "")
        if self._escape and "\\" in line:
            line = _ESCAPED.sub(lambda m: _MARKS[m[1]], line)
        return line

    def take_more(self, most: int) -> None:
        """Count further lines to the present record, until it has ``most``."""
        while len(self.taken) < most and (line := self._waiting.popleft() if self._waiting else self._next()) is not None:
            self.taken.append(line)

    def put_back(self, used: int) -> None:
        """Give back the lines of the present record after the first ``used``."""
        self._waiting.extendleft(reversed(self.taken[used:]))
        self.ended = False


def _format(dialect: Dialect) -> dict[str, object]:
    if dialect.one_column:  # a line is a cell; quotes around it are still taken off
        return {"delimiter": "\x1f", "quotechar": dialect.quote}
    return {"delimiter": dialect.delimiter, "quotechar": dialect.quote}


def _broken(taken: list[str], dialect: Dialect) -> bool:
    """Whether the quotes of a record do not pair."""
    try:
        list(csv.reader(iter(taken), strict=True, **_format(dialect)))
    except csv.Error:
        return True
    return False


def _read_again(taken: list[str], dialect: Dialect, width: int) -> tuple[list[str] | None, int]:
    """(cells, lines used) of a reading of the first lines that gives ``width`` cells, or (None, 0).

    A reading after which the next line is a record by itself is preferred: else the cell goes on there.
    """
    text = ""
    first: tuple[list[str] | None, int] = (None, 0)
    for used, line in enumerate(islice(taken, LONGEST_REPAIR), start=1):
        text += line
        cells = read_leniently(text.rstrip("\r\n"), dialect.delimiter, dialect.quote, width)
        if cells is None:
            continue
        following = taken[used].rstrip("\r\n") if used < len(taken) else None
        if following is None or read_leniently(following, dialect.delimiter, dialect.quote, width) is not None:
            return cells, used
        first = first if first[0] else (cells, used)
    return first if len(taken) > 2 else (None, 0)


def read_leniently(text: str, delimiter: str, quote: str, width: int) -> list[str] | None:
    """Split a record into exactly ``width`` cells, taking as few quotes as possible for ordinary characters.

    A quote opens a cell only at its start and closes it only before a delimiter or the end; None when no reading fits.
    """
    tries = 0
    stack: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    while stack and tries < MOST_TRIES:
        tries += 1
        at, cells = stack.pop()
        if at > len(text):
            if len(cells) == width:
                return list(cells)
            continue
        if len(cells) >= width:
            continue
        end = text.find(delimiter, at)
        end = len(text) if end < 0 else end
        plain = text[at:end]
        stack.append((end + 1, (*cells, plain)))
        if plain.startswith(quote) and (closing := _closing(text, at + 1, delimiter, quote)) is not None:
            stack.append((closing + 2, (*cells, text[at + 1 : closing].replace(quote * 2, quote))))
    return None


def _closing(text: str, at: int, delimiter: str, quote: str) -> int | None:
    """Where a quoted cell ends: the next quote that is not doubled and stands before a delimiter or the end."""
    while (at := text.find(quote, at)) >= 0:
        following = text[at + 1 : at + 2]
        if following == quote and text[at + 2 : at + 3] not in (delimiter, ""):
            at += 2
        elif following in (delimiter, ""):
            return at
        else:
            at += 1
    return None


def _cells(row: list[str], dialect: Dialect) -> list[str]:
    if dialect.escape:
        row = [cell.translate(_UNMARK) if "\ue0f0" in cell or "\ue0f1" in cell else cell for cell in row]
    return [cell if cell.isascii() else readable(cell) for cell in row]
