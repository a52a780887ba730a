"""Haystack: its InMemoryDocumentStore with BM25 and embedding retrievers, joined by DocumentJoiner; the store is saved as JSON.

Its other stores have no BM25, or need a server.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from pathlib import Path

from haystack import Document
from haystack.components.converters import CSVToDocument, DOCXToDocument, PyPDFToDocument, TextFileToDocument
from haystack.components.joiners import DocumentJoiner
from haystack.components.preprocessors import RecursiveDocumentSplitter
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from measure import Peer, files, main

logging.disable(logging.WARNING)
BATCH = 2048


class Haystack(Peer):
    packages = ("haystack-ai",)

    def load(self, folder: Path) -> list[Document]:
        return self._read(files(folder))

    def _read(self, paths: list[Path]) -> list[Document]:
        documents: list[Document] = []
        converters = {".csv": CSVToDocument, ".pdf": PyPDFToDocument, ".docx": DOCXToDocument}
        for path in paths:
            suffix = path.suffix.lower()
            converter = CSVToDocument(conversion_mode="row") if suffix == ".csv" else converters.get(suffix, TextFileToDocument)()
            found = converter.run(sources=[path], **({"content_column": _first_column(path)} if suffix == ".csv" else {}))["documents"]
            documents += [
                Document(content=_whole(d) if suffix == ".csv" else d.content, meta={"source": path.name}) for d in found if d.content
            ]
        splitter = RecursiveDocumentSplitter(
            split_length=self.size, split_overlap=self.overlap, split_unit="char", separators=["\n\n", "\n", " "]
        )
        splitter.warm_up()
        rows = [d for d in documents if len(d.content or "") <= self.size]
        return rows + splitter.run([d for d in documents if len(d.content or "") > self.size])["documents"]

    def _write(self, documents: list[Document]) -> None:
        for start in range(0, len(documents), BATCH):
            part = documents[start : start + BATCH]
            vectors = self.embedder.documents([d.content or "" for d in part])
            part = [replace(document, embedding=vector) for document, vector in zip(part, vectors, strict=True)]
            self._documents.write_documents(part, policy=DuplicatePolicy.OVERWRITE)

    def index(self, folder: Path, chunks: list[Document]) -> float | None:
        begin = time.perf_counter()
        self._documents = InMemoryDocumentStore()
        self._write(chunks)
        self._combine()
        first = time.perf_counter() - begin
        self._save()
        return first

    def _save(self) -> None:
        assert self.store is not None
        self.store.mkdir(parents=True, exist_ok=True)
        self._documents.save_to_disk(str(self.store / "store.json"))

    def _combine(self) -> None:
        self._words = InMemoryBM25Retriever(self._documents, top_k=self.k)
        self._vectors = InMemoryEmbeddingRetriever(self._documents, top_k=self.k)
        self._joiner = DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=self.k)

    def open(self) -> None:
        assert self.store is not None
        self._documents = InMemoryDocumentStore.load_from_disk(str(self.store / "store.json"))
        self._combine()

    def search(self, query: str) -> list[str]:
        words = self._words.run(query=query)["documents"]
        vectors = self._vectors.run(query_embedding=self.embedder.query(query))["documents"]
        return [d.meta["source"] for d in self._joiner.run(documents=[words, vectors])["documents"]]

    def update(self, folder: Path, changed: Path) -> None:
        held = self._documents.filter_documents({"field": "meta.source", "operator": "==", "value": changed.name})
        self._documents.delete_documents([d.id for d in held])
        self._write(self._read([changed]))
        self._save()


def _first_column(path: Path) -> str:
    import csv

    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file))[0]


def _whole(document: Document) -> str:
    """The record as lines, as the other systems have it."""
    cells = [str(document.content), *(f"{k}: {v}" for k, v in document.meta.items() if k not in ("file_path", "row_number", "encoding"))]
    return "\n".join(cells)


if __name__ == "__main__":
    main(Haystack)
