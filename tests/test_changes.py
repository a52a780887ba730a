"""What changes beside the documents: settings, embedder, engine, a restored index, damage of each kind."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid_rag import open_service
from hybrid_rag.chunking import ChunkOptions
from hybrid_rag.errors import HybridRagError, IndexDamagedError, IndexEmptyError
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.loading import Limits
from hybrid_rag.maintenance import backup, reset, restore, verify
from hybrid_rag.service import Service
from hybrid_rag.workers import ReadOptions
from tests.support.embedders import HashEmbedder
from tests.support.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    if made.index is not None:
        made.index.close()


def run_with(world: World, read: ReadOptions, embedder: HashEmbedder | None = None):
    index = world.index or world.open()
    return ingest(index, IngestOptions(world.root, workers=1, read=read), embedder=lambda: embedder or world.embedder)


# ---------------------------------------------------------------- settings


def test_other_sizes_of_chunks_cut_unchanged_files_anew(world: World) -> None:
    world.write("a.txt", "\n\n".join(f"paragraph{i} " + "words " * 30 for i in range(12)))
    world.write("t.csv", "n\n" + "".join(f"row{i}\n" for i in range(20)))
    run_with(world, ReadOptions())
    small = ReadOptions(chunks=ChunkOptions(text_size=300, text_overlap=50))
    report = run_with(world, small)
    assert {f.source: f.change for f in report.files} == {"a.txt": "changed", "t.csv": "unchanged"}
    assert any("settings" in m for m in report.messages)
    assert max(len(s.chunk.text) for s in world.index.catalog.document_chunks("a.txt")) <= 300
    rows = run_with(world, ReadOptions(chunks=ChunkOptions(text_size=300, text_overlap=50, rows=5)))
    assert {f.source: f.change for f in rows.files} == {"a.txt": "unchanged", "t.csv": "changed"}
    texts = len(world.embedder.texts)
    run_with(world, small)
    assert len(world.embedder.texts) == texts  # the cache has them all
    world.check()


def test_a_raised_limit_reads_what_was_not_read(world: World) -> None:
    world.write("a.txt", "alpha " * 100)
    world.write("b.txt", "beta")
    first = run_with(world, ReadOptions(limits=Limits(max_bytes=100)))
    assert {f.source: f.status for f in first.files} == {"a.txt": "not read", "b.txt": "read"}
    again = run_with(world, ReadOptions(limits=Limits(max_bytes=100)))
    assert again.counts["unchanged"] == 2
    raised = run_with(world, ReadOptions(limits=Limits(max_bytes=1000)))
    assert {f.source: f.status for f in raised.files} == {"a.txt": "read", "b.txt": "read"}
    assert raised.counts["unchanged"] == 1


# ---------------------------------------------------------------- embedder


def test_searches_go_on_with_the_old_vectors_until_the_new_ones_are_complete(world: World) -> None:
    for i in range(300):
        world.write(f"{i}.txt", f"word{i}")
    world.run()
    reader = Index(IndexOptions(world.directory))
    old, new = world.embedder, HashEmbedder("bundled:other", 32, delay=0.3)
    seen: list[tuple[str, int]] = []
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            reader.refresh()
            fingerprint = reader.fingerprint
            model = old if fingerprint == old.fingerprint else new
            hits = reader.search_vectors("text", model.embed_query("word7"), k=300, fingerprint=fingerprint)
            if reader.fingerprint == fingerprint:
                seen.append((fingerprint, len(hits)))
            time.sleep(0.002)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        world.run(embedder=new)
        time.sleep(0.2)
    finally:
        stop.set()
        thread.join()
    assert {count for _, count in seen} == {300}, "a search found fewer vectors than there are chunks"
    assert [f for f, _ in seen][-1] == new.fingerprint
    assert {f for f, _ in seen} == {old.fingerprint, new.fingerprint}
    reader.close()
    world.check()


def test_a_stopped_switch_goes_on_and_one_given_up_leaves_nothing(world: World) -> None:
    for i in range(300):
        world.write(f"{i}.txt", f"word{i}")
    world.run()
    new = HashEmbedder("bundled:other")
    with pytest.raises(HybridRagError):
        world.run(embedder=new, cancel=lambda: len(new.texts) > 0)
    assert 0 < len(new.texts) < 300
    assert world.index.fingerprint == world.embedder.fingerprint
    assert world.index.vector_share() == 1
    world.write("more.txt", "added later")
    world.run()  # with the old one again
    assert len(world.embedder.texts) == 301
    world.run(embedder=new)
    assert len(new.texts) == 301
    assert world.index.fingerprint == new.fingerprint
    world.check()


def test_texts_that_a_new_embedder_fails_on_are_marked_after_the_switch(world: World) -> None:
    world.write("a.txt", "fine")
    world.write("b.txt", "broken")
    world.run()
    report = world.run(embedder=HashEmbedder("bundled:other", fails=["broken"]))
    assert report.chunks_failed == 1
    assert world.index.catalog.counts()["text"]["failed"] == 1
    assert world.index.vector_share() == 0.5
    world.run(embedder=HashEmbedder("bundled:other"))
    assert world.index.vector_share() == 1
    world.check()


def test_the_bundled_model_is_recognised_without_loading_it() -> None:
    from hybrid_rag.embedding_onnx import bundled_embedder, bundled_fingerprint

    assert bundled_fingerprint() == bundled_embedder(threads=1).fingerprint
    assert bundled_fingerprint("passage: ") != bundled_fingerprint()


def test_another_document_prefix_is_another_embedder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("alpha", encoding="utf-8")
    base = [
        f"data.directory={tmp_path / 'data'}",
        f"vector_store.persist_directory={tmp_path / 'index'}",
        "embedding.provider=bundled",
        "embedding.threads=1",
    ]
    with open_service(settings=base) as service:
        service.index()
        assert service.index().messages == ()
    with open_service(settings=[*base, "embedding.document_prefix='passage: '"]) as service:
        assert any("embedder changed" in m for m in service.index().messages)
        assert service.index().messages == ()


def test_vectors_of_texts_that_are_gone_do_not_pile_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid_rag.writer.UNUSED_KEPT", 10)
    held = []
    for i in range(6):
        for j in range(5):
            world.write(f"{j}.txt", f"edition{i} of {j}")
        world.run()
        held.append(world.index.catalog.value("SELECT count(*) FROM vectors"))
    assert max(held) <= 2 * 5 + 10
    assert held[3] == 20  # a few are kept, for what may come back
    assert world.index.vector_share() == 1
    world.check()


# ---------------------------------------------------------------- engines


def test_another_engine_or_place_is_brought_up_to_the_catalog(world: World) -> None:
    world.write("a.txt", "alpha")
    world.run()
    world.write("b.txt", "beta")
    world.run(lexical_engine="rank_bm25", vector_mode="exact")
    assert world.found("beta") == ["b.txt"]
    world.run()
    assert world.found("beta") == ["b.txt"]
    assert world.index.open_vectors(world.index.fingerprint).count("text") == 2
    assert len(world.embedder.texts) == 2
    world.check()


# ---------------------------------------------------------------- damage


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x10
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("suffix", [".term", ".idx", ".pos", ".fast", ".fieldnorm", ".store"])
def test_one_wrong_byte_in_a_file_of_the_keyword_index_is_noticed_and_mended(world: World, suffix: str) -> None:
    for i in range(20):
        world.write(f"{i}.txt", f"word{i} common")
    world.run()
    world.index.close()
    path = next((world.directory / "lexical").glob(f"*{suffix}"))
    stamp = path.stat()
    flip(path, 5)
    world.index = Index(IndexOptions(world.directory))
    assert any("keyword index is damaged" in p for p in verify(world.index).problems)
    assert len(world.found("common")) == 10  # a reader mends it too, when nobody writes
    world.check()
    world.index.close()
    path = next((world.directory / "lexical").glob(f"*{suffix}"))
    flip(path, 5)
    report = world.run()
    assert any("keyword index was damaged" in m for m in report.messages), report.messages
    world.check()
    world.index.close()
    world.index = None
    path = next((world.directory / "lexical").glob(f"*{suffix}"))
    flip(path, 5)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    world.index = Index(IndexOptions(world.directory))
    assert verify(world.index).problems  # also when its time says nothing


def test_a_keyword_index_that_is_lost_while_another_process_writes_is_searched_in_memory(world: World) -> None:
    import shutil

    from hybrid_rag.lock import write_lock

    world.write("a.txt", "alpha")
    world.run()
    world.index.close()
    shutil.rmtree(world.directory / "lexical")
    reader = world.index = Index(IndexOptions(world.directory))
    with write_lock(world.directory):
        assert world.found("alpha") == ["a.txt"]
    reader.catalog.raise_generation()
    assert world.found("alpha") == ["a.txt"]
    world.check()


def test_wrong_vectors_are_found_by_verify(world: World) -> None:
    world.write("a.txt", "alpha")
    world.write("b.txt", "beta")
    world.run()
    vectors = world.index.open_vectors(world.index.fingerprint)
    number = int(world.index.catalog.chunk_numbers()[0])
    vectors.upsert("text", [number], [1], world.embedder.embed_query("something else")[None, :])
    vectors.close()
    assert any("not the catalog's" in p for p in verify(world.index).problems)


# ---------------------------------------------------------------- tables


def test_a_table_file_outlives_a_change_that_does_not_come_to_its_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write("t.csv", "a,b\n1,2\n")
    world.run()
    file = world.index.catalog.tables()[0][1]
    world.write("t.csv", "a,b\n1,2\n3,4\n")

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    index = world.open()
    monkeypatch.setattr(index.catalog, "raise_generation", broken)  # inside the transaction that replaces the document
    with pytest.raises(ZeroDivisionError):
        ingest(index, IngestOptions(world.root, workers=1), embedder=lambda: world.embedder)
    monkeypatch.undo()
    assert index.catalog.tables()[0][1] == file
    assert (index.tables_directory / file).is_file()
    world.run()
    world.run()
    assert [p.name for p in world.index.tables_directory.iterdir()] == [world.index.catalog.tables()[0][1]]
    world.check()


def test_what_a_killed_reader_has_left_among_the_tables_is_swept(world: World) -> None:
    world.write("t.csv", "a,b\n1,2\n")
    world.run()
    (world.index.tables_directory / "build-x1").mkdir()
    (world.index.tables_directory / "build-x1" / "part").write_text("x", encoding="utf-8")
    (world.index.tables_directory / "orphan.parquet").write_text("x", encoding="utf-8")
    world.run()
    assert [p.name for p in world.index.tables_directory.iterdir()] == [world.index.catalog.tables()[0][1]]


# ---------------------------------------------------------------- restored, reset, rebuilt


def test_an_open_reader_sees_a_restored_and_a_reset_index(world: World, tmp_path: Path) -> None:
    world.write("a.txt", "alpha")
    world.run()
    backup(world.index, tmp_path / "copy")
    world.write("a.txt", "beta")
    world.run()
    reader = Index(IndexOptions(world.directory))

    def found(words: str) -> list[str]:
        reader.refresh()
        hits = reader.lexical.search(reader.analyzer.query(words), k=5)
        return [s.chunk.text for s in reader.catalog.chunks([n for n, _ in hits]).values()]

    assert found("beta") == ["beta"]
    before = reader.state
    restore(tmp_path / "copy", world.directory)
    assert found("alpha") == ["alpha"]
    assert found("beta") == []
    assert reader.state != before
    query = world.embedder.embed_query("a alpha")
    assert len(reader.search_vectors("text", query, k=5)) == 1
    reset(world.directory)
    with pytest.raises(IndexEmptyError, match="hybrid-rag index"):
        reader.refresh()
    world.run()
    assert found("beta") == ["beta"]
    reader.close()


def test_restoring_over_a_damaged_or_missing_catalog_works(world: World, tmp_path: Path) -> None:
    world.write("a.txt", "alpha")
    world.run()
    backup(world.index, tmp_path / "copy")
    world.index.close()
    world.index = None
    for damage in (lambda p: p.write_bytes(b"rubbish" * 500), lambda p: p.unlink()):
        for name in ("catalog.sqlite-wal", "catalog.sqlite-shm"):
            (world.directory / name).unlink(missing_ok=True)
        damage(world.directory / "catalog.sqlite")
        restore(tmp_path / "copy", world.directory)
        assert world.found("alpha") == ["a.txt"]
        assert world.index.catalog.value("PRAGMA journal_mode") == "wal"
        world.run()
        world.check()
        world.index.close()
        world.index = None


@pytest.fixture
def service(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    settings = [
        f"data.directory={world.root}",
        f"vector_store.persist_directory={world.directory}",
        "embedding.provider=ollama",
        "document_processing.workers=1",
    ]
    with open_service(settings=settings) as opened:
        monkeypatch.setattr(opened.parts, "embedder", lambda provider: world.embedder)
        yield opened


def cut_pages(path: Path) -> None:
    """Rubbish in the middle: the file opens and its schema is sound."""
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * (size - size // 2))


def test_rebuilding_all_makes_a_new_index_wherever_the_catalog_is_damaged(service: Service, world: World) -> None:
    for i in range(30):
        world.write(f"{i}.txt", f"word{i} " + "filler " * 200)
    service.index()
    service.close()
    with sqlite3.connect(world.directory / "catalog.sqlite") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    cut_pages(world.directory / "catalog.sqlite")
    with pytest.raises(IndexDamagedError, match="rebuild all"):
        service.rebuild("lexical")
        service.verify()
        service.index(verify=True)
        service.search("filler")
    service.rebuild("all")
    assert len(service.documents()) == 30
    assert service.search("word7").hits[0].source == "7.txt"
    assert service.verify().ok


def test_a_service_whose_index_was_reset_elsewhere_indexes_again(service: Service, world: World) -> None:
    world.write("a.txt", "alpha")
    service.index()
    assert service.search("alpha").hits
    reset(world.directory)
    with pytest.raises(IndexEmptyError):
        service.search("alpha")
    service.index()
    assert service.search("alpha").hits[0].source == "a.txt"


def test_a_backup_while_a_run_replaces_tables_is_whole(world: World, tmp_path: Path) -> None:
    world.write("t.csv", "a,b\n" + "".join(f"{i},{i}\n" for i in range(100)))
    world.run()
    stop, problems = threading.Event(), []

    def change() -> None:
        other = World.__new__(World)
        other.root, other.directory, other.embedder, other.index = world.root, world.directory, HashEmbedder(), None
        try:
            i = 0
            while not stop.is_set():
                i += 1
                other.write("t.csv", "a,b\n" + "".join(f"{i},{j}\n" for j in range(100)))
                other.run()
        except Exception as error:
            problems.append(error)
        finally:
            if other.index is not None:
                other.index.close()

    thread = threading.Thread(target=change)
    thread.start()
    time.sleep(0.5)
    try:
        for n in range(3):
            backup(world.index, tmp_path / f"copy{n}")
    finally:
        stop.set()
        thread.join()
    assert problems == []
    for n in range(3):
        restore(tmp_path / f"copy{n}", tmp_path / f"restored{n}")
        copy = Index(IndexOptions(tmp_path / f"restored{n}"))
        with copy.writer():
            pass
        assert verify(copy).problems == ()
        copy.close()
