"""The index directory: catalog, keyword index and vector index, opened, kept fresh and mended.

The catalog is the truth; the two legs are made from it and can be made again at any time.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hybrid_rag.analysis import Analyzer
from hybrid_rag.catalog import Catalog
from hybrid_rag.catalog_schema import StoredChunk
from hybrid_rag.errors import HybridRagError, IndexDamagedError, IndexLockedError, IndexStorageError
from hybrid_rag.lexical import LexicalEntry, LexicalIndex, RankBm25Index, TantivyIndex, record_keys
from hybrid_rag.lock import is_locked, write_lock
from hybrid_rag.records import Kind
from hybrid_rag.seal import sealed
from hybrid_rag.tantivy_files import damage
from hybrid_rag.vectors import Allowed, VectorIndex, VectorsClosed, VectorSource
from hybrid_rag.vectors_chroma import ChromaServerVectors, ChromaVectors
from hybrid_rag.vectors_exact import ExactVectors

if TYPE_CHECKING:
    import numpy as np

    from hybrid_rag.writer import Writer

CATALOG_FILE, LEXICAL_FOLDER, VECTOR_FOLDER, TABLE_FOLDER = "catalog.sqlite", "lexical", "vectors", "tables"
INCOMING_FOLDER = "incoming"  # a backup on its way in
REOPENED = 5  # times that a search looks again when the vectors are opened anew under it
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """Where the index is and what it is made of. ``cold``: short-lived process, vectors are searched without Chroma and, for the first time, without keeping them."""

    directory: Path
    lexical_engine: Literal["tantivy", "rank_bm25"] = "tantivy"
    language: str = "auto"
    vector_mode: Literal["embedded", "server", "exact"] = "embedded"
    host: str = "localhost"
    port: int = 8000
    ssl: bool = False
    token: str | None = None
    prefix: str = "hybrid_rag"
    cold: bool = False


class Index:
    """An open index. Reading is thread-safe; call :meth:`refresh` at the start of every query."""

    def __init__(self, options: IndexOptions, *, create: bool = False) -> None:
        """Raises IndexEmptyError when there is none (and ``create`` is off), IndexDamagedError, IndexVersionError."""
        if (
            not options.cold
        ):  # several threads may search: one that begins with a part of numpy while another is at the whole gets half of it
            import numpy  # noqa: F401
        self.options, self.directory = options, options.directory
        self.messages: list[str] = []
        self._lock = threading.RLock()
        self._lexical: LexicalIndex | None = None
        self._vectors: tuple[str, VectorIndex] | None = None
        self._written: VectorIndex | None = None  # the one that a writer of this process is filling: it sees its own writes
        if create:
            self._make_directory()
        self.catalog = Catalog(self.directory / CATALOG_FILE, create=create)
        self._seen = self._generations()

    def create(self) -> None:
        """Make the index when there is none (any more): another process may have reset it."""
        if not self.catalog.path.exists():
            self._make_directory()
            self.catalog.create()
            self.refresh()

    def _make_directory(self) -> None:
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"The index directory {self.directory} cannot be made: {error.strerror}."
            raise IndexStorageError(message, "Set vector_store.persist_directory to a folder that can be written.") from error

    # ------------------------------------------------------------ state

    @property
    def fingerprint(self) -> str:
        """Of the embedder whose vectors are searched; "" while there are none."""
        return self.catalog.setting("fingerprint")

    @property
    def embedder_name(self) -> str | None:
        """Name of the embedder whose vectors are searched ("bundled:bge_small_en"), or None."""
        return self.catalog.setting("embedder") or None

    @property
    def analyzer(self) -> Analyzer:
        return _analyzer(self.catalog.setting("language") or self._language_option())

    def _language_option(self) -> str:
        return "en" if self.options.language == "auto" else self.options.language

    def vector_share(self) -> float:
        """Share of the chunks that have vectors, 0..1 (1 when there are no chunks)."""
        counts = self.catalog.counts().values()
        total = sum(c["chunks"] for c in counts)
        return sum(c["vectors"] for c in counts) / total if total else 1.0

    def refresh(self) -> bool:
        """Look whether something has changed, by whichever process, and see it if so. True when it has.

        Raises IndexEmptyError when the index was reset.
        """
        now = self._generations()
        if now == self._seen:
            return False
        with self._lock:
            generation, vector_generation, incarnation = (new != old for new, old in zip(now, self._seen, strict=True))
            if incarnation:  # another index stands in the place of the one that was open
                self.close_legs()
            if generation and self._lexical is not None:
                self._reload_lexical()
            if vector_generation and self._vectors is not None and self._vectors[1] is not self._written:
                if self._vectors[0] == self.fingerprint:
                    self._vectors[1].reload()
                else:
                    self._close_vectors()
            self._seen = now
        return True

    def _reload_lexical(self) -> None:
        assert self._lexical is not None
        try:
            if self._stands_in():
                raise IndexDamagedError("The keyword index was not usable before.")
            self._lexical.reload()
        except IndexDamagedError as error:
            log.info("the keyword index is opened anew: %s", error.message)
            self._lexical.close()
            self._lexical = None

    def _stands_in(self) -> bool:
        """The keyword leg is one in memory because the configured one could not be used."""
        return self.options.lexical_engine == "tantivy" and isinstance(self._lexical, RankBm25Index)

    @property
    def state(self) -> tuple[str, str, str]:
        """Differs whenever something has changed that a search can see (as of the last :meth:`refresh`)."""
        return self._seen

    def _generations(self) -> tuple[str, str, str]:
        names = ("generation", "vector_generation", "incarnation")
        found = dict(self.catalog.rows("SELECT key, value FROM settings WHERE key IN (?, ?, ?)", names))
        return tuple(found.get(name, "0") for name in names)  # type: ignore[return-value]

    @property
    def writable(self) -> bool:
        """May this process write to the index directory?"""
        return os.access(self.directory, os.W_OK) and os.access(self.catalog.path, os.W_OK)

    # ------------------------------------------------------------ legs

    @property
    def lexical(self) -> LexicalIndex:
        """The keyword leg. A missing or damaged one is made again from the catalog; while that cannot be, because another
        process writes or nothing can be written, words are looked up in memory."""
        with self._lock:
            if self._lexical is None:
                self._lexical = self._open_lexical()
            return self._lexical

    def _open_lexical(self) -> LexicalIndex:
        if self.options.lexical_engine == "rank_bm25":
            return self._lexical_in_memory()
        folder, busy = self.directory / LEXICAL_FOLDER, is_locked(self.directory)
        found: LexicalIndex | None = None
        try:
            found = TantivyIndex(folder, self.analyzer, create=False)
            problem = "" if busy else self._lexical_problem(found, folder)
        except IndexDamagedError as error:
            problem = error.message if self.catalog.value("SELECT 1 FROM chunks LIMIT 1") else ""
        if found is not None and not problem:
            return found
        if found is not None:
            found.close()
        if problem and not busy and self._mended():
            return self._lexical or TantivyIndex(folder, self.analyzer, create=False)
        if problem:
            log.info("words are looked up in memory: %s", problem)
        return self._lexical_in_memory()

    def _lexical_in_memory(self) -> LexicalIndex:
        return RankBm25Index(lambda: map(entry, self.catalog.iterate_chunks()), self.analyzer)

    def _lexical_problem(self, found: LexicalIndex, folder: Path) -> str:
        """Why a keyword index that could be opened is not to be used, "" when it is."""
        if not sealed(folder) and (problem := damage(folder)):
            return problem
        wanted = self.catalog.value("SELECT count(*) FROM chunks c JOIN documents d ON d.number = c.document WHERE d.ready = 1")
        return "" if found.count() == wanted else "it does not hold what the catalog holds"

    def _mended(self) -> bool:
        """Become the writer for a moment, which mends what is damaged; False when that cannot be now."""
        try:
            with self.writer():
                return True
        except (IndexLockedError, IndexStorageError) as error:
            log.info("the keyword index is not mended now: %s", error.message)
            return False

    @property
    def vectors(self) -> VectorIndex | None:
        """The vector leg; None while no embedder is known. Exact search stands in for a Chroma that cannot be opened."""
        fingerprint = self.fingerprint
        if not fingerprint:
            return None
        with self._lock:
            if self._vectors is None or self._vectors[0] != fingerprint:
                self._close_vectors()
                self._vectors = (fingerprint, self._open_vectors(fingerprint))
            return self._vectors[1]

    def warm_vectors(self) -> None:
        """Make the vectors ready for a first search."""
        with contextlib.suppress(VectorsClosed):  # opened anew meanwhile: the first search does it then
            if (vectors := self.vectors) is not None:
                vectors.warm()

    def search_vectors(
        self, kind: Kind, vector: np.ndarray, *, k: int, numbers: np.ndarray | Allowed | None = None, fingerprint: str = ""
    ) -> list[tuple[int, float]]:
        """The k nearest (chunk number, cosine) of a kind; none while there are no vectors.

        ``fingerprint``: of the embedder that made ``vector``; nothing is found when the index's is another by now.
        Goes on when the leg is opened anew meanwhile, by a run in another thread.
        """
        for _ in range(REOPENED):
            vectors = self.vectors
            if vectors is None or (fingerprint and fingerprint != self.fingerprint):
                return []
            with contextlib.suppress(VectorsClosed):
                return vectors.search(kind, vector, k=k, numbers=numbers)
        raise VectorsClosed

    def _open_vectors(self, fingerprint: str) -> VectorIndex:
        if self.options.vector_mode == "server":
            return self.open_vectors(fingerprint)
        unsafe = self.catalog.setting("dirty") == "1" and not is_locked(self.directory)
        if self.options.cold or unsafe or not self.writable:
            return ExactVectors(self.vector_source(fingerprint), cold=self.options.cold)
        try:
            return self.open_vectors(fingerprint)
        except IndexDamagedError as error:
            self.messages.append(f"Vectors are searched without Chroma: {error.message}")
            return ExactVectors(self.vector_source(fingerprint))

    def open_vectors(self, fingerprint: str) -> VectorIndex:
        """The configured vector index of one embedder, whatever state it is in."""
        o, source = self.options, self.vector_source(fingerprint)
        if o.vector_mode == "exact":
            return ExactVectors(source)
        dimensions = self.catalog.dimensions(fingerprint)
        if o.vector_mode == "server":
            address = {"host": o.host, "port": o.port, "ssl": o.ssl, "token": o.token}
            return ChromaServerVectors(**address, prefix=o.prefix, fingerprint=fingerprint, dimensions=dimensions, source=source)
        return ChromaVectors(self.directory / VECTOR_FOLDER, prefix=o.prefix, fingerprint=fingerprint, dimensions=dimensions, source=source)

    def vector_source(self, fingerprint: str) -> VectorSource:
        """Gives the vectors that the catalog holds for the indexed chunks of a kind."""
        return _CatalogVectors(self.catalog, fingerprint)

    def _close_vectors(self) -> None:
        if self._vectors is not None:
            self._vectors[1].close()
            self._vectors = None

    def close_legs(self) -> None:
        """Let go of both legs; they are opened again when needed."""
        with self._lock:
            self._close_vectors()
            self.close_lexical()

    def close_lexical(self) -> None:
        with self._lock:
            if self._lexical is not None:
                self._lexical.close()
                self._lexical = None

    # ------------------------------------------------------------ writing

    @contextmanager
    def writer(self) -> Iterator[Writer]:
        """The right to write, after mending what an unclean end has left. Raises IndexLockedError."""
        from hybrid_rag.writer import Writer

        self.create()
        with write_lock(self.directory):
            writer = Writer(self)
            try:
                writer.begin()
                try:
                    yield writer
                except (IndexStorageError, IndexDamagedError):
                    raise  # the next run looks at what is on the disk
                except HybridRagError:
                    writer.end()
                    raise
                writer.end()
            finally:
                writer.release()
                self._written = None

    def use_lexical(self, lexical: LexicalIndex) -> None:
        """Take the writer's keyword index as this index's own, so that both see the same commits."""
        with self._lock:
            if self._lexical is not None and self._lexical is not lexical:
                self._lexical.close()
            self._lexical = lexical

    def use_vectors(self, fingerprint: str, vectors: VectorIndex) -> None:
        with self._lock:
            if self._vectors is not None and self._vectors[1] is not vectors:
                self._close_vectors()
            self._vectors = (fingerprint, vectors)
            self._written = vectors

    @property
    def held_lexical(self) -> LexicalIndex | None:
        return self._lexical

    @property
    def held_vectors(self) -> VectorIndex | None:
        return self._vectors[1] if self._vectors else None

    @property
    def tables_directory(self) -> Path:
        return self.directory / TABLE_FOLDER

    def close(self) -> None:
        self.close_legs()
        self.catalog.close()


@dataclass(frozen=True, slots=True)
class _CatalogVectors:
    """The catalog's vectors of one embedder, as a :class:`~hybrid_rag.vectors.VectorSource`."""

    catalog: Catalog
    fingerprint: str

    def __call__(self, kind: Kind, numbers: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        return self.catalog.vectors(self.fingerprint, kind, numbers=numbers)

    def numbers(self, kind: Kind) -> np.ndarray:
        return self.catalog.chunk_numbers(kind, with_vectors=True)


_analyzers: dict[str, Analyzer] = {}


def _analyzer(language: str) -> Analyzer:
    if language not in _analyzers:
        _analyzers[language] = Analyzer(language)
    return _analyzers[language]


def entry(stored: StoredChunk) -> LexicalEntry:
    """A stored chunk as the keyword leg takes it."""
    chunk = stored.chunk
    keys = record_keys(chunk.text) if chunk.kind == "table" and chunk.role == "body" else ""
    return LexicalEntry(stored.number, stored.document, chunk.kind, chunk.text, chunk.context, keys)
