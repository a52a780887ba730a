"""The systems that are compared, and a virtual environment for each, made with pip when it is not there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
INSTALL_SECONDS = 900
SIDE_BY_SIDE = 2  # installations at a time: pip waits for the network half of its time
EMBEDDING = ("numpy", "onnxruntime", "tokenizers")


@dataclass(frozen=True)
class System:
    """A system that is measured. ``packages`` are what pip installs; ``python``: the version it needs, None for this one."""

    name: str
    title: str
    packages: tuple[str, ...] = ()
    python: str | None = None

    @property
    def script(self) -> Path:
        return HERE / f"peer_{self.name}.py"


SYSTEMS = (
    System("ours", "hybrid-rag"),
    System(
        "langchain",
        "LangChain",
        ("langchain-classic", "langchain-community", "langchain-chroma", "langchain-text-splitters", "rank-bm25", "pypdf", "docx2txt"),
    ),
    System(
        "llamaindex",
        "LlamaIndex",
        ("llama-index-core", "llama-index-retrievers-bm25", "llama-index-vector-stores-chroma", "llama-index-readers-file", "docx2txt"),
    ),
    System("haystack", "Haystack", ("haystack-ai", "pypdf", "python-docx", "pandas")),
    System("haiku", "haiku.rag", ("haiku-rag-slim", "langchain-text-splitters"), python="3.12"),
)
OURS = SYSTEMS[0].title


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def environments(systems: Sequence[System], cache: Path) -> dict[System, tuple[Path | None, str]]:
    """For each system its Python, or None and why there is none."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        return dict(zip(systems, pool.map(lambda system: environment(system, cache), systems), strict=True))


def installed(system: System, cache: Path) -> bool:
    return not system.packages or (cache / "environments" / system.name / "ready").exists()


def environment(system: System, cache: Path) -> tuple[Path | None, str]:
    """The Python of a system, its environment made when it is not there; or None and why."""
    if not system.packages:
        return Path(sys.executable), ""
    folder = cache / "environments" / system.name
    python = folder / "bin" / "python"
    if installed(system, cache):
        return python, ""
    base = python_of(system.python)
    if base is None:
        return None, f"it needs Python {system.python}, which is not on this machine"
    say(f"installing {system.title} …")
    begin = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    try:
        subprocess.run([base, "-m", "venv", str(folder)], check=True, capture_output=True, timeout=120)
        line = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *system.packages, *EMBEDDING]
        subprocess.run(line, check=True, capture_output=True, encoding="utf-8", timeout=INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        return None, f"it could not be installed: {last_line(str(error.stderr))}"
    except subprocess.TimeoutExpired:
        return None, f"its installation took longer than {INSTALL_SECONDS} s"
    (folder / "ready").touch()
    say(f"installed {system.title} in {time.monotonic() - begin:.0f} s")
    return python, ""


def python_of(wanted: str | None) -> str | None:
    """The interpreter of that version, None when this machine has none."""
    if wanted is None or sys.version_info[:2] == tuple(map(int, wanted.split("."))):
        return sys.executable
    candidates = [shutil.which(f"python{wanted}"), *map(str, sorted(Path.home().glob(f".pyenv/versions/{wanted}.*/bin/python")))]
    for python in filter(None, candidates):
        if subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"
