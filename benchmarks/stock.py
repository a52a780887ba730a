"""What people build from LangChain's own parts, over the same chunks and vectors: the pipeline ours is measured beside."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hybrid_rag.embedding import Embedder
from hybrid_rag.index import Index
from hybrid_rag.records import KINDS, Chunk


class StockPipeline:
    """BM25Retriever with its own tokens (``text.split()``), an exact vector retriever, and EnsembleRetriever at its defaults."""

    def __init__(self, index: Index, chunks: list[Chunk], embedder: Embedder, *, k: int) -> None:
        warnings.filterwarnings("ignore", message=".*langchain-community.*")
        from langchain_classic.retrievers import EnsembleRetriever
        from langchain_community.retrievers import BM25Retriever
        from langchain_core.documents import Document
        from langchain_core.retrievers import BaseRetriever

        documents = [Document(chunk.embedding_text, metadata={"id": chunk.id}) for chunk in chunks]
        self._chunks = {chunk.id: chunk for chunk in chunks}
        by_id = {document.metadata["id"]: document for document in documents}
        rows = [index.catalog.vectors(index.fingerprint, kind) for kind in KINDS]
        numbers = np.concatenate([n for n, _ in rows])
        vectors = np.concatenate([v for n, v in rows if len(n)])
        ids = {n: stored.id for n, stored in index.catalog.chunks(numbers.tolist()).items()}

        class Dense(BaseRetriever):
            def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
                best = np.argsort(-(vectors @ embedder.embed_query(query)), kind="stable")[:k]
                return [by_id[ids[int(numbers[i])]] for i in best]

        self._bm25 = BM25Retriever.from_documents(documents, k=k)
        self._ensemble = EnsembleRetriever(retrievers=[self._bm25, Dense()], weights=[0.5, 0.5], id_key="id")

    def keyword(self, text: str) -> list[Chunk]:
        return [self._chunks[d.metadata["id"]] for d in self._bm25.invoke(text)]

    def hybrid(self, text: str) -> list[Chunk]:
        return [self._chunks[d.metadata["id"]] for d in self._ensemble.invoke(text)]
