"""The catalog's tables, and how rows become records and back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hybrid_rag.records import Chunk, Document, DocumentInfo, Kind, Notice, TableCard, TableColumn, TableJoin

SCHEMA_VERSION = 2
PAGE_SIZE = 16_384

SCHEMA = """
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE documents (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    ready INTEGER NOT NULL,               -- 0 while its chunks are being written
    kind TEXT NOT NULL, format TEXT NOT NULL, title TEXT NOT NULL,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, sha256 TEXT NOT NULL,
    modified TEXT NOT NULL, indexed TEXT NOT NULL,
    encoding TEXT, dialect TEXT, language TEXT, date TEXT, tags TEXT NOT NULL, pages INTEGER, row_count INTEGER,
    status TEXT NOT NULL, notices TEXT NOT NULL, metadata TEXT NOT NULL, card TEXT, table_file TEXT,
    reading TEXT NOT NULL DEFAULT ''     -- the settings that it was read and cut with
);
CREATE UNIQUE INDEX documents_by_source ON documents (source) WHERE ready = 1;
CREATE TABLE texts (document INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE chunks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL, ordinal INTEGER NOT NULL, id TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL,
    text TEXT NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL, heading TEXT NOT NULL, header TEXT NOT NULL,
    page INTEGER, page_label TEXT, row_first INTEGER, row_last INTEGER,
    hash TEXT NOT NULL,                   -- of what is embedded
    vector INTEGER NOT NULL DEFAULT 0     -- 0 none yet, 1 in the vector index, 2 the embedder failed
);
CREATE INDEX chunks_by_document ON chunks (document, ordinal);
CREATE INDEX chunks_by_vector ON chunks (vector, kind, number) WHERE vector <> 1;
CREATE INDEX chunks_by_id ON chunks (id);
CREATE TABLE vectors (fingerprint TEXT NOT NULL, hash TEXT NOT NULL, vector BLOB NOT NULL);
CREATE UNIQUE INDEX vectors_by_hash ON vectors (fingerprint, hash);
CREATE TABLE failures (hash TEXT PRIMARY KEY, reason TEXT NOT NULL);
CREATE TABLE outbox (seq INTEGER PRIMARY KEY AUTOINCREMENT, leg TEXT NOT NULL, op TEXT NOT NULL, number INTEGER NOT NULL, kind TEXT NOT NULL);
CREATE INDEX outbox_by_leg ON outbox (leg, seq);
CREATE TABLE unread (source TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, report TEXT NOT NULL, reading TEXT NOT NULL DEFAULT '');
CREATE TABLE reports (id INTEGER PRIMARY KEY AUTOINCREMENT, body TEXT NOT NULL);
"""

# From a version to the next one. An index of a version that has no step here is refused with the command to make it anew.
MIGRATIONS: dict[int, str] = {
    1: """
ALTER TABLE documents ADD COLUMN reading TEXT NOT NULL DEFAULT '';
ALTER TABLE unread ADD COLUMN reading TEXT NOT NULL DEFAULT '';
""",
}

DOCUMENT_COLUMNS = "number, source, kind, format, title, size, sha256, modified, indexed, encoding, dialect, language, date, tags, pages, row_count, status, notices"
CHUNK_COLUMNS = (
    'c.number, c.document, d.source, c.kind, c.ordinal, c.text, c.start, c."end", d.title, c.heading, c.page, c.page_label, '
    "c.row_first, c.row_last, c.role, c.header, c.id, d.date, d.tags, d.modified"
)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk with its place in the index. ``number`` is its key in both legs; ``document`` its document's number."""

    number: int
    document: int
    id: str
    chunk: Chunk
    date: str | None
    tags: tuple[str, ...]
    modified: str


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells, without reading, that a file may have changed."""

    number: int | None  # of its document; None when it could not be read
    size: int
    mtime_ns: int
    ctime_ns: int
    sha256: str
    indexed: str
    reading: str  # the settings that it was read with
    kind: Kind | None
    status: str


def document_from_row(row: Mapping[str, Any], chunks: int, with_vectors: int) -> DocumentInfo:
    return DocumentInfo(
        source=row["source"],
        kind=row["kind"],
        format=row["format"],
        title=row["title"],
        size=row["size"],
        sha256=row["sha256"],
        modified=row["modified"],
        indexed=row["indexed"],
        chunks=chunks,
        chunks_with_vectors=with_vectors,
        status=row["status"],
        encoding=row["encoding"],
        dialect=row["dialect"],
        language=row["language"],
        date=row["date"],
        tags=tuple(json.loads(row["tags"])),
        pages=row["pages"],
        rows=row["row_count"],
        notices=tuple(Notice(**n) for n in json.loads(row["notices"])),
    )


def chunk_from_row(row: tuple[Any, ...]) -> StoredChunk:
    (
        number,
        document,
        source,
        kind,
        ordinal,
        text,
        start,
        end,
        title,
        heading,
        page,
        label,
        first,
        last,
        role,
        header,
        cid,
        date,
        tags,
        modified,
    ) = row
    chunk = Chunk(source, kind, ordinal, text, start, end, title, tuple(json.loads(heading)), page, label,
                  (first, last) if first is not None else None, role, header)  # fmt: skip
    return StoredChunk(number, document, cid, chunk, date, tuple(json.loads(tags)), modified)


def chunk_values(number: int, chunk: Chunk, embedding_hash: str) -> tuple[Any, ...]:
    first, last = chunk.rows or (None, None)
    return (number, chunk.ordinal, chunk.id, chunk.kind, chunk.role, chunk.text, chunk.start, chunk.end, _json(chunk.heading),
            chunk.header, chunk.page, chunk.page_label, first, last, embedding_hash)  # fmt: skip


def document_values(document: Document, *, mtime_ns: int, ctime_ns: int, indexed: str, rows: int | None, reading: str) -> dict[str, Any]:
    return {
        "source": document.source, "kind": document.kind, "format": document.format, "title": document.title,
        "size": document.size, "mtime_ns": mtime_ns, "ctime_ns": ctime_ns, "sha256": document.sha256,
        "modified": document.modified.isoformat(timespec="seconds"), "indexed": indexed,
        "encoding": document.encoding, "dialect": document.dialect, "language": document.language, "date": document.date,
        "tags": _json(document.tags), "pages": document.pages, "row_count": rows,
        "status": "partly" if any(n.partial for n in document.notices) else "read",
        "notices": _json([n.to_dict() for n in document.notices]), "metadata": _json(document.metadata),
        "reading": reading,
    }  # fmt: skip


def pack_text(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8"), 3)


def unpack_text(data: bytes) -> str:
    return zlib.decompress(data).decode("utf-8")


def card_to_json(card: TableCard) -> str:
    return _json(asdict(card))


def card_from_json(text: str, source: str) -> TableCard:
    data = json.loads(text)
    columns = tuple(TableColumn(**{**c, "values": tuple(c["values"])}) for c in data["columns"])
    return TableCard(
        name=data["name"],
        source=source,
        rows=data["rows"],
        columns=columns,
        joins=tuple(TableJoin(**j) for j in data["joins"]),
        notices=tuple(Notice(**n) for n in data["notices"]),
        total_rows=tuple(data.get("total_rows", ())),
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
