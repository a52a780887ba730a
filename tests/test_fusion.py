"""Fusion and places as pure functions."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_rag.fusion import combine, evidence, fuse, fuse_classic, places


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


def test_scores_are_stretched_from_the_floor_to_the_best() -> None:
    legs = [[("a", 10.0), ("b", 6.0), ("c", 2.0)], [("b", 0.8), ("d", 0.6)]]
    assert dict(combine(legs, [0.6, 0.4], [2.0, 0.6])) == pytest.approx({"a": 0.6, "b": 0.7, "c": 0.0, "d": 0.0})
    assert [item for item, _ in combine(legs, [0.6, 0.4], [2.0, 0.6])] == ["b", "a", "c", "d"]
    assert dict(combine(legs, [1.0, 0.0], [0.0, 0.0])) == pytest.approx({"a": 1.0, "b": 0.6, "c": 0.2})


def test_equal_scores_of_a_leg_are_all_best() -> None:
    assert combine([[("b", 1.0), ("a", 1.0)]], [1.0], [1.0]) == [("a", 1.0), ("b", 1.0)]
    assert combine([[], []], [0.5, 0.5], [0.0, 0.0]) == []


scored = st.dictionaries(st.integers(0, 30), st.floats(0.01, 100), max_size=20).map(
    lambda d: sorted(d.items(), key=lambda x: (-x[1], x[0]))
)


@given(scored, scored, st.floats(0, 1))
def test_combined_scores_fall_between_0_and_1_and_hold_everything_once(one, two, weight: float) -> None:
    out = combine([one, two], [1 - weight, weight], [leg[-1][1] if leg else 0.0 for leg in (one, two)])
    scores = [score for _, score in out]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 + 1e-9 for score in scores)
    items = [item for item, _ in out]
    assert len(items) == len(set(items))
    used = [leg for leg, w in ((one, 1 - weight), (two, weight)) if w > 0]
    assert set(items) == {item for leg in used for item, _ in leg}


def test_evidence_is_a_share_above_the_floor() -> None:
    assert evidence({"table": 5.0, "text": 10.0}, 10.0) == {"table": 0.5, "text": 1.0}
    assert evidence({"table": 0.5, "text": 0.7}, 0.7, 0.5) == pytest.approx({"table": 0.0, "text": 1.0})
    assert evidence({"table": 0.0, "text": 0.0}, 0.0) == {"table": 0.0, "text": 0.0}


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 12), st.integers(0, 12), st.integers(0, 20))
def test_every_place_is_given_while_there_are_hits(table: float, text: float, tables: int, texts: int, k: int) -> None:
    lengths = {"table": tables, "text": texts}
    got = places({"table": table, "text": text}, {"table": 0.4, "text": 0.6}, lengths, k)
    assert len(got) == min(k, tables + texts)
    assert all(got.count(kind) <= lengths[kind] for kind in lengths)


def test_the_stronger_kind_comes_first_whatever_the_weights() -> None:
    assert places({"table": 1.0, "text": 0.9}, {"table": 0.1, "text": 0.9}, {"table": 9, "text": 9}, 1) == ["table"]
    assert places({"table": 1.0, "text": 1.0}, {"table": 0.4, "text": 0.6}, {"table": 9, "text": 9}, 1) == ["text"]
