"""What is particular to Chroma: names, processes that share a folder, broken-off writes, damage, a server that is not there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from hybrid_rag.errors import IndexDamagedError, IndexError_, IndexLockedError
from hybrid_rag.file_lock import hold
from hybrid_rag.vectors_chroma import ChromaServerVectors, ChromaVectors, accept, close_off, lock_path, untouched
from tests.test_vectors import DIMENSIONS, FINGERPRINT, Truth, found, unit

PROJECT = Path(__file__).parents[1]


def opened(folder: Path, source: Truth | None = None, *, fingerprint: str = FINGERPRINT, **options: bool) -> ChromaVectors:
    return ChromaVectors(
        folder, prefix="hybrid_rag", fingerprint=fingerprint, dimensions=DIMENSIONS, source=source, exact_up_to=0, **options
    )


def filled(folder: Path, count: int = 50) -> Truth:
    truth = Truth()
    truth.kept["text"] = dict(enumerate(unit(count)))
    index = opened(folder)
    index.upsert("text", range(count), [1] * count, unit(count))
    index.close()
    return truth


def test_reading_creates_nothing(tmp_path: Path) -> None:
    index = opened(tmp_path / "vectors")
    assert index.count("text") == 0 and index.search("text", unit(1)[0], k=3) == []
    index.close()
    assert list(tmp_path.iterdir()) == []


def test_collections_are_named_by_kind_and_embedder_and_cosine(tmp_path: Path) -> None:
    import chromadb
    from chromadb.config import Settings

    filled(tmp_path)
    client = chromadb.PersistentClient(tmp_path, settings=Settings(anonymized_telemetry=False))
    assert [c.name for c in client.list_collections()] == ["hybrid_rag_text_01234567"]
    collection = client.get_collection("hybrid_rag_text_01234567", embedding_function=None)
    assert collection.configuration["hnsw"]["space"] == "cosine"
    assert collection.get(ids=["7"])["metadatas"] == [{"document": 1}]
    client.close()


def test_two_embedders_stand_side_by_side_until_the_old_one_is_dropped(tmp_path: Path) -> None:
    filled(tmp_path)
    new = opened(tmp_path, fingerprint="f" * 32)
    new.upsert("text", [1], [1], unit(1))
    assert new.count("text") == 1 and opened(tmp_path).count("text") == 50
    assert new.drop_others() == ["hybrid_rag_text_01234567"]
    new.reload()
    old = opened(tmp_path)
    assert new.count("text") == 1 and old.count("text") == 0
    new.close()
    old.close()


@pytest.mark.parametrize("rows", [np.zeros((1, DIMENSIONS)), np.full((1, DIMENSIONS), np.nan), unit(1)[:, :-1], unit(2)])
def test_a_wrong_vector_is_refused_before_anything_is_written(tmp_path: Path, rows: np.ndarray) -> None:
    index = opened(tmp_path / "vectors")
    with pytest.raises(ValueError, match="vector"):
        index.upsert("text", [1], [1], rows)
    assert not (tmp_path / "vectors").exists()


def test_samples_are_what_was_stored(tmp_path: Path) -> None:
    filled(tmp_path)
    index = opened(tmp_path)
    sample = dict(index.sample("text", [3, 40, 999]))
    assert sorted(sample) == [3, 40]
    np.testing.assert_allclose(sample[3], unit(50)[3], atol=1e-6)
    index.close()


def test_reloading_leaks_no_file_handles(tmp_path: Path) -> None:
    filled(tmp_path)
    index = opened(tmp_path)
    handles = []
    for _ in range(12):
        index.reload()
        assert len(index.search("text", unit(1)[0], k=2)) == 2
        handles.append(len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0)
    assert max(handles[6:]) <= handles[1] + 5, "a connection holds about five, so one that is left open each round shows"
    index.close()


def test_while_another_process_writes_a_search_is_exact_and_the_rest_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = filled(tmp_path / "vectors")
    with_source, without = opened(tmp_path / "vectors", truth), opened(tmp_path / "vectors")
    monkeypatch.setattr("hybrid_rag.vectors_chroma_base.SEARCH_WAIT", 0.02)
    query = unit(1, seed=5)[0]
    usual = with_source.search("text", query, k=5)
    with hold(lock_path(tmp_path / "vectors"), exclusive=True, seconds=1):
        assert found(with_source.search("text", query, k=5)) == found(usual)
        with pytest.raises(IndexLockedError, match="being written"):
            without.search("text", query, k=5)
    assert found(without.search("text", query, k=5)) == found(usual)
    with_source.close()
    without.close()


WRITER = """
import os, signal, sys
sys.path[:0] = {path!r}
from pathlib import Path
from chromadb.api.models.Collection import Collection
from tests.test_vectors_chroma import opened, unit

plain = Collection.upsert

def upsert_and_die(self, **rows):
    plain(self, **rows)
    os.kill(os.getpid(), signal.SIGKILL)

