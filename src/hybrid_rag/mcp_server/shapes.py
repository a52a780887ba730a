"""Records of the package as the tools give them: fewer fields than the commands' JSON, the same names."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from hybrid_rag.mcp_server.results import clean, shortened, snippet
from hybrid_rag.records import Citation, DocumentInfo, Hit, IndexReport, TableCard

SCHEME = "hybrid-rag"
LONGEST_VALUE = 60  # tokens of a value in a table card
_DOCUMENT = ("source", "kind", "format", "title", "size", "modified", "date", "tags", "language", "pages", "rows",
             "chunks", "chunks_with_vectors", "status")  # fmt: skip
_HIT = (
    "rank",
    "source",
    "kind",
    "title",
    "heading",
    "page",
    "page_label",
    "rows",
    "terms",
    "date",
    "tags",
    "modified",
    "same_text",
    "chunk_id",
)
_CITATION = ("n", "source", "kind", "page", "page_label", "rows", "heading", "quote", "verified", "chunk_id")
_FILE = ("source", "status", "change", "reason", "remedy", "notices")


def document_uri(source: str) -> str:
    return f"{SCHEME}://document/{quote(source)}"


def table_uri(name: str) -> str:
    return f"{SCHEME}://table/{quote(name, safe='')}"


def document(info: DocumentInfo) -> dict[str, Any]:
    body = info.to_dict()
    return clean({"source": info.source, "uri": document_uri(info.source)} | {key: body[key] for key in _DOCUMENT})


def hit(found: Hit, limit: int) -> dict[str, Any]:
    """A hit with a snippet of at most about ``limit`` characters instead of the whole passage."""
    body = found.to_dict()
    text = snippet(found.chunk.text, found.terms, limit)
    return clean({key: body[key] for key in _HIT} | {"text": text, "shortened": len(text) < len(found.chunk.text)})


def citation(cited: Citation) -> dict[str, Any]:
    body = cited.to_dict()
    return clean({key: body[key] for key in _CITATION})


def card(known: TableCard) -> dict[str, Any]:
    """A table card whose values are shown in part when they are long."""
    body = clean(known.to_dict())
    for column in body["columns"]:
        column["values"] = [shortened(value, LONGEST_VALUE) for value in column["values"]]
        for bound in ("minimum", "maximum"):
            if isinstance(column[bound], str):
                column[bound] = shortened(column[bound], LONGEST_VALUE)
    return body


def report(made: IndexReport | None) -> dict[str, Any]:
    """A report with the files that were not read whole; the empty one when there was no run."""
    if made is None:
        return {"started": None, "seconds": 0.0, "counts": {}, "files": [], "skipped": [], "chunks_written": 0, "chunks_embedded": 0,
                "chunks_failed": 0, "embedder": "", "messages": [], "cut": ""}  # fmt: skip
    body = made.to_dict()
    files = [f for f in body["files"] if f["status"] != "read" and f["change"] != "deleted"]
    kept = ("started", "seconds", "counts", "skipped", "chunks_written", "chunks_embedded", "chunks_failed", "embedder", "messages")
    return clean({key: body[key] for key in kept} | {"files": [{key: f[key] for key in _FILE} for f in files], "cut": ""})


def place(body: dict[str, Any]) -> str:
    """Source and place of a hit or citation in words: "a.pdf, page 3", "orders.csv, rows 4-9", "faq.md, Returns > Refunds"."""
    parts = [body["source"]]
    if body["page"] is not None:
        label = body["page_label"]
        parts.append(f"page {body['page']}" + (f" ({label})" if label and label != str(body["page"]) else ""))
    if body["rows"]:
        first, last = body["rows"]
        parts.append(f"row {first}" if first == last else f"rows {first}-{last}")
    if body["heading"]:
        parts.append(" > ".join(body["heading"]))
    return ", ".join(parts)
