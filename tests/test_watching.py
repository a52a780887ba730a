"""Following the folder: what changes is indexed, bursts once, errors are survived, and it ends when told."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid_rag import open_service
from hybrid_rag.errors import DataError
from hybrid_rag.lock import write_lock
from hybrid_rag.service import Service
from hybrid_rag.watching import watch
from tests.support.embedders import HashEmbedder

WAIT = 60.0


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    (tmp_path / "data").mkdir()
    settings = [
        f"data.directory={tmp_path / 'data'}",
        f"vector_store.persist_directory={tmp_path / 'index'}",
        "embedding.provider=ollama",
        "document_processing.workers=1",
    ]
    monkeypatch.setattr("hybrid_rag.watching.RETRY_SECONDS", 0.5)
    with open_service(settings=settings) as opened:
        embedder = HashEmbedder()
        monkeypatch.setattr(opened.parts, "embedder", lambda provider: embedder)
        yield opened


class Watched:
    """A watch in a thread, with what it said."""

    def __init__(self, service: Service) -> None:
        self.said: list[str] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=watch, args=(service,), kwargs={"report": self.said.append, "stop": self.stop})
        self.thread.start()

    def wait_for(self, words: str, times: int = 1) -> None:
        give_up = time.monotonic() + WAIT
        while sum(words in line for line in self.said) < times:
            assert time.monotonic() < give_up, (words, self.said)
            time.sleep(0.02)

    def end(self) -> None:
        self.stop.set()
        self.thread.join(WAIT)
        assert not self.thread.is_alive()


def test_changes_are_followed_until_it_is_stopped(service: Service) -> None:
    data = service.config.data.directory
    (data / "a.txt").write_text("alpha", encoding="utf-8")
    watched = Watched(service)
    try:
        watched.wait_for("Watching")
        (data / "b.txt").write_text("beta", encoding="utf-8")
        watched.wait_for("1 new", times=2)
        (data / "b.txt").rename(data / "c.txt")
        watched.wait_for("1 renamed")
        (data / "a.txt").unlink()
        watched.wait_for("1 deleted")
        assert [hit.source for hit in service.search("beta").hits] == ["c.txt"]
        assert [d.source for d in service.documents()] == ["c.txt"]
    finally:
        watched.end()
    assert watched.said[-1] == "Stopped watching."


def test_a_burst_is_one_run_or_two(service: Service) -> None:
    data = service.config.data.directory
    (data / "a.txt").write_text("alpha", encoding="utf-8")
    watched = Watched(service)
    try:
        watched.wait_for("Watching")
        for i in range(40):
            (data / f"{i}.txt").write_text(f"word{i}", encoding="utf-8")
        give_up = time.monotonic() + WAIT
        while len(service.documents()) < 41:
            assert time.monotonic() < give_up
            time.sleep(0.05)
        assert sum(line.startswith("Indexed") for line in watched.said) <= 4
    finally:
        watched.end()


def test_a_lock_and_an_emptied_folder_are_survived(service: Service) -> None:
    data = service.config.data.directory
    (data / "a.txt").write_text("alpha", encoding="utf-8")
    watched = Watched(service)
    try:
        watched.wait_for("Watching")
        with write_lock(service.config.vector_store.persist_directory):
            (data / "b.txt").write_text("beta", encoding="utf-8")
            watched.wait_for("Waiting: The index is being written by process")
        watched.wait_for("1 new", times=2)
        for path in data.iterdir():
            path.unlink()
        watched.wait_for("Not indexed: The data folder")
        (data / "c.txt").write_text("gamma", encoding="utf-8")
        watched.wait_for("2 deleted")
        assert [d.source for d in service.documents()] == ["c.txt"]
    finally:
        watched.end()


def test_a_folder_that_is_not_there_is_an_error_at_the_start(service: Service) -> None:
    service.config.data.directory.rmdir()
    with pytest.raises(DataError):
        watch(service, report=lambda line: None, stop=threading.Event())
