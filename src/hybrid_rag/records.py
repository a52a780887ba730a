"""Frozen records that the layers hand to each other. No I/O, no third-party imports.

Places are counted as people count: pages and table rows from 1 (row 1 is the first record
after the header). Character spans are half-open ``[start, end)`` into ``Document.text``.
``to_dict`` gives the JSON form, the same in every interface.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

Kind = Literal["table", "text"]
KINDS: tuple[Kind, Kind] = ("table", "text")
Rows = tuple[int, int]  # first, last record number, both included, from 1
FileStatus = Literal["read", "partly", "not read"]
Change = Literal["added", "changed", "renamed", "unchanged", "deleted", "failed"]
AnswerMode = Literal["llm", "table", "extractive", "none"]
MB = 1 << 20  # bytes, wherever sizes are configured or named
SearchMode = Literal["hybrid", "keyword", "dense"]


def rows_in_words(rows: Rows) -> str:
    """ "row 5" or "rows 4-9"."""
    first, last = rows
    return f"row {first}" if first == last else f"rows {first}-{last}"


def megabytes(size: float) -> str:
    """A number of bytes in MB, for people: "1.1", "512"."""
    return f"{size / MB:,.1f}".removesuffix(".0")


def text_hash(text: str) -> str:
    """Hex BLAKE2b-128 of the text: the key of the embedding cache."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class Block:
    """A structural piece of a text document, in reading order.

    ``document.text[start:end]`` is the block's text. ``role`` is what it is; a ``table`` block
    holds whole rows as lines, the first of them the header when ``header_end`` is above
    ``start`` (``text[start:header_end]`` is the header, repeated when the table is split).
    """

    start: int
    end: int
    role: Literal["paragraph", "heading", "list", "table", "code", "note", "margin"] = "paragraph"
    heading: tuple[str, ...] = ()  # heading path the block stands under (itself included)
    page: int | None = None  # from 1
    page_label: str | None = None  # as printed ("iv"), when it differs from the number
    header_end: int = 0


@dataclass(frozen=True, slots=True)
class RowStream:
    """The records of a table file, streamed: ``open()`` starts a fresh pass each time.

    ``open()`` yields lists of cell strings as written, ragged as found. ``header`` is made unique and is
    never empty; extra cells of a long record get the names ``extra_1`` … when rendered.
    """

    header: tuple[str, ...]
    open: Callable[[], Iterable[list[str]]]


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a reader could not read or had to repair. ``partial``: content was lost."""

    message: str
    remedy: str = ""
    partial: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Document:
    """One file as read. Text kinds hold ``text`` and ``blocks``; tables hold ``rows``."""

    source: str  # path relative to the data folder, "/" separated, NFC
    kind: Kind
    format: str  # "csv", "tsv", "md", "pdf", "docx", "txt", or a plug-in's suffix without dot
    title: str
    size: int  # bytes
    sha256: str
    modified: datetime  # UTC
    text: str = ""
    blocks: tuple[Block, ...] = ()
    rows: RowStream | None = None
    encoding: str | None = None
    dialect: str | None = None  # for people: "delimiter ';', quote '\"'"
    language: str | None = None  # ISO 639-1
    date: str | None = None  # ISO date from the document itself (front matter), else None
    tags: tuple[str, ...] = ()
    pages: int | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document that is indexed, found and cited as one."""

    source: str
    kind: Kind
    ordinal: int  # position in the document, from 0
    text: str
    start: int
    end: int
    title: str = ""
    heading: tuple[str, ...] = ()
    page: int | None = None  # first page it touches
    page_label: str | None = None
    rows: Rows | None = None
    role: Literal["body", "table", "card"] = "body"  # card: describes a whole table
    header: str = ""  # of a table inside a document, when the chunk begins below it: embedded, indexed, shown

    @property
    def id(self) -> str:
        """Stable identity: the same place and text give the same id in every run."""
        return text_hash(f"{self.source}\0{self.ordinal}\0{self.role}\0{self.text}")

    @property
    def context(self) -> str:
        """Title and heading path, and a split table's header: embedded and indexed, never quoted."""
        parts = [self.title, *(h for h in self.heading if h != self.title)]
        path = " > ".join(p for p in parts if p)
        return f"{path}\n{self.header}" if self.header else path

    @property
    def embedding_text(self) -> str:
        """What the embedder sees (before its own prefix)."""
        return f"{self.context}\n{self.text}" if self.context else self.text


# ---------------------------------------------------------------- index


