"""Ways around a collection that are no search: related and recent documents, documents in time, parts of a document."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import InputError
from hybrid_rag.filters import Filters, document_day
from hybrid_rag.prompts import estimate_tokens
from hybrid_rag.records import KINDS, DocumentInfo, Passage, Rows
from hybrid_rag.retrieval import Retriever

if TYPE_CHECKING:
    from hybrid_rag.catalog import Catalog
    from hybrid_rag.table_store import TableStore

RELATED_CHUNKS = 40  # neighbours looked at for related documents
WORDS_OF_A_DOCUMENT = 1500  # characters that stand for a document without vectors
DEFAULT_ROWS = 20
TOKEN_SAMPLE = 4000  # characters from which the tokens of a document are estimated


@dataclass(frozen=True, slots=True)
class Related:
    """A document near another: the best similarity of its chunks."""

    document: DocumentInfo
    score: float
    stage: str  # "cosine", or "bm25" when there are no vectors

    def to_dict(self) -> dict[str, Any]:
        return {**self.document.to_dict(), "score": round(self.score, 6), "stage": self.stage}


@dataclass(frozen=True, slots=True)
class Timeline:
    """Documents in time order; ``at`` is the place of the one that was asked for."""

    documents: tuple[DocumentInfo, ...]
    at: int

    def to_dict(self) -> dict[str, Any]:
        return {"at": self.at, "documents": [d.to_dict() for d in self.documents]}


def known(catalog: Catalog, source: str) -> DocumentInfo:
    """The document of a source, or the one whose path ends so. Raises InputError with near names."""
    import difflib

    if (info := catalog.document(source)) is not None:
        return info
    documents = catalog.documents()
    ending = [d for d in documents if d.source.endswith("/" + source)]
    if len(ending) == 1:
        return ending[0]
    near = difflib.get_close_matches(source, [d.source for d in documents], n=3, cutoff=0.4)
    raise InputError(f"There is no document {source!r}.", f"Did you mean {', '.join(near)}?" if near else "`hybrid-rag list` shows all.")


def related(retriever: Retriever, source: str, k: int) -> list[Related]:
    """The documents nearest to one: by the mean of its vectors, by its words when it has none. k of them when there are so many."""
    index = retriever.index
    index.refresh()
    info = known(index.catalog, source)
    own = index.catalog.document_number(info.source) or 0
    stage, search = _near(retriever, info, own)
    table, best, depth = index.catalog.document_table(), {}, RELATED_CHUNKS
    while True:
        hits = search(depth)
        for document, (_, score) in zip(index.catalog.documents_of([n for n, _ in hits]), hits, strict=True):
            if document != own and document in table:
                best[document] = max(best.get(document, score), score)
        if len(best) >= k or len(hits) < depth:
            break
        depth *= 4  # the first ones are of few documents, or of this one
    found = [Related(table[d], s, stage) for d, s in best.items()]
    return sorted(found, key=lambda r: (-r.score, r.document.source))[:k]


def _near(retriever: Retriever, info: DocumentInfo, own: int) -> tuple[str, Callable[[int], list[tuple[int, float]]]]:
    """(stage, the n chunks nearest to a document)."""
    import numpy as np

    index = retriever.index
    fingerprint = index.fingerprint
    if fingerprint and info.chunks_with_vectors:
        _, vectors = index.catalog.vectors(fingerprint, numbers=index.catalog.chunk_numbers(documents=[own]))
        mean = vectors.mean(axis=0)
        mean = (mean / max(float(np.linalg.norm(mean)), 1e-9)).astype(np.float32)

        def nearest(n: int) -> list[tuple[int, float]]:
            hits = [hit for kind in KINDS for hit in index.search_vectors(kind, mean, k=n, fingerprint=fingerprint)]
            return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:n]

        return "cosine", nearest
    text = " ".join(s.chunk.text for s in index.catalog.document_chunks(info.source, 0, 3))[:WORDS_OF_A_DOCUMENT]
    query = index.analyzer.query(f"{info.title} {text}")
    return "bm25", lambda n: index.lexical.search(query, k=n)


def recent(catalog: Catalog, k: int, filters: Filters | None) -> list[DocumentInfo]:
    """The latest documents, by their own date, else by the file's."""
    chosen = [d for d in catalog.documents() if filters is None or filters.matches(d)]
    return sorted(chosen, key=lambda d: (document_day(d), d.modified, d.source), reverse=True)[:k]


def timeline(retriever: Retriever, what: str, before: int, after: int, filters: Filters | None) -> Timeline:
    """Documents in time order around a document, or around the best match of a query."""
    catalog = retriever.index.catalog
    retriever.index.refresh()
    anchor = catalog.document(what)
    if anchor is None:
        hits = retriever.search(what, k=1, filters=filters).hits
        if not hits:
            return Timeline((), 0)
        anchor = catalog.document(hits[0].source)
    assert anchor is not None
    ordered = sorted(
        (d for d in catalog.documents() if filters is None or filters.matches(d) or d.source == anchor.source),
        key=lambda d: (document_day(d), d.source),
    )
    place = next(i for i, d in enumerate(ordered) if d.source == anchor.source)
    start = max(0, place - before)
    return Timeline(tuple(ordered[start : place + after + 1]), place - start)


