"""What a follow-up question means when it stands alone, by rules."""

from __future__ import annotations

import pytest

from hybrid_rag.followups import is_follow_up, names, stand_alone

PRICE, PLAYS, COST = "What is the unit price of HP-1000?", "How long does the Auralis Studio Headphone play?", "What does Voltana pay?"


@pytest.mark.parametrize(
    ("last", "question", "understood"),
    [
        # the one thing that was named takes the pronoun's place
        (PRICE, "And its category?", "What is the category of HP-1000?"),
        (PRICE, "And the category?", "What is the category of HP-1000?"),
        (PRICE, "And who makes it?", "Who makes HP-1000?"),
        ("What is the status of WC-2025-00050?", "What is its repair cost?", "What is the repair cost of WC-2025-00050?"),
        (PLAYS, "How heavy is it?", "How heavy is Auralis Studio Headphone?"),
        (PLAYS, "Does its battery last?", "Does Auralis Studio Headphone's battery last?"),
        (PLAYS, "How do I clean its cushions?", "How do I clean the cushions of Auralis Studio Headphone?"),
        (PLAYS, "Does this product have a warranty?", "Does this product have a warranty (Auralis Studio Headphone)?"),
        ("Voltana's penalty?", "What are their payment terms?", "What are the payment terms of Voltana?"),
        ("I bought a Nova Phone 158. What is covered?", "How long is it?", "How long is Nova Phone 158?"),
        ('Where does it say "net weight"?', "What is it?", "What is net weight?"),
        # one thing for another of its kind
        ("How many orders came from Berlin?", "And from Hamburg?", "How many orders came from Hamburg?"),
        ("How many orders came from Berlin?", "What about Vienna?", "How many orders came from Vienna?"),
        ("How many orders were placed in 2024?", "And in 2023?", "How many orders were placed in 2023?"),
        ("What is the restocking fee on cameras?", "And on lenses?", "What is the restocking fee on lenses?"),
        ("What is the fault of claim WC-2024-00317?", "and WC-2024-00318?", "What is the fault of claim WC-2024-00318?"),
        # several named, or none: they stand behind the question
        ("Does Voltana deliver to Leipzig?", "What does it pay?", "What does it pay (Voltana, Leipzig)?"),
        ("What is the return window?", "When does it end?", "When does it end (return window)?"),
        ("What is the restocking fee on cameras?", "Why?", "Why (restocking fee cameras)?"),
    ],
)
def test_what_is_carried_over(last: str, question: str, understood: str) -> None:
    assert is_follow_up(question)
    assert stand_alone(question, last) == understood


@pytest.mark.parametrize(
    "question",
    [
        "Who delivers monitors?",
        "How long does it take to get a refund?",
        "Is it possible to cancel?",
        "Does Alpina Post pay it?",
        "And who at Kestrel Freight trains drivers?",
        "What does “it” mean?",
        "Where is the handbook?",
        "",
    ],
)
def test_what_stands_alone_is_left_alone(question: str) -> None:
    assert stand_alone(question, COST) == question


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What is the price?", []),
        ("Which Auralis model has A2DP?", ["Auralis", "A2DP"]),
        ("Is Voltana's cell 3.7 V?", ["Voltana", "3.7 V"]),
        ('Who wrote "the red book"?', ["the red book"]),
        ("I think I paid 15 % to Kestrel Freight.", ["15", "Kestrel Freight"]),
        ("Voltana pays what?", ["Voltana"]),
    ],
)
def test_what_a_question_names(question: str, found: list[str]) -> None:
    assert names(question) == found
