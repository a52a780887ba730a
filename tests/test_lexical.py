"""One contract over both engines of the keyword leg."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hybrid_rag.analysis import Analyzer, LexicalQuery
from hybrid_rag.errors import IndexDamagedError
from hybrid_rag.lexical import LexicalEntry, LexicalIndex, RankBm25Index, TantivyIndex, record_keys

ANALYZER = Analyzer("en")


class Store:
    """An engine with its truth, as in the index: entries go to the truth first."""

    def __init__(self, make: Callable[[Callable[[], list[LexicalEntry]]], LexicalIndex]) -> None:
        self.kept: dict[int, LexicalEntry] = {}
        self.index = make(lambda: list(self.kept.values()))

    def put(self, *texts: str, kind: str = "text", document: int = 1, context: str = "", first: int | None = None) -> None:
        start = first if first is not None else max(self.kept, default=0) + 1
        self.add([LexicalEntry(start + i, document, kind, text, context) for i, text in enumerate(texts)])  # type: ignore[arg-type]

    def add(self, entries: list[LexicalEntry]) -> None:
        self.kept.update((entry.number, entry) for entry in entries)
        self.index.add(entries)
        self.index.commit()

    def delete(self, *numbers: int) -> None:
        for number in numbers:
            self.kept.pop(number, None)
        self.index.delete(numbers)
        self.index.commit()

    def find(self, text: str, *, k: int = 10, **where: object) -> list[int]:
        return [number for number, _ in self.index.search(ANALYZER.query(text), k=k, **where)]  # type: ignore[arg-type]


@pytest.fixture(params=["tantivy", "rank_bm25"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "tantivy":
        made = Store(lambda source: TantivyIndex(tmp_path / "lexical", ANALYZER))
    else:
        made = Store(lambda source: RankBm25Index(source, ANALYZER))
    yield made
    made.index.close()


def test_nothing_indexed_nothing_found(store: Store) -> None:
    assert store.index.count() == 0
    assert store.index.numbers() == set()
    assert store.find("anything") == []


def test_blank_texts_are_no_hits_and_no_error(store: Store) -> None:
    store.put("", "   \n", "🔥", "words")
    assert store.index.count() == 4
    assert store.find("words") == [4]


def test_one_of_two_documents_is_found_by_a_word_that_half_of_them_hold(store: Store) -> None:
    store.put("apples are red", "bananas are yellow")
    assert store.find("apples") == [1]
    assert store.find("yellow bananas") == [2]


def test_scores_are_positive_and_falling_and_only_for_matches(store: Store) -> None:
    store.put("red apple", "red red apple pie", "blue sky", "apple")
    hits = store.index.search(ANALYZER.query("red apple"), k=10)
    assert {n for n, _ in hits} == {1, 2, 4}
    scores = [s for _, s in hits]
    assert all(s > 0 for s in scores)
    assert scores == sorted(scores, reverse=True)


def test_equal_scores_are_ordered_by_number_at_the_cut_too(store: Store) -> None:
    numbers = list(range(1, 301))
    random.Random(1).shuffle(numbers)
    store.add([LexicalEntry(n, 1, "text", "same words here", "") for n in numbers])
    assert store.find("words", k=5) == [1, 2, 3, 4, 5]


def test_at_most_k(store: Store) -> None:
    store.put(*["word"] * 20)
    assert len(store.find("word", k=7)) == 7
    assert store.find("word", k=0) == []


def test_kinds_are_apart(store: Store) -> None:
    store.put("claim approved", kind="text")
    store.put("claim rejected", kind="table", document=2)
    assert store.find("claim", kind="text") == [1]
    assert store.find("claim", kind="table") == [2]
    assert set(store.find("claim")) == {1, 2}


def test_documents_are_filtered_before_the_cut_without_changing_scores(store: Store) -> None:
    store.add([LexicalEntry(n, n % 50, "text", "word " * (1 + n % 7) + f"other{n}", "") for n in range(1, 501)])
    everything = dict(store.index.search(ANALYZER.query("word"), k=500))
    found = store.index.search(ANALYZER.query("word"), k=10, documents={7})
    assert len(found) == 10
    assert {n % 50 for n, _ in found} == {7}
    assert all(score == pytest.approx(everything[n]) for n, score in found)
    assert store.find("word", documents=set()) == []
    assert store.find("word", documents={999}) == []


def test_a_quoted_phrase_must_occur_as_a_sequence(store: Store) -> None:
    store.put("the green house", "a house that is green", "green", "greenhouse gas")
    assert store.find('"green house"') == [1]
    assert store.find('"green house" gas') == [1]
    assert store.find('"gas"') == [4]
    assert store.find('"no such words"') == []


def test_a_phrase_of_the_heading_counts(store: Store) -> None:
    store.put("thirty days", context="Return policy > Exchange")
    store.put("return something, and a policy")
    assert store.find('"return policy"') == [1]


def test_the_text_weighs_more_than_its_heading(store: Store) -> None:
    store.put("about shipping fees", context="")
    store.put("about other fees", context="shipping")
    store.put("about other fees", context="nothing")
    assert store.find("shipping") == [1, 2]


def test_identifiers_are_found_whole_first(store: Store) -> None:
    store.put("claim WC-2024-00317", "claim WC-2024-00318", "part 00318 of WC and 2024 things", "account 0010", "account 10")
    assert store.find("WC-2024-00318")[0] == 2
    assert store.find("wc-2024-00318")[0] == 2
    assert store.find("0010") == [4]


def test_repeated_query_words_weigh_more(store: Store) -> None:
    store.put("alpha x", "beta x")
    assert store.find("alpha alpha beta")[0] == 1
    assert store.find("alpha beta beta")[0] == 2


def test_replacing_and_deleting(store: Store) -> None:
    store.put("old words")
    store.put("new words", first=1)
    assert store.index.count() == 1
    assert store.find("old") == []
    assert store.find("new") == [1]
    store.delete(1, 99)
    assert store.index.count() == 0
    assert store.index.numbers() == set()
    assert store.find("new") == []


def test_document_frequency(store: Store) -> None:
    store.put("one two", "two three")
    assert [store.index.document_frequency(term) for term in ("one", "two", "four")] == [1, 2, 0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        '"',
        '""',
        "(",
        "a AND (b OR",
        "+-!{}[]^~*?:\\/",
        "title:x",
        "\x00",
        "\ud800",
        "🔥",
        "'; DROP TABLE chunks;--",
        "a" * 9000,
        "x y " * 2500,
    ],
)
def test_hostile_queries_find_something_or_nothing(store: Store, text: str) -> None:
    store.put("ordinary words about a title", "x")
    assert set(store.find(text)) <= {1, 2}


def test_hostile_texts_can_be_added(store: Store) -> None:
    store.put("\ud800 lone", "nul \x00 byte", "x" * 200_000, "a\u2028b\u00a0c\x1fd")
    assert store.find("lone") == [1]
    assert store.find("byte") == [2]
    assert store.find("d") == [4]


def test_both_engines_agree_on_what_is_found(tmp_path: Path) -> None:
    rng = random.Random(7)
    words = [f"w{i}" for i in range(60)]
    entries = [
        LexicalEntry(n, n % 9, "text" if n % 3 else "table", " ".join(rng.choices(words, k=rng.randint(1, 30))), rng.choice(words))
        for n in range(1, 400)
    ]
    engines: list[LexicalIndex] = [TantivyIndex(tmp_path, ANALYZER), RankBm25Index(lambda: entries, ANALYZER)]
    engines[0].add(entries)
    engines[0].commit()
    for _ in range(30):
        query = ANALYZER.query(" ".join(rng.choices(words, k=3)))
        for where in ({}, {"kind": "table"}, {"documents": {1, 2}}):
            found = [{n for n, _ in engine.search(query, k=1000, **where)} for engine in engines]  # type: ignore[arg-type]
            assert found[0] == found[1]
    for engine in engines:
        engine.close()


@pytest.mark.parametrize("seed", range(4))
def test_looking_ahead_finds_what_asking_the_engine_finds(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hits taken from a wider search and hits filtered by the engine are the same, ties and the cut included."""
    rng = random.Random(seed)
    words = [f"w{i}" for i in range(30)]
    texts = [" ".join(rng.choices(words, k=rng.randint(3, 12))) for _ in range(80)]  # many texts occur twice and more
    index = TantivyIndex(tmp_path, ANALYZER)
    tables = (0.95, 0.6, 0.4, 0.05)[seed]
    index.add(
        LexicalEntry(n, rng.randrange(300), "table" if rng.random() < tables else "text", rng.choice(texts), rng.choice(words))
        for n in range(1, 1500)
    )
    index.commit()
    taken = 0
    for _ in range(40):
        query = ANALYZER.query(" ".join(rng.choices(words, k=rng.randint(1, 4))))
        where = {
            "kind": rng.choice(["table", "text", None]),
            "documents": rng.choice([None, set(rng.sample(range(300), rng.choice([70, 200, 290])))]),
        }
        k = rng.choice([1, 10, 100])
        ahead = index._look_ahead(index._index.searcher(), query, k, **where)
        with monkeypatch.context() as patch:
            patch.setattr(TantivyIndex, "_look_ahead", lambda *_: None)
            expected = index.search(query, k=k, **where)
        assert index.search(query, k=k, **where) == expected
        taken += ahead is not None
    assert taken > 5
    index.close()


