from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import pytest

from hybrid_rag.errors import InputError
from hybrid_rag.filters import Filters
from hybrid_rag.fusion import fuse, fuse_classic, places
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.retrieval import RetrievalOptions, Retriever
from tests.support.embedders import HashEmbedder

WORDS = "apple battery camera delivery engine fabric garden hotel island jacket kettle ladder mirror needle orange paper".split()
embedder = HashEmbedder()


def make(folder: Path, files: dict[str, str]) -> Index:
    root = folder / "data"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    index = Index(IndexOptions(folder / "index"), create=True)
    ingest(index, IngestOptions(root, workers=1), embedder=lambda: embedder)
    return index


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory):
    rng = random.Random(3)
    files = {
        f"d{i % 7}/n{i}.md": f"---\ntags: [t{i % 5}, all]\ndate: 2024-{i % 12 + 1:02d}-01\n---\n# Note {i}\n\n{' '.join(rng.choices(WORDS, k=30))}"
        for i in range(120)
    }
    rows = "\n".join(f"SKU-{1000 + i},{rng.choice(WORDS)} {rng.choice(WORDS)},{i}" for i in range(300))
    files["tables/stock.csv"] = f"sku,name,amount\n{rows}\n"
    files |= {f"zircon{i}.md": f"# Zirconium {i}\n\nRings of zirconium are kept in drawer {i}." for i in range(6)}
    files["tables/rings.csv"] = "ring,material\n" + "".join(f"R-{i},zirconium rings {i}\n" for i in range(60))
    files["policy.md"] = "# Return policy\n\nThe return window for opened headphones is fourteen days. Überprüfung in 東京都."
    made = make(tmp_path_factory.mktemp("retrieval"), files)
    yield made
    made.close()


def retriever(index: Index, model: HashEmbedder | None = embedder, **options) -> Retriever:
    return Retriever(index, lambda: model, lambda: None, RetrievalOptions(**options))


def test_an_identifier_comes_first_whichever_kind_it_is_in(index: Index) -> None:
    hit = retriever(index).search("Where is SKU-1234?", k=5).hits[0]
    assert "SKU-1234" in hit.chunk.text
    assert hit.chunk.kind == "table"


def test_a_question_for_text_has_its_section_first(index: Index) -> None:
    assert retriever(index).search("return window for opened headphones", k=5).hits[0].source == "policy.md"


def test_both_kinds_have_their_places_when_both_match(index: Index) -> None:
    kinds = [hit.chunk.kind for hit in retriever(index).search("zirconium rings", k=5).hits]
    assert sorted(kinds) == ["table", "table", "text", "text", "text"]


@pytest.mark.parametrize("fusion", ["weighted", "classic"])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_never_more_than_k_and_no_chunk_twice(index: Index, fusion: str, k: int) -> None:
    options = {"keyword_search_k": 30, "vector_search_k": 30} if fusion == "classic" else {}
    hits = retriever(index, fusion=fusion, **options).search("apple battery camera", k=k).hits
    assert len(hits) == k
    assert len({hit.chunk_id for hit in hits}) == k
    assert [hit.rank for hit in hits] == list(range(1, k + 1))


