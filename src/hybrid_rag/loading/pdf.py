"""PDF: text by page through pdfium, through pypdf where that fails; broken words joined, ligatures folded, outline as headings."""

from __future__ import annotations

import re
import threading
import time
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import ReadError
from hybrid_rag.loading.body import Body, BodyBuilder
from hybrid_rag.loading.hyphens import Hyphens
from hybrid_rag.loading.pdf_fields import annotations

if TYPE_CHECKING:
    from hybrid_rag.loading import Limits

PDFIUM = threading.Lock()  # pdfium is not thread-safe
FEWEST_CHARACTERS = 10  # a page with fewer has no text
SHOWN_PAGES = 10
OCR_SHARE = 0.8  # of the time that a file may take; the rest is for everything else
LARGEST_SECOND_TRY = 50 << 20  # bytes of a PDF without text that pypdf, which holds all of it in memory, is tried on
MOST_OUTLINE = 20_000  # entries
_BREAK_MARK = re.compile(r"(?<=\w)[\x02\ufffe]\n?")  # pdfium's, by version, for a hyphen at a line end


@dataclass
class _Pages:
    texts: list[str]
    labels: list[str | None] = field(default_factory=list)
    outline: list[tuple[int, int, str]] = field(default_factory=list)  # (page index, level, title)
    fields: list[list[str]] = field(default_factory=list)  # form values and notes of each page
    title: str = ""
    total: int = 0
    damaged: list[int] = field(default_factory=list)  # indices of pages that cannot be opened

    @property
    def has_text(self) -> bool:
        return any(len(text.strip()) >= FEWEST_CHARACTERS for text in self.texts) or any(self.fields)


def read(path: Path, limits: Limits) -> Body:
    """Read a PDF. Raises ReadError when neither library opens it, or it is encrypted with a password."""
    pages = _read_pages(path, limits)
    builder = BodyBuilder()
    texts = [_tidy(text) for text in pages.texts]
    _empty_pages(path, texts, pages, limits, builder)
    if pages.damaged:
        said = f"{len(pages.damaged)} of {_pages(len(texts))} damaged ({_numbers(pages.damaged)})."
        builder.notice(said, "Download or export it again.", partial=True)
    hyphens = Hyphens(texts)
    headings: dict[int, list[tuple[int, str]]] = {}
    for index, level, title in pages.outline:
        headings.setdefault(index, []).append((level, title))
    for index, text in enumerate(texts):
        label = pages.labels[index] if index < len(pages.labels) else None
        _add_page(builder, hyphens.join(text), index + 1, label, headings.get(index, ()))
        for line in pages.fields[index] if index < len(pages.fields) else ():
            builder.add(line, role="note", page=index + 1, page_label=label)
    if pages.total > len(texts):
        builder.notice(
            f"Only the first {len(texts)} of {pages.total} pages were read.", "Raise document_processing.max_pages.", partial=True
        )
    return builder.body(title=pages.title, pages=pages.total)


def _add_page(builder: BodyBuilder, text: str, page: int, label: str | None, headings: Iterable[tuple[int, str]]) -> None:
    """Blocks of one page; an outline entry opens its section where its title stands in the text, else at the top."""
    rest = text
    for level, title in headings:
        pattern = r"\s+".join(re.escape(word) for word in title.split()[:30])
        match = re.search(rf"^[^\S\n]*(?:[\dIVX.]+[^\S\n]+)?{pattern}[^\S\n]*$", rest, re.MULTILINE | re.IGNORECASE)
        if match:
            _add_paragraphs(builder, rest[: match.start()], page, label)
            rest = rest[match.end() :]
        builder.heading(match[0] if match else title, level, page=page, page_label=label)
    _add_paragraphs(builder, rest, page, label)


def _add_paragraphs(builder: BodyBuilder, text: str, page: int, label: str | None) -> None:
    for paragraph in re.split(r"\n\s*\n", text):
        builder.add(paragraph, page=page, page_label=label)


def _tidy(text: str) -> str:
    """NFKC folds ligatures; control characters go; pdfium's mark of a broken word becomes hyphen and line end."""
    text = _BREAK_MARK.sub("-\n", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode("utf-8"))
    return (
        text
        if text.isascii() and text.isprintable()
        else "".join(c for c in text if c in "\n\t\u00ad" or unicodedata.category(c)[0] != "C")
    )


def _read_pages(path: Path, limits: Limits) -> _Pages:
    first_error: Exception | None = None
    pages: _Pages | None = None
    try:
        pages = _by_pdfium(path, limits)
        if (pages.has_text and not pages.damaged) or path.stat().st_size > LARGEST_SECOND_TRY:
            return pages
    except Exception as error:  # pdfium raises its own error class for every kind of damage
        first_error = error
    try:
        other = _by_pypdf(path, limits)
    except ReadError:
        if pages is not None:
            return pages
        raise
    except Exception as error:  # pypdf raises dozens of kinds on damaged files
        if pages is not None:
            return pages
        if "password" in f"{first_error} {error}".lower():
            raise _locked() from error
        raise ReadError(f"The PDF is damaged: {_short(first_error or error)}", "Download or export it again.") from error
    if pages is None or (other.has_text and (not pages.damaged or len(other.texts) == len(pages.texts))):
        return other
    return pages


