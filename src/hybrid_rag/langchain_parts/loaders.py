"""Our readers and chunker as a LangChain document loader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from hybrid_rag.chunking import ChunkOptions, chunk
from hybrid_rag.loading import Limits, read
from hybrid_rag.loading.scan import scan


class DocumentLoader(BaseLoader):
    """Loads a file, or a folder with its sub-folders, as chunks. Raises DataError, and ReadError for a file that cannot be read."""

    def __init__(self, path: str | Path, *, limits: Limits | None = None, chunks: ChunkOptions | None = None) -> None:
        self._path, self._limits, self._chunks = Path(path).absolute(), limits or Limits(), chunks or ChunkOptions()

    def lazy_load(self) -> Iterator[Document]:
        """Chunks in order, streamed; a table file gives groups of rows and its card."""
        files = [(self._path, self._path.name)]
        if self._path.is_dir():
            files = [(found.path, found.source) for found in scan(self._path).files]
        for path, source in files:
            document = read(path, source=source, limits=self._limits)
            for piece in chunk(document, self._chunks):
                metadata = {"source": source, "kind": piece.kind, "title": piece.title, "heading": " > ".join(piece.heading),
                            "page": piece.page, "rows": list(piece.rows) if piece.rows else None}  # fmt: skip
                yield Document(id=piece.id, page_content=piece.text, metadata=metadata)
