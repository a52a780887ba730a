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
        for known in ("data", "machine", "run", "peers", "eval_sets", "measure", "chart", "jobs", "report", "systems"):
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
    paragraphs = [p for name, text in texts[0].items() if name not in data.NOTES for p in text.strip().split("\n\n")]
    assert len(paragraphs) == 450
    assert all(300 <= len(p) <= data.SIZE for p in paragraphs)
    queries = json.loads(one["queries"].read_text(encoding="utf-8"))
    assert len(queries) == 40
    for query in queries:
        text = texts[0][query["file"]]
        assert query["id"] in text
        assert all(word in text.lower() for word in query["text"].lower().split())


def test_tables_show_how_many_times_our_figure(module) -> None:
    report = module("peers/report")
    results = {"hybrid-rag": {"one": {"p50": 2.0}}, "LangChain": {"one": {"p50": 5.0}}, "Haystack": {}}
    lines = list(report.table("Asking", results, {"p50, ms": ("one/p50", "{:.1f}")}, ["hybrid-rag", "LangChain", "Haystack"]))
    assert lines[4:7] == ["| **hybrid-rag** | 2.0 |", "| LangChain | 5.0 (2.5×) |", "| Haystack | – |"]


def test_what_could_not_be_run_is_named(module, tmp_path: Path) -> None:
    report, systems, run = module("peers/report"), module("peers/systems"), module("run")
    found = {"versions": {}, "loading": {}, "quality": {}, "growth": {}, "missing": {"haiku.rag": "it needs Python 3.12"}, "failures": ["LangChain, build: stopped", "LangChain, query: stopped"],
             "sets_missing": []}  # fmt: skip
    text = "\n".join(report.report(found, []))
    assert "haiku.rag: not run, it needs Python 3.12." in text
    assert "Not measured: LangChain, build; LangChain, query: stopped." in text
    assert systems.environment(systems.System("old", "Old", ("numpy",), "9.99"), tmp_path) == (
        None,
        "it needs Python 9.99, which is not on this machine",
    )
    now = found | {
        "growth": {4: {"b": {"x": 2}}},
        "missing": {},
        "failures": ["c, build 4 chunks: stopped"],
        "measured": ["b, build 4 chunks:"],
    }
    before = found | {"growth": {"4": {"a": {"x": 1}}, "9": {}}, "failures": ["b, build 4 chunks: stopped", "d, build 4 chunks: stopped"]}
    both = report.merged(before, now)
    assert both["growth"] == {"4": {"a": {"x": 1}, "b": {"x": 2}}, "9": {}}
    assert both["failures"] == ["d, build 4 chunks: stopped", "c, build 4 chunks: stopped"]
    assert both["missing"] == found["missing"]
    outcome = run.run("no_such_subject", [], 5)
    assert "there is no benchmarks/no_such_subject.py" in outcome.why
    page = run.page([outcome, run.Outcome("tables", "machine\n\n## Tables\n\n| a |\n", {}, 3.0, 2.0)], False, 0.1)
    assert "## No_such_subject\n\nNot run: there is no benchmarks/no_such_subject.py." in page
    assert "machine\n" not in page
    assert "| `benchmarks/tables.py` | 3 | 2 |" in page


def test_the_shares_of_the_subjects_leave_time_for_the_comparison(module) -> None:
    run = module("run")
    assert sum(run.SHARES.values()) + run.INSTALL_SECONDS <= 25 * 60 - 400
    assert all((FOLDER / f"{name}.py").exists() for name in (*run.SUBJECTS, run.PEERS))


def test_the_last_size_shrinks_to_the_time_that_is_left(module) -> None:
    peers = module("peers")
    assert peers.fitting(16_000, 4_000, 100, 250) == 16_000
    assert peers.fitting(16_000, 4_000, 100, 249) == 8_000
    assert peers.fitting(16_000, 4_000, 100, 1) == 8_000


