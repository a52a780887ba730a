from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hybrid_rag.errors import Cancelled
from hybrid_rag.loading import Limits
from hybrid_rag.loading.scan import scan
from hybrid_rag.workers import ChunkBatch, Failed, Finished, ReadOptions, read_all

LOADERS = """
import os, time
class Base:
    def __init__(self, path): self.path = path
class Sleeper(Base):
    def lazy_load(self):
        time.sleep(60); yield
class Crasher(Base):
    def lazy_load(self):
        os.abort(); yield
class Glutton(Base):
    def lazy_load(self):
        hoard = [bytes(50_000_000) + b"x" for _ in range(40)]
        time.sleep(60); yield
class Chatty(Base):
    def lazy_load(self):
        print("noise on stdout")
        class D: page_content = "said"; metadata = {"page": 0}
        yield D
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "odd_loaders.py").write_text(LOADERS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    root = tmp_path / "data"
    root.mkdir()
    for i in range(6):
        (root / f"{i}.txt").write_text(f"text {i}", encoding="utf-8")
    return root


def run(root: Path, workers: int = 2, seconds: float = 30, memory: int = 1 << 30, **loaders: str) -> dict[str, str]:
    options = ReadOptions(
        limits=Limits(max_seconds=seconds, max_memory_bytes=memory), loaders={f".{k}": f"odd_loaders:{v}" for k, v in loaders.items()}
    )
    out = {}
    for event in read_all(scan(root, loaders=options.loaders).files, options, workers=workers):
        if isinstance(event, Finished):
            out[event.source] = event.document.text
        elif isinstance(event, Failed):
            out[event.source] = f"failed: {event.error.message}"
    return out


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order_whatever_the_workers(folder: Path, workers: int) -> None:
    assert list(run(folder, workers).items()) == [(f"{i}.txt", f"text {i}") for i in range(6)]


def test_a_file_over_its_time_is_given_up_and_the_others_go_on(folder: Path) -> None:
    (folder / "1.slow").write_text("x", encoding="utf-8")
    out = run(folder, seconds=2, slow="Sleeper")
    assert "longer than 2 seconds" in out["1.slow"]
    assert out["5.txt"] == "text 5"


def test_a_crash_costs_its_file_only(folder: Path) -> None:
    (folder / "1.bad").write_text("x", encoding="utf-8")
    out = run(folder, bad="Crasher")
    assert "crashed" in out["1.bad"]
    assert out["5.txt"] == "text 5"


def test_what_a_loader_prints_does_no_harm(folder: Path) -> None:
    (folder / "1.odd").write_text("x", encoding="utf-8")
    assert run(folder, odd="Chatty")["1.odd"] == "said"


def test_a_missing_loader_is_said(folder: Path) -> None:
    (folder / "1.odd").write_text("x", encoding="utf-8")
    assert "cannot be imported" in run(folder, odd="Nothing")["1.odd"]


def test_cancelling_stops(folder: Path) -> None:
    with pytest.raises(Cancelled):
        list(read_all(scan(folder).files, ReadOptions(), cancel=lambda: True))


def test_a_large_table_comes_in_bounded_batches(folder: Path) -> None:
    (folder / "big.csv").write_text("a,b\n" + "1,2\n" * 20_000, encoding="utf-8")
    sizes = [len(e.chunks) for e in read_all(scan(folder).files, ReadOptions()) if isinstance(e, ChunkBatch) and e.source == "big.csv"]
    assert sum(sizes) == 2001
    assert max(sizes) <= 500


def test_a_file_that_needs_too_much_memory_is_given_up(folder: Path) -> None:
    (folder / "1.big").write_text("x", encoding="utf-8")
    out = run(folder, memory=300 << 20, big="Glutton")
    assert "more than 300 MB of memory" in out["1.big"]
    assert out["5.txt"] == "text 5"


def test_a_slow_caller_is_not_taken_for_a_slow_reader(folder: Path) -> None:
    (folder / "a.csv").write_text("a,b\n" + "1,2\n" * 30_000, encoding="utf-8")
    events = read_all(scan(folder).files, ReadOptions(limits=Limits(max_seconds=1)), workers=1)
    out = []
    for event in events:
        if isinstance(event, ChunkBatch) and not out.count(event.source) and event.source == "a.csv":
            time.sleep(1.5)
        out.append(event.source)
        assert not isinstance(event, Failed)


def test_it_works_from_a_script_without_a_main_guard(folder: Path) -> None:
    script = f"""
from pathlib import Path
from hybrid_rag.loading.scan import scan
from hybrid_rag.workers import Finished, ReadOptions, read_all
print(sum(isinstance(e, Finished) for e in read_all(scan(Path({str(folder)!r})).files, ReadOptions(), workers=2)))
"""
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "6", done.stderr


def test_no_process_is_left_behind(folder: Path) -> None:
    threads = threading.active_count()
    events = read_all(scan(folder).files, ReadOptions(), workers=2)
    next(events)
    events.close()
    deadline = time.monotonic() + 10
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= threads


def test_a_wide_table_stays_within_memory(folder: Path, tmp_path: Path) -> None:
    rows = [",".join(f"{row}.{column % 10}" for column in range(400)) for row in range(1, 25)]
    (folder / "wide.csv").write_text("\n".join([",".join(f"c{i}" for i in range(400)), *rows]), encoding="utf-8")
    options = ReadOptions(limits=Limits(max_memory_bytes=500 << 20), tables_directory=tmp_path)
    (event,) = [e for e in read_all(scan(folder, below=[folder / "wide.csv"]).files, options) if not isinstance(e, ChunkBatch)]
    assert isinstance(event, Finished), event
    assert event.card is not None
    assert len(event.card.columns) == 400


def test_a_table_that_cannot_be_made_keeps_its_text(folder: Path, tmp_path: Path) -> None:
    (folder / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (tmp_path / "lib" / "sitecustomize.py").write_text(
        "import hybrid_rag.tables as t\nfrom hybrid_rag.errors import TableError\n"
        "def build(*a, **k): raise TableError('The disk is full.')\nt.build = build\n",
        encoding="utf-8",
    )
    options = ReadOptions(tables_directory=tmp_path)
    events = list(read_all(scan(folder, below=[folder / "t.csv"]).files, options))
    assert next(c.text for e in events if isinstance(e, ChunkBatch) for c in e.chunks) == "a: 1\nb: 2"
    assert isinstance(events[-1], Finished)
    assert [(n.message, n.partial) for n in events[-1].document.notices] == [("The disk is full.", True)]
