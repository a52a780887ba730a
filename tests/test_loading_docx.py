"""DOCX: what Word shows is what is read."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from hybrid_rag.errors import ReadError
from hybrid_rag.loading import Limits, read
from hybrid_rag.records import Document
from tests.support.files import W, docx, p, pdf, r, table


def load(path: Path, **limits: int) -> Document:
    return read(path, source=path.name, limits=Limits(**limits))


def blocks(document: Document, role: str) -> list[str]:
    return [document.text[b.start : b.end] for b in document.blocks if b.role == role]


def test_tracked_changes_and_moves_are_resolved(tmp_path: Path) -> None:
    body = p(r("Pay ") + f"<w:ins>{r('thirty')}</w:ins><w:del><w:r><w:delText>ten</w:delText></w:r></w:del>" + r(" days"))
    body += p(f"<w:moveFrom>{r('moved')}</w:moveFrom>") + p(f"<w:moveTo>{r('moved')}</w:moveTo>")
    body += f"<w:ins>{p(r('a new paragraph'))}</w:ins>"
    assert load(docx(tmp_path / "a.docx", body)).text == "Pay thirty days\n\nmoved\n\na new paragraph"


@pytest.mark.parametrize("main", ["word/document.xml", "word/document2.xml", "other/place.xml"])
@pytest.mark.parametrize("strict", [True, False])
def test_the_main_part_is_found_in_both_forms(tmp_path: Path, main: str, strict: bool) -> None:
    styles = f'<w:styles {W}><w:style w:styleId="X"><w:name w:val="heading 2"/></w:style></w:styles>'
    document = load(docx(tmp_path / "a.docx", p(r("Head"), "X") + p(r("body")), strict=strict, main=main, styles=styles))
    assert document.text == "Head\n\nbody"
    assert document.blocks[1].heading == ("Head",)


def test_heading_levels_come_from_styles_and_outlines(tmp_path: Path) -> None:
    styles = (
        f'<w:styles {W}><w:style w:styleId="T"><w:name w:val="Title"/></w:style><w:style w:styleId="H1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Own"><w:name w:val="My head"/><w:basedOn w:val="H2"/></w:style>'
        '<w:style w:styleId="H2"><w:name w:val="Überschrift 2"/></w:style></w:styles>'
    )
    body = (
        p(r("Guide"), "T")
        + p(r("One"), "H1")
        + p(r("Inner"), "Own")
        + '<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr>'
        + r("Deep")
        + "</w:p>"
    )
    document = load(docx(tmp_path / "a.docx", body + p(r("x")), styles=styles))
    assert document.blocks[-1].heading == ("Guide", "One", "Inner", "Deep")


def numbering(*levels: tuple[str, str]) -> str:
    inner = "".join(
        f'<w:lvl w:ilvl="{i}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{text}"/></w:lvl>'
        for i, (form, text) in enumerate(levels)
    )
    return f'<w:numbering {W}><w:abstractNum w:abstractNumId="0">{inner}</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>'


def test_clause_numbers_are_those_that_word_shows(tmp_path: Path) -> None:
    body = "".join(
        p(r(text), number=(1, level)) for text, level in (("Term", 0), ("Start", 1), ("End", 1), ("Price", 0), ("Fee", 1), ("late", 2))
    )
    found = numbering(("decimal", "%1."), ("decimal", "%1.%2"), ("lowerLetter", "%1.%2.%3"))
    document = load(docx(tmp_path / "a.docx", body, numbering=found))
    assert document.text == "- Term\n  1.1 Start\n  1.2 End\n- Price\n  2.1 Fee\n    2.1.a late"


def test_numbered_headings_keep_their_number(tmp_path: Path) -> None:
    styles = f'<w:styles {W}><w:style w:styleId="H"><w:name w:val="heading 1"/></w:style></w:styles>'
    found = numbering(("upperRoman", "Article %1"))
    body = p(r("Scope"), "H", number=(1, 0)) + p(r("Payment"), "H", number=(1, 0))
    document = load(docx(tmp_path / "a.docx", body, styles=styles, numbering=found))
    assert blocks(document, "heading") == ["Article I Scope", "Article II Payment"]


def test_tables_repeat_what_is_merged(tmp_path: Path) -> None:
    wide = f'<w:tc><w:tcPr><w:gridSpan w:val="2"/></w:tcPr>{p(r("Year"))}</w:tc>'
    start = f'<w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{p(r("North"))}</w:tc>'
    below = f"<w:tc><w:tcPr><w:vMerge/></w:tcPr>{p('')}</w:tc>"

    def cell(text: str) -> str:
        return f"<w:tc>{p(r(text))}</w:tc>"

    rows = (cell("Region") + wide, start + cell("2023") + cell("5"), below + cell("2024") + cell("6"))
    document = load(docx(tmp_path / "a.docx", f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"))
    assert blocks(document, "table") == ["Region | Year | Year\nNorth | 2023 | 5\nNorth | 2024 | 6"]
    block = document.blocks[0]
    assert document.text[block.start : block.header_end] == "Region | Year | Year\n"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{p(r(text)) if text else p('')}</w:tc>"


def test_a_header_in_two_levels_names_each_column(tmp_path: Path) -> None:
    first = cell("Region", '<w:vMerge w:val="restart"/>') + cell("Price", '<w:gridSpan w:val="2"/>')
    second = cell("", "<w:vMerge/>") + cell("net") + cell("gross")
    rows = (first, second, cell("North") + cell("5") + cell("6"), cell("South") + cell("7") + cell("8"))
    document = load(docx(tmp_path / "a.docx", f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"))
    assert document.text == "Region | Price / net | Price / gross\nNorth | 5 | 6\nSouth | 7 | 8"
    assert document.text[: document.blocks[0].header_end] == "Region | Price / net | Price / gross\n"


def test_rows_that_are_repeated_on_each_page_are_the_header(tmp_path: Path) -> None:
    head = "<w:trPr><w:tblHeader/></w:trPr>"
    rows = (head + cell("Part") + cell("Weight"), head + cell("") + cell("kg"), cell("a") + cell("1"), cell("b") + cell("2"))
    document = load(docx(tmp_path / "a.docx", f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"))
    assert document.text == "Part | Weight / kg\na | 1\nb | 2"


def test_merged_first_column_without_a_header_keeps_its_rows(tmp_path: Path) -> None:
    rows = (
        cell("Fruit", '<w:vMerge w:val="restart"/>') + cell("apple"),
        cell("", "<w:vMerge/>") + cell("pear"),
        cell("Root") + cell("beet"),
    )
    document = load(docx(tmp_path / "a.docx", f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"))
    assert document.text == "Fruit | apple\nFruit | pear\nRoot | beet"


def test_symbol_fonts_and_form_fields_say_what_they_show(tmp_path: Path) -> None:
    def sym(font: str, code: str) -> str:
        return f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'

    def field(inner: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:name w:val="n"/>{inner}</w:ffData></w:fldChar></w:r>'

    body = p(r("p ") + sym("Symbol", "00DA") + r(" q ") + sym("Symbol", "F0B3") + sym("Wingdings", "F0FE") + sym("Webdings", "F061"))
    body += p(r("\uf061\uf0a3\uf062", '<w:rFonts w:ascii="Symbol" w:hAnsi="Symbol"/>') + r("\uf061", '<w:rFonts w:ascii="Odd"/>'))
    body += p(
        field("<w:checkBox><w:default w:val='0'/><w:checked/></w:checkBox>")
        + r(" yes ")
        + field("<w:checkBox><w:default w:val='0'/></w:checkBox>")
        + r(" no")
    )
    body += p(field("<w:ddList><w:result w:val='1'/><w:listEntry w:val='red'/><w:listEntry w:val='blue'/></w:ddList>"))
    assert load(docx(tmp_path / "a.docx", body)).text == "p ∨ q ≥☑\n\nα≤β\n\n☒ yes ☐ no\n\nblue"


def test_a_table_in_a_cell_and_a_deleted_row(tmp_path: Path) -> None:
    inner = table(["x", "y"], ["1", "2"])
    body = f"<w:tbl><w:tr><w:tc>{p(r('a'))}</w:tc><w:tc>{inner}</w:tc></w:tr><w:tr><w:tc>{p(r('b'))}</w:tc><w:tc>{p(r('c'))}</w:tc></w:tr></w:tbl>"
    assert load(docx(tmp_path / "a.docx", body)).text == "a | x, y; 1, 2\nb | c"


def test_notes_and_comments_follow_what_refers_to_them(tmp_path: Path) -> None:
    notes = f'<w:footnotes {W}><w:footnote w:type="separator" w:id="0">{p(r("---"))}</w:footnote><w:footnote w:id="2">{p(r("a note"))}</w:footnote></w:footnotes>'
    remarks = f'<w:comments {W}><w:comment w:id="7">{p(r("a remark"))}</w:comment></w:comments>'
    body = p(r("first") + '<w:r><w:footnoteReference w:id="2"/></w:r>') + p(r("second") + '<w:r><w:commentReference w:id="7"/></w:r>')
    document = load(docx(tmp_path / "a.docx", body, footnotes=notes, comments=remarks))
    assert document.text == "first\n\na note\n\nsecond\n\na remark"
    assert blocks(document, "note") == ["a note", "a remark"]


def test_headers_and_footers_stand_once(tmp_path: Path) -> None:
    parts = {"header1": "ACME confidential", "header2": "ACME confidential", "footer1": "Page 3", "footer2": "7"}
    found = {kind: f"<w:hdr {W}>{p(r(text))}</w:hdr>" for kind, text in parts.items()}
    document = load(docx(tmp_path / "a.docx", p(r("body")), **found))
    assert document.text == "ACME confidential\n\nbody\n\nPage 3"
    assert blocks(document, "margin") == ["ACME confidential", "Page 3"]


def test_text_boxes_stand_once(tmp_path: Path) -> None:
    box = f"<w:txbxContent>{p(r('in the box'))}</w:txbxContent>"
    drawing = f'<mc:AlternateContent xmlns:mc="m"><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>'
    assert load(docx(tmp_path / "a.docx", p(r("outside") + f"<w:r>{drawing}</w:r>"))).text == "outside\n\nin the box"


def test_content_controls_breaks_raised_digits_and_drop_caps(tmp_path: Path) -> None:
    body = f"<w:sdt><w:sdtPr/><w:sdtContent>{p(r('chosen'))}</w:sdtContent></w:sdt>"
    body += p(r("a") + "<w:r><w:br/></w:r>" + r("b") + "<w:r><w:tab/></w:r>" + r("c"))
    body += p(r("10") + r("2", '<w:vertAlign w:val="superscript"/>') + r(" and H") + r("2", '<w:vertAlign w:val="subscript"/>') + r("O"))
    body += '<w:p><w:pPr><w:framePr w:dropCap="drop"/></w:pPr>' + r("O") + "</w:p>" + p(r("nce upon"))
    assert load(docx(tmp_path / "a.docx", body)).text == "chosen\n\na\nb\tc\n\n10² and H2O\n\nOnce upon"


def test_a_pdf_named_docx_is_read_as_what_it_is(tmp_path: Path) -> None:
    document = load(pdf(tmp_path / "a.docx", ["A page of a PDF file"]))
    assert (document.format, document.pages) == ("pdf", 1)
    assert "The content is PDF" in document.notices[0].message


def test_a_docx_named_pdf_or_txt_is_read_as_what_it_is(tmp_path: Path) -> None:
    for name in ("a.pdf", "a.txt"):
        document = load(docx(tmp_path / name, p(r("text of Word")), main="word/document.xml"))
        assert (document.format, document.text) == ("docx", "text of Word")


def test_other_office_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    for part, reason in (("xl/workbook.xml", "Excel"), ("ppt/presentation.xml", "PowerPoint"), ("content.xml", "OpenDocument")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(part, "<x/>")
        with pytest.raises(ReadError, match=reason):
            load(path)


def test_broken_xml_is_read_as_plain_text_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {W}><w:body><w:p><w:r><w:t>cut")
    with pytest.raises(ReadError, match="damaged"):
        load(path)


def test_a_bomb_that_lies_about_its_size_is_stopped(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", p(r("x" * 2_000_000)))
    with pytest.raises(ReadError, match="unpacks to"):
        load(path, max_unpacked_bytes=100_000)


def test_a_zip_part_that_is_larger_than_it_says_is_refused(tmp_path: Path) -> None:
    path = docx(tmp_path / "a.docx", p(r("x" * 500_000)), main="word/document.xml")
    data = bytearray(path.read_bytes())
    at = data.rfind(b"PK\x01\x02", 0, data.rfind(b"word/document.xml"))
    data[at + 24 : at + 28] = (1000).to_bytes(4, "little")  # the size in the directory
    path.write_bytes(data)
    with pytest.raises(ReadError):
        load(path, max_unpacked_bytes=100_000)