def passage(
    catalog: Catalog,
    store: TableStore,
    source: str,
    *,
    page: int | None = None,
    rows: Rows | None = None,
    heading: str | None = None,
    chunk: str | None = None,
    window: int = 0,
    start: int | None = None,
    max_tokens: int | None = None,
) -> Passage:
    """A part of a document: a page, records, a section, a chunk, what follows a character, or all; cut at ``max_tokens``. Raises InputError."""
    info = known(catalog, source)
    if chunk is not None:
        stored = catalog.chunk_by_id(chunk)
        if stored is None or stored.chunk.source != info.source:
            raise InputError(f"{info.source} has no chunk {chunk!r}.", "`hybrid-rag search --json` shows the ids.")
        if stored.chunk.rows and info.kind == "table":
            rows = stored.chunk.rows
        else:
            return _span(catalog, info, *_around(catalog, info, stored.chunk.ordinal, window), max_tokens)
    if info.kind == "table":
        return _records(store, info, rows, window, max_tokens)
    chunks = [s.chunk for s in catalog.document_chunks(info.source)]
    if page is not None:
        chosen = [c for c in chunks if c.page is not None and abs(c.page - page) <= window]
        if not any(c.page == page for c in chosen):
            raise InputError(f"{info.source} has no page {page} with text.", f"It has {info.pages or 'no'} pages.")
    elif heading is not None:
        wanted = heading.casefold()
        chosen = [c for c in chunks if any(wanted in h.casefold() for h in c.heading)]
        if not chosen:
            raise InputError(f"{info.source} has no heading {heading!r}.", "`hybrid-rag read` without --heading shows the whole document.")
    else:
        length = len(catalog.document_text(info.source))
        if start is not None and not 0 <= start < max(length, 1):
            raise InputError(f"{info.source} has no character {start:,}.", f"It has {length:,}, counted from 0.")
        return _span(catalog, info, start or 0, length, max_tokens)
    return _span(catalog, info, min(c.start for c in chosen), max(c.end for c in chosen), max_tokens, chosen[0].page, chosen[0].heading)


def whole_tokens(catalog: Catalog, sources: Iterable[str]) -> int:
    """What loading the whole documents would cost, in tokens: an estimate from each one's length and its first characters."""
    total = 0.0
    for source in dict.fromkeys(sources):
        info = catalog.document(source)
        if info is None:
            continue
        text = catalog.document_text(source)
        sample = text[:TOKEN_SAMPLE] or "\n".join(s.chunk.text for s in catalog.document_chunks(source, 0, 3))[:TOKEN_SAMPLE]
        total += (len(text) or info.size) * estimate_tokens(sample) / max(len(sample), 1)
    return round(total)


def _around(catalog: Catalog, info: DocumentInfo, ordinal: int, window: int) -> tuple[int, int]:
    chunks = [s.chunk for s in catalog.document_chunks(info.source, ordinal - window, ordinal + window)]
    return min(c.start for c in chunks), max(c.end for c in chunks)


def _span(
    catalog: Catalog,
    info: DocumentInfo,
    start: int,
    end: int,
    max_tokens: int | None,
    page: int | None = None,
    heading: tuple[str, ...] = (),
) -> Passage:
    text = catalog.document_text(info.source)[start:end]
    cut = _cut(text, max_tokens)
    note = "" if cut == len(text) else f"Shown are {cut:,} of {len(text):,} characters; ask for a page, a heading or a chunk to see others."
    return Passage(info.source, "text", info.title, text[:cut], page, info.pages, heading=heading, start=start, end=start + cut,
                   tokens=estimate_tokens(text[:cut]), truncated=bool(note), note=note)  # fmt: skip


def _records(store: TableStore, info: DocumentInfo, rows: Rows | None, window: int, max_tokens: int | None) -> Passage:
    total = info.rows or 0
    first, last = rows or (1, min(total, DEFAULT_ROWS))
    if rows and not 1 <= first <= last <= max(total, 1):
        raise InputError(f"{info.source} has {_named((1, total))}, not {_named(rows)}.", "Records are counted from 1 after the header.")
    first, last = max(1, first - window), min(total, last + window)
    if not total:
        return Passage(info.source, "table", info.title, "", row_count=0, note="The table has no records.")
    header, found = store.rows(info.source, first, last)
    lines: list[str] = []
    kept: list[tuple[str, ...]] = []
    for record in found:
        lines.append("\n".join(f"{name}: {cell}" for name, cell in zip(header, record, strict=True) if cell))
        if max_tokens and kept and estimate_tokens("\n\n".join(lines)) > max_tokens:
            lines.pop()
            break
        kept.append(record)
    shown = (first, first + len(kept) - 1)
    note = "" if shown[1] >= total and first == 1 else f"Shown: {_named(shown)} of {total}; ask for other rows to see them."
    text = "\n\n".join(lines)
    return Passage(info.source, "table", info.title, text, rows=shown, row_count=total, header=header, records=tuple(kept),
                   tokens=estimate_tokens(text), truncated=len(kept) < len(found), note=note)  # fmt: skip


def _named(rows: Rows) -> str:
    """The numbers of records, for people."""
    return f"record {rows[0]}" if rows[0] == rows[1] else f"records {rows[0]} to {rows[1]}"


def _cut(text: str, max_tokens: int | None) -> int:
    """Where to cut a text so that it stays within a budget: at a paragraph or line end."""
    if max_tokens is None or estimate_tokens(text) <= max_tokens:
        return len(text)
    keep = max(1, int(len(text) * max_tokens / estimate_tokens(text)))
    while keep > 1 and estimate_tokens(text[:keep]) > max_tokens:
        keep = int(keep * 0.9)
    return max(text.rfind("\n", keep // 2, keep), 0) or keep
