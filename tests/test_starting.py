"""`init` writes a file that the commands then read."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_rag.config import load
from hybrid_rag.errors import ConfigError, DataError
from hybrid_rag.starting import write_starter


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_file_is_what_commands_run_in_the_folder_read(here: Path) -> None:
    (here / "über: mine #1").mkdir()
    written = write_starter(Path("hybrid-rag.yaml"), folder=Path("über: mine #1"), index=Path("index"))
    loaded = load(environ={})
    assert loaded.path == here / "hybrid-rag.yaml"
    assert loaded.config.data.directory == here / "über: mine #1"
    assert loaded.config.vector_store.persist_directory == here / "index"
    assert written.overridden_by is None and written.next == "hybrid-rag index"


def test_a_file_of_another_name_must_be_named(here: Path) -> None:
    (here / "docs").mkdir()
    written = write_starter(Path("my shop.yaml"), folder=Path("docs"), index=Path("index"))
    assert written.next == f"hybrid-rag index --config '{here / 'my shop.yaml'}'" and written.overridden_by is None


def test_a_file_that_commands_take_first_is_named(here: Path) -> None:
    (here / "config").mkdir()
    (here / "config" / "config.yaml").write_text("", encoding="utf-8")
    written = write_starter(Path("hybrid-rag.yaml"), folder=here, index=Path("index"))
    assert written.overridden_by == str(here / "config" / "config.yaml") and "--config" in written.next


def test_nothing_is_overwritten_and_no_folder_invented(here: Path) -> None:
    (here / "hybrid-rag.yaml").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="exists already"):
        write_starter(Path("hybrid-rag.yaml"), folder=here, index=Path("index"))
    assert (here / "hybrid-rag.yaml").read_text(encoding="utf-8") == "mine"
    with pytest.raises(DataError, match="no folder"):
        write_starter(Path("other.yaml"), folder=here / "nowhere", index=Path("index"))
    with pytest.raises(ConfigError, match="cannot be written"):
        write_starter(Path("nowhere/other.yaml"), folder=here, index=Path("index"))
    assert sorted(path.name for path in here.iterdir()) == ["hybrid-rag.yaml"]
