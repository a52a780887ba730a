"""Parts of the page that need no server: snippets, charts, rendered Markdown, facets, percentiles."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from hybrid_rag.filters import Filters
from hybrid_rag.percentiles import percentile
from hybrid_rag.records import Answer, Chunk, Citation, DocumentInfo, Hit, TableResult
from hybrid_rag.web.charts import chart
from hybrid_rag.web.facets import facets
from hybrid_rag.web.markdown_view import render
from hybrid_rag.web.measures import Measures
from hybrid_rag.web.presenting import answer_view, hit_view, size
from hybrid_rag.web.snippets import Piece, pieces, record, snippet, spans
from hybrid_rag.web.threads import Busy, Threads


def marked(parts: tuple[Piece, ...]) -> list[str]:
    return [p.text for p in parts if p.marked]


# ---------------------------------------------------------------- snippets


@pytest.mark.parametrize(
    ("text", "terms", "found"),
    [
        ("Opened headphones were returned.", ["open", "headphon", "return"], ["Opened", "headphones", "returned"]),
        ("The batteries and the battery", ["batteri"], ["batteries", "battery"]),
        ("opening returning openness", ["open"], ["opening", "openness"]),
        ("operation openhearted", ["open"], []),
        ("Claim WC-2024-00317 and WC-2024-00318", ["wc-2024-00317"], ["WC-2024-00317"]),
        ("2024 and 20245", ["2024"], ["2024"]),
        ("Café CAFE", ["cafe"], ["Café", "CAFE"]),
        ("is it in", ["is", "it"], []),
        ("", ["a"], []),
    ],
)
def test_words_of_the_query_are_found(text: str, terms: list[str], found: list[str]) -> None:
    assert [text[s:e] for s, e in spans(text, terms)] == found


def test_pieces_lose_nothing() -> None:
    text = "abcdefghij"
    for marks in ([], [(0, 3)], [(2, 5), (4, 8)], [(5, 5)], [(8, 40)], [(3, 4), (1, 2)]):
        assert "".join(p.text for p in pieces(text, marks)) == text
    assert "".join(p.text for p in pieces(text, [(0, 4)], 2, 8)) == "cdefgh"
    assert marked(pieces(text, [(2, 5), (4, 8)])) == ["cde", "fgh"]


def test_a_snippet_shows_where_most_words_are() -> None:
    text = "nothing here " * 60 + "the charging cable is red and the battery lasts " + "nor there " * 60
    parts = snippet(text, ["cabl", "batteri"])
    assert marked(parts) == ["cable", "battery"]
    assert parts[0].text.startswith("…") and parts[-1].text.endswith("…")
    assert len("".join(p.text for p in parts)) < 400
    assert snippet("short text", ["text"]) == (Piece("short "), Piece("text", True))


def test_of_a_table_the_record_that_matches_is_shown() -> None:
    text = "id: A-1\ncity: Oslo\n\nid: A-2\ncity: Berlin\nnote: one: two"
    place, cells = record(text, ["berlin"])
    assert place == 1 and [(c.name, "".join(p.text for p in c.value)) for c in cells] == [
        ("id", "A-2"),
        ("city", "Berlin"),
        ("note", "one: two"),
    ]
    assert marked(cells[1].value) == ["Berlin"]
    hit = Hit(1, "x", Chunk("a b&c.csv", "table", 0, text, 0, 9, rows=(11, 12)), terms=("berlin",))
    view = hit_view(hit)
    assert view.place == "row 12" and view.href == "/source?source=a+b%26c.csv&rows=12-12"
    assert record("a card without lines of its own", ["card"]) == (0, ())


# ---------------------------------------------------------------- charts


def test_a_series_in_time_is_a_line() -> None:
    made = chart(["month", "total"], [["2024-03", 30.0], ["2024-01", 10], ["2024-02", 20]])
    assert made and made.kind == "line" and made.title == "total by month"
    assert [m.label for m in made.marks] == ["2024-01", "2024-02", "2024-03"]
    ys = [m.y for m in made.marks]
    assert ys == sorted(ys, reverse=True)  # growing values go up, and y goes down
    assert [float(t[1]) for t in made.ticks] == [0, 10, 20, 30]
    assert made.marks[0].y - made.marks[1].y == pytest.approx(made.marks[1].y - made.marks[2].y, abs=0.2)


def test_categories_are_bars_as_long_as_their_values() -> None:
    made = chart(["channel", "n", "_row"], [["web", 40, 1], ["store", 10, 2], [None, -20, 3]])
    assert made and made.kind == "bars" and [m.label for m in made.marks] == ["web", "store", "(empty)"]
    web, store, negative = made.marks
    assert web.width == pytest.approx(4 * store.width, rel=0.01) and negative.width == pytest.approx(2 * store.width, rel=0.01)
    assert web.x == store.x == made.zero and negative.x + negative.width == pytest.approx(made.zero, abs=0.2)


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        (["n"], [[3]]),
        (["city", "n"], [["Oslo", 1]]),
        (["a", "b"], [["x", "y"], ["z", "w"]]),
        (["city", "n"], [["Oslo", 1], ["Oslo", 2]]),
        (["city", "n"], [["Oslo", 1.0], ["Bonn", float("inf")]]),
        (["city", "land", "n"], [["Oslo", "NO", 1], ["Bonn", "DE", 2]]),
        (["city", "n"], [[f"c{i}", i] for i in range(60)]),
        (["city", "yes"], [["Oslo", True], ["Bonn", False]]),
        (["city", "n"], []),
    ],
)
def test_other_results_have_no_chart(columns: list[str], rows: list[list]) -> None:
    assert chart(columns, rows) is None


@pytest.mark.parametrize("values", [[5, 5, 5], [0, 0, 0], [-3, -2, -1], [1e12, 2e12, 3e12], [1e-6, 2e-6, 5e-6], [1000.1, 1000.2, 1000.3]])
def test_ticks_span_the_values(values: list[float]) -> None:
    made = chart(["year", "v"], [[2020 + i, v] for i, v in enumerate(values)])
    assert made and made.kind == "line" and 2 <= len(made.ticks) <= 8
    tops = [t[0] for t in made.ticks]
    assert all(min(tops) - 0.2 <= m.y <= max(tops) + 0.2 for m in made.marks)


# ---------------------------------------------------------------- Markdown


def test_the_passage_is_marked_across_blocks() -> None:
    source = "# Title\n\nFirst paragraph with `code` in it.\n\n- item one\n- item two\n\n| a | b |\n|---|---|\n| x | y |\n"
    text = "Title\n\nFirst paragraph with `code` in it.\n\n- item one\n- item two\n\n| a | b |\n|---|---|\n| x | y |"
    start = text.index("paragraph")
    html = render(source, text, start, text.index("item two") + 4).html
    assert "First <mark>paragraph with </mark><mark><code>code</code></mark><mark> in it.</mark>" in html
    assert "<mark>item one</mark>" in html and "<mark>item</mark> two" in html
    assert "<mark>Title" not in html and "<mark>x" not in html


def test_the_passage_is_found_at_its_own_place_when_the_text_repeats() -> None:
    source = "Same words.\n\nOther.\n\nSame words.\n"
    text = "Same words.\n\nOther.\n\nSame words."
    html = render(source, text, text.rindex("Same"), len(text)).html
    assert html.startswith("<p>Same words.</p>") and html.rstrip().endswith('<p class="passage"><mark>Same words.</mark></p>')


def test_front_matter_is_no_text_and_windows_line_ends_do_no_harm() -> None:
    rendered = render("---\r\ntitle: T\r\n---\r\n# H\r\n\r\nBody\r\n", "title: T\n\nH\n\nBody", 13, 17)
    assert rendered.front == "title: T" and "title" not in rendered.html and "<mark>Body</mark>" in rendered.html


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>x()</script>", "<img src=x onerror=x()>", "[a](javascript:x)", "[a](JaVaScRiPt:x)", "[a](data:text/html,x)", "[a](vbscript:x)",
        "![a](http://x/y.png)", "<a href=javascript:x>", "[a](<javascript:x>)", "[a][r]\n\n[r]: javascript:x", "<svg/onload=x()>", "&lt;script&gt;",
        '[a](http://x "onmouseover=x")', "```\n<script>\n```", "`<script>`", "|<script>|b|\n|---|---|\n|<script>|y|", "<!-- <script> -->", "[a](file:///etc/passwd)",
    ],
)  # fmt: skip
def test_hostile_markdown_is_shown_as_text(hostile: str) -> None:
    html = render(hostile, hostile, 0, len(hostile)).html
    rest = html
    for allowed in ("p", "mark", "code", "pre", "table", "thead", "tbody", "tr", "th", "td"):
        rest = rest.replace(f"<{allowed}>", "").replace(f"</{allowed}>", "").replace(f'<{allowed} class="passage">', "")
    rest = rest.replace('<a href="http://x" rel="noopener noreferrer nofollow" target="_blank">', "").replace("<a>", "").replace("</a>", "")
    assert "<" not in rest, html


# ---------------------------------------------------------------- answers


def test_references_become_links_only_where_there_is_a_citation() -> None:
    answer = Answer(
        "q",
        "One [1]. Two [2][1]. Three [9].",
        "llm",
        False,
        (Citation(1, "a.md", "text", quote="x", start=3, end=4), Citation(2, "b.csv", "table", rows=(4, 4))),
    )
    parts = answer_view(answer).paragraphs[0]
    assert [p.n for p in parts if p.n] == [1, 2, 1]
    assert "".join(p.text for p in parts) == "One . Two . Three [9]."
    assert [p.href for p in parts if p.n][:2] == ["/source?source=a.md&start=3&end=4", "/source?source=b.csv&rows=4-4"]


def test_a_list_of_groups_is_left_to_the_table() -> None:
    rows = tuple((f"2024-0{i}", i) for i in range(1, 6))
    text = "Sum by month in orders: " + "; ".join(f"{m}: {v}" for m, v in rows) + "."
    view = answer_view(
        Answer("q", text, "table", False, table=TableResult("SELECT", ("month", "n"), rows, row_count=5, sources=("o.csv",)))
    )
    assert "".join(p.text for p in view.paragraphs[0]) == "Sum by month in orders."
    assert view.chart and view.records == "Stands on 5 records of o.csv"


# ---------------------------------------------------------------- facets and measures


def document(source: str, kind: str = "text", date: str | None = None, tags: tuple[str, ...] = ()) -> DocumentInfo:
    return DocumentInfo(source, kind, "md", "", 1, "", "2026-06-01T00:00:00+00:00", "", 1, 1, date=date, tags=tags)  # type: ignore[arg-type]


def test_each_facet_counts_with_the_others_applied() -> None:
    documents = [
        document("a/x.md", date="2026-05-20", tags=("t",)),
        document("a/b/y.csv", "table", "2026-05-01"),
        document("z.md", date="2024-01-01", tags=("t", "u")),
    ]
    now = datetime(2026, 6, 1, tzinfo=UTC)
    found = facets(documents, Filters.parse(kind="text"), now=now)
    assert (found.documents, found.total) == (2, 3)
    assert [(c.value, c.count) for c in found.kinds] == [("table", 1), ("text", 2)]
    assert [(c.value, c.count, c.depth) for c in found.folders] == [("a", 1, 0)]
    assert [(c.value, c.count) for c in found.tags] == [("t", 2), ("u", 1)]
    assert {c.value: c.count for c in found.spans} == {"30d": 1, "90d": 1, "1y": 1}
    assert [(c.value, c.count) for c in found.years] == [("2026", 1), ("2024", 1)]


def test_percentiles_are_those_of_numpy() -> None:
    import numpy as np

    for values in ([7.0], [1.0, 2.0], sorted(np.random.default_rng(0).random(137).tolist())):
        assert [percentile(values, p) for p in (0, 50, 95, 99, 100)] == pytest.approx(np.percentile(values, [0, 50, 95, 99, 100]).tolist())
    assert percentile([], 50) == 0.0
    measures = Measures()
    for ms in (10, 20, 30):
        measures.took("search", ms / 1000)
    assert measures.latency()["search"] == {"count": 3, "p50": 20.0, "p95": 29.0, "p99": 29.8}


def test_sizes_are_for_people() -> None:
    assert [size(n) for n in (0, 999, 1500, 250_000, 3_462_215, 5e12)] == ["0 B", "999 B", "1.5 kB", "250 kB", "3.5 MB", "5000 GB"]


# ---------------------------------------------------------------- threads


def test_more_calls_than_may_wait_are_refused_and_room_comes_back() -> None:
    async def run() -> None:
        threads, go = Threads("test", workers=1, waiting=1), threading.Event()
        running = [asyncio.ensure_future(threads.run(go.wait, 10)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await threads.run(lambda: None)
        running[1].cancel()  # a caller that leaves: its call still takes its place until the thread is free
        go.set()
        assert await running[0] is True
        while threads.inside:
            await asyncio.sleep(0.01)
        assert await threads.run(lambda: 7) == 7
        threads.close()
        assert await threads.run(lambda: 8) == 8
        threads.close()

    asyncio.run(run())
