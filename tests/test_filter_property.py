"""Never fewer than k results when k exist: generated collections, every selectivity, several filters at once, both legs and engines."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hybrid_rag.filters import Filters
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.langchain_parts.retriever import HybridRetriever
from hybrid_rag.records import DocumentInfo
from hybrid_rag.retrieval import RetrievalOptions, Retriever
from tests.support.embedders import HashEmbedder

WORDS = "apple battery camera delivery engine fabric garden hotel island jacket kettle ladder mirror needle orange paper".split()
TODAY = datetime.now(UTC).date()
embedder = HashEmbedder()
QUERY = "common apple"  # every part and every record holds the first word


@pytest.fixture(scope="module", params=[("tantivy", 1), ("tantivy", 2), ("rank_bm25", 3)], ids=lambda p: f"{p[0]}-{p[1]}")
def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Documents with folders, suffixes, tags and dates drawn at random; some are tables, some have several chunks."""
    engine, seed = request.param
    rng, folder = random.Random(seed), tmp_path_factory.mktemp("filters")
    for i in range(140):
        path = folder / "data" / rng.choice(["a", "a/b", "c", "c/d/e"]) / f"{rng.choice(['note', 'memo', 'report'])}{i:03}.md"
        tags = ", ".join(rng.sample(["red", "green", "blue", "old"], rng.randint(0, 3)))
        date = TODAY - timedelta(days=rng.choice([0, 10, 60, 120, 400, 2000]))
        body = "\n\n".join(f"## Part {n}\n\ncommon {' '.join(rng.choices(WORDS, k=12))}" for n in range(rng.choice([1, 1, 1, 4])))
        _write(path, f"---\ntags: [{tags}]\ndate: {date}\n---\n{body}\n")
    for i in range(8):
        rows = "".join(f"R{i}-{n},common {' '.join(rng.choices(WORDS, k=5))}\n" for n in range(rng.choice([3, 40])))
        path = folder / "data" / rng.choice(["a", "c"]) / f"table{i}.csv"
        _write(path, f"id,words\n{rows}")
        age = rng.choice([1, 80, 500]) * 86_400
        os.utime(path, (time.time() - age,) * 2)
    made = Index(IndexOptions(folder / "index", lexical_engine=engine), create=True)
    ingest(made, IngestOptions(folder / "data", workers=1), embedder=lambda: embedder)
    yield made
    made.close()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def searcher(index: Index, **options: object) -> Retriever:
    return Retriever(index, lambda: embedder, lambda: None, RetrievalOptions(candidates=10, **options))  # type: ignore[arg-type]


def drawn(rng: random.Random, documents: list[DocumentInfo]) -> Filters:
    """One to all conditions at once, of every kind that there is."""
    offers = {
        "folder": lambda: rng.choice(["a", "a/b", "c", "c/d"]),
        "glob": lambda: rng.choice(["*.md", "note*", "a/**/*.md", "table*.csv", "**/*1*.md"]),
        "kind": lambda: rng.choice(["table", "text"]),
        "tags": lambda: rng.choice(["red", "red or blue", "not old", "green and not old", "red and (blue or green)"]),
        "since": lambda: str(TODAY - timedelta(days=rng.choice([5, 200, 3000]))),
        "until": lambda: str(TODAY - timedelta(days=rng.choice([0, 4]))),
        "recent": lambda: rng.choice(["30d", "90d", "3y"]),
        "sources": lambda: tuple(d.source for d in rng.sample(documents, rng.choice([1, 2, 20, 70, len(documents)]))),
    }
    chosen = rng.sample(sorted(offers), rng.choice([1, 1, 2, 2, 3, 4]))
    return Filters.parse(**{name: offers[name]() for name in chosen})


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "dense"])
def test_every_selectivity_from_one_document_to_all(index: Index, mode: str) -> None:
    documents = index.catalog.documents()
    rng, search = random.Random(5), searcher(index)
    for passing in (1, 2, 3, 7, 20, 70, 130, len(documents) - 1, len(documents)):
        chosen = rng.sample(documents, passing)
        filters = Filters(sources=tuple(d.source for d in chosen))
        exist = sum(mode != "keyword" or "common" in s.chunk.text for d in chosen for s in index.catalog.document_chunks(d.source))
        for k in (1, 4, 25, 60):
            hits = search.search(QUERY, k=k, filters=filters, mode=mode).hits  # type: ignore[arg-type]
            assert min(k, exist) <= len(hits) <= k
            assert {h.source for h in hits} <= set(filters.sources)


