"""Writing to the index: catalog first, then the legs through the outbox. Every step can be done again without harm."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid_rag.analysis import Analyzer, collection_language
from hybrid_rag.document_writer import DocumentWriter
from hybrid_rag.errors import IndexDamagedError, IndexError_, IndexLockedError, IndexStorageError
from hybrid_rag.index import LEXICAL_FOLDER, VECTOR_FOLDER, Index, entry
from hybrid_rag.lexical import LexicalIndex, RankBm25Index, TantivyIndex
from hybrid_rag.mending import mend
from hybrid_rag.records import KINDS, Kind
from hybrid_rag.seal import seal
from hybrid_rag.storage import storage_error
from hybrid_rag.vectors import VectorIndex
from hybrid_rag.vectors_chroma import close_off, wipe

if TYPE_CHECKING:
    import numpy as np

OUTBOX_PAGE = 2000  # chunks of one keyword commit
RELOAD_SECONDS = 0.9  # readers of Chroma reload at most this often while vectors are being written
UNUSED_SHARE, UNUSED_KEPT = 2, 10_000  # vectors kept for each chunk, and beyond that, for what may come back
LANGUAGE_SAMPLE = 200  # about so many chunks, spread over all text, tell the collection's language
log = logging.getLogger(__name__)


class Writer(DocumentWriter):
    """One writing session; made by ``Index.writer``, which holds the lock."""

    def __init__(self, index: Index) -> None:
        self.index, self.catalog = index, index.catalog
        self._lexical: LexicalIndex | None = None
        self._vectors: dict[str, VectorIndex] = {}
        self._raised = 0.0
        self._touched = False  # vectors were written or removed
        self.server_gone = False  # the Chroma server does not answer: words are kept up, vectors wait for a later run
        self._added = False  # has this session put anything into the keyword index?

    # ------------------------------------------------------------ session

    def begin(self) -> None:
        """Mend what a killed writer or a damaged disk has left, then mark the session as open."""
        self.index.refresh()
        mend(self)
        self.catalog.set_setting("dirty", "1")
        self.flush()

    def end(self) -> None:
        """Finish the legs and mark the session as cleanly closed."""
        self.flush()
        if self._added:
            self._settle_language(reconsider=True)
        if self._lexical is not None:
            self._lexical.release()
        try:
            seal(self.words)
            if self._embedded:
                close_off(self.index.directory / VECTOR_FOLDER)
        except OSError as error:
            raise storage_error(error, str(self.index.directory)) or error from error
        if self._touched:
            self._forget_unused()
            self._raise_vectors(now=True)
        self.index.refresh()
        self.catalog.set_setting("dirty", "0")

    def _forget_unused(self) -> None:
        """Drop cached vectors of texts that are nowhere any more, once they are the larger part."""
        chunks, held = (int(self.catalog.value(f"SELECT count(*) FROM {name}")) for name in ("chunks", "vectors"))
        if held > UNUSED_SHARE * chunks + UNUSED_KEPT:
            with self.catalog.transaction() as db:
                db.execute("DELETE FROM vectors WHERE hash NOT IN (SELECT hash FROM chunks)")

    def release(self) -> None:
        """Let go of what keeps other processes from writing; for every end, also a bad one."""
        if self._lexical is not None:
            self._lexical.release()
        for vectors in self._vectors.values():
            if vectors is not self.index.held_vectors:
                vectors.close()

    @property
    def words(self) -> Path:
        return self.index.directory / LEXICAL_FOLDER

    def half(self, name: str) -> Path:
        return self.index.directory / f"{LEXICAL_FOLDER}.{name}"

    @property
    def _embedded(self) -> bool:
        return self.index.options.vector_mode == "embedded"

    def forget_lexical(self) -> None:
        """The keyword index was closed by others; it is opened again when needed."""
        self._lexical = None

    # ------------------------------------------------------------ making legs again

    def rebuild_lexical(self) -> None:
        """Make the keyword index again from the catalog, beside the present one; then take its place."""
        if self.index.options.lexical_engine == "tantivy":
            fresh_folder, old = self.half("new"), self.half("old")
            for folder in (fresh_folder, old):
                shutil.rmtree(folder, ignore_errors=True)
            fresh = TantivyIndex(fresh_folder, self.index.analyzer)
            fresh.add(map(entry, self.catalog.iterate_chunks()))
            fresh.commit()
            fresh.close()
            self.index.close_lexical()
            self._lexical = None
            if self.words.exists():
                self.words.rename(old)
            fresh_folder.rename(self.words)
            shutil.rmtree(old, ignore_errors=True)
        with self.catalog.transaction() as db:
            db.execute("DELETE FROM outbox WHERE leg = 'lexical'")
            self.catalog.raise_generation()

    def rebuild_vectors(self) -> None:
        """Forget the vector index; the next embedding phase fills it from the cache."""
        self.index.close_legs()
        self._vectors.clear()
        if self._embedded:
            wipe(self.index.directory / VECTOR_FOLDER)
        elif self.index.fingerprint:
            self.vectors(self.index.fingerprint).clear()
        with self.catalog.transaction() as db:
            db.execute("UPDATE chunks SET vector = 0 WHERE vector <> 0")
            db.execute("DELETE FROM outbox WHERE leg = 'vectors'")
        self.fill_from_cache(self.index.fingerprint)

    def fill_from_cache(self, fingerprint: str) -> int:
        """Put into the vector index what the cache already holds; returns how many chunks that were."""
        done = 0
        last = 0
        while rows := self.catalog.rows(
            "SELECT number, hash, kind FROM chunks WHERE vector = 0 AND number > ? ORDER BY number LIMIT ?", (last, OUTBOX_PAGE)
        ):
            last = rows[-1][0]
            cached = self.catalog.cached_vectors(fingerprint, [h for _, h, _ in rows])
            done += self._upsert([(n, cached[h], kind) for n, h, kind in rows if h in cached], fingerprint)
        return done

    # ------------------------------------------------------------ legs

    @property
    def lexical(self) -> LexicalIndex:
        if self._lexical is None:
            held = self.index.held_lexical
            if held is None or isinstance(held, RankBm25Index):
                held = self._open_lexical()
                self.index.use_lexical(held)
            self._lexical = held
        return self._lexical

    def _open_lexical(self) -> LexicalIndex:
        index = self.index
        if index.options.lexical_engine == "rank_bm25":
            return RankBm25Index(lambda: map(entry, self.catalog.iterate_chunks()), index.analyzer)
        folder = index.directory / LEXICAL_FOLDER
        try:
            return TantivyIndex(folder, index.analyzer)
        except IndexDamagedError:
            self.say("The keyword index was damaged and is made again from the catalog.")
            shutil.rmtree(folder, ignore_errors=True)
            return TantivyIndex(folder, index.analyzer)

    def vectors(self, fingerprint: str) -> VectorIndex:
        """The vector index of an embedder, open for writing."""
        if fingerprint not in self._vectors:
            self._vectors[fingerprint] = self.index.open_vectors(fingerprint)
            if fingerprint == self.index.fingerprint:
                self.index.use_vectors(fingerprint, self._vectors[fingerprint])
        return self._vectors[fingerprint]

    def flush(self) -> None:
        """Bring the legs up to the outbox, then empty it."""
        self._settle_language()
        while rows := self.catalog.rows("SELECT seq, op, number FROM outbox WHERE leg = 'lexical' ORDER BY seq LIMIT ?", (OUTBOX_PAGE,)):
            self.lexical.delete([number for _, op, number in rows if op == "del"])
            self.lexical.add(map(entry, self.catalog.chunks([number for _, op, number in rows if op == "add"]).values()))
            self._added = self._added or any(op == "add" for _, op, _ in rows)
            self.lexical.commit()
            self._clear("lexical", rows[-1][0])
        with self.without_server():
            self._flush_vectors()

    def _flush_vectors(self) -> None:
        while not self.server_gone and (
            rows := self.catalog.rows("SELECT seq, number, kind FROM outbox WHERE leg = 'vectors' ORDER BY seq LIMIT ?", (OUTBOX_PAGE,))
        ):
            if self.index.fingerprint and self.index.options.vector_mode != "exact":
                for kind in KINDS:
                    if numbers := [n for _, n, k in rows if k == kind]:
                        self.vectors(self.index.fingerprint).delete(kind, numbers)
            self._clear("vectors", rows[-1][0])
            self._raise_vectors()

    @contextmanager
    def without_server(self, key: str = "", value: str = "") -> Iterator[None]:
        """Go on without vectors when the Chroma server does not answer; a setting may be noted then, for the next run."""
        try:
            yield
        except (IndexDamagedError, IndexStorageError, IndexLockedError):
            raise
        except IndexError_ as error:
            if self.index.options.vector_mode != "server":
                raise
            self.server_gone = True
            if key:
                self.catalog.set_setting(key, value)
            self.say(f"The vector index is left as it was: {error.message}")

    def _clear(self, leg: str, seq: int) -> None:
        with self.catalog.transaction() as db:
            db.execute("DELETE FROM outbox WHERE leg = ? AND seq <= ?", (leg, seq))
            self.catalog.raise_generation()

    def _settle_language(self, *, reconsider: bool = False) -> None:
        """Choose the stemmer once there is text; a changed choice or analyser makes the keyword index again.

        ``reconsider``: at the end of a session, for the first files need not be like the others.
        """
        wanted = self.index.options.language
        known = self.catalog.setting("language")
        if wanted == "auto":
            texts = [] if known and not reconsider else self.catalog.text_sample(LANGUAGE_SAMPLE)
            wanted = collection_language(texts, known)
            if not wanted:
                return
        fingerprint = Analyzer(wanted).fingerprint
        before = self.catalog.setting("analyser")
        if wanted != known or fingerprint != before:
            self.catalog.set_setting("language", wanted)
            self.catalog.set_setting("analyser", fingerprint)
            if before and before != fingerprint:
                self.say(f"The keyword index is made again for the language {wanted!r}.")
                self.rebuild_lexical()
            elif not before:
                self.index.close_lexical()
                self._lexical = None

    # ------------------------------------------------------------ vectors

    def store(self, items: Sequence[tuple[int, str, Kind]], vectors: np.ndarray, fingerprint: str) -> None:
        """Keep fresh vectors: in the cache first, then in the vector index, then marked. ``items``: (number, hash, kind)."""
        blobs = [row.astype("float32").tobytes() for row in vectors]
        self.cache([(h, blob) for (_, h, _), blob in zip(items, blobs, strict=True)], fingerprint)
        self._upsert([(n, blob, kind) for (n, _, kind), blob in zip(items, blobs, strict=True)], fingerprint)

    def cache(self, items: Iterable[tuple[str, bytes]], fingerprint: str) -> None:
        with self.catalog.transaction() as db:
            db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", [(fingerprint, h, blob) for h, blob in items])
            db.executemany("DELETE FROM failures WHERE hash = ?", [(h,) for h, _ in items])

    def _upsert(self, items: Sequence[tuple[int, bytes, Kind]], fingerprint: str) -> int:
        for kind in KINDS:
            chosen = [(n, blob) for n, blob, k in items if k == kind]
            if self.index.options.vector_mode != "exact":
                self._put(kind, chosen, fingerprint)
        self.mark([n for n, _, _ in items], 1)
        self._raise_vectors()
        return len(items)

    def _put(self, kind: Kind, chosen: Sequence[tuple[int, bytes]], fingerprint: str) -> None:
        import numpy as np

        if chosen:
            matrix = np.frombuffer(b"".join(b for _, b in chosen), np.float32).reshape(len(chosen), -1)
            numbers = [n for n, _ in chosen]
            self.vectors(fingerprint).upsert(kind, numbers, self.catalog.documents_of(numbers), matrix)

    def mark_failed(self, items: Sequence[tuple[int, str, str]]) -> None:
        """Note texts that the embedder failed on: (number, hash, reason). The next run tries them again."""
        self.note_failures([(h, reason) for _, h, reason in items])
        self.mark([n for n, _, _ in items], 2)

    def note_failures(self, items: Sequence[tuple[str, str]]) -> None:
        """Keep why texts could not be embedded: (hash, reason)."""
        if items:
            with self.catalog.transaction() as db:
                db.executemany("INSERT OR REPLACE INTO failures VALUES (?, ?)", items)

    def mark(self, numbers: Sequence[int], state: int) -> None:
        with self.catalog.transaction() as db:
            db.executemany("UPDATE chunks SET vector = ? WHERE number = ?", [(state, n) for n in numbers])

    def activate(self, fingerprint: str, name: str, dimensions: int) -> None:
        """Make an embedder the one whose vectors are searched, while there are none."""
        with self.catalog.transaction():
            self._name_embedder(fingerprint, name, dimensions)
        if self.index.options.vector_mode == "server":
            self.vectors(fingerprint).clear()  # what another index of that name has left on the server
        self._raise_vectors(now=True)

    def prepare(self, fingerprint: str) -> None:
        """Fill the vector index of another embedder from the cache, beside the one that is searched."""
        if self.index.options.vector_mode == "exact":
            return
        vectors = self.vectors(fingerprint)
        for kind in KINDS:
            there, wanted, last = vectors.numbers(kind), set(), 0
            sql = "SELECT number, hash FROM chunks WHERE kind = ? AND number > ? ORDER BY number LIMIT ?"
            while rows := self.catalog.rows(sql, (kind, last, OUTBOX_PAGE)):
                last = rows[-1][0]
                cached = self.catalog.cached_vectors(fingerprint, [h for _, h in rows])
                wanted |= {n for n, h in rows if h in cached}
                self._put(kind, [(n, cached[h]) for n, h in rows if h in cached and n not in there], fingerprint)
            if surplus := sorted(there - wanted):
                vectors.delete(kind, surplus)

    def swap(self, fingerprint: str, name: str, dimensions: int) -> None:
        """Make a prepared embedder's vectors the ones that are searched, in one transaction."""
        with self.catalog.transaction() as db:
            db.execute(
                "UPDATE chunks SET vector = CASE WHEN EXISTS (SELECT 1 FROM vectors v WHERE v.fingerprint = ? AND v.hash = chunks.hash) THEN 1 "
                "WHEN EXISTS (SELECT 1 FROM failures f WHERE f.hash = chunks.hash) THEN 2 ELSE 0 END",
                (fingerprint,),
            )
            self._name_embedder(fingerprint, name, dimensions)
            self._raise_vectors(now=True)
        if fingerprint in self._vectors:
            self.index.use_vectors(fingerprint, self._vectors[fingerprint])

    def drop_others(self) -> None:
        """Drop the collections of embedders that are searched no more."""
        vectors = self.vectors(self.index.fingerprint)
        if hasattr(vectors, "drop_others"):  # the Chroma forms keep a collection an embedder
            vectors.drop_others()

    def _name_embedder(self, fingerprint: str, name: str, dimensions: int) -> None:
        for key, value in (("fingerprint", fingerprint), ("embedder", name), ("dimensions", str(dimensions))):
            self.catalog.set_setting(key, value)
        self.catalog.raise_generation()

    def _raise_vectors(self, *, now: bool = False) -> None:
        self._touched = True
        if now or time.monotonic() - self._raised > RELOAD_SECONDS:
            self._raised = time.monotonic()
            self.catalog.set_setting("vector_generation", str(int(self.catalog.setting("vector_generation", "0")) + 1))
            self.catalog.raise_generation()

    def say(self, message: str) -> None:
        log.info(message)
        self.index.messages.append(message)
