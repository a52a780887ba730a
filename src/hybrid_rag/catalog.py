"""The catalog: one SQLite file that is the truth. Whatever is not in it is not in the index.

Readers hold no locks. Numbers of documents and chunks are never used twice.
"""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.catalog_file import CatalogFile
from hybrid_rag.catalog_schema import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    FileStamp,
    StoredChunk,
    card_from_json,
    chunk_from_row,
    document_from_row,
    unpack_text,
)
from hybrid_rag.records import DocumentInfo, Kind, TableCard

if TYPE_CHECKING:
    import numpy as np

SPREAD = 4  # times as many numbers as are asked for are read in one go
PARAMETERS = 900  # of one statement; SQLite's own limit is far higher, some builds' is 999


class Catalog(CatalogFile):
    """What the file holds, and small changes to it. Thread-safe."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        self._table: tuple[str, dict[int, DocumentInfo]] = ("", {})
        super().__init__(path, create=create)

    # ------------------------------------------------------------ settings

    def setting(self, key: str, default: str = "") -> str:
        found = self.value("SELECT value FROM settings WHERE key = ?", (key,))
        return default if found is None else found

    def set_setting(self, key: str, value: str) -> None:
        self.rows("INSERT INTO settings VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value))

    def generation(self) -> int:
        """Rises with every change that a reader must see."""
        return int(self.setting("generation", "0"))

    @property
    def version(self) -> str:
        """Differs whenever the content does, also after another index was restored in its place."""
        found = dict(self.rows("SELECT key, value FROM settings WHERE key IN ('incarnation', 'generation')"))
        return f"{found.get('incarnation', '')}:{found.get('generation', '0')}"

    def raise_generation(self) -> None:
        self.set_setting("generation", str(self.generation() + 1))

    # ------------------------------------------------------------ documents

    def document_table(self) -> dict[int, DocumentInfo]:
        """All documents by number; kept until something changes."""
        version = self.version
        if self._table[0] != version:
            self._table = (version, self._read_documents())
        return self._table[1]

    def documents(self) -> list[DocumentInfo]:
        """All documents, by source."""
        return sorted(self.document_table().values(), key=lambda d: d.source)

    def document(self, source: str) -> DocumentInfo | None:
        return next((d for d in self.document_table().values() if d.source == source), None)

    def document_number(self, source: str) -> int | None:
        return self.value("SELECT number FROM documents WHERE source = ? AND ready = 1", (source,))

    def _read_documents(self) -> dict[int, DocumentInfo]:
        counts = {r[0]: (r[1], r[2]) for r in self.rows("SELECT document, count(*), sum(vector = 1) FROM chunks GROUP BY document")}
        found = self.rows(f"SELECT {DOCUMENT_COLUMNS} FROM documents WHERE ready = 1 ORDER BY number")
        names = [name.strip() for name in DOCUMENT_COLUMNS.split(",")]
        return {row[0]: document_from_row(dict(zip(names, row, strict=True)), *counts.get(row[0], (0, 0))) for row in found}

    def stamps(self) -> dict[str, FileStamp]:
        """What is known of each file, read or not, by source."""
        sql = "SELECT source, number, size, mtime_ns, ctime_ns, sha256, indexed, reading, kind, status FROM documents WHERE ready = 1"
        out = {r[0]: FileStamp(*r[1:]) for r in self.rows(sql)}
        sql = "SELECT source, size, mtime_ns, ctime_ns, reading FROM unread"
        out.update({r[0]: FileStamp(None, r[1], r[2], r[3], "", "", r[4], None, "not read") for r in self.rows(sql)})
        return out

    def unread(self) -> list[dict[str, Any]]:
        """Reports of the files that could not be read, by source."""
        return [json.loads(r[0]) for r in self.rows("SELECT report FROM unread ORDER BY source")]

    def document_text(self, source: str) -> str:
        """The whole text of a text document; "" for tables."""
        sql = "SELECT t.body FROM texts t JOIN documents d ON d.number = t.document WHERE d.source = ? AND d.ready = 1"
        body = self.value(sql, (source,))
        return unpack_text(body) if body else ""

    # ------------------------------------------------------------ chunks

    def chunks(self, numbers: Sequence[int]) -> dict[int, StoredChunk]:
        """Chunks by number; a number that is not in the catalog (any more) is missing from the result."""
        out: dict[int, StoredChunk] = {}
        for part in _parts(numbers):
            marks = ",".join("?" * len(part))
            sql = f"SELECT {CHUNK_COLUMNS} FROM chunks c JOIN documents d ON d.number = c.document WHERE d.ready = 1 AND c.number IN ({marks})"
            out.update((row[0], chunk_from_row(row)) for row in self.rows(sql, part))
        return out

    def document_chunks(self, source: str, first: int = 0, last: int | None = None) -> list[StoredChunk]:
        """Chunks of a document in order, from one ordinal to another (both included)."""
        sql = (
            f"SELECT {CHUNK_COLUMNS} FROM chunks c JOIN documents d ON d.number = c.document "
            "WHERE d.source = ? AND d.ready = 1 AND c.ordinal BETWEEN ? AND ? ORDER BY c.ordinal"
        )
        return [chunk_from_row(row) for row in self.rows(sql, (source, first, 2**60 if last is None else last))]

    def chunk_by_id(self, chunk_id: str) -> StoredChunk | None:
        sql = f"SELECT {CHUNK_COLUMNS} FROM chunks c JOIN documents d ON d.number = c.document WHERE d.ready = 1 AND c.id = ?"
        found = self.rows(sql, (chunk_id,))
        return chunk_from_row(found[0]) if found else None

    def iterate_chunks(self, *, after: int = 0) -> Iterator[StoredChunk]:
        """Every chunk by number, paged."""
        sql = f"SELECT {CHUNK_COLUMNS} FROM chunks c JOIN documents d ON d.number = c.document WHERE d.ready = 1 AND c.number > ? ORDER BY c.number LIMIT 2000"
        while page := self.rows(sql, (after,)):
            yield from map(chunk_from_row, page)
            after = page[-1][0]

    def text_sample(self, n: int) -> list[str]:
        """Texts of about n chunks of text documents (fewer than 2n), spread over all of them."""
        sql = "SELECT c.number FROM documents d JOIN chunks c ON c.document = d.number WHERE d.ready = 1 AND d.kind = 'text' ORDER BY 1"
        numbers = [row[0] for row in self.rows(sql)]
        return [stored.chunk.text for _, stored in sorted(self.chunks(numbers[:: max(1, len(numbers) // n)]).items())]

    def chunk_numbers(
        self, kind: Kind | None = None, *, documents: Collection[int] | None = None, with_vectors: bool = False
    ) -> np.ndarray:
        """Numbers of chunks, ascending int64 (n,); of given documents only, when given."""
        import numpy as np

        conditions = ["d.ready = 1"] + (["c.vector = 1"] if with_vectors else []) + (["c.kind = ?"] if kind else [])
        base = f"SELECT c.number FROM chunks c JOIN documents d ON d.number = c.document WHERE {' AND '.join(conditions)}"
        fixed = (kind,) if kind else ()
        if documents is None:
            found = [r[0] for r in self.rows(base, fixed)]
        else:
            found = []
            for part in _parts(sorted(documents)):
                found += [r[0] for r in self.rows(f"{base} AND c.document IN ({','.join('?' * len(part))})", (*fixed, *part))]
        return np.array(sorted(found), dtype=np.int64)

    def documents_of(self, numbers: Sequence[int]) -> list[int]:
        """The document of each chunk, in order; 0 for a chunk that is not there."""
        found: dict[int, int] = {}
        for part in _parts(numbers):
            found.update(self.rows(f"SELECT number, document FROM chunks WHERE number IN ({','.join('?' * len(part))})", part))
        return [found.get(int(n), 0) for n in numbers]

    def counts(self) -> dict[str, dict[str, int]]:
        """By kind: documents, chunks, vectors, failed."""
        out = {kind: {"documents": 0, "chunks": 0, "vectors": 0, "failed": 0} for kind in ("table", "text")}
        for kind, n in self.rows("SELECT kind, count(*) FROM documents WHERE ready = 1 GROUP BY kind"):
            out[kind]["documents"] = n
        sql = "SELECT c.kind, count(*), sum(c.vector = 1), sum(c.vector = 2) FROM chunks c JOIN documents d ON d.number = c.document WHERE d.ready = 1 GROUP BY c.kind"
        for kind, chunks, vectors, failed in self.rows(sql):
            out[kind].update(chunks=chunks, vectors=vectors, failed=failed)
        return out

    # ------------------------------------------------------------ vectors

    def vectors(self, fingerprint: str, kind: Kind | None = None, *, numbers: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(numbers int64 (n,), vectors float32 (n, dim)) of the indexed chunks: all of a kind, or those of ``numbers`` that have one."""
        import numpy as np

        sql = (
            "SELECT c.number, v.vector FROM chunks c JOIN documents d ON d.number = c.document "
            "JOIN vectors v ON v.fingerprint = ? AND v.hash = c.hash WHERE d.ready = 1 AND c.vector = 1"
        )
        fixed: tuple[Any, ...] = (fingerprint,)
        if kind:
            sql, fixed = f"{sql} AND c.kind = ?", (*fixed, kind)
        held, data = array("q"), bytearray()
        if numbers is None:
            self._gather(f"{sql} ORDER BY c.number", fixed, held, data)
        elif len(numbers) > PARAMETERS and numbers[-1] - numbers[0] < SPREAD * len(numbers):  # ascending, and close together
            self._gather(f"{sql} AND c.number BETWEEN ? AND ? ORDER BY c.number", (*fixed, int(numbers[0]), int(numbers[-1])), held, data)
        else:
            for part in _parts([int(n) for n in numbers]):
                self._gather(f"{sql} AND c.number IN ({','.join('?' * len(part))})", (*fixed, *part), held, data)
        if len(held) > PARAMETERS:
            self.connection().execute("PRAGMA shrink_memory")  # the pages just read would stay beside the vectors
        found = np.array(held, np.int64)
        vectors = np.frombuffer(data, np.float32).reshape(len(found), -1 if len(found) else self.dimensions(fingerprint))
        if numbers is not None and len(found) > len(numbers):
            wanted = np.isin(found, numbers)
            return found[wanted], vectors[wanted]
        return found, vectors

    def _gather(self, sql: str, parameters: Sequence[Any], numbers: array[int], data: bytearray) -> None:
        """Add (number, vector bytes) rows to both, without holding all rows at a time."""
        connection = self.connection()
        try:
            for number, vector in connection.execute(sql, parameters):
                numbers.append(number)
                data += vector
        except sqlite3.Error as error:
            raise self.explained(error) from error

    def dimensions(self, fingerprint: str) -> int:
        """Of an embedder whose vectors are in the cache; 0 when there are none."""
        found = self.value("SELECT length(vector) / 4 FROM vectors WHERE fingerprint = ? LIMIT 1", (fingerprint,))
        if not found and fingerprint == self.setting("fingerprint"):
            found = self.setting("dimensions", "0")  # of an embedder that was chosen but has embedded nothing yet
        return int(found or 0)

    def cached_vectors(self, fingerprint: str, hashes: Iterable[str]) -> dict[str, bytes]:
        """Cached vectors (float32 bytes) of texts by hash."""
        out: dict[str, bytes] = {}
        for part in _parts(list(dict.fromkeys(hashes))):
            sql = f"SELECT hash, vector FROM vectors WHERE fingerprint = ? AND hash IN ({','.join('?' * len(part))})"
            out.update(self.rows(sql, (fingerprint, *part)))
        return out

    def check(self) -> None:
        """Look at the whole file. Raises IndexDamagedError when it is damaged anywhere."""
        found = self.value("PRAGMA quick_check")
        if found != "ok":
            raise self.damaged(found)

    # ------------------------------------------------------------ tables, reports

    def tables(self) -> list[tuple[TableCard, str]]:
        """Cards of the tables with their columnar files' names, by source."""
        sql = "SELECT card, source, table_file FROM documents WHERE ready = 1 AND card IS NOT NULL ORDER BY source"
        return [(card_from_json(card, source), file) for card, source, file in self.rows(sql)]

    def last_report(self) -> dict[str, Any] | None:
        body = self.value("SELECT body FROM reports ORDER BY id DESC LIMIT 1")
        return json.loads(body) if body else None

    def save_report(self, report: dict[str, Any], *, keep: int = 20) -> None:
        with self.transaction() as connection:
            connection.execute("INSERT INTO reports (body) VALUES (?)", (json.dumps(report, ensure_ascii=False),))
            connection.execute("DELETE FROM reports WHERE id <= (SELECT max(id) FROM reports) - ?", (keep,))


def _parts(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for i in range(0, len(items), PARAMETERS):
        yield list(items[i : i + PARAMETERS])