def test_the_growth_has_a_page_with_its_chart(module, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the chart needs the extra `bench`")
    figures = {"total_s": 1.0, "one": {"p50": 2.0}, "rss_query_mb": 3.0, "disk_mb": 4.0}
    found = {"growth": {4000: {"hybrid-rag": figures, "LangChain": figures}, 16000: {"hybrid-rag": figures}}, "versions": {}, "missing": {},
             "failures": ["LangChain, build 16,000 chunks: stopped after 9 s, at 70 MB"], "sets_missing": [], "machine": "a machine"}  # fmt: skip
    module("peers/chart").draw(found["growth"], tmp_path / "images" / "growth.png")
    assert (tmp_path / "images" / "growth.png").read_bytes().startswith(b"\x89PNG")
    page = module("peers/report").growth_page(found, ["hybrid-rag", "LangChain"], "the command", "images/growth.png", "")
    assert "from 4,000 to 16,000 chunks" in page
    assert "| LangChain | 1.0 (1×) |" in page
    assert "](images/growth.png)" in page
    assert "Not measured: LangChain, build 16,000 chunks: stopped after 9 s, at 70 MB." in page
    run = module("run")
    monkeypatch.setattr(run, "GROWTH", tmp_path / "growth.md")
    assert "growth.md" not in run.page([], False, 0.1)
    (tmp_path / "growth.md").write_text(page, encoding="utf-8")
    assert "](images/growth.png)" in run.page([], False, 0.1)


def test_a_job_that_takes_too_long_or_too_much_memory_is_ended(module) -> None:
    jobs = module("peers/jobs")
    with pytest.raises(jobs.Stopped, match="stopped after 1 s"):
        jobs._watched([sys.executable, "-c", "import time; time.sleep(300)"], 1, 1e6)
    if Path("/proc/self/statm").exists():
        child = "import time; held = bytearray(300_000_000); time.sleep(300)"
        code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
        with pytest.raises(jobs.Stopped, match="more than 200 MB"):
            jobs._watched([sys.executable, "-c", code], 250, 200)
    assert jobs._watched([sys.executable, "-c", "import sys; sys.exit('broken')"], 60, 1e6) == (1, "broken\n")


def test_kept_vectors_and_the_changed_file(module, tmp_path: Path) -> None:
    measure = module("peers/measure")
    kept = measure.KeptVectors(tmp_path / "vectors.sqlite")
    kept.put({"a": [0.5, 0.25], "b": [1.0, 0.0]})
    assert measure.KeptVectors(tmp_path / "vectors.sqlite").get(["a", "c"]) == {"a": [0.5, 0.25]}

    class Fills(measure.Peer):
        """Finds the files that hold the word, and fills up with the first notes."""

        def search(self, query: str) -> list[str]:
            notes = sorted(tmp_path.glob("note-*.md"))
            return [p.name for p in notes if query in p.read_text(encoding="utf-8")] + [notes[0].name]

        def update(self, folder: Path, changed: Path) -> None:
            self.changed = changed.name

        load = index = open = None

    notes = [tmp_path / f"note-{n}.md" for n in range(2)]
    for note in notes:
        note.write_text("A note.", encoding="utf-8")
    peer = type("Fills", (Fills,), {"__abstractmethods__": frozenset()})(None, "free", size=1, overlap=0, k=5)
    found = measure._update(peer, tmp_path, notes, "zyx")
    assert peer.changed == "note-1.md"
    assert found["found_s"] is not None


def test_a_job_of_the_comparison_runs_over_our_own_service(module, tmp_path: Path) -> None:
    data = module("peers/data")
    made = data.make(tmp_path / "documents", 60, 30)
    (tmp_path / "store").mkdir()
    arguments = ["--folder", str(made["folder"]), "--store", str(tmp_path / "store"), "--size", "400", "--overlap", "0"]
    more = [
        "--queries",
        str(made["queries"]),
        "--change",
        *(str(made["folder"] / n) for n in data.NOTES),
        "--word",
        data.NEW_WORD,
        "--seconds",
        "1",
    ]
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


def test_a_part_of_a_set_holds_the_files_that_answer_its_questions(module, tmp_path: Path) -> None:
    sets = module("eval_sets")
    whole = tmp_path / "whole"
    (whole / "deep").mkdir(parents=True)
    for n in range(60):
        (whole / ("deep" if n % 2 else "") / f"{n}.md").write_text(f"{n}" * 100, encoding="utf-8")
    names = {f"q{n}": f"deep/{n}.md" if n % 2 else f"{n}.md" for n in range(40)}
    chosen = sets.EvalSet(
        "made", whole, {q: q for q in names}, lambda c: c.source, lambda q, _: frozenset({names[q]}), lambda q: frozenset({names[q]})
    )
    for _ in range(2):  # a second time over what the first has left
        part = sets.part(chosen, tmp_path / "part", 4_000)
        files = {p.relative_to(part.folder).as_posix() for p in part.folder.rglob("*.md")}
        assert sum((part.folder / f).stat().st_size for f in files) <= 4_000
        assert 5 <= len(part.questions) < 40 and {names[q] for q in part.questions} < files
        assert f"{len(part.questions)} of 40 questions and {len(files)} of 60 files" in part.drawn
        (tmp_path / "part" / "left.md").write_text("of another run", encoding="utf-8")
