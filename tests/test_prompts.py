"""The prompt: nothing inside a passage can close its fence or pose as a turn, and it fits into the context."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_rag.prompts import DONT_KNOW, SHORTEST_PASSAGE, Passage, build, estimate_tokens, fit, neutral
from tests.support.injections import FACT, INJECTIONS, QUESTION

TEMPLATE = re.compile(
    r"<[|\uff5c][^<>\n]{0,60}[|\uff5c]>|\[/?(INST|TOOL_RESULTS)\]|<</?SYS>>|</?(s|think|tool_call|start_of_turn|end_of_turn)>"
)


def mark_of(system: str) -> str:
    return system.partition("<passage-")[2].partition(">")[0]


def assert_sound(messages: list[tuple[str, str]], passages: int) -> None:
    """Exactly our own fences, in order, and no sign of a chat template."""
    (_, system), (_, human) = messages
    mark = mark_of(system)
    seen = re.sub("[\u200b-\u200f\u2060-\u2064\ufeff]", "", human)
    fences = re.findall(r"[<\uff1c\u3008]\s*[/\\]?\s*passage[^\s>]*", seen, re.IGNORECASE)
    assert fences == [f"<passage-{mark}", f"</passage-{mark}"] * passages
    assert TEMPLATE.search(human) is None


@pytest.mark.parametrize("name", INJECTIONS)
@pytest.mark.parametrize("place", ["text", "label", "question"])
def test_no_text_can_close_a_fence_or_pose_as_a_turn(name: str, place: str) -> None:
    attack = INJECTIONS[name][0]
    passages = [Passage(1, attack if place == "label" else "a.md", attack if place == "text" else "x"), Passage(2, "b.md", FACT)]
    messages = build(attack if place == "question" else QUESTION, passages, sentences=3)
    assert_sound(messages, 2)
    assert attack not in messages[0][1]
    assert FACT in messages[1][1]


def test_there_are_at_least_forty_attacks() -> None:
    assert len(INJECTIONS) >= 40


@given(st.lists(st.text(alphabet='</>pasge-|[]INST \u200b\uff1c0af"\n', max_size=60), min_size=1, max_size=3))
def test_random_pieces_of_fences_stay_inside(texts: list[str]) -> None:
    assert_sound(build("q", [Passage(n, text, text) for n, text in enumerate(texts, start=1)], sentences=3), len(texts))


def test_a_passage_cannot_hold_its_own_mark() -> None:
    mark = mark_of(build("q", [Passage(1, "a", "x")], sentences=3)[0][1])
    for text in (f"x</passage-{mark}>", mark, mark.upper(), "\u200b".join(mark)):
        again = build("q", [Passage(1, "a", text)], sentences=3)
        assert mark_of(again[0][1]) not in text.replace("\u200b", "").casefold()
        assert_sound(again, 1)


def test_the_prompt_says_the_rules_and_is_the_same_for_the_same_question() -> None:
    passages = [Passage(1, "a.md, page 3", "x"), Passage(2, "b.md", "y")]
    (first, system), (second, human) = build("Why?", passages, sentences=2)
    assert (first, second) == ("system", "human")
    assert DONT_KNOW in system and "at most 2 short sentences" in system and "[1] or [2]" in system
    assert 'n="1" from="a.md, page 3"' in human and "Question: Why?" in human
    assert build("Why?", passages, sentences=2) == build("Why?", passages, sentences=2)


def test_ordinary_text_is_not_changed() -> None:
    for text in (
        "a < b and c > d",
        '<div class="x">HTML</div>',
        "List[int] | None",
        "5 % of 1,299.99 €\n\ttabbed",
        "if x <= 3: return [1]",
        "日本語 and ünïcödé",
    ):
        assert neutral(text) == text


# ---------------------------------------------------------------- the context


def test_lowest_ranked_passages_are_dropped_first_and_it_is_said() -> None:
    fitted = fit("q", [Passage(n, "a", "word " * 300) for n in range(1, 6)], sentences=3, budget=1500)
    assert [p.n for p in fitted.passages] == [1, 2]
    assert fitted.tokens <= 1500
    assert fitted.notes == ("Left out, for the model's context has no room for more: the 3 lowest-ranked passages.",)


def test_the_best_passage_is_kept_though_shortened() -> None:
    fitted = fit("q", [Passage(1, "a", "word " * 3000)], sentences=3, budget=800)
    assert fitted.passages[0].text.startswith("word word")
    assert fitted.tokens <= 800
    assert "its end was left out" in fitted.notes[0]


def test_without_room_there_are_no_passages() -> None:
    assert fit("long " * 3000, [Passage(1, "a", "word " * 300)], sentences=3, budget=800).passages == ()


@given(st.integers(300, 4000), st.lists(st.integers(1, 4000), min_size=1, max_size=6))
def test_what_is_kept_fits(budget: int, lengths: list[int]) -> None:
    passages = [Passage(n, "file.md", "some words " * (length // 11 + 1)) for n, length in enumerate(lengths, start=1)]
    fitted = fit("A question?", passages, sentences=3, budget=budget)
    assert not fitted.passages or fitted.tokens <= budget
    assert [p.n for p in fitted.passages] == list(range(1, len(fitted.passages) + 1))
    assert all(len(p.text) >= min(SHORTEST_PASSAGE, len(passages[p.n - 1].text)) for p in fitted.passages)


@pytest.mark.parametrize(
    ("text", "real"),  # tokens by the tokenizer of a current model with a vocabulary of about 150,000
    [
        ("${{ }}:=" * 300, 1200),
        ("Geöffnete Kopfhörer können innerhalb von vierzehn Tagen zurückgegeben werden, Straßenverkehrsordnung." * 20, 581),
        ("Поставщик обязан заменить неисправные батареи в течение четырнадцати дней." * 20, 560),
        ("根据合同规定，供应商应当在收到通知后十四天内更换有缺陷的电池。" * 20, 380),
        ("🔥🎧👩\u200d💻✅" * 50, 350),
        ("ኢትዮጵያ አዲስ አበባ" * 30, 450),
        ("xqzj vkpw " * 200, 1201),
        (random.Random(1).randbytes(1500).hex(), 2637),
        ("\n" * 300, 10),
    ],
)
def test_the_estimate_is_not_below_a_real_count(text: str, real: int) -> None:
    assert real <= estimate_tokens(text) <= 13 * real


def test_ordinary_english_is_not_counted_twice_over() -> None:
    text = "Opened headphones can be returned within fourteen days of purchase when all parts are there. " * 20
    assert len(text) / 4.5 < estimate_tokens(text) < len(text) / 2.2
