"""When nothing is answered: by the cross-encoder, and by the question's own names, numbers and identifiers."""

from __future__ import annotations

import pytest

from hybrid_rag.abstention import identifiers, names_supported, unanswerable


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
    assert unanswerable(question, logits, text, abstain_below=-5, support_below=2) is expected


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
