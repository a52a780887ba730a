"""DOCX by a walker over its XML: headings, lists, tables as rows, notes, text boxes, tracked changes resolved.

The main part is found through the package's relationships, so Strict OOXML and renamed parts are read too. XML is
parsed without entities, network or DTDs. docx2txt is the second try, and said to be so.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import ReadError
from hybrid_rag.loading.body import Body, BodyBuilder

if TYPE_CHECKING:
    from hybrid_rag.loading import Limits

_SKIPPED = frozenset(
    {
        "del",
        "moveFrom",
        "pPr",
        "rPr",
        "tblPr",
        "tcPr",
        "trPr",
        "sectPr",
        "instrText",
        "delText",
        "delInstrText",
        "Fallback",
        "proofErr",
        "bookmarkStart",
        "bookmarkEnd",
        "commentRangeStart",
        "commentRangeEnd",
    }
)
_HEADING = re.compile(r"^(?:heading|überschrift|titre|título|titolo|rubrik|kop|otsikko|nagłówek|заголовок)\s*(\d)$", re.IGNORECASE)
_BREAKS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": "", "ptab": "\t"}


def read(path: Path, limits: Limits) -> Body:
    """Read a DOCX. Raises ReadError with the reason when neither the walker nor docx2txt can."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _Package(archive, limits).body()
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


