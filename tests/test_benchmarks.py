"""The benchmarks' own parts: made collections, tables with ratios, the page with what could not be run, one quick run of a peer's job."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER / "peers"))
    monkeypatch.syspath_prepend(str(FOLDER))

    def load(name: str) -> ModuleType:
        for known in ("data", "machine", "run", "peers", "eval_sets", "measure", "chart"):
            sys.modules.pop(known, None)
        spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
        assert spec is not None and spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = found
        spec.loader.exec_module(found)
        return found

    return load


def test_made_collections_are_the_same_each_time_and_a_chunk_a_paragraph(module, tmp_path: Path) -> None:
    data = module("peers/data")
    one, two = (data.make(tmp_path / name / "documents", 450, 40) for name in ("a", "b"))
    texts = [{p.name: p.read_text(encoding="utf-8") for p in place["folder"].iterdir()} for place in (one, two)]
    assert texts[0] == texts[1]
    paragraphs = [p for name, text in texts[0].items() if name != "note.md" for p in text.strip().split("\n\n")]
    assert len(paragraphs) == 450
    assert all(300 <= len(p) <= data.SIZE for p in paragraphs)
    queries = json.loads(one["queries"].read_text(encoding="utf-8"))
    assert len(queries) == 40
    for query in queries:
        text = texts[0][query["file"]]
        assert query["id"] in text
        assert all(word in text.lower() for word in query["text"].lower().split())


def test_tables_show_how_many_times_our_figure(module) -> None:
    peers = module("peers")
    results = {"hybrid-rag": {"one": {"p50": 2.0}}, "LangChain": {"one": {"p50": 5.0}}, "Haystack": {}}
    lines = list(peers.table("Asking", results, {"p50, ms": ("one/p50", "{:.1f}")}, ["hybrid-rag", "LangChain", "Haystack"]))
    assert lines[4:7] == ["| **hybrid-rag** | 2.0 |", "| LangChain | 5.0 (2.5×) |", "| Haystack | – |"]


def test_what_could_not_be_run_is_named(module, tmp_path: Path) -> None:
    peers, run = module("peers"), module("run")
    found = {"versions": {}, "loading": {}, "quality": {}, "growth": {}, "missing": {"haiku.rag": "it needs Python 3.12"}, "failures": ["LangChain, build: stopped"],
             "sets_missing": []}  # fmt: skip
    text = "\n".join(peers.report(found, []))
    assert "haiku.rag: not run, it needs Python 3.12." in text
    assert "Not measured: LangChain, build: stopped." in text
    assert peers._python("9.99") is None
    now = found | {
        "growth": {4: {"b": {"x": 2}}},
        "missing": {},
        "failures": ["c, build 4 chunks: stopped"],
        "measured": ["b, build 4 chunks:"],
    }
    before = found | {"growth": {"4": {"a": {"x": 1}}, "9": {}}, "failures": ["b, build 4 chunks: stopped", "d, build 4 chunks: stopped"]}
    both = peers.merged(before, now)
    assert both["growth"] == {"4": {"a": {"x": 1}, "b": {"x": 2}}, "9": {}}
    assert both["failures"] == ["d, build 4 chunks: stopped", "c, build 4 chunks: stopped"]
    assert both["missing"] == found["missing"]
    outcome = run.run("no_such_subject", [], 5)
    assert "there is no benchmarks/no_such_subject.py" in outcome.why
    page = run.page([outcome, run.Outcome("tables", "machine\n\n## Tables\n\n| a |\n", {}, 3.0, 2.0)], False, 0.1)
    assert "## No_such_subject\n\nNot run: there is no benchmarks/no_such_subject.py." in page
    assert "machine\n" not in page
    assert "| `benchmarks/tables.py` | 3 | 2 |" in page


def test_a_job_of_the_comparison_runs_over_our_own_service(module, tmp_path: Path) -> None:
    data = module("peers/data")
    made = data.make(tmp_path / "documents", 60, 30)
    (tmp_path / "store").mkdir()
    arguments = ["--folder", str(made["folder"]), "--store", str(tmp_path / "store"), "--size", "400", "--overlap", "0"]
    more = ["--queries", str(made["queries"]), "--change", str(made["change"]), "--word", data.NEW_WORD, "--seconds", "1"]
    out = {}
    for job, extra in (("load", []), ("build", []), ("query", more)):
        line = [sys.executable, str(FOLDER / "peers" / "peer_ours.py"), job, *arguments, *extra, "--out", str(tmp_path / f"{job}.json")]
        done = subprocess.run(line, capture_output=True, encoding="utf-8", check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        out |= json.loads((tmp_path / f"{job}.json").read_text(encoding="utf-8"))
    assert out["chunks"] >= 60
    assert out["found"] == 1.0
    assert out["found_s"] is not None
    assert {"total_s", "first_s", "cold_s", "one", "eight", "rss_mb", "disk_mb", "cpu_s"} <= set(out)
