"""The large generated collection as an index of ours and as a stock pipeline, both kept on disk between runs.

43,828 units at scale 1: 43,328 table records, a chunk each, and 500 sections. Vectors are random (free, and the worst case for
Chroma's graph); they carry the bundled model's fingerprint, so that the command line can search the index too.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hybrid_rag.chunking import ChunkOptions
from hybrid_rag.embedding import Embedded
from hybrid_rag.embedding_onnx import bundled_embedder
from hybrid_rag.filters import Filters
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.records import Progress
from hybrid_rag.workers import ReadOptions

PROJECT = Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT / "scripts"))
from sample_data import large  # noqa: E402

DIMENSIONS = 384
DAY = 86_400
AGES = {"claims": 400, "orders": 40, "feedback": 200, "stock": 20, "returns": 300, "repairs": 500}  # days since a table's last change
FRONT_MATTER = {
    "handbook.md": "tags: [internal]\ndate: 2023-05-01",
    "procedures.md": "tags: [internal, draft]\ndate: 2024-02-01",
    "faq.md": "tags: [public]\ndate: 2024-11-01",
}
FILTERS: dict[str, Filters] = {
    "none": Filters(),
    "folder": Filters.parse(folder="claims"),
    "glob": Filters.parse(glob="orders_*.csv"),
    "kind": Filters.parse(kind="text"),
    "tag": Filters.parse(tags="internal and not draft"),
    "date": Filters.parse(since="2023-01-01", until="2024-06-30"),
    "recent": Filters.parse(recent="90d"),
    "folder, date and kind": Filters.parse(folder="orders", since="2023-01-01", kind="table"),
}


@dataclass(frozen=True)
class Asked:
    text: str
    vector: np.ndarray  # float32 (384,), unit length


class RandomEmbedder:
    """A random unit vector for each text, the same each time."""

    def __init__(self) -> None:
        model = bundled_embedder()
        self.name, self.fingerprint, self.dimensions = model.name, model.fingerprint, model.dimensions

    def embed_documents(self, texts: Sequence[str]) -> Embedded:
        return Embedded(np.array([random_vector(text) for text in texts], np.float32).reshape(len(texts), DIMENSIONS))

    def embed_query(self, text: str) -> np.ndarray:
        return random_vector(text)


def random_vector(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
    vector = np.random.Generator(np.random.PCG64(seed)).standard_normal(DIMENSIONS, np.float32)
    return vector / np.linalg.norm(vector)


def prepare(cache: Path, scale: float) -> Path:
    """The collection's folder, with ``data`` and ``index``; made when it is not there."""
    base = cache / f"large-{scale:g}"
    data, index = base / "data", base / "index"
    if not (base / "complete").exists():
        started = time.perf_counter()
        _write(data, scale)
        opened = Index(IndexOptions(index), create=True)
        chunks = ChunkOptions(rows=1)
        report = ingest(opened, IngestOptions(data, read=ReadOptions(chunks=chunks)), embedder=RandomEmbedder, progress=_show)
        opened.close()
        (base / "complete").write_text("", encoding="utf-8")
        print(f"indexed {report.chunks_embedded:,} chunks in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    now = time.time()
    for path in data.rglob("*.csv"):
        os.utime(path, (now - AGES[path.parent.name] * DAY,) * 2)
    return base


def _show(progress: Progress) -> None:
    if progress.done == progress.total:
        print(f"{progress.stage}: {progress.total:,}", file=sys.stderr)


def _write(data: Path, scale: float) -> None:
    """Tables in a folder for each of their families, Markdown in one, with tags and dates."""
    data.mkdir(parents=True, exist_ok=True)
    large.write(data, times=scale)
    now = time.time()
    for path in list(data.glob("*.csv")):
        family = path.stem.partition("_")[0]
        (data / family).mkdir(exist_ok=True)
        path.replace(data / family / path.name)
        os.utime(data / family / path.name, (now - AGES[family] * DAY,) * 2)
    for path in list(data.glob("*.md")):
        (data / "guides").mkdir(exist_ok=True)
        text = path.read_text(encoding="utf-8")
        (data / "guides" / path.name).write_text(f"---\n{FRONT_MATTER[path.name]}\n---\n{text}", encoding="utf-8")
        path.unlink()


def questions(index: Index, count: int) -> list[Asked]:
    """Questions of 3 to 8 words that some chunk holds, every fourth for an identifier."""
    rng = random.Random(11)
    numbers = index.catalog.chunk_numbers().tolist()
    chosen = index.catalog.chunks(rng.sample(numbers, count))
    texts = index.catalog.chunk_numbers("text").tolist()
    chosen |= index.catalog.chunks(rng.sample(texts, count // 4))
    out = []
    for stored in list(chosen.values())[:count] if count < 8 else rng.sample(list(chosen.values()), count):
        text = stored.chunk.text
        identifier = re.search(r"id: (\S+)", text)
        words = re.findall(r"[A-Za-z]{3,}", re.sub(r"(?m)^\w+: ", "", text))
        start = rng.randrange(max(1, len(words) - 8))
        asked = " ".join(words[start : start + rng.randrange(3, 9)])
        question = f"What is known about {identifier[1]}?" if identifier and len(out) % 4 == 0 else f"Where is {asked}?"
        out.append(Asked(question, random_vector(question)))
    return out


class StockLarge:
    """BM25Retriever with its own tokens and a Chroma retriever in an EnsembleRetriever, k = 5 each, as LangChain's guide has it.

    Filters: Chroma's ``where`` for the one leg; BM25Retriever knows none, so all its hits are ranked and those that do not pass dropped.
    """

    K = 5

    def __init__(self, base: Path) -> None:
        import chromadb
        from chromadb.config import Settings

        self._client = chromadb.PersistentClient(str(base / "stock"), Settings(anonymized_telemetry=False))
        self._collection = self._client.get_or_create_collection("langchain", configuration={"hnsw": {"space": "cosine"}})
        if not (base / "stock-complete").exists():
            self._fill(base)
        self._build()

    def _fill(self, base: Path) -> None:
        """Documents and vectors as ours has them."""
        started = time.perf_counter()
        index = Index(IndexOptions(base / "index", vector_mode="exact"))
        batch: list[Any] = []
        size = self._client.get_max_batch_size()
        for stored in index.catalog.iterate_chunks():
            if stored.chunk.role != "card":
                batch.append(stored)
            if len(batch) == size:
                self._add(batch)
                batch = []
        if batch:
            self._add(batch)
        index.close()
        (base / "stock-complete").write_text("", encoding="utf-8")
        print(f"the stock pipeline's Chroma was filled in {time.perf_counter() - started:.0f} s", file=sys.stderr)

    def _add(self, batch: Sequence[Any]) -> None:
        chunks = [stored.chunk for stored in batch]
        self._collection.upsert(
            ids=[chunk.id for chunk in chunks],
            documents=[chunk.embedding_text for chunk in chunks],
            embeddings=np.array([random_vector(chunk.embedding_text) for chunk in chunks]),
            metadatas=[
                {"id": s.id, "source": s.chunk.source, "folder": s.chunk.source.partition("/")[0], "kind": s.chunk.kind,
                 "tags": " ".join(s.tags), "day": int((s.date or s.modified)[:10].replace("-", ""))}
                for s in batch
            ],
        )  # fmt: skip

    def _build(self) -> None:
        """What every start of such a pipeline does: read all documents, make BM25 from them."""
        import warnings

        warnings.filterwarnings("ignore", message=".*langchain-community.*")
        from langchain_classic.retrievers import EnsembleRetriever
        from langchain_community.retrievers import BM25Retriever
        from langchain_core.documents import Document
        from langchain_core.retrievers import BaseRetriever

        documents: list[Document] = []
        while page := self._collection.get(limit=10_000, offset=len(documents), include=["documents", "metadatas"]):
            documents += [Document(text, metadata=m) for text, m in zip(page["documents"], page["metadatas"], strict=True)]
            if len(page["ids"]) < 10_000:
                break
        self.documents, pipeline = documents, self
        self.vector, self.where, self.passing = np.zeros(DIMENSIONS, np.float32), None, None

        class Dense(BaseRetriever):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                found = pipeline._collection.query(
                    query_embeddings=pipeline.vector[None, :],
                    n_results=pipeline.K,
                    where=pipeline.where,
                    include=["documents", "metadatas"],
                )
                return [Document(text, metadata=m) for text, m in zip(found["documents"][0], found["metadatas"][0], strict=True)]

        class Words(BaseRetriever):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                if pipeline.passing is None:
                    return bm25.invoke(query)
                return [d for d in everything.invoke(query) if d.metadata["source"] in pipeline.passing][: pipeline.K]

        bm25 = BM25Retriever.from_documents(documents, k=self.K)
        everything = BM25Retriever(vectorizer=bm25.vectorizer, docs=bm25.docs, k=len(documents))
        self._ensemble = EnsembleRetriever(retrievers=[Words(), Dense()], weights=[0.5, 0.5], id_key="id")

    def sources(self) -> list[str]:
        return sorted({d.metadata["source"] for d in self.documents})

    def use(self, name: str, passing: list[str]) -> None:
        """Search with one of FILTERS from now on; ``passing``: the sources that pass it."""
        chosen = FILTERS[name]
        self.passing = None if chosen.empty else set(passing)
        if chosen.empty:
            self.where = None
        elif name in ("folder", "kind"):
            self.where = {"folder": chosen.folder} if name == "folder" else {"kind": chosen.kind}
        else:
            self.where = {"source": {"$in": passing}}

    def search(self, asked: Asked) -> list[Any]:
        self.vector = asked.vector
        return self._ensemble.invoke(asked.text)[: self.K]
