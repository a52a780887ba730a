"""Further kinds through LangChain loaders named in the configuration, and our readers as such a loader."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from hybrid_rag.errors import ReadError
from hybrid_rag.langchain_parts.loaders import DocumentLoader
from hybrid_rag.loading import Limits, read


def load(path: Path, dotted: str):
    return read(path, source=path.name, limits=Limits(), loaders={path.suffix: dotted})


def test_a_loader_of_langchain_community(tmp_path: Path) -> None:
    pytest.importorskip("langchain_community", reason="the extra `community` is not installed")
    path = tmp_path / "notes.rst"
    path.write_text("Title\n=====\n\nThe pump runs at 40 bar.\n", encoding="utf-8")
    document = load(path, "langchain_community.document_loaders:TextLoader")
    assert (document.format, document.kind) == ("rst", "text")
    assert "40 bar" in document.text


def test_a_notebook_through_its_loader(tmp_path: Path) -> None:
    pytest.importorskip("langchain_community", reason="the extra `community` is not installed")
    pytest.importorskip("pandas", reason="the notebook loader needs pandas")
    path = tmp_path / "a.ipynb"
    cell = {"cell_type": "markdown", "metadata": {}, "source": ["The pump runs at 40 bar."]}
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    assert "40 bar" in load(path, "langchain_community.document_loaders:NotebookLoader").text


@pytest.mark.parametrize(
    ("dotted", "reason"),
    [("no_colon", "module:Class"), ("no_such_module:X", "cannot be imported"), ("json:NoSuch", "cannot be imported")],
)
def test_a_wrong_name_is_said(tmp_path: Path, dotted: str, reason: str) -> None:
    path = tmp_path / "a.odd"
    path.write_text("x", encoding="utf-8")
    with pytest.raises(ReadError, match=reason):
        load(path, dotted)


def test_our_loader_gives_chunks_with_their_places(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Returns\n\nWithin 30 days.\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("id,price\nA1,5\n", encoding="utf-8")
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.7 cut")
    loader = DocumentLoader(tmp_path)
    found = loader.load()
    assert [(d.metadata["source"], d.metadata["heading"], d.metadata["rows"]) for d in found] == [
        ("a.md", "Returns", None),
        ("b.csv", "", [1, 1]),
        ("b.csv", "", [1, 1]),
    ]
    assert list(loader.failures) == ["c.pdf"]
    table = found[1].metadata
    assert (table["format"], table["encoding"], table["dialect"], table["size"]) == ("csv", "utf-8", 'delimiter comma, quote "', 14)
    assert table["sha256"] == hashlib.sha256(b"id,price\nA1,5\n").hexdigest()
    with pytest.raises(ReadError):
        DocumentLoader(tmp_path / "c.pdf").load()
