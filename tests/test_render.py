"""Renderings: what people must see is there, and nothing that stands in a document rules the terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from hybrid_rag import render
from hybrid_rag.cli.asking import LiveAnswer
from hybrid_rag.config import load
from hybrid_rag.records import Answer, Chunk, Citation, DocumentInfo, FileReport, Hit, IndexReport, SearchResult, SkippedPath, TableResult
from hybrid_rag.render_text import cell, joined, ranges, safe

CHUNK = Chunk("manual.pdf", "text", 0, "A full charge lasts 30 hours.", 0, 29, heading=("Charging",), page=3)
HIT = Hit(1, "c1", CHUNK, terms=("charge",), same_text=("copy.pdf",), explanation="both legs agree")
CITATION = Citation(
    1, "manual.pdf", "text", page=3, heading=("Charging",), quote="A full charge lasts 30 hours.", verified=True, marks=((20, 22),)
)
ANSWER = Answer(
    "How long?",
    "It lasts 30 hours [1].",
    "llm",
    False,
    (CITATION,),
    model="llama3.1",
    milliseconds={"search": 12.0},
    tokens={"prompt": 812},
)
RESULT = TableResult(
    sql="SELECT city, count(*) FROM orders GROUP BY 1", columns=("city", "n"), rows=(("Berlin", 1200), ("Paris", None)),
    sources=("orders.csv",), row_count=1203, record_numbers=(1, 2, 3, 7), excluded=("row 9: amount is not a number",),
)  # fmt: skip


def shown(function, record, *, terminal: bool = False, width: int = 80) -> str:
    out = io.StringIO()
    function(record, Console(file=out, force_terminal=terminal, width=width, highlight=False))
    return out.getvalue()


def test_answer_shows_where_it_stands_and_who_wrote_it() -> None:
    text = shown(render.answer, ANSWER)
    for part in (
        "It lasts 30 hours [1].",
        "(written by llama3.1)",
        "[1] manual.pdf, page 3, Charging",
        "    A full charge lasts 30 hours.",
        "search 12 ms",
        "sent 812",
    ):
        assert part in text
    assert "not verified" not in text
    unsent = shown(render.answer, replace(ANSWER, tokens={"prompt": 0, "answer": 0, "context": 300, "whole_files": 45_000}), width=200)
    assert "Tokens: none sent to a model, passages 300, whole files instead 45,000" in unsent
    assert "(not verified)" in shown(render.answer, replace(ANSWER, citations=(replace(CITATION, verified=False),)))


def test_quoted_answer_is_not_shown_twice() -> None:
    quoted = replace(ANSWER, mode="extractive", model=None, answer=f"{CITATION.quote} [1]")
    assert shown(render.answer, quoted).count(CITATION.quote) == 1
    unsure = replace(quoted, answer="No passage answers this clearly. The closest ones:")
    assert "No passage answers this clearly" in shown(render.answer, unsure) and CITATION.quote in shown(render.answer, unsure)


def test_marked_words_of_a_quote_stand_out() -> None:
    assert "\x1b[1;33m30\x1b[0m" in shown(render.answer, ANSWER, terminal=True)


def test_calculated_answer_shows_its_proof() -> None:
    text = shown(render.answer, replace(ANSWER, mode="table", sql=RESULT.sql, table=RESULT))
    for part in (
        "Berlin",
        "1200",
        f"SQL: {RESULT.sql}",
        "Stands on 1,203 records of orders.csv (rows 1-3, 7, …)",
        "row 9: amount is not a number",
    ):
        assert part in text


def test_no_answer_shows_the_nearest_passages() -> None:
    text = shown(render.answer, Answer("Mars?", "Not in your documents.", "none", True, hits=(HIT,)))
    assert "Not in your documents." in text and "Nearest passages:" in text and "manual.pdf page 3, Charging" in text


def test_search_shows_place_text_and_how_it_was_found() -> None:
    text = shown(render.search_result, SearchResult("charge", "keyword", (HIT,), vector_share=0.4, notes=("No vectors yet.",)))
    for part in (
        "1. manual.pdf  page 3, Charging",
        "A full charge lasts",
        "copy.pdf",
        "both legs agree",
        "Keyword search, 40% of the chunks",
        "No vectors yet.",
    ):
        assert part in text
    assert "Nothing found." in shown(render.search_result, SearchResult("x", "hybrid", ()))


def test_reports_name_every_file_that_was_not_read() -> None:
    files = (
        FileReport("good.md", "read", "added"),
        FileReport("bad.pdf", "not read", "failed", reason="It is encrypted.", remedy="Remove the password."),
    )
    report = IndexReport(
        "2025-01-01T00:00:00+00:00", 1.5, files, (SkippedPath("~$a.docx", "a lock file"),), {"read": 1, "added": 1}, chunks_failed=2
    )
    for function in (render.index_report, render.read_report):
        text = shown(function, report)
        assert "bad.pdf: It is encrypted. Remove the password." in text and "good.md" not in text and "2 chunks without a vector" in text
    assert "1 file indexed (1 new, 0 changed" in shown(render.index_report, report)
    assert "~$a.docx: a lock file" in shown(render.read_report, report)
    assert "hybrid-rag index" in shown(render.read_report, None)


def test_lines_stay_whole_where_there_is_no_terminal() -> None:
    name = "a-very-long-folder-name/" * 5 + "file.md"
    info = DocumentInfo(name, "text", "md", "Title", 1, "", "2025-01-01T00:00:00+00:00", "", 1, 1)
    assert name in shown(render.documents, [info], width=40)
    assert "A full charge lasts 30 hours." in shown(render.answer, ANSWER, width=12)


@pytest.mark.parametrize("attack", ["\x1b[2J\x1b]0;owned\x07", "a\rb", "\u202egnp.exe", "[red]markup[/red] [/]", "\ud800"])
def test_documents_do_not_rule_the_terminal(attack: str) -> None:
    hit = replace(HIT, chunk=replace(CHUNK, text=attack, source=f"{attack}.md", heading=(attack,)))
    citation = replace(CITATION, quote=attack, source=attack, heading=(attack,), marks=())
    texts = [
        shown(render.answer, replace(ANSWER, answer=attack, citations=(citation,))),
        shown(render.search_result, SearchResult("q", "hybrid", (hit,))),
        shown(render.table_result, replace(RESULT, rows=((attack, 1),))),
    ]
    for text in texts:
        text.encode("utf-8")
        assert not set(text) & set("\x1b\x07\r\u202e")
    assert all("[red]markup[/red] [/]" in t for t in texts) or "markup" not in attack


def test_safe_keeps_what_people_write() -> None:
    for text in ("naïve café\u00a0%", "東京 👩‍👧 \u200fעברית", "tab\tline\n"):
        assert safe(text) == text
    assert len(safe("a\x00\x1bb")) == 4


def test_lines_broken_by_a_page_are_joined_and_others_kept() -> None:
    wrapped = "A full charge lasts 38 hours with noise cancelling off, and up to\n30 hours with it on.\nTen minutes help."
    assert joined(wrapped) == wrapped.replace("to\n30", "to 30")
    record = "comment: a very long comment that goes on and on and on, and on and on.\nrating: 3"
    assert joined(record) == record


def test_small_forms() -> None:
    assert ranges([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"
    assert [cell(v) for v in (None, 1234.5, 0.00123, 0.0, 1200, "x")] == ["", "1,234.50", "0.00123", "0.00", "1200", "x"]


def test_csv_is_exact() -> None:
    assert shown(render.table_csv, replace(RESULT, rows=(("a,b", 0.1), (None, 2)))) == 'city,n\n"a,b",0.1\n,2\n'


# ---------------------------------------------------------------- links and answers while they are written


def test_sources_lead_to_their_files_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "a b.pdf").write_bytes(b"%PDF")
    cited = replace(ANSWER, citations=(replace(CITATION, source="a b.pdf", page=3),))
    with_root = partial(render.answer, root=tmp_path)
    assert f"{(tmp_path / 'a b.pdf').as_uri()}#page=3\x1b\\" in shown(with_root, cited, terminal=True)
    assert "file://" not in shown(with_root, cited)
    assert "file://" not in shown(with_root, replace(ANSWER, citations=(replace(CITATION, source="gone.pdf"),)), terminal=True)


class _Live:
    """What a command gives to its live answer."""

    as_json = False

    def __init__(self, terminal: bool) -> None:
        self.console = Console(file=io.StringIO(), force_terminal=terminal, width=100, color_system="standard" if terminal else None)
        self.messages = Console(file=io.StringIO(), width=100)
        self.loaded = load(environ={})

    def note(self, text: str) -> None:
        self.messages.print(text, markup=False)

    def show(self, result, render_it) -> None:
        render_it(result, self.console)

    @property
    def out(self) -> str:
        return self.console.file.getvalue()


def test_an_answer_is_shown_while_it_is_written_on_a_terminal_only() -> None:
    live = LiveAnswer(run := _Live(terminal=True))
    live.on_token(ANSWER.answer[:10])
    assert ANSWER.answer[:10] in run.out
    live.on_token(ANSWER.answer[10:])
    live.show(ANSWER)
    assert run.out.count(ANSWER.answer[:10]) == 1
    assert LiveAnswer(_Live(terminal=False)).on_token is None


def test_an_answer_that_came_out_otherwise_is_shown_in_whole() -> None:
    live = LiveAnswer(run := _Live(terminal=True))
    live.on_token("Something \x1b[2Jelse.")
    live.show(ANSWER)
    assert "\x1b[2J" not in run.out
    assert ANSWER.answer in run.out
    assert "as checked in whole" in run.messages.file.getvalue()


def test_closest_passages_are_listed_once() -> None:
    unsure = replace(ANSWER, mode="none", abstained=True, answer="No passage answers this clearly. The closest ones:", hits=(HIT,))
    assert "Nearest passages" not in shown(render.answer, unsure)
