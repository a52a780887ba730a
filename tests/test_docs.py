"""The documentation is true: the README's commands run, every field of a result is named, every key is described."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from hybrid_rag.config import known_keys
from hybrid_rag.records import Answer, Chunk, Citation, FileReport, Hit, IndexReport, SearchResult, Stats, TableResult

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [line[2:] for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL) for line in block.splitlines() if line.startswith("$ hybrid-rag")]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    for name in ("data", "config"):
        shutil.copytree(ROOT / name, folder / name)
    run(folder, "hybrid-rag index")
    return folder


def run(folder: Path, line: str) -> None:
    command = [sys.executable, "-m", "hybrid_rag", *shlex.split(line)[1:]]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert done.stdout.strip(), line


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_readme_run(shop: Path, line: str) -> None:
    run(shop, line)


def test_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_field_is_documented() -> None:
    text = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    names = set(Answer("q", "a", "none", True).to_dict()) | {f.name for r in (Citation, TableResult, FileReport, IndexReport, Stats) for f in fields(r)}
    names |= set(SearchResult("q", "hybrid", ()).to_dict()) | set(Hit(1, "i", Chunk("s", "text", 0, "", 0, 0)).to_dict())
    assert [name for name in sorted(names) if f"`{name}`" not in text] == []


def test_every_key_is_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert [key for key in known_keys() if key.rpartition(".")[2] not in text] == []


def test_nothing_names_a_registry_or_a_machine() -> None:
    wrong = re.compile(r"p[y]pi\.org|python[h]osted|registry\.n[p]mjs|(?<![\w.])/(?:root|work)/")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False).stdout.splitlines()
    if not tracked:
        pytest.skip("not a git checkout")
    for name in tracked:
        if (ROOT / name).suffix in (".py", ".md", ".yaml", ".toml", ".txt", "") and (ROOT / name).is_file():
            found = wrong.search((ROOT / name).read_text(encoding="utf-8", errors="replace"))
            assert not found, f"{name}: {found and found[0]}"
