"""Plain text: paragraphs, in whatever encoding."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid_rag.errors import ReadError
from hybrid_rag.loading.body import Body, BodyBuilder
from hybrid_rag.loading.encoding import Decoded, decode
from hybrid_rag.records import Notice

if TYPE_CHECKING:
    from hybrid_rag.loading import Limits

_PARAGRAPHS = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def read(path: Path, limits: Limits) -> Body:
    """Read a text file; blank lines separate its blocks."""
    decoded = decode(path.read_bytes())
    refuse_binary(decoded)
    builder = BodyBuilder()
    for paragraph in _PARAGRAPHS.split(decoded.text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n")):
        builder.add(paragraph)
    note_replaced(decoded, builder)
    return builder.body(encoding=decoded.encoding)


def refuse_binary(decoded: Decoded) -> None:
    """Raises ReadError when the content is no text."""
    if decoded.binary:
        raise ReadError("The content is not text (it holds control codes throughout).", "Give the file the suffix of its real kind.")


def note_replaced(decoded: Decoded, builder: BodyBuilder) -> None:
    """Say how many bytes could not be decoded."""
    builder.notices.extend(replaced(decoded.replaced, decoded.encoding))


def replaced(count: int, encoding: str) -> tuple[Notice, ...]:
    """What is said of bytes that an encoding does not have; nothing when there are none."""
    if not count:
        return ()
    said = "1 byte is not valid {} and was" if count == 1 else f"{count} bytes are not valid {{}} and were"
    return (Notice(f"{said.format(encoding)} replaced.", "Save the file as UTF-8.", partial=True),)
