"""Our readers and chunker as a LangChain document loader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from hybrid_rag.chunking import ChunkOptions, chunk
from hybrid_rag.errors import ReadError
from hybrid_rag.loading import Limits, read
from hybrid_rag.loading.scan import scan


class DocumentLoader(BaseLoader):
    """Loads a file, or a folder with its sub-folders, as chunks.

    Raises DataError for a folder that cannot be listed and ReadError for a single file that cannot be read; the files of
    a folder that cannot be read are left in ``failures``, by source, and the others are loaded. ``loaders`` adds kinds, as
    in the configuration. Everything is read in this process: the time and memory limits of ``limits`` do not act here.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        limits: Limits | None = None,
        chunks: ChunkOptions | None = None,
        loaders: Mapping[str, str] | None = None,
    ) -> None:
        self._path, self._limits, self._chunks = Path(path).absolute(), limits or Limits(), chunks or ChunkOptions()
        self._loaders = dict(loaders or {})
        self.failures: dict[str, ReadError] = {}

    def lazy_load(self) -> Iterator[Document]:
        """Chunks in order, streamed; a table file gives groups of rows and its card."""
        self.failures.clear()
        if not self._path.is_dir():
            yield from self._file(self._path, self._path.name)
            return
        for found in scan(self._path, loaders=self._loaders).files:
            try:
                yield from self._file(found.path, found.source)
            except ReadError as error:
                self.failures[found.source] = error

    def _file(self, path: Path, source: str) -> Iterator[Document]:
        document = read(path, source=source, limits=self._limits, loaders=self._loaders)
        file = {
            "format": document.format,
            "size": document.size,
            "sha256": document.sha256,
            "modified": document.modified.isoformat(timespec="seconds"),
            "encoding": document.encoding,
            "dialect": document.dialect,
            "language": document.language,
            "date": document.date,
            "tags": list(document.tags),
            "notices": [notice.message for notice in document.notices],
        }
        for piece in chunk(document, self._chunks):
            metadata = {
                "source": source,
                "kind": piece.kind,
                "title": piece.title,
                "heading": " > ".join(piece.heading),
                "page": piece.page,
                "page_label": piece.page_label,
                "rows": list(piece.rows) if piece.rows else None,
                **file,
            }
            yield Document(id=piece.id, page_content=piece.text, metadata=metadata)
