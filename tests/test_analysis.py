"""Terms of documents and queries: what must meet, meets."""

from __future__ import annotations

import sys
import threading
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_rag.analysis import (
    IDENTIFIER_BOOST,
    STEMMERS,
    Analyzer,
    LexicalQuery,
    collection_language,
    detect_language,
    holds,
    is_identifier,
    normalise,
)

english = Analyzer("en")


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("see rule-A002 below", "A002"),
        ("see rule-A002 below", "rule-a002"),
        ("account 01234", "01234"),
        ("since version 1.2.3", "1.2.3"),
        ("write to Max.Muster@example.org", "max.muster@example.org"),
        ("write to Max.Muster@example.org", "example"),
        ("in src/app/main.py", "main.py"),
        ("in src/app/main.py", "src/app/main.py"),
        ("write to max@example.org", "example.org"),
        ("an e-mail", "email"),
        ("an email", "e-mail"),
        ("model HP-1000", "hp1000"),
        ("in snake_case", "case"),
        ("written in C++", "c++"),
        ("R&D costs", "r&d"),
        ("don’t", "don't"),
        ("Café", "cafe"),
        ("Cafe\u0301", "café"),
        ("ﬁne ｆｕｌｌ", "fine full"),
        ("STRASSE", "straße"),
        ("cli\u00admate", "climate"),
        ("1,258.99 EUR", "1258.99"),
        ("東京都に住む", "東京"),
        ("東京都に住む", "都"),
        ("서울시에서", "서울"),
        ("connected connections", "connection"),
    ],
)
def test_what_belongs_together_meets(text: str, query: str) -> None:
    wanted = {term for term, _ in english.query(query).terms}
    assert wanted & set(english.terms(text))


@pytest.mark.parametrize(("text", "query"), [("0010", "10"), ("A002", "A003"), ("1.2.3", "1.2.4"), ("東京", "京都")])
def test_what_differs_does_not_meet(text: str, query: str) -> None:
    assert not {term for term, _ in english.query(query).terms} & set(english.terms(text)) - {"1", "2"}


def test_a_whole_token_is_a_term_of_its_own() -> None:
    assert english.terms("rule-A002") == ["rule-a002", "rulea002", "rule", "a002"]
    assert english.terms("src/main.py") == ["src/main.py", "main.py", "src", "main", "py"]


def test_function_words_are_dropped_unless_there_is_nothing_else() -> None:
    assert english.query("what is the return policy").terms == (("return", 1.0), ("polici", 1.0))
    assert dict(english.query("to be or not to be").terms) == {"to": 2.0, "be": 2.0, "or": 1.0, "not": 1.0}


def test_a_repeated_word_counts_as_often() -> None:
    assert dict(english.query("shock wave, shock tube").terms) == {"shock": 2.0, "wave": 1.0, "tube": 1.0}


@pytest.mark.parametrize(
    ("query", "phrases"),
    [
        ('"exact words" here', (("exact", "word"),)),
        ("“one two” and «three»", (("one", "two"), ("three",))),
        ('"unbalanced', ()),
        ('a 27" monitor and a 24" screen', ()),
        ('""', ()),
        ('"🔥"', ()),
    ],
)
def test_phrases(query: str, phrases: tuple[tuple[str, ...], ...]) -> None:
    assert english.query(query).phrases == phrases


@pytest.mark.parametrize("query", ["", "   ", "🔥🔥", "\x00", "...", '"', "\ud800"])
def test_nothing_to_look_for_is_no_query(query: str) -> None:
    assert not english.query(query)


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=80))
def test_any_text_gives_terms_without_white_space(text: str) -> None:
    for analyzer in (english, Analyzer("none")):
        for term in analyzer.terms(text):
            assert term and not any(c.isspace() for c in term)
            term.encode("utf-8")
        query = analyzer.query(text)
        assert isinstance(query, LexicalQuery)
        assert all(term and boost >= 1 for term, boost in query.terms)


@given(st.text(max_size=60))
def test_composed_and_decomposed_text_meet(text: str) -> None:
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(unicodedata.normalize("NFC", text))


def test_a_long_word_is_cut() -> None:
    assert max(map(len, english.terms("x" * 100_000 + "-1"))) <= 200


