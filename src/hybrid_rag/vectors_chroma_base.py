"""What the embedded and the served form of Chroma share. One collection a kind, in cosine space, named by the embedder.

Facts this module is built on (Chroma 1.5):
- ``add`` takes ``get_max_batch_size()`` rows at most; an id list over about 32,000 fails in ``get``.
- ``where`` filters and ``query(ids=...)`` cost tens of milliseconds, so filtered searches are exact.
- Its graph loses its way among equal vectors: with half of 8,000 equal, 3 % of the others did not find themselves.
- A search of its graph takes longer than multiplying in memory (vector_rows), up to some hundred thousand vectors, and its memory is
  twice as much. So the graph is for what is larger than that.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hybrid_rag.chroma_connection import Connection, Connections
from hybrid_rag.errors import IndexError_, IndexLockedError
from hybrid_rag.records import KINDS, Kind
from hybrid_rag.vector_rows import bytes_per_row
from hybrid_rag.vectors import Allowed, VectorSource, best, checked, held
from hybrid_rag.vectors_exact import GATHER, ExactVectors

if TYPE_CHECKING:
    import numpy as np

PAGE = 10_000  # ids a read
TIE_MARGIN = 10  # further hits fetched, so that equal cosines at the cut are ordered by number
WAIT, SEARCH_WAIT = 60.0, 0.3  # seconds for a writer in another process to finish its batch; then a search goes on without Chroma
IN_MEMORY = 600_000_000  # bytes; what is not larger is searched in memory: 490,000 vectors of 384 dimensions
DEEPEST = 20_000  # hits fetched at most, to find enough allowed ones in a larger collection
log = logging.getLogger(__name__)


class ChromaBase(ABC):
    """A :class:`~hybrid_rag.vectors.VectorIndex` over a Chroma somewhere."""

    def __init__(
        self, *, prefix: str, fingerprint: str, dimensions: int, source: VectorSource | None = None, exact_up_to: int | None = None
    ) -> None:
        """``source``: the truth, read for exact searches; without one Chroma's own vectors are read, for filtered searches only.

        ``exact_up_to``: so many vectors of a kind are searched in memory, without Chroma's graph, when there is a source.
        """
        self._exact_up_to = IN_MEMORY // bytes_per_row(dimensions) if exact_up_to is None else exact_up_to
        self._prefix, self._fingerprint, self._dimensions = prefix, fingerprint, dimensions
        self._has_source = source is not None
        self._exact = ExactVectors(source or _Stored(self))
        self._connections = Connections(self._connect, self._exists)
        self._counts: dict[Kind, int] = {}

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Chroma's settings for a new connection."""

    def _connect(self) -> Connection:
        return Connection(self._settings())

    @abstractmethod
    def _exists(self) -> bool:
        """Is there anything to connect to?"""

    @abstractmethod
    def _problem(self, error: BaseException) -> IndexError_:
        """Our error for one of Chroma's."""

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
            collection = connection.collection(self.collection_name(kind), create=True)
            for start in range(0, len(ids), connection.batch_size):
                part = places[start : start + connection.batch_size]
                documents_of = [{"document": int(documents[i])} for i in part]
                collection.upsert(ids=ids[start : start + connection.batch_size], embeddings=rows[part], metadatas=documents_of)
        self._changed(kind, numbers)

    def delete(self, kind: Kind, numbers: Sequence[int]) -> None:
        ids = [str(int(n)) for n in numbers]
        with self._use(write=True) as connection:
            collection = connection and connection.collection(self.collection_name(kind))
            for start in range(0, len(ids), connection.batch_size) if collection is not None else ():
                collection.delete(ids=ids[start : start + connection.batch_size])
        self._changed(kind, numbers)

    def count(self, kind: Kind) -> int:
        with self._use() as connection:
            collection = connection and connection.collection(self.collection_name(kind))
            return collection.count() if collection is not None else 0

    def numbers(self, kind: Kind) -> set[int]:
        with self._use() as connection:
            collection = connection and connection.collection(self.collection_name(kind))
            return {int(i) for page in _pages(collection) for i in page["ids"]} if collection is not None else set()

    def search(self, kind: Kind, vector: np.ndarray, *, k: int, numbers: np.ndarray | Allowed | None = None) -> list[tuple[int, float]]:
        self._connections.check_open()
        if k <= 0:
            return []
        try:
            if self._has_source and self._exact.count(kind) <= self._exact_up_to:
                return self._exact.search(kind, vector, k=k, numbers=numbers)
            return self._nearest(kind, vector, k) if numbers is None else self._filtered(kind, vector, k, Allowed.of(numbers))
        except IndexError_ as error:
            self._connections.check_open()
            if not self._has_source:
                raise
            log.log(
                logging.INFO if isinstance(error, IndexLockedError) else logging.WARNING, "Vectors are searched without Chroma. %s", error
            )
            return self._exact.search(kind, vector, k=k, numbers=numbers)

    def warm(self) -> None:
        """Read what is searched in memory; connect where the graph is searched, or where there is no other source."""
        small = [kind for kind in KINDS if self._has_source and self._exact.count(kind) <= self._exact_up_to]
        self._exact.warm(small)
        try:
            for kind in KINDS:
                if kind not in small:
                    self._count(kind)
        except IndexError_ as error:
            if not self._has_source:
                raise
            log.info("Chroma was not opened in advance; searches say so. %s", error)

    def reload(self) -> None:
        """Let go of the connection; the next call opens a new one. Calls under way finish on the old one."""
        self._connections.retire()
        self._exact.reload()
        self._counts.clear()

    def clear(self) -> None:
        with self._use(write=True) as connection:
            if connection is not None:
                connection.drop({self.collection_name(kind) for kind in KINDS})
        self._exact.clear()
        self._counts.clear()

    def close(self) -> None:
        self._connections.close()
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
            beginnings = tuple(f"{self._prefix}_{kind}_" for kind in KINDS)
            stale = {name for name in connection.names() if name.startswith(beginnings)} - own
            connection.drop(stale)
        return sorted(stale)

    # ------------------------------------------------------------ inside

    def _nearest(self, kind: Kind, vector: np.ndarray, k: int) -> list[tuple[int, float]]:
        import numpy as np

        with self._use(seconds=SEARCH_WAIT) as connection:
            collection = connection and connection.collection(self.collection_name(kind))
            if collection is None:
                return []
            query = np.asarray(vector, np.float32)[None, :]
            found = collection.query(query_embeddings=query, n_results=k + TIE_MARGIN, include=["distances"])
        distances = np.array((found["distances"] or [[]])[0], np.float64)
        return best(np.array(found["ids"][0], np.int64), 1.0 - distances, k)

    def _filtered(self, kind: Kind, vector: np.ndarray, k: int, allowed: Allowed) -> list[tuple[int, float]]:
        """In a collection too large for memory: more and more of the nearest, until k are allowed; of few all."""
        total = self._count(kind)
        if len(allowed) > GATHER:
            depth = 2 * k * -(-total // len(allowed))
            while depth <= DEEPEST:
                found = self._nearest(kind, vector, depth)
                kept = [hit for hit, good in zip(found, held(allowed.numbers, [n for n, _ in found]), strict=True) if good]
                if len(kept) >= k:
                    return kept[:k]
                depth *= 4
        return self._exact.gather(kind, vector, k, allowed)

    def _count(self, kind: Kind) -> int:
        """Vectors of a kind, as of the last change or reload."""
        known = self._counts.get(kind)
        if known is None:
            with self._use(seconds=SEARCH_WAIT) as connection:
                collection = connection and connection.collection(self.collection_name(kind))
                known = self._counts[kind] = collection.count() if collection is not None else 0
        return known

    def _changed(self, kind: Kind, numbers: Sequence[int]) -> None:
        self._exact.delete(kind, numbers)
        self._counts.pop(kind, None)

    @contextmanager
    def _use(self, *, write: bool = False, create: bool = False, seconds: float = WAIT) -> Iterator[Any]:
        """A connection for one call (None when there is nothing to connect to); Chroma's errors become ours."""
        with self._guard(write, seconds):
            connection = None
            try:
                connection = self._connections.enter(create=create)
                yield connection
            except IndexError_:
                raise
            except Exception as error:  # Chroma raises its own, SQLite's, httpx's and bare ones
                if connection is not None:
                    connection.forget()
                raise self._problem(error) from error
            except BaseException as error:
                if type(error).__name__ == "PanicException":  # of the Rust part; not an Exception
                    raise self._problem(error) from None
                raise
            finally:
                if connection is not None:
                    self._connections.leave(connection)

    def _stored(self, kind: Kind, numbers: Sequence[int] | np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Chroma's own vectors, as unit rows: the source of exact search when no better one was given."""
        import numpy as np

        ids = None if numbers is None else [str(int(n)) for n in numbers]
        with self._use() as connection:
            collection = connection and connection.collection(self.collection_name(kind))
            pages = list(_pages(collection, ["embeddings"], ids)) if collection is not None else []
        found = np.array([int(i) for page in pages for i in page["ids"]], np.int64)
        vectors = [np.asarray(page["embeddings"], np.float32) for page in pages if page["ids"]]
        stacked = np.concatenate(vectors) if vectors else np.zeros((0, self._dimensions), np.float32)
        return found, stacked / np.maximum(np.linalg.norm(stacked, axis=1, keepdims=True), 1e-12)


class _Stored:
    """Chroma's own vectors as a source."""

    def __init__(self, index: ChromaBase) -> None:
        self._index = index

    def __call__(self, kind: Kind, numbers: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        return self._index._stored(kind, numbers)

    def numbers(self, kind: Kind) -> np.ndarray:
        import numpy as np

        return np.array(sorted(self._index.numbers(kind)), np.int64)


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
