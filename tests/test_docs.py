"""The documentation says what the code does: every key, every field, every link."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from hybrid_rag import errors, evaluation, evaluation_answers, query_log, records
from hybrid_rag.config import Config, known_keys, load
from hybrid_rag.doctor import Finding
from hybrid_rag.records import Answer, Chunk, Citation, Hit, SearchResult
from hybrid_rag.starting import Starter

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
CHUNK = Chunk("a.md", "text", 0, "text", 0, 4)

RECORDS: dict[str, set[str]] = {
    "Answer": set(Answer("q", "a", "none", True).to_dict()),
    "Citation": set(Citation(1, "a.md", "text").to_dict()),
    "Search": set(SearchResult("q", "hybrid", ()).to_dict()),
    "Hit": set(Hit(1, "id", CHUNK).to_dict()),
    "Finding": {f.name for f in fields(Finding)},
    "Difference": set(evaluation.Difference("a", "b", "MRR", 0, 0, 0).to_dict()),
    "Floor": set(evaluation.FloorCheck("MRR", 0, 0).to_dict()),
    "Starter": {f.name for f in fields(Starter)},
} | {
    heading: {f.name for f in fields(record)}
    for heading, record in {
        "Index report": records.IndexReport, "File report": records.FileReport, "Stats": records.Stats, "Document": records.DocumentInfo,
        "Passage": records.Passage, "Table": records.TableCard, "Column": records.TableColumn, "Table result": records.TableResult,
        "Evaluation": evaluation.Evaluation, "Mode scores": evaluation.ModeScores, "Score": evaluation_answers.Score, "Miss": evaluation.Miss,
        "Answer scores": evaluation_answers.AnswerScores, "Judged answer": evaluation_answers.JudgedAnswer,
        "Query log": query_log.LogSummary, "Stage latency": query_log.StageLatency,
    }.items()
}  # fmt: skip


def sections(page: Path) -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("heading", RECORDS)
def test_json_page_names_every_field(heading: str) -> None:
    rows = re.findall(r"^\| (`.+?) \|", sections(ROOT / "docs" / "json.md")[heading], flags=re.MULTILINE)
    documented = re.findall(r"`(\w+)`", " ".join(rows))
    assert sorted(documented) == sorted(RECORDS[heading])


def test_json_page_has_a_section_for_each_record_only() -> None:
    assert set(sections(ROOT / "docs" / "json.md")) == set(RECORDS)


def test_json_page_names_every_exit_code() -> None:
    documented = {int(n) for n in re.findall(r"^\| (\d+) \|", (ROOT / "docs" / "json.md").read_text(encoding="utf-8"), flags=re.MULTILINE)}
    assert documented == {0} | {e.exit_code for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.HybridRagError)}


# ---------------------------------------------------------------- configuration


def _make_docs():
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_configuration_page_is_current() -> None:
    made = _make_docs()
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run `python scripts/make_docs.py`"


def test_configuration_page_describes_every_key() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    for key, (description, _) in known_keys().items():
        assert f"| `{key}` |" in text and description, key


def keys(tree: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in tree.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key not in known_keys():
            yield from keys(value, f"{key}.")
        else:
            yield key


def test_shipped_configuration_loads_and_keeps_to_known_keys() -> None:
    path = ROOT / "config" / "config.yaml"
    assert set(keys(yaml.safe_load(path.read_text(encoding="utf-8")))) <= set(known_keys())
    loaded = load(path)
    assert loaded.config.data.directory == ROOT / "data"
    assert loaded.config.vector_store.persist_directory == ROOT / "chroma_db"


# ---------------------------------------------------------------- pages


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in {_anchor(h) for h in re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)}, target


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_name_only_files_and_keys_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:src|tests|scripts|docs|config|benchmarks|data)/[\w./-]+\.\w+)`", text):
        assert (ROOT / name).exists(), f"{page.name}: {name}"
    sections_ = "|".join(Config.model_fields)
    for key in re.findall(rf"`((?:{sections_})\.[a-z_.]+[a-z_])`", text):
        known = key in known_keys() or any(k.startswith(f"{key}.") for k in known_keys())
        assert known or key.endswith((".py", ".yaml", ".md", ".jsonl")), f"{page.name}: {key}"


def test_the_mcp_page_names_every_tool_and_every_field_of_its_own() -> None:
    from hybrid_rag.mcp_server import outputs
    from hybrid_rag.mcp_server.tools import TOOLS

    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    assert [t.name for t in TOOLS if f"`{t.name}`" not in page] == []
    known = set().union(*RECORDS.values()) | set(outputs.RUN["properties"])
    own = {field for tool in TOOLS for field in tool.output["properties"]} - known
    named = {n for row in re.findall(r"^\| (`.+?) \|", page, flags=re.MULTILINE) for n in re.findall(r"`(\w+)`", row)}
    given = {"hits", "documents", "table", "report", "at", "source", "heading"}  # what a tool is called to give
    assert own - named - given == set()
