"""haiku.rag (slim) over LanceDB, embedded.

Its own converter and chunker need docling with further models, or a docling server; so the text is cut by LangChain's splitter and
taken in through `import_documents`. Its embedders are servers; here the same embedder as everywhere runs in the process.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import haiku.rag.client.client as client_module
import haiku.rag.store.engine as engine_module
from docling_core.types.doc.document import DoclingDocument
from docling_core.types.doc.labels import DocItemLabel
from haiku.rag.client import HaikuRAG
from haiku.rag.client.documents import DocumentImport
from haiku.rag.config import AppConfig
from haiku.rag.embeddings import EmbedderWrapper
from haiku.rag.store.models.chunk import Chunk
from measure import DIMENSIONS, Once, Peer, files, main, recursive_splitter

logging.disable(logging.WARNING)


class _Embedder(EmbedderWrapper):
    def __init__(self, embedder: Any) -> None:
        super().__init__(None, DIMENSIONS)
        self._held = embedder

    async def _embed_query(self, text: str) -> list[float]:
        return self._held.query(text)

    async def _embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._held.documents(texts)


class Haiku(Peer):
    packages = ("haiku.rag-slim", "lancedb")

    def load(self, folder: Path) -> list[tuple[Path, list[str]]]:
        split = recursive_splitter(self.size, self.overlap)
        self._loaded = [(path, split(path.read_text(encoding="utf-8"))) for path in files(folder, (".md", ".txt"))]
        return [text for _, texts in self._loaded for text in texts]  # type: ignore[return-value]

    def _open(self, create: bool) -> None:
        embedder = _Embedder(self.embedder)
        engine_module.get_embedder = client_module.get_embedder = lambda config=None: embedder
        assert self.store is not None
        config = AppConfig.model_validate({"embeddings": {"model": {"provider": "ollama", "name": "peers", "vector_dim": DIMENSIONS}}})
        self._once = Once()
        self._client = HaikuRAG(self.store / "haiku.lancedb", config=config, create=create)
        self._once.run(self._client.__aenter__())

    def _imports(self, loaded: Sequence[tuple[Path, list[str]]]) -> list[DocumentImport]:
        out = []
        for path, texts in loaded:
            document = DoclingDocument(name=path.name)
            for text in texts:
                document.add_text(DocItemLabel.TEXT, text)
            vectors = self.embedder.documents(texts)
            chunks = [Chunk(content=t, order=n, embedding=v) for n, (t, v) in enumerate(zip(texts, vectors, strict=True))]
            out.append(DocumentImport(docling_document=document, chunks=chunks, uri=path.name, title=path.name))
        return out

    def index(self, folder: Path, chunks: list[Any]) -> float | None:
        self._open(create=True)
        for start in range(0, len(self._loaded), 100):
            self._once.run(self._client.import_documents(self._imports(self._loaded[start : start + 100])))
        return None

    def open(self) -> None:
        self._open(create=False)

    def search(self, query: str) -> list[str]:
        found = self._once.run(self._client.search(query, limit=self.k, include_images=False))
        return [str(hit.document_uri) for hit in found]

    def update(self, folder: Path, changed: Path) -> None:
        held = self._once.run(self._client.get_document_by_uri(changed.name))
        self._once.run(self._client.delete_document(held.id))
        texts = recursive_splitter(self.size, self.overlap)(changed.read_text(encoding="utf-8"))
        self._once.run(self._client.import_documents(self._imports([(changed, texts)])))

    def close(self) -> None:
        if hasattr(self, "_client"):
            self._once.run(self._client.__aexit__(None, None, None))


if __name__ == "__main__":
    main(Haiku)
