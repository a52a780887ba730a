"""The cross-encoder: the passage that answers scores highest; a pair's logit depends on the pair alone."""

from __future__ import annotations

import numpy as np
import pytest

from hybrid_rag.reranking import OnnxReranker, bundled_reranker

QUESTION = "How long is the warranty of a phone?"
PASSAGES = [
    "Bananas are yellow.",
    "Phones have a warranty of two years from the day of purchase.",
    "Phones are sold in three colours.",
    "The shop opens at nine. " * 200,
    "",
]


@pytest.fixture(scope="module")
def reranker() -> OnnxReranker:
    return bundled_reranker()


def test_the_answer_comes_first(reranker: OnnxReranker) -> None:
    logits = reranker.score(QUESTION, PASSAGES)
    assert logits.shape == (len(PASSAGES),) and logits.dtype == np.float32 and np.isfinite(logits).all()
    assert int(np.argmax(logits)) == 1 and logits[1] > 2 > -5 > logits[0]


def test_a_pairs_logit_depends_on_the_pair_alone(reranker: OnnxReranker) -> None:
    logits = reranker.score(QUESTION, PASSAGES)
    order = [3, 1, 1, 0, 4]
    np.testing.assert_array_equal(reranker.score(QUESTION, [PASSAGES[i] for i in order]), logits[order])
    assert reranker.score(QUESTION, [PASSAGES[2]])[0] == logits[2]


def test_no_passages_give_no_logits(reranker: OnnxReranker) -> None:
    assert reranker.score(QUESTION, []).shape == (0,)


def test_any_text_is_taken(reranker: OnnxReranker) -> None:
    logits = reranker.score("\udcff " + "long question " * 600, ["🔥", "x" * 5_000, "\udc80"])
    assert np.isfinite(logits).all()
