"""When nothing is answered: by the cross-encoder, and by the question's own names, numbers and identifiers."""

from __future__ import annotations

import pytest

from hybrid_rag.abstention import Thresholds, coverage, identifiers, names_supported, unanswerable, weights
from hybrid_rag.analysis import Analyzer


@pytest.mark.parametrize(
    ("question", "logits", "text", "expected"),
    [
        ("anything", [-8.0, -9.0], "text", True),
        ("anything", [3.0], "text", False),
        ("anything", [-9.0, -9.0, -4.0], "text", False),
        ("anything", [-9.0, -9.0, -9.0, 9.0], "text", True),
        ("Who is Peter Vogel?", [0.0], "about Marta", True),
        ("Who is Peter Vogel?", [0.0], "Peter Vogel, finance", False),
        ("Who is Peter Vogel?", [2.5], "about Marta", False),
    ],
)
def test_abstention(question: str, logits: list[float], text: str, expected: bool) -> None:
    assert unanswerable(question, logits, text, 1.0, Thresholds(abstain_below=-5, support_below=2)) is expected


@pytest.mark.parametrize(
    ("logit", "covered", "expected"), [(0.0, 0.2, True), (0.0, 0.6, False), (2.5, 0.2, False), (-6.0, 1.0, True)]
)  # fmt: skip
def test_the_words_of_an_unsure_question_must_stand_in_what_was_found(logit: float, covered: float, expected: bool) -> None:
    assert unanswerable("anything", [logit], "text", covered, Thresholds(coverage_from=0.4)) is expected


def test_rare_words_count_more_than_common_ones() -> None:
    held = {"price": 500, "of": 1000, "zeppelin": 0}
    wanted = weights("What is the price of a zeppelin?", Analyzer("en"), lambda term: held.get(term, 0), 1000)
    assert wanted.keys() == {"price", "zeppelin"}
    assert coverage(wanted, {"price"}) < 0.2 < 0.8 < coverage(wanted, {"zeppelin"})
    assert coverage(wanted, {"price", "zeppelin", "other"}) == 1.0
    assert coverage({}, set()) == 1.0


@pytest.mark.parametrize(
    ("question", "text", "supported"),
    [
        ("What happened in 1998?", "in 1999", False),
        ("What happened in 1998?", "back in 1998", True),
        ("Does Auralis sell to Voltana?", "Auralis only", True),
        ("Does Auralis sell to Voltana in Leipzig?", "Auralis only", False),
        ("what is it?", "anything", True),
        ("Where is Zoë's café?", "Zoe has one", True),
    ],
)
def test_names_and_numbers(question: str, text: str, supported: bool) -> None:
    assert names_supported(question, text) is supported


def test_identifiers() -> None:
    assert identifiers("What of WC-2024-00318, SUP-88213 and HP2352?") == ["wc-2024-00318", "sup-88213", "hp2352"]
    assert identifiers("What of the 30 days and well-known things?") == []
