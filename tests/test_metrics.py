"""Measures against values worked out by hand, and against trec_eval."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import pytrec_eval

from hybrid_rag.answer_metrics import exact_match, holds, normalise_answer, same_value, token_f1
from hybrid_rag.metrics import hit, interval, ndcg, recall, reciprocal_rank, unique

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


def test_rankings_are_measured_as_by_trec_eval() -> None:
    chance = random.Random(7)
    units = [f"d{n}" for n in range(60)]
    judged = {f"q{q}": {d: chance.choice([1, 1, 2, 3]) for d in chance.sample(units, chance.randint(1, 15))} for q in range(200)}
    rankings = {q: chance.sample(units, chance.randint(1, 50)) for q in judged}
    run = {q: {d: float(-place) for place, d in enumerate(ranking)} for q, ranking in rankings.items()}
    wanted = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "recip_rank", "recall.1,5,10", "success.1,5,10"}).evaluate(run)
    for q, gains in judged.items():
        ranking, reference = rankings[q], wanted[q]
        assert ndcg(ranking, gains) == pytest.approx(reference["ndcg_cut_10"])
        assert reciprocal_rank(ranking, gains) == pytest.approx(reference["recip_rank"])
        for k in (1, 5, 10):
            assert recall(ranking, gains, k) == pytest.approx(reference[f"recall_{k}"])
            assert hit(ranking, gains, k) == reference[f"success_{k}"]


def test_intervals_are_those_of_the_binomial_and_seeded() -> None:
    values = [1.0] * 80 + [0.0] * 20
    low, high = interval(values)
    deviation = math.sqrt(0.8 * 0.2 / 100)
    assert (low, high) == pytest.approx((0.8 - 1.96 * deviation, 0.8 + 1.96 * deviation), abs=0.015)
    assert interval(values) == (low, high) != interval(values, seed=1)
    assert interval([0.5] * 10) == (0.5, 0.5)
    assert math.isnan(interval([])[0])


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    draws = np.random.default_rng(3).random((200, 60)) < 0.7
    held = sum(low <= 0.7 <= high for low, high in (interval(row.astype(float).tolist(), resamples=500) for row in draws))
    assert 0.89 <= held / 200 <= 0.99


# ---------------------------------------------------------------- answers


def test_squad_normalisation() -> None:
    assert normalise_answer("The  Answer, (a) LONG one!") == "answer long one"
    assert normalise_answer("15 %") == normalise_answer("15%") == "15"


def test_exact_match_and_f1() -> None:
    assert exact_match("the Eiffel Tower.", ["Big Ben", "Eiffel tower"]) == 1
    assert exact_match("Eiffel", ["Eiffel tower"]) == 0
    assert token_f1("the tall Eiffel tower", ["Eiffel tower in Paris", "x"]) == pytest.approx(2 * 2 / (3 + 4))
    assert token_f1("a", ["the"]) == 1
    assert token_f1("word", ["the"]) == token_f1("word", []) == 0


def test_holding_is_by_whole_words() -> None:
    assert holds("It takes 14 days, at most.", ["14 days"])
    assert not holds("It takes 114 days.", ["14 days"])
    assert not holds("anything", ["the", ""])


@pytest.mark.parametrize(
    ("cell", "gold", "same"),
    [(1704.9900001, "1,704.99", True), (3.6987, "3.70", True), (3.6987, "3.7", True), (72, "72", True), ("72.0", "72", True), (72, "720", False),
     (None, "0", False), (True, "1", False), ("Auralis Air", "auralis air", True), (0.15, "15 %", False), ("0010", "10", True), ("2024-03-01", "2024-03-01", True)],
)  # fmt: skip
def test_values_of_tables(cell: object, gold: str, same: bool) -> None:
    assert same_value(cell, gold) is same