class _Package:
    """One DOCX: its parts, styles and relationships."""

    def __init__(self, archive: zipfile.ZipFile, limits: Limits) -> None:
        self._archive = archive
        total = sum(info.file_size for info in archive.infolist())
        if total > limits.max_unpacked_bytes:
            raise ReadError(
                f"The DOCX unpacks to {total / 1e6:,.0f} MB, more than the limit of {limits.max_unpacked_bytes / 1e6:,.0f} MB.",
                "Raise document_processing.max_unpacked_mb if you trust it.",
            )
        self._names = {name.lower().lstrip("/"): name for name in archive.namelist()}
        self._main = next((target for kind, target in self._relations("").values() if kind == "officeDocument"), "word/document.xml")
        self._related = self._relations(self._main)
        self._headings, self._title_styles = self._styles()
        self._notes = {kind: self._note_texts(kind) for kind in ("footnotes", "endnotes")}
        self._builder = BodyBuilder()
        self._title_seen = 0  # 1 once a title stands above: headings then lie one level deeper

    def body(self) -> Body:
        root = self._xml(self._main)
        if root is None:
            raise ReadError("The DOCX has no main document part.", "Open it in its program and save it again.")
        self._margins("header")
        body = next((e for e in root if _name(e) == "body"), root)
        self._walk(body)
        for kind in ("footnotes", "endnotes"):
            for number, text in self._notes[kind].items():
                self._builder.add(f"[{number}] {text}", role="note")
        for text in self._note_texts("comments").values():
            self._builder.add(f"Comment: {text}", role="note")
        self._margins("footer")
        title, date = self._core()
        return self._builder.body(title=title, metadata={"created": date} if date else {})

    # ------------------------------------------------------------ parts

    def _xml(self, name: str) -> Any:
        """The parsed part, or None when it is not there."""
        from lxml import etree

        actual = self._names.get(name.lower().lstrip("/"))
        if actual is None:
            return None
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, recover=False)
        return etree.fromstring(self._archive.read(actual), parser)

    def _relations(self, part: str) -> dict[str, tuple[str, str]]:
        """id -> (kind, target part) of a part's relationships; external ones are left out."""
        folder, name = posixpath.split(part)
        root = self._xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        out = {}
        for relation in root if root is not None else ():
            if not isinstance(relation.tag, str) or relation.get("TargetMode") == "External":
                continue
            target = relation.get("Target") or ""
            target = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            out[relation.get("Id") or ""] = ((relation.get("Type") or "").rpartition("/")[2], target)
        return out

    def _part(self, kind: str) -> Any:
        name = next((target for k, target in self._related.values() if k == kind), None)
        return self._xml(name) if name else None

    def _styles(self) -> tuple[dict[str, int], set[str]]:
        """Heading level by style id (inherited through basedOn), and the ids of title styles."""
        root = self._part("styles")
        levels: dict[str, int] = {}
        titles: set[str] = set()
        parents: dict[str, str] = {}
        for style in root if root is not None else ():
            if not isinstance(style.tag, str) or _name(style) != "style":
                continue
            sid = _attribute(style, "styleId") or ""
            label = next((_attribute(e, "val") or "" for e in style if _name(e) == "name"), "")
            parents[sid] = next((_attribute(e, "val") or "" for e in style if _name(e) == "basedOn"), "")
            outline = next((_attribute(e, "val") for e in style.iter() if _name(e) == "outlineLvl"), None)
            if match := _HEADING.match(label):
                levels[sid] = int(match[1])
            elif outline is not None and outline.isdigit() and int(outline) < 9:
                levels[sid] = int(outline) + 1
            elif label.lower() == "title":
                titles.add(sid)
        for sid in parents:
            up, steps = parents[sid], 0
            while sid not in levels and up and steps < 20:
                if up in levels:
                    levels[sid] = levels[up]
                up, steps = parents.get(up, ""), steps + 1
        return levels, titles

    def _note_texts(self, kind: str) -> dict[str, str]:
        root = self._part(kind)
        out = {}
        for note in root if root is not None else ():
            if isinstance(note.tag, str) and _attribute(note, "type") in (None, "normal"):
                text = " ".join(filter(None, (self._text(p) for p in note.iter() if _name(p) == "p")))
                if text.strip():
                    out[_attribute(note, "id") or ""] = text.strip()
        return out

    def _core(self) -> tuple[str, str]:
        root = None
        for kind, target in self._relations("").values():
            if kind == "core-properties":
                root = self._xml(target)
        found = {_name(e): (e.text or "").strip() for e in root if isinstance(e.tag, str)} if root is not None else {}
        return found.get("title", ""), found.get("created", "")[:10]

    def _margins(self, kind: str) -> None:
        """Headers or footers, each text once."""
        seen: set[str] = set()
        for relation, target in self._related.values():
            if relation == kind and (root := self._xml(target)) is not None:
                text = "\n".join(filter(None, (self._text(p).strip() for p in root.iter() if _name(p) == "p")))
                if text and text not in seen and not re.fullmatch(r"[\d\s/|-]*", text):
                    seen.add(text)
                    self._builder.add(text, role="note")

    # ------------------------------------------------------------ walking

    def _walk(self, parent: Any) -> None:
        items: list[str] = []
        for element in _resolved(parent):
            name = _name(element)
            if name == "p":
                self._paragraph(element, items)
            elif name == "tbl":
                self._flush(items)
                self._table(element)
        self._flush(items)

    def _flush(self, items: list[str]) -> None:
        if items:
            self._builder.add("\n".join(items), role="list")
            items.clear()

    def _paragraph(self, element: Any, items: list[str]) -> None:
        text = self._text(element).strip("\n")
        style, outline, depth = _paragraph_properties(element)
        level = self._headings.get(style, int(outline) + 1 if outline and outline.isdigit() and int(outline) < 9 else 0)
        if text.strip():
            if style in self._title_styles:
                self._flush(items)
                self._builder.heading(text, 1)
                self._title_seen = 1
            elif level:
                self._flush(items)
                self._builder.heading(text, level + self._title_seen)
            elif depth is not None:
                items.append(f"{'  ' * depth}- {text.strip()}")
            else:
                self._flush(items)
                self._builder.add(text)
        for box in _boxes(element):
            self._flush(items)
            self._walk(box)

    def _table(self, element: Any) -> None:
        rows = [row for row in (self._row(r) for r in _resolved(element) if _name(r) == "tr") if any(cell.strip() for cell in row)]
        if not rows:
            return
        if len(rows) == 1 or len(rows[0]) == 1:
            self._builder.add("\n".join(" | ".join(row) for row in rows))
            return
        lines = [" | ".join(row) for row in rows]
        self._builder.add("\n".join(lines), role="table", header=lines[0] + "\n")

    def _row(self, element: Any) -> list[str]:
        """Cells as text; a cell that spans columns is repeated, one merged upward stays empty."""
        out: list[str] = []
        for cell in _resolved(element):
            if _name(cell) != "tc":
                continue
            span, merged = _cell_properties(cell)
            text = "" if merged else " ".join(self._cell_texts(cell))
            out.extend([text] * min(span, 64))
        return out

    def _cell_texts(self, cell: Any) -> Iterator[str]:
        for element in _resolved(cell):
            if _name(element) == "p":
                text = " ".join(self._text(element).split())
                if text:
                    yield text
                for box in _boxes(element):
                    yield from self._cell_texts(box)
            elif _name(element) == "tbl":
                for row in _resolved(element):
                    if _name(row) == "tr":
                        yield " | ".join(self._row(row))

    def _text(self, paragraph: Any) -> str:
        """The text of a paragraph: insertions in, deletions and text boxes out, notes by their number."""
        out: list[str] = []
        stack = [iter(paragraph)]
        while stack:
            element = next(stack[-1], None)
            if element is None:
                stack.pop()
                continue
            if not isinstance(element.tag, str):
                continue
            name = _name(element)
            if name in _SKIPPED or name == "txbxContent":
                continue
            if name == "docPr" and _attribute(element, "descr"):
                out.append(f" {_attribute(element, 'descr')} ")
            if name in ("t", "sym"):
                out.append(element.text or "" if name == "t" else _symbol(element))
            elif name in _BREAKS:
                out.append(_BREAKS[name])
            elif name in ("footnoteReference", "endnoteReference"):
                out.append(f"[{_attribute(element, 'id')}]")
            elif name == "p":
                continue
            else:
                stack.append(iter(element))
        return "".join(out)


