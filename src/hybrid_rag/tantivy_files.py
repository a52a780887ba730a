"""The files of a tantivy folder: their check sums, and a view of a folder in which nothing can be written.

Every file of a segment ends with a footer: JSON that holds the CRC-32 of what is before it, the length of that JSON and
a magic number, both 32-bit little-endian (tantivy, src/directory/footer.rs).
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import tempfile
import zlib
from pathlib import Path

META = "meta.json"
MAGIC = 1337
BLOCK = 1 << 20
_TAIL = struct.Struct("<II")


def damage(folder: Path) -> str:
    """What is wrong with the files, "" when nothing is. Reads all of them: about 1 GB a second."""
    try:
        segments = json.loads((folder / META).read_text(encoding="utf-8"))["segments"]
        named = {segment["segment_id"].replace("-", "") for segment in segments}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return f"{META} cannot be read"
    if missing := named - {path.name.partition(".")[0] for path in folder.iterdir()}:
        return f"files of the segment {min(missing)[:8]} are missing"
    for path in sorted(folder.iterdir()):
        if path.name.partition(".")[0] in named and not _sound(path):
            return f"{path.name} is not as it was written"
    return ""


def _sound(path: Path) -> bool:
    """The check sum in the footer is that of the content."""
    size = path.stat().st_size
    if size < _TAIL.size:
        return False
    with open(path, "rb") as file:
        file.seek(size - _TAIL.size)
        length, magic = _TAIL.unpack(file.read(_TAIL.size))
        body = size - _TAIL.size - length
        if magic != MAGIC or body < 0:
            return False
        file.seek(body)
        try:
            wanted = json.loads(file.read(length))["crc"]
        except (ValueError, KeyError, TypeError):
            return False
        file.seek(0)
        crc, left = 0, body
        while left:
            block = file.read(min(BLOCK, left))
            if not block:
                return False
            crc, left = zlib.crc32(block, crc), left - len(block)
    return crc == wanted


def view(folder: Path, into: Path | None = None) -> Path:
    """A temporary folder that shows another one's files by links, for tantivy makes lock files where it reads.

    ``into``: a view to bring up to date. Raises OSError.
    """
    shown = into or Path(tempfile.mkdtemp(prefix="hybrid-rag-"))
    for path in folder.iterdir():
        target = shown / path.name
        if path.suffix != ".lock" and path.name != META and not target.is_symlink():
            os.symlink(path.absolute(), target)
    fresh = shown / f"{META}.new"
    shutil.copyfile(folder / META, fresh)
    os.replace(fresh, shown / META)
    return shown
