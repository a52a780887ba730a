"""The README's commands run as they stand, one after the other, and print what it shows; it names every command.

In a console block a line after "$ " is a command and the lines below it are its output: each must be printed, in that order;
"…" stands for anything, alone on a line for any lines.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import typer

from hybrid_rag.cli import app, main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def commands(page: str) -> list[tuple[str, list[str]]]:
    """(command, lines that it prints) of a page's console blocks."""
    blocks = re.findall(r"^```console\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    parts = [part.split("\n") for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(lines[0], [line for line in lines[1:] if line.strip()]) for lines in parts]


SETTINGS = {"HYBRID_RAG__EMBEDDING__PROVIDER": "none", "HYBRID_RAG__OLLAMA__BASE_URL": "http://127.0.0.1:9"}
COMMANDS = commands(README)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample with an index. By keywords only: vectors would change no line that the README shows."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "data", folder / "data")
    shutil.copytree(ROOT / "config", folder / "config")
    script = folder / "bin" / "hybrid-rag"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hybrid_rag "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    code, _, errors = run(folder, "hybrid-rag index")
    assert code == 0, errors
    return folder


def run(folder: Path, command: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr. A plain command runs in this process, which is what the installed script does; others in a shell."""
    if command.startswith("hybrid-rag ") and not set("<>|") & set(command):
        return _run_here(folder, shlex.split(command)[1:])
    environment = os.environ | SETTINGS | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=120)
    return done.returncode, done.stdout, done.stderr


def _run_here(folder: Path, arguments: list[str]) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["hybrid-rag", *arguments])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
            main()
    return int(end.value.code or 0), out.getvalue(), err.getvalue()


def missing(shown: list[str], printed: str) -> str | None:
    """The first line of ``shown`` that is not printed after the ones before it."""
    lines = iter(printed.splitlines())
    for wanted in (line for line in shown if line.strip() != "…"):
        pattern = re.compile(".*".join(re.escape(part.rstrip() if last else part) for part, last in _parts(wanted)))
        if not any(pattern.fullmatch(line.rstrip()) for line in lines):
            return wanted
    return None


def _parts(line: str) -> list[tuple[str, bool]]:
    parts = line.split("…")
    return [(part, i == len(parts) - 1) for i, part in enumerate(parts)]


def test_all_commands_of_the_readme_run_and_print_what_it_shows(place: Path) -> None:
    assert len(COMMANDS) > 20
    _run_all(place, COMMANDS)


def test_the_example_of_batches_runs_and_prints_what_it_shows(place: Path) -> None:
    assert run(place, "hybrid-rag index")[0] == 0  # the README's last command deletes the index
    _run_all(place, commands((ROOT / "docs" / "batch.md").read_text(encoding="utf-8")))
    code, _, errors = run(place, "hybrid-rag batch")  # as the shipped configuration says
    assert code == 0, errors
    records = [json.loads(line) for line in (place / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(r["id"], r["correct"]) for r in records] == [
        ("fee", True),
        ("carrier", True),
        ("claims", True),
        ("berlin", True),
        ("cup", None),
    ]
    assert records[-1]["abstained"]


def _run_all(place: Path, listed: list[tuple[str, list[str]]]) -> None:
    for command, shown in listed:
        code, printed, errors = run(place, command)
        assert code == 0, f"$ {command}\n{printed}{errors}"
        assert "Traceback" not in errors
        assert (line := missing(shown, printed)) is None, f"$ {command}\ndoes not print: {line}\nbut:\n{printed}"


def test_a_line_that_is_not_printed_is_found() -> None:
    printed = "one\ntwo 2.5 ms\nthree\n"
    assert missing(["one", "two … ms", "…", "three"], printed) is None
    assert missing(["one", "four"], printed) == "four"
    assert missing(["three", "one"], printed) == "one"
    assert missing(["two"], printed) == "two"


def test_the_readme_names_every_command_and_no_other() -> None:
    known = set(typer.main.get_command(app).commands)
    assert {name for name in known if f"`{name}`" in README or f"hybrid-rag {name}" in README} == known
    assert set(re.findall(r"hybrid-rag ([a-z]+)\b", README.partition("\n")[2])) <= known


def test_the_example_in_python_is_the_public_interface() -> None:
    code = re.search(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    assert code is not None
    compile(code.group(1), "README.md", "exec")
    names = {name.strip() for line in re.findall(r"from hybrid_rag import (.+)", code.group(1)) for name in line.split(",")}
    import hybrid_rag

    assert names <= set(hybrid_rag.__all__)
