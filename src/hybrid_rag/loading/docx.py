"""DOCX by a walker over its XML: headings, lists, tables as rows, notes, text boxes, tracked changes resolved.

The main part is found through the package's relationships, so Strict OOXML and renamed parts are read too.
docx2txt is the second try, and said to be so.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import ReadError
from hybrid_rag.loading.body import Body, BodyBuilder
from hybrid_rag.loading.docx_package import MOST_LEVELS, Package, Style, attribute, child, name, small_int, value
from hybrid_rag.loading.docx_symbols import in_font, symbol

if TYPE_CHECKING:
    from hybrid_rag.loading import Limits

WIDEST_SPAN = 64  # columns that a merged cell is repeated over at most
_LEFT_OUT = frozenset(
    "del moveFrom pPr rPr tblPr tcPr trPr sectPr instrText delText delInstrText Fallback proofErr bookmarkStart bookmarkEnd "
    "commentRangeStart commentRangeEnd".split()
)
_OPENED = frozenset("sdt sdtContent ins moveTo customXml smartTag AlternateContent Choice subDoc".split())
_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": "", "ptab": "\t"}
_RAISED = str.maketrans("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")
_PAGE_NUMBER = re.compile(r"[\d\s/|.-]*")
_CLAUSE = re.compile(r"\W?\w+(?:\.\w+)+\W?")  # a number that places are cited by, 4.2; "1." and "a)" only count the items of a list
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes", "commentReference": "comments"}


def read(path: Path, limits: Limits) -> Body:
    """Read a DOCX. Raises ReadError with the reason when neither the walker nor docx2txt can."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _Walk(Package(archive, limits.max_unpacked_bytes)).body()
    except ReadError:
        raise
    except Exception as error:  # lxml, zipfile and zlib raise many kinds on damaged files
        return _second_try(path, error)


def _second_try(path: Path, first: Exception) -> Body:
    import docx2txt

    try:
        text = docx2txt.process(str(path))
    except Exception:  # the first reader's reason says more
        reason = " ".join(str(first).split())[:200] or type(first).__name__
        raise ReadError(f"The DOCX is damaged: {reason}.", "Open it in its program and save it again.") from first
    builder = BodyBuilder()
    for paragraph in re.split(r"\n\s*\n", text):
        builder.add(paragraph)
    builder.notice(
        "The file is damaged; its plain text was read without headings and tables.",
        "Open it in its program and save it again.",
        partial=True,
    )
    return builder.body()


