"""PDF: pages from 1, broken words, forms, outlines, and pages that hold no text."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from hybrid_rag.errors import ReadError
from hybrid_rag.loading import Limits, read
from hybrid_rag.loading.hyphens import Hyphens
from hybrid_rag.records import Document
from tests.support.files import pdf, scanned_pdf


def load(path: Path, **limits) -> Document:
    return read(path, source=path.name, limits=Limits(**limits))


def test_pages_labels_and_outline(tmp_path: Path) -> None:
    path = pdf(
        tmp_path / "a.pdf",
        ["Welcome to the guide", "The second page says more", "Battery life\nIt lasts nine hours"],
        labels="0<</S/r>>2<</S/D>>",
        outline=[("Start", 0), ("Battery life", 2)],
        title="Guide",
    )
    document = load(path)
    assert (document.title, document.pages) == ("Guide", 3)
    found = [(b.page, b.page_label, b.heading, document.text[b.start : b.end]) for b in document.blocks if b.role == "paragraph"]
    assert found == [
        (1, "i", ("Start",), "Welcome to the guide"),
        (2, "ii", ("Start",), "The second page says more"),
        (3, "1", ("Battery life",), "It lasts nine hours"),
    ]


def test_broken_words_on_a_page(tmp_path: Path) -> None:
    text = load(pdf(tmp_path / "a.pdf", ["Change of cli-\nmate is a price-\ndetermining factor, office"])).text
    assert text == "Change of climate is a price-determining factor, office"
    assert "\0" not in text


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [("cli", "mate", False), ("price", "determining", True), ("well", "known", True), ("ex", "amine", False), ("check", "ing", False), ("A", "002", True), ("high", "lighted", False), ("zyx", "wvu", False)],
)  # fmt: skip
def test_which_hyphens_belong_to_the_word(first: str, second: str, kept: bool) -> None:
    assert Hyphens([]).keeps(first, second) is kept


def test_the_document_decides_first() -> None:
    assert Hyphens(["co-operate, co-operate"]).keeps("co", "operate")
    assert not Hyphens(["wellknown, wellknown"]).keeps("well", "known")


def test_ligatures_are_folded(tmp_path: Path) -> None:
    from hybrid_rag.loading.pdf import _tidy

    assert _tidy("o\ufb03ce \ufb01le\x00\x07") == "office file"


def test_values_of_form_fields_are_read(tmp_path: Path) -> None:
    document = load(pdf(tmp_path / "a.pdf", ["Order form for customers"], field="Ann Lee"))
    note = next(b for b in document.blocks if b.role == "note")
    assert (document.text[note.start : note.end], note.page) == ("Customer: Ann Lee", 1)


def test_pages_beyond_the_limit_are_said(tmp_path: Path) -> None:
    document = load(pdf(tmp_path / "a.pdf", ["The first page here", "The second page here"]), max_pages=1)
    assert "second" not in document.text
    assert [n.partial for n in document.notices] == [True]


def test_a_damaged_page_costs_itself_only(tmp_path: Path) -> None:
    path = pdf(tmp_path / "a.pdf", ["The first page here", "The second one", "The third page here"])
    content = path.read_bytes()
    path.write_bytes(content.replace(b"/Kids[5 0 R 7 0 R 9 0 R]", b"/Kids[5 0 R 99 0 R 9 0 R]"))
    assert path.read_bytes() != content
    document = load(path)
    assert {b.page: document.text[b.start : b.end] for b in document.blocks} == {1: "The first page here", 3: "The third page here"}
    assert [(n.message, n.partial) for n in document.notices] == [("1 of 3 pages damaged (page 2).", True)]


def test_pages_without_text_are_named(tmp_path: Path) -> None:
    document = load(pdf(tmp_path / "a.pdf", ["The first page here", "", "3"]))
    assert "pages 2, 3" in document.notices[0].message
    assert document.notices[0].partial


@pytest.mark.parametrize("found", [True, False])
def test_ocr_reads_pages_without_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: bool) -> None:
    """A stand-in for the program: it is handed a picture of the page and writes text to its standard output."""
    program = tmp_path / "bin" / "tesseract"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\nhead -c 2 \"$1\" | grep -q P5 && echo 'Recognised from the picture'\n" if found else "#!/bin/sh\n", encoding="utf-8"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    document = load(pdf(tmp_path / "a.pdf", ["The first page here", ""]), ocr=True)
    pages = {b.page: document.text[b.start : b.end] for b in document.blocks}
    assert pages.get(2) == ("Recognised from the picture" if found else None)
    assert [n.partial for n in document.notices] == [not found]


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="tesseract is not installed (apt install tesseract-ocr)")
def test_tesseract_reads_a_scanned_page(tmp_path: Path) -> None:
    path = scanned_pdf(tmp_path / "scan.pdf", "The boiler is serviced every April.\nInvoice 4711 was paid in full.")
    assert [n.partial for n in load(path).notices] == [True]
    document = load(path, ocr=True)
    pages = {b.page: " ".join(document.text[b.start : b.end].split()) for b in document.blocks}
    assert pages[1] == "The first page"
    assert "boiler is serviced every April" in pages[2]
    assert "4711" in pages[2]
    assert [(n.message, n.partial) for n in document.notices] == [("1 page without text read by OCR (page 2).", False)]
    unknown = load(path, ocr=True, ocr_languages="xyz").notices[0]
    assert unknown.partial
    assert "ocr_languages" in unknown.remedy


def test_ocr_that_takes_too_long_leaves_the_other_pages_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "tesseract"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec sleep 30\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    document = load(pdf(tmp_path / "a.pdf", ["The first page here", "", ""]), ocr=True, max_seconds=0.5)
    assert document.text == "The first page here"
    assert [(n.message, n.partial) for n in document.notices] == [("2 of 3 pages without text (pages 2, 3).", True)]
    assert "max_seconds" in document.notices[0].remedy


def test_without_the_program_the_report_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    document = load(pdf(tmp_path / "a.pdf", ["The first page here", ""]), ocr=True)
    assert "Install tesseract" in document.notices[0].remedy


def test_a_html_page_named_pdf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_text("<!DOCTYPE html><html></html>", encoding="utf-8")
    with pytest.raises(ReadError, match="web page"):
        load(tmp_path / "a.pdf")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"")
    with pytest.raises(ReadError, match="empty"):
        load(tmp_path / "a.pdf")


def test_pypdf_reads_what_pdfium_does_not_open(tmp_path: Path) -> None:
    path = pdf(tmp_path / "a.pdf", ["A page with its text"])
    path.write_bytes(b"junk before\n" * 200 + path.read_bytes())
    assert "A page with its text" in load(path).text
