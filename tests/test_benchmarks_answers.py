"""The benchmark of answers: what is counted, and one run over a small set of its own."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("answers_cases")


def test_intervals_are_wilsons(cases) -> None:
    assert cases.interval([True, False] * 5) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    low, high = cases.interval([True] * 10)
    assert (low, high) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert cases.interval([]) == (0.0, 1.0)


def test_samples_are_spread_and_the_same_each_time(cases) -> None:
    assert cases.spread(list(range(10)), 5) == [0, 2, 4, 6, 8]
    assert cases.spread([1, 2], 5) == [1, 2]


def test_gold_is_found_whatever_the_white_space(cases) -> None:
    assert cases.holds("It lasts\n38  hours.", ("38 Hours",))
    assert not cases.holds("It lasts 3 hours.", ("38 hours",))


def test_a_run_over_a_set_counts_refusals_and_names_what_is_missing(tmp_path: Path) -> None:
    base = tmp_path / "data" / "single_topic_rag"
    (base / "files").mkdir(parents=True)
    (base / "files" / "a.txt").write_text("A full charge of the Auralis headphone lasts 38 hours.", encoding="utf-8")
    asked = {"q1": "How long does a full charge of the Auralis headphone last?", "q2": "Who won the football world cup in 1998?"}
    (base / "queries.jsonl").write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in asked.items()), encoding="utf-8")
    kinds = {"q1": "single", "q2": "none"}
    (base / "answers.jsonl").write_text("".join(json.dumps({"id": i, "kind": k}) + "\n" for i, k in kinds.items()), encoding="utf-8")
    (base / "qrels.tsv").write_text("query-id\tdoc-id\tscore\nq1\ta.txt\t1\n", encoding="utf-8")
    line = [sys.executable, str(FOLDER / "answers.py"), "--quick", "--data", str(tmp_path / "data"), "--cache", str(tmp_path / "cache")]
    run = subprocess.run([*line, "--json", str(tmp_path / "out.json")], capture_output=True, encoding="utf-8", check=False, timeout=240)
    assert run.returncode == 0, run.stderr
    assert "Not run: squad, for its data is not at" in run.stdout
    assert "| wrongly refused: single_topic_rag | 0.000 |" in run.stdout
    assert "| not answered in the pages: abstained | 1.000 |" in run.stdout
    figures = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert [o["claimed"] for o in figures["single_topic_rag"]] == [True]
