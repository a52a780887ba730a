"""Plain text: paragraphs, in whatever encoding."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid_rag.loading.body import Body, BodyBuilder
from hybrid_rag.loading.encoding import decode

if TYPE_CHECKING:
    from hybrid_rag.loading import Limits

_PARAGRAPHS = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def read(path: Path, limits: Limits) -> Body:
    """Read a text file; blank lines separate its blocks."""
    text, encoding = decode(path.read_bytes())
    builder = BodyBuilder()
    for paragraph in _PARAGRAPHS.split(text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n")):
        builder.add(paragraph)
    if "\ufffd" in text:
        builder.notice(
            f"{text.count(chr(0xFFFD))} bytes are not valid {encoding} and were replaced.", "Save the file as UTF-8.", partial=True
        )
    return builder.body(encoding=encoding)
