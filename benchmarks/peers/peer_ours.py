"""This project, through its own service, as a server uses it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import BgeEmbedder, FreeEmbedder, Peer, main

from hybrid_rag.chunking import ChunkOptions
from hybrid_rag.config import load
from hybrid_rag.embedding import Embedded
from hybrid_rag.loading.scan import scan
from hybrid_rag.service import Service, open_service
from hybrid_rag.workers import ChunkBatch, ReadOptions, read_all


class _Embedder:
    """The measurement's embedder in the form of ours."""

    def __init__(self, held: FreeEmbedder | BgeEmbedder) -> None:
        self._held = held
        self.name = f"bundled:{type(held).__name__}"
        self.dimensions = 384
        self.fingerprint = hashlib.sha256(self.name.encode()).hexdigest()[:32]

    def embed_documents(self, texts: Sequence[str]) -> Embedded:
        return Embedded(np.array(self._held.documents(texts), np.float32), {})

    def embed_query(self, text: str) -> np.ndarray:
        return np.array(self._held.query(text), np.float32)


class Ours(Peer):
    packages = ("hybrid-rag", "tantivy", "chromadb")
    reads_itself = searches_while_updating = True
    _service: Service | None = None

    def _opened(self) -> Service:
        if self._service is None:
            settings = [
                f"vector_store.persist_directory={self.store}", "embedding.provider=bundled", "llm.provider=none", f"retrieval.k={self.k}",
                f"document_processing.text_chunk_size={self.size}", f"document_processing.text_chunk_overlap={self.overlap}",
                "retrieval.cache_entries=0", *([f"data.directory={self.folder}"] if self.folder else []),
            ]  # fmt: skip
            self._service = open_service(load(None, settings=settings, environ={}))
            held = _Embedder(self.embedder)
            self._service.parts._embedders |= {"bundled": held, held.name: held}  # type: ignore[dict-item]
        return self._service

    def load(self, folder: Path) -> list[Any]:
        options = ReadOptions(chunks=ChunkOptions(self.size, self.overlap))
        return [chunk for event in read_all(scan(folder).files, options) if isinstance(event, ChunkBatch) for chunk in event.chunks]

    def index(self, folder: Path, chunks: list[Any]) -> float | None:
        service = self._opened()
        del chunks  # the service reads the files itself

        report = service.index()
        assert not report.counts.get("failed"), report.counts
        return report.first_searchable_seconds

    def open(self) -> None:
        self._opened()

    def search(self, query: str) -> list[str]:
        found = self._opened().search(query, k=self.k)
        assert found.mode == "hybrid", found.notes
        return [h.source.rpartition("/")[2] for h in found.hits]

    def count(self, chunks: list[Any]) -> int:
        return self._opened().stats().chunks

    def update(self, folder: Path, changed: Path) -> None:
        self._opened().index()

    def close(self) -> None:
        if self._service is not None:
            self._service.close()


if __name__ == "__main__":
    main(Ours)
