"""Writing to the index: catalog first, then the legs through the outbox. Every step can be done again without harm."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.analysis import Analyzer, detect_language
from hybrid_rag.catalog_schema import card_to_json, chunk_values, document_values, pack_text
from hybrid_rag.errors import IndexDamagedError
from hybrid_rag.index import LEXICAL_FOLDER, VECTOR_FOLDER, Index, entry
from hybrid_rag.lexical import LexicalIndex, RankBm25Index, TantivyIndex
from hybrid_rag.probe import manifest, probe
from hybrid_rag.records import KINDS, Chunk, Document, FileReport, Kind, TableCard, text_hash
from hybrid_rag.vectors import VectorIndex
from hybrid_rag.vectors_chroma import wipe

if TYPE_CHECKING:
    import numpy as np

OUTBOX_PAGE = 2000  # chunks of one keyword commit
RELOAD_SECONDS = 3.0  # readers of Chroma reload at most this often while vectors are being written
LANGUAGE_SAMPLE = 200  # chunks looked at to tell the collection's language
log = logging.getLogger(__name__)


class Writer:
    """One writing session; made by ``Index.writer``, which holds the lock."""

    def __init__(self, index: Index) -> None:
        self._index, self.catalog = index, index.catalog
        self._lexical: LexicalIndex | None = None
        self._vectors: dict[str, VectorIndex] = {}
        self._raised = 0.0

    # ------------------------------------------------------------ session

    def begin(self) -> None:
        """Mend what a killed writer or a damaged disk has left, then mark the session as open."""
        self._drop_unfinished()
        unclean = self.catalog.setting("dirty") == "1"
        if unclean or self.catalog.setting("manifest") != self._manifest():
            self._mend()
        self.catalog.set_setting("dirty", "1")
        self.flush()

    def end(self) -> None:
        """Finish the legs and mark the session as cleanly closed."""
        self.flush()
        self._raise_vectors(now=True)
        self._index.refresh()
        self.catalog.set_setting("manifest", self._manifest())
        self.catalog.set_setting("dirty", "0")

    def release(self) -> None:
        """Let go of what keeps other processes from writing; for every end, also a bad one."""
        if self._lexical is not None:
            self._lexical.release()
        for vectors in self._vectors.values():
            if vectors is not self._index.held_vectors:
                vectors.close()

    def _drop_unfinished(self) -> None:
        with self.catalog.transaction() as db:
            db.execute("DELETE FROM chunks WHERE document IN (SELECT number FROM documents WHERE ready = 0)")
            db.execute("DELETE FROM documents WHERE ready = 0")
        folder = self._index.tables_directory
        folder.mkdir(parents=True, exist_ok=True)
        kept = {file for _, file in self.catalog.tables()}
        for path in folder.iterdir():
            if path.name not in kept:
                path.unlink(missing_ok=True)

    def _manifest(self) -> str:
        folders = [self._index.directory / LEXICAL_FOLDER] + ([self._index.directory / VECTOR_FOLDER] if self._embedded else [])
        return manifest(folders)

    @property
    def _embedded(self) -> bool:
        return self._index.options.vector_mode == "embedded"

    # ------------------------------------------------------------ mending

    def _mend(self) -> None:
        wanted = set(self.catalog.chunk_numbers().tolist())
        if self._index.options.lexical_engine == "tantivy" and (wanted or (self._index.directory / LEXICAL_FOLDER).exists()):
            self._mend_lexical(wanted)
        if self._index.fingerprint and self._index.options.vector_mode != "exact":
            self._mend_vectors()

    def _mend_lexical(self, wanted: set[int]) -> None:
        pending = {r[0] for r in self.catalog.rows("SELECT number FROM outbox WHERE leg = 'lexical'")}
        try:
            found = self.lexical.numbers()
            same = found - pending == wanted - pending
        except Exception as error:  # tantivy raises ValueError, OSError or a panic on damaged files
            self._say(f"The keyword index was damaged ({str(error)[:120]}) and is made again from the catalog.")
            same = False
        else:
            if not same:
                self._say("The keyword index did not match the catalog and is made again from it.")
        if not same:
            self.rebuild_lexical()

    def _mend_vectors(self) -> None:
        fingerprint = self._index.fingerprint
        folder = self._index.directory / VECTOR_FOLDER
        problem = ""
        if self._embedded:
            self._index.close_legs()
            self._lexical = None
            wanted = {
                kind: int(self.catalog.value("SELECT count(*) FROM chunks WHERE vector = 1 AND kind = ?", (kind,)) or 0) for kind in KINDS
            }
            if folder.exists():
                problem = self._probe(folder, fingerprint)
            elif any(wanted.values()):
                problem = "its folder is missing"
        try:
            if not problem:
                self._align_vectors(fingerprint)
        except IndexDamagedError as error:
            problem = error.message
        if problem:
            self._say(f"The vector index was damaged ({problem[:120]}) and is made again from the catalog; nothing is embedded again.")
            self.rebuild_vectors()

    def _probe(self, folder: Path, fingerprint: str) -> str:
        return probe(folder, prefix=self._index.options.prefix, fingerprint=fingerprint, dimensions=self.catalog.dimensions(fingerprint))

    def _align_vectors(self, fingerprint: str) -> None:
        """Make the collections hold exactly the chunks that the catalog says have vectors."""
        vectors = self.vectors(fingerprint)
        for kind in KINDS:
            there = vectors.numbers(kind)
            marked = set(self.catalog.chunk_numbers(kind, with_vectors=True).tolist())
            if surplus := sorted(there - marked):
                vectors.delete(kind, surplus)
            if missing := sorted(marked - there):
                self._say(f"{len(missing)} vectors were missing from the vector index and are put back from the catalog.")
                self._mark(missing, 0)

    def rebuild_lexical(self) -> None:
        """Make the keyword index again from the catalog."""
        self._index.close_legs()
        self._lexical = None
        shutil.rmtree(self._index.directory / LEXICAL_FOLDER, ignore_errors=True)
        with self.catalog.transaction() as db:
            db.execute("DELETE FROM outbox WHERE leg = 'lexical'")
            db.execute(
                "INSERT INTO outbox (leg, op, number, kind) SELECT 'lexical', 'add', c.number, c.kind FROM chunks c "
                "JOIN documents d ON d.number = c.document WHERE d.ready = 1 ORDER BY c.number"
            )
        self.flush()
        self.catalog.raise_generation()

    def rebuild_vectors(self) -> None:
        """Forget the vector index; the next embedding phase fills it from the cache."""
        self._index.close_legs()
        self._vectors.clear()
        if self._embedded:
            wipe(self._index.directory / VECTOR_FOLDER)
        elif self._index.fingerprint:
            self.vectors(self._index.fingerprint).clear()
        with self.catalog.transaction() as db:
            db.execute("UPDATE chunks SET vector = 0")
            db.execute("DELETE FROM outbox WHERE leg = 'vectors'")
        self.fill_from_cache(self._index.fingerprint)

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

    # ------------------------------------------------------------ documents

    def reserve(self, source: str) -> int:
        """A number for a document that is being read; nobody sees it before :meth:`finish`."""
        with self.catalog.transaction() as db:
            return int(
                db.execute(
                    "INSERT INTO documents (source, ready, kind, format, title, size, mtime_ns, ctime_ns, sha256, modified, indexed, tags, status, notices, metadata) "
                    "VALUES (?, 0, '', '', '', 0, 0, 0, '', '', '', '[]', '', '[]', '{}')",
                    (source,),
                ).lastrowid
                or 0
            )

    def add_chunks(self, number: int, chunks: Iterable[Chunk]) -> None:
        rows = [chunk_values(number, chunk, text_hash(chunk.embedding_text)) for chunk in chunks]
        with self.catalog.transaction() as db:
            db.executemany(
                'INSERT INTO chunks (document, ordinal, id, kind, role, text, start, "end", heading, header, page, page_label, row_first, row_last, hash) '
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

    def finish(
        self,
        number: int,
        document: Document,
        *,
        mtime_ns: int,
        ctime_ns: int,
        rows: int | None,
        card: TableCard | None,
        table_file: Path | None,
    ) -> None:
        """Make a read document the one of its source: from now on it is found, and its older form is not."""
        values = document_values(document, mtime_ns=mtime_ns, ctime_ns=ctime_ns, indexed=_now(), rows=rows)
        values["card"] = card_to_json(card) if card else None
        values["table_file"] = table_file.name if table_file else None
        with self.catalog.transaction() as db:
            self._forget(db, document.source)
            db.execute(
                f"UPDATE documents SET ready = 1, {', '.join(f'{k} = :{k}' for k in values)} WHERE number = :number",
                {**values, "number": number},
            )
            if document.text:
                db.execute("INSERT INTO texts VALUES (?, ?)", (number, pack_text(document.text)))
            db.execute(
                "INSERT INTO outbox (leg, op, number, kind) SELECT 'lexical', 'add', number, kind FROM chunks WHERE document = ? ORDER BY number",
                (number,),
            )
            self.catalog.raise_generation()

    def fail(self, report: FileReport, *, size: int, mtime_ns: int, ctime_ns: int) -> None:
        """Note a file that could not be read; what was indexed of its older content goes."""
        body = json.dumps(report.to_dict(), ensure_ascii=False)
        with self.catalog.transaction() as db:
            self._forget(db, report.source)
            db.execute("INSERT INTO unread VALUES (?, ?, ?, ?, ?)", (report.source, size, mtime_ns, ctime_ns, body))
            self.catalog.raise_generation()

    def remove(self, sources: Iterable[str]) -> None:
        """Remove documents; from the moment of the transaction no answer comes from them."""
        with self.catalog.transaction() as db:
            for source in sources:
                self._forget(db, source)
            self.catalog.raise_generation()

    def touch(self, source: str, *, mtime_ns: int, ctime_ns: int, modified: str) -> None:
        """Note a new time stamp of a file whose content is the same."""
        sql = "UPDATE documents SET mtime_ns = ?, ctime_ns = ?, modified = ?, indexed = ? WHERE source = ? AND ready = 1"
        with self.catalog.transaction() as db:
            db.execute(sql, (mtime_ns, ctime_ns, modified, _now(), source))
            self.catalog.raise_generation()

    def _forget(self, db: Any, source: str) -> None:
        db.execute("DELETE FROM unread WHERE source = ?", (source,))
        for number, table_file in db.execute(
            "SELECT number, table_file FROM documents WHERE source = ? AND ready = 1", (source,)
        ).fetchall():
            db.execute(
                "INSERT INTO outbox (leg, op, number, kind) SELECT 'lexical', 'del', number, kind FROM chunks WHERE document = ?", (number,)
            )
            db.execute(
                "INSERT INTO outbox (leg, op, number, kind) SELECT 'vectors', 'del', number, kind FROM chunks WHERE document = ? AND vector = 1",
                (number,),
            )
            db.execute("DELETE FROM chunks WHERE document = ?", (number,))
            db.execute("DELETE FROM texts WHERE document = ?", (number,))
            db.execute("DELETE FROM documents WHERE number = ?", (number,))
            if table_file:
                (self._index.tables_directory / table_file).unlink(missing_ok=True)

    # ------------------------------------------------------------ legs

    @property
    def lexical(self) -> LexicalIndex:
        if self._lexical is None:
            held = self._index.held_lexical
            if held is None or isinstance(held, RankBm25Index):
                held = self._open_lexical()
                self._index.use_lexical(held)
            self._lexical = held
        return self._lexical

    def _open_lexical(self) -> LexicalIndex:
        index = self._index
        if index.options.lexical_engine == "rank_bm25":
            return RankBm25Index(lambda: map(entry, self.catalog.iterate_chunks()), index.analyzer)
        folder = index.directory / LEXICAL_FOLDER
        try:
            return TantivyIndex(folder, index.analyzer)
        except IndexDamagedError:
            self._say("The keyword index was damaged and is made again from the catalog.")
            shutil.rmtree(folder, ignore_errors=True)
            return TantivyIndex(folder, index.analyzer)

    def vectors(self, fingerprint: str) -> VectorIndex:
        """The vector index of an embedder, open for writing."""
        if fingerprint not in self._vectors:
            self._vectors[fingerprint] = self._index.open_vectors(fingerprint)
            if fingerprint == self._index.fingerprint:
                self._index.use_vectors(fingerprint, self._vectors[fingerprint])
        return self._vectors[fingerprint]

    def flush(self) -> None:
        """Bring the legs up to the outbox, then empty it."""
        self._settle_language()
        while rows := self.catalog.rows("SELECT seq, op, number FROM outbox WHERE leg = 'lexical' ORDER BY seq LIMIT ?", (OUTBOX_PAGE,)):
            self.lexical.delete([number for _, op, number in rows if op == "del"])
            self.lexical.add(map(entry, self.catalog.chunks([number for _, op, number in rows if op == "add"]).values()))
            self.lexical.commit()
            self._clear("lexical", rows[-1][0])
        while rows := self.catalog.rows("SELECT seq, number, kind FROM outbox WHERE leg = 'vectors' ORDER BY seq LIMIT ?", (OUTBOX_PAGE,)):
            if self._index.fingerprint and self._index.options.vector_mode != "exact":
                for kind in KINDS:
                    if numbers := [n for _, n, k in rows if k == kind]:
                        self.vectors(self._index.fingerprint).delete(kind, numbers)
            self._clear("vectors", rows[-1][0])
            self._raise_vectors()

    def _clear(self, leg: str, seq: int) -> None:
        with self.catalog.transaction() as db:
            db.execute("DELETE FROM outbox WHERE leg = ? AND seq <= ?", (leg, seq))
            self.catalog.raise_generation()

    def _settle_language(self) -> None:
        """Choose the stemmer once there is text; a changed choice or analyser makes the keyword index again."""
        wanted = self._index.options.language
        known = self.catalog.setting("language")
        if wanted == "auto" and not known:
            texts = [
                r[0] for r in self.catalog.rows("SELECT text FROM chunks WHERE kind = 'text' ORDER BY number LIMIT ?", (LANGUAGE_SAMPLE,))
            ]
            if not texts:
                return
            wanted = detect_language(texts)
        elif wanted == "auto":
            wanted = known
        fingerprint = Analyzer(wanted).fingerprint
        before = self.catalog.setting("analyser")
        if wanted != known or fingerprint != before:
            self.catalog.set_setting("language", wanted)
            self.catalog.set_setting("analyser", fingerprint)
            if before and before != fingerprint:
                self._say(f"The keyword index is made again for the language {wanted!r}.")
                self.rebuild_lexical()
            elif not before:
                self._index.close_legs()
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
        import numpy as np

        for kind in KINDS:
            chosen = [(n, blob) for n, blob, k in items if k == kind]
            if chosen and self._index.options.vector_mode != "exact":
                matrix = np.frombuffer(b"".join(b for _, b in chosen), np.float32).reshape(len(chosen), -1)
                numbers = [n for n, _ in chosen]
                self.vectors(fingerprint).upsert(kind, numbers, self.catalog.documents_of(numbers), matrix)
        self._mark([n for n, _, _ in items], 1)
        self._raise_vectors()
        return len(items)

    def mark_failed(self, items: Sequence[tuple[int, str, str]]) -> None:
        """Note texts that the embedder failed on: (number, hash, reason). The next run tries them again."""
        with self.catalog.transaction() as db:
            db.executemany("INSERT OR REPLACE INTO failures VALUES (?, ?)", [(h, reason) for _, h, reason in items])
        self._mark([n for n, _, _ in items], 2)

    def _mark(self, numbers: Sequence[int], state: int) -> None:
        with self.catalog.transaction() as db:
            db.executemany("UPDATE chunks SET vector = ? WHERE number = ?", [(state, n) for n in numbers])

    def activate(self, fingerprint: str, name: str, dimensions: int) -> None:
        """Make an embedder's vectors the ones that are searched."""
        with self.catalog.transaction():
            for key, value in (("fingerprint", fingerprint), ("embedder", name), ("dimensions", str(dimensions))):
                self.catalog.set_setting(key, value)
            self.catalog.raise_generation()
        self._raise_vectors(now=True)

    def _raise_vectors(self, *, now: bool = False) -> None:
        if now or time.monotonic() - self._raised > RELOAD_SECONDS:
            self._raised = time.monotonic()
            self.catalog.set_setting("vector_generation", str(int(self.catalog.setting("vector_generation", "0")) + 1))
            self.catalog.raise_generation()

    def _say(self, message: str) -> None:
        log.info(message)
        self._index.messages.append(message)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
