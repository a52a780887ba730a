"""Text for terminals and pipes: made safe, shortened, joined, printed whole or wrapped."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

WRAPPED_FROM = 60  # a line of a document at least this long that ends in mid-sentence was broken by its layout
PIPE_WIDTH = 200  # columns of a table that does not go to a terminal
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def safe(text: str) -> str:
    """The text, of the same length, without what a terminal would obey: control characters, direction overrides, half characters."""
    return "".join("�" if c in _BIDI or (c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs")) else c for c in text)


def short(text: str, limit: int) -> str:
    text = safe(text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def joined(text: str) -> str:
    """The text, of the same length, with lines joined that only the page's width has broken."""
    lines = text.split("\n")
    out = lines[0]
    for before, line in pairwise(lines):
        broken = len(before) >= WRAPPED_FROM and before[-1] not in ".:;!?|" and " | " not in before and line[:1].isalnum()
        out += (" " if broken else "\n") + line
    return out


def file_link(root: Path | None, source: str, page: int | None = None) -> str | None:
    """The `file://` address of a document, with its page; None when there is no such file below ``root``."""
    if root is None or not (path := (root / source).absolute()).is_file():
        return None
    return f"{path.as_uri()}#page={page}" if page else path.as_uri()


def counted(count: int, noun: str) -> str:
    """ "1 file", "1,200 files"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def say(console: Console, text: str | Text, style: str = "", indent: int = 0) -> None:
    """Print a line or more: wrapped on a terminal, whole elsewhere. A ``Text`` must be safe already."""
    shown = Text(safe(text), style=style) if isinstance(text, str) else text
    if console.is_terminal:
        console.print(Padding(shown, (0, 0, 0, indent)) if indent else shown)
        return
    for line in shown.split("\n", allow_blank=True) if indent else (shown,):
        console.print(Text(" " * indent) + line if line.plain else line, soft_wrap=True)


def grid(console: Console, table: Table) -> None:
    """Print a table; where there is no terminal, as wide as its cells need, up to PIPE_WIDTH columns."""
    if console.is_terminal:
        console.print(table)
        return
    for line in console.render_lines(table, console.options.update_width(PIPE_WIDTH), pad=False):
        console.print(Text("".join(segment.text for segment in line).rstrip()), soft_wrap=True)


def ranges(numbers: Sequence[int]) -> str:
    """ "1-20, 25" for sorted numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def times(milliseconds: dict[str, float]) -> str:
    return "Time: " + ", ".join(f"{stage} {value:,.0f} ms" for stage, value in milliseconds.items()) if milliseconds else ""


def cell(value: Any) -> str:
    """A value of a result: numbers with separators, two decimals or four digits, nothing for NULL."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) >= 1 or not value else f"{value:.4g}"
    return safe(str(value))
