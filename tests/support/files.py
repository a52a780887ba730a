"""Small PDF and DOCX files made by hand, so that tests say exactly what is in them."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

TRANSITIONAL = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/wordprocessingml/main"
W = f'xmlns:w="{TRANSITIONAL}"'


def pdf(
    path: Path, pages: Sequence[str], *, labels: str = "", outline: Sequence[tuple[str, int]] = (), title: str = "", field: str = ""
) -> Path:
    """A PDF with the lines of each text on a page. ``labels``: a page label dictionary; ``outline``: (title, page from 0);
    ``field``: the value of a form field named Customer on the first page."""
    objects: list[str] = ["", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"]
    kids = []
    for text in pages:
        lines = [line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") for line in text.split("\n")]
        content = "BT /F1 11 Tf 14 TL 50 780 Td " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
        objects.append(f"<</Length {len(content.encode('cp1252'))}>>stream\n{content}\nendstream")
        annotations = "/Annots[__FIELD__]" if field and not kids else ""
        objects.append(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F1 3 0 R>>>>/Contents {len(objects)} 0 R{annotations}>>"
        )
        kids.append(len(objects))
    catalog = "/Pages 2 0 R" + (f"/PageLabels<</Nums[{labels}]>>" if labels else "")
    objects[1] = f"<</Type/Pages/Kids[{' '.join(f'{k} 0 R' for k in kids)}]/Count {len(kids)}>>"
    if outline:
        catalog += f"/Outlines {len(objects) + 1} 0 R"
        first = len(objects) + 2
        objects.append(f"<</Count {len(outline)}/First {first} 0 R/Last {first + len(outline) - 1} 0 R>>")
        for i, (name, page) in enumerate(outline):
            following = f"/Next {first + i + 1} 0 R" if i + 1 < len(outline) else ""
            objects.append(f"<</Title({name})/Parent {first - 1} 0 R/Dest[{kids[page]} 0 R/Fit]{following}>>")
    if field:
        objects.append(f"<</Type/Annot/Subtype/Widget/FT/Tx/T(Customer)/V({field})/Rect[50 50 200 70]/F 4/P {kids[0]} 0 R>>")
        catalog += f"/AcroForm<</Fields[{len(objects)} 0 R]>>"
        objects[kids[0] - 1] = objects[kids[0] - 1].replace("__FIELD__", f"{len(objects)} 0 R")
    objects.append(f"<</Title({title})>>")
    objects[0] = f"<</Type/Catalog{catalog}>>"
    return _write(path, objects)


def _write(path: Path, objects: Sequence[str]) -> Path:
    out = b"%PDF-1.7\n"
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n".encode("cp1252")
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    trailer = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Size {size}/Root 1 0 R/Info {size - 1} 0 R>>\nstartxref\n{len(out)}\n%%EOF\n"
    path.write_bytes(out + trailer.encode())
    return path


def docx(path: Path, body: str, *, strict: bool = False, main: str = "word/main.xml", **parts: str) -> Path:
    """A DOCX around the XML of a body; ``parts`` are further parts (styles, footnotes, header …) by kind."""
    rels = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
    link = f'<Relationship Id="r1" Type="http://x/officeDocument" Target="{main}"/>'
    links = "".join(f'<Relationship Id="{k}" Type="http://x/{k.rstrip("0123456789")}" Target="{k}.xml"/>' for k in parts)
    folder, _, name = main.rpartition("/")
    prefix = f"{folder}/" if folder else ""
    content = {
        "_rels/.rels": rels.format(link),
        f"{prefix}_rels/{name}.rels": rels.format(links),
        main: f"<w:document {W}><w:body>{body}</w:body></w:document>",
        **{f"{prefix}{kind}.xml": text for kind, text in parts.items()},
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, text in content.items():
            archive.writestr(part, text.replace(TRANSITIONAL, STRICT) if strict else text)
    return path


def r(text: str, properties: str = "") -> str:
    """A run of text."""
    return f"<w:r>{f'<w:rPr>{properties}</w:rPr>' if properties else ''}<w:t xml:space='preserve'>{escape(text)}</w:t></w:r>"


def p(content: str, style: str = "", *, number: tuple[int, int] | None = None) -> str:
    """A paragraph; ``number``: (list, level)."""
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    if number:
        properties += f'<w:numPr><w:ilvl w:val="{number[1]}"/><w:numId w:val="{number[0]}"/></w:numPr>'
    return f"<w:p>{f'<w:pPr>{properties}</w:pPr>' if properties else ''}{content}</w:p>"


def table(*rows: Sequence[str]) -> str:
    lines = ["".join(f"<w:tc>{p(r(cell))}</w:tc>" for cell in row) for row in rows]
    return f"<w:tbl>{''.join(f'<w:tr>{line}</w:tr>' for line in lines)}</w:tbl>"
