"""CSV text to records, as a stream. A stray quote that swallows lines is found and costs its own record only.

Lines are parsed a block at a time, strictly; where that fails, the one record is looked into line by line.
"""

from __future__ import annotations

import contextlib
import csv
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from itertools import islice
from pathlib import Path

from hybrid_rag.loading.body import is_readable, readable
from hybrid_rag.loading.dialect import Dialect
from hybrid_rag.loading.encoding import open_text

BLOCK = 64 * 1024  # characters of lines that are parsed together
BLOCK_LINES = 1000  # of lines that were put back
MOST_LINES = 20_000  # lines of one record; a quote that stays open longer is a stray one
LONGEST_REPAIR = 30  # lines joined when a broken record is read again
END_MARK = "\x1a"  # of files from CP/M and DOS
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
        while block := lines.block():
            rows, used = _strictly(block, dialect)
            plain = not dialect.escape and is_readable("".join(block[:used]))
            for row in rows:
                if any(map(str.strip, row)):
                    yield row if plain else _cells(row, dialect)
            if used < len(block):
                lines.put_back(block[used:])
                row = _one_record(lines, dialect, width, repaired)
                if any(map(str.strip, row)):
                    yield _cells(row, dialect)


def _strictly(block: list[str], dialect: Dialect) -> tuple[list[list[str]], int]:
    """(records, lines used) of the beginning of a block in which every quote pairs."""
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        rows.extend(csv.reader(block, strict=True, **_format(dialect)))
        return rows, len(block)
    rows, used = [], 0
    reader = csv.reader(block, strict=True, **_format(dialect))
    with contextlib.suppress(csv.Error):  # where it is raised, the strict reading ends
        for row in reader:
            rows.append(row)
            used = reader.line_num
    return rows, used


def _one_record(lines: _Lines, dialect: Dialect, width: int, repaired: Callable[[], None] | None) -> list[str]:
    """The next record, read again when its quotes do not pair; the lines that it does not need are put back."""
    row = next(csv.reader(lines.feed(), **_format(dialect)))
    taken = lines.taken
    odd = len(row) != width or len(taken) != 1 or taken[0].count(dialect.quote) & 1
    if width and odd and _broken(taken, dialect):
        seen = len(taken)
        if len(row) != width:
            lines.take_more(LONGEST_REPAIR)  # the cell may go on below what csv took
        fixed, used = _read_again(taken, dialect, width)
        lines.put_back(taken[used or seen :])
        if fixed is not None:
            row = fixed
            if repaired:
                repaired()
    taken.clear()
    return row


class _Lines:
    """Physical lines, without NULs and with escapes marked. Those fed to the present record are in ``taken``."""

    def __init__(self, file: TextIOWrapper, dialect: Dialect) -> None:
        self._file, self._escape = file, dialect.escape
        self._waiting: deque[str] = deque()
        self.taken: list[str] = []

    def block(self) -> list[str]:
        """The next lines; none at the end of the file."""
        if waiting := self._waiting:
            return [waiting.popleft() for _ in range(min(len(waiting), BLOCK_LINES))]
        return self._prepared(self._file.readlines(BLOCK))

    def feed(self) -> Iterator[str]:
        """Lines until the end of the file, or until one record has taken too many."""
        taken, waiting = self.taken, self._waiting
        while len(taken) < MOST_LINES:
            if not waiting:
                waiting.extend(self._prepared(self._file.readlines(BLOCK)))
                if not waiting:
                    return
            taken.append(waiting.popleft())
            yield taken[-1]

    def _prepared(self, lines: list[str]) -> list[str]:
        if any("\0" in line for line in lines):
            lines = [line.replace("\0", "") for line in lines]
        if lines and lines[-1].endswith(END_MARK):
            lines[-1] = lines[-1].rstrip(END_MARK)
        if self._escape and any("\\" in line for line in lines):
            lines = [_ESCAPED.sub(lambda m: _MARKS[m[1]], line) for line in lines]
        return lines

    def take_more(self, most: int) -> None:
        """Count further lines to the present record, until it has ``most``."""
        for _ in islice(self.feed(), max(0, most - len(self.taken))):
            pass

    def put_back(self, lines: list[str]) -> None:
        """Give lines back; they come first again."""
        self._waiting.extendleft(reversed(lines))


def _format(dialect: Dialect) -> dict[str, object]:
    if dialect.one_column:  # a line is a cell; quotes around it are still taken off
        return {"delimiter": "\x1f", "quotechar": dialect.quote}
    return {"delimiter": dialect.delimiter, "quotechar": dialect.quote, "skipinitialspace": dialect.blanks}


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
