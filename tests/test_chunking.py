from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_rag.chunking import ChunkOptions, chunk
from hybrid_rag.chunking_tables import RECORD_SEPARATOR, render_record
from hybrid_rag.loading.body import BodyBuilder
from hybrid_rag.records import Chunk, Document, RowStream

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def text_document(builder: BodyBuilder, title: str = "T") -> Document:
    body = builder.body()
    return Document("a.md", "text", "md", title, 0, "", NOW, text=body.text, blocks=body.blocks)


def table_document(header: tuple[str, ...], rows: list[list[str]]) -> Document:
    return Document("a.csv", "table", "csv", "T", 0, "", NOW, rows=RowStream(header, lambda: iter(rows)))


def covered(document: Document, chunks: list[Chunk]) -> bool:
    """Every character that is not white space is in a chunk."""
    seen = set()
    for c in chunks:
        seen.update(range(c.start, c.end))
    return all(i in seen or ch.isspace() for i, ch in enumerate(document.text))


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)
blocks = st.lists(st.tuples(st.sampled_from(["text", "heading", "table", "code"]), words, st.integers(1, 3)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(blocks)
def test_chunks_give_the_text_back_and_leave_nothing_out(parts: list) -> None:
    builder = BodyBuilder()
    for kind, text, level in parts:
        if kind == "heading":
            builder.heading(text, level)
        elif kind == "table":
            builder.add(text, role="table", header=text.split("\n")[0] + "\n")
        else:
            builder.add(text, role="code" if kind == "code" else "paragraph")
    document = text_document(builder)
    chunks = list(chunk(document, ChunkOptions(text_size=120, text_overlap=30)))
    for c in chunks:
        assert document.text[c.start : c.end] == c.text
        assert 0 < len(c.text) <= 120
    assert covered(document, chunks)
    assert [c.ordinal for c in chunks] == list(range(len(chunks)))


cells = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(cells, min_size=1, max_size=5), max_size=30))
def test_records_are_whole_and_numbered(rows: list[list[str]]) -> None:
    header = ("a", "b", "c")
    chunks = list(chunk(table_document(header, rows), ChunkOptions(rows=4)))
    body, cards = [c for c in chunks if c.role != "card"], [c for c in chunks if c.role == "card"]
    rendered = RECORD_SEPARATOR.join(render_record(header, r) for r in rows)
    for c in body:
        assert rendered[c.start : c.end] == c.text
        assert c.rows[1] - c.rows[0] < 4
    assert [n for c in body for n in range(c.rows[0], c.rows[1] + 1)] == list(range(1, len(rows) + 1))
    assert len(cards) == 1


def test_a_window_does_not_span_two_headings() -> None:
    builder = BodyBuilder()
    builder.heading("One", 1)
    builder.add("first")
    builder.heading("Two", 1)
    builder.add("second")
    chunks = list(chunk(text_document(builder), ChunkOptions()))
    assert [(c.heading, c.text) for c in chunks] == [(("One",), "One\n\nfirst"), (("Two",), "Two\n\nsecond")]


def test_neighbours_overlap_by_at_most_the_overlap() -> None:
    builder = BodyBuilder()
    builder.add(" ".join(f"Sentence number {i} ends here." for i in range(100)))
    chunks = list(chunk(text_document(builder), ChunkOptions(text_size=300, text_overlap=80)))
    for one, two in pairwise(chunks):
        assert two.start <= one.end
        assert one.end - two.start <= 80
        assert two.text.startswith("Sentence")


def test_a_long_table_keeps_whole_rows_and_repeats_its_header() -> None:
    lines = ["| n | name |", "|---|---|", *(f"| {i} | name {i} |" for i in range(200))]
    builder = BodyBuilder()
    builder.add("\n".join(lines), role="table", header="\n".join(lines[:2]) + "\n")
    chunks = list(chunk(text_document(builder), ChunkOptions(text_size=400)))
    assert all(line in lines for c in chunks for line in c.text.split("\n"))
    holder = next(c for c in chunks if "| 180 |" in c.text)
    assert holder.header == "| n | name |\n|---|---|"
    assert "| n | name |" in holder.embedding_text


def test_a_long_cell_is_indexed_in_pieces() -> None:
    chunks = [c for c in chunk(table_document(("a", "b"), [["x" * 140_000, "end"], ["1", "2"]]), ChunkOptions()) if c.role != "card"]
    assert all(len(c.text) <= 4000 for c in chunks)
    assert sum(c.text.count("x") for c in chunks) == 140_000
    assert chunks[-1].rows == (2, 2)


def test_extra_cells_have_names_and_missing_ones_no_text() -> None:
    assert render_record(("a", "b"), ["1", "2", "3"]) == "a: 1\nb: 2\nextra_1: 3"
    assert render_record(("a", "b"), ["5"]) == "a: 5"
    assert "None" not in render_record(("a", "b"), ["", ""])


def test_the_card_describes_the_table() -> None:
    card = list(chunk(table_document(("sku", "price"), [["A-1", "5"], ["A-2", "20"]]), ChunkOptions()))[-1]
    assert "2 rows, 2 columns: sku, price" in card.text
    assert "price (number): 5 to 20" in card.text
    assert "A-1, A-2" in card.text


def test_ids_are_stable_and_differ() -> None:
    a, b = (list(chunk(table_document(("a",), [["1"], ["2"]]), ChunkOptions(rows=1))) for _ in range(2))
    assert [c.id for c in a] == [c.id for c in b]
    assert len({c.id for c in a}) == len(a)


def test_the_pieces_of_a_long_record_say_which_it_is() -> None:
    chunks = list(chunk(table_document(("account", "note"), [["0010", "word " * 3000]]), ChunkOptions()))
    body = [c for c in chunks if c.role != "card"]
    assert len(body) > 10
    assert all(len(c.text) <= 1000 for c in body)
    assert all(c.header == "account: 0010\nnote (continued)" for c in body[1:])
    assert "0010" in body[-1].embedding_text


def test_a_heading_stands_with_the_table_below_it() -> None:
    builder = BodyBuilder()
    builder.heading("Prices", 1)
    builder.add("| a |\n|---|\n| 1 |", role="table", header="| a |\n|---|\n")
    assert [(c.text, c.role, c.heading) for c in chunk(text_document(builder), ChunkOptions())] == [
        ("Prices\n\n| a |\n|---|\n| 1 |", "table", ("Prices",))
    ]


def test_headings_without_text_lead_to_the_section_below() -> None:
    builder = BodyBuilder()
    builder.heading("One", 1)
    builder.heading("Inner", 2)
    builder.add("text")
    assert [c.heading for c in chunk(text_document(builder), ChunkOptions())] == [("One", "Inner")]


def test_chunks_do_not_span_pages() -> None:
    builder = BodyBuilder()
    for page in (1, 2):
        builder.add(f"on page {page}", page=page)
    assert [(c.page, c.text) for c in chunk(text_document(builder), ChunkOptions())] == [(1, "on page 1"), (2, "on page 2")]


def test_the_card_knows_dates_and_what_stood_above() -> None:
    document = replace(
        table_document(("day", "id"), [["2024-02-01", "007"], ["2023-05-06", "008"]]), metadata={"above": "Claims of the North"}
    )
    card = list(chunk(document, ChunkOptions()))[-1]
    assert "day (date): 2023-05-06 to 2024-02-01" in card.text
    assert "id (text): 007, 008" in card.text
    assert "Claims of the North" in card.text
