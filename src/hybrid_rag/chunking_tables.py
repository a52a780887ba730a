"""Table files to chunks: groups of records as ``header: value`` lines, and one card that describes the table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest

from hybrid_rag.records import Chunk, Document

RECORD_SEPARATOR = "\n\n"
GROUP_SIZE = 4  # a group of records has at most as many characters as this many text chunks
SAMPLE_VALUES = 8  # shown of a column
WATCHED_VALUES = 32  # of a column, counted to find the most frequent
LONGEST_SAMPLE = 40  # characters of a sample value
CARD_RECORDS = 500  # looked at together
CARD_CHARACTERS = 1 << 20  # after which fewer are
LONGEST_REMINDER = 120  # characters that tell which record a piece belongs to
_NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d{0,14})(?:\.\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def render_record(header: Sequence[str], cells: Sequence[str]) -> str:
    """One record as lines. Empty cells are left out; cells beyond the header are named ``extra_1`` …"""
    lines = [f"{name}: {cell}" for name, cell in zip(header, cells, strict=False) if cell.strip()]
    if len(cells) > (width := len(header)):
        lines += [f"extra_{i}: {cell}" for i, cell in enumerate(cells[width:], start=1) if cell.strip()]
    return "\n".join(lines) or f"{header[0]}:"


def _renderer(header: Sequence[str]) -> Callable[[Sequence[str]], str]:
    """:func:`render_record` for one header, with a shorter way for records that fill it."""
    width = len(header)
    pattern = "\n".join(f"{name.replace('%', '%%')}: %s" for name in header)

    def render(cells: Sequence[str]) -> str:
        if len(cells) == width and all(map(str.strip, cells)):
            return pattern % tuple(cells)
        return render_record(header, cells)

    return render


def table_chunks(document: Document, *, rows: int, size: int) -> Iterator[Chunk]:
    """Groups of at most ``rows`` records; a record that is too long for a group is cut into pieces of ``size`` characters.

    The last chunk is the card. ``start`` and ``end`` count in the rendered table: all records, joined by RECORD_SEPARATOR.
    """
    if document.rows is None or not document.rows.header:
        return
    header = document.rows.header
    card = _Card(header)
    group = _Group(document, rows, size)
    render = _renderer(header)
    number = 0
    for number, cells in enumerate(document.rows.open(), start=1):
        text = render(cells)
        card.see(cells, len(text))
        if full := group.add(text, number):
            yield from full
    yield from group.close()
    yield Chunk(
        source=document.source,
        kind="table",
        ordinal=group.ordinal,
        text=card.text(document, number)[: GROUP_SIZE * size],
        start=group.position,
        end=group.position,
        title=document.title,
        rows=(1, number) if number else None,
        role="card",
    )


@dataclass
class _Group:
    """Records collected for the next chunk, with their place in the rendered table."""

    document: Document
    rows: int
    size: int
    parts: list[str] = field(default_factory=list)
    length: int = 0
    first: int = 1
    position: int = 0
    ordinal: int = 0

    def add(self, text: str, number: int) -> list[Chunk]:
        """Take a record; gives the groups that are full now."""
        limit = GROUP_SIZE * self.size
        length = self.length + len(RECORD_SEPARATOR) + len(text)
        if self.parts and len(self.parts) < self.rows and length <= limit:
            self.length = length
            self.parts.append(text)
            return []
        full = self.close()
        self.first, self.length, self.parts = number, len(text), [text]
        return full + self.close() if self.length > limit else full

    def close(self) -> list[Chunk]:
        """The chunks of the records collected; there is more than one only of a record that is too long."""
        if not self.parts:
            return []
        text = RECORD_SEPARATOR.join(self.parts)
        if self.length <= GROUP_SIZE * self.size:
            out = [self._chunk(text, 0, len(text))]
        else:
            out = [self._chunk(text, start, end, _reminder(text, start) if start else "") for start, end in _pieces(text, self.size)]
        self.position += len(text) + len(RECORD_SEPARATOR)
        self.parts, self.length = [], 0
        return out

    def _chunk(self, text: str, start: int, end: int, header: str = "") -> Chunk:
        self.ordinal += 1
        return Chunk(
            source=self.document.source,
            kind="table",
            ordinal=self.ordinal - 1,
            text=text[start:end],
            start=self.position + start,
            end=self.position + end,
            title=self.document.title,
            rows=(self.first, self.first + len(self.parts) - 1),
            header=header,
        )


def _pieces(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Spans of at most ``size`` characters that cover the text, cut at line ends or blanks where there are some."""
    start = 0
    while len(text) - start > size:
        cut = text.rfind("\n", start + size // 2, start + size) + 1
        cut = cut or text.rfind(" ", start + size // 2, start + size) + 1 or start + size
        yield start, cut
        start = cut
    if start < len(text):
        yield start, len(text)


def _reminder(text: str, at: int) -> str:
    """What a later piece of a record is embedded and shown with: the record's first line, and the cell that goes on."""
    first = text[: text.find("\n") if "\n" in text else LONGEST_REMINDER][:LONGEST_REMINDER]
    line = text.rfind("\n", 0, at) + 1
    name, sign, _ = text[line : line + LONGEST_REMINDER].partition(": ")
    return f"{first}\n{name} (continued)" if sign and 0 < line < at else first


@dataclass(slots=True)
class _Column:
    """What the card says about a column."""

    filled: bool = False
    numeric: bool = True  # so far
    dated: bool = True  # so far
    low: float = float("inf")
    high: float = float("-inf")
    first: str = "9999"
    last: str = ""
    samples: dict[str, int] = field(default_factory=dict)
    more: bool = False

    def see(self, cells: Iterable[str]) -> None:
        """Take the cells of some records, in order."""
        counts = Counter(cells)
        for blank in [cell for cell in counts if not cell or cell.isspace()]:
            del counts[blank]
        if not counts:
            return
        self.filled = True
        if self.numeric:
            self.numeric = all(map(_NUMBER.fullmatch, counts))
        if self.numeric:
            values = [float(cell) for cell in counts]
            self.low, self.high = min(self.low, *values), max(self.high, *values)
        if self.dated:
            self.dated = all(map(_DATE.match, counts))
        if self.dated:
            days = [cell[:10] for cell in counts]
            self.first, self.last = min(self.first, *days), max(self.last, *days)
        self._sample(counts)

    def _sample(self, counts: Counter[str]) -> None:
        """Count the first values that occur; of others only that there are some."""
        if max(map(len, counts)) > LONGEST_SAMPLE:
            shown: Counter[str] = Counter()
            for cell, n in counts.items():
                shown[cell[:LONGEST_SAMPLE]] += n
            counts = shown
        samples = self.samples
        for value in list(islice((value for value in counts if value not in samples), WATCHED_VALUES - len(samples))):
            samples[value] = 0
        known = [value for value in samples if value in counts]
        for value in known:
            samples[value] += counts[value]
        self.more = self.more or len(known) < len(counts)

    def describe(self, name: str) -> str:
        if not self.filled:
            return f"- {name}: empty"
        if self.numeric:
            return f"- {name} (number): {self.low:.15g} to {self.high:.15g}"
        if self.dated:
            return f"- {name} (date): {self.first} to {self.last}"
        frequent = sorted(self.samples, key=lambda value: (-self.samples[value], value))[:SAMPLE_VALUES]
        rest = " …" if self.more or len(self.samples) > SAMPLE_VALUES else ""
        return f"- {name} (text): {', '.join(' '.join(value.split()) for value in frequent)}{rest}"


class _Card:
    """Collects what the card says while the records stream by."""

    def __init__(self, header: Sequence[str]) -> None:
        self._header = header
        self._columns = [_Column() for _ in header]
        self._waiting: list[list[str]] = []
        self._size = 0

    def see(self, cells: list[str], size: int) -> None:
        """Take a record of ``size`` characters. Columns are looked at some hundred records at a time, which is much faster."""
        self._waiting.append(cells)
        self._size += size
        if len(self._waiting) >= CARD_RECORDS or self._size > CARD_CHARACTERS:
            self._look()

    def _look(self) -> None:
        for column, cells in zip(self._columns, zip_longest(*self._waiting, fillvalue=""), strict=False):
            column.see(cells)
        self._waiting, self._size = [], 0

    def text(self, document: Document, count: int) -> str:
        self._look()
        rows = "1 row" if count == 1 else f"{count} rows"
        columns = "1 column" if len(self._header) == 1 else f"{len(self._header)} columns"
        lines = [f"Table {document.title} ({document.source}): {rows}, {columns}: {', '.join(self._header)}."]
        if above := document.metadata.get("above"):
            lines.append(above)
        lines += [column.describe(name) for name, column in zip(self._header, self._columns, strict=True)]
        return "\n".join(lines)
