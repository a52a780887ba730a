"""A first configuration file for a folder of the user's."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from hybrid_rag.config import DEFAULT_LOCATIONS, load
from hybrid_rag.errors import ConfigError, DataError

_HEAD = """\
# What to index, and where the index goes. Relative paths start at this file's folder.
# `hybrid-rag config` prints every key with its value; `hybrid-rag doctor` checks the set-up.

"""


@dataclass(frozen=True, slots=True)
class Starter:
    """A configuration file just written; ``file``, ``folder`` and ``index`` are absolute paths."""

    file: str
    folder: str
    index: str
    overridden_by: str | None
    """The configuration file that commands run here take instead."""
    next: str
    """The command to run now."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def write_starter(output: Path, *, folder: Path, index: Path) -> Starter:
    """Write a configuration file that points at ``folder``, checked by reading it again.

    Relative paths start at the working directory and are written as absolute ones, so the file can be moved.
    Raises DataError when there is no such folder, ConfigError when
    the file is there already or cannot be written.
    """
    folder, index, output = (_absolute(path) for path in (folder, index, output))
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}.", "Name the folder that holds your documents and tables.")
    tree = {"data": {"directory": str(folder)}, "vector_store": {"persist_directory": str(index)}}
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(_HEAD + yaml.safe_dump(tree, sort_keys=False, allow_unicode=True))
    except FileExistsError:
        raise ConfigError(f"{output} exists already.", "Edit it, remove it, or name another file with --output.") from None
    except OSError as error:
        raise ConfigError(f"{output} cannot be written: {error.strerror}.", "Name another file with --output.") from error
    load(output, environ={})
    found, first = output in _default_files(), next((file for file in _default_files() if file.is_file()), None)
    option = "" if first == output else f" --config {shlex.quote(str(output))}"
    return Starter(str(output), str(folder), str(index), str(first) if found and first != output else None, f"hybrid-rag index{option}")


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path.expanduser()))


def _default_files() -> list[Path]:
    return [Path.cwd() / name for name in DEFAULT_LOCATIONS]
