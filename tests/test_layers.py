"""Imports run downhill: every import of the package, wherever it stands in a module, is read and judged."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "hybrid_rag"

LAYERS: tuple[str, ...] = (
    "errors records digest access",
    "config config_sections filters loading loading.body loading.docx loading.encoding loading.markdown loading.pdf loading.plain loading.scan loading.sniff "
    "loading.tabular chunking chunking_tables analysis stopwords models embedding embedding_onnx embedding_ollama reranking ollama_server llm "
    "catalog_file tantivy_files seal storage "
    "catalog catalog_schema lexical vectors vector_rows vectors_exact chroma_connection vectors_chroma_base vectors_chroma probe file_lock tables table_database table_sql table_worker table_store prompts citations support instructions patience sentences extraction "
    "page_images abstention followups markdown_text fusion search_cache lock table_types metrics answer_metrics percentiles query_log onnx_model "
    "question_words question_reading question_cells question_grounding question_prompt question_mending question_fields question_items question_dates question_conditions question_frame question_extremes question_pairs question_shapes "
    "question_rules question_sql question_sentences question_tables question_model",
    "workers index document_writer mending writer",
    "embedder_run ingest ranking naming retrieval browsing writing answering questions maintenance files",
    "background parts service storing_options",
    "batch batch_questions batch_output conversation doctor starting watching "
    "evaluation evaluation_answers evaluation_questions evaluation_proposals evaluation_runs "
    "langchain_parts langchain_parts.retriever langchain_parts.chain langchain_parts.loaders langchain_parts.embeddings",
    "hybrid_rag render render_measures render_text cli cli.app cli.asking cli.common cli.configuring cli.documents cli.measuring cli.progress cli.serving cli.storing cli.tabular "
    "demo mcp_server web __main__",
)
_NAMED = {name: level for level, names in enumerate(LAYERS) for name in names.split()}
CONFIG_USERS = 4  # the lowest layer that may import the configuration


def level(name: str) -> int:
    """The layer of a module; one inside a folder has the folder's, unless it is named itself."""
    while name not in _NAMED:
        name, dot, _ = name.rpartition(".")
        assert dot, "the module has no layer: name it in LAYERS"
    return _NAMED[name]


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(p for p in parts if p != "__init__") or "hybrid_rag"] = path
    return found


def imports(name: str, path: Path) -> set[str]:
    """Modules of the package that a module imports, without the package's name."""
    known = set(modules())
    out: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            out |= {a.name.removeprefix("hybrid_rag.") for a in node.names if a.name.startswith("hybrid_rag.")}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import on line {node.lineno}"
            if node.module == "hybrid_rag":
                out |= {a.name if a.name in known else "hybrid_rag" for a in node.names}
            elif (node.module or "").startswith("hybrid_rag."):
                module = (node.module or "").removeprefix("hybrid_rag.")
                inner = {f"{module}.{a.name}" for a in node.names} & known
                out |= inner or {module}
    return out - {name}


def graph() -> dict[str, set[str]]:
    return {name: imports(name, path) for name, path in modules().items()}


def test_every_module_has_a_layer() -> None:
    for name in modules():
        level(name)


@pytest.mark.parametrize("name", sorted(modules()))
def test_imports_run_downhill(name: str) -> None:
    uphill = [other for other in imports(name, modules()[name]) if level(other) > level(name) and name != "hybrid_rag"]
    assert uphill == []


def test_there_are_no_cycles() -> None:
    edges = {name: set(targets) for name, targets in graph().items()}
    edges["hybrid_rag"] = set()  # its names are imported when asked for
    while leaves := [name for name, targets in edges.items() if not targets & edges.keys()]:
        for name in leaves:
            del edges[name]
    # writer and index know each other: an index hands out its writer
    assert set(edges) <= {"index", "writer", "ingest", "maintenance"} | _users(edges, "index")


def _users(edges: dict[str, set[str]], name: str) -> set[str]:
    found = {name}
    while more := {n for n, targets in edges.items() if targets & found} - found:
        found |= more
    return found


def test_the_configuration_is_read_at_the_top_only() -> None:
    users = [
        name
        for name, targets in graph().items()
        if targets & {"config", "config_sections"} and level(name) < CONFIG_USERS and name != "config"
    ]
    assert users == []


@pytest.mark.parametrize("name", sorted(modules()))
def test_modules_are_short(name: str) -> None:
    lines = len(modules()[name].read_text(encoding="utf-8").splitlines())
    assert lines <= 420 or name == "records", f"{name} has {lines} lines"


@pytest.mark.parametrize("module", ["hybrid_rag.cli", "hybrid_rag.service"])
def test_starting_up_loads_no_heavy_library(module: str) -> None:
    heavy = "langchain_core langchain_ollama chromadb onnxruntime tokenizers duckdb pypdfium2 lxml clevercsv mcp mcp_types starlette uvicorn fastapi jinja2"
    code = f"import sys, {module}; print(*[m for m in {heavy.split()!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert run.stdout.strip() == ""
