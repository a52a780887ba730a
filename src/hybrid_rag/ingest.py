"""One indexing run: find what changed, read it, make it searchable by words at once, then by meaning."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from hybrid_rag.catalog_schema import FileStamp
from hybrid_rag.digest import file_digest
from hybrid_rag.embedder_run import embed_missing
from hybrid_rag.errors import Cancelled, DataError, IndexStorageError
from hybrid_rag.index import Index
from hybrid_rag.loading.scan import FoundFile, Scan, scan, source_of
from hybrid_rag.records import Change, DocumentInfo, FileReport, IndexReport, Kind, Progress
from hybrid_rag.workers import ChunkBatch, Failed, Finished, ReadOptions, read_all

if TYPE_CHECKING:
    from hybrid_rag.embedding import Embedder
    from hybrid_rag.writer import Writer

FLUSH_SECONDS = 0.8  # new documents are searchable by words at the latest so long after they were read
FLUSH_CHUNKS = 4000
READING = 1  # to be raised when files are read or cut in another way than before: all are read anew then
SAME_MOMENT_NS = 2_000_000_000  # a stamp that close to the run that saw it proves nothing: the file is hashed
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """What to look at and how. ``verify`` hashes every file; ``paths`` restricts the run to parts of the folder."""

    root: Path
    exclude: tuple[str, ...] = ()
    read: ReadOptions = ReadOptions()
    workers: int = 0
    verify: bool = False
    paths: tuple[Path, ...] | None = None
    on_change: str = "rebuild"  # or "refuse": what a new embedder does


Show = Callable[[Progress], None]
Stop = Callable[[], bool]


@dataclass
class _Run:
    """The state of a run, from which its report is made."""

    started: float
    files: dict[str, FileReport] = field(default_factory=dict)
    chunks: int = 0
    read_anew: int = 0  # because settings have changed
    first_searchable: float | None = None
    flushed: float = 0.0
    waiting: int = 0


def ingest(
    index: Index,
    options: IngestOptions,
    *,
    embedder: Callable[[], Embedder | None],
    current: str | None = None,
    progress: Show | None = None,
    cancel: Stop | None = None,
    notes: Iterable[str] = (),
) -> IndexReport:
    """Bring the index up to date. Raises DataError, IndexLockedError, Cancelled (what was done is kept) and others.

    ``current``: name of the index's embedder when it is known to be the configured one; ``embedder`` is then asked for
    only when something is to be embedded. The report is kept in the catalog too.
    """
    show, stop = progress or (lambda event: None), cancel or (lambda: False)
    started, run = datetime.now(UTC), _Run(time.monotonic())
    index.create()
    found = _scan(index, options)
    show(Progress("scan", len(found.files), len(found.files)))
    read_options = replace(options.read, tables_directory=index.tables_directory)
    with index.writer() as writer:
        todo, changes = _difference(writer, found, options, run)
        _read(writer, todo, changes, replace(options, read=read_options), run, show, stop)
        outcome = embed_missing(writer, embedder, current=current, on_change=options.on_change, show=show, stop=stop)
    report = IndexReport(
        started=started.isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - run.started, 3),
        files=tuple(run.files[source] for source in sorted(run.files)),
        skipped=found.skipped,
        counts=_counts(run.files.values()),
        chunks_written=run.chunks,
        chunks_embedded=outcome.embedded,
        chunks_reused=outcome.reused,
        chunks_failed=outcome.failed,
        embedder=outcome.embedder,
        first_searchable_seconds=run.first_searchable,
        messages=tuple(dict.fromkeys([*notes, *_said(run), *outcome.messages, *index.messages])),
    )
    index.messages.clear()
    index.catalog.save_report(report.to_dict())
    return report


def _said(run: _Run) -> list[str]:
    return [f"{run.read_anew} files were read anew: the settings of reading or cutting have changed."] if run.read_anew else []


def _scan(index: Index, options: IngestOptions) -> Scan:
    found = scan(options.root, exclude=options.exclude, loaders=options.read.loaders, below=options.paths)
    if options.paths is None and not found.files and not found.unreadable:
        known = len(index.catalog.stamps())
        if known:
            message = f"The data folder {options.root} is empty, but {known} documents of it are indexed; nothing was deleted."
            raise DataError(message, "If it is unmounted, mount it. To empty the index, run `hybrid-rag reset`.")
        raise DataError(f"No documents found in {options.root}.", "Put CSV, Markdown, PDF, DOCX or TXT files there, or set data.directory.")
    return found


# ---------------------------------------------------------------- what changed


def _difference(writer: Writer, found: Scan, options: IngestOptions, run: _Run) -> tuple[list[FoundFile], dict[str, Change]]:
    """Files to read with the kind of their change; unchanged and vanished ones are dealt with here."""
    known = writer.catalog.stamps()
    todo: list[FoundFile] = []
    changes: dict[str, Change] = {}
    same: list[str] = []
    for file in found.files:
        stamp = known.get(file.source)
        if stamp is None:
            changes[file.source] = "added"
            todo.append(file)
        elif not _read_as_now(options.read, stamp, file):
            run.read_anew += 1
            changes[file.source] = "changed"
            todo.append(file)
        elif not options.verify and _same_stamp(file, stamp):
            same.append(file.source)
        elif stamp.number is not None and stamp.size == file.size and _digest(file.path) == stamp.sha256:
            _touch(writer, file)
            same.append(file.source)
        else:
            changes[file.source] = "changed"
            todo.append(file)
    run.files.update(_unchanged(writer, same))
    gone = _vanished(set(known), found, options)
    if gone:
        hashes = {known[s].sha256: s for s in gone if known[s].sha256}
        for file in todo:
            if changes[file.source] == "added" and hashes and (old := hashes.get(_digest(file.path))):
                changes[file.source] = "renamed"
                gone.discard(old)
                writer.remove([old])
        writer.remove(sorted(gone))
        for source in gone:
            run.files[source] = FileReport(source, "not read", "deleted", reason="the file is gone; so is all that was indexed of it")
    return todo, changes


def reading(options: ReadOptions, source: str, kind: Kind | None) -> str:
    """The settings that decide what is read of a file and how it is cut: "<cutting>/<limits>". ``kind`` None: not known."""
    loader = {suffix.lower(): name for suffix, name in options.loaders.items()}.get(PurePosixPath(source).suffix.lower(), "")
    c = options.chunks
    cutting = {"table": (c.rows,), "text": (c.text_size, c.text_overlap), None: (c.rows, c.text_size, c.text_overlap)}[kind]
    parts = [repr((READING, loader, cutting)), repr(options.limits)]
    return "/".join(hashlib.sha256(part.encode("utf-8")).hexdigest()[:16] for part in parts)


def _read_as_now(options: ReadOptions, stamp: FileStamp, file: FoundFile) -> bool:
    """Would the file be read and cut now as it was? Limits matter for what was not, or not wholly, read."""
    now = reading(options, file.source, stamp.kind)
    return stamp.reading == now or (stamp.status == "read" and stamp.reading.partition("/")[0] == now.partition("/")[0])


def _same_stamp(file: FoundFile, stamp: FileStamp) -> bool:
    """Size and times are those seen before, and old enough to mean something."""
    if (file.size, file.mtime_ns) != (stamp.size, stamp.mtime_ns) or _ctime(file.path) != stamp.ctime_ns:
        return False
    if not stamp.indexed:
        return True
    seen = int(datetime.fromisoformat(stamp.indexed).timestamp() * 1e9)
    return max(file.mtime_ns, stamp.ctime_ns) + SAME_MOMENT_NS < seen


def _vanished(known: set[str], found: Scan, options: IngestOptions) -> set[str]:
    """Known sources that are not there any more, within what this run looked at."""
    gone = known - {file.source for file in found.files}
    if options.paths is not None:
        parts = [source_of(options.root, p) for p in options.paths]
        gone = {s for s in gone if any(part == "." or s == part or s.startswith(part + "/") for part in parts)}
    return {s for s in gone if not any(s.startswith(folder) for folder in found.unreadable)}


def _unchanged(writer: Writer, sources: Sequence[str]) -> dict[str, FileReport]:
    """Reports of files that are as they were, by source; the catalog is read once for all of them."""
    if not sources:
        return {}
    documents = {d.source: d for d in writer.catalog.documents()}
    unread = {u["source"]: u for u in writer.catalog.unread()}
    return {source: _as_before(source, documents.get(source), unread.get(source, {})) for source in sources}


def _as_before(source: str, info: DocumentInfo | None, known: dict[str, Any]) -> FileReport:
    if info is None:
        return FileReport(
            source, "not read", "unchanged", reason=known.get("reason", ""), remedy=known.get("remedy", ""), format=known.get("format")
        )
    reason = "; ".join(n.message for n in info.notices if n.partial)
    return FileReport(
        source,
        info.status,
        "unchanged",
        info.kind,
        info.format,
        reason,
        "",
        info.chunks,
        info.rows,
        info.pages,
        info.encoding,
        info.dialect,
        info.notices,
    )


def _touch(writer: Writer, file: FoundFile) -> None:
    modified = datetime.fromtimestamp(max(0, file.mtime_ns) / 1e9, UTC).isoformat(timespec="seconds")
    writer.touch(file.source, mtime_ns=file.mtime_ns, ctime_ns=_ctime(file.path), modified=modified)


def _digest(path: Path) -> str:
    try:
        return file_digest(path)
    except OSError:
        return ""  # the reader will say why


def _ctime(path: Path) -> int:
    try:
        return path.stat().st_ctime_ns
    except OSError:
        return 0


# ---------------------------------------------------------------- reading


def _read(
    writer: Writer, todo: Sequence[FoundFile], changes: dict[str, Change], options: IngestOptions, run: _Run, show: Show, stop: Stop
) -> None:
    by_source = {file.source: file for file in todo}
    stamps = {file.source: _ctime(file.path) for file in todo}
    number: int | None = None
    run.flushed = time.monotonic()
    done = 0
    for event in read_all(todo, options.read, workers=options.workers, cancel=stop):
        if isinstance(event, ChunkBatch):
            number = number or writer.reserve(event.source)
            writer.add_chunks(number, event.chunks)
            run.chunks += len(event.chunks)
            run.waiting += len(event.chunks)
            continue
        file, change = by_source[event.source], changes[event.source]
        if isinstance(event, Finished):
            number = number or writer.reserve(event.source)
            run.files[event.source] = _finish(writer, number, event, file, stamps[event.source], change, options.read)
        else:
            run.files[event.source] = _fail(writer, event, file, stamps[event.source], options.read)
        number = None
        done += 1
        _flush(writer, run, last=done == len(todo))
        show(_reading(run, done, len(todo), event.source))


def _reading(run: _Run, done: int, total: int, source: str) -> Progress:
    seconds = time.monotonic() - run.started
    rate = done / seconds if seconds else None
    return Progress("read", done, total, source, rate, (total - done) / rate if rate else None)


def _flush(writer: Writer, run: _Run, *, last: bool) -> None:
    if last or run.waiting >= FLUSH_CHUNKS or time.monotonic() - run.flushed > FLUSH_SECONDS:
        writer.flush()
        run.flushed, run.waiting = time.monotonic(), 0
        if run.first_searchable is None and run.chunks:
            run.first_searchable = round(time.monotonic() - run.started, 3)


def _finish(
    writer: Writer, number: int, event: Finished, file: FoundFile, ctime_ns: int, change: Change, options: ReadOptions
) -> FileReport:
    document = event.document
    writer.finish(
        number,
        document,
        mtime_ns=file.mtime_ns,
        ctime_ns=ctime_ns,
        rows=event.rows,
        card=event.card,
        table_file=event.table_file,
        reading=reading(options, event.source, document.kind),
    )
    partial = [n for n in document.notices if n.partial]
    return FileReport(
        source=event.source,
        status="partly" if partial else "read",
        change=change,
        kind=document.kind,
        format=document.format,
        reason="; ".join(n.message for n in partial),
        remedy=" ".join(dict.fromkeys(n.remedy for n in partial if n.remedy)),
        chunks=int(writer.catalog.value("SELECT count(*) FROM chunks WHERE document = ?", (number,))),
        rows=event.rows,
        pages=document.pages,
        encoding=document.encoding,
        dialect=document.dialect,
        notices=document.notices,
    )


def _fail(writer: Writer, event: Failed, file: FoundFile, ctime_ns: int, options: ReadOptions) -> FileReport:
    if isinstance(event.error, IndexStorageError):
        raise event.error  # the disk is full: that says nothing about the file
    form = file.path.suffix.lower().lstrip(".")
    report = FileReport(event.source, "not read", "failed", format=form, reason=event.error.message, remedy=event.error.remedy)
    how = reading(options, event.source, None)
    writer.fail(report, size=file.size, mtime_ns=file.mtime_ns, ctime_ns=ctime_ns, reading=how)
    return report


def _counts(files: Iterable[FileReport]) -> dict[str, int]:
    out = dict.fromkeys(("added", "changed", "renamed", "unchanged", "deleted", "failed", "read", "partly", "not read"), 0)
    for file in files:
        out[file.change] += 1
        if file.change != "deleted":
            out[file.status] += 1
    return out


__all__ = ["Cancelled", "IngestOptions", "ingest"]
