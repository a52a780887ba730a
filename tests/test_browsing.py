"""Related, recent and neighbouring documents, and parts of a document."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid_rag.browsing import known, passage, recent, related, timeline, whole_tokens
from hybrid_rag.errors import InputError
from hybrid_rag.filters import Filters
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.retrieval import RetrievalOptions, Retriever
from hybrid_rag.table_store import SqlLimits, TableStore
from tests.support.embedders import HashEmbedder

TOPICS = {"battery": "battery charge cell voltage", "garden": "garden flower soil water", "travel": "train hotel ticket island"}
FILES = {
    f"{topic}/{month:02}.md": f"---\ntitle: {topic} {month}\ndate: 2025-{month:02}-10\n---\n# About {topic}\n\n{words} {words}.\n\n## More\n\nnumber {month}"
    for topic, words in TOPICS.items()
    for month in (1, 4, 7)
} | {"parts.csv": "part,use\n" + "".join(f"P-{i},battery cell {i}\n" for i in range(1, 31))}


def build(folder: Path, model: HashEmbedder | None) -> Retriever:
    for name, text in FILES.items():
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    index = Index(IndexOptions(folder / "index"), create=True)
    ingest(index, IngestOptions(folder / "data", workers=1), embedder=lambda: model)
    return Retriever(index, lambda: model, lambda: None, RetrievalOptions())


@pytest.fixture(scope="module", params=["with vectors", "without vectors"])
def retriever(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    made = build(tmp_path_factory.mktemp("browsing"), HashEmbedder() if request.param == "with vectors" else None)
    yield made
    made.index.close()


@pytest.fixture(scope="module")
def store(retriever: Retriever) -> Iterator[TableStore]:
    index = retriever.index
    made = TableStore(index.tables_directory, index.catalog.tables, index.catalog.generation, limits=SqlLimits())
    yield made
    made.close()


def test_related_documents_share_the_topic_and_leave_out_the_document_itself(retriever: Retriever) -> None:
    found = related(retriever, "garden/01.md", 2)
    assert {r.document.source for r in found} == {"garden/04.md", "garden/07.md"}
    assert found[0].score >= found[1].score
    assert {r.stage for r in found} == {"cosine" if retriever.index.fingerprint else "bm25"}


def test_related_gives_as_many_as_there_are(retriever: Retriever) -> None:
    found = [r.document.source for r in related(retriever, "garden/01.md", 100)]
    assert len(found) == len(set(found))
    assert "garden/01.md" not in found
    if retriever.index.fingerprint:
        assert set(found) == set(FILES) - {"garden/01.md"}


@pytest.mark.parametrize("with_vectors", [True, False])
def test_one_document_of_many_parts_does_not_hide_the_others(tmp_path: Path, with_vectors: bool) -> None:
    long = "\n\n".join(f"## Part {i}\n\nbattery charge cell voltage" for i in range(120))
    files = {"a.md": "battery charge cell voltage", "long.md": long, "b.md": "battery and a garden", "c.md": "a battery on a train"}
    for name, text in files.items():
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / name).write_text(text, encoding="utf-8")
    index = Index(IndexOptions(tmp_path / "index"), create=True)
    model = HashEmbedder() if with_vectors else None
    ingest(index, IngestOptions(tmp_path / "data", workers=1), embedder=lambda: model)
    searcher = Retriever(index, lambda: model, lambda: None, RetrievalOptions())
    for source in ("a.md", "long.md"):
        assert {r.document.source for r in related(searcher, source, 3)} == set(files) - {source}
    index.close()


def test_recent_documents_are_the_latest_that_pass(retriever: Retriever) -> None:
    catalog = retriever.index.catalog
    markdown = Filters.parse(glob="*.md")
    assert [d.source for d in recent(catalog, 2, Filters.parse(folder="travel"))] == ["travel/07.md", "travel/04.md"]
    days = [d.date or "" for d in recent(catalog, 99, markdown)]
    assert days == sorted(days, reverse=True)
    assert len(days) == 9


def test_a_timeline_stands_around_a_document_or_around_the_best_match(retriever: Retriever) -> None:
    filters = Filters.parse(folder="battery")
    for what in ("battery/04.md", "battery charge number 4"):
        line = timeline(retriever, what, 1, 1, filters)
        assert [d.source for d in line.documents] == ["battery/01.md", "battery/04.md", "battery/07.md"]
        assert line.documents[line.at].source == "battery/04.md"
    assert [d.source for d in timeline(retriever, "battery/01.md", 5, 1, filters).documents] == ["battery/01.md", "battery/04.md"]
    assert timeline(retriever, "anything", 1, 1, Filters.parse(folder="nowhere")).documents == ()


def test_a_document_is_known_by_its_path_or_the_end_of_it(retriever: Retriever) -> None:
    catalog = retriever.index.catalog
    assert known(catalog, "garden/04.md").source == "garden/04.md"
    assert known(catalog, "parts.csv").source == "parts.csv"
    with pytest.raises(InputError) as caught:
        known(catalog, "gardn/04.md")
    assert "garden/04.md" in caught.value.remedy


def test_passages_by_heading_rows_chunk_and_whole(retriever: Retriever, store: TableStore) -> None:
    catalog = retriever.index.catalog
    whole = passage(catalog, store, "garden/04.md")
    assert "flower" in whole.text
    assert "number 4" in whole.text
    part = passage(catalog, store, "garden/04.md", heading="more")
    assert "number 4" in part.text
    assert "flower" not in part.text
    rows = passage(catalog, store, "parts.csv", rows=(3, 4))
    assert rows.rows == (3, 4)
    assert [r[0] for r in rows.records] == ["P-3", "P-4"]
    assert passage(catalog, store, "parts.csv", rows=(3, 4), window=1).rows == (2, 5)
    assert rows.note.startswith("Shown: records 3 to 4 of ")
    assert passage(catalog, store, "parts.csv", rows=(3, 3)).note.startswith("Shown: record 3 of ")
    chunk = retriever.search("number 4", k=1, filters=Filters.parse(folder="garden"), mode="keyword").hits[0]
    assert chunk.chunk.text in passage(catalog, store, chunk.source, chunk=chunk.chunk_id).text


def test_a_passage_is_cut_and_says_so(retriever: Retriever, store: TableStore) -> None:
    cut = passage(retriever.index.catalog, store, "garden/04.md", max_tokens=5)
    assert cut.truncated
    assert cut.text
    assert cut.note
    assert passage(retriever.index.catalog, store, "parts.csv", rows=(1, 30), max_tokens=40).truncated


@pytest.mark.parametrize(
    "wrong", [{"page": 3}, {"heading": "nothing like it"}, {"chunk": "0" * 32}, {"rows": (0, 3)}, {"rows": (29, 31)}, {"rows": (5, 4)}]
)
def test_a_part_that_is_not_there_is_said(retriever: Retriever, store: TableStore, wrong: dict) -> None:
    source = "parts.csv" if "rows" in wrong else "garden/04.md"
    with pytest.raises(InputError):
        passage(retriever.index.catalog, store, source, **wrong)


def test_a_document_is_read_on_from_a_character(retriever: Retriever, store: TableStore) -> None:
    catalog = retriever.index.catalog
    whole = passage(catalog, store, "garden/01.md").text
    rest = passage(catalog, store, "garden/01.md", start=10)
    assert (rest.text, rest.start, rest.end) == (whole[10:], 10, len(whole))
    with pytest.raises(InputError, match="no character"):
        passage(catalog, store, "garden/01.md", start=len(whole))


def test_whole_documents_are_counted_once_each(retriever: Retriever) -> None:
    catalog = retriever.index.catalog
    one = whole_tokens(catalog, ["garden/01.md"])
    assert 10 < one < 60
    assert whole_tokens(catalog, ["garden/01.md", "garden/01.md", "nowhere.md"]) == one
    assert whole_tokens(catalog, ["parts.csv"]) > 100