@pytest.mark.parametrize("fusion", ["weighted", "rrf", "classic"])
def test_several_filters_at_once(index: Index, fusion: str) -> None:
    documents = index.catalog.documents()
    rng, search = random.Random(6), searcher(index, fusion=fusion)
    seen = set()
    for _ in range(60):
        filters = drawn(rng, documents)
        chosen = [d for d in documents if filters.matches(d)]
        seen.add(len(chosen))
        k = rng.choice([1, 5, 12])
        hits = search.search(QUERY, k=k, filters=filters).hits
        assert len(hits) == min(k, sum(d.chunks for d in chosen))
        assert {h.source for h in hits} <= {d.source for d in chosen}
    assert len(seen) > 15  # the filters let through many different numbers of documents


def test_kinds_searched_together_keep_to_the_filters_too(index: Index) -> None:
    documents = index.catalog.documents()
    rng, search = random.Random(7), searcher(index, separate=False)
    for _ in range(20):
        filters = drawn(rng, documents)
        chosen = [d for d in documents if filters.matches(d)]
        hits = search.search(QUERY, k=9, filters=filters).hits
        assert len(hits) == min(9, sum(d.chunks for d in chosen))
        assert {h.source for h in hits} <= {d.source for d in chosen}


def test_the_langchain_retriever_keeps_to_them_as_well(index: Index) -> None:
    documents = index.catalog.documents()
    rng, search = random.Random(8), HybridRetriever(searcher=searcher(index), k=6)
    for _ in range(30):
        filters = drawn(rng, documents)
        chosen = [d for d in documents if filters.matches(d)]
        found = search.invoke(QUERY, filters=filters)
        assert len(found) == min(6, sum(d.chunks for d in chosen))
        assert {d.metadata["source"] for d in found} <= {d.source for d in chosen}


def test_a_filter_changes_no_order_among_what_passes_in_the_keyword_leg(index: Index) -> None:
    documents = index.catalog.documents()
    rng, search = random.Random(9), Retriever(index, lambda: None, lambda: None, RetrievalOptions(candidates=1000, separate=False))
    everything = [h.chunk_id for h in search.search(QUERY, k=1000, mode="keyword").hits]
    for _ in range(20):
        filters = drawn(rng, documents)
        found = search.search(QUERY, k=1000, mode="keyword", filters=filters).hits
        passing = {d.source for d in documents if filters.matches(d)}
        sources = {h.chunk_id: h.source for h in found}
        assert [h.chunk_id for h in found] == [i for i in everything if i in sources]
        assert set(sources.values()) <= passing


def test_hits_that_are_gone_from_the_catalog_are_made_up_for(index: Index) -> None:
    """While another process removes documents the legs still give their chunks; others take the places."""
    full = searcher(index).search(QUERY, k=40).hits
    search = Retriever(index, lambda: embedder, lambda: None, RetrievalOptions(candidates=200, cache_entries=0))
    gone = {h.chunk_id for h in full[:30]}
    whole = index.catalog.chunks
    try:
        index.catalog.chunks = lambda numbers: {n: s for n, s in whole(numbers).items() if s.id not in gone}  # type: ignore[method-assign]
        hits = search.search(QUERY, k=5).hits
    finally:
        del index.catalog.chunks
    assert len(hits) == 5
    assert not gone & {h.chunk_id for h in hits}
