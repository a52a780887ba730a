"""Our search as a LangChain retriever: put it wherever LangChain takes one."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from hybrid_rag.filters import Filters
from hybrid_rag.records import Hit, SearchMode
from hybrid_rag.service import Service


class HybridRetriever(BaseRetriever):
    """Searches a service. Each document's metadata says source, kind, title, heading, page, rows, rank, scores; its id is the chunk's."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    service: Service
    k: int = 5
    filters: Filters | None = None
    mode: SearchMode = "hybrid"
    rerank: bool | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        result = self.service.search(query, k=self.k, filters=self.filters, mode=self.mode, rerank=self.rerank)
        return [to_document(hit) for hit in result.hits]


def to_document(hit: Hit) -> Document:
    """A hit as LangChain's document."""
    chunk = hit.chunk
    metadata: dict[str, Any] = {
        "source": chunk.source,
        "kind": chunk.kind,
        "title": chunk.title,
        "heading": " > ".join(chunk.heading),
        "page": chunk.page,
        "rows": list(chunk.rows) if chunk.rows else None,
        "rank": hit.rank,
        "scores": dict(hit.scores),
        "chunk_id": hit.chunk_id,
    }
    return Document(id=hit.chunk_id, page_content=chunk.text, metadata=metadata)
