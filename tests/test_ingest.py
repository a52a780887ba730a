"""One run after another: what changed is found, what is gone is gone, and whatever breaks is mended."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hybrid_rag.errors import (
    Cancelled,
    DataError,
    EmbedderMismatchError,
    IndexDamagedError,
    IndexEmptyError,
    IndexLockedError,
    IndexVersionError,
)
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.lock import write_lock
from hybrid_rag.maintenance import backup, rebuild, reset, restore, verify
from tests.support.embedders import HashEmbedder
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path):
    made = World(tmp_path)
    yield made
    if made.index is not None:
        made.index.close()


def test_a_first_run_makes_both_legs(world: World) -> None:
    world.write("a.md", "# Apples\n\nred fruit")
    world.write("t.csv", "sku,name\nX-1,phone\n")
    report = world.run()
    assert report.counts["added"] == 2
    assert world.found("X-1")[0] == "t.csv"
    assert world.index.vector_share() == 1
    assert world.index.vectors.count("text") == 1
    world.check()


def test_added_changed_renamed_deleted_unchanged(world: World) -> None:
    for name in "abcd":
        world.write(f"{name}.txt", f"word{name} common")
    world.run()
    time.sleep(0.01)
    world.write("b.txt", "wordnew common")
    (world.root / "c.txt").rename(world.root / "sub.txt")
    (world.root / "d.txt").unlink()
    world.write("e.txt", "worde")
    counts = world.run().counts
    assert {k: counts[k] for k in ("added", "changed", "renamed", "deleted", "unchanged")} == {
        "added": 1,
        "changed": 1,
        "renamed": 1,
        "deleted": 1,
        "unchanged": 1,
    }
    assert world.found("wordd") == []
    assert world.found("wordb") == []
    assert world.found("wordnew") == ["b.txt"]
    assert world.found("wordc") == ["sub.txt"]
    world.check()


def test_nothing_is_embedded_twice(world: World) -> None:
    world.write("a.txt", "one")
    world.write("b.txt", "two")
    world.run()
    assert len(world.embedder.texts) == 2
    world.run()
    world.write("b.txt", "three")
    world.run()
    assert len(world.embedder.texts) == 3
    rebuild(world.index, "all")
    world.run()
    assert len(world.embedder.texts) == 3
    world.check()


def test_of_a_changed_file_only_new_texts_are_embedded(world: World) -> None:
    world.write("a.md", "\n\n".join(f"# H{i}\n\nbody {i}" for i in range(10)))
    world.run()
    before = len(world.embedder.texts)
    world.write("a.md", "\n\n".join(f"# H{i}\n\nbody {i}" for i in range(9)) + "\n\n# H9\n\nother")
    world.run()
    assert len(world.embedder.texts) == before + 1


def test_a_shortened_file_leaves_nothing_behind(world: World) -> None:
    world.write("a.csv", "n\n" + "".join(f"row{i}\n" for i in range(100)))
    world.run()
    world.write("a.csv", "n\n" + "".join(f"row{i}\n" for i in range(30)))
    world.run()
    assert world.found("row99") == []
    assert world.index.lexical.count() == 4  # three groups and the card
    world.check()


def test_new_content_behind_the_old_size_and_time_is_found(world: World) -> None:
    path = world.write("a.txt", "first")
    os.utime(path, ns=(10**18, 10**18))
    world.run()
    world.write("a.txt", "other")
    os.utime(path, ns=(10**18, 10**18))
    assert world.run().counts["changed"] == 1
    assert world.found("other") == ["a.txt"]


def test_a_touched_file_is_not_read_again(world: World) -> None:
    path = world.write("a.txt", "first")
    world.run()
    os.utime(path, ns=(2 * 10**18, 2 * 10**18))
    report = world.run()
    assert report.counts["unchanged"] == 1
    assert report.chunks_written == 0


def test_a_part_of_the_folder_leaves_the_rest_alone(world: World) -> None:
    world.write("x/a.txt", "alpha")
    world.write("y/b.txt", "beta")
    world.run()
    world.write("x/a.txt", "gamma")
    (world.root / "y/b.txt").unlink()
    world.run(paths=(Path("x"),))
    assert world.found("gamma") == ["x/a.txt"]
    assert world.found("beta") == ["y/b.txt"]


def test_a_missing_or_emptied_folder_deletes_nothing(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    (world.root / "a.txt").unlink()
    with pytest.raises(DataError, match="nothing was deleted"):
        world.run()
    world.root.rmdir()
    with pytest.raises(DataError, match="does not exist"):
        world.run()
    assert world.found("alpha") == ["a.txt"]


def test_a_file_that_cannot_be_read_is_reported_and_its_old_content_gone(world: World) -> None:
    world.write("good.txt", "fine")
    path = world.write("a.csv", "n\nalpha\n")
    world.run()
    path.write_bytes(b"PK\x03\x04zip")
    report = world.run()
    bad = next(f for f in report.files if f.source == "a.csv")
    assert (bad.status, bad.change) == ("not read", "failed")
    assert bad.reason
    assert bad.remedy
    assert world.found("alpha") == []
    assert world.found("fine") == ["good.txt"]
    again = next(f for f in world.run().files if f.source == "a.csv")
    assert again.status == "not read"


def test_texts_that_the_embedder_fails_on_are_tried_again_alone(world: World) -> None:
    world.write("a.txt", "fine")
    world.write("b.txt", "broken")
    report = world.run(embedder=HashEmbedder(fails=["broken"]))
    assert report.chunks_failed == 1
    assert world.found("broken") == ["b.txt"]
    assert world.index.vector_share() == 0.5
    world.embedder.texts.clear()
    world.run()
    assert [t for t in world.embedder.texts if "fine" in t] == []
    assert world.index.vector_share() == 1
    world.check()


def test_another_embedder_of_the_same_size_never_mixes_in(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    other = HashEmbedder("bundled:other")
    with pytest.raises(EmbedderMismatchError, match="on_change"):
        world.run(embedder=other, on_change="refuse")
    assert world.index.fingerprint == world.embedder.fingerprint
    report = world.run(embedder=other)
    assert world.index.fingerprint == other.fingerprint
    assert any("changed" in m for m in report.messages)
    assert world.index.vectors.search("text", other.embed_query("a alpha"), k=1)[0][1] > 0.9
    world.check()


def test_another_size_works_too(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    other = HashEmbedder("bundled:wide", 32)
    world.run(embedder=other)
    assert world.index.vectors.search("text", other.embed_query("a alpha"), k=1)
    world.check()


def test_cancelling_keeps_words_and_goes_on_later(world: World) -> None:
    for i in range(400):
        world.write(f"{i}.txt", f"word{i}")
    calls = iter(range(10_000))
    with pytest.raises(Cancelled):
        world.run(cancel=lambda: len(world.embedder.texts) > 100 and next(calls) >= 0)
    assert world.found("word399") == ["399.txt"]
    done = len(world.embedder.texts)
    assert 0 < done < 400
    world.run()
    assert len(world.embedder.texts) == 400
    world.check()


# ---------------------------------------------------------------- several processes


def test_a_second_writer_is_told_who_holds_the_lock(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    with write_lock(world.directory), pytest.raises(IndexLockedError, match=f"process {os.getpid()} on .* since "):
        world.run()


def test_a_long_lived_reader_is_never_stale(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    reader = Index(IndexOptions(world.directory))
    try:
        for i in range(8):
            world.write("a.txt", f"round{i} {'x' * i}")
            world.run()
            reader.refresh()
            hits = reader.lexical.search(reader.analyzer.query(f"round{i}"), k=5)
            assert [s.chunk.text[: len(f"round{i}")] for s in reader.catalog.chunks([n for n, _ in hits]).values()] == [f"round{i}"]
            assert reader.lexical.search(reader.analyzer.query(f"round{i - 1}"), k=5) == []
            assert reader.vectors.count("text") == 1
    finally:
        reader.close()


def test_readers_in_threads_while_one_writes(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    reader, stop, problems = Index(IndexOptions(world.directory)), threading.Event(), []

    def search() -> None:
        try:
            while not stop.is_set():
                reader.refresh()
                reader.lexical.search(reader.analyzer.query("alpha"), k=3)
                reader.search_vectors("text", world.embedder.embed_query("alpha"), k=3)
                time.sleep(0.005)
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(3):
        world.write(f"{i}.txt", f"alpha {i}")
        assert [m for m in world.run().messages if "damaged" in m] == []
    stop.set()
    for thread in threads:
        thread.join()
    reader.close()
    assert problems == []


# ---------------------------------------------------------------- damage


def rubbish(path: Path) -> None:
    path.write_bytes(b"rubbish" * 100)


DAMAGE: dict[str, Callable[[Path], None]] = {
    "lexical folder deleted": lambda d: shutil.rmtree(d / "lexical"),
    "lexical meta damaged": lambda d: rubbish(d / "lexical" / "meta.json"),
    "lexical segment damaged": lambda d: [rubbish(p) for p in (d / "lexical").glob("*.store")],
    "vector folder deleted": lambda d: shutil.rmtree(d / "vectors"),
    "chroma database damaged": lambda d: rubbish(d / "vectors" / "chroma.sqlite3"),
    "chroma database cut": lambda d: os.truncate(d / "vectors" / "chroma.sqlite3", 5000),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_noticed_and_mended_without_embedding_again(world: World, name: str) -> None:
    for i in range(20):
        world.write(f"{i}.txt", f"word{i}")
    world.run()
    world.index.close()
    world.index = None
    DAMAGE[name](world.directory)
    report = world.run()
    assert len(world.embedder.texts) == 20
    assert any("catalog" in m for m in report.messages), report.messages
    assert world.found("word7") == ["7.txt"]
    assert world.index.vectors.count("text") == 20
    world.check()


def test_a_reader_mends_a_lost_keyword_index(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    world.index.close()
    shutil.rmtree(world.directory / "lexical")
    world.index = None
    assert world.found("alpha") == ["a.txt"]


def test_a_damaged_catalog_is_a_clear_error(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    world.index.close()
    world.index = None
    for suffix in ("-wal", "-shm"):
        (world.directory / f"catalog.sqlite{suffix}").unlink(missing_ok=True)
    rubbish(world.directory / "catalog.sqlite")
    with pytest.raises(IndexDamagedError, match="rebuild all"):
        world.open()


def test_another_schema_version_is_refused(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    world.index.catalog.connection().execute("PRAGMA user_version = 99")
    with pytest.raises(IndexVersionError, match="99"):
        world.open()


def test_nothing_indexed_yet(tmp_path: Path) -> None:
    with pytest.raises(IndexEmptyError, match="hybrid-rag index"):
        Index(IndexOptions(tmp_path / "none"))


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(Exception, match="cannot be made"):
        Index(IndexOptions(tmp_path / "file" / "index"), create=True)


# ---------------------------------------------------------------- care


def test_backup_restore_and_reset(world: World, tmp_path: Path) -> None:
    world.write("a.txt", "alpha")
    world.write("t.csv", "a,b\n1,2\n")
    world.run()
    backup(world.index, tmp_path / "copy")
    world.index.close()
    world.index = None
    reset(world.directory)
    with pytest.raises(IndexEmptyError):
        Index(IndexOptions(world.directory))
    restore(tmp_path / "copy", world.directory)
    assert world.found("alpha") == ["a.txt"]
    world.run()
    assert len(world.embedder.texts) == 3
    world.check()


def test_verify_names_what_differs(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    world.index.lexical.delete([1])
    world.index.lexical.commit()
    assert "lacks 1 chunks" in verify(world.index).problems[0]
