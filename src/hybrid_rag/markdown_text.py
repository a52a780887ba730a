"""Text as Markdown that shows it as it is."""

from __future__ import annotations

import re

_MARKUP = re.compile(r"([\\`*_\[\]<>|#~])")
_OPENS = re.compile(r"^([-+=]|\d+[.)](?= ))")


def as_text(text: str) -> str:
    """Text in which no Markdown takes effect: no link, image, HTML, list or heading; line breaks are kept, indents are not."""
    clean = text.encode("utf-8", "replace").decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    lines = [_MARKUP.sub(r"\\\1", line).strip() for line in clean.split("\n")]
    return "\n".join(_OPENS.sub(lambda m: f"{m[0][:-1]}\\{m[0][-1]}", line) for line in lines)
