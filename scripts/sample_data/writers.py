"""Write Word and PDF files that have the same bytes each time: fixed times, fixed order, no random identifiers."""

from __future__ import annotations

import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from sample_data.papers import Page, Part

if TYPE_CHECKING:
    from docx.document import Document
    from fpdf import FPDF

STAMP = datetime(2025, 2, 3, 9, 0, tzinfo=UTC)
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/footnotes"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"


def write_docx(path: Path, parts: list[Part]) -> None:
    import docx

    document = docx.Document()
    properties = document.core_properties
    properties.created = properties.modified = STAMP.replace(tzinfo=None)
    properties.author = "Northwind Electronics"
    document.sections[0].footer.paragraphs[0].text = "Northwind Electronics, internal"
    notes: list[str] = []
    for kind, content in parts:
        _add(document, kind, content, notes)
    if notes:
        _add_footnotes(document, notes)
    document.save(str(path))
    _same_stamps(path)


def _add(document: Document, kind: str, content: Any, notes: list[str]) -> None:
    if kind == "title":
        document.core_properties.title = content
        document.add_heading(content, 0)
    elif kind == "heading":
        document.add_heading(content, 1)
    elif kind == "text":
        document.add_paragraph(content)
    elif kind == "list":
        for item in content:
            document.add_paragraph(item, style="List Bullet")
    elif kind == "table":
        _add_table(document, content)
    else:
        text, note = content
        notes.append(note)
        _refer(document.add_paragraph(text), len(notes))


def _add_table(document: Document, records: list[list[str]]) -> None:
    table = document.add_table(rows=0, cols=len(records[0]), style="Light Grid Accent 1")
    for record in records:
        for cell, text in zip(table.add_row().cells, record, strict=True):
            cell.text = text
    document.add_paragraph()


def _refer(paragraph: Any, number: int) -> None:
    """Put the mark of footnote ``number`` at the end of a paragraph."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    run = paragraph.add_run()
    run.font.superscript = True
    reference = OxmlElement("w:footnoteReference")
    reference.set(qn("w:id"), str(number))
    run._r.append(reference)


def _add_footnotes(document: Document, notes: list[str]) -> None:
    """Add the part that holds the footnotes' text, which python-docx does not write itself."""
    from docx.opc.packuri import PackURI
    from docx.opc.part import Part as PackagePart

    separators = "".join(
        f'<w:footnote w:type="{kind}" w:id="{number}"><w:p><w:r><w:{tag}/></w:r></w:p></w:footnote>'
        for number, kind, tag in ((-1, "separator", "separator"), (0, "continuationSeparator", "continuationSeparator"))
    )
    body = "".join(
        f'<w:footnote w:id="{number}"><w:p><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteRef/></w:r>'
        f'<w:r><w:t xml:space="preserve"> {escape(text)}</w:t></w:r></w:p></w:footnote>'
        for number, text in enumerate(notes, start=1)
    )
    xml = f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<w:footnotes xmlns:w="{_W}">{separators}{body}</w:footnotes>'
    part = PackagePart(PackURI("/word/footnotes.xml"), _TYPE, xml.encode("utf-8"), document.part.package)
    document.part.relate_to(part, _RELATION)


def _same_stamps(path: Path) -> None:
    """Write the archive again, in order of names and with fixed times."""
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in sorted(archive.namelist(), key=lambda n: (n != "[Content_Types].xml", n))]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name, STAMP.timetuple()[:6]), data, zipfile.ZIP_DEFLATED)


def write_pdf(path: Path, title: str, pages: list[Page]) -> None:
    pdf = _pdf(title)
    for heading, parts in pages:
        pdf.add_page()
        pdf.start_section(heading)
        pdf.set_font("Helvetica", "B", 16)
        pdf.multi_cell(0, 10, heading, new_x="LMARGIN", new_y="NEXT")
        pdf.set_font("Helvetica", "", 11)
        for part in parts:
            pdf.ln(3)
            if isinstance(part, str):
                pdf.multi_cell(0, 6, part, new_x="LMARGIN", new_y="NEXT")
            else:
                _pdf_table(pdf, part)
    pdf.output(str(path))


def _pdf(title: str) -> FPDF:
    from fpdf import FPDF

    class Paper(FPDF):
        def footer(self) -> None:
            self.set_y(-15)
            self.set_font("Helvetica", "I", 8)
            self.cell(0, 10, f"{title} - page {self.page_no()} of {{nb}}", align="C")

    pdf = Paper()
    pdf.set_compression(False)  # packing differs between zlib versions
    pdf.set_title(title)
    pdf.set_author("Northwind Electronics")
    pdf.set_creation_date(STAMP)
    return pdf


def _pdf_table(pdf: FPDF, records: list[list[str]]) -> None:
    with pdf.table(width=110, align="LEFT", text_align="LEFT") as table:
        for record in records:
            row = table.row()
            for text in record:
                row.cell(text)
