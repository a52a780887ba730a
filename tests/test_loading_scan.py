"""Which files of a folder are read, and what is said of the others."""

from __future__ import annotations

import os
import tempfile
import unicodedata
from pathlib import Path

import pytest

from hybrid_rag.errors import InputError
from hybrid_rag.loading.scan import Scan, scan


def tree(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x", encoding="utf-8")
    return root


def sources(found: Scan) -> list[str]:
    return [file.source for file in found.files]


def test_suffixes_in_any_case(tmp_path: Path) -> None:
    assert sources(scan(tree(tmp_path, "A.CSV", "b.Md", "c.PDF", "d.DocX", "e.tXt"))) == ["A.CSV", "b.Md", "c.PDF", "d.DocX", "e.tXt"]


def test_ignore_files_speak_for_their_folder_and_the_nearest_decides(tmp_path: Path) -> None:
    root = tree(tmp_path, "a.md", "draft.md", "sub/draft.md", "sub/b.md", "sub/old/c.md", "other/b.md")
    (root / ".hybridragignore").write_text("# comment\ndraft.md\nold/\n", encoding="utf-8")
    (root / "sub" / ".hybridragignore").write_text("!draft.md\n/b.md\n", encoding="utf-8")
    found = scan(root)
    assert sources(found) == ["a.md", "other/b.md", "sub/draft.md"]
    assert {s.path for s in found.skipped} == {"draft.md", "sub/b.md", "sub/old"}


def test_patterns_of_the_configuration(tmp_path: Path) -> None:
    found = scan(tree(tmp_path, "a.md", "x/b.md", "x/c.txt"), exclude=["x/*.md"])
    assert sources(found) == ["a.md", "x/c.txt"]
    assert "data.exclude" in found.skipped[0].reason


def test_a_name_in_another_unicode_form_meets_its_pattern_and_source(tmp_path: Path) -> None:
    root = tree(tmp_path, unicodedata.normalize("NFD", "Café.md"), unicodedata.normalize("NFD", "Übung.md"))
    (root / ".hybridragignore").write_text("Übung.md\n", encoding="utf-8")
    assert sources(scan(root)) == ["Café.md"]


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="file names are Unicode there")
def test_a_name_that_is_not_utf8_can_be_stored(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"caf\xe9.txt"), "wb") as file:
        file.write(b"x")
    assert sources(scan(tmp_path)) == ["café.txt"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions are others there")
def test_a_folder_that_cannot_be_listed_stops_nothing() -> None:
    with tempfile.TemporaryDirectory() as folder:  # tmp_path is closed to other users, one of whom the superuser becomes here
        Path(folder).chmod(0o755)
        root = tree(Path(folder), "a.md", "closed/b.md")
        (root / "closed").chmod(0)
        superuser = os.geteuid() == 0
        try:
            if superuser:
                os.seteuid(65534)
            found = scan(root)
        finally:
            if superuser:
                os.seteuid(0)
            (root / "closed").chmod(0o700)
    assert sources(found) == ["a.md"]
    assert found.unreadable == ("closed/",)


def test_only_the_given_parts_are_walked(tmp_path: Path) -> None:
    root = tree(tmp_path, "a.md", "x/b.md", "x/c.md", "y/d.md")
    assert sources(scan(root, below=[root / "x", Path("a.md")])) == ["a.md", "x/b.md", "x/c.md"]
    with pytest.raises(InputError, match="not inside"):
        scan(root, below=[tmp_path.parent])


def test_loaders_add_kinds(tmp_path: Path) -> None:
    root = tree(tmp_path, "a.xlsx", "b.md")
    assert sources(scan(root, loaders={".XLSX": "m:C"})) == ["a.xlsx", "b.md"]
    assert ".xlsx" in scan(root).skipped[0].reason