class _Walk:
    """From the XML of a document to blocks."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._styles = package.styles()
        self._numbering = package.numbering()
        self._builder = BodyBuilder()
        self._found: list[str] = []  # texts of notes that the present paragraph or table refers to
        self._waiting: list[str] = []  # those of the present list, which they follow
        self._initial = ""  # a drop cap: the beginning of the next paragraph
        self._title_seen = 0  # 1 once a title stands above: headings then lie one level deeper
        self._notes: dict[str, dict[str, str]] = {}
        self._notes = {kind: self._note_texts(kind) for kind in _NOTES.values()}

    def body(self) -> Body:
        root = self._package.xml(self._package.main)
        if root is None:
            raise ReadError("The DOCX has no main document part.", "Open it in its program and save it again.")
        self._margins("header")
        found = child(root, "body")
        self._walk(root if found is None else found)
        self._margins("footer")
        properties = self._package.properties()
        kept = {
            key: properties[key] for key in ("creator", "subject", "keywords", "description", "created", "modified") if key in properties
        }
        return self._builder.body(title=properties.get("title", ""), metadata=kept)

    def _note_texts(self, kind: str) -> dict[str, str]:
        out = {}
        for root in self._package.parts(kind):
            for note in root:
                if name(note) and attribute(note, "type") in (None, "normal"):
                    text = " ".join(filter(None, (self._text(p).strip() for p in note.iter() if name(p) == "p")))
                    if text:
                        out[attribute(note, "id") or ""] = text
        return out

    def _margins(self, kind: str) -> None:
        """Headers or footers, each text once; bare page numbers are none."""
        seen: set[str] = set()
        for root in self._package.parts(kind):
            text = "\n".join(filter(None, (self._text(p).strip() for p in root.iter() if name(p) == "p")))
            if text not in seen and not _PAGE_NUMBER.fullmatch(text):
                seen.add(text)
                self._builder.add(text, role="margin")

    # ------------------------------------------------------------ blocks

    def _walk(self, parent: Any) -> None:
        items: list[str] = []
        for element in _resolved(parent):
            if name(element) == "p":
                self._paragraph(element, items)
            elif name(element) == "tbl":
                self._flush(items)
                self._table(element)
                self._add_notes(self._found)
        self._flush(items)

    def _flush(self, items: list[str]) -> None:
        """Add the list that ends here, and the notes that it refers to."""
        if items:
            self._builder.add("\n".join(items), role="list")
            items.clear()
        self._add_notes(self._waiting)

    def _add_notes(self, texts: list[str]) -> None:
        for text in texts:
            self._builder.add(text, role="note")
        texts.clear()

    def _paragraph(self, element: Any, items: list[str]) -> None:
        text = self._text(element).strip("\n")
        style, level, number, drop_cap = self._properties(element)
        if drop_cap:
            self._initial += text.strip()
        elif text.strip():
            self._say(self._initial + text, style, level, number, items)
            self._initial = ""
        for box in _boxes(element):
            self._flush(items)
            self._walk(box)

    def _say(self, text: str, style: Style, level: int, number: tuple[str, int] | None, items: list[str]) -> None:
        label = self._numbering.next(*number) if number else ""
        if number and not level and not style.title:
            items.append(f"{'  ' * number[1]}{label if _CLAUSE.fullmatch(label) else '-'} {text.strip()}")
            self._waiting += self._found
            self._found.clear()
            return
        self._flush(items)
        if style.title or level:
            self._title_seen = self._title_seen or int(style.title)
            self._builder.heading(f"{label} {text}".strip(), 1 if style.title else level + self._title_seen)
        else:
            self._builder.add(text)
        self._add_notes(self._found)

    def _properties(self, paragraph: Any) -> tuple[Style, int, tuple[str, int] | None, bool]:
        """(style, heading level or 0, (list, level) or None, whether it is a drop cap)."""
        properties = child(paragraph, "pPr")
        if properties is None:
            return Style(), 0, None, False
        style = self._styles.get(value(properties, "pStyle") or "", Style())
        outline = value(properties, "outlineLvl")
        level = small_int(outline, MOST_LEVELS, MOST_LEVELS) + 1 if outline else style.level
        number = style.number
        numbered = child(properties, "numPr")
        if numbered is not None:
            number = (value(numbered, "numId") or (number[0] if number else ""), small_int(value(numbered, "ilvl"), 0, MOST_LEVELS - 1))
        frame = child(properties, "framePr")
        drop_cap = frame is not None and attribute(frame, "dropCap") in ("drop", "margin")
        return style, level if level <= MOST_LEVELS else 0, number if number and number[0] not in ("", "0") else None, drop_cap

    # ------------------------------------------------------------ tables

    def _table(self, element: Any) -> None:
        rows: list[list[str]] = []
        heads = _header_rows([row for row in _resolved(element) if name(row) == "tr"])
        for at, row in enumerate(row for row in _resolved(element) if name(row) == "tr"):
            cells = self._row(row, rows[-1] if rows else [])
            if at and at < heads and rows:
                rows[-1] = _joined(rows[-1], cells)
            elif any(cell.strip() for cell in cells):
                rows.append(cells)
        lines = [" | ".join(row) for row in rows]
        if len(rows) < 2 or max(map(len, rows)) < 2:
            self._builder.add("\n".join(lines))
        else:
            self._builder.add("\n".join(lines), role="table", header=lines[0] + "\n")

    def _row(self, row: Any, above: list[str]) -> list[str]:
        """Cells as text; what spans columns or rows is repeated, so that each row can be read by itself."""
        out: list[str] = []
        for cell in _resolved(row):
            if name(cell) != "tc":
                continue
            properties = child(cell, "tcPr")
            merge = child(properties, "vMerge") if properties is not None else None
            span = small_int(value(properties, "gridSpan"), 1, WIDEST_SPAN) if properties is not None else 1
            if merge is not None and attribute(merge, "val") in (None, "continue"):
                text = above[len(out)] if len(out) < len(above) else ""
            else:
                text = " ".join(self._cell_texts(cell))
            out.extend([text] * max(1, span))
        return out

    def _cell_texts(self, cell: Any) -> Iterator[str]:
        for element in _resolved(cell):
            if name(element) == "p":
                if text := " ".join(self._text(element).split()):
                    yield text
                for box in _boxes(element):
                    yield from self._cell_texts(box)
            elif name(element) == "tbl":
                yield "; ".join(", ".join(self._row(row, [])) for row in _resolved(element) if name(row) == "tr")

    # ------------------------------------------------------------ text

    def _text(self, paragraph: Any) -> str:
        """The text of a paragraph: insertions in, deletions and text boxes out; its notes wait to follow it."""
        out: list[str] = []
        stack = [iter(paragraph)]
        while stack:
            element = next(stack[-1], None)
            if element is None:
                stack.pop()
                continue
            kind = name(element)
            if not kind or kind in _LEFT_OUT or kind in ("txbxContent", "p"):
                continue
            if kind == "t":
                text = in_font(element.text or "", element.getparent())
                out.append(text.translate(_RAISED) if _raised(element) else text)
            elif kind == "sym":
                out.append(symbol(element))
            elif kind in ("checkBox", "ddList"):
                out.append(_form_field(element))
            elif kind in _CHARACTERS:
                out.append(_CHARACTERS[kind])
            elif kind in _NOTES:
                note = self._notes.get(_NOTES[kind], {}).get(attribute(element, "id") or "")
                self._found.extend([note] if note and note not in self._found else ())
            else:
                if kind == "docPr" and (described := attribute(element, "descr")):
                    out.append(f" {described} ")
                stack.append(iter(element))
        return "".join(out)


def _resolved(parent: Any) -> Iterator[Any]:
    """Children, with content controls, insertions, custom XML and the like opened, and deletions left out."""
    for element in parent:
        kind = name(element)
        if kind in _OPENED:
            yield from _resolved(element)
        elif kind and kind not in _LEFT_OUT:
            yield element


def _header_rows(rows: list[Any]) -> int:
    """How many of the first rows are the header: those that Word repeats on each page, else the two of a header in two
    levels, where every name of the first row either spans columns or goes on in the second."""
    marked = 0
    for row in rows[:-1]:
        properties = child(row, "trPr")
        if properties is None or child(properties, "tblHeader") is None:
            break
        marked += 1
    if marked or len(rows) < 3:
        return max(1, marked)
    cells = [child(cell, "tcPr") for cell in _resolved(rows[0]) if name(cell) == "tc"]
    spans = [cell is not None and small_int(value(cell, "gridSpan"), 1, WIDEST_SPAN) > 1 for cell in cells]
    down = [cell is not None and value(cell, "vMerge") == "restart" for cell in cells]
    return 2 if any(spans) and any(down) and all(a or b for a, b in zip(spans, down, strict=True)) else 1


def _joined(above: list[str], below: list[str]) -> list[str]:
    """Names of columns in two levels as one: "Price" over "net" is "Price / net"."""
    pairs = zip_longest(above, below, fillvalue="")
    return [
        upper if lower in ("", upper) or upper.endswith(f" / {lower}") else f"{upper} / {lower}".removeprefix(" / ")
        for upper, lower in pairs
    ]


def _boxes(paragraph: Any) -> Iterator[Any]:
    """Text boxes anchored in a paragraph, each once (the fallback drawing repeats them)."""
    stack = list(paragraph)[::-1]
    while stack:
        element = stack.pop()
        kind = name(element)
        if kind == "txbxContent":
            yield element
        elif kind and kind not in ("Fallback", "del", "moveFrom"):
            stack.extend(list(element)[::-1])


def _raised(text: Any) -> bool:
    """Whether a text is superscript digits: 10² is not 102."""
    run = text.getparent()
    properties = child(run, "rPr") if run is not None else None
    if properties is None or value(properties, "vertAlign") != "superscript":
        return False
    return bool(text.text) and all(char in "0123456789+-" for char in text.text)


def _form_field(element: Any) -> str:
    """What an old form field shows: a ticked or empty box, or the chosen entry of a list."""
    if name(element) == "checkBox":
        found = child(element, "checked")
        found = child(element, "default") if found is None else found
        return "☒" if found is not None and attribute(found, "val") not in ("0", "false", "off") else "☐"
    entries = [attribute(e, "val") or "" for e in element if name(e) == "listEntry"]
    chosen = small_int(value(element, "result") or value(element, "default"), 0, len(entries))
    return entries[chosen] if chosen < len(entries) else ""
