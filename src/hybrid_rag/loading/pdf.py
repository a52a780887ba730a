"""PDF: text by page through pdfium, through pypdf where that fails; broken words joined, ligatures folded, outline as headings."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import threading
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import ReadError
from hybrid_rag.loading.body import Body, BodyBuilder

if TYPE_CHECKING:
    from hybrid_rag.loading import Limits

PDFIUM = threading.Lock()  # pdfium is not thread-safe
FEWEST_CHARACTERS = 10  # a page with fewer has no text
SHOWN_PAGES = 10
_BROKEN = re.compile(r"(\w+)[-\u00ad\u2010\ufffe]\n(\w+)")
_WORDS = re.compile(r"[^\W\d_]{2,}")
# Words that are written with a hyphen far more often than not when one of these comes first.
_COMPOUND_FIRST = frozenset(
    [
        "all",
        "anti",
        "co",
        "cross",
        "ex",
        "full",
        "half",
        "high",
        "long",
        "low",
        "mid",
        "multi",
        "non",
        "on",
        "off",
        "post",
        "pre",
        "price",
        "real",
        "self",
        "short",
        "so",
        "so-called",
        "state",
        "third",
        "time",
        "two",
        "three",
        "user",
        "well",
    ]
)


@dataclass
class _Pages:
    texts: list[str]
    labels: list[str | None] = field(default_factory=list)
    outline: list[tuple[int, int, str]] = field(default_factory=list)  # (page index, level, title)
    title: str = ""
    total: int = 0


def read(path: Path, limits: Limits) -> Body:
    """Read a PDF. Raises ReadError when neither library opens it, or it is encrypted with a password."""
    pages = _read_pages(path, limits)
    builder = BodyBuilder()
    texts = [_tidy(text) for text in pages.texts]
    _ocr_missing(path, texts, limits, builder)
    vocabulary = Counter(word.casefold() for text in texts for word in _WORDS.findall(_BROKEN.sub(" ", text)))
    hyphened = Counter(w.casefold() for text in texts for w in re.findall(r"[^\W\d_]+-[^\W\d_]+", text))
    by_page: dict[int, list[tuple[int, str]]] = {}
    for index, level, title in pages.outline:
        by_page.setdefault(index, []).append((level, title))
    for index, text in enumerate(texts):
        label = pages.labels[index] if index < len(pages.labels) else None
        _add_page(builder, join_broken(text, vocabulary, hyphened), index + 1, label, by_page.get(index, ()))
    if pages.total > len(texts):
        builder.notice(
            f"Only the first {len(texts)} of {pages.total} pages were read.", "Raise document_processing.max_pages.", partial=True
        )
    return builder.body(title=pages.title, pages=pages.total)


def join_broken(text: str, vocabulary: Counter[str], hyphened: Counter[str]) -> str:
    """Join words broken at line ends. The hyphen stays where the document itself, or the first part, speaks for it."""

    def join(match: re.Match[str]) -> str:
        first, second = match[1], match[2]
        whole, compound = (first + second).casefold(), f"{first}-{second}".casefold()
        keep = hyphened[compound] > vocabulary[whole] or (
            not vocabulary[whole]
            and (
                first.casefold() in _COMPOUND_FIRST
                or not first.isalpha()
                or not second.isalpha()
                or (second[0].isupper() and not first.isupper())
                or (vocabulary[first.casefold()] > 0 and vocabulary[second.casefold()] > 0)
            )
        )
        return f"{first}-{second}" if keep else f"{first}{second}"

    return _BROKEN.sub(join, text)


def _add_page(builder: BodyBuilder, text: str, page: int, label: str | None, headings: Any) -> None:
    """Blocks of one page; an outline entry opens its section where its title stands in the text, else at the top."""
    rest = text
    for level, title in headings:
        pattern = r"\s+".join(re.escape(word) for word in title.split())
        match = re.search(rf"^[^\S\n]*(?:[\dIVX.]+\s+)?{pattern}[^\S\n]*$", rest, re.MULTILINE | re.IGNORECASE)
        if match:
            _add_paragraphs(builder, rest[: match.start()], page, label)
            rest = rest[match.end() :]
        builder.heading(title, level, page=page, page_label=label)
    _add_paragraphs(builder, rest, page, label)


def _add_paragraphs(builder: BodyBuilder, text: str, page: int, label: str | None) -> None:
    for paragraph in re.split(r"\n\s*\n", text):
        builder.add(paragraph, page=page, page_label=label)


def _tidy(text: str) -> str:
    """NFKC folds ligatures; control characters go; pdfium's mark of a broken word becomes hyphen and line end."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe\n", "-\n").replace("\ufffe", "-\n")
    text = unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode("utf-8"))
    return "".join(c for c in text if c in "\n\t" or not unicodedata.category(c).startswith("C"))


