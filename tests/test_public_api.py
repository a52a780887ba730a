"""What `from hybrid_rag import …` offers, and the fields of the records that programs read."""

from __future__ import annotations

import hybrid_rag
from hybrid_rag.records import Answer, Chunk, Citation, Hit


def test_public_names() -> None:
    assert hybrid_rag.__all__ == ["Filters", "HybridRagError", "Service", "open_service"]
    for name in hybrid_rag.__all__:
        assert getattr(hybrid_rag, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(hybrid_rag, "no_such_name")


def test_fields_of_an_answer() -> None:
    assert list(Answer("q", "a", "none", True).to_dict()) == [
        "question", "answer", "mode", "abstained", "citations", "sql", "table", "needs", "rewritten_question", "retrieval", "model",
        "tokens", "milliseconds", "checks", "notes", "passages", "error",
    ]  # fmt: skip


def test_fields_of_a_hit() -> None:
    hit = Hit(1, "id", Chunk("a.csv", "table", 0, "x: 1", 0, 4, rows=(1, 2)), {"bm25": 1.23456789})
    fields = hit.to_dict()
    assert {"rank", "source", "kind", "page", "rows", "heading", "text", "scores"} <= set(fields)
    assert fields["rows"] == [1, 2]
    assert fields["scores"] == {"bm25": 1.234568}


def test_places_are_said_as_people_count() -> None:
    assert Citation(1, "a.pdf", "text", page=3, page_label="iii").place() == "page 3 (“iii”)"
    assert Citation(1, "a.csv", "table", rows=(4, 4)).place() == "row 4"
    assert Citation(1, "a.md", "text", heading=("A", "B")).place() == "A > B"
