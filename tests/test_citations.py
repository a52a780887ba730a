"""Answers held against their passages: what stands there is kept with its citation, the rest is not shown."""

from __future__ import annotations

import pytest

from hybrid_rag.citations import CheckedStream, check, strip_links

PASSAGES = [
    (1, "The battery lasts 38 hours. It costs 1,299.99 EUR. More at https://shop.example/battery."),
    (2, "Marta Lindqvist leads quality since 12 June 2024. Opened headphones can be returned within 14 days."),
]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        # as cited
        ("It lasts 38 hours [1].", "It lasts 38 hours [1]."),
        ("It lasts 38 hours. [1]", "It lasts 38 hours [1]."),
        ("It lasts 38 hours [Passage 1].", "It lasts 38 hours [1]."),
        ("It lasts 38 hours 【1】.", "It lasts 38 hours [1]."),
        ("It lasts 38 hours. [n=1]", "It lasts 38 hours [1]."),
        ('It lasts 38 hours [n="1"].', "It lasts 38 hours [1]."),
        ("Opened headphones have a 14-day return window [passage 2].", "Opened headphones have a 14-day return window [2]."),
        ("It costs 1299.99 EUR [1].", "It costs 1299.99 EUR [1]."),
        ("It costs €1.299,99 [1].", "It costs €1.299,99 [1]."),
        ("Since 2024-06-12 Marta Lindqvist leads quality [2].", "Since 2024-06-12 Marta Lindqvist leads quality [2]."),
        ("Opened headphones have a 14-day return window [2].", "Opened headphones have a 14-day return window [2]."),
        ("Opened headphones can be returned in fourteen days [2].", "Opened headphones can be returned in fourteen days [2]."),
        ("Yes. Opened headphones can be returned [2].", "Yes: Opened headphones can be returned [2]."),
        ("1. The battery lasts 38 hours [1]\n2. It costs 1299.99 EUR [1]", "The battery lasts 38 hours [1]. It costs 1299.99 EUR [1]."),
        ("* The battery lasts **38 hours** [1]", "The battery lasts 38 hours [1]."),
        ("<think>Is it 40?</think>It lasts 38 hours [1].", "It lasts 38 hours [1]."),
        # not there
        ("It lasts 40 hours [1].", ""),
        ("It costs 129.99 EUR [1].", ""),
        ("Quality is led by Peter Vogel [2].", ""),
        ("Marta Lindqvist leads quality since 13 June 2024 [2].", ""),
        ("Marta Lindqvist leads quality since June 2023 [2].", ""),
        ("Marta Lindqvist leads quality since July 2024 [2].", ""),
        ("Opened headphones can be returned in fifteen days [2].", ""),
        ("The part AB-38 lasts 38 hours [1].", ""),
        ("The moon orbits the earth slowly [1].", ""),
        ("It lasts 38 hours [1]. It weighs 250 grams [1].", "It lasts 38 hours [1]."),
        # cited anew, or one citation of several dropped
        ("Quality is led by Marta Lindqvist [1].", "Quality is led by Marta Lindqvist [2]."),
        ("The battery lasts 38 hours [7].", "The battery lasts 38 hours [1]."),
        ("The battery lasts 38 hours.", "The battery lasts 38 hours [1]."),
        ("The battery lasts 38 hours [1, 2].", "The battery lasts 38 hours [1]."),
        ("The battery lasts 38 hours [1][2].", "The battery lasts 38 hours [1]."),
    ],
)
def test_citations_are_checked(answer: str, text: str) -> None:
    result = check(answer, PASSAGES)
    assert result.text == text
    assert not result.abstained
    assert result.notes or text.count("[") >= answer.count("[") or "【" in answer or "<think>" in answer


def test_a_citation_is_not_moved_when_two_passages_could_be_meant() -> None:
    both = [(1, "It lasts 38 hours."), (2, "It lasts 38 hours, they say."), (3, "Nothing of it.")]
    assert check("It lasts 38 hours [3].", both).text == ""
    assert check("It lasts 38 hours.", both).text == "It lasts 38 hours [1]."


@pytest.mark.parametrize(
    "answer",
    ["I don't know.", "I don't know. [4]", "I don’t know", "I do not know", "", "  ", "The passages do not mention the weight [1].",
     "The provided documents don't contain this information.", "There is no information about the weight in the passages [2]."],
)  # fmt: skip
def test_not_knowing_is_an_abstention(answer: str) -> None:
    result = check(answer, PASSAGES)
    assert (result.abstained, result.text) == (True, "")


@pytest.mark.parametrize("answer", ["Ich weiß es nicht.", "Je ne sais pas. [1]", "No lo sé.", "Non lo so", "Não sei.", "Dat weet ik niet.",
                                    "Not stated in the passages.", "Not in your documents.", "Not specified.", "No answer."])  # fmt: skip
def test_not_knowing_is_an_abstention_in_other_words(answer: str) -> None:
    assert check(answer, [(1, "It lasts 38 hours.")]).abstained


