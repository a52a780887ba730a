"""Bytes to text: byte order mark, strict UTF-8, UTF-16 by its NULs, a detector, at last Windows-1252."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from pathlib import Path

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
SAMPLE = 256 * 1024
LATIN = frozenset(
    {
        "cp1250",
        "cp1252",
        "cp1254",
        "cp1257",
        "latin_1",
        "iso8859_15",
        "iso8859_9",
        "mac_roman",
        "iso8859_1",
        "cp1258",
        "cp437",
        "cp850",
        "hp_roman8",
        "mac_iceland",
        "cp775",
        "cp858",
    }
)


def detect(sample: bytes, *, whole: bool) -> str:
    """The encoding of a text that begins with ``sample``; ``whole`` when that is all of it."""
    for mark, name in _MARKS:
        if sample.startswith(mark):
            return name
    if b"\0" not in sample and _is_utf8(sample, whole):
        return "utf-8"
    if name := _utf16_by_nuls(sample):
        return name
    if b"\0" in sample and _is_utf8(sample.replace(b"\0", b""), whole):
        return "utf-8"
    return _guess(sample)


def decode(data: bytes) -> tuple[str, str]:
    """(text, encoding). Undecodable bytes become U+FFFD; the text never fails."""
    encoding = detect(data, whole=True)
    return data.decode(encoding, "replace"), encoding.removesuffix("-sig")


def open_text(path: Path, encoding: str) -> io.TextIOWrapper:
    """The file as a text stream, line ends as written, NULs still in it."""
    return open(path, encoding=encoding, errors="replace", newline="")


def detect_file(path: Path) -> str:
    """The encoding of a large file: by its beginning, then held against all of it when it claims UTF-8."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        sample = file.read(SAMPLE)
    encoding = detect(sample, whole=size <= SAMPLE)
    if encoding == "utf-8" and size > SAMPLE and not all(_strict_utf8(path)):
        return "cp1252"
    return encoding


def _strict_utf8(path: Path) -> Iterator[bool]:
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                yield False
                return
    yield True


def _is_utf8(data: bytes, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")("strict").decode(data, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def _utf16_by_nuls(sample: bytes) -> str | None:
    head = sample[:4096]
    if len(head) < 4:
        return None
    even, odd = head[0::2].count(0) / (len(head) / 2), head[1::2].count(0) / (len(head) / 2)
    if odd > 0.4 and even < 0.1:
        return "utf-16-le"
    if even > 0.4 and odd < 0.1:
        return "utf-16-be"
    return None


def _guess(sample: bytes) -> str:
    """A detector's vote. Among Western single-byte encodings it often errs on short texts: there Windows-1252 wins."""
    from charset_normalizer import from_bytes

    best = from_bytes(sample[:65536]).best()
    name = best.encoding if best else "cp1252"
    if name in LATIN or (name.startswith("utf") and name != "utf_8"):
        return "cp1252"
    try:
        codecs.lookup(name)
    except LookupError:
        return "cp1252"
    return name


def shown(encoding: str) -> str:
    """The name of an encoding for people."""
    return encoding.removesuffix("-sig").replace("_", "-")
