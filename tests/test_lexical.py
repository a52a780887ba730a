"""One contract over both engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hybrid_rag.analysis import Analyzer
from hybrid_rag.errors import IndexDamagedError
from hybrid_rag.lexical import LexicalEntry, LexicalIndex, RankBm25Index, TantivyIndex

analyzer = Analyzer("en")
ENTRIES = [
    LexicalEntry(1, 10, "text", "The return policy allows thirty days", "Policy"),
    LexicalEntry(2, 10, "text", "Shipping takes five days", "Policy"),
    LexicalEntry(3, 20, "table", "sku: A-0010\nname: phone", "Products"),
    LexicalEntry(4, 30, "text", "naïve café in 東京都", ""),
    LexicalEntry(5, 40, "text", "Shipping takes five days", "Policy"),
]

Make = Callable[[list[LexicalEntry]], LexicalIndex]


@pytest.fixture(params=["tantivy", "rank_bm25"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    def build(entries: list[LexicalEntry]) -> LexicalIndex:
        if request.param == "rank_bm25":
            return RankBm25Index(lambda: entries, analyzer)
        index = TantivyIndex(tmp_path / "lexical", analyzer)
        index.add(entries)
        index.commit()
        return index

    return build


def numbers(index: LexicalIndex, text: str, k: int = 10, **options) -> list[int]:
    return [number for number, _ in index.search(analyzer.query(text), k=k, **options)]


def test_the_best_match_comes_first(make: Make) -> None:
    assert numbers(make(ENTRIES), "return days")[0] == 1


def test_scores_are_positive_and_fall(make: Make) -> None:
    scores = [score for _, score in make(ENTRIES).search(analyzer.query("shipping policy days"), k=10)]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)


def test_no_word_no_hit(make: Make) -> None:
    index = make(ENTRIES)
    assert numbers(index, "zebra") == []
    assert numbers(index, "") == []
    assert numbers(index, "?!") == []


def test_equal_scores_are_ordered_by_number(make: Make) -> None:
    assert numbers(make(ENTRIES), "shipping") == [2, 5]
    assert numbers(make(ENTRIES), "shipping", k=1) == [2]


def test_kind_and_documents_restrict_before_the_cut(make: Make) -> None:
    index = make(ENTRIES)
    assert numbers(index, "A-0010 policy", kind="table") == [3]
    assert numbers(index, "shipping", k=1, documents=[40]) == [5]
    assert numbers(index, "shipping", documents=[]) == []


def test_phrases_must_occur(make: Make) -> None:
    index = make(ENTRIES)
    assert numbers(index, '"return policy"') == [1]
    assert numbers(index, '"policy return"') == []
    assert numbers(index, '"shipping"') == [2, 5]


@pytest.mark.parametrize("query", ["a-0010", "0010", "cafe", "naive", "東京", "都"])
def test_identifiers_accents_and_cjk(make: Make, query: str) -> None:
    assert len(numbers(make(ENTRIES), query)) == 1


@pytest.mark.parametrize("query", ["a AND (b", "field:value^2", '"', "\ud800", "\0", "*", "x" * 5000, "~ [a TO b] {", "\\", "🔥"])
def test_hostile_queries_do_no_harm(make: Make, query: str) -> None:
    numbers(make(ENTRIES), query)


def test_one_or_no_entry(make: Make) -> None:
    assert numbers(make([]), "days") == []


def test_two_short_entries_find_the_right_one(make: Make) -> None:
    index = make([LexicalEntry(1, 1, "text", "apples", ""), LexicalEntry(2, 2, "text", "pears", "")])
    assert numbers(index, "pears") == [2]


def test_blank_entries(make: Make) -> None:
    index = make([LexicalEntry(1, 1, "text", "", ""), LexicalEntry(2, 2, "text", "🔥", "")])
    assert numbers(index, "pears") == []
    assert index.count() == 2


def test_count_numbers_and_frequency(make: Make) -> None:
    index = make(ENTRIES)
    assert index.count() == 5
    assert index.numbers() == {1, 2, 3, 4, 5}
    assert index.document_frequency("day") == 3


def test_tantivy_replaces_and_deletes(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path, analyzer)
    index.add(ENTRIES)
    index.commit()
    index.add([LexicalEntry(1, 10, "text", "zebra", "")])
    index.delete([2])
    index.commit()
    assert numbers(index, "zebra") == [1]
    assert numbers(index, "return") == []
    assert index.numbers() == {1, 3, 4, 5}


def test_tantivy_shows_another_writers_commit_after_reload(tmp_path: Path) -> None:
    reader, writer = TantivyIndex(tmp_path, analyzer), TantivyIndex(tmp_path, analyzer)
    writer.add(ENTRIES)
    writer.commit()
    assert numbers(reader, "shipping") == []
    reader.reload()
    assert numbers(reader, "shipping") == [2, 5]


def test_a_damaged_tantivy_index_is_said_to_be_so(tmp_path: Path) -> None:
    TantivyIndex(tmp_path, analyzer).close()
    (tmp_path / "meta.json").write_text("garbage", encoding="utf-8")
    with pytest.raises(IndexDamagedError, match="rebuild lexical"):
        TantivyIndex(tmp_path, analyzer)
