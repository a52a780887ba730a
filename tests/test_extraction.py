"""Answers without a model: parts of the documents letter for letter, the right sentence with its neighbours, the right record."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_rag.analysis import Analyzer
from hybrid_rag.extraction import LONGEST_QUOTE, Extract, extract
from hybrid_rag.records import Chunk, Hit
from hybrid_rag.reranking import Reranker, bundled_reranker
from tests.support.injections import FACT, QUESTION

POLICY = f"Every product has a warranty. Unopened products can be returned within 30 days. {FACT} Gift cards cannot be returned. Ask in the store."
ROWS = "claim_id: WC-1\nfault: battery drains fast\nrepair_cost: 10.00\n\nclaim_id: WC-2\nfault: screen is dark\nrepair_cost: 58.50\n\nclaim_id: WC-3\nfault: no sound\nrepair_cost: 0"


def hit(text: str, *, kind: str = "text", start: int = 0, **fields) -> Hit:
    chunk = Chunk("a.md", kind, 0, text, start, start + len(text), **fields)  # type: ignore[arg-type]
    return Hit(1, chunk.id, chunk)


def quotes(question: str, *hits: Hit, reranker: Reranker | None = None) -> list[Extract]:
    return extract(question, hits, analyzer=Analyzer("en"), frequency=lambda term: 3, total=100, reranker=reranker, sure_from=2.0)


@pytest.fixture(scope="module")
def reranker() -> Reranker:
    return bundled_reranker()


def test_the_best_sentence_stands_in_the_quote_with_its_neighbours(reranker: Reranker) -> None:
    best = quotes(QUESTION, hit("The store opens at nine. It closes at six."), hit(POLICY, start=100), reranker=reranker)[0]
    citation = best.citation(1, f"{QUESTION} {best.unit.text}")
    assert best.unit.text == FACT
    assert citation.quote == f"Unopened products can be returned within 30 days. {FACT} Gift cards cannot be returned."
    assert citation.quote == POLICY[citation.start - 100 : citation.end - 100]
    assert best.score > 2
    assert {"14", "opened", "headphones"} <= {citation.quote[s:e] for s, e in citation.marks}


def test_a_sentence_that_answers_nothing_scores_low(reranker: Reranker) -> None:
    found = quotes("How heavy is the Nova Phone?", hit(POLICY), reranker=reranker)
    assert all(extracted.score < 2 for extracted in found)


def test_the_same_question_gives_the_same_quotes(reranker: Reranker) -> None:
    first = quotes(QUESTION, hit(POLICY), hit(ROWS), reranker=reranker)
    assert quotes(QUESTION, hit(POLICY), hit(ROWS), reranker=reranker) == first


def test_the_heading_may_hold_what_is_asked_about(reranker: Reranker) -> None:
    plain, headed = hit("It lasts 38 hours."), hit("It lasts 38 hours.", title="Auralis One", heading=("Charge of the Auralis One",))
    asked = "How long does a charge of the Auralis One last?"
    assert quotes(asked, headed, reranker=reranker)[0].score > quotes(asked, plain, reranker=reranker)[0].score


def test_a_question_in_a_document_is_no_answer_to_it(reranker: Reranker) -> None:
    asked = "How long is the warranty of headphones?"
    listed = f"Who leads the store? {asked}\nWhen does it open?"
    assert quotes(asked, hit(listed), reranker=reranker) == []
    faq = f"When does the store open? At nine.\n\n## {asked}\n\nTwo years, from the day of delivery.\n\n## Is it free? Yes."
    best = quotes(asked, hit(listed), hit(faq), reranker=reranker)[0]
    assert best.unit.text == f"## {asked}\n\nTwo years, from the day of delivery."
    assert faq[best.start : best.end] == f"At nine.\n\n{best.unit.text}\n\n## Is it free?"
    assert best.score > 2


# ---------------------------------------------------------------- records


def test_a_record_is_quoted_whole_with_its_number() -> None:
    best = quotes("What is the fault of WC-2?", hit(ROWS, kind="table", rows=(11, 13)))[0]
    citation = best.citation(1, "WC-2")
    assert citation.rows == (12, 12)
    assert citation.quote == "claim_id: WC-2\nfault: screen is dark\nrepair_cost: 58.50"


def test_an_identifier_is_answered_from_what_holds_it() -> None:
    other = hit("The battery of WC-1 drains fast, a fault of the battery.", title="Claims")
    found = quotes("What is the fault of the battery of WC-2024-00317?", other, hit("It is WC-2024-00317: the fault is the battery."))
    assert {extracted.unit.chunk.text for extracted in found} == {"It is WC-2024-00317: the fault is the battery."}


def test_cards_of_tables_are_not_quoted() -> None:
    assert quotes(QUESTION, hit("Table returns: 3 columns, opened headphones.", kind="table", role="card")) == []


# ---------------------------------------------------------------- letter for letter

PIECES = st.sampled_from(
    [
        "Opened headphones. ",
        "14 days! ",
        "\n\n",
        "- item\n",
        "a: b\n",
        "“Quoted.” ",
        "Dr. No ",
        "ﬁ ",
        "東京。",
        "🔥 ",
        "x" * 300 + " ",
        "| a | b |\n",
        "\u202e",
        "\r\n",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=40), st.booleans(), st.integers(0, 1000))
def test_every_quote_is_a_part_of_the_document(pieces: list[str], table: bool, start: int) -> None:
    text = "".join(pieces)
    found = hit(text, kind="table", rows=(1, 1 + text.count("\n\n")), start=start) if table else hit(text, start=start)
    for extracted in quotes(QUESTION, found):
        citation = extracted.citation(1, QUESTION)
        assert citation.quote == text[citation.start - start : citation.end - start]
        assert extracted.unit.text[:200] in citation.quote or citation.quote in extracted.unit.text
        assert 0 < len(citation.quote) <= 4 * LONGEST_QUOTE
        assert all(0 <= s < e <= len(citation.quote) for s, e in citation.marks)
