"""The files behind the documents of an index: where one is, and pages of PDFs as pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid_rag.browsing import known
from hybrid_rag.errors import InputError
from hybrid_rag.loading.scan import file_below
from hybrid_rag.page_images import PageImage, PageImages
from hybrid_rag.records import DocumentInfo

if TYPE_CHECKING:
    from hybrid_rag.catalog import Catalog


class Files:
    """The files of one data folder, as the catalog names them. Thread-safe."""

    def __init__(self, catalog: Callable[[], Catalog], root: Path) -> None:
        self._catalog, self._root = catalog, root
        self._images = PageImages()

    def document(self, source: str) -> DocumentInfo:
        """What the catalog knows of a document. Raises InputError with near names."""
        return known(self._catalog(), source)

    def path(self, source: str) -> Path:
        """The file of a document, inside the data folder. Raises InputError when it is gone or a link leads out."""
        return file_below(self._root, self.document(source).source)

    def page_image(self, source: str, page: int, *, width: int = 1000) -> PageImage:
        """A page of a PDF as PNG. Raises InputError, ReadError."""
        return self._images.draw(self._pdf(source), page, width=width)

    def page_marks(self, source: str, page: int, quote: str) -> PageImage:
        """Where a quote stands on a page of a PDF. Raises InputError, ReadError."""
        return self._images.find(self._pdf(source), page, quote)

    def close(self) -> None:
        self._images.close()

    def _pdf(self, source: str) -> Path:
        if self.document(source).format != "pdf":
            raise InputError(f"{source} is no PDF.", "Only PDFs have pages that can be drawn.")
        return self.path(source)
