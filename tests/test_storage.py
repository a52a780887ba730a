"""Disks that are full or cannot be written: said as what it is, nothing lost, and readers read on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hybrid_rag.catalog import Catalog
from hybrid_rag.errors import IndexDamagedError, IndexEmptyError, IndexLockedError, IndexStorageError, IndexVersionError
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.storage import storage_error
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    if made.index is not None:
        made.index.close()


def child(code: str, *arguments: object, **options) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own; its last line is JSON."""
    root = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, str(Path(root) / "src")])}
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=environment, timeout=120, **options)


INDEXING = """
import json, resource, sys
from pathlib import Path
from hybrid_rag.errors import HybridRagError
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from tests.support.embedders import HashEmbedder
directory, data, limit = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    index = Index(IndexOptions(directory), create=True)
    report = ingest(index, IngestOptions(data, workers=1), embedder=lambda: HashEmbedder())
    index.close()
    print(json.dumps(report.counts))
except HybridRagError as error:
    print(json.dumps(error.to_dict()))
"""


@pytest.mark.parametrize("limit", [0.15, 0.6])
def test_no_file_can_grow_any_further(world: World, limit: float) -> None:
    """A limit of the file size stands for a full disk, at several moments of a run. What was indexed stays, the rest follows."""
    world.write("old.txt", "oldword")
    world.run()
    world.index.close()
    world.index = None
    for i in range(8):
        world.write(f"{i}.txt", f"common word{i} " + " ".join(f"w{i}x{j}" for j in range(6000)))
    world.write("t.csv", "sku,name\n" + "".join(f"S-{i},{'n' * 40}{i * 7919}\n" for i in range(2000)))
    run = child(INDEXING, world.directory, world.root, int(limit * 1_000_000))
    told = json.loads(run.stdout.splitlines()[-1])
    assert told.get("error") == "IndexStorageError", (told, run.stderr[-500:])
    assert told["remedy"]
    reader = Index(IndexOptions(world.directory))
    assert [
        s.chunk.source for s in reader.catalog.chunks([n for n, _ in reader.lexical.search(reader.analyzer.query("oldword"), k=3)]).values()
    ] == ["old.txt"]
    assert reader.catalog.unread() == []
    reader.close()
    world.run()
    assert len(world.index.catalog.documents()) == 10
    assert world.index.vector_share() == 1
    world.check()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 MB; only where this process may make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("no right to mount a small disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_is_said_and_freed_space_is_enough_to_go_on(world: World, small_disk: Path) -> None:
    world.directory = small_disk / "index"
    world.write("old.txt", "oldword")
    world.run()
    ballast = small_disk / "ballast"
    with pytest.raises(OSError, match="No space"):
        ballast.write_bytes(b"x" * 20_000_000)
    for i in range(5):
        world.write(f"{i}.txt", " ".join(f"w{i}x{j}" for j in range(4000)))
    with pytest.raises(IndexStorageError, match=r"full|space"):
        world.run()
    assert world.found("oldword") == ["old.txt"]
    ballast.unlink()
    world.run()
    assert len(world.index.catalog.documents()) == 6
    world.check()


READING = """
import json, os, sys
from pathlib import Path
from hybrid_rag.errors import HybridRagError
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from tests.support.embedders import HashEmbedder
directory, data = Path(sys.argv[1]), Path(sys.argv[2])
index = Index(IndexOptions(directory))
out = {}
for name in ("first", "second"):
    index.refresh()
    words = index.lexical.search(index.analyzer.query("alpha"), k=5)
    vectors = index.search_vectors("text", HashEmbedder().embed_query("a alpha"), k=5)
    out[name] = [sorted(s.chunk.source for s in index.catalog.chunks([n for n, _ in hits]).values()) for hits in (words, vectors)]
try:
    ingest(index, IngestOptions(data, workers=1), embedder=lambda: HashEmbedder())
    out["write"] = "done"
except HybridRagError as error:
    out["write"] = [error.message, error.remedy]
index.close()
print(json.dumps(out))
"""


@contextmanager
def read_only(directory: Path) -> Iterator[None]:
    """Nothing below can be written: by permissions, or for a user whom these do not bind by a mount."""
    if os.getuid():
        for path in [*directory.rglob("*"), directory]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield
        for path in [directory, *directory.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        return
    made = [subprocess.run(["mount", *how, str(directory)], capture_output=True, check=False).returncode
            for how in (["--bind", str(directory)], ["-o", "remount,ro,bind"])]  # fmt: skip
    if any(made):
        pytest.skip("no right to mount a folder read-only")
    yield
    subprocess.run(["umount", "-l", str(directory)], check=True)


@pytest.mark.parametrize("state", ["closed", "open elsewhere"])
def test_a_folder_that_cannot_be_written_can_be_read(world: World, state: str) -> None:
    world.write("a.txt", "alpha")
    world.run()
    if state == "closed":
        world.index.close()
        world.index = None
    with read_only(world.directory):
        run = child(READING, world.directory, world.root)
    assert run.returncode == 0, run.stderr[-2000:]
    told = json.loads(run.stdout.splitlines()[-1])
    assert told["first"] == told["second"] == [["a.txt"], ["a.txt"]]
    message, remedy = told["write"]
    assert str(world.directory) in message
    assert "ermissions" in remedy
    assert "Traceback" not in run.stderr


def test_a_busy_or_closed_catalog_is_no_damage(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("a.txt", "alpha")
    world.run()
    monkeypatch.setattr("hybrid_rag.catalog_file.BUSY_SECONDS", 0.05)
    other = Catalog(world.directory / "catalog.sqlite")
    with world.index.catalog.transaction(), pytest.raises(IndexLockedError, match="busy"):
        other.set_setting("x", "y")
    other.close()


def test_a_folder_in_the_place_of_the_catalog_is_no_damage(tmp_path: Path) -> None:
    (tmp_path / "catalog.sqlite").mkdir()
    with pytest.raises(IndexStorageError):
        Catalog(tmp_path / "catalog.sqlite")


# ---------------------------------------------------------------- made in one step, and migrated

FIRST_SCHEMA = (Path(__file__).parent / "data" / "catalog_schema_1.sql").read_text(encoding="utf-8")


def test_a_catalog_that_was_not_finished_is_finished(tmp_path: Path) -> None:
    """A kill between the making of the file and its first transaction leaves a file without tables."""
    import sqlite3

    path = tmp_path / "catalog.sqlite"
    bare = sqlite3.connect(path)
    bare.execute("PRAGMA page_size=16384")
    bare.execute("PRAGMA journal_mode=WAL")
    bare.close()
    with pytest.raises(IndexEmptyError):
        Catalog(path)
    made = Catalog(path, create=True)
    assert made.documents() == []
    made.close()
    path.write_bytes(b"")
    Catalog(path, create=True).close()


def old_index(world: World) -> None:
    """Turn a world's index into one that the first schema's program has left."""
    import sqlite3

    world.index.close()
    world.index = None
    with sqlite3.connect(world.directory / "catalog.sqlite") as db:
        db.execute("ALTER TABLE documents DROP COLUMN reading")
        db.execute("ALTER TABLE unread DROP COLUMN reading")
        db.execute("DELETE FROM settings WHERE key = 'incarnation'")
        db.execute("PRAGMA user_version = 1")
        known = {r[0] for r in db.execute("SELECT sql FROM sqlite_master WHERE name = 'unread'")}
    assert known and all("reading" not in sql for sql in known)
    db.close()


def test_an_older_index_is_brought_up_to_date(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    old_index(world)
    reader = Index(IndexOptions(world.directory))
    assert reader.catalog.value("PRAGMA user_version") == 2
    assert [d.source for d in reader.catalog.documents()] == ["a.txt"]
    reader.close()
    report = world.run()
    assert report.counts["changed"] == 1  # nobody knows with which settings it was read
    assert len(world.embedder.texts) == 1
    world.check()


def test_the_first_schema_migrates_to_the_present_one(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "catalog.sqlite"
    with sqlite3.connect(path) as db:
        db.executescript(FIRST_SCHEMA)
        db.execute("PRAGMA user_version = 1")
    db.close()
    Catalog(path).close()
    Catalog(tmp_path / "fresh.sqlite", create=True).close()

    def columns(file: Path) -> dict[str, list[tuple]]:
        db = sqlite3.connect(file)
        names = [r[0] for r in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
        found = {name: sorted(r[1:4] for r in db.execute(f"PRAGMA table_info({name})")) for name in names}
        db.close()
        return found

    assert columns(path) == columns(tmp_path / "fresh.sqlite")


def test_migrating_waits_for_a_writer_of_the_older_program(world: World) -> None:
    from hybrid_rag.lock import write_lock

    world.write("a.txt", "alpha")
    world.run()
    old_index(world)
    with write_lock(world.directory), pytest.raises(IndexLockedError):
        Index(IndexOptions(world.directory))


@pytest.mark.parametrize(("version", "remedy"), [(99, "newer version"), (0, "rebuild all")])
def test_other_versions_are_refused_with_the_command(world: World, version: int, remedy: str) -> None:
    world.write("a.txt", "alpha")
    world.run()
    world.index.catalog.rows(f"PRAGMA user_version = {version}")
    with pytest.raises(IndexVersionError, match=f"version {version}") as caught:
        world.open()
    assert remedy in caught.value.remedy
    assert "hybrid-rag rebuild all" in caught.value.remedy


def test_damage_stays_damage(tmp_path: Path) -> None:
    (tmp_path / "catalog.sqlite").write_bytes(b"rubbish" * 1000)
    with pytest.raises(IndexDamagedError):
        Catalog(tmp_path / "catalog.sqlite")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(28, "No space left on device"), "space"),
        (RuntimeError("Error: database or disk is full"), "space"),
        (ValueError("An IO error occurred: 'Permission denied (os error 13)'"), "right"),
        (ValueError("corrupt"), None),
    ],
)
def test_errors_of_the_disk_are_told_from_others(error: Exception, kind: str | None) -> None:
    found = storage_error(error, "the index")
    assert (found is None) == (kind is None)
    if found is not None:
        assert kind in found.message
        assert found.remedy
