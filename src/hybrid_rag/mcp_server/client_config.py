"""The block that makes a client start this installation with this configuration, wherever the client runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybrid_rag.config import Loaded

FILES = {
    "macOS": "~/Library/Application Support/Claude/claude_desktop_config.json",
    "Windows": r"%APPDATA%\Claude\claude_desktop_config.json",
    "Linux": "~/.config/Claude/claude_desktop_config.json",
}
NAME = "hybrid-rag"
_PLACES = ("data.directory", "vector_store.persist_directory")  # said outright when there is no configuration file


def block(loaded: Loaded) -> dict[str, Any]:
    """The JSON for ``claude_desktop_config.json``: absolute paths of the interpreter and the configuration.

    Values that came from ``--set`` or from variables are written out, since the client has neither; secrets are not.
    """
    arguments = ["-m", "hybrid_rag", "mcp"]
    if loaded.path is not None:
        arguments += ["--config", str(loaded.path.absolute())]
    for key, value, origin in loaded.rows():
        said = origin == "--set" or origin.startswith("$") or (loaded.path is None and key in _PLACES)
        if said and not key.endswith(".token"):
            arguments += ["--set", f"{key}={_as_yaml(value)}"]
    return {"mcpServers": {NAME: {"command": _interpreter(), "args": arguments}}}


def _as_yaml(value: Any) -> str:
    """A value that YAML reads back as the same: JSON is YAML."""
    return json.dumps(value, ensure_ascii=False)


def _interpreter() -> str:
    """The running Python, by the path it was started by: behind a link it would lose its virtual environment."""
    return str(Path(sys.executable).absolute())