def _read_pages(path: Path, limits: Limits) -> _Pages:
    first_error: Exception | None = None
    pages: _Pages | None = None
    try:
        pages = _by_pdfium(path, limits)
        if any(len(t.strip()) >= FEWEST_CHARACTERS for t in pages.texts):
            return pages
    except ReadError:
        raise
    except Exception as error:  # pdfium raises its own error class for every kind of damage
        first_error = error
    try:
        other = _by_pypdf(path, limits)
    except ReadError:
        raise
    except Exception as error:  # pypdf raises dozens of kinds on damaged files
        if pages is not None:
            return pages
        if "password" in f"{first_error} {error}".lower():
            raise ReadError("The PDF is encrypted with a password.", "Save a copy without password.") from error
        raise ReadError(f"The PDF is damaged: {_short(first_error or error)}.", "Download or export it again.") from error
    return other if pages is None or any(len(t.strip()) >= FEWEST_CHARACTERS for t in other.texts) else pages


def _by_pdfium(path: Path, limits: Limits) -> _Pages:
    import pypdfium2

    with PDFIUM:
        document = pypdfium2.PdfDocument(path)
        try:
            total = len(document)
            out = _Pages(texts=[], total=total, title=_title(document))
            for index in range(min(total, limits.max_pages)):
                page = document[index]
                text_page = page.get_textpage()
                out.texts.append(text_page.get_text_bounded())
                text_page.close()
                page.close()
                out.labels.append(_label(document, index))
            out.outline = _outline(document, total)
            return out
        finally:
            document.close()


def _title(document: Any) -> str:
    title = str(document.get_metadata_dict().get("Title") or "").strip()
    junk = (
        not title
        or title.lower().startswith(("untitled", "microsoft word", "(anonymous)", "unspecified"))
        or re.search(r"\.\w{2,4}$", title)
    )
    return "" if junk else " ".join(title.split())


def _label(document: Any, index: int) -> str | None:
    label = document.get_page_label(index)
    return label if label and label != str(index + 1) else None


def _outline(document: Any, total: int) -> list[tuple[int, int, str]]:
    out = []
    for bookmark in document.get_toc(max_depth=6):
        target = bookmark.get_dest()
        index = target.get_index() if target else None
        title = " ".join((bookmark.get_title() or "").split())
        if index is not None and 0 <= index < total and title:
            out.append((index, bookmark.level + 1, title))
    return out


def _by_pypdf(path: Path, limits: Limits) -> _Pages:
    from pypdf import PdfReader
    from pypdf.errors import FileNotDecryptedError

    reader = PdfReader(path)
    if reader.is_encrypted and not reader.decrypt(""):
        raise ReadError("The PDF is encrypted with a password.", "Save a copy without password.")
    try:
        total = len(reader.pages)
        texts = [reader.pages[i].extract_text() or "" for i in range(min(total, limits.max_pages))]
        labels = [label if label != str(i + 1) else None for i, label in enumerate(reader.page_labels[: len(texts)])]
    except FileNotDecryptedError:
        raise ReadError("The PDF is encrypted with a password.", "Save a copy without password.") from None
    if not total:
        raise ReadError("The PDF has no pages.", "Download or export it again.")
    title = reader.metadata.title if reader.metadata and reader.metadata.title else ""
    return _Pages(texts=texts, labels=labels, title=" ".join(str(title).split()), total=total)


def _ocr_missing(path: Path, texts: list[str], limits: Limits, builder: BodyBuilder) -> None:
    """Fill pages without text by OCR when wanted; name those that stay empty."""
    empty = [i for i, text in enumerate(texts) if len(text.strip()) < FEWEST_CHARACTERS]
    if empty and limits.ocr and shutil.which("tesseract"):
        for index in empty:
            texts[index] = _tidy(_recognise(path, index))
        still = [i for i in empty if len(texts[i].strip()) < FEWEST_CHARACTERS]
        builder.notice(f"{len(empty) - len(still)} pages without text were read by OCR ({_numbers(empty)}).")
        empty = still
    if empty:
        remedy = (
            "Set document_processing.ocr to true with tesseract installed."
            if not limits.ocr
            else "Install tesseract."
            if not shutil.which("tesseract")
            else ""
        )
        builder.notice(f"{len(empty)} of {len(texts)} pages have no text ({_numbers(empty)}).", remedy, partial=True)


def _recognise(path: Path, index: int) -> str:
    """OCR of one page, rendered at 200 dots an inch."""
    import pypdfium2

    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "page.pgm"
        with PDFIUM:
            document = pypdfium2.PdfDocument(path)
            pixels = document[index].render(scale=200 / 72, grayscale=True).to_numpy()
            height, width = pixels.shape[:2]
            image.write_bytes(b"P5 %d %d 255\n" % (width, height) + pixels.reshape(height, -1)[:, :width].tobytes())
            document.close()
        run = subprocess.run(["tesseract", str(image), "stdout"], capture_output=True, check=False)
    if run.returncode:
        raise ReadError(f"tesseract failed on page {index + 1}: {run.stderr.decode('utf-8', 'replace').strip()[:200]}")
    return run.stdout.decode("utf-8", "replace")


def _numbers(indices: list[int]) -> str:
    shown = ", ".join(str(i + 1) for i in indices[:SHOWN_PAGES])
    return f"page{'s' if len(indices) > 1 else ''} {shown}{' …' if len(indices) > SHOWN_PAGES else ''}"


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
