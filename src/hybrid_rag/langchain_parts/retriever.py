"""Our search as a LangChain retriever, for any chain or agent of LangChain's."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict

from hybrid_rag.filters import Filters
from hybrid_rag.records import Hit, SearchMode


class HybridRetriever(BaseRetriever):
    """The best passages and table rows as Documents.

    ``searcher``: a :class:`~hybrid_rag.service.Service` or a :class:`~hybrid_rag.retrieval.Retriever`. A Document's
    ``page_content`` is the chunk as it is quoted; its ``metadata`` holds id, source, kind, title, heading, page, rows,
    date, tags, rank and scores by stage. ``filters`` act before the cut; so do filters of a call:
    ``retriever.invoke("…", filters=Filters.parse(folder="policies"))``.

    >>> from hybrid_rag import open_service
    >>> HybridRetriever(searcher=open_service(), k=5).invoke("return policy")  # doctest: +SKIP
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    searcher: Any
    k: int = 5
    filters: Filters | None = None
    mode: SearchMode = "hybrid"
    rerank: bool = False

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, filters: Filters | None = None, k: int | None = None
    ) -> list[Document]:
        """Raises InputError for an empty query, IndexError_ for an unusable index."""
        chosen = filters if filters is not None else self.filters
        result = self.searcher.search(query, k=k or self.k, filters=chosen, mode=self.mode, rerank=self.rerank)
        return [to_document(hit) for hit in result.hits]


def to_document(hit: Hit) -> Document:
    """A hit as a LangChain Document; what a chunk does not have (a page, rows …) is left out of the metadata."""
    chunk = hit.chunk
    values = {
        "id": hit.chunk_id,
        "source": chunk.source,
        "kind": chunk.kind,
        "title": chunk.title,
        "heading": list(chunk.heading) or None,
        "page": chunk.page,
        "rows": list(chunk.rows) if chunk.rows else None,
        "date": hit.date,
        "tags": list(hit.tags) or None,
        "rank": hit.rank,
        "scores": dict(hit.scores),
    }
    return Document(page_content=chunk.text, id=hit.chunk_id, metadata={name: value for name, value in values.items() if value is not None})
