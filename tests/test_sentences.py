"""Texts cut into sentences: ordered spans that lose nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_rag import sentences


@given(st.text(max_size=500))
def test_sentences_are_ordered_spans_that_hold_all_text(text: str) -> None:
    spans = sentences.split(text)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    held = "".join(text[s:e] for s, e in spans)
    assert "".join(held.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One is here. Two is there! Three?", ["One is here.", "Two is there!", "Three?"]),
        ("Dr. Smith paid 3.50 EUR. He left.", ["Dr. Smith paid 3.50 EUR.", "He left."]),
        ("Use e.g. Tools of St. Mary, No. 5. Next", ["Use e.g. Tools of St. Mary, No. 5.", "Next"]),
        ("A wrapped\nsentence ends. Next", ["A wrapped\nsentence ends.", "Next"]),
        ("- one\n- two", ["- one", "- two"]),
        ("a: 1\nb: 2", ["a: 1", "b: 2"]),
        ("| a | b |\n| c | d |", ["| a | b |", "| c | d |"]),
        ("First paragraph\n\nsecond paragraph", ["First paragraph", "second paragraph"]),
        ("日本です。次です。", ["日本です。", "次です。"]),
        ("He said “Stop.” Then he left.", ["He said “Stop.”", "Then he left."]),
        ("Sie verfällt am 31. März des Jahres. Danach nicht.", ["Sie verfällt am 31. März des Jahres.", "Danach nicht."]),
        ("Sitzung 3. Mai\nBeginn", ["Sitzung 3. Mai\nBeginn"]),
        ("Im 2. Quartal und 3. Quartal z. B. Ende. Neu", ["Im 2. Quartal und 3. Quartal z. B. Ende.", "Neu"]),
        ("Vom 1. 6. Montags bis 30. September 2024. Ende", ["Vom 1. 6. Montags bis 30. September 2024.", "Ende"]),
        ("There were 12. May came late.", ["There were 12.", "May came late."]),
        ("I am 42. Next", ["I am 42.", "Next"]),
        ("Rund ca. 30 Tage. Modern art. It is in Fresno, CA. Next", ["Rund ca. 30 Tage.", "Modern art.", "It is in Fresno, CA.", "Next"]),
        ("Only on page 42. Next", ["Only on page 42.", "Next"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert [text[s:e] for s, e in sentences.split(text)] == expected