@pytest.mark.parametrize(
    "filters",
    [
        Filters(folder="d3"), Filters(glob="n1*.md"), Filters(kind="table"), Filters(kind="text"), Filters(tags="t1 and all"), Filters(tags="not t1"),
        Filters(since="2024-06-01", until="2024-09-30"), Filters(folder="d1", tags="t2"), Filters(sources=("d0/n0.md",)), Filters(sources=("d0/n0.md", "policy.md")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["hybrid", "keyword", "dense"])
def test_filters_act_before_the_cut(index: Index, filters: Filters, mode: str) -> None:
    """With k above all that pass, exactly those are found that a search without filters would keep."""
    found = retriever(index, candidates=2000).search(" ".join(WORDS), k=1000, filters=filters, mode=mode).hits
    passing = {d.source for d in index.catalog.documents() if filters.matches(d)}
    assert {hit.source for hit in found} <= passing
    few = retriever(index).search(" ".join(WORDS), k=3, filters=filters, mode=mode).hits
    assert len(few) == min(3, len(found))
    everything = retriever(index, candidates=2000).search(" ".join(WORDS), k=1000, mode=mode).hits
    assert {h.chunk_id for h in found} == {h.chunk_id for h in everything if h.source in passing}


def test_a_filter_that_nothing_passes_gives_nothing(index: Index) -> None:
    assert retriever(index).search("apple", k=5, filters=Filters(folder="none")).hits == ()


def test_quoted_words_must_occur(index: Index) -> None:
    hits = retriever(index).search('"opened headphones"', k=5).hits
    assert [hit.source for hit in hits] == ["policy.md"]
    assert retriever(index).search('"headphones opened"', k=5).hits == ()


@pytest.mark.parametrize("query", ["Überprüfung", unicodedata.normalize("NFD", "Überprüfung"), "uberprufung", "東京"])
def test_accents_forms_and_scripts(index: Index, query: str) -> None:
    assert retriever(index).search(query, k=1, mode="keyword").hits[0].source == "policy.md"


@pytest.mark.parametrize("query", ["🔥", "a" * 9000, "\ud800", "()", "NOT", '"', "SELECT * FROM x; --", "../../etc/passwd", "\0"])
def test_any_query_gives_results_or_none(index: Index, query: str) -> None:
    retriever(index).search(query, k=3)


@pytest.mark.parametrize("query", ["", "  \n", "x" * 10_001])
def test_what_is_no_query_is_said(index: Index, query: str) -> None:
    with pytest.raises(InputError):
        retriever(index).search(query, k=3)


def test_without_an_embedder_words_are_enough_and_it_is_said(index: Index) -> None:
    result = retriever(index, None).search("return window", k=3)
    assert result.mode == "keyword"
    assert result.notes
    assert result.hits[0].source == "policy.md"


def test_the_same_index_gives_the_same_results(index: Index) -> None:
    one, two = (retriever(index).search("apple garden", k=10) for _ in range(2))
    assert [h.chunk_id for h in one.hits] == [h.chunk_id for h in two.hits]


def test_scores_are_named_by_their_stage_and_explained(index: Index) -> None:
    hit = retriever(index).search("return window", k=1, explain=True).hits[0]
    assert {"bm25", "cosine", "weighted"} <= set(hit.scores)
    assert hit.terms == ("return", "window")
    assert "bm25" in hit.explanation
    assert "evidence" in hit.explanation


def test_a_repeated_search_comes_from_the_cache_until_the_index_changes(tmp_path: Path) -> None:
    index = make(tmp_path, {"a.txt": "alpha"})
    search = retriever(index)
    assert not search.search("alpha", k=1).cached
    assert search.search("alpha", k=1).cached
    assert not search.search("alpha", k=2).cached
    (tmp_path / "data" / "b.txt").write_text("alpha alpha", encoding="utf-8")
    ingest(index, IngestOptions(tmp_path / "data", workers=1), embedder=lambda: embedder)
    fresh = search.search("alpha", k=5)
    assert not fresh.cached
    assert len(fresh.hits) == 2
    index.close()


def test_newer_documents_are_preferred_when_wanted(tmp_path: Path) -> None:
    files = {f"{year}.md": f"---\ndate: {year}-01-01\n---\nbattery recall notice" for year in (2001, 2015, 2025)}
    index = make(tmp_path, files)
    hits = retriever(index, recency_half_life_days=365).search("battery recall", k=3).hits
    assert hits[0].source == "2025.md"
    index.close()


def test_neighbours_join_without_counting_twice(tmp_path: Path) -> None:
    text = " ".join(f"Sentence number {i} is here." for i in range(200))
    index = make(tmp_path, {"a.txt": text})
    search = retriever(index)
    chunk = search.search("Sentence number 100", k=1).hits[0].chunk
    joined = search.neighbours(chunk, 1)
    assert joined.text == text[joined.start : joined.end]
    assert chunk.text in joined.text
    assert len(joined.text) > 2 * len(chunk.text)
    index.close()


# ---------------------------------------------------------------- fusion


def test_reciprocal_ranks() -> None:
    assert fuse([["a", "b"], ["b"]], [0.5, 0.5], k=10) == [("b", 0.5 / 12 + 0.5 / 11), ("a", 0.5 / 11)]
    assert fuse([["b"], ["a"]], [0.5, 0.5], k=10)[0][0] == "a"  # ties by the item
    assert fuse([["a"], ["b"]], [1.0, 0.0], k=10) == [("a", 1 / 11)]


def test_classic_ties_keep_the_order_of_appearance() -> None:
    assert [item for item, _ in fuse_classic([["b"], ["a"]], [0.5, 0.5])] == ["b", "a"]


@pytest.mark.parametrize("seed", range(20))
def test_classic_equals_langchains_ensemble(seed: int) -> None:
    ensemble = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic is not installed").EnsembleRetriever
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Fixed(BaseRetriever):
        found: list[str]

        def _get_relevant_documents(self, query: str, *, run_manager) -> list[Document]:
            return [Document(page_content=x, metadata={"id": x}) for x in self.found]

    rng = random.Random(seed)
    items = [f"x{i}" for i in range(12)]
    lists = [rng.sample(items, rng.randrange(0, 8)) for _ in range(4)]
    inner = [ensemble(retrievers=[Fixed(found=a), Fixed(found=b)], weights=[0.5, 0.5], id_key="id") for a, b in (lists[:2], lists[2:])]
    outer = ensemble(retrievers=inner, weights=[0.4, 0.6], id_key="id")
    ours_inner = [[i for i, _ in fuse_classic(pair, [0.5, 0.5])] for pair in (lists[:2], lists[2:])]
    ours = [i for i, _ in fuse_classic(ours_inner, [0.4, 0.6])]
    assert ours == [d.metadata["id"] for d in outer.invoke("q")]


@pytest.mark.parametrize(
    ("strengths", "expected"),
    [
        ({"table": 1.0, "text": 1.0}, {"table": 2, "text": 3}),
        ({"table": 1.0, "text": 0.1}, {"table": 5, "text": 0}),
        ({"table": 0.1, "text": 1.0}, {"table": 0, "text": 5}),
    ],
)
def test_places(strengths: dict[str, float], expected: dict[str, int]) -> None:
    got = places(strengths, {"table": 0.4, "text": 0.6}, {"table": 9, "text": 9}, 5)
    assert {kind: got.count(kind) for kind in expected} == expected


def test_a_weak_kind_fills_up_when_the_strong_one_has_no_more() -> None:
    assert places({"table": 1.0, "text": 0.1}, {"table": 0.4, "text": 0.6}, {"table": 1, "text": 9}, 4) == ["table", "text", "text", "text"]


def test_a_kind_of_weight_zero_gets_no_place() -> None:
    assert places({"table": 1.0, "text": 0.5}, {"table": 0.0, "text": 1.0}, {"table": 9, "text": 9}, 2) == ["text", "text"]
