"""DuckDB over the columnar files of one folder: in memory, cut off from the rest of the machine, its configuration locked."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOCKED = (
    "autoinstall_known_extensions=false",
    "autoload_known_extensions=false",
    "allow_community_extensions=false",
    "allow_persistent_secrets=false",
    "python_enable_replacements=false",
    "temp_directory=''",
    "enable_external_access=false",
    "lock_configuration=true",
)


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """Limits of one query; ``rows`` cuts the result and says so, the others stop the query."""

    seconds: float = 10.0
    memory_mb: int = 512
    rows: int = 1000
    characters: int = 5_000_000


class TableDatabase:
    """Views over Parquet files below ``directory``; nothing else can be read. Raises duckdb's own errors."""

    def __init__(self, directory: Path, memory_mb: int) -> None:
        import duckdb

        self._directory = directory
        self._connection = duckdb.connect(":memory:", config={"memory_limit": f"{memory_mb}MB", "threads": 2})
        folder = str(directory.absolute()).replace("'", "''")
        self._connection.execute(f"SET allowed_directories=['{folder}']")
        for setting in LOCKED:
            self._connection.execute(f"SET {setting}")
        self._views: dict[str, str] = {}
        self._lock = threading.Lock()

    def use(self, files: Mapping[str, str]) -> None:
        """Make each table readable under its name; ``files``: name to file below the directory."""
        with self._lock:
            for name, file in files.items():
                if self._views.get(name) != file:
                    path = str((self._directory / file).absolute()).replace("'", "''")
                    quoted = name.replace('"', '""')
                    self._connection.execute(f"CREATE OR REPLACE VIEW \"{quoted}\" AS SELECT * FROM read_parquet('{path}')")
                    self._views[name] = file

    def cursor(self) -> Any:
        """A connection of its own for one query, to be used by one thread."""
        return self._connection.cursor()

    def close(self) -> None:
        self._connection.close()


def plain(value: Any, longest: int = 10_000) -> Any:
    """A value that JSON can hold; text is cut at ``longest`` characters."""
    if isinstance(value, float):
        return round(value, 10) if value == value and abs(value) != float("inf") else None
    if value is None or isinstance(value, (bool, int)):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)[:longest]
