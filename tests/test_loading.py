"""Each kind of file read right, and what cannot be read said with its reason. Cases that people met elsewhere."""

from __future__ import annotations

import os
import unicodedata
import zipfile
from pathlib import Path

import pytest

from hybrid_rag.errors import DataError, InputError, ReadError
from hybrid_rag.loading import Limits, read
from hybrid_rag.loading.scan import scan, source_of
from hybrid_rag.records import Document

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
DATA = Path(__file__).parents[1] / "data"


def load(path: Path, content: bytes | str | None = None, **limits) -> Document:
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(path, source=path.name, limits=Limits(**limits))


def records(document: Document) -> list[list[str]]:
    assert document.rows is not None
    return [list(r) for r in document.rows.open()]


# ---------------------------------------------------------------- CSV


@pytest.mark.parametrize(
    ("name", "content", "header", "rows"),
    [
        ("a.csv", "name;price\nCafé;1.234,56\n".encode("cp1252"), ("name", "price"), [["Café", "1.234,56"]]),
        ("a.tsv", "a\tb\n1\t2\n", ("a", "b"), [["1", "2"]]),
        ("a.csv", "one\nx\ny\n", ("one",), [["x"], ["y"]]),
        ("a.csv", "\ufeffa,b\n1,2\n", ("a", "b"), [["1", "2"]]),
        ("a.csv", 'a,b\n"x\ny",2\n3,4\n', ("a", "b"), [["x\ny", "2"], ["3", "4"]]),
        ("a.csv", 'a,b\n"x ""q"" z",2\n', ("a", "b"), [['x "q" z', "2"]]),
        ("a.csv", "a,b\n1,2\0\n", ("a", "b"), [["1", "2"]]),
        ("a.csv", "a,a,\n1,2,3\n", ("a", "a_2", "column_3"), [["1", "2", "3"]]),
        ("a.csv", "Account,Routing\n0010,021000021\n", ("Account", "Routing"), [["0010", "021000021"]]),
        ("a.csv", "a,b\n", ("a", "b"), []),
        ("a.csv", "", (), []),
        ("a.csv", "a|b\n1|2\n3|4\n", ("a", "b"), [["1", "2"], ["3", "4"]]),
        ("a.csv", "a,b\n1,2\n".encode("utf-16"), ("a", "b"), [["1", "2"]]),
    ],
)
def test_tables(tmp_path: Path, name: str, content: bytes | str, header: tuple, rows: list) -> None:
    document = load(tmp_path / name, content)
    assert document.kind == "table"
    assert document.rows.header == header
    assert records(document) == rows


def test_ragged_records_keep_their_cells_and_are_named(tmp_path: Path) -> None:
    document = load(tmp_path / "a.csv", "a,b\n1,2,3,4\n5\n6,7\n")
    assert records(document) == [["1", "2", "3", "4"], ["5"], ["6", "7"]]
    text = " ".join(n.message for n in document.notices)
    assert "row 1" in text
    assert "row 2" in text


def test_a_cell_above_the_readers_usual_limit(tmp_path: Path) -> None:
    document = load(tmp_path / "a.csv", f"a,b\n{'x' * 140_000},2\n3,4\n")
    assert [len(r[0]) for r in records(document)] == [140_000, 1]


def test_the_dialect_and_encoding_are_said(tmp_path: Path) -> None:
    document = load(tmp_path / "a.csv", "name;price\nCafé;1\n".encode("cp1252"))
    assert document.encoding == "cp1252"
    assert "semicolon" in document.dialect


# ---------------------------------------------------------------- Markdown


def test_headings_are_real_ones_only(tmp_path: Path) -> None:
    text = "---\ntitle: T\ndate: 2024-05-06\ntags: [a, b]\n---\n# One\n\ntext\n\n```\n# no\n```\n\n    # no\n\n<!--\n# no\n-->\n\nTwo\n---\n\nmore\n"
    document = load(tmp_path / "a.md", text)
    assert [b.heading for b in document.blocks if b.role == "heading"] == [("One",), ("One", "Two")]
    assert (document.title, document.date, document.tags) == ("T", "2024-05-06", ("a", "b"))
    assert "# no" in document.text  # code stays


