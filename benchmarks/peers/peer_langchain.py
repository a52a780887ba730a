"""The classic pipeline of LangChain's parts: a Chroma collection and a BM25Retriever for tables and for text, in nested EnsembleRetrievers.

BM25Retriever has no store: it is made again from the collections at each start and at each change. The ensembles get an `id_key`: without
one, a text that stands in several places adds up and comes first (hit@1 .27 on documentation).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import Peer, files, main

warnings.filterwarnings("ignore")
from langchain_chroma import Chroma  # noqa: E402
from langchain_classic.retrievers import EnsembleRetriever  # noqa: E402
from langchain_community.document_loaders import CSVLoader, Docx2txtLoader, PyPDFLoader, TextLoader  # noqa: E402
from langchain_community.retrievers import BM25Retriever  # noqa: E402
from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import Embeddings  # noqa: E402
from langchain_text_splitters import RecursiveCharacterTextSplitter  # noqa: E402

KINDS, WEIGHTS = ("table", "text"), (0.4, 0.6)
BATCH = 5000  # Chroma takes 5,461 at most, and gives back no more than about 32,000


class _Embeddings(Embeddings):
    def __init__(self, embedder: Any) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._embedder.documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._embedder.query(text)


class LangChain(Peer):
    packages = ("langchain-core", "langchain-classic", "langchain-community", "langchain-chroma", "chromadb", "rank-bm25")

    def load(self, folder: Path) -> list[Document]:
        return [document for path in files(folder) for document in self._read(path)]

    def _read(self, path: Path) -> list[Document]:
        suffix = path.suffix.lower()
        if suffix == ".csv":
            documents = CSVLoader(str(path), encoding="utf-8").load()
        else:
            loader = {".pdf": PyPDFLoader, ".docx": Docx2txtLoader}.get(suffix)
            loaded = (loader(str(path)) if loader else TextLoader(str(path), encoding="utf-8")).load()
            documents = RecursiveCharacterTextSplitter(chunk_size=self.size, chunk_overlap=self.overlap).split_documents(loaded)
        kind = "table" if suffix == ".csv" else "text"
        for number, document in enumerate(documents):
            document.metadata = {"source": path.name, "kind": kind, "id": f"{path.name}-{number}"}
        return documents

    def index(self, folder: Path, chunks: list[Document]) -> float | None:
        self._connect()
        for kind in KINDS:
            self._add(kind, [c for c in chunks if c.metadata["kind"] == kind])
        self._combine({kind: [c for c in chunks if c.metadata["kind"] == kind] for kind in KINDS})
        return None

    def _connect(self) -> None:
        embeddings = _Embeddings(self.embedder)
        self._stores = {k: Chroma(f"classic_{k}", embeddings, persist_directory=str(self.store)) for k in KINDS}

    def _add(self, kind: str, documents: list[Document]) -> None:
        for start in range(0, len(documents), BATCH):
            self._stores[kind].add_documents(documents[start : start + BATCH])

    def _combine(self, documents: dict[str, list[Document]]) -> None:
        retrievers, weights = [], []
        for kind, weight in zip(KINDS, WEIGHTS, strict=True):
            if documents[kind]:
                bm25 = BM25Retriever.from_documents(documents[kind], k=self.k)
                vectors = self._stores[kind].as_retriever(search_kwargs={"k": self.k})
                retrievers.append(EnsembleRetriever(retrievers=[bm25, vectors], weights=[0.5, 0.5], id_key="id"))
                weights.append(weight)
        self._ensemble = EnsembleRetriever(retrievers=retrievers, weights=weights, id_key="id")

    def _stored(self) -> dict[str, list[Document]]:
        return {kind: list(self._all(self._stores[kind])) for kind in KINDS}

    def _all(self, store: Chroma) -> Iterator[Document]:
        offset = 0
        while texts := (held := store.get(limit=BATCH, offset=offset, include=["documents", "metadatas"]))["documents"]:
            yield from (Document(text, metadata=m) for text, m in zip(texts, held["metadatas"], strict=True))
            offset += len(texts)

    def open(self) -> None:
        self._connect()
        self._combine(self._stored())

    def search(self, query: str) -> list[str]:
        return [d.metadata["source"] for d in self._ensemble.invoke(query)]

    def update(self, folder: Path, changed: Path) -> None:
        kind = "table" if changed.suffix == ".csv" else "text"
        held = self._stores[kind].get(where={"source": changed.name}, include=[])
        for start in range(0, len(held["ids"]), BATCH):
            self._stores[kind].delete(ids=held["ids"][start : start + BATCH])
        self._add(kind, self._read(changed))
        self._combine(self._stored())


if __name__ == "__main__":
    main(LangChain)
