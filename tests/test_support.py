"""What a passage bears out: tolerant of form, strict about values."""

from __future__ import annotations

import pytest

from hybrid_rag.support import identifiers, names, spans_of_support, supports


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        ("Price: 1,299.99", "1299.99"),
        ("Preis: 1.299,99", "1,299.99"),
        ("12 500 units", "12,500 units"),
        ("12\u202f500 units", "12500 units"),
        ("1'200 CHF", "1200 CHF"),
        ("007", "7"),
        ("3.50 EUR", "3.5 euros"),
        ("4 %", "4 percent"),
        ("seven days", "7 days"),
        ("7 days", "seven days"),
        ("2024-06-12", "on 12 June 2024"),
        ("12 June 2024", "2024-06-12"),
        ("June 12, 2024", "12/06/2024"),
        ("a 30-day window", "30 days"),
        ("5kg", "5 kg"),
        ("Café Zoë", "the Cafe Zoe"),
        ("Voltana's cells", "by Voltana"),
        ("mit den Jahren", "zwei Jahre".replace("zwei ", "")),
        ("claim WC-2024-00317", "for claim WC-2024-00317"),
        ("東京 is far", "東京"),
    ],
)
def test_the_same_in_another_form(passage: str, sentence: str) -> None:
    assert supports(passage, sentence)


@pytest.mark.parametrize(
    ("passage", "sentence"),
    [
        ("1,299.99", "1,299.98"),
        ("1234", "123"),
        ("claim WC-2024-00317", "claim WC-2024-00318"),
        ("claim WC-2024-003171", "claim WC-2024-00317"),
        ("the party", "by Art"),
        ("maybe so", "in May so"),
        ("12 June 2024", "12 July 2024"),
        ("seven days", "8 days"),
        ("Volta cells", "by Voltana"),
        ("it rains in spring", "the turbine accelerates quickly"),
    ],
)
def test_another_value_is_another_statement(passage: str, sentence: str) -> None:
    assert not supports(passage, sentence)


def test_identifiers_are_words_that_mix_letters_and_digits() -> None:
    assert identifiers("WC-2024-00317 and A002 or v1.2.3b4, not 30-day, 5kg, 2nd, 38h, 2024-06-12 or well-known") == [
        "wc-2024-00317",
        "a002",
        "v1.2.3b4",
    ]


def test_names_do_not_include_what_merely_begins_the_sentence() -> None:
    assert names("Returns are handled by Marta Lindqvist at NASA in the Leipzig warehouse") == ["marta", "lindqvist", "nasa", "leipzig"]


def test_marks_show_the_supporting_words() -> None:
    quote = "The battery lasts 38 hours, it costs 1,299.99."
    assert [quote[a:b] for a, b in spans_of_support(quote, "battery of 38 hours for 1299.99")] == ["battery", "38", "hours", "1,299.99"]
    assert spans_of_support(quote, "nothing alike") == ()
