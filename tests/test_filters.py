from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from hybrid_rag.errors import InputError
from hybrid_rag.filters import Filters

NOW = datetime(2026, 3, 10, tzinfo=UTC)


@dataclass
class Doc:
    source: str = "a/b/c.md"
    kind: str = "text"
    tags: tuple[str, ...] = ("Policy", "2024")
    date: str | None = "2026-03-01"
    modified: str = "2020-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("values", "passes"),
    [
        ({}, True),
        ({"folder": "a"}, True),
        ({"folder": "a/b/"}, True),
        ({"folder": "a/bb"}, False),
        ({"folder": "b"}, False),
        ({"glob": "*.MD"}, True),
        ({"glob": "a/*/c.md"}, True),
        ({"glob": "*.csv"}, False),
        ({"kind": "table"}, False),
        ({"tags": "policy"}, True),
        ({"tags": "policy and not draft"}, True),
        ({"tags": "(draft or policy) and 2024"}, True),
        ({"tags": "not policy"}, False),
        ({"tags": "policy draft"}, False),
        ({"tags": "draft, policy"}, True),
        ({"since": "2026-03-01"}, True),
        ({"since": "2026-03-02"}, False),
        ({"until": "2026-02-28"}, False),
        ({"recent": "10d"}, True),
        ({"recent": "1w"}, False),
        ({"recent": "1y", "kind": "text", "folder": "a", "tags": "policy"}, True),
        ({"sources": ("a/b/c.md",)}, True),
        ({"sources": ("x.md",)}, False),
    ],
)
def test_conditions(values: dict, passes: bool) -> None:
    assert Filters.parse(**values).matches(Doc(), now=NOW) is passes


def test_the_files_time_stands_in_for_a_missing_date() -> None:
    assert not Filters.parse(since="2021-01-01").matches(Doc(date=None), now=NOW)


@pytest.mark.parametrize(
    "values",
    [{"kind": "video"}, {"since": "yesterday"}, {"recent": "soon"}, {"tags": "a and"}, {"tags": "(a"}, {"tags": "a )"}, {"colour": "red"}],
)
def test_wrong_values_are_said(values: dict) -> None:
    with pytest.raises(InputError):
        Filters.parse(**values)


def test_empty() -> None:
    assert Filters.parse(folder="", kind=None).empty
    assert not Filters.parse(folder="a").empty
