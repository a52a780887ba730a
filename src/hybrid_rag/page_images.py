"""Pages of PDFs as pictures, drawn by pdfium in a process of its own: a hostile file costs its picture and nothing else.

Messages are lines of JSON. Request: {"path", "page", "width", "quote"}. Answer: {"width", "height", "marks", "bytes"}, followed by
so many bytes of PNG (none when a quote was asked for), or {"error"}. ``marks`` are [x, y, width, height] as shares of the page.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
import unicodedata
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid_rag.errors import ReadError

SECONDS = 20.0  # for one picture
MOST_PIXELS = 6_000_000
WIDTHS = (200, 2000)  # least and most
MOST_MARKS = 200
_ENTRY = "from hybrid_rag.page_images import main; main()"


@dataclass(frozen=True, slots=True)
class PageImage:
    """``png`` is empty when only the places of a quote were wanted; ``width`` and ``height`` in points (1/72 inch)."""

    png: bytes
    width: float
    height: float
    marks: tuple[tuple[float, float, float, float], ...] = ()  # x, y, width, height: shares of the page, from its upper left corner


class PageImages:
    """One worker process, started when first needed and again after it had to be killed. Thread-safe; one picture at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def draw(self, path: Path, page: int, *, width: int = 1000) -> PageImage:
        """A page (from 1) as PNG, ``width`` pixels wide. Raises ReadError."""
        answer, png = self._ask({"path": str(path), "page": page, "width": min(max(width, WIDTHS[0]), WIDTHS[1]), "quote": None})
        return PageImage(png, answer["width"], answer["height"])

    def find(self, path: Path, page: int, quote: str) -> PageImage:
        """Where the words of a quote stand on a page; no marks when they are not found. Raises ReadError."""
        answer, _ = self._ask({"path": str(path), "page": page, "width": 0, "quote": quote})
        return PageImage(b"", answer["width"], answer["height"], tuple(tuple(m) for m in answer["marks"]))

    def close(self) -> None:
        with self._lock:
            self._stop()

    def _ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        with self._lock:
            process = self._running()
            killer = threading.Timer(SECONDS, process.kill)
            killer.daemon = True
            killer.start()
            png = b""
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                line = process.stdout.readline()
                answer = json.loads(line) if line.endswith(b"\n") else None
                if answer and answer.get("bytes"):
                    png = process.stdout.read(answer["bytes"])
            except OSError:
                answer = None
            finally:
                killer.cancel()
            if answer is None or len(png) != answer.get("bytes", 0):
                self._stop()
                raise ReadError(f"Page {request['page']} could not be drawn: the file is damaged or too complex.", "Open the file itself.")
        if "error" in answer:
            raise ReadError(f"Page {request['page']} could not be drawn: {answer['error']}", "Open the file itself.")
        return answer, png

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._stop()
            self._process = subprocess.Popen(
                [sys.executable, "-c", _ENTRY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        return self._process

    def _stop(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            pipe.close()
        self._process = None


# ---------------------------------------------------------------- the worker's side


def main() -> None:
    """Answer requests until the pipe closes."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not disturb the answers
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            answer, png = _answer(request)
        except Exception as error:  # pdfium raises its own class for every kind of damage; the caller gets the words
            answer, png = {"error": f"{type(error).__name__}: {error}"[:300]}, b""
        out.write(json.dumps({**answer, "bytes": len(png)}).encode() + b"\n" + png)
        out.flush()


def _answer(request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    import pypdfium2

    document = pypdfium2.PdfDocument(request["path"])
    try:
        if not 1 <= request["page"] <= len(document):
            return {"error": f"the file has {len(document)} pages."}, b""
        page = document[request["page"] - 1]
        width, height = page.get_size()
        answer = {"width": width, "height": height, "marks": []}
        if request["quote"] is not None:
            return {**answer, "marks": _marks(page, request["quote"], width, height)}, b""
        return answer, _drawn(page, request["width"], width, height)
    finally:
        document.close()


def _drawn(page: Any, pixels: int, width: float, height: float) -> bytes:
    scale = min(pixels / width, (MOST_PIXELS / (width * height)) ** 0.5)
    bitmap = page.render(scale=scale, rev_byteorder=True)
    return _png(bytes(bitmap.buffer), bitmap.width, bitmap.height, bitmap.stride, bitmap.n_channels)


def _png(pixels: bytes, width: int, height: int, stride: int, channels: int) -> bytes:
    """RGB(A) or grey pixels as PNG (ISO/IEC 15948): no filter, for text that is nearly as small and much faster."""
    kind = {1: 0, 3: 2, 4: 6}[channels]
    lines = b"".join(b"\0" + pixels[y * stride : y * stride + width * channels] for y in range(height))

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(lines, 6)) + part(b"IEND", b"")


def _marks(page: Any, quote: str, width: float, height: float) -> list[list[float]]:
    """Rectangles of the quote's words on the page. White space and hyphens differ between reading and drawing: they are not compared."""
    import ctypes

    import pypdfium2.raw as raw

    text_page = page.get_textpage()
    letters, places = _letters(text_page.get_text_range())
    wanted, _ = _letters(quote)
    at = letters.find(wanted) if wanted else -1
    if at < 0:
        return []
    first, last = places[at], places[at + len(wanted) - 1]
    out = []
    for i in range(min(text_page.count_rects(first, last - first + 1), MOST_MARKS)):
        left, bottom, right, top = text_page.get_rect(i)
        corners = []
        for x, y in ((left, top), (right, bottom)):
            dx, dy = ctypes.c_int(), ctypes.c_int()
            raw.FPDF_PageToDevice(page, 0, 0, 10_000, 10_000, 0, x, y, dx, dy)
            corners.append((dx.value / 10_000, dy.value / 10_000))
        (x1, y1), (x2, y2) = corners
        out.append([min(x1, x2), min(y1, y2), abs(x2 - x1), abs(y2 - y1)])
    return out


def _letters(text: str) -> tuple[str, list[int]]:
    """The text's letters, digits and signs, folded, and the place of each in the text."""
    letters, places = [], []
    for place, character in enumerate(text):
        for c in unicodedata.normalize("NFKC", character):
            if not c.isspace() and c not in "-\u00ad\u2010\u2011" and unicodedata.category(c)[0] != "C":
                letters.append(c)
                places.append(place)
    return "".join(letters), places