def test_wiki_links_are_readable(tmp_path: Path) -> None:
    assert load(tmp_path / "a.md", "See [[Page|the page]] and [[Other#Part]].").text == "See the page and Other > Part."


def test_a_table_has_its_header(tmp_path: Path) -> None:
    document = load(tmp_path / "a.md", "| a | b |\n|---|---|\n| 1 | 2 |\n")
    block = next(b for b in document.blocks if b.role == "table")
    assert document.text[block.start : block.header_end] == "| a | b |\n|---|---|\n"


def test_broken_front_matter_is_said(tmp_path: Path) -> None:
    document = load(tmp_path / "a.md", "---\na: [1\n---\ntext\n")
    assert any("front matter" in n.message for n in document.notices)
    assert "text" in document.text


# ---------------------------------------------------------------- PDF


def test_pages_are_counted_from_one() -> None:
    document = load(DATA / "headphone_manual.pdf")
    assert document.pages == 6
    assert {b.page for b in document.blocks} == {1, 2, 3, 4, 5, 6}
    charging = [document.text[b.start : b.end] for b in document.blocks if b.page == 3]
    assert any("2.5 hours" in t for t in charging)
    assert ("Charging",) in {b.heading for b in document.blocks}


def test_a_cut_pdf_is_reported(tmp_path: Path) -> None:
    whole = (DATA / "headphone_manual.pdf").read_bytes()
    with pytest.raises(ReadError, match="PDF"):
        load(tmp_path / "a.pdf", whole[:300])


def test_a_page_without_text_makes_the_file_partly_read(tmp_path: Path) -> None:
    from pypdf import PdfWriter

    writer = PdfWriter()
    writer.add_blank_page(100, 100)
    writer.write(tmp_path / "blank.pdf")
    document = load(tmp_path / "blank.pdf")
    assert [n.partial for n in document.notices] == [True]
    assert "page 1" in document.notices[0].message


@pytest.mark.parametrize(("password", "readable"), [("", True), ("secret", False)])
def test_encrypted_pdfs(tmp_path: Path, password: str, readable: bool) -> None:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(DATA / "price_notice_2025.pdf"))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="RC4-128")
    writer.write(tmp_path / "a.pdf")
    if readable:
        assert "Brightwell" in load(tmp_path / "a.pdf").text
    else:
        with pytest.raises(ReadError, match="password"):
            load(tmp_path / "a.pdf")


# ---------------------------------------------------------------- DOCX


def docx(path: Path, body: str, **parts: str) -> Path:
    rels = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
    main = '<Relationship Id="r1" Type="http://x/officeDocument" Target="word/main.xml"/>'
    links = "".join(f'<Relationship Id="{k}" Type="http://x/{k}" Target="{k}.xml"/>' for k in parts)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_rels/.rels", rels.format(main))
        archive.writestr("word/_rels/main.xml.rels", rels.format(links))
        archive.writestr("word/main.xml", f"<w:document {W}><w:body>{body}</w:body></w:document>")
        for name, text in parts.items():
            archive.writestr(f"word/{name}.xml", text)
    return path


def p(text: str, style: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}{text}</w:p>"


