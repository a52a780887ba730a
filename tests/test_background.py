"""Runs in the background: searches go on, wishes are joined, a run can be stopped, failures are told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid_rag import open_service
from hybrid_rag.background import Background
from hybrid_rag.errors import Cancelled, DataError, IndexLockedError
from hybrid_rag.lock import write_lock
from hybrid_rag.records import IndexReport, Progress
from hybrid_rag.service import Service
from tests.support.embedders import HashEmbedder

WAIT = 60.0


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    (tmp_path / "data").mkdir()
    settings = [
        f"data.directory={tmp_path / 'data'}",
        f"vector_store.persist_directory={tmp_path / 'index'}",
        "embedding.provider=bundled",
        "document_processing.workers=1",
    ]
    with open_service(settings=settings) as opened:
        embedder = HashEmbedder()
        monkeypatch.setattr(opened.parts, "embedder", lambda provider: embedder)
        yield opened


def write(service: Service, name: str, text: str) -> None:
    (service.config.data.directory / name).write_text(text, encoding="utf-8")


class Scripted:
    """A run that waits until it is told to go on, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str] | None, bool]] = []
        self.inside, self.go = threading.Event(), threading.Event()

    def __call__(self, paths=None, *, verify=False, progress=None, cancel=None) -> IndexReport:
        self.asked.append((None if paths is None else list(paths), verify))
        progress(Progress("scan", 1, 1))
        self.inside.set()
        assert self.go.wait(WAIT)
        if cancel():
            raise Cancelled("stopped")
        return IndexReport("2026-01-01T00:00:00+00:00", 0.1, ())


def test_a_run_makes_files_searchable_and_tells_its_report(service: Service) -> None:
    write(service, "a.txt", "alpha")
    seen: list[Progress] = []
    assert service.background.start(progress=seen.append)
    state = service.background.wait(WAIT)
    assert (state.running, state.error, state.runs) == (False, None, 1)
    assert state.report is not None
    assert state.report.counts["added"] == 1
    assert {event.stage for event in seen} >= {"scan", "read", "embed text"}
    assert [hit.source for hit in service.search("alpha").hits] == ["a.txt"]
    told = state.to_dict()
    assert told["report"]["counts"]["added"] == 1
    assert (told["running"], told["error"]) == (False, None)


def test_searches_go_on_while_runs_follow_each_other(service: Service) -> None:
    for i in range(30):
        write(service, f"{i}.txt", f"common word{i}")
    service.index()
    stop, problems, searches = threading.Event(), [], [0]

    def search() -> None:
        try:
            while not stop.is_set():
                assert len(service.search("common", k=5).hits) == 5
                searches[0] += 1
                time.sleep(0.005)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for round_ in range(3):
        write(service, "new.txt", f"common round{round_} {'x' * round_}")
        service.background.start(verify=True)
        state = service.background.wait(WAIT)
        assert state.error is None
        assert service.search(f"round{round_}").hits[0].source == "new.txt"
    stop.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert searches[0] > 0


def test_wishes_during_a_run_are_joined_into_one_that_follows() -> None:
    run = Scripted()
    background = Background(run)
    assert background.start(["a"])
    assert run.inside.wait(WAIT)
    assert not background.start(["b"])
    assert not background.start(["c"], verify=True)
    assert background.state.waiting
    run.go.set()
    assert background.wait(WAIT).runs == 2
    assert run.asked == [(["a"], False), (["b", "c"], True)]


def test_all_and_a_part_are_all() -> None:
    run = Scripted()
    background = Background(run)
    background.start()
    assert run.inside.wait(WAIT)
    background.start(["b"])
    background.start()
    run.go.set()
    background.wait(WAIT)
    assert run.asked[1:] == [(None, False)]


def test_stopping_ends_the_run_forgets_what_waits_and_lets_another_begin() -> None:
    run = Scripted()
    background = Background(run)
    background.start()
    assert run.inside.wait(WAIT)
    background.start(["b"])
    background.cancel()
    run.go.set()
    state = background.stop()
    assert (state.running, state.cancelled, state.runs, state.error) == (False, True, 1, None)
    assert background.start()
    assert not background.wait(WAIT).cancelled


def test_what_fails_is_in_the_state_and_the_next_run_clears_it(service: Service) -> None:
    service.background.start()
    assert isinstance(service.background.wait(WAIT).error, DataError)
    write(service, "a.txt", "alpha")
    with write_lock(service.config.vector_store.persist_directory):
        service.background.start()
        state = service.background.wait(WAIT)
    assert isinstance(state.error, IndexLockedError)
    assert state.to_dict()["error"]["error"] == "IndexLockedError"
    service.background.start()
    assert service.background.wait(WAIT).error is None


def test_a_fault_of_our_own_is_told_too() -> None:
    def run(*_, **__):
        raise ValueError("odd")

    background = Background(run)
    background.start()
    assert "ValueError: odd" in background.wait(WAIT).error.message


def test_closing_a_service_ends_its_run(service: Service) -> None:
    for i in range(300):
        write(service, f"{i}.txt", f"word{i}")
    started = threading.Event()
    service.background.start(progress=lambda event: started.set() if event.stage == "read" else None)
    assert started.wait(WAIT)
    service.close()
    assert not service.background.state.running
    assert service.background.state.cancelled
    service.index()
    assert len(service.documents()) == 300
