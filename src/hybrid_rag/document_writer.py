"""Documents in the catalog: read ones put in their place, vanished ones taken out; the outbox tells the legs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hybrid_rag.catalog import Catalog
from hybrid_rag.catalog_schema import card_to_json, chunk_values, document_values, pack_text
from hybrid_rag.records import Chunk, Document, FileReport, TableCard, text_hash


class DocumentWriter:
    """The part of a writer that knows the catalog alone."""

    catalog: Catalog

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
        reading: str,
    ) -> None:
        """Make a read document the one of its source: from now on it is found, and its older form is not."""
        values = document_values(document, mtime_ns=mtime_ns, ctime_ns=ctime_ns, indexed=_now(), rows=rows, reading=reading)
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

    def fail(self, report: FileReport, *, size: int, mtime_ns: int, ctime_ns: int, reading: str) -> None:
        """Note a file that could not be read; what was indexed of its older content goes."""
        body = json.dumps(report.to_dict(), ensure_ascii=False)
        with self.catalog.transaction() as db:
            self._forget(db, report.source)
            db.execute("INSERT INTO unread VALUES (?, ?, ?, ?, ?, ?)", (report.source, size, mtime_ns, ctime_ns, body, reading))
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
        # A table's file stays until the next run: a reader may be about to open it, and a kill now must not lose it.
        for (number,) in db.execute("SELECT number FROM documents WHERE source = ? AND ready = 1", (source,)).fetchall():
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


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