def _locked() -> ReadError:
    return ReadError("The PDF is encrypted with a password.", "Save a copy without password.")


def _by_pdfium(path: Path, limits: Limits) -> _Pages:
    import pypdfium2

    with PDFIUM:
        document = pypdfium2.PdfDocument(path)
        try:
            document.init_forms()  # before pages are loaded
            form = document.formenv
            total = len(document)
            out = _Pages(texts=[], total=total, title=_title(document))
            for index in range(min(total, limits.max_pages)):
                out.labels.append(_label(document, index))
                try:
                    page = document[index]
                except pypdfium2.PdfiumError:  # it is named in the report; all of them together are the file's fault
                    if len(out.damaged) + 1 == min(total, limits.max_pages):
                        raise
                    out.damaged.append(index)
                    out.texts.append("")
                    out.fields.append([])
                    continue
                text_page = page.get_textpage()
                out.texts.append(text_page.get_text_bounded())
                out.fields.append(annotations(page, form))
                text_page.close()
                page.close()
            out.outline = _outline(document, total)
            return out
        finally:
            document.close()


def _title(document: Any) -> str:
    title = " ".join(str(document.get_metadata_dict().get("Title") or "").replace("\0", "").split())
    junk = title.lower().startswith(("untitled", "microsoft word", "(anonymous)", "unspecified")) or re.search(r"\.\w{2,4}$", title)
    return "" if junk else title


def _label(document: Any, index: int) -> str | None:
    label = document.get_page_label(index)
    return label if label and label != str(index + 1) else None


def _outline(document: Any, total: int) -> list[tuple[int, int, str]]:
    out: list[tuple[int, int, str]] = []
    for bookmark in document.get_toc(max_depth=6):
        target = bookmark.get_dest()
        index = target.get_index() if target else None
        title = " ".join((bookmark.get_title() or "").split())
        if index is not None and 0 <= index < total and title:
            out.append((index, bookmark.level + 1, title))
        if len(out) >= MOST_OUTLINE:
            break
    return out


def _by_pypdf(path: Path, limits: Limits) -> _Pages:
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError

    reader = PdfReader(path)
    if reader.is_encrypted and not reader.decrypt(""):
        raise _locked()
    try:
        total = len(reader.pages)
        texts = [reader.pages[i].extract_text() or "" for i in range(min(total, limits.max_pages))]
        labels = [label if label != str(i + 1) else None for i, label in enumerate(reader.page_labels[: len(texts)])]
    except FileNotDecryptedError:
        raise _locked() from None
    if not total:
        raise ReadError("The PDF has no pages.", "Download or export it again.")
    title = reader.metadata.title if reader.metadata and reader.metadata.title else ""
    return _Pages(texts=texts, labels=labels, title=" ".join(str(title).split()), total=total)


def _empty_pages(path: Path, texts: list[str], pages: _Pages, limits: Limits, builder: BodyBuilder) -> None:
    """Fill pages without text by OCR when wanted; name those that stay empty."""
    others = {i for i, lines in enumerate(pages.fields) if lines} | set(pages.damaged)
    empty = [i for i, text in enumerate(texts) if len(text.strip()) < FEWEST_CHARACTERS and i not in others]
    remedy = "Set document_processing.ocr to true, with tesseract installed."
    if empty and limits.ocr:
        remedy = _recognise(path, texts, empty, limits)
        done = [i for i in empty if len(texts[i].strip()) >= FEWEST_CHARACTERS]
        if done:
            builder.notice(f"{_pages(len(done))} without text read by OCR ({_numbers(done)}).")
        empty = [i for i in empty if i not in done]
    if empty:
        builder.notice(f"{len(empty)} of {_pages(len(texts))} without text ({_numbers(empty)}).", remedy, partial=True)


def _recognise(path: Path, texts: list[str], empty: list[int], limits: Limits) -> str:
    """Read pages by OCR into ``texts``, as many as the time limit of the file allows; returns the remedy for the others."""
    from hybrid_rag.loading.ocr import available, recognise

    if not available():
        return "Install tesseract."
    end = time.monotonic() + OCR_SHARE * limits.max_seconds
    for index in empty:
        try:
            texts[index] = _tidy(recognise(path, index, PDFIUM, languages=limits.ocr_languages, seconds=end - time.monotonic()))
        except ReadError as error:  # the other pages of the file are read all the same
            return f"{error.message} {error.remedy}".strip()
    return ""


def _pages(n: int) -> str:
    return f"{n} page{'s' if n != 1 else ''}"


def _numbers(indices: list[int]) -> str:
    shown = ", ".join(str(i + 1) for i in indices[:SHOWN_PAGES])
    return f"page{'s' if len(indices) > 1 else ''} {shown}{' …' if len(indices) > SHOWN_PAGES else ''}"


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200].rstrip(".") + "." if str(error) else f"{type(error).__name__}."
