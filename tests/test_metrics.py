"""Measures against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from hybrid_rag.metrics import hit, ndcg, recall, reciprocal_rank, unique

RANKING, RELEVANT = ["a", "b", "c", "d"], {"b", "d", "x"}


def test_ndcg() -> None:
    best = 1 + 1 / math.log2(3) + 1 / 2
    assert ndcg(RANKING, RELEVANT) == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / best)
    assert ndcg(RANKING, RELEVANT, 1) == 0
    assert ndcg(["b", "d", "x"], RELEVANT) == 1
    assert ndcg(["b"], {"b", "d"}, 1) == 1
    assert ndcg(RANKING, set()) == 0


def test_reciprocal_rank() -> None:
    assert reciprocal_rank(RANKING, RELEVANT) == 0.5
    assert reciprocal_rank(RANKING, {"z"}) == 0


def test_hit_and_recall() -> None:
    assert (hit(RANKING, RELEVANT, 1), hit(RANKING, RELEVANT, 2)) == (0, 1)
    assert recall(RANKING, RELEVANT, 4) == pytest.approx(2 / 3)
    assert recall(RANKING, RELEVANT, 2) == pytest.approx(1 / 3)
    assert recall([], RELEVANT, 2) == recall(RANKING, set(), 2) == 0


def test_unique_keeps_first_places() -> None:
    assert unique(["b", "a", "b", "c", "a"]) == ["b", "a", "c"]
