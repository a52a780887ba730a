"""Text to sentences, as spans; list items, table rows and lines of a record are sentences too."""

from __future__ import annotations

import re

_END = re.compile(r"(?<=[.!?…])([\"'”’)\]*_]*)\s+(?=[\"'“‘(\[*_]*[A-Z0-9À-ÖØ-ÞА-ЯΑ-Ω])|(?<=[。！？])")
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|dr|mr|mrs|ms|prof|st|no|nr|fig|eq|inc|ltd|co|jr|sr|u\.s|dept|est|vol|pp?|bzw|(?-i:ca)|evtl|ggf|inkl|zzgl|d\.h|z\.\s?b|u\.\s?a|nº|núm|sra)\.|\b[A-Z]\.)$",
    re.IGNORECASE,
)
# German counts with a full stop: "am 31. März", "im 2. Quartal", "Der 3. Antrag"; a number at a sentence's end has no such word before it
_ORDINAL = re.compile(
    r"(?:\b(?:der|die|das|den|dem|des|(?<!\bI )am|vom|zum|zur|im|ab|bis|seit|nach|vor|jede[rsmn]?|ein(?:e[rsmn]?)?|und|sowie|oder) \d{1,2}\.|\b\d{1,2}\. \d{1,2}\.)$",
    re.IGNORECASE,
)
_MONTH = re.compile(
    r"\s+(?:Jan(?:uar|\.)|Jänner|Feb(?:ruar|\.)|März|Apr(?:il|\.)|Mai|Jun[io]|Jul[io]|Aug(?:ust|\.)|Sept?(?:ember|\.)|Okt(?:ober|\.)|Nov(?:ember|\.)|Dez(?:ember|\.))(?!\w)"
)
_DAY = re.compile(r"(?<!\d)\d{1,2}\.$")
_ITEM = re.compile(r"^\s*(?:[-*+•|]|\d+[.)]|#{1,6}\s)")
_RECORD = re.compile(r"^[^:\n]{1,60}: \S")


def split(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences of a text, in order, without surrounding white space.

    A line break ends a sentence before and after list items, table rows and "name: value" lines, and at blank lines;
    elsewhere it is part of a wrapped sentence.
    """
    out: list[tuple[int, int]] = []
    for start, end in _paragraphs(text):
        at = start
        for match in _END.finditer(text, start, end):
            if text[match.start() - 1 : match.start()] == "." and _goes_on(text, at, match.start()):
                continue
            _add(text, at, match.end(1) if match[1] is not None else match.start(), out)
            at = match.end()
        _add(text, at, end, out)
    return out


def _goes_on(text: str, start: int, end: int) -> bool:
    """Is the full stop before ``end`` one of an abbreviation or an ordinal number?"""
    if _NO_END.search(text, start, end) or _ORDINAL.search(text, start, end):
        return True
    return bool(_MONTH.match(text, end) and _DAY.search(text, start, end))


def _paragraphs(text: str) -> list[tuple[int, int]]:
    """Spans that a sentence cannot cross."""
    out: list[tuple[int, int]] = []
    start = 0
    position = 0
    lines = text.splitlines(keepends=True)
    for i, line in enumerate(lines):
        after = position + len(line)
        following = lines[i + 1] if i + 1 < len(lines) else ""
        hard = (
            not line.strip()
            or not following.strip()
            or (_is_item(line) and _is_item(following))
            or _is_item(following)
            or _RECORD.match(line)
        )
        if hard:
            out.append((start, after))
            start = after
        position = after
    if start < len(text):
        out.append((start, len(text)))
    return out


def _is_item(line: str) -> bool:
    return bool(_ITEM.match(line) or _RECORD.match(line))


def _add(text: str, start: int, end: int, out: list[tuple[int, int]]) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if end > start:
        out.append((start, end))
