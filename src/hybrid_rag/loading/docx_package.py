"""The parts of a DOCX: relationships, styles, numbering and notes. XML is parsed without entities, network or DTDs."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hybrid_rag.errors import ReadError
from hybrid_rag.records import megabytes

MOST_LEVELS = 9  # of headings and of lists
_HEADING = re.compile(
    r"^(?:heading|überschrift|titre|título|titolo|rubrik|kop|otsikko|nagłówek|заголовок|overskrift|nadpis|címsor|başlık)\s*(\d)$",
    re.IGNORECASE,
)
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip


def name(element: Any) -> str:
    """The tag without its namespace (Strict and Transitional differ only there); "" for comments."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Any, wanted: str) -> str | None:
    """An attribute whatever its namespace."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == wanted:
            return value
    return None


def child(element: Any, wanted: str) -> Any:
    """The first child with this name, or None."""
    return next((e for e in element if name(e) == wanted), None)


def value(element: Any, wanted: str) -> str | None:
    """``val`` of the child with this name."""
    found = child(element, wanted)
    return None if found is None else attribute(found, "val")


def small_int(text: str | None, default: int, most: int) -> int:
    """A number from the file, kept between 0 and ``most``."""
    return min(int(text), most) if text and text.isdecimal() and len(text) < 9 else default


@dataclass(frozen=True, slots=True)
class Style:
    """What a paragraph style says, with what it inherits. ``level``: of a heading, 0 for others."""

    level: int = 0
    title: bool = False
    number: tuple[str, int] | None = None  # (numId, level)


@dataclass(slots=True)
class _Level:
    form: str = "decimal"
    text: str = ""
    start: int = 1


@dataclass(slots=True)
class Numbering:
    """List and clause numbers as Word shows them; ``next`` counts."""

    lists: dict[str, tuple[str, dict[int, _Level]]] = field(default_factory=dict)  # numId -> (abstract id, levels)
    _counts: dict[str, list[int]] = field(default_factory=dict)

    def next(self, number: str, level: int) -> str:
        """The label of the next paragraph of a list: "4.2", "b)", or "" for a bullet or an unknown list."""
        abstract, levels = self.lists.get(number, ("", {}))
        here = levels.get(level)
        if here is None:
            return ""
        counts = self._counts.setdefault(abstract, [])
        while len(counts) <= level:
            above = levels.get(len(counts))
            counts.append((above.start if above else 1) - 1)
        counts[level] += 1
        del counts[level + 1 :]
        for i in range(level):  # a level that was never counted shows its start
            counts[i] = max(counts[i], levels[i].start if i in levels else 1)
        if here.form in ("bullet", "none"):
            return ""
        return re.sub(r"%(\d)", lambda m: self._label(levels, counts, int(m[1]) - 1), here.text).strip()

    @staticmethod
    def _label(levels: dict[int, _Level], counts: list[int], level: int) -> str:
        if not 0 <= level < len(counts):
            return ""
        form = levels[level].form if level in levels else "decimal"
        return _formatted(counts[level], form)


class Package:
    """One DOCX. Raises ReadError when it would unpack to more than ``most_bytes``."""

    def __init__(self, archive: zipfile.ZipFile, most_bytes: int) -> None:
        self._archive = archive
        total = sum(info.file_size for info in archive.infolist())
        if total > most_bytes:
            raise ReadError(
                f"The DOCX unpacks to {megabytes(total)} MB, more than the limit of {megabytes(most_bytes)} MB.",
                "Raise document_processing.max_unpacked_mb if you trust it.",
            )
        self._names = {entry.replace("\\", "/").lower().lstrip("/"): entry for entry in archive.namelist()}
        package = self.relations("")
        self.main = next((target for kind, target in package.values() if kind == "officeDocument"), "word/document.xml")
        self._core = next((target for kind, target in package.values() if kind == "core-properties"), "docProps/core.xml")
        self._related = self.relations(self.main)

    def xml(self, part: str) -> Any:
        """The root of a part, or None when it is not there. Raises lxml's errors for broken XML."""
        from lxml import etree

        actual = self._names.get(part.lower().lstrip("/"))
        if actual is None:
            return None
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, recover=False)
        return etree.fromstring(self._archive.read(actual), parser)

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """id -> (kind, target part) of a part's relationships; external ones are left out."""
        folder, file = posixpath.split(part)
        root = self.xml(posixpath.join(folder, "_rels", f"{file}.rels"))
        out = {}
        for relation in root if root is not None else ():
            if not isinstance(relation.tag, str) or relation.get("TargetMode") == "External":
                continue
            target = relation.get("Target") or ""
            target = target.lstrip("/") if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            out[relation.get("Id") or ""] = ((relation.get("Type") or "").rpartition("/")[2], target)
        return out

    def parts(self, kind: str) -> Iterator[Any]:
        """Roots of the parts that the main part relates to by ``kind``, each once, in the order of their names."""
        for target in sorted({target for k, target in self._related.values() if k == kind}):
            if (root := self.xml(target)) is not None:
                yield root

    def properties(self) -> dict[str, str]:
        """Core properties (title, creator, created …) that are filled."""
        root = self.xml(self._core)
        return {name(e): e.text.strip() for e in root if name(e) and e.text and e.text.strip()} if root is not None else {}

    def styles(self) -> dict[str, Style]:
        """Paragraph styles by id, inheritance through basedOn resolved."""
        own: dict[str, Style] = {}
        parents: dict[str, str] = {}
        for root in self.parts("styles"):
            for style in root:
                if name(style) == "style":
                    sid = attribute(style, "styleId") or ""
                    own[sid] = _style(style)
                    parents[sid] = value(style, "basedOn") or ""
        return {sid: _inherited(sid, own, parents) for sid in own}

    def numbering(self) -> Numbering:
        abstract: dict[str, dict[int, _Level]] = {}
        out = Numbering()
        for root in self.parts("numbering"):
            for element in root:
                if name(element) == "abstractNum":
                    abstract[attribute(element, "abstractNumId") or ""] = _levels(element)
            for element in root:
                if name(element) == "num":
                    aid = value(element, "abstractNumId") or ""
                    restarted = any(value(e, "startOverride") is not None for e in element if name(e) == "lvlOverride")
                    number = attribute(element, "numId") or ""
                    out.lists[number] = (number if restarted else aid, abstract.get(aid, {}))
        return out