def r(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def test_tracked_changes_are_resolved_and_the_main_part_is_found(tmp_path: Path) -> None:
    body = p(r("Pay ") + f"<w:ins>{r('thirty')}</w:ins><w:del><w:r><w:delText>ten</w:delText></w:r></w:del>" + r(" days"))
    assert load(docx(tmp_path / "a.docx", body)).text == "Pay thirty days"


def test_headings_tables_lists_and_notes(tmp_path: Path) -> None:
    styles = f'<w:styles {W}><w:style w:styleId="H"><w:name w:val="heading 1"/></w:style></w:styles>'
    notes = f'<w:footnotes {W}><w:footnote w:id="2">{p(r("a note"))}</w:footnote></w:footnotes>'
    table = "".join(f"<w:tr>{''.join(f'<w:tc>{p(r(c))}</w:tc>' for c in row)}</w:tr>" for row in (("x", "y"), ("1", "2")))
    item = '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>item</w:t></w:r></w:p>'
    body = p(r("Title"), "H") + p(r("see") + '<w:r><w:footnoteReference w:id="2"/></w:r>') + f"<w:tbl>{table}</w:tbl>" + item
    document = load(docx(tmp_path / "a.docx", body, styles=styles, footnotes=notes))
    assert document.text == "Title\n\nsee\n\na note\n\nx | y\n1 | 2\n\n- item"
    assert {b.heading for b in document.blocks} == {("Title",)}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "old or encrypted"),
        (b"<html><body>x</body></html>", "web page"),
        (b"PK\x03\x04half", "damaged"),
    ],
)
def test_what_only_looks_like_a_docx(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(ReadError, match=reason):
        load(tmp_path / "a.docx", content)


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    docx(tmp_path / "a.docx", p(r("x" * 3_000_000)))
    with pytest.raises(ReadError, match="unpacks to"):
        load(tmp_path / "a.docx", max_unpacked_bytes=1_000_000)


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    docx(path, p(r("x")))
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET", encoding="utf-8")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "word/document.xml",
            f'<!DOCTYPE d [<!ENTITY e SYSTEM "{secret.as_uri()}">]><w:document {W}><w:body><w:p><w:r><w:t>a&e;</w:t></w:r></w:p></w:body></w:document>',
        )
    assert "SECRET" not in load(path).text


# ---------------------------------------------------------------- text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("déjà vu\n".encode(), "déjà vu"),
        ("déjà vu\n".encode("cp1252"), "déjà vu"),
        ("déjà vu\n".encode("utf-16"), "déjà vu"),
        ("plain text\n".encode("utf-16-le"), "plain text"),
        ("\ufeffx\r\n\r\ny".encode(), "x\n\ny"),
        (unicodedata.normalize("NFD", "déjà").encode(), "déjà"),
        (b"\n \n\n", ""),
        ("🔥".encode(), "🔥"),
        (b"", ""),
    ],
)
def test_encodings(tmp_path: Path, content: bytes, text: str) -> None:
    assert load(tmp_path / "a.txt", content).text == text


def test_a_file_above_the_limit_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="limit"):
        load(tmp_path / "a.txt", b"x" * 2000, max_bytes=1000)


# ---------------------------------------------------------------- scan


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    root = tmp_path / "data"
    (root / "sub").mkdir(parents=True)
    for name in ("A.CSV", "b.md", "._a.md", ".hidden.txt", "~$a.docx", "x.exe", "sub/c.txt", "sub/draft.txt"):
        (root / name).write_text("x", encoding="utf-8")
    (tmp_path / "out.txt").write_text("x", encoding="utf-8")
    os.symlink(tmp_path / "out.txt", root / "out.txt")
    os.symlink(root / "nowhere.txt", root / "broken.txt")
    os.symlink(root, root / "sub" / "loop")
    (root / ".hybridragignore").write_text("draft*\n", encoding="utf-8")
    found = scan(root)
    assert [f.source for f in found.files] == ["A.CSV", "b.md", "sub/c.txt"]
    reasons = {s.path: s.reason for s in found.skipped}
    assert {"._a.md", ".hidden.txt", "~$a.docx", "x.exe", "out.txt", "broken.txt", "sub/draft.txt", "sub/loop"} <= set(reasons)
    assert "out of the data folder" in reasons["out.txt"]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        scan(tmp_path / "none")


def test_a_path_outside_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not inside"):
        source_of(tmp_path / "data", tmp_path / "other" / "x.md")
