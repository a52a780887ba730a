"""What a reader makes of a file, and the builder that keeps text and spans together."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any

from hybrid_rag.records import Block, Notice, RowStream

SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class Body:
    """The content of a file and what was found out on the way; see Document for the fields."""

    text: str = ""
    blocks: tuple[Block, ...] = ()
    rows: RowStream | None = None
    title: str = ""
    encoding: str | None = None
    dialect: str | None = None
    language: str | None = None
    date: str | None = None
    tags: tuple[str, ...] = ()
    pages: int | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


class BodyBuilder:
    """Collects blocks in reading order; their spans are exact by construction. Text becomes NFC, without NULs."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._headings: list[tuple[int, str]] = []  # (level, text)
        self.notices: list[Notice] = []

    def heading(self, text: str, level: int, *, page: int | None = None, page_label: str | None = None) -> None:
        """Open a section; deeper and equal ones are closed."""
        plain = " ".join(clean(text).split())
        if not plain:
            return
        self._headings = [(n, t) for n, t in self._headings if n < level] + [(level, plain)]
        self.add(plain, role="heading", page=page, page_label=page_label)

    def add(self, text: str, *, role: Any = "paragraph", page: int | None = None, page_label: str | None = None, header: str = "") -> None:
        """Add a block; ``header`` is the beginning of a table's text that is repeated when the table is split."""
        text = clean(text).strip("\n")
        if not text.strip():
            return
        if self._parts:
            self._parts.append(SEPARATOR)
            self._length += len(SEPARATOR)
        start = self._length
        self._parts.append(text)
        self._length += len(text)
        header = clean(header)
        self._blocks.append(
            Block(
                start=start,
                end=self._length,
                role=role,
                heading=tuple(t for _, t in self._headings),
                page=page,
                page_label=page_label,
                header_end=start + len(header) if header and text.startswith(header) else start,
            )
        )

    def notice(self, message: str, remedy: str = "", *, partial: bool = False) -> None:
        self.notices.append(Notice(message, remedy, partial))

    def body(self, **found: Any) -> Body:
        return Body(text="".join(self._parts), blocks=tuple(self._blocks), notices=tuple(self.notices), **found)


_C1 = {code: bytes([code]).decode("cp1252", "ignore") or None for code in range(0x80, 0xA0)}
_TO_MEND = re.compile("[\x80-\x9f\ufeff\ud800-\udfff]")


def clean(text: str) -> str:
    """Readable text (see :func:`readable`) with unix line ends and without NULs."""
    if not text.isascii():
        text = readable(text)
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")


def is_readable(text: str) -> bool:
    """Whether :func:`readable` leaves the text, and any part of it, as it is."""
    return text.isascii() or (not _TO_MEND.search(text) and unicodedata.is_normalized("NFC", text))


def readable(text: str) -> str:
    """NFC, without lone surrogates and byte order marks; Windows-1252 characters that were taken for control codes mended."""
    if _TO_MEND.search(text):
        text = text.encode("utf-8", "replace").decode("utf-8").replace("\ufeff", "").translate(_C1)
    return unicodedata.normalize("NFC", text)
