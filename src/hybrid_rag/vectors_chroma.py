"""Chroma: embedded in this process, or a server over HTTP. One collection a kind, cosine space, named by the embedder.

Facts this module is built on (Chroma 1.5):
- A second process sees new rows by ``get`` but not by ``query`` until a new client is opened; an old client that is not
  closed leaks memory and file handles. Clients share a process-wide cache, so each connection here is a system of its own.
- Closing a client under a querying thread raises; a connection is closed when its last user has left.
- ``add`` takes ``get_max_batch_size()`` rows at most; an id list over about 32,000 fails in ``get``.
- Two processes that open one folder while one of them writes crash each other and lose vectors: reading, too, writes.
- ``where`` filters and ``query(ids=...)`` cost tens of milliseconds, so filtered searches are exact.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import IndexDamagedError, IndexError_, IndexLockedError
from hybrid_rag.file_lock import LockTimeout, hold
from hybrid_rag.records import KINDS, Kind
from hybrid_rag.vectors import VectorSource, best, checked
from hybrid_rag.vectors_exact import ExactVectors

if TYPE_CHECKING:
    import numpy as np
    from chromadb.api.models.Collection import Collection

PAGE = 10_000  # ids a read
TIE_MARGIN = 10  # further hits fetched, so that equal cosines at the cut are ordered by number
DATABASE_FILE = "chroma.sqlite3"
WAIT, SEARCH_WAIT = 60.0, 0.3  # seconds for a writer in another process to finish its batch; then a search goes on without Chroma
REBUILD = "Run `hybrid-rag rebuild vectors`."
MEND = "The next `hybrid-rag index` looks at it and mends it."
log = logging.getLogger(__name__)


class _Connection:
    """A running Chroma system. ``users`` counts the calls inside; the last one out closes it once it is ``retired``."""

    def __init__(self, settings: dict[str, Any]) -> None:
        from chromadb.api import ServerAPI
        from chromadb.config import Settings, System

        self._system = System(Settings(anonymized_telemetry=False, **settings))
        self.server = self._system.instance(ServerAPI)
        self._system.start()
        self.batch_size = int(self.server.get_max_batch_size())
        self.collections: dict[str, Collection] = {}
        self.users = 0
        self.retired = False

    def stop(self) -> None:
        self.collections.clear()
        session = getattr(self.server, "_session", None)  # of the HTTP form, which does not close it
        self._system.stop()
        if session is not None:
            session.close()


class _Chroma:
    """What the embedded and the served form share."""

    def __init__(self, *, prefix: str, fingerprint: str, dimensions: int, source: VectorSource | None) -> None:
        self._prefix, self._fingerprint, self._dimensions = prefix, fingerprint, dimensions
        self._has_source = source is not None
        self._source = source or self._stored
        self._exact = ExactVectors(self._source)
        self._lock = threading.Lock()
        self._connection: _Connection | None = None
        self._closed = False

    # ------------------------------------------------------------ to be said by the two forms

    def _settings(self) -> dict[str, Any]:
        raise NotImplementedError

    def _exists(self) -> bool:
        raise NotImplementedError

    def _problem(self, error: BaseException) -> IndexError_:
        raise NotImplementedError

    @contextmanager
    def _guard(self, write: bool, seconds: float) -> Iterator[None]:
        """Keeps other processes off where that is needed."""
        yield

    # ------------------------------------------------------------ contract

    def upsert(self, kind: Kind, numbers: Sequence[int], documents: Sequence[int], vectors: np.ndarray) -> None:
        rows = checked(numbers, vectors, self._dimensions)
        last = {int(number): i for i, number in enumerate(numbers)}
        ids, places = [str(n) for n in last], list(last.values())
        if not ids:
            return
        with self._use(write=True, create=True) as connection:
            collection = self._collection(connection, kind, create=True)
            for start in range(0, len(ids), connection.batch_size):
                part = places[start : start + connection.batch_size]
                documents_of = [{"document": int(documents[i])} for i in part]
                collection.upsert(ids=ids[start : start + connection.batch_size], embeddings=rows[part], metadatas=documents_of)
        self._exact.upsert(kind, numbers, documents, rows)

    def delete(self, kind: Kind, numbers: Sequence[int]) -> None:
        ids = [str(int(n)) for n in numbers]
        with self._use(write=True) as connection:
            collection = self._collection(connection, kind)
            for start in range(0, len(ids), connection.batch_size) if collection is not None else ():
                collection.delete(ids=ids[start : start + connection.batch_size])
        self._exact.delete(kind, numbers)

    def count(self, kind: Kind) -> int:
        with self._use() as connection:
            collection = self._collection(connection, kind)
            return collection.count() if collection is not None else 0

    def numbers(self, kind: Kind) -> set[int]:
        with self._use() as connection:
            collection = self._collection(connection, kind)
            return {int(i) for page in _pages(collection) for i in page["ids"]} if collection is not None else set()

    def search(self, kind: Kind, vector: np.ndarray, *, k: int, numbers: np.ndarray | None = None) -> list[tuple[int, float]]:
        self._assert_open()
        if k <= 0:
            return []
        if numbers is not None:
            return self._exact.search(kind, vector, k=k, numbers=numbers)
        try:
            return self._query(kind, vector, k)
        except IndexError_ as error:
            if self._closed or not self._has_source:
                raise
            log.log(
                logging.INFO if isinstance(error, IndexLockedError) else logging.WARNING, "Vectors are searched without Chroma. %s", error
            )
            return self._exact.search(kind, vector, k=k)

    def reload(self) -> None:
        """Let go of the connection; the next call opens a new one. Calls under way finish on the old one."""
        self._retire()
        self._exact.reload()

    def clear(self) -> None:
        with self._use(write=True) as connection:
            if connection is not None:
                self._drop(connection, {self.collection_name(kind) for kind in KINDS})
        self._exact.clear()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self._retire()
        self._exact.close()

    # ------------------------------------------------------------ beyond the contract

    def collection_name(self, kind: Kind) -> str:
        return f"{self._prefix}_{kind}_{self._fingerprint[:8]}"

    def sample(self, kind: Kind, numbers: Sequence[int]) -> list[tuple[int, np.ndarray]]:
        """(number, unit vector as stored here) of those numbers that are here."""
        found, vectors = self._stored(kind, numbers)
        return list(zip(found.tolist(), vectors, strict=True))

    def drop_others(self) -> list[str]:
        """Drop the collections that other embedders left under the same prefix; their names."""
        own = {self.collection_name(kind) for kind in KINDS}
        with self._use(write=True) as connection:
            if connection is None:
                return []
            names = [collection.name for collection in connection.server.list_collections()]
            stale = {n for n in names if n not in own and any(n.startswith(f"{self._prefix}_{kind}_") for kind in KINDS)}
            self._drop(connection, stale)
        return sorted(stale)

    # ------------------------------------------------------------ inside

    def _query(self, kind: Kind, vector: np.ndarray, k: int) -> list[tuple[int, float]]:
        import numpy as np

        with self._use(seconds=SEARCH_WAIT) as connection:
            collection = self._collection(connection, kind)
            if collection is None:
                return []
            query = np.asarray(vector, np.float32)[None, :]
            found = collection.query(query_embeddings=query, n_results=k + TIE_MARGIN, include=["distances"])
        distances = np.array((found["distances"] or [[]])[0], np.float64)
        return best(np.array(found["ids"][0], np.int64), 1.0 - distances, k)

    @contextmanager
    def _use(self, *, write: bool = False, create: bool = False, seconds: float = WAIT) -> Iterator[Any]:
        """A connection for one call (None when there is nothing to connect to); Chroma's errors become ours."""
        with self._guard(write, seconds):
            connection = None
            try:
                connection = self._enter(create)
                yield connection
            except IndexError_:
                raise
            except Exception as error:  # Chroma raises its own, SQLite's, httpx's and bare ones
                if connection is not None:
                    connection.collections.clear()  # another client may have dropped and made them again
                raise self._problem(error) from error
            except BaseException as error:
                if type(error).__name__ == "PanicException":  # of the Rust part; not an Exception
                    raise self._problem(error) from None
                raise
            finally:
                if connection is not None:
                    self._leave(connection)

    def _enter(self, create: bool) -> _Connection | None:
        with self._lock:
            self._assert_open()
            if self._connection is None:
                if not create and not self._exists():
                    return None
                self._connection = _Connection(self._settings())
            self._connection.users += 1
            return self._connection

    def _leave(self, connection: _Connection) -> None:
        with self._lock:
            connection.users -= 1
            last = connection.retired and connection.users == 0
        if last:
            connection.stop()

    def _retire(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            idle = connection is not None and connection.users == 0
            if connection is not None:
                connection.retired = True
        if connection is not None and idle:
            connection.stop()

    def _assert_open(self) -> None:
        if self._closed:
            raise IndexError_("The vector index is closed.")

    def _collection(self, connection: _Connection | None, kind: Kind, *, create: bool = False) -> Any:
        """The collection of a kind; None when there is none and ``create`` is not said."""
        from chromadb.api.models.Collection import Collection
        from chromadb.errors import NotFoundError

        if connection is None:
            return None
        name = self.collection_name(kind)
        if name not in connection.collections:
            if create:
                model = connection.server.get_or_create_collection(name, configuration={"hnsw": {"space": "cosine"}})
            else:
                try:
                    model = connection.server.get_collection(name)
                except NotFoundError:
                    return None
            connection.collections[name] = Collection(client=connection.server, model=model, embedding_function=None)
        return connection.collections[name]

    def _drop(self, connection: _Connection, names: set[str]) -> None:
        present = {collection.name for collection in connection.server.list_collections()}
        for name in sorted(names & present):
            connection.collections.pop(name, None)
            connection.server.delete_collection(name)

    def _stored(self, kind: Kind, numbers: Sequence[int] | np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Chroma's own vectors, as unit rows: the source of exact search when no better one was given."""
        import numpy as np

        ids = None if numbers is None else [str(int(n)) for n in numbers]
        with self._use() as connection:
            collection = self._collection(connection, kind)
            pages = list(_pages(collection, ["embeddings"], ids)) if collection is not None else []
        found = np.array([int(i) for page in pages for i in page["ids"]], np.int64)
        vectors = [np.asarray(page["embeddings"], np.float32) for page in pages]
        stacked = np.concatenate(vectors) if vectors else np.zeros((0, self._dimensions), np.float32)
        return found, stacked / np.maximum(np.linalg.norm(stacked, axis=1, keepdims=True), 1e-12)


class ChromaVectors(_Chroma):
    """Embedded Chroma in a directory. Nothing is opened or created before the first call that needs it."""

    def __init__(
        self,
        directory: Path,
        *,
        prefix: str,
        fingerprint: str,
        dimensions: int,
        source: VectorSource | None = None,
        unchecked: bool = False,
    ) -> None:
        """``unchecked``: read also what a broken-off write has left; for a process that is meant to find out."""
        super().__init__(prefix=prefix, fingerprint=fingerprint, dimensions=dimensions, source=source)
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
                except IndexDamagedError:
                    held.clean = False
                    raise
        except LockTimeout:
            raise IndexLockedError(f"The vector index in {self._directory} is being written.", "Try again in a moment.") from None
        except OSError as error:
            raise self._problem(error) from error

    def _exists(self) -> bool:
        return (self._directory / DATABASE_FILE).is_file()

    def _problem(self, error: BaseException) -> IndexError_:
        return IndexDamagedError(f"The vector index in {self._directory} cannot be used: {error}", REBUILD)


class ChromaServerVectors(_Chroma):
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
    ) -> None:
        super().__init__(prefix=prefix, fingerprint=fingerprint, dimensions=dimensions, source=source)
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


def _pages(collection: Any, include: Sequence[str] = (), ids: list[str] | None = None) -> Iterator[Any]:
    """Rows of a collection, all or those of some ids, a page at a time."""
    if ids is not None:
        for start in range(0, len(ids), PAGE):
            yield collection.get(ids=ids[start : start + PAGE], include=list(include))
        return
    offset = 0
    while True:
        page = collection.get(limit=PAGE, offset=offset, include=list(include))
        if page["ids"]:
            yield page
        if len(page["ids"]) < PAGE:
            return
        offset += PAGE
