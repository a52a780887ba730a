"""Search over a real index: places, filters, quoted words, hostile input, caches, age, fall-backs."""

from __future__ import annotations

import os
import random
import threading
import time
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hybrid_rag import ranking
from hybrid_rag.errors import InputError
from hybrid_rag.filters import Filters
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.retrieval import RetrievalOptions, Retriever
from tests.support.embedders import HashEmbedder

WORDS = "apple battery camera delivery engine fabric garden hotel island jacket kettle ladder mirror needle orange paper".split()
embedder = HashEmbedder()


def make(folder: Path, files: dict[str, str], **options: object) -> Index:
    root = folder / "data"
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    index = Index(IndexOptions(folder / "index", **options), create=True)
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


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_a_key_of_several_tables_is_looked_up_in_the_one_that_the_question_names(tmp_path: Path, fusion: str) -> None:
    """The stock of an article fills three rows of the other table: more of its words, but not what was asked."""
    articles = "sku,name\n" + "".join(f"ZX-{n},Lamp {n}\n" for n in range(4000, 4060))
    stock = "sku,name,place\n" + "".join(f"ZX-{n},Lamp {n},{place}\n" for n in range(4000, 4060) for place in "ABC")
    index = make(tmp_path, {"articles.csv": articles, "stock levels.csv": stock, "note.md": "# Note\n\nThe article ZX-4711 is lost."})
    search = retriever(index, fusion=fusion).search

    def order(query: str) -> list[str]:
        return [hit.source for hit in search(query, k=8).hits if "ZX-4033" in hit.chunk.text]

    assert order("Which article has the number ZX-4033?")[0] == "articles.csv"
    assert order("At which places is there stock of ZX-4033?")[0] == "stock levels.csv"
    assert sorted(order("Which article has the number ZX-4033?")) == sorted(order("ZX-4033"))
    moved = [hit for hit in search("Which article has the number ZX-4033?", k=8).hits if "named" in hit.scores]
    assert [hit.ranks["named"] for hit in moved] == list(range(1, len(moved) + 1))
    index.close()


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "dense"])
def test_both_legs_at_a_time_find_the_same(index: Index, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in large collections; also when the vectors cannot be searched, which is said as it is in turn."""
    rng, chosen = random.Random(2), [Filters(), Filters.parse(folder="d1"), Filters.parse(kind="text"), Filters.parse(tags="t1 or t2")]
    asked = [(" ".join(rng.choices(WORDS, k=3)), rng.choice(chosen)) for _ in range(12)] + [('"return window"', Filters())]

    def found() -> list[list[tuple[str, dict]]]:
        search = retriever(index, cache_entries=0).search
        return [[(h.chunk_id, h.scores) for h in search(text, k=7, filters=f, mode=mode).hits] for text, f in asked]  # type: ignore[arg-type]

    in_turn = found()
    monkeypatch.setattr(ranking, "LARGE", 0)
    assert found() == in_turn
    if mode == "hybrid":
        monkeypatch.setattr(Index, "search_vectors", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            retriever(index, cache_entries=0).search("apple", k=3)


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


@pytest.mark.parametrize(
    "query",
    ["🔥", "a" * 9000, "\ud800", "a\udfffb", "()", "...!?", "NOT", "the of and", '"', '""', "SELECT * FROM x; --", "../../etc/passwd", "\0", "a\0b",
     "\u202e\u0000\ufeff", "[" * 3000, "apple " * 1600, "e\u0301" * 500],
)  # fmt: skip
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


def test_neighbours_of_several_hits_stand_once(tmp_path: Path) -> None:
    """Hits side by side share neighbours, and each other: every part of the document is given once, beside what chunks share by themselves."""
    text = " ".join(f"Sentence number {i} is here." for i in range(400))
    index = make(tmp_path, {"a.txt": text, "b.txt": "Sentence of another document.", "t.csv": "id,word\n1,Sentence\n"})
    search = retriever(index)
    pieces = [s.chunk for s in index.catalog.document_chunks("a.txt")]
    rng = random.Random(4)
    for _ in range(40):
        hits = rng.sample(pieces, rng.randint(2, 6))
        n = rng.randint(1, 3)
        joined = search.windows(hits, n)
        for hit, window in zip(hits, joined, strict=True):
            assert hit.text in window.text
            assert window.text == text[window.start : window.end]
        own = sum(len(hit.text) for hit in hits)
        spans = [range(w.start, w.end) for w in joined]
        shared = sum(map(len, spans)) - len(set().union(*spans))
        of_hits = sum(h.end - h.start for h in hits) - len(set().union(*(range(h.start, h.end) for h in hits)))
        assert shared == of_hits
        assert set().union(*spans) == set().union(*(range(w.start, w.end) for w in (search.neighbours(h, n) for h in hits)))
        assert sum(len(w.text) for w in joined) >= own
    others = [s.chunk for name in ("b.txt", "t.csv") for s in index.catalog.document_chunks(name)]
    assert search.windows(others, 2) == others
    index.close()


def test_age_counts_less_than_relevance(tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    files = {
        "old.md": f"---\ndate: {today - timedelta(days=4000)}\n---\nbattery recall notice for the battery recall",
        "new.md": f"---\ndate: {today}\n---\na garden party, and one battery",
    }
    index = make(tmp_path, files)
    result = retriever(index, recency_half_life_days=30).search("battery recall notice", k=2)
    assert result.hits[0].source == "old.md"
    assert {"recency", "weighted"} <= set(result.hits[0].scores)
    index.close()


def test_age_decides_between_equals(tmp_path: Path) -> None:
    files = {f"f{i}/notice.txt": "battery recall notice" for i in range(5)}
    for i, name in enumerate(files):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True)
        path.write_text(files[name], encoding="utf-8")
        os.utime(path, (time.time() - 86_400 * 100 * (5 - i),) * 2)
    index = Index(IndexOptions(tmp_path / "index"), create=True)
    ingest(index, IngestOptions(tmp_path / "data", workers=1), embedder=lambda: embedder)
    plain = retriever(index).search("battery", k=5).hits
    aged = retriever(index, recency_half_life_days=100).search("battery", k=5).hits
    assert [h.source for h in plain] == list(files)
    assert [h.source for h in aged] == list(files)[::-1]
    assert [h.ranks["recency"] for h in aged] == [1, 2, 3, 4, 5]
    index.close()


def test_the_same_text_in_two_files_stays_two_hits_that_know_of_each_other(tmp_path: Path) -> None:
    index = make(tmp_path, {"a.txt": "one notice for all", "b.txt": "one notice for all", "c.txt": "another notice"})
    hits = {h.source: h for h in retriever(index).search("notice for all", k=3).hits}
    assert set(hits) == {"a.txt", "b.txt", "c.txt"}
    assert (hits["a.txt"].same_text, hits["b.txt"].same_text, hits["c.txt"].same_text) == (("b.txt",), ("a.txt",), ())
    index.close()


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "dense"])
@pytest.mark.parametrize("fusion", ["weighted", "rrf", "classic"])
def test_quoted_words_must_occur_in_every_mode_and_fusion(index: Index, mode: str, fusion: str) -> None:
    search = retriever(index, fusion=fusion)
    assert {h.source for h in search.search('"opened headphones" window', k=5, mode=mode).hits} == {"policy.md"}  # type: ignore[arg-type]
    nothing = search.search('"opened headphone"', k=5, mode=mode)  # type: ignore[arg-type]
    assert nothing.hits == ()
    assert "quoted" in nothing.notes[-1]


def test_why_there_is_nothing_is_said(index: Index) -> None:
    search = retriever(index)
    assert "filters" in search.search("apple", k=3, filters=Filters(folder="none")).notes[-1]
    assert "words" in search.search("🔥", k=3, mode="keyword").notes[-1]
    assert "matches" in search.search("xylophone", k=3, mode="keyword").notes[-1]


def test_no_hit_scores_zero(index: Index) -> None:
    for hit in retriever(index).search("sku-1001 zirconium apple", k=200, mode="keyword").hits:
        assert hit.scores["bm25"] > 0
        assert hit.terms or hit.rank > 10


@pytest.mark.parametrize("k", [0, -1, 1001])
def test_a_number_of_results_out_of_bounds_is_said(index: Index, k: int) -> None:
    with pytest.raises(InputError, match=f"{k:,}"):
        retriever(index).search("apple", k=k)


def test_only_one_leg_when_the_other_is_switched_off(index: Index) -> None:
    words = retriever(index, vector_search_k=0).search("apple", k=3)
    meaning = retriever(index, keyword_search_k=0).search("apple", k=3)
    assert words.mode == "keyword"
    assert all("cosine" not in h.scores for h in words.hits)
    assert all("bm25" not in h.scores for h in meaning.hits)
    assert len(words.hits) == len(meaning.hits) == 3


def test_kinds_searched_together_make_one_ranking(index: Index) -> None:
    hits = retriever(index, separate=False).search("zirconium rings", k=8).hits
    scores = [h.scores["weighted"] for h in hits]
    assert scores == sorted(scores, reverse=True)
    assert {h.chunk.kind for h in hits} == {"table", "text"}


def test_a_given_vector_is_used_and_not_cached(index: Index) -> None:
    search = retriever(index, None)
    result = search.search("apple", k=3, mode="dense", vector=embedder.embed_query("return window for opened headphones"))
    assert result.mode == "dense"
    assert result.hits[0].source == "policy.md"
    assert not search.search("apple", k=3, mode="dense", vector=embedder.embed_query("zirconium")).cached


def test_a_cached_result_is_the_same_and_says_so(index: Index) -> None:
    search = retriever(index)
    first, again = (search.search("apple", k=3, filters=Filters(kind="text")) for _ in range(2))
    assert (first.cached, again.cached) == (False, True)
    assert replace(again, cached=False, milliseconds={}) == replace(first, milliseconds={})
    assert not search.search("apple", k=3, filters=Filters(kind="table")).cached
    assert not retriever(index, cache_entries=0).search("apple", k=3).cached


def test_the_query_is_embedded_once(index: Index) -> None:
    class Counting(HashEmbedder):
        asked = 0

        def embed_query(self, text: str):
            self.asked += 1
            return super().embed_query(text)

    model = Counting()
    search = retriever(index, model)
    for k in range(1, 6):
        search.search("apple garden", k=k)
    assert model.asked == 1


def test_a_failing_embedder_leaves_keywords_and_is_named(index: Index) -> None:
    result = retriever(index, HashEmbedder(fails=("apple",))).search("apple", k=3)
    assert result.mode == "keyword"
    assert result.hits
    assert "the test says so" in result.notes[0]


def test_what_a_failing_embedder_left_is_not_kept(index: Index) -> None:
    model = HashEmbedder(fails=("apple",))
    search = retriever(index, model)
    assert search.search("apple", k=3).mode == "keyword"
    model.fails = ()
    assert search.search("apple", k=3).mode == "hybrid"


def test_a_search_waits_only_so_long_for_an_embedder_on_a_server(tmp_path: Path) -> None:
    gate = threading.Event()

    class Server(HashEmbedder):
        asked = 0

        def embed_query(self, text: str):
            self.asked += 1
            assert gate.wait(60)
            return super().embed_query(text)

    model = Server("ollama:slow")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.md").write_text("# A\n\nan apple", encoding="utf-8")
    index = Index(IndexOptions(tmp_path / "index"), create=True)
    ingest(index, IngestOptions(tmp_path / "data", workers=1), embedder=lambda: model)
    search = retriever(index, model, remote_seconds=0.05)
    for query in ("apple", "an apple", "apple"):
        result = search.search(query, k=1)
        assert (result.mode, len(result.hits)) == ("keyword", 1)
        assert "takes longer than 0.05 s" in result.notes[0]
    assert model.asked == 1  # no queue is built up behind the one that is late
    gate.set()
    for _ in range(100):
        if (result := search.search("apple", k=1)).mode == "hybrid":
            break
        time.sleep(0.05)
    assert result.mode == "hybrid"
    index.close()


def test_another_embedder_is_not_mixed_in(index: Index) -> None:
    result = retriever(index, HashEmbedder("bundled:other")).search("apple", k=3)
    assert result.mode == "keyword"
    assert embedder.name in result.notes[0]


class Reversing:
    """A cross-encoder that likes what holds its word."""

    name = "test:word"

    def __init__(self, word: str) -> None:
        self.word, self.pairs = word, 0

    def score(self, query: str, texts):
        import numpy as np

        self.pairs += len(texts)
        return np.array([9.0 if self.word in text else -9.0 for text in texts], np.float32)


def test_the_cross_encoder_moves_what_it_likes_and_sees_few(index: Index) -> None:
    plain = retriever(index).search("zirconium rings", k=5)
    word = f"drawer {next(h for h in plain.hits[1:] if h.chunk.kind == 'text').chunk.text.split('drawer ')[1]}"
    judge = Reversing(word)
    search = Retriever(index, lambda: embedder, lambda: judge, RetrievalOptions(rerank_top=6))
    result = search.search("zirconium rings", k=5, rerank=True)
    assert result.reranked
    assert judge.pairs == 6
    liked = next(h for h in result.hits if word in h.chunk.text)
    assert liked.ranks["rerank"] == 1
    assert liked.scores["rerank"] == 9.0
    assert [h.ranks["mixed"] for h in result.hits] == [h.rank for h in result.hits]
    mixed = [h.scores["mixed"] for h in result.hits]
    assert mixed == sorted(mixed, reverse=True)
    assert liked.rank < next(h.rank for h in plain.hits if word in h.chunk.text)
    assert not search.search("zirconium rings", k=5).reranked
    assert not retriever(index).search("zirconium rings", k=5, rerank=True).reranked  # there is no cross-encoder


@pytest.mark.parametrize("mode", ["hybrid", "dense"])
@pytest.mark.parametrize("seed", range(3))
def test_never_fewer_than_k_when_k_pass(tmp_path: Path, seed: int, mode: str) -> None:
    """Every selectivity from one document to all: each passing chunk has a vector, so each can be found."""
    rng = random.Random(seed)
    files = {f"f{i % 4}/n{i:03}.txt": " ".join(rng.choices(WORDS, k=12)) for i in range(90)}
    index = make(tmp_path, files)
    sources = sorted(files)
    for passing in (1, 2, 5, 20, 60, 89, 90):
        filters = Filters(sources=tuple(rng.sample(sources, passing)))
        for k in (1, 5, 30):
            hits = retriever(index, candidates=10).search("apple hotel", k=k, filters=filters, mode=mode).hits
            assert len(hits) == min(k, passing)
            assert {h.source for h in hits} <= set(filters.sources)
    index.close()


@pytest.mark.parametrize("seed", range(4))
def test_classic_is_langchains_nested_ensemble(tmp_path: Path, seed: int) -> None:
    """A generated corpus of both kinds, the same tokens, the same vectors, `id_key`, cut to k."""
    ensemble = pytest.importorskip("langchain_classic.retrievers", reason="langchain-classic is not installed").EnsembleRetriever
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    rng = random.Random(seed)
    files = {f"n{i}.txt": " ".join(rng.choices(WORDS, k=rng.randint(5, 60))) for i in range(60)}
    files["t.csv"] = "name,words\n" + "".join(f"r{i},{' '.join(rng.choices(WORDS, k=rng.randint(5, 60)))}\n" for i in range(300))
    index = make(tmp_path, files, lexical_engine="rank_bm25")
    stored = list(index.catalog.iterate_chunks())

    class Keyword(BaseRetriever):
        """As BM25Retriever: the n best by rank_bm25 over our tokens (which drops what scores zero)."""

        kind: str

        def _get_relevant_documents(self, query: str, *, run_manager) -> list[Document]:
            return [document(n) for n, _ in index.lexical.search(index.analyzer.query(query), k=5, kind=self.kind)]

    class Dense(BaseRetriever):
        kind: str

        def _get_relevant_documents(self, query: str, *, run_manager) -> list[Document]:
            return [document(n) for n, _ in index.vectors.search(self.kind, embedder.embed_query(query), k=5)]

    by_number = {s.number: s for s in stored}

    def document(number: int) -> Document:
        return Document(by_number[number].chunk.text, metadata={"id": by_number[number].id})

    inner = [ensemble(retrievers=[Keyword(kind=kind), Dense(kind=kind)], weights=[0.5, 0.5], id_key="id") for kind in ("table", "text")]
    outer = ensemble(retrievers=inner, weights=[0.4, 0.6], id_key="id")
    ours = retriever(index, fusion="classic")
    for _ in range(15):
        query = " ".join(rng.choices(WORDS, k=3))
        expected = [d.metadata["id"] for d in outer.invoke(query)][:5]
        assert [h.chunk_id for h in ours.search(query, k=5).hits] == expected
    index.close()


@pytest.mark.parametrize("seed", range(4))
def test_the_keyword_leg_is_langchains_bm25_retriever_over_our_tokens(tmp_path: Path, seed: int) -> None:
    retrievers = pytest.importorskip("langchain_community.retrievers", reason="langchain-community is not installed")
    from hybrid_rag.lexical import lucene_bm25

    rng = random.Random(seed)
    index = make(
        tmp_path, {f"n{i}.txt": " ".join(rng.choices(WORDS, k=rng.randint(20, 60))) for i in range(40)}, lexical_engine="rank_bm25"
    )
    stored = list(index.catalog.iterate_chunks())
    tokens = [index.analyzer.terms(s.chunk.text) + index.analyzer.terms(s.chunk.context) for s in stored]
    theirs = retrievers.BM25Retriever(
        vectorizer=lucene_bm25(tokens),
        docs=[_document(s.chunk.text, s.number) for s in stored],
        k=5,
        preprocess_func=lambda text: [term for term, boost in index.analyzer.query(text).terms for _ in range(int(boost))],
    )
    compared = 0
    for _ in range(20):
        query = " ".join(rng.choices(WORDS, k=2))
        ours = index.lexical.search(index.analyzer.query(query), k=6)
        if len({round(score, 9) for _, score in ours}) < 6:
            continue  # ties: theirs are in no particular order
        compared += 1
        assert [n for n, _ in ours[:5]] == [d.metadata["number"] for d in theirs.invoke(query)]
    assert compared > 5
    index.close()


def _document(text: str, number: int):
    from langchain_core.documents import Document

    return Document(text, metadata={"number": number})


GERMAN = {
    "rueckgabe.md": "# Rückgabe\n\nDie Ware ist innerhalb von dreißig Tagen zurückzugeben, wenn sie nicht benutzt wurde.",
    "lieferung.md": "# Lieferung\n\nDie Lieferungen werden von uns bezahlt, wenn der Bestellwert über hundert Euro ist.",
}


def test_the_stemmer_is_of_the_collections_language(tmp_path: Path) -> None:
    index = make(tmp_path, GERMAN)
    assert index.analyzer.language == "de"
    assert retriever(index).search("Wer bezahlt eine Lieferung?", k=1, mode="keyword").hits[0].terms == ("bezahlt", "liefer")
    index.close()


def test_the_first_files_do_not_settle_the_language_for_all_that_follow(tmp_path: Path) -> None:
    index = make(tmp_path, {"readme.md": "This is the folder of the documents that we have for you."})
    assert index.analyzer.language == "en"
    for i in range(6):
        for name, text in GERMAN.items():
            (tmp_path / "data" / f"{i}{name}").write_text(text, encoding="utf-8")
    ingest(index, IngestOptions(tmp_path / "data", workers=1), embedder=lambda: embedder)
    assert index.analyzer.language == "de"
    assert retriever(index).search("Lieferung", k=1, mode="keyword").hits[0].terms == ("liefer",)
    (tmp_path / "data" / "note.md").write_text("One more note in English, which is not enough to change it.", encoding="utf-8")
    ingest(index, IngestOptions(tmp_path / "data", workers=1), embedder=lambda: embedder)
    assert index.analyzer.language == "de"
    index.close()


def test_the_language_can_be_given(tmp_path: Path) -> None:
    index = make(tmp_path, GERMAN, language="none")
    assert index.analyzer.fingerprint.endswith("none")
    assert not retriever(index).search("Tag", k=1, mode="keyword").hits  # the text says Tagen
    index.close()


def test_what_people_copy_from_documents_is_found(tmp_path: Path) -> None:
    """Identifiers, versions, addresses, paths, prices and phrases, each in one of many similar files; end to end in the keyword leg."""
    wanted = {
        "WC-2024-00318": "WC-2024-00319", "max.muster@example.org": "max.master@example.org", "1.2.3": "1.2.30", "src/app/main.py": "src/app/mean.py",
        "0010": "10", "A002": "A003", "1,258.99": "1,258.98", "東京都": "京東都", "naïve Café": "native cave", "C++": "C", "O'Brien": "Brian",
    }  # fmt: skip
    texts = list(wanted) + list(wanted.values())
    index = make(tmp_path, {f"{i:02}.txt": f"Item number one is {text} in this list." for i, text in enumerate(texts)})
    search = retriever(index)
    for i, text in enumerate(wanted):
        for form in (text, unicodedata.normalize("NFD", text), f"Where is {text}?", f'"{text}"'):
            hits = search.search(form, k=3, mode="keyword").hits
            assert hits[0].source == f"{i:02}.txt", form
    index.close()
