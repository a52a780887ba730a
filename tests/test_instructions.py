"""Sentences that speak to the model are found in attacks, and hardly ever in ordinary documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_rag.citations import check
from hybrid_rag.instructions import without_instructions
from tests.support.injections import FACT, INJECTIONS

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("name", INJECTIONS)
def test_what_an_attack_wants_said_is_supported_by_nothing(name: str) -> None:
    attack, payload = INJECTIONS[name]
    text, found = without_instructions(f"{FACT}\n\n{attack}")
    assert len(text) == len(f"{FACT}\n\n{attack}")
    assert found or payload not in text
    assert payload.casefold() not in check(f"{payload} [1].", [(1, text)]).text.casefold()
    assert check(f"{FACT} [1]", [(1, text)]).text


@pytest.mark.parametrize(
    "text",
    [
        "The system only answers on weekdays. Customers may reply to this address.",
        "Ignore the blinking light during the update.",
        "Assistants open the store at eight. The tool is for indoor use only.",
        "Print the label and write the number on the box.",
        "The new rules of the warranty apply from March. You are now a member.",
        "Do not forget the previous owner's papers.",
    ],
)
def test_ordinary_sentences_are_left_alone(text: str) -> None:
    assert without_instructions(text) == (text, 0)


def test_the_sample_holds_none() -> None:
    files = [path for path in sorted(DATA.iterdir()) if path.suffix in (".md", ".txt")]
    assert files
    assert [path.name for path in files if without_instructions(path.read_text(encoding="utf-8"))[1]] == []