def test_every_language_stems_and_names_itself() -> None:
    fingerprints = {Analyzer(language).fingerprint for language in STEMMERS}
    assert len(fingerprints) == len(STEMMERS)
    assert Analyzer("xx").fingerprint == Analyzer("none").fingerprint
    for language in STEMMERS:
        assert Analyzer(language).terms("abc")
    assert Analyzer("de").terms("Häuser") == Analyzer("de").terms("hauser")
    assert Analyzer("ru").terms("большой дом") == ["больш", "дом"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The goods are returned within thirty days if they are not used.", "en"),
        ("Die Ware ist innerhalb von dreißig Tagen zurückzugeben, wenn sie nicht benutzt wurde.", "de"),
        ("Les articles sont repris dans les trente jours si vous ne les avez pas utilisés.", "fr"),
        ("Los artículos se devuelven en los treinta días si no han sido usados por el cliente.", "es"),
        ("Это новый большой дом, и он стоит у реки.", "ru"),
        ("Η γάτα είναι στο σπίτι και κοιμάται.", "el"),
        ("SKU 10 20 30", "en"),
        ("", "en"),
        ("東京都", "en"),
    ],
)
def test_language_of_a_collection(text: str, language: str) -> None:
    assert detect_language(text) == language
    assert detect_language([text, text]) == language


ENGLISH, GERMAN = "The goods are returned when they are not used.", "Die Ware ist zurückzugeben, wenn sie nicht benutzt wurde."


@pytest.mark.parametrize(
    ("texts", "known", "language"),
    [
        ([], "", ""),
        ([], "de", "de"),
        ([GERMAN], "", "de"),
        ([ENGLISH, GERMAN, GERMAN, GERMAN], "", "de"),
        ([GERMAN] * 4, "en", "de"),
        ([ENGLISH] * 4, "de", "en"),
        ([ENGLISH, GERMAN] * 4, "en", "en"),
        ([ENGLISH, GERMAN] * 4, "de", "de"),
    ],
)
def test_a_settled_language_changes_only_when_it_is_clear(texts: list[str], known: str, language: str) -> None:
    assert collection_language(texts, known) == language


@given(st.text(max_size=80))
def test_the_terms_of_a_query_are_terms_of_the_same_text(text: str) -> None:
    for analyzer in (english, Analyzer("de")):
        assert {term for term, _ in analyzer.query(text).terms} <= set(analyzer.terms(text))


@pytest.mark.parametrize("word", ["wc-2024-00318", "a002", "1.2.3", "0010", "021000021", "utf-8"])
def test_identifiers_weigh_more_in_a_query(word: str) -> None:
    assert is_identifier(word)
    assert dict(english.query(f"find {word}").terms)[word] == IDENTIFIER_BOOST


@pytest.mark.parametrize("word", ["2024", "27.5", "12", "5g", "word", "e-mail", ""])
def test_quantities_and_words_are_no_identifiers(word: str) -> None:
    assert not is_identifier(word)


@pytest.mark.parametrize(
    ("text", "query", "held"),
    [
        ("The exact\nwords, here.", '"exact words"', True),
        ("The exact wording", '"exact words"', False),
        ("inexact words", '"exact words"', False),
        ("exact words", '"exact word"', False),
        ("Café Über", '"cafe uber"', True),
        ("大東京都に", '"東京"', True),
        ("東にある京", '"東京"', False),
        ("use C++ and x", '"c++"', True),
        ("a.b", '"a b" x', True),
    ],
)
def test_quoted_words_are_looked_for_as_written(text: str, query: str, held: bool) -> None:
    quoted = english.query(query).quoted
    assert quoted
    assert holds(text, quoted) is held


def test_threads_do_not_mix_up_each_others_words() -> None:
    words = [f"{start}{end}" for start in ("relat", "gener", "hope", "form", "oper", "nation", "convers") for end in
             ("ional", "ations", "fulness", "alized", "izing", "ically", "ousness", "iveness", "ements", "ability")] * 3  # fmt: skip
    wanted = {word: Analyzer("en").terms(word) for word in words}
    for _ in range(15):
        analyzer = Analyzer("en")  # with an empty cache
        wrong: list[str] = []

        def work(part: list[str], analyzer: Analyzer = analyzer, wrong: list[str] = wrong) -> None:
            try:
                wrong += [word for word in part if analyzer.terms(word) != wanted[word]]
            except Exception as error:  # IndexError is one way in which it showed
                wrong.append(repr(error))

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=work, args=(words[n:] + words[:n],)) for n in range(0, 70, 9)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        assert wrong == []
