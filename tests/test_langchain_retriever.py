"""The search as a LangChain retriever, alone and inside LangChain's own parts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from langchain_core.runnables import RunnableLambda

from hybrid_rag.errors import InputError
from hybrid_rag.filters import Filters
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.langchain_parts.retriever import HybridRetriever
from hybrid_rag.retrieval import RetrievalOptions, Retriever
from tests.support.embedders import HashEmbedder

FILES = {
    "policies/returns.md": "---\ntags: [policy]\ndate: 2025-02-01\n---\n# Returns\n\n## Window\n\nHeadphones can be returned for fourteen days.",
    "notes.txt": "A note about headphones.",
    "stock.csv": "sku,name\nHP-1,headphones\nHP-2,cable\n",
}


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    folder = tmp_path_factory.mktemp("langchain")
    for name, text in FILES.items():
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    index = Index(IndexOptions(folder / "index"), create=True)
    model = HashEmbedder()
    ingest(index, IngestOptions(folder / "data", workers=1), embedder=lambda: model)
    yield Retriever(index, lambda: model, lambda: None, RetrievalOptions())
    index.close()


def test_documents_hold_the_text_and_where_it_stands(searcher: Retriever) -> None:
    first = HybridRetriever(searcher=searcher, k=2).invoke("returned for fourteen days")[0]
    assert first.page_content.endswith("Headphones can be returned for fourteen days.")
    assert first.id == first.metadata["id"]
    assert first.metadata["source"] == "policies/returns.md"
    assert first.metadata["heading"] == ["Returns", "Window"]
    assert first.metadata["tags"] == ["policy"]
    assert first.metadata["date"] == "2025-02-01"
    assert first.metadata["rank"] == 1
    assert {"bm25", "cosine", "weighted"} <= set(first.metadata["scores"])
    assert "page" not in first.metadata
    assert "rows" not in first.metadata


def test_table_rows_are_named(searcher: Retriever) -> None:
    first = HybridRetriever(searcher=searcher, k=1).invoke("HP-2")[0]
    assert first.metadata["kind"] == "table"
    assert first.metadata["rows"] == [1, 2]


def test_filters_of_the_retriever_and_of_a_call(searcher: Retriever) -> None:
    texts = HybridRetriever(searcher=searcher, k=5, filters=Filters.parse(kind="text"))
    assert {d.metadata["source"] for d in texts.invoke("headphones")} == {"policies/returns.md", "notes.txt"}
    assert {d.metadata["source"] for d in texts.invoke("headphones", filters=Filters.parse(folder="policies"))} == {"policies/returns.md"}
    assert len(texts.invoke("headphones", k=1)) == 1


def test_it_composes_and_runs_asynchronously(searcher: Retriever) -> None:
    chain = HybridRetriever(searcher=searcher, k=1) | RunnableLambda(lambda found: found[0].metadata["source"])
    assert chain.invoke("fourteen days") == "policies/returns.md"
    assert asyncio.run(chain.ainvoke("fourteen days")) == "policies/returns.md"
    assert chain.batch(["fourteen days", "HP-1"]) == ["policies/returns.md", "stock.csv"]


def test_it_is_a_part_of_langchains_ensemble(searcher: Retriever) -> None:
    ensemble = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic is not installed").EnsembleRetriever
    one = HybridRetriever(searcher=searcher, k=3)
    found = ensemble(retrievers=[one, one], weights=[0.5, 0.5], id_key="id").invoke("headphones")
    assert [d.id for d in found] == [d.id for d in one.invoke("headphones")]


def test_an_empty_query_is_an_error_and_no_empty_answer(searcher: Retriever) -> None:
    with pytest.raises(InputError):
        HybridRetriever(searcher=searcher).invoke("  ")
