"""The catalog's SQLite file: made in one step, brought to the present schema, opened once a thread, looked at for being replaced.

Errors of SQLite become our own here: a busy file, a full disk and a missing right are no damage.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hybrid_rag.catalog_schema import MIGRATIONS, PAGE_SIZE, SCHEMA, SCHEMA_VERSION
from hybrid_rag.errors import HybridRagError, IndexDamagedError, IndexEmptyError, IndexLockedError, IndexStorageError, IndexVersionError
from hybrid_rag.lock import write_lock
from hybrid_rag.storage import FREE, RIGHTS

BUSY_SECONDS = 30.0
REBUILD = "Run `hybrid-rag rebuild all`: it makes a new index from the documents."


class CatalogFile:
    """Connections to the file. Thread-safe: each thread has its own, opened again when the file was replaced."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        """Raises IndexEmptyError, IndexDamagedError, IndexVersionError, IndexLockedError, IndexStorageError."""
        self.path = path
        self._local = threading.local()
        self._connections: dict[sqlite3.Connection, threading.Thread] = {}
        self._lock = threading.Lock()
        try:
            if create:
                self.create()
            self._check_version()
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------ connections

    def connection(self) -> sqlite3.Connection:
        """This thread's connection. After the file was replaced (a restored index) it is one to the new file."""
        connection = getattr(self._local, "connection", None)
        if connection is not None and (connection.in_transaction or self._local.identity == self._identity(self._local.frozen)):
            return connection
        if connection is not None:
            self.leave()
        frozen = False
        identity = self._identity(frozen)
        try:
            connection = self._connect(f"{self.path.absolute().as_uri()}?mode=rw")
        except sqlite3.Error as error:
            if _primary(error) not in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) or self._writable():
                raise self.explained(error) from error
            connection, frozen = self._connect_frozen(), True
            identity = self._identity(frozen)
        self._local.connection, self._local.identity, self._local.frozen = connection, identity, frozen
        with self._lock:
            self._sweep()
            self._connections[connection] = threading.current_thread()
        return connection

    def _sweep(self) -> None:
        """Close what threads have left that are no more: a server's come and go."""
        for connection in [c for c, thread in self._connections.items() if not thread.is_alive()]:
            del self._connections[connection]
            connection.close()

    def _connect(self, address: str) -> sqlite3.Connection:
        connection = sqlite3.connect(address, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute("PRAGMA cache_size=-64000")
            connection.execute("PRAGMA user_version").fetchone()  # what is wrong shows here
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect_frozen(self) -> sqlite3.Connection:
        """To a file in a folder where nothing can be written: SQLite's usual form needs to make files beside it."""
        journal = self.path.with_name(self.path.name + "-wal")
        mode = "mode=ro" if journal.exists() and journal.stat().st_size else "immutable=1"
        try:
            return self._connect(f"{self.path.absolute().as_uri()}?{mode}")
        except sqlite3.Error as error:
            raise self.explained(error) from error

    def _identity(self, frozen: bool) -> tuple[int, ...]:
        """Tells one file from another under the same name; of a frozen one also its state. Raises IndexEmptyError."""
        try:
            about = os.stat(self.path)
        except FileNotFoundError:
            raise empty(self.path.parent) from None
        except OSError as error:
            raise IndexStorageError(f"The catalog {self.path} cannot be read: {error.strerror}.", RIGHTS) from error
        return (about.st_dev, about.st_ino) if not frozen else (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)

    def _writable(self) -> bool:
        return os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)

    def leave(self) -> None:
        """Close this thread's connection; for threads that end while the catalog stays open."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            del self._local.connection
            with self._lock:
                self._connections.pop(connection, None)
            connection.close()

    def close(self) -> None:
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()
        self._local = threading.local()

    # ------------------------------------------------------------ making and migrating

    def create(self) -> None:
        """Make the file when there is none. All of it comes with one transaction: a kill leaves no half of it."""
        try:
            connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise self.explained(error) from error
        try:
            if not _unmade(connection):
                return
            connection.execute(f"PRAGMA page_size={PAGE_SIZE}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("BEGIN IMMEDIATE")
            if _unmade(connection):
                _run(connection, SCHEMA)
                connection.execute("INSERT INTO settings VALUES ('incarnation', ?)", (uuid.uuid4().hex,))
                connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if _primary(error) == sqlite3.SQLITE_READONLY:
                return  # a folder that cannot be written: what is there may still be read
            raise self.explained(error) from error
        finally:
            connection.close()

    def _check_version(self) -> None:
        try:
            connection = self.connection()
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version == 0 and _unmade(connection):
                raise empty(self.path.parent)  # another process is about to make it
            if version == SCHEMA_VERSION:
                connection.execute("SELECT count(*) FROM settings").fetchone()
        except sqlite3.Error as error:
            raise self.explained(error) from error
        if version < SCHEMA_VERSION and all(step in MIGRATIONS for step in range(version, SCHEMA_VERSION)):
            self._migrate()
        elif version != SCHEMA_VERSION:
            newer = f" It was made by a newer version of this program; use that, or: {REBUILD}"
            raise IndexVersionError(
                f"The index in {self.path.parent} has schema version {version}; this program writes {SCHEMA_VERSION}.",
                newer.strip() if version > SCHEMA_VERSION else REBUILD,
            )

    def _migrate(self) -> None:
        """Bring an older schema up to the present one, step by step in one transaction. Raises IndexLockedError."""
        with write_lock(self.path.parent), self.transaction() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            for step in range(version, SCHEMA_VERSION):
                _run(connection, MIGRATIONS[step])
            connection.execute("INSERT OR IGNORE INTO settings VALUES ('incarnation', ?)", (uuid.uuid4().hex,))
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    # ------------------------------------------------------------ statements

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing. BEGIN IMMEDIATE, for a deferred one fails at once when another process has written.

        Raises IndexStorageError (disk full, no right), IndexLockedError, IndexDamagedError.
        """
        connection = self.connection()
        try:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):  # the first error is the one that matters
                        connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            raise self.explained(error) from error

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        connection = self.connection()
        try:
            return connection.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            raise self.explained(error) from error

    def value(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        found = self.rows(sql, parameters)
        return found[0][0] if found else None

    def damaged(self, what: object) -> IndexDamagedError:
        return IndexDamagedError(f"The catalog {self.path} cannot be read: {what}.", REBUILD)

    def explained(self, error: sqlite3.Error) -> Exception:
        """Our error for one of SQLite's; the same error when it is a fault of ours."""
        code, folder = _primary(error), self.path.parent
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return IndexLockedError(f"The catalog {self.path} is busy: {error}.", "Try again in a moment.")
        if code == sqlite3.SQLITE_FULL:
            return IndexStorageError(f"The disk that holds the index in {folder} is full.", FREE)
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            return IndexStorageError(f"The index in {folder} cannot be opened for that: {error}.", RIGHTS)
        if code == sqlite3.SQLITE_IOERR and error.sqlite_errorcode != sqlite3.SQLITE_IOERR_SHORT_READ:
            return IndexStorageError(f"Reading or writing the catalog {self.path} failed: {error}.", f"Check the disk. {FREE}")
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR) or "no such table" in str(error):
            return self.damaged(error)
        return error


def empty(directory: Path) -> HybridRagError:
    return IndexEmptyError(f"Nothing is indexed yet in {directory}.", "Run `hybrid-rag index`.")


def _primary(error: sqlite3.Error) -> int | None:
    """SQLite's result code without its details; None for errors that are not SQLite's own."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _unmade(connection: sqlite3.Connection) -> bool:
    """A file without any table and version: new, or left by a process that was killed before it made the tables."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    return version == 0 and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _run(connection: sqlite3.Connection, script: str) -> None:
    """The statements of a script inside the present transaction (``executescript`` would commit it)."""
    for statement in script.split(";\n"):
        if statement.strip():
            connection.execute(statement)
