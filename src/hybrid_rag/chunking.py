"""Documents to chunks: text windows that stay inside a section, groups of whole rows with their header.

Every chunk is ``document.text[start:end]``; for table files the text is the rendering of :func:`render_record`, record
after record. Everything of a document that is not white space is in some chunk, and no chunk is over its limit.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hybrid_rag.chunking_tables import table_chunks
from hybrid_rag.records import Block, Chunk, Document

# Where a window is best cut: after a paragraph, a line, a sentence, a word.
_CUTS = tuple(re.compile(p) for p in (r"\n\n+", r"\n", r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])", r"\s+"))


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """Sizes: characters of a text chunk and of its overlap with the one before, records of a table chunk."""

    text_size: int = 1000
    text_overlap: int = 200
    rows: int = 10


def chunk(document: Document, options: ChunkOptions) -> Iterator[Chunk]:
    """Chunks in reading order, streamed; a table file ends with the card that describes it."""
    if document.rows is not None:
        yield from table_chunks(document, rows=options.rows, size=options.text_size)
        return
    for ordinal, (start, end, block) in enumerate(_spans(document, options)):
        yield Chunk(
            source=document.source,
            kind="text",
            ordinal=ordinal,
            text=document.text[start:end],
            start=start,
            end=end,
            title=document.title,
            heading=block.heading,
            page=block.page,
            page_label=block.page_label,
            role="table" if block.role == "table" else "body",
            header=document.text[block.start : block.header_end].strip() if block.start < block.header_end <= start else "",
        )


def _spans(document: Document, options: ChunkOptions) -> Iterator[tuple[int, int, Block]]:
    for section in _sections(document.blocks):
        first, last = section[0], section[-1]
        if last.role == "table":
            for start, end in _row_groups(document.text, first.start, last, options.text_size):
                yield start, end, last
            continue
        starts = [block.start for block in section]
        for start, end in windows(document.text, first.start, last.end, options.text_size, options.text_overlap):
            yield start, end, _under(section, starts, start, end)


def _under(section: list[Block], starts: list[int], start: int, end: int) -> Block:
    """The block that a window begins in; headings that it opens with lead to the one that its text stands under."""
    at = max(0, bisect.bisect_right(starts, start) - 1)
    while section[at].role == "heading" and at + 1 < len(section) and section[at + 1].start < end:
        at += 1
    return section[at]


def _sections(blocks: tuple[Block, ...]) -> Iterator[list[Block]]:
    """Runs of blocks under one heading and on one page. A table stands alone, but for the headings right above it."""
    run: list[Block] = []
    for block in blocks:
        if run and not _goes_on(run, block):
            yield run
            run = []
        run.append(block)
    if run:
        yield run


def _goes_on(run: list[Block], block: Block) -> bool:
    last = run[-1]
    if block.page != last.page or last.role == "table":
        return False
    if all(b.role == "heading" for b in run):  # a bare heading joins what stands below it
        return block.heading[: len(last.heading)] == last.heading
    return block.role != "table" and block.heading == last.heading


def windows(text: str, start: int, end: int, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Windows of at most ``size`` characters over ``text[start:end]``, neighbours sharing at most ``overlap``."""
    start, end = _trim(text, start, end)
    while end - start > size:
        cut = _best_cut(text, start, start + size)
        yield _trim(text, start, cut)
        start = max(_overlap_start(text, cut, overlap, floor=start + 1), start + 1)
        start, _ = _trim(text, start, end)
    if end > start:
        yield start, end


def _best_cut(text: str, start: int, limit: int) -> int:
    """The last place to cut of the best kind in the second half of the window; the limit itself when there is none."""
    middle = start + (limit - start) // 2
    for pattern in _CUTS:
        last = None
        for match in pattern.finditer(text, middle, limit):
            last = match
        if last is not None and last.end() > middle:
            return last.end()
    return limit


def _overlap_start(text: str, cut: int, overlap: int, *, floor: int) -> int:
    """Where the next window begins: at a line, sentence or word within ``overlap`` characters before the cut."""
    earliest = max(cut - overlap, floor)
    for pattern in _CUTS[1:]:
        match = pattern.search(text, earliest, cut)
        if match and match.end() < cut:
            return match.end()
    return cut


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _row_groups(text: str, start: int, block: Block, size: int) -> Iterator[tuple[int, int]]:
    """Whole rows of a table inside a document, from ``start`` (its headings); only a row that is too long is cut."""
    if block.start - start > size // 2:
        yield from windows(text, start, block.start, size, 0)
        start = block.start
    at = block.start
    for line in text[block.start : block.end].splitlines(keepends=True):
        after = at + len(line)
        if after - start > size and at > start:
            yield from windows(text, start, at, size, 0)
            start = at
        if len(line) > size:
            yield from windows(text, at, after, size, 0)
            start = after
        at = after
    if at > start and text[start:at].strip():
        yield _trim(text, start, at)
