"""Markdown: headings, front matter and what must stay as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_rag.loading import Limits, front_matter, read
from hybrid_rag.records import Document


def load(folder: Path, content: str) -> Document:
    path = folder / "note_on-things.md"
    path.write_text(content, encoding="utf-8")
    return read(path, source=path.name, limits=Limits())


def headings(document: Document) -> list[tuple[str, ...]]:
    return [b.heading for b in document.blocks if b.role == "heading"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A", [("A",)]),
        ("   ### A ###", [("A",)]),
        ("#A", []),
        ("####### A", []),
        (r"\# A", []),
        ("    # A", []),
        ("```\n# A\n```", []),
        ("~~~~\n# A\n~~~\n# B\n~~~~", []),
        ("```\n# A\n", []),
        ("<!--\n# A\n\n# B\n-->", []),
        ("<pre>\n# A\n</pre>", []),
        ("> # A", []),
        ("- # A", []),
        ("A\n===", [("A",)]),
        ("A\n---", [("A",)]),
        ("A\nB\n---", [("A B",)]),
        ("\n---\nA\n", []),
        ("# *A* `b` [c](http://x) ![d](e.png)", [("A b c d",)]),
        ("# A &amp; B \\* C", [("A & B * C",)]),
        ("# A {#anchor}", [("A",)]),
        ("# A\n### B\n## C\n# D", [("A",), ("A", "B"), ("A", "C"), ("D",)]),
        ("# [[Page|Shown]]", [("Shown",)]),
        ("---\ntitle: x\n# A\n---\n# B", [("B",)]),
        ("| # A |\n|---|\n| # B |", []),
    ],
)
def test_headings(tmp_path: Path, text: str, expected: list) -> None:
    assert headings(load(tmp_path, text)) == expected


def test_nothing_of_the_source_is_lost(tmp_path: Path) -> None:
    text = 'intro\n\n[ref]: http://example.com "T"\n\n- a\n  ```sh\n  [[ -f x ]]\n  ```\n\n> quote\n\n    code\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend'
    document = load(tmp_path, text)
    for line in text.split("\n"):
        assert line.strip() in document.text
    assert [b.role for b in document.blocks] == ["paragraph", "paragraph", "list", "paragraph", "code", "table", "paragraph"]


def test_comments_of_the_author_are_left_out(tmp_path: Path) -> None:
    assert load(tmp_path, "a\n\n<!-- not\n\nseen -->\n\nb").text == "a\n\nb"


def test_code_keeps_its_brackets(tmp_path: Path) -> None:
    assert load(tmp_path, "See [[A|b]], not `[[A|b]]`.").text == "See b, not `[[A|b]]`."


def test_front_matter_is_metadata_and_can_be_found(tmp_path: Path) -> None:
    document = load(tmp_path, "---\ntitle: Shipping\ntags: [a, '#b']\ndate: 2024-03-01\nowner: Ann Lee\nversion: 01.10\n---\ntext\n")
    assert (document.title, document.tags, document.date) == ("Shipping", ("a", "b"), "2024-03-01")
    assert document.metadata["version"] == "01.10"
    assert "owner: Ann Lee" in document.text


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('+++\ntitle = "T"\ndate = 2024-01-02\n+++\nx', {"title": "T", "date": "2024-01-02"}),
        ("---\ntitle: T\n...\nx", {"title": "T"}),
        ("---\r\n---\nx", {}),
        ("---\njust text\n---\nx", {}),
        ("---\na: &a x\nb: *a\n---\n", {"a": "x", "b": "x"}),
    ],
)
def test_forms_of_front_matter(text: str, values: dict) -> None:
    assert front_matter.parse(text.replace("\r\n", "\n")).values == values


@pytest.mark.parametrize(
    ("value", "day"),
    [
        ("2024-03-01T10:00:00Z", "2024-03-01"),
        ("01.03.2024", "2024-03-01"),
        ("March 1, 2024", "2024-03-01"),
        ("soon", None),
        ("2024-13-01", None),
    ],
)
def test_dates(value: str, day: str | None) -> None:
    assert front_matter.iso_date(value) == day


def test_a_bomb_of_aliases_stays_small() -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}, *a{i - 1}]" for i in range(1, 40)]
    found = front_matter.parse("---\n" + "\n".join(lines) + "\n---\n")
    assert sum(map(len, found.values.values())) < 1000


def test_a_title_comes_from_the_first_heading_or_the_name(tmp_path: Path) -> None:
    assert load(tmp_path, "## Sub\n\n# Main\n").title == "Main"
    assert load(tmp_path, "text").title == "note on things"