def test_equal_texts_tie_whatever_the_order_of_their_words_in_the_query(store: Store) -> None:
    store.put(*["alpha beta gamma delta epsilon zeta"] * 60, "alpha", "beta", "zeta gamma")
    hits = store.index.search(ANALYZER.query("zeta alpha epsilon beta gamma delta"), k=50)
    assert len({score for _, score in hits}) == 1
    assert [n for n, _ in hits] == list(range(1, 51))


def test_tantivy_keeps_what_was_committed_and_readers_see_it_after_a_reload(tmp_path: Path) -> None:
    writer, reader = TantivyIndex(tmp_path, ANALYZER), TantivyIndex(tmp_path, ANALYZER)
    writer.add([LexicalEntry(1, 1, "text", "first", "")])
    assert reader.count() == 0
    writer.commit()
    reader.reload()
    assert reader.search(ANALYZER.query("first"), k=1)[0][0] == 1
    writer.add([LexicalEntry(2, 1, "text", "never committed", "")])
    writer.close()
    again = TantivyIndex(tmp_path, ANALYZER)
    assert again.numbers() == {1}
    again.close()
    reader.close()


def test_a_damaged_tantivy_folder_is_named(tmp_path: Path) -> None:
    index = TantivyIndex(tmp_path, ANALYZER)
    index.add([LexicalEntry(1, 1, "text", "first", "")])
    index.commit()
    index.close()
    (tmp_path / "meta.json").write_text("{", encoding="utf-8")
    with pytest.raises(IndexDamagedError) as caught:
        TantivyIndex(tmp_path, ANALYZER)
    assert str(tmp_path) in caught.value.message
    assert "rebuild" in caught.value.remedy


def test_an_unused_query_is_empty() -> None:
    assert not LexicalQuery(())


def test_the_row_whose_key_is_asked_for_comes_before_rows_that_mention_it(store: Store) -> None:
    order, product = "order: O-77\nsku: LT-1013\nsku again: LT-1013", "sku: LT-1013\nname: a laptop of some make with a long description"
    store.add([LexicalEntry(n, n, "table", text, "", record_keys(text)) for n, text in enumerate((order, product), start=1)])
    assert store.find("LT-1013") == [2, 1]


def test_keys_are_the_identifiers_of_the_records() -> None:
    assert record_keys("sku: LT-1013\nname: x\n\nsku: LT-1014\nname: Y-2\n\nsku: LT-1013") == "lt-1013 lt-1014"
    assert record_keys("name: Ann\ncode: A-1\n\nname: Bob") == ""
    assert record_keys("") == ""
