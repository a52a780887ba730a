"""Chroma: embedded in this process, or a server over HTTP.

Embedded Chroma is not made for several processes: one that opens the folder while another writes crashes (opening writes,
too), and vectors are lost. So a lock file lets one process write or several read, and a search that would have to wait goes on
without Chroma. A second process sees new vectors only through a new connection, see ``reload``. A writer that was killed in
mid-write leaves a mark in the lock file, and readers stay away until the folder was looked at.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hybrid_rag.chroma_connection import Connection
from hybrid_rag.errors import IndexDamagedError, IndexError_, IndexLockedError, IndexStorageError
from hybrid_rag.file_lock import LockTimeout, hold
from hybrid_rag.seal import seal, sealed
from hybrid_rag.storage import storage_error
from hybrid_rag.vectors import VectorSource
from hybrid_rag.vectors_chroma_base import WAIT, ChromaBase

DATABASE_FILE = "chroma.sqlite3"
GRAPH_FILE = "index_metadata.pickle"  # there once Chroma has written a graph out
REBUILD = "Run `hybrid-rag rebuild vectors`."
MEND = "The next `hybrid-rag index` looks at it and mends it."


class ChromaVectors(ChromaBase):
    """Embedded Chroma in a directory. Nothing is opened or created before the first call that needs it."""

    def __init__(
        self,
        directory: Path,
        *,
        prefix: str,
        fingerprint: str,
        dimensions: int,
        source: VectorSource | None = None,
        exact_up_to: int | None = None,
        unchecked: bool = False,
    ) -> None:
        """``unchecked``: read also what a broken-off write has left; for a process that is meant to find out."""
        super().__init__(prefix=prefix, fingerprint=fingerprint, dimensions=dimensions, source=source, exact_up_to=exact_up_to)
        self._directory, self._unchecked = directory, unchecked

    def _settings(self) -> dict[str, Any]:
        self._directory.mkdir(parents=True, exist_ok=True)
        return {"is_persistent": True, "persist_directory": str(self._directory)}

    @contextmanager
    def _guard(self, write: bool, seconds: float) -> Iterator[None]:
        """One process writes, or several read: a reader that opens Chroma while it is written can crash, and harm it."""
        if not write and not self._directory.exists():
            yield
            return
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with hold(lock_path(self._directory), exclusive=write, seconds=seconds) as held:
                if held.broken_off and not write and not self._unchecked:
                    raise IndexDamagedError(f"A write to the vector index in {self._directory} was broken off.", MEND)
                try:
                    yield
                except (IndexDamagedError, IndexStorageError):
                    held.clean = False
                    raise
        except LockTimeout:
            raise IndexLockedError(f"The vector index in {self._directory} is being written.", "Try again in a moment.") from None
        except OSError as error:
            raise self._problem(error) from error

    def _connect(self) -> Connection:
        """Opening writes into Chroma's database: an unbroken seal is made anew, so that this does not look like damage."""
        with hold(self._directory.with_name(f"{self._directory.name}.opening"), exclusive=True, seconds=WAIT):
            unbroken = untouched(self._directory)
            connection = super()._connect()
            if unbroken:
                with contextlib.suppress(OSError):  # then the next run looks at the folder, which costs two seconds
                    seal(self._directory, _written)
        return connection

    def _exists(self) -> bool:
        return (self._directory / DATABASE_FILE).is_file()

    def _problem(self, error: BaseException) -> IndexError_:
        if storage := storage_error(error, f"the vector index in {self._directory}"):
            return storage
        return IndexDamagedError(f"The vector index in {self._directory} cannot be used: {error}", REBUILD)


class ChromaServerVectors(ChromaBase):
    """A Chroma server, for an index that several machines share."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        ssl: bool = False,
        token: str | None = None,
        prefix: str,
        fingerprint: str,
        dimensions: int,
        source: VectorSource | None = None,
        exact_up_to: int | None = None,
    ) -> None:
        super().__init__(prefix=prefix, fingerprint=fingerprint, dimensions=dimensions, source=source, exact_up_to=exact_up_to)
        self._host, self._port, self._ssl, self._token = host, port, ssl, token

    def _settings(self) -> dict[str, Any]:
        return {
            "chroma_api_impl": "chromadb.api.fastapi.FastAPI",
            "chroma_server_host": self._host,
            "chroma_server_http_port": self._port,
            "chroma_server_ssl_enabled": self._ssl,
            "chroma_server_headers": {"Authorization": f"Bearer {self._token}"} if self._token else {},
        }

    def _exists(self) -> bool:
        return True

    def _problem(self, error: BaseException) -> IndexError_:
        address = f"{'https' if self._ssl else 'http'}://{self._host}:{self._port}"
        return IndexError_(
            f"The Chroma server at {address} cannot be used: {error}", "Is it running (`chroma run`), and is the token right?"
        )


def lock_path(directory: Path) -> Path:
    """The lock file of an embedded Chroma, beside its folder so that it outlives it."""
    return directory.with_name(f"{directory.name}.lock")


def accept(directory: Path) -> None:
    """Forget that a write was broken off, after a look at what it left."""
    if lock_path(directory).exists():
        with hold(lock_path(directory), exclusive=True, seconds=WAIT):
            pass


def wipe(directory: Path) -> None:
    """Delete an embedded Chroma with its folder, while no other process is in it."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with hold(lock_path(directory), exclusive=True, seconds=WAIT):
        shutil.rmtree(directory, ignore_errors=True)


def close_off(directory: Path) -> None:
    """Seal an embedded Chroma's folder, while no other process opens it."""
    with hold(lock_path(directory), exclusive=True, seconds=WAIT):
        seal(directory, _written)


def untouched(directory: Path) -> bool:
    """Nobody has changed the folder since it was closed off, but for what reading does."""
    return sealed(directory, _written)


def _written(path: Path) -> bool:
    """Not the files of a graph that was never written out: the first to read makes them, and nothing is in them."""
    return path.name == DATABASE_FILE or (path.parent / GRAPH_FILE).exists()
