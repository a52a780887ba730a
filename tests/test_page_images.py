"""Pages of PDFs as pictures: the right page, the place of a quote, damage and limits."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from hybrid_rag import page_images
from hybrid_rag.errors import ReadError
from hybrid_rag.page_images import PageImages
from tests.support.files import pdf

PAGES = ["First page\nThe charging cable is red.", "Second page\nThe battery lasts\n38 hours with noise cancelling."]


@pytest.fixture(scope="module")
def images():
    images = PageImages()
    yield images
    images.close()


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pdf(tmp_path_factory.mktemp("pdf") / "manual.pdf", PAGES)


def pixels(png: bytes) -> np.ndarray:
    """The PNG read back by its definition: (height, width, channels)."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    parts, at = {}, 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        name, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + data)
        parts[name] = data
        at += size + 12
    width, height, depth, kind = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    assert depth == 8
    channels = {0: 1, 2: 3, 6: 4}[kind]
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + width * channels)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, channels)


def test_a_page_is_drawn_at_the_width_asked_for(images: PageImages, manual: Path) -> None:
    image = images.draw(manual, 1, width=400)
    drawn = pixels(image.png)
    assert (image.width, image.height) == (595, 842)
    assert abs(drawn.shape[1] - 400) <= 1 and abs(drawn.shape[0] - 400 * 842 / 595) <= 1
    assert 0 < (drawn[..., :3].min(axis=2) < 128).mean() < 0.05  # some ink on white


def test_a_quote_is_found_where_its_ink_is(images: PageImages, manual: Path) -> None:
    found = images.find(manual, 2, "The battery lasts 38 hours")  # broken over two lines
    assert len(found.marks) == 2
    drawn = pixels(images.draw(manual, 2, width=1000).png)[..., :3].min(axis=2) < 128
    for x, y, w, h in found.marks:
        height, width = drawn.shape
        inside = drawn[int(y * height) : int((y + h) * height) + 1, int(x * width) : int((x + w) * width) + 1]
        assert inside.mean() > 0.05
    assert images.find(manual, 1, "The battery lasts 38 hours").marks == ()
    assert images.find(manual, 1, " \n").marks == ()


@pytest.mark.parametrize("page", [0, 3, -1])
def test_a_page_that_is_not_there_is_named(images: PageImages, manual: Path, page: int) -> None:
    with pytest.raises(ReadError, match=f"Page {page} .*2 pages"):
        images.draw(manual, page)


def test_a_damaged_file_is_an_error_and_the_next_picture_comes(images: PageImages, manual: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.pdf"
    bad.write_bytes(b"%PDF-1.7\nnothing")
    with pytest.raises(ReadError, match="could not be drawn"):
        images.draw(bad, 1)
    assert images.draw(manual, 1, width=300).png


def test_a_worker_that_hangs_is_killed_and_started_again(manual: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = PageImages()
    monkeypatch.setattr(page_images, "SECONDS", 0.2)
    monkeypatch.setattr(page_images, "_ENTRY", "import time; time.sleep(60)")
    with pytest.raises(ReadError, match="too complex"):
        images.draw(manual, 1)
    monkeypatch.undo()
    assert images.draw(manual, 1, width=300).png
    images.close()
