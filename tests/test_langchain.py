"""Our parts in LangChain's hands: the example of the documentation, the retriever, the loader."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from hybrid_rag.langchain_parts.loaders import DocumentLoader
from hybrid_rag.langchain_parts.retriever import HybridRetriever
from hybrid_rag.service import open_service

ROOT = Path(__file__).parents[1]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data").mkdir()
    for name in ("return_policy.md", "shipping_policy.md"):
        shutil.copy(ROOT / "data" / name, tmp_path / "data")
    (tmp_path / "data" / "stock.csv").write_text("sku,name\nA-1,lamp\n", encoding="utf-8")
    (tmp_path / "config.yaml").write_text(
        "data: {directory: data}\nembedding: {provider: bundled}\nllm: {provider: none}\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_of_the_documentation(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "langchain.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    expected = re.search(r"```text\n(.*?)```", text, re.DOTALL)[1]
    exec(compile(code, "docs/langchain.md", "exec"), {})
    assert capsys.readouterr().out == expected


def test_documents_say_where_they_stand(place: Path) -> None:
    with open_service("config.yaml") as service:
        service.index()
        found = HybridRetriever(searcher=service, k=2).invoke("A-1")
        empty = HybridRetriever(searcher=service, k=2, mode="keyword").invoke("zebra")
    assert found[0].metadata["source"] == "stock.csv"
    assert found[0].metadata["rows"] == [1, 1]
    assert found[0].id == found[0].metadata["id"]
    assert empty == []


def test_the_loader_gives_chunks(place: Path) -> None:
    documents = DocumentLoader("data").load()
    assert {d.metadata["source"] for d in documents} == {"return_policy.md", "shipping_policy.md", "stock.csv"}
    assert "sku: A-1" in DocumentLoader("data/stock.csv").load()[0].page_content
