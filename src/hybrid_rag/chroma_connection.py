"""A connection to Chroma that can be let go of while others still use it.

Chroma's own clients share a process-wide cache, so that a new client over the same folder sees what the old one saw; a client
that is not closed leaks memory and file handles; and closing one under a querying thread raises. Here each connection is a
system of its own, and it is closed when its last user has left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hybrid_rag.vectors import VectorsClosed

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

GRAPH = {"space": "cosine", "ef_search": 200}  # twice the default care at a search (2.3 ms); at building it costs more than it gives


class Connection:
    """A running Chroma system. ``users`` counts the calls inside."""

    def __init__(self, settings: dict[str, Any]) -> None:
        import chromadb  # noqa: F401  (whole before its parts: another thread may be importing it)
        from chromadb.api import ServerAPI
        from chromadb.config import Settings, System

        self._system = System(Settings(anonymized_telemetry=False, **settings))
        self.server = self._system.instance(ServerAPI)
        self._system.start()
        self.batch_size = int(self.server.get_max_batch_size())
        self.users, self.retired = 0, False
        self._collections: dict[str, Collection] = {}

    def collection(self, name: str, *, create: bool = False) -> Collection | None:
        """A collection in cosine space; None when there is none and ``create`` is not said."""
        from chromadb.api.models.Collection import Collection
        from chromadb.errors import NotFoundError

        if name not in self._collections:
            if create:
                model = self.server.get_or_create_collection(name, configuration={"hnsw": GRAPH})
            else:
                try:
                    model = self.server.get_collection(name)
                except NotFoundError:
                    return None
            self._collections[name] = Collection(client=self.server, model=model, embedding_function=None)
        return self._collections[name]

    def names(self) -> set[str]:
        """Names of all collections."""
        return {collection.name for collection in self.server.list_collections()}

    def drop(self, names: set[str]) -> None:
        """Delete those of the collections that are there."""
        for name in sorted(names & self.names()):
            self._collections.pop(name, None)
            self.server.delete_collection(name)

    def forget(self) -> None:
        """Look collections up again: another client may have dropped them and made them again."""
        self._collections.clear()

    def stop(self) -> None:
        self._collections.clear()
        session = getattr(self.server, "_session", None)  # of the HTTP form, which does not close it
        self._system.stop()
        if session is not None:
            session.close()


class Connections:
    """Gives out the present connection and opens it when needed. Thread-safe."""

    def __init__(self, connect: Callable[[], Connection], exists: Callable[[], bool]) -> None:
        self._connect, self._exists = connect, exists
        self._lock = threading.Lock()
        self._present: Connection | None = None
        self._closed = False

    def enter(self, *, create: bool) -> Connection | None:
        """The connection, to be left again; None when there is nothing to connect to and ``create`` is not said."""
        with self._lock:
            self.check_open()
            if self._present is None:
                if not create and not self._exists():
                    return None
                self._present = self._connect()
            self._present.users += 1
            return self._present

    def leave(self, connection: Connection) -> None:
        with self._lock:
            connection.users -= 1
            last = connection.retired and not connection.users
        if last:
            connection.stop()

    def retire(self) -> None:
        """Let go of the present connection; the next call opens a new one. Calls under way finish on the old one."""
        with self._lock:
            old, self._present = self._present, None
            if old is None:
                return
            old.retired = True
            idle = not old.users
        if idle:
            old.stop()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self.retire()

    def check_open(self) -> None:
        """Raises VectorsClosed once closed."""
        if self._closed:
            raise VectorsClosed