def _style(style: Any) -> Style:
    label = (value(style, "name") or "").strip()
    properties = child(style, "pPr")
    outline = value(properties, "outlineLvl") if properties is not None else None
    numbered = child(properties, "numPr") if properties is not None else None
    number = (value(numbered, "numId") or "", small_int(value(numbered, "ilvl"), 0, MOST_LEVELS - 1)) if numbered is not None else None
    match = _HEADING.match(label)
    level = int(match[1]) if match else small_int(outline, MOST_LEVELS, MOST_LEVELS) + 1 if outline else 0
    return Style(level=level if level <= MOST_LEVELS else 0, title=label.lower() == "title", number=number)


def _inherited(sid: str, own: dict[str, Style], parents: dict[str, str]) -> Style:
    chain = []
    while sid in own and len(chain) < 20:
        chain.append(own[sid])
        sid = parents[sid]
    return Style(
        level=next((style.level for style in chain if style.level), 0),
        title=chain[0].title,
        number=next((style.number for style in chain if style.number), None),
    )


def _levels(abstract: Any) -> dict[int, _Level]:
    out = {}
    for element in abstract:
        if name(element) == "lvl":
            at = small_int(attribute(element, "ilvl"), 0, MOST_LEVELS - 1)
            out[at] = _Level(
                value(element, "numFmt") or "decimal", value(element, "lvlText") or "", small_int(value(element, "start"), 1, 9999)
            )
    return out


def _formatted(number: int, form: str) -> str:
    if form in ("lowerLetter", "upperLetter") and number > 0:
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif form in ("lowerRoman", "upperRoman") and 0 < number < 4000:
        text, rest = "", number
        for size, letters in _ROMAN:
            text, rest = text + letters * (rest // size), rest % size
    else:
        return f"{number:02d}" if form == "decimalZero" else str(number)
    return text.upper() if form.startswith("upper") else text
