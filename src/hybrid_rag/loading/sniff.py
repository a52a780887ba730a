"""What a file really is, by its first bytes: a DOCX that is an old .doc or a web page is said to be so."""

from __future__ import annotations

import zipfile
from pathlib import Path

from hybrid_rag.errors import ReadError
from hybrid_rag.records import Notice

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (_OLE, "an old or encrypted Office document (.doc, .xls, .ppt)"),
    (b"{\\rtf", "an RTF document"),
    (b"\x89PNG\r\n", "an image (PNG)"),
    (b"\xff\xd8\xff", "an image (JPEG)"),
    (b"GIF8", "an image (GIF)"),
    (b"\x1f\x8b", "a compressed file (gzip)"),
    (b"Rar!", "a RAR archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
)
_PAGES = (b"<!doctype html", b"<html", b"<head", b"<meta")
_IN_ZIP = (
    ("word/", "docx", ""),
    ("xl/", "", "an Excel workbook"),
    ("ppt/", "", "a PowerPoint presentation"),
    ("content.xml", "", "an OpenDocument file"),
    ("META-INF/container.xml", "", "an e-book (EPUB)"),
)


def sniff(path: Path, form: str) -> tuple[str, Notice | None]:
    """(format to read the file as, what to say when its name claims another). Raises ReadError for what is not read."""
    with open(path, "rb") as file:
        head = file.read(4096)
    if not head and form in ("pdf", "docx"):
        raise ReadError("The file is empty.", "Save or download it again.")
    actual = _kind(path, head, form)
    if actual == form or actual is None:
        return form, None
    return actual, Notice(f"The content is {actual.upper()}, although the name says {form.upper()}; it was read as {actual.upper()}.")


def _kind(path: Path, head: bytes, form: str) -> str | None:
    """The format that the content shows, None when it shows none of ours."""
    if head.startswith(_ZIP):
        return _in_zip(path, form)
    at = head[:1024].find(b"%PDF-")
    if at == 0 or (at > 0 and (form == "pdf" or not head[:at].strip())):
        return "pdf"
    found = next((name for magic, name in _OTHERS if head.startswith(magic)), "")
    if not found and form in ("pdf", "docx") and head.lstrip(b"\xef\xbb\xbf \t\r\n")[:200].lower().startswith(_PAGES):
        found = "a web page (HTML)"
    if not found and form == "docx":
        found = "something else (a DOCX begins as a zip archive)"
    if found:
        raise ReadError(f"The file is {found}, not {form.upper()}.", f"Open it in its program and save it as {form.upper()}.")
    return None  # text, or a PDF with a damaged beginning


def _in_zip(path: Path, form: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ReadError(f"The file is a damaged or cut-off zip archive: {error}.", "Download or save it again.") from error
    for beginning, actual, found in _IN_ZIP:
        if any(name.replace("\\", "/").lstrip("/").startswith(beginning) for name in names):
            if actual:
                return actual
            raise ReadError(f"The file is {found}, not {form.upper()}.", f"Open it in its program and save it as {form.upper()}.")
    if form == "docx":
        return "docx"  # its main part may have any name
    raise ReadError(f"The file is a zip archive, not {form.upper()}.", "Unpack it.")
