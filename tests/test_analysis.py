from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_rag.analysis import Analyzer, detect_language

english = Analyzer("en")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Returns returned", ["return", "return"]),
        ("rule-A002", ["rule-a002", "rule", "a002"]),
        ("v1.2.3", ["v1.2.3", "v1", "2", "3"]),
        ("1,299.99", ["1299.99", "1299", "99"]),
        ("me@example.org", ["me@example.org", "me", "exampl", "org"]),
        ("C++ and C#", ["c++", "c", "and", "c#", "c"]),
        ("Café", ["cafe"]),
        ("東京都", ["東", "東京", "京", "京都", "都"]),
        ("🔥", []),
        ("0010", ["0010"]),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert english.terms(text) == expected


def test_nfc_and_nfd_meet() -> None:
    text = "Überprüfung café ﬁle"
    assert english.terms(unicodedata.normalize("NFD", text)) == english.terms(text)


def test_queries_drop_function_words_and_keep_repetitions() -> None:
    assert english.query("What is the battery battery life?").terms == (("batteri", 2.0), ("life", 1.0))


def test_a_query_of_function_words_alone_keeps_them() -> None:
    assert [term for term, _ in english.query("to be or not to be").terms]


@pytest.mark.parametrize("text", ['"return policy" now', "“return policy” now", "«return policy» now"])
def test_quoted_words_are_a_phrase(text: str) -> None:
    assert english.query(text).phrases == (("return", "polici"),)


@given(st.text())
def test_any_text_gives_terms_without_white_space(text: str) -> None:
    for term in english.terms(text):
        assert term
        assert not any(c.isspace() for c in term)
    english.query(text)


@given(st.text())
def test_the_terms_of_a_query_are_terms_of_a_document(text: str) -> None:
    plain = text.replace('"', " ")
    assert {term for term, _ in english.query(plain).terms} <= set(english.terms(plain))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Der Hund ist nicht in dem Haus und die Katze auch nicht", "de"),
        ("Le chat est dans la maison et il ne veut pas sortir avec nous", "fr"),
        ("The dog is not in the house and the cat is with us", "en"),
        ("", "en"),
        ("4711 0815", "en"),
    ],
)
def test_language(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_german_stems() -> None:
    german = Analyzer("de")
    assert german.terms("Rechnungen") == german.terms("Rechnung")
