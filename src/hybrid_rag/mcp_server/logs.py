"""Logs of a server that nobody watches: a rotating file in the user's state folder, and stderr, which clients keep."""

from __future__ import annotations

import logging
import os
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG_FILE = "mcp.log"
BYTES, BACKUPS = 1_000_000, 3
FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
log = logging.getLogger(__name__)


def default_file() -> Path:
    """Where a user's programs keep their logs on this system."""
    home = Path.home()
    if sys.platform == "darwin":
        folder = home / "Library" / "Logs"
    elif sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    return folder / "hybrid-rag" / LOG_FILE


def add_file(file: Path | None) -> Path | None:
    """Write messages from INFO up to a rotating file as well; without one that can be written, say so on stderr and go on."""
    target = file or default_file()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(target, maxBytes=BYTES, backupCount=BACKUPS, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        log.warning("no log file: %s cannot be written (%s); set mcp.log_file", target, error.strerror or error)
        return None
    handler.setFormatter(logging.Formatter(FORMAT))
    handler.setLevel(logging.INFO)
    root = logging.getLogger()
    for present in root.handlers:
        present.setLevel(max(present.level, root.level))
    root.addHandler(handler)
    logging.getLogger("hybrid_rag").setLevel(min(logging.INFO, root.level))
    return target
