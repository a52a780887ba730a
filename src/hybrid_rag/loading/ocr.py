"""Optical character recognition of single PDF pages, by the program ``tesseract`` (which ``ocrmypdf`` brings along)."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

from hybrid_rag.errors import ReadError

DOTS_AN_INCH = 300
MOST_PIXELS = 40_000_000  # a larger page is rendered with fewer dots


def available() -> bool:
    """Whether the program is installed."""
    return shutil.which("tesseract") is not None


def recognise(path: Path, index: int, lock: threading.Lock, *, languages: str, seconds: float) -> str:
    """The text of one page (``index`` from 0). ``lock`` guards pdfium, which renders it.

    Raises ReadError when the page cannot be rendered, the program fails, or it takes longer than ``seconds``.
    """
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "page.pgm"
        with lock:
            image.write_bytes(_rendered(path, index))
        command = ["tesseract", str(image), "stdout", "-l", languages]
        environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}  # files are read on all cores already
        try:
            run = subprocess.run(command, capture_output=True, check=False, timeout=max(0.1, seconds), env=environment)
        except subprocess.TimeoutExpired as error:
            raise ReadError("The time limit was reached during OCR.", "Raise document_processing.max_seconds.") from error
    if run.returncode:
        reason = " ".join(run.stderr.decode("utf-8", "replace").split())[:200]
        raise ReadError(
            f"tesseract failed on page {index + 1}: {reason}", "Install the languages that document_processing.ocr_languages names."
        )
    return run.stdout.decode("utf-8", "replace")


def _rendered(path: Path, index: int) -> bytes:
    """The page as a grey picture in PGM form."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        raise ReadError(f"Page {index + 1} cannot be rendered for OCR: {error}.") from error
    try:
        page = document[index]
        width, height = page.get_size()
        scale = DOTS_AN_INCH / 72
        scale = min(scale, (MOST_PIXELS / max(1.0, width * height)) ** 0.5)
        bitmap = page.render(scale=scale, grayscale=True)
        rows = memoryview(bitmap.buffer).cast("B")
        lines = [bytes(rows[y * bitmap.stride : y * bitmap.stride + bitmap.width]) for y in range(bitmap.height)]
        return b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + b"".join(lines)
    finally:
        document.close()
