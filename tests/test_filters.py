"""Filters: what passes, what is refused, and that nothing a person types breaks them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid_rag.errors import InputError
from hybrid_rag.filters import Filters

NOW = datetime(2025, 6, 15, 12, tzinfo=UTC)


@dataclass
class Info:
    source: str = "docs/Policies/returns.md"
    kind: str = "text"
    tags: tuple[str, ...] = ("Policy", "q3/2025", "two words")
    date: str | None = "2025-05-01"
    modified: str = "2025-06-14T10:00:00+00:00"


@pytest.mark.parametrize(
    ("condition", "passes"),
    [
        ({}, True),
        ({"folder": "docs"}, True),
        ({"folder": "./docs/Policies/"}, True),
        ({"folder": "docs\\Policies"}, True),
        ({"folder": "."}, True),
        ({"folder": "doc"}, False),
        ({"folder": "docs/Policies/returns.md"}, False),
        ({"glob": "*.md"}, True),
        ({"glob": "*.MD"}, True),
        ({"glob": "ret*"}, True),
        ({"glob": "docs/*.md"}, False),
        ({"glob": "docs/**/*.md"}, True),
        ({"glob": "docs/Policies/**/*.md"}, True),
        ({"glob": "**/returns.*"}, True),
        ({"glob": "docs/**"}, True),
        ({"glob": "docs/*/return[rs].md"}, True),
        ({"glob": "*.csv"}, False),
        ({"kind": "text"}, True),
        ({"kind": "table"}, False),
        ({"sources": ("docs/Policies/returns.md", "x")}, True),
        ({"sources": "docs/Policies/returns.md"}, True),
        ({"sources": ["x"]}, False),
        ({"tags": "policy"}, True),
        ({"tags": "#POLICY and not draft"}, True),
        ({"tags": "policy draft"}, False),
        ({"tags": "draft or (policy and not old)"}, True),
        ({"tags": "not (policy or old)"}, False),
        ({"tags": "draft | policy"}, True),
        ({"tags": "policy & !draft"}, True),
        ({"tags": "draft, policy"}, True),
        ({"tags": "q3/2025"}, True),
        ({"tags": '"two words"'}, True),
        ({"since": "2025-05-01"}, True),
        ({"since": "2025-05-02"}, False),
        ({"until": "2025-05-01"}, True),
        ({"until": "2025-04-30"}, False),
        ({"since": "2025-01-01", "until": "2025-12-31"}, True),
        ({"recent": "90d"}, True),
        ({"recent": "1m"}, False),
        ({"recent": "2 months"}, True),
        ({"recent": "1Y"}, True),
        ({"recent": "999999999y"}, True),
        ({"kind": "text", "glob": "*.md", "tags": "policy", "folder": "docs", "recent": "90d"}, True),
        ({"kind": "text", "glob": "*.md", "tags": "draft", "folder": "docs", "recent": "90d"}, False),
    ],
)
def test_conditions(condition: dict[str, object], passes: bool) -> None:
    assert Filters.parse(**condition).matches(Info(), now=NOW) is passes


def test_the_file_time_stands_in_for_a_missing_or_unreadable_date() -> None:
    recent = Filters.parse(recent="2d")
    assert recent.matches(Info(date=None), now=NOW)
    assert recent.matches(Info(date="spring"), now=NOW)
    assert not recent.matches(Info(), now=NOW)


def test_composed_and_decomposed_names_meet() -> None:
    assert Filters.parse(folder="Cafe\u0301").matches(Info(source="Caf\u00e9/a.md"), now=NOW)


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ({"colour": "red"}, "colour"),
        ({"kind": "picture"}, "picture"),
        ({"since": "yesterday"}, "yesterday"),
        ({"since": "2025-02-30"}, "2025-02-30"),
        ({"until": "2025-01-01 or so"}, "or so"),
        ({"since": "2025-02-01", "until": "2025-01-01"}, "after"),
        ({"recent": "soon"}, "soon"),
        ({"recent": "90d or so"}, "90d or so"),
        ({"tags": "policy and"}, "policy and"),
        ({"tags": "(policy"}, "(policy"),
        ({"tags": "policy)"}, "policy)"),
        ({"tags": 'a "'}, 'a "'),
        ({"tags": "or"}, "or"),
        ({"tags": "(" * 100_000}, "100000"),
        ({"tags": "not " * 100_000}, "100000"),
    ],
)
def test_bad_values_are_named(condition: dict[str, object], named: str) -> None:
    with pytest.raises(InputError) as caught:
        Filters.parse(**condition)
    assert named in caught.value.message


def test_unset_values_are_no_condition() -> None:
    assert Filters.parse(folder=None, tags="", sources=()).empty
    assert not Filters.parse(kind="text").empty
    assert Filters.parse(kind="text", recent="90d").describe() == "kind text, recent 90d"


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_a_filter_or_an_input_error(folder: str, glob: str, tags: str) -> None:
    try:
        filters = Filters.parse(folder=folder, glob=glob, tags=tags)
    except InputError:
        return
    assert filters.matches(Info(), now=NOW) in (True, False)


def test_a_hostile_glob_is_quick() -> None:
    assert not Filters.parse(glob="*a" * 500 + "/**" * 500).matches(Info(source="a" * 200), now=NOW)
