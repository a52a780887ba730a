"""Fusion and places as pure functions."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_rag.fusion import combine, evidence, fuse, fuse_classic, mix, places


def first(k: int, strengths: dict[str, float], weights: dict[str, float], lengths: dict[str, int]) -> list[str]:
    return list(islice(places(strengths, weights, lengths), k))


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
    got = first(5, strengths, {"table": 0.4, "text": 0.6}, {"table": 9, "text": 9})
    assert {kind: got.count(kind) for kind in expected} == expected


def test_a_weak_kind_fills_up_when_the_strong_one_has_no_more() -> None:
    assert first(4, {"table": 1.0, "text": 0.1}, {"table": 0.4, "text": 0.6}, {"table": 1, "text": 9}) == ["table", "text", "text", "text"]


def test_a_kind_of_weight_zero_gets_no_place() -> None:
    assert first(2, {"table": 1.0, "text": 0.5}, {"table": 0.0, "text": 1.0}, {"table": 9, "text": 9}) == ["text", "text"]


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
    got = first(k, {"table": table, "text": text}, {"table": 0.4, "text": 0.6}, lengths)
    assert len(got) == min(k, tables + texts)
    assert all(got.count(kind) <= lengths[kind] for kind in lengths)


def test_the_stronger_kind_comes_first_whatever_the_weights() -> None:
    assert first(1, {"table": 1.0, "text": 0.9}, {"table": 0.1, "text": 0.9}, {"table": 9, "text": 9}) == ["table"]
    assert first(1, {"table": 1.0, "text": 1.0}, {"table": 0.4, "text": 0.6}, {"table": 9, "text": 9}) == ["text"]


def order(scores: list[float], logits: list[float], share: float = 0.4) -> list[int]:
    return [i for i, _ in mix(scores, logits, share)]


def test_a_cross_encoder_that_is_sure_moves_a_hit_and_one_to_which_all_are_alike_moves_none() -> None:
    assert order([0.92, 0.87, 0.78], [-2.7, 6.4, -3.8]) == [1, 0, 2]
    assert order([0.94, 0.91, 0.86], [3.2, 2.5, 3.3]) == [0, 1, 2]
    assert order([0.5, 0.4], [-11.0, 11.0], share=0.0) == [0, 1]
    assert mix([], [], 0.4) == []


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(-20, 20), st.floats(0, 1))
def test_equal_logits_keep_the_order_whatever_the_scores(scores: list[float], logit: float, share: float) -> None:
    """Also where a score is lower than one behind it: the kinds' places are kept."""
    assert order(scores, [logit] * len(scores), share) == list(range(len(scores)))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-50, 50)), max_size=12))
def test_mixed_scores_lie_between_0_and_1(hits: list[tuple[float, float]]) -> None:
    mixed = mix([s for s, _ in hits], [v for _, v in hits], 0.4)
    assert sorted(i for i, _ in mixed) == list(range(len(hits)))
    assert all(0 <= score <= 1 for _, score in mixed)