Collection.upsert = upsert_and_die
index = opened(Path({folder!r}))
index.upsert("text", range(100, 140), [1] * 40, unit(40, seed=8))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_writer_killed_in_mid_write_keeps_readers_off_until_it_was_looked_at(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    truth = filled(folder)
    run = subprocess.run([sys.executable, "-c", WRITER.format(path=[str(PROJECT)], folder=str(folder))], check=False, timeout=60)
    assert run.returncode == -signal.SIGKILL
    query = unit(1, seed=5)[0]
    reader = opened(folder, truth)
    exact = [n for n, _ in sorted(((n, float(v @ query)) for n, v in truth.kept["text"].items()), key=lambda p: -p[1])][:5]
    assert found(reader.search("text", query, k=5)) == exact
    with pytest.raises(IndexDamagedError, match="broken off"):
        reader.count("text")
    assert opened(folder, unchecked=True).count("text") == 90
    accept(folder)
    assert reader.count("text") == 90
    reader.close()


def test_damage_is_told_with_its_remedy_and_a_search_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    truth = filled(folder)
    (folder / "chroma.sqlite3").write_bytes(b"this is no database" * 500)
    query = unit(1, seed=5)[0]
    alone, with_source = opened(folder), opened(folder, truth)
    with pytest.raises(IndexDamagedError) as caught:
        alone.count("text")
    assert str(folder) in caught.value.message and "hybrid-rag" in caught.value.remedy
    assert len(with_source.search("text", query, k=5)) == 5
    with pytest.raises(IndexDamagedError):
        with_source.upsert("text", [1], [1], unit(1))


READER = """
import sys, time
sys.path[:0] = {path!r}
from tests.test_vectors_chroma import opened, unit
from pathlib import Path
index, end, rounds = opened(Path({folder!r})), time.monotonic() + {seconds}, 0
while time.monotonic() < end:
    index.reload()
    assert len(index.search("text", unit(1)[0], k=5)) == 5
    rounds += 1
index.close()
print(rounds)
"""


def share(folder: Path, seconds: float, readers: int) -> int:
    """One writer here and readers in other processes for a while; the number of reads. Checks what is left."""
    truth = filled(folder, 200)
    writer, end, number = opened(folder), time.monotonic() + seconds, 200
    command = [sys.executable, "-c", READER.format(path=[str(PROJECT)], folder=str(folder), seconds=seconds)]
    others = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(readers)]
    while time.monotonic() < end or any(o.poll() is None for o in others):
        rows = unit(50, seed=number)
        truth.kept["text"].update(zip(range(number, number + 50), rows, strict=True))
        writer.upsert("text", range(number, number + 50), [1] * 50, rows)
        gone = list(truth.kept["text"])[5::20][:5]
        for n in gone:
            del truth.kept["text"][n]
        writer.delete("text", gone)
        number += 50
        time.sleep(0.02)
    writer.close()
    results = [(o.returncode, *o.communicate()) for o in others]
    assert [r[0] for r in results] == [0] * readers, results
    left = opened(folder)
    assert left.numbers("text") == set(truth.kept["text"])
    for n in list(truth.kept["text"])[::17]:
        assert left.search("text", truth.kept["text"][n], k=1)[0][0] == n
    left.close()
    return sum(int(r[1]) for r in results)


def test_readers_in_other_processes_live_through_writes(tmp_path: Path) -> None:
    assert share(tmp_path / "vectors", 1.5, 1) > 0


@pytest.mark.slow
def test_readers_in_other_processes_live_through_many_writes(tmp_path: Path) -> None:
    assert share(tmp_path / "vectors", 20, 2) > 20


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    truth = Truth()
    truth.kept["text"] = dict(enumerate(unit(20)))
    index = ChromaServerVectors("127.0.0.1", port, prefix="abc", fingerprint=FINGERPRINT, dimensions=DIMENSIONS, source=truth)
    assert len(index.search("text", unit(1)[0], k=5)) == 5
    with pytest.raises(IndexError_) as caught:
        index.count("text")
    assert f"http://127.0.0.1:{port}" in caught.value.message and "chroma run" in caught.value.remedy


class Refusing(BaseHTTPRequestHandler):
    seen: list[str | None] = []  # noqa: RUF012

    def do_GET(self) -> None:
        Refusing.seen.append(self.headers.get("Authorization"))
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *args: object) -> None:
        """Quiet."""


def test_the_token_is_sent_and_never_shown() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        index = ChromaServerVectors(
            "127.0.0.1", server.server_port, token="s3cret", prefix="abc", fingerprint=FINGERPRINT, dimensions=DIMENSIONS
        )
        with pytest.raises(IndexError_) as caught:
            index.count("text")
        server.shutdown()
    assert Refusing.seen and set(Refusing.seen) == {"Bearer s3cret"}
    assert "s3cret" not in str(caught.value) and "token" in caught.value.remedy


@pytest.mark.parametrize("rows", [1, 3000])
def test_reading_does_not_look_like_damage(tmp_path: Path, rows: int) -> None:
    """Opening Chroma writes into its database, also of collections that it has written out (at 1,000 rows) or not."""
    folder = tmp_path / "vectors"
    options = {"prefix": "x", "fingerprint": "f" * 8, "dimensions": 2}
    writer = ChromaVectors(folder, **options)
    angles = np.linspace(0, 1, rows)
    writer.upsert("text", range(1, rows + 1), [1] * rows, np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32))
    assert not untouched(folder)
    close_off(folder)
    writer.close()
    for _ in range(2):
        reader = ChromaVectors(folder, **options)
        assert reader.search("text", np.array([1, 0], np.float32), k=1)
        reader.close()
        assert untouched(folder)
    (folder / "chroma.sqlite3").touch()
    reader = ChromaVectors(folder, **options)
    assert reader.count("text") == rows
    reader.close()
    assert not untouched(folder)