@dataclass(frozen=True, slots=True)
class DocumentInfo:
    """A document as the catalog knows it (no text)."""

    source: str
    kind: Kind
    format: str
    title: str
    size: int
    sha256: str
    modified: str  # ISO 8601 UTC
    indexed: str  # ISO 8601 UTC
    chunks: int
    chunks_with_vectors: int
    status: FileStatus = "read"
    encoding: str | None = None
    dialect: str | None = None
    language: str | None = None
    date: str | None = None
    tags: tuple[str, ...] = ()
    pages: int | None = None
    rows: int | None = None
    notices: tuple[Notice, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FileReport:
    """What happened to one file in a run."""

    source: str
    status: FileStatus
    change: Change
    kind: Kind | None = None
    format: str | None = None
    reason: str = ""  # why partly / not read
    remedy: str = ""
    chunks: int = 0
    rows: int | None = None
    pages: int | None = None
    encoding: str | None = None
    dialect: str | None = None
    notices: tuple[Notice, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """A path that was left out on purpose (hidden, link out of the folder, ignored …)."""

    path: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of one ``index`` run; also kept in the catalog as the last report."""

    started: str  # ISO 8601 UTC
    seconds: float
    files: tuple[FileReport, ...]
    skipped: tuple[SkippedPath, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)  # added changed renamed unchanged deleted failed
    chunks_written: int = 0
    chunks_embedded: int = 0
    chunks_reused: int = 0  # vectors taken from the embedding cache
    chunks_failed: int = 0  # the embedder failed on these texts
    embedder: str = ""
    first_searchable_seconds: float | None = None
    messages: tuple[str, ...] = ()  # repairs, fall-backs: one line each

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> IndexReport:
        """The inverse of :meth:`to_dict`."""
        files = tuple(FileReport(**{**f, "notices": tuple(Notice(**n) for n in f["notices"])}) for f in data["files"])
        skipped = tuple(SkippedPath(**s) for s in data["skipped"])
        return cls(**{**data, "files": files, "skipped": skipped, "messages": tuple(data["messages"])})


@dataclass(frozen=True, slots=True)
class Progress:
    """One event of a run. ``stage``: "scan", "read", "embed text", "embed tables", "optimise"."""

    stage: str
    done: int
    total: int
    detail: str = ""
    rate: float | None = None  # items a second
    remaining_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """The state of an index."""

    documents: int
    chunks: int
    by_kind: dict[str, dict[str, int]]  # kind -> {"documents": n, "chunks": n, "vectors": n}
    by_format: dict[str, int]
    vector_share: float  # chunks that have vectors, 0..1
    generation: int
    embedder: str
    tables: int
    size_bytes: int
    size_by_part: dict[str, int]
    persist_directory: str
    data_directory: str
    last_run: str | None = None
    not_read: int = 0
    partly_read: int = 0
    failed_chunks: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


# ---------------------------------------------------------------- retrieval


@dataclass(frozen=True, slots=True)
class Hit:
    """A found chunk. ``scores`` and ``ranks`` are keyed by stage, never mixed:
    "bm25" (higher is better), "cosine" (-1..1), "weighted" (0..1) or "rrf" by the fusion, "recency", "rerank" (logit).
    """

    rank: int  # from 1
    chunk_id: str
    chunk: Chunk
    scores: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    terms: tuple[str, ...] = ()  # query terms that matched
    explanation: str = ""
    date: str | None = None
    tags: tuple[str, ...] = ()
    modified: str | None = None
    same_text: tuple[str, ...] = ()  # other sources that hold the same text

    @property
    def source(self) -> str:
        return self.chunk.source

    def to_dict(self) -> dict[str, Any]:
        c = self.chunk
        return {
            "rank": self.rank,
            "source": c.source,
            "kind": c.kind,
            "page": c.page,
            "page_label": c.page_label,
            "rows": list(c.rows) if c.rows else None,
            "heading": list(c.heading),
            "title": c.title,
            "text": c.text,
            "scores": {k: round(v, 6) for k, v in self.scores.items()},
            "ranks": dict(self.ranks),
            "terms": list(self.terms),
            "date": self.date,
            "tags": list(self.tags),
            "modified": self.modified,
            "chunk_id": self.chunk_id,
            "start": c.start,
            "end": c.end,
            "same_text": list(self.same_text),
            "explanation": self.explanation,
        }


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits and how they came about."""

    query: str
    mode: SearchMode  # what was really done ("keyword" when no vectors or no embedder)
    hits: tuple[Hit, ...]
    vector_share: float = 1.0
    reranked: bool = False
    cached: bool = False
    milliseconds: dict[str, float] = field(default_factory=dict)  # by stage
    notes: tuple[str, ...] = ()  # visible fall-backs

    def to_dict(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "mode": self.mode,
            "vector_share": round(self.vector_share, 4),
            "reranked": self.reranked,
            "cached": self.cached,
            "hits": [h.to_dict() for h in self.hits],
            "milliseconds": {k: round(v, 2) for k, v in self.milliseconds.items()},
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a document, as asked for: text, or records of a table."""

    source: str
    kind: Kind
    title: str
    text: str
    page: int | None = None
    pages: int | None = None  # of the whole document
    rows: Rows | None = None
    row_count: int | None = None  # of the whole document
    heading: tuple[str, ...] = ()
    start: int | None = None
    end: int | None = None
    header: tuple[str, ...] = ()  # tables: column names
    records: tuple[tuple[str, ...], ...] = ()  # tables: cells as written, first of them ``rows[0]``
    tokens: int = 0  # estimate for ``text``
    truncated: bool = False
    note: str = ""  # what was cut and how to get the rest

    def to_dict(self) -> dict[str, Any]:
        out = asdict(self)
        out["rows"] = list(self.rows) if self.rows else None
        return out


# ---------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a statement of an answer stands. ``quote`` is a substring of the document."""

    n: int  # the [n] in the answer, from 1
    source: str
    kind: Kind
    page: int | None = None
    page_label: str | None = None
    rows: Rows | None = None
    heading: tuple[str, ...] = ()
    quote: str = ""
    verified: bool = False  # code found the statement's numbers, names and dates in the chunk
    chunk_id: str = ""
    start: int | None = None  # span of the quote in the document's text
    end: int | None = None
    marks: tuple[tuple[int, int], ...] = ()  # spans inside ``quote`` of the supporting words

    def place(self) -> str:
        """The place in words: "page 3", "rows 4-9", "Returns > Refunds", or ""."""
        parts = []
        if self.page is not None:
            label = f" (“{self.page_label}”)" if self.page_label and self.page_label != str(self.page) else ""
            parts.append(f"page {self.page}{label}")
        if self.rows:
            parts.append(rows_in_words(self.rows))
        if self.heading:
            parts.append(" > ".join(self.heading))
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        out = asdict(self)
        out["rows"] = list(self.rows) if self.rows else None
        out["heading"] = list(self.heading)
        out["marks"] = [list(m) for m in self.marks]
        return out


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table, as typed over all its rows."""

    name: str  # SQL name
    label: str  # as written in the file
    type: Literal["integer", "decimal", "date", "datetime", "boolean", "text"]
    nulls: int = 0  # missing or empty cells
    unreadable: int = 0  # cells that are not of the type (kept as written)
    distinct: int | None = None
    minimum: Any = None
    maximum: Any = None
    values: tuple[str, ...] = ()  # all distinct values when they are few
    is_key: bool = False  # unique and without gaps: a likely identifier
    description: str = ""
    unit: str = ""  # written behind or before nearly all numbers ("tonne", "$", "%")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TableJoin:
    """A likely join: same meaning, overlapping values."""

    column: str
    other_table: str
    other_column: str
    overlap: float  # share of this column's distinct values found in the other

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TableCard:
    """What is known of one table."""

    name: str  # SQL name
    source: str
    rows: int
    columns: tuple[TableColumn, ...]
    joins: tuple[TableJoin, ...] = ()
    notices: tuple[Notice, ...] = ()
    total_rows: tuple[int, ...] = ()  # records that add the others up; left out of calculations

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TableResult:
    """The result of one read-only SELECT, with its proof."""

    sql: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]  # JSON-ready values (numbers, strings, booleans, None)
    tables: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    row_count: int | None = None  # records the result stands on
    record_numbers: tuple[int, ...] = ()  # the first twenty of them
    excluded: tuple[str, ...] = ()  # what was left out and why, one line each
    truncated: bool = False
    milliseconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        out = asdict(self)
        out["rows"] = [list(r) for r in self.rows]
        return out


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, the same record in every interface."""

    question: str
    answer: str
    mode: AnswerMode
    abstained: bool
    citations: tuple[Citation, ...] = ()
    hits: tuple[Hit, ...] = ()  # what was retrieved; the nearest passages when abstained
    sql: str | None = None
    table: TableResult | None = None
    needs: TableCard | None = None  # the table that the question needs a calculation over, which could not be made
    rewritten_question: str | None = None
    retrieval_mode: SearchMode | None = None
    vector_share: float = 1.0
    model: str | None = None
    tokens: dict[str, int] = field(default_factory=dict)  # prompt, answer, context, whole_files
    milliseconds: dict[str, float] = field(default_factory=dict)  # by stage
    checks: tuple[str, ...] = ()  # what the citation check did, one line each
    notes: tuple[str, ...] = ()  # visible fall-backs, dropped chunks
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "answer": self.answer,
            "mode": self.mode,
            "abstained": self.abstained,
            "citations": [c.to_dict() for c in self.citations],
            "sql": self.sql,
            "table": self.table.to_dict() if self.table else None,
            "needs": self.needs.to_dict() if self.needs else None,
            "rewritten_question": self.rewritten_question,
            "retrieval": {"mode": self.retrieval_mode, "vector_share": round(self.vector_share, 4)},
            "model": self.model,
            "tokens": dict(self.tokens),
            "milliseconds": {k: round(v, 1) for k, v in self.milliseconds.items()},
            "checks": list(self.checks),
            "notes": list(self.notes),
            "passages": [h.to_dict() for h in self.hits],
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation."""

    question: str
    rewritten: str | None
    answer: str
    sources: tuple[str, ...] = ()