@pytest.mark.parametrize("answer", ["Not in stock [1].", "Not given to customers abroad [1].", "Unknown senders are refused [1]."])
def test_what_opens_alike_is_an_answer(answer: str) -> None:
    passage = "The charger is not in stock. It is not given to customers abroad. Unknown senders are refused."
    assert check(answer, [(1, passage)]).text == answer


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("The battery lasts 38 hours [n].", "The battery lasts 38 hours [2]."),
        ("The battery lasts 38 hours. [n]", "The battery lasts 38 hours [2]."),
        ("The battery lasts 38 hours. This is stated in the passage from manual.md, which cites [n].", "The battery lasts 38 hours [2]."),
        ("The battery lasts 38 hours. This information is found in passage [2].", "The battery lasts 38 hours [2]."),
        ("The battery lasts 38 hours. This is stated in passage 2.", "The battery lasts 38 hours [2]."),
        ("According to passage 2, the battery lasts 38 hours.", "The battery lasts 38 hours [2]."),
        ("According to passages 2 and 1, the battery lasts 38 hours.", "The battery lasts 38 hours [2]."),
        ("Passage 2 states that the battery lasts 38 hours.", "The battery lasts 38 hours [2]."),
        ("The battery lasts 38 hours (passage 2).", "The battery lasts 38 hours [2]."),
        ("Based on the provided passages, the battery lasts 38 hours [2].", "The battery lasts 38 hours [2]."),
        ("The passages state that the battery lasts 38 hours [2].", "The battery lasts 38 hours [2]."),
        ("The battery lasts 38 hours (2).", "The battery lasts 38 hours [2]."),
        ("The battery lasts 38 hours (1, 2)", "The battery lasts 38 hours [2]."),
        ("The battery lasts 38 hours (57).", ""),
        ("It does.", ""),
    ],
)
def test_citations_in_words_are_read_and_remarks_on_them_left_out(answer: str, shown: str) -> None:
    assert check(answer, [(1, "Clean the cushions."), (2, "The battery lasts 38 hours, says the manual.")]).text == shown


@pytest.mark.parametrize(
    "answer",
    ["It is a renewable source of energy [1].", "It is described in the documents as brittle [1].", "Both texts are in Latin [1]."],
)
def test_what_is_said_of_documents_is_an_answer(answer: str) -> None:
    passage = "Wind is a renewable source of energy. The documents describe it as brittle. Both texts are in Latin."
    assert check(answer, [(1, passage)]).text == answer


def test_a_mark_alone_is_neither_an_answer_nor_an_abstention() -> None:
    result = check("[2]", PASSAGES)
    assert (result.text, result.abstained) == ("", False)
    assert result.notes


def test_what_is_known_is_kept_beside_what_is_not() -> None:
    result = check("The battery lasts 38 hours [1]. The passages do not mention the weight.", PASSAGES)
    assert (result.text, result.abstained) == ("The battery lasts 38 hours [1].", False)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("See ![x](http://e.example/?q=1) and [this](http://e.example) [1]", "See x and this [1]"),
        ('[a](http://e.example "title") b', "a b"),
        ("[a](javascript:alert(1)) b", "a b"),
        ("[a](data:text/html;base64,xx)", "a"),
        ("[a][ref]", "a"),
        ("See [1](http://e.example).", "See [1]."),
        ("<img src=x onerror=alert(1)>text<script>", "text"),
        ("<a href='http://e.example'>text</a>", "text"),
        ("at https://shop.example/battery, today", "at , today"),
        ("<https://e.example>", ""),
        ("a < b [1]", "a < b [1]"),
    ],
)
def test_links_and_images_of_the_model_are_not_kept(text: str, plain: str) -> None:
    assert strip_links(text) == plain


def test_an_address_that_a_passage_holds_may_stay() -> None:
    answer = "More is at https://shop.example/battery [1], and at https://evil.example/?q=38 [1]."
    assert "evil" not in check(answer, PASSAGES, keep_links=True).text
    assert "https://shop.example/battery" in check("More is at https://shop.example/battery [1].", PASSAGES, keep_links=True).text
    assert "shop.example" not in check("More is at https://shop.example/battery [1].", PASSAGES).text


# ---------------------------------------------------------------- while it is written


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_only_checked_sentences_are_streamed_and_all_of_them(size: int) -> None:
    text = "It lasts 38 hours. [1] It costs 99 EUR [1]. Marta Lindqvist leads quality [1]. See http://evil.example [1]."
    shown: list[str] = []
    stream = CheckedStream(PASSAGES, shown.append)
    for at in range(0, len(text), size):
        stream.add(text[at : at + size])
    early = len(shown)
    stream.finish(check(text, PASSAGES).text)
    assert "".join(shown) == "It lasts 38 hours [1]. Marta Lindqvist leads quality [2]." == check(text, PASSAGES).text
    assert early or size == 1000


def test_nothing_is_streamed_of_an_answer_that_does_not_hold() -> None:
    shown: list[str] = []
    stream = CheckedStream(PASSAGES, shown.append)
    for word in "It costs 99 EUR [1]. It weighs 3 kg [1]. ".split(" "):
        stream.add(word + " ")
    stream.finish("")
    assert shown == []
