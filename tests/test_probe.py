"""The probe tells a sound Chroma folder from a damaged one, whatever the damage does to a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_rag import probe as module
from hybrid_rag.file_lock import hold
from hybrid_rag.probe import probe
from hybrid_rag.vectors_chroma import ChromaVectors, lock_path
from tests.test_vectors import DIMENSIONS, FINGERPRINT, unit

COUNT = 1_500  # above Chroma's threshold for writing its graph to disk


def opened(folder: Path) -> ChromaVectors:
    return ChromaVectors(folder, prefix="hybrid_rag", fingerprint=FINGERPRINT, dimensions=DIMENSIONS)


def look(folder: Path) -> str:
    return probe(folder, prefix="hybrid_rag", fingerprint=FINGERPRINT, dimensions=DIMENSIONS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    index = opened(tmp_path / "vectors")
    index.upsert("text", range(COUNT), [1] * COUNT, unit(COUNT))
    index.delete("text", range(0, 100, 3))
    index.search("text", unit(1)[0], k=1)
    index.close()
    return tmp_path / "vectors"


def graph_file(folder: Path, name: str) -> Path:
    return next(folder.glob(f"*/{name}"))


def test_a_sound_folder_passes_and_readers_may_use_it_again(folder: Path) -> None:
    with hold(lock_path(folder), exclusive=True, seconds=1) as held:
        held.clean = False
    assert look(folder) == ""
    index = opened(folder)
    assert len(index.search("text", unit(1)[0], k=3)) == 3
    index.close()


def test_an_empty_folder_passes(tmp_path: Path) -> None:
    assert look(tmp_path / "nothing") == ""


def damage_database(folder: Path) -> None:
    path = folder / "chroma.sqlite3"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 3])


def garbage_in_database(folder: Path) -> None:
    (folder / "chroma.sqlite3").write_bytes(b"garbage" * 10_000)


def cut_graph(folder: Path) -> None:
    path = graph_file(folder, "data_level0.bin")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garbage_in_graph(folder: Path) -> None:
    path = graph_file(folder, "data_level0.bin")
    path.write_bytes(bytes(range(256)) * (path.stat().st_size // 256))


def no_graph(folder: Path) -> None:
    graph_file(folder, "header.bin").unlink()


def cut_metadata(folder: Path) -> None:
    path = graph_file(folder, "index_metadata.pickle")
    path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize("damage", [damage_database, garbage_in_database, cut_graph, garbage_in_graph, no_graph, cut_metadata])
def test_damage_is_found_and_keeps_the_mark(folder: Path, damage) -> None:
    with hold(lock_path(folder), exclusive=True, seconds=1) as held:
        held.clean = False
    damage(folder)
    problem = look(folder)
    assert problem and "\n" not in problem
    assert lock_path(folder).stat().st_size > 0


def test_a_probe_that_hangs_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBE_SECONDS", 0.05)
    assert "did not answer" in look(folder)
