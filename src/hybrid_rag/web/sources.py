"""A document at a place, ready to be shown: a page with its text, records, rendered Markdown, or plain text."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hybrid_rag.errors import HybridRagError, InputError
from hybrid_rag.loading.encoding import decode
from hybrid_rag.web.markdown_view import render
from hybrid_rag.web.snippets import Piece, pieces

if TYPE_CHECKING:
    from hybrid_rag.records import DocumentInfo, Rows
    from hybrid_rag.service import Service

LONGEST_TEXT = 60_000  # characters shown of a text
BEFORE = 5  # records shown before the marked ones
RECORDS = 50  # shown at once
LONGEST_MARKDOWN = 1_000_000  # bytes; longer files are shown as text


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a document: a page, records, or a span of its text. All may be unset: the beginning."""

    page: int | None = None
    rows: Rows | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    number: int
    cells: tuple[str, ...]
    marked: bool


@dataclass(frozen=True, slots=True)
class View:
    """What is shown. ``form`` says which of the fields hold something; ``html`` is safe."""

    document: DocumentInfo
    form: Literal["page", "records", "markdown", "text"]
    text: tuple[Piece, ...] = ()
    page: int | None = None
    width: float = 0.0
    height: float = 0.0
    marks: tuple[tuple[float, float, float, float], ...] = ()
    header: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()
    first: int = 0
    last: int = 0
    html: str = ""
    front: str = ""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        text = "".join(p.text for p in self.text)
        marked = [p.text for p in self.text if p.marked]
        return {
            "source": self.document.source, "form": self.form, "page": self.page, "pages": self.document.pages,
            "row_count": self.document.rows, "rows": [self.first, self.last] if self.records else None, "header": list(self.header),
            "records": [list(r.cells) for r in self.records], "marked_rows": [r.number for r in self.records if r.marked],
            "text": text, "marked_text": marked, "html": self.html, "page_marks": [list(m) for m in self.marks], "note": self.note,
        }  # fmt: skip


def view(service: Service, source: str, place: Place) -> View:
    """The document around a place. Raises InputError when there is none of that name, or no such place."""
    document = service.files.document(source)
    if document.kind == "table":
        return _records(service, document, place)
    if document.format == "pdf" and document.pages:
        return _page(service, document, place)
    text = service.read(document.source).text
    if document.format == "md" and (shown := _markdown(service, document, text, place)) is not None:
        return shown
    return _text(document, text, place)


def _records(service: Service, document: DocumentInfo, place: Place) -> View:
    total = document.rows or 0
    wanted = place.rows
    first = max(1, wanted[0] - BEFORE) if wanted else 1
    last = min(total, first + RECORDS - 1)
    if wanted and wanted[0] > max(total, 1):
        raise InputError(f"{document.source} has {total} records; {wanted[0]} is not among them.")
    passage = service.read(document.source, rows=(first, max(first, last))) if total else None
    if passage is None:
        return View(document, "records", note="The table has no records.")
    records = tuple(
        Record(number, cells, bool(wanted) and wanted[0] <= number <= wanted[1])
        for number, cells in enumerate(passage.records, start=first)
    )
    whole = all(r.marked for r in records) and wanted is not None and wanted[0] == 1 and wanted[1] >= total
    if whole:  # a statement about the whole table: marking every row says nothing
        records = tuple(Record(r.number, r.cells, False) for r in records)
    return View(document, "records", header=passage.header, records=records, first=first, last=last)


def _page(service: Service, document: DocumentInfo, place: Place) -> View:
    page = place.page or 1
    if not 1 <= page <= (document.pages or 1):
        raise InputError(f"{document.source} has {document.pages} pages; {page} is not among them.")
    note, text, quote = "", "", ""
    begin = 0
    try:
        passage = service.read(document.source, page=page)
        text, begin = passage.text, passage.start or 0
    except InputError:
        note = "This page has no text."
    spans = [(place.start - begin, place.end - begin)] if place.start is not None and place.end is not None else []
    shown = pieces(text, [(max(0, a), min(len(text), b)) for a, b in spans])
    quote = "".join(p.text for p in shown if p.marked)
    try:
        image = service.files.page_marks(document.source, page, quote)
        return View(document, "page", shown, page=page, width=image.width, height=image.height, marks=image.marks, note=note)
    except HybridRagError as error:
        return View(document, "page", shown, page=page, note=f"{note} {error.message}".strip())


def _markdown(service: Service, document: DocumentInfo, text: str, place: Place) -> View | None:
    """Rendered, when the file is still the one that was indexed."""
    try:
        path = service.files.path(document.source)
        if path.stat().st_size > LONGEST_MARKDOWN:
            return None
        data = path.read_bytes()
    except (InputError, OSError):
        return None
    if hashlib.sha256(data).hexdigest() != document.sha256:
        return None
    rendered = render(decode(data).text, text, place.start, place.end)
    return View(document, "markdown", html=rendered.html, front=rendered.front)


def _text(document: DocumentInfo, text: str, place: Place) -> View:
    start, end = place.start or 0, place.end if place.end is not None else place.start or 0
    first = max(0, min(start, len(text)) - LONGEST_TEXT // 3) if len(text) > LONGEST_TEXT else 0
    last = min(len(text), first + LONGEST_TEXT)
    note = f"Characters {first + 1:,} to {last:,} of {len(text):,}." if last - first < len(text) else ""
    return View(document, "text", pieces(text, [(start, end)], first, last), note=note)
