"""Several processes on one index: one writes at a time, those that only look keep nobody from it, readers see the writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.lock import is_locked, write_lock
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    if made.index is not None:
        made.index.close()


def test_two_that_live_long_write_in_turn(world: World) -> None:
    """Neither keeps the keyword engine's own lock after its run."""
    other = Index(IndexOptions(world.directory), create=True)
    try:
        for i in range(3):
            for index in (world.index or world.open(), other):
                world.write(f"{i}.txt", f"word{i} {id(index)}")
                ingest(index, IngestOptions(world.root, workers=1, verify=True), embedder=lambda: world.embedder)
        world.index.refresh()
        assert sorted(world.found("word2")) == ["2.txt"]
        world.check()
    finally:
        other.close()


def test_a_run_that_fails_keeps_no_lock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("a.txt", "alpha")
    index = world.open()
    with pytest.raises(ZeroDivisionError), index.writer() as writer:
        writer.lexical.delete([1])
        raise ZeroDivisionError
    world.write("b.txt", "beta")
    other = Index(IndexOptions(world.directory))
    ingest(other, IngestOptions(world.root, workers=1), embedder=lambda: world.embedder)
    other.close()
    assert world.found("beta") == ["b.txt"]


def test_looking_at_the_lock_keeps_nobody_from_it(tmp_path: Path) -> None:
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            is_locked(tmp_path)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(200):
            with write_lock(tmp_path):
                pass
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_looking_needs_no_right_to_write(tmp_path: Path) -> None:
    assert not is_locked(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with write_lock(tmp_path):
        (tmp_path / "lock").chmod(0o444)
        assert is_locked(tmp_path)
    assert not is_locked(tmp_path)
