"""Table files to chunks: groups of records as ``header: value`` lines, and one card that describes the table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hybrid_rag.records import Chunk, Document

RECORD_SEPARATOR = "\n\n"
SAMPLE_VALUES = 8
LONGEST_SAMPLE = 40  # characters of a sample value
_NUMBER = re.compile(r"^[-+]?\d{1,15}(?:\.\d+)?$")


def render_record(header: Sequence[str], cells: Sequence[str]) -> str:
    """One record as lines. Empty cells are left out; cells beyond the header are named ``extra_1`` …"""
    width = len(header)
    lines = [f"{header[i] if i < width else f'extra_{i - width + 1}'}: {cell}" for i, cell in enumerate(cells) if cell.strip()]
    return "\n".join(lines) or f"{header[0] if header else 'record'}:"


def table_chunks(document: Document, *, rows: int, size: int) -> Iterator[Chunk]:
    """Groups of at most ``rows`` records and ``size`` characters; a record longer than that is cut into pieces."""
    if document.rows is None or not document.rows.header:
        return
    header = document.rows.header
    card = _Card(header)
    group = _Group(document, size)
    number = 0
    for number, cells in enumerate(document.rows.open(), start=1):
        card.see(cells)
        text = render_record(header, cells)
        if group.parts and (len(group.parts) >= rows or group.length + len(RECORD_SEPARATOR) + len(text) > size):
            yield from group.close()
        group.add(text, number)
    yield from group.close()
    text = card.text(document, number)[:size]
    yield Chunk(document.source, "table", group.ordinal, text, group.position, group.position, title=document.title, role="card",
                rows=(1, number) if number else None)  # fmt: skip


@dataclass
class _Group:
    """Records collected for the next chunk, with their place in the rendered text."""

    document: Document
    size: int
    parts: list[str] = field(default_factory=list)
    length: int = 0
    first: int = 0
    last: int = 0
    position: int = 0  # start of the group in the rendered text
    ordinal: int = 0

    def add(self, text: str, number: int) -> None:
        if not self.parts:
            self.first = number
        self.length += len(text) + (len(RECORD_SEPARATOR) if self.parts else 0)
        self.parts.append(text)
        self.last = number

    def close(self) -> Iterator[Chunk]:
        if not self.parts:
            return
        text = RECORD_SEPARATOR.join(self.parts)
        for at in _pieces(text, self.size):
            piece = text[at[0] : at[1]]
            yield Chunk(
                self.document.source,
                "table",
                self.ordinal,
                piece,
                self.position + at[0],
                self.position + at[1],
                title=self.document.title,
                rows=(self.first, self.last),
            )
            self.ordinal += 1
        self.position += len(text) + len(RECORD_SEPARATOR)
        self.parts, self.length = [], 0


def _pieces(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Spans of at most ``size`` characters, cut at line ends or blanks where there are some."""
    start = 0
    while len(text) - start > size:
        cut = text.rfind("\n", start + size // 2, start + size) + 1
        cut = cut or text.rfind(" ", start + size // 2, start + size) + 1 or start + size
        yield start, cut
        start = cut
    if start < len(text):
        yield start, len(text)


@dataclass
class _Column:
    filled: int = 0
    numbers: int = 0
    low: float = float("inf")
    high: float = float("-inf")
    samples: dict[str, int] = field(default_factory=dict)
    more: bool = False

    def see(self, cell: str) -> None:
        self.filled += 1
        if len(self.samples) < 4 * SAMPLE_VALUES or cell in self.samples:
            key = cell[:LONGEST_SAMPLE]
            self.samples[key] = self.samples.get(key, 0) + 1
        else:
            self.more = True
        if _NUMBER.match(cell):
            value = float(cell)
            self.numbers += 1
            self.low, self.high = min(self.low, value), max(self.high, value)

    def describe(self, name: str) -> str:
        if not self.filled:
            return f"- {name}: empty"
        shown = sorted(self.samples, key=lambda s: (-self.samples[s], s))[:SAMPLE_VALUES]
        rest = " …" if self.more or len(self.samples) > SAMPLE_VALUES else ""
        values = ", ".join(" ".join(s.split()) for s in shown) + rest
        if self.numbers == self.filled:
            return f"- {name} (number): {self.low:g} to {self.high:g}"
        return f"- {name} (text): {values}"


class _Card:
    """Collects what the card says while the records stream by."""

    def __init__(self, header: Sequence[str]) -> None:
        self._header = header
        self._columns = [_Column() for _ in header]

    def see(self, cells: Sequence[str]) -> None:
        for column, cell in zip(self._columns, cells, strict=False):
            if cell and not cell.isspace():
                column.see(cell)

    def text(self, document: Document, count: int) -> str:
        lines = [f"Table {document.title} ({document.source}): {count} rows, {len(self._header)} columns: {', '.join(self._header)}."]
        lines += [column.describe(name) for name, column in zip(self._header, self._columns, strict=True)]
        return "\n".join(lines)
