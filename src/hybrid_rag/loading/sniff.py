"""What a file really is, by its first bytes: a DOCX that is an old .doc or a web page is said to be so."""

from __future__ import annotations

import zipfile
from pathlib import Path

from hybrid_rag.errors import ReadError

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def sniff(path: Path, form: str) -> str:
    """The format to read the file as: ``form`` (by suffix), or what the content says. Raises ReadError."""
    with open(path, "rb") as file:
        head = file.read(4096)
    if form == "docx":
        return _docx(path, head)
    if b"%PDF-" in head[:1024] and form in ("pdf", "txt", "md"):
        return "pdf"
    if form == "pdf":
        _refuse_other(head, "PDF")
        if not head.strip():
            raise ReadError("The file is empty.", "Save or download it again.")
        return "pdf"  # damaged headers are the reader's business
    if head.startswith(_OLE) or (head.startswith(b"PK\x03\x04") and form in ("csv", "tsv", "txt", "md")):
        kind = "an old Office document" if head.startswith(_OLE) else "a zip archive (perhaps an Office document)"
        raise ReadError(f"The file is {kind}, not {form.upper()}.", "Open it in its program and save it in the named format.")
    return form


def _docx(path: Path, head: bytes) -> str:
    if head.startswith(b"%PDF-"):
        return "pdf"
    if not head.startswith(b"PK"):
        _refuse_other(head, "DOCX")
        raise ReadError("The file is not a DOCX (it is no zip archive).", "Open it in its program and save it as .docx.")
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise ReadError(f"The DOCX is damaged or cut off: {error}.", "Download or save it again.") from error
    if "mimetype" in names and "content.xml" in names:
        raise ReadError("The file is an OpenDocument text, not DOCX.", "Save it as .docx.")
    if any(name.startswith("xl/") for name in names):
        raise ReadError("The file is an Excel workbook, not DOCX.", "Save its sheets as CSV.")
    return "docx"


def _refuse_other(head: bytes, wanted: str) -> None:
    start = head.lstrip()[:200].lower()
    found = ""
    if head.startswith(_OLE):
        found = "an old or encrypted Office document (.doc)"
    elif start.startswith((b"<!doctype html", b"<html", b"<head", b"<meta")):
        found = "a web page (HTML)"
    elif start.startswith(b"{\\rtf"):
        found = "an RTF document"
    elif head.startswith(b"PK\x03\x04") and wanted == "PDF":
        found = "a zip archive"
    if found:
        raise ReadError(f"The file is {found}, not {wanted}.", f"Open it in its program and save it as {wanted}.")