def _resolved(parent: Any) -> Iterator[Any]:
    """Children, with content controls, insertions, custom XML and the like opened, and deletions left out."""
    for element in parent:
        if not isinstance(element.tag, str):
            continue
        name = _name(element)
        if name in ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag", "AlternateContent", "Choice", "subDoc"):
            yield from _resolved(element)
        elif name not in _SKIPPED:
            yield element


def _boxes(paragraph: Any) -> Iterator[Any]:
    """Text boxes anchored in a paragraph, each once (the fallback drawing repeats them)."""
    stack = list(paragraph)[::-1]
    while stack:
        element = stack.pop()
        if not isinstance(element.tag, str) or _name(element) in ("Fallback", "del", "moveFrom"):
            continue
        if _name(element) == "txbxContent":
            yield element
        else:
            stack.extend(list(element)[::-1])


def _paragraph_properties(paragraph: Any) -> tuple[str, str | None, int | None]:
    """(style id, outline level, list depth)."""
    style, outline, depth = "", None, None
    for properties in paragraph:
        if isinstance(properties.tag, str) and _name(properties) == "pPr":
            for e in properties:
                name = _name(e) if isinstance(e.tag, str) else ""
                if name == "pStyle":
                    style = _attribute(e, "val") or ""
                elif name == "outlineLvl":
                    outline = _attribute(e, "val")
                elif name == "numPr":
                    values = {_name(x): _attribute(x, "val") or "" for x in e if isinstance(x.tag, str)}
                    if values.get("numId", "0") != "0":
                        level = values.get("ilvl", "0")
                        depth = min(int(level), 8) if level.isdigit() else 0
    return style, outline, depth


def _cell_properties(cell: Any) -> tuple[int, bool]:
    span, merged = 1, False
    for properties in cell:
        if isinstance(properties.tag, str) and _name(properties) == "tcPr":
            for e in properties:
                if isinstance(e.tag, str) and _name(e) == "gridSpan":
                    value = _attribute(e, "val") or "1"
                    span = int(value) if value.isdigit() else 1
                elif isinstance(e.tag, str) and _name(e) == "vMerge":
                    merged = _attribute(e, "val") in (None, "continue")
    return max(1, span), merged


def _symbol(element: Any) -> str:
    code = _attribute(element, "char") or ""
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    return "" if 0xF000 <= number <= 0xF0FF or not 0x20 <= number <= 0xD7FF else chr(number)


def _name(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _attribute(element: Any, name: str) -> str | None:
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return value
    return None
