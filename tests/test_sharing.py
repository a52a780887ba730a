"""Several processes on one index: one writes at a time, those that only look keep nobody from it, readers see the writes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid_rag.errors import IndexError_
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.lock import is_locked, write_lock
from hybrid_rag.maintenance import verify
from tests.support.chroma_server import running
from tests.support.embedders import HashEmbedder
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
            time.sleep(0.0005)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(100):
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


def freshness(world: World, rounds: int) -> dict[str, float]:
    """A long-lived reader while another process adds, changes and deletes; the searches and the longest of them, in seconds."""
    world.write("same.txt", "common always")
    world.run()
    reader, stop = Index(IndexOptions(world.directory)), threading.Event()
    problems: list[object] = []
    longest, searches = [0.0], [0]

    def found(words: str) -> set[str]:
        reader.refresh()
        began = time.monotonic()
        hits = reader.lexical.search(reader.analyzer.query(words), k=10)
        query = world.embedder.embed_query(words)
        near = reader.search_vectors("text", query, k=10)
        longest[0], searches[0] = max(longest[0], time.monotonic() - began), searches[0] + 1
        stored = reader.catalog.chunks([n for n, _ in [*hits, *near]])
        by_words = {stored[n].chunk.text for n, _ in hits if n in stored}
        assert all(stored[n].chunk.text.startswith("common") for n, _ in near if n in stored)
        return by_words

    def search() -> None:
        try:
            while not stop.is_set():
                if "common always" not in found("common"):
                    problems.append("a document that nobody touched was not found")
                time.sleep(0.01)
        except Exception as error:
            problems.append(error)

    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    command = [sys.executable, "-m", "tests.support.changing", str(world.directory), str(world.root)]
    thread = threading.Thread(target=search)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", env=environment) as other:
        assert other.stdout.readline() == "ready\n"
        thread.start()
        try:
            for i in range(rounds):
                other.stdin.write(f"{i}\n")
                other.stdin.flush()
                assert other.stdout.readline() == f"{i}\n"
                assert found("common") == {"common always", f"common added{i}", f"common version{i}"}
                assert found(f"added{i - 1}") == found(f"version{i - 1}") == set()
                query = world.embedder.embed_query(f"changed common version{i}")
                best = reader.search_vectors("text", query, k=1)[0][0]
                assert reader.catalog.chunks([best])[best].chunk.text == f"common version{i}"
            other.stdin.close()
        finally:
            stop.set()
            thread.join()
    reader.close()
    assert problems == []
    return {"searches": searches[0], "longest": longest[0]}


def test_a_reader_sees_what_another_process_did_at_once(world: World) -> None:
    assert freshness(world, 10)["searches"] > 10


@pytest.mark.slow
def test_a_reader_sees_what_another_process_did_at_once_a_hundred_times(world: World) -> None:
    print(freshness(world, 100))


def test_a_chroma_server_is_filled_emptied_and_mended(world: World, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with running(tmp_path / "server") as port:
        options = {"vector_mode": "server", "host": "127.0.0.1", "port": port}
        for i in range(20):
            world.write(f"{i}.txt", f"word{i}")
        world.run(**options)
        assert not (world.directory / "vectors").exists()
        assert world.index.vectors.count("text") == 20
        world.write("0.txt", "other")
        (world.root / "1.txt").unlink()
        world.run(**options)
        world.check()
        reader = Index(IndexOptions(world.directory, **options))
        best = reader.search_vectors("text", world.embedder.embed_query("7 word7"), k=1)
        assert reader.catalog.chunks([best[0][0]])[best[0][0]].chunk.source == "7.txt"
        reader.close()
        world.index.vectors.delete("text", world.index.catalog.chunk_numbers("text").tolist()[:5])
        assert not verify(world.index).ok
        world.index.catalog.set_setting("dirty", "1")
        world.run(**options)
        world.check()
        switched = HashEmbedder("bundled:other", 32)
        world.run(embedder=switched, **options)
        world.check()
        assert world.index.vectors.count("text") == 19
        texts = len(switched.texts)
        world.run(embedder=switched)  # back into this process
        world.check()
        assert len(switched.texts) == texts
    with pytest.raises(IndexError_, match="Chroma server"):
        world.write("new.txt", "newword")
        world.run(embedder=switched, **options)
    assert world.found("newword") == ["new.txt"]  # words are in before vectors are tried


def test_threads_that_begin_together_import_nothing_by_halves(world: World) -> None:
    """Two threads that import parts of one package at the same time may each wait for the other; Python then gives one of them a
    half-made module.
    """
    world.write("a.txt", "alpha beta")
    world.open()
    world.run()
    code = f"""
import sys, threading
from pathlib import Path
from hybrid_rag.index import Index, IndexOptions
index = Index(IndexOptions(Path({str(world.directory)!r})))
assert "numpy" in sys.modules, "imported whole before any thread can begin with a part"
together, errors = threading.Barrier(5), []
def first(part):
    together.wait()
    try:
        part()
    except Exception as error:
        errors.append(repr(error))
def keyword():
    index.lexical.count()
def meaning():
    import numpy as np
    index.search_vectors("text", np.ones({world.embedder.dimensions}, np.float32), k=1)
def chroma():
    from hybrid_rag.chroma_connection import Connection
    Connection({{"is_persistent": True, "persist_directory": {str(world.directory / "other")!r}}}).stop()
def whole():
    import chromadb
def typing():
    from numpy.typing import NDArray
threads = [threading.Thread(target=first, args=(part,)) for part in (keyword, meaning, chroma, whole, typing)]
[t.start() for t in threads]
[t.join() for t in threads]
print(errors)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0 and done.stdout.strip() == "[]", done.stdout + done.stderr
