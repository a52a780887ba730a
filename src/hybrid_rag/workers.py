"""Reading and chunking in worker processes: one that hangs or crashes costs its file and nothing else.

Each worker is a Python process of its own speaking pickled frames over its pipes (both ends are this package on
this machine). Results come in the order of the files, whatever the number of workers; memory is bounded, for a
worker stops when its pipe is full.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from hybrid_rag.chunking import ChunkOptions, chunk
from hybrid_rag.errors import Cancelled, HybridRagError, IndexStorageError, ReadError, TableError
from hybrid_rag.loading import Limits, read
from hybrid_rag.loading.scan import FoundFile
from hybrid_rag.records import Chunk, Document, Notice, RowStream, TableCard, megabytes
from hybrid_rag.storage import storage_error

CHUNKS_A_FRAME = 250
FRAMES_WAITING = 4  # of one worker; it stops when they are not taken
POLL_SECONDS = 0.05
WATCH_SECONDS = 0.25  # between two looks of a worker at its own memory and at its parent
BEAT_ROWS = 20_000  # records of a table between two signs of life
TOO_MUCH_MEMORY = 86  # exit code of a worker that stopped itself
_ENTRY = "from hybrid_rag.workers import main; main()"  # not -m: events must be pickled under the module's own name
_LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are read; ``tables_directory`` is where columnar files of tables are put (None: none are made)."""

    limits: Limits = Limits()
    chunks: ChunkOptions = ChunkOptions()
    loaders: dict[str, str] = field(default_factory=dict)
    tables_directory: Path | None = None


@dataclass(frozen=True, slots=True)
class ChunkBatch:
    source: str
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """A file was read; its chunks came before. ``document.rows`` is None; ``rows`` counts the records of a table."""

    source: str
    document: Document
    rows: int | None = None
    card: TableCard | None = None
    table_file: Path | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A file that could not be read; an IndexStorageError says nothing about the file, but that the index's disk is full."""

    source: str
    error: HybridRagError


Event = ChunkBatch | Finished | Failed


def read_all(
    files: Sequence[FoundFile], options: ReadOptions, *, workers: int = 0, cancel: Callable[[], bool] | None = None
) -> Iterator[Event]:
    """Read files, yielding the chunks of each and then Finished or Failed, in the order given. Raises Cancelled."""
    count = max(1, min(workers or _cores(), len(files)))
    pool = [_Worker(options) for _ in range(count)]
    waiting = deque(files)
    running: deque[_Worker] = deque()
    idle = list(pool)
    try:
        while waiting or running:
            while waiting and idle:
                worker = idle.pop()
                worker.start(waiting.popleft())
                running.append(worker)
            worker = running[0]
            yield from worker.events(cancel)
            running.popleft()
            idle.append(worker)
    finally:
        for worker in pool:
            worker.kill()


def _cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """One worker process, started when first needed and again after it had to be killed."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._file: FoundFile | None = None
        self._frames: deque[Any] = deque()
        self._wake = threading.Condition()
        self._alive_at = 0.0

    def start(self, file: FoundFile) -> None:
        if self._process is None or self._process.poll() is not None:
            self._launch()
        assert self._process is not None and self._process.stdin is not None
        self._file, self._alive_at = file, time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # a worker that died is seen by events()
            _send(self._process.stdin, file)

    def events(self, cancel: Callable[[], bool] | None) -> Iterator[Event]:
        """Events of the present file; a worker over its time or dead gives Failed."""
        assert self._file is not None
        while True:
            if cancel and cancel():
                raise Cancelled("The run was stopped; what was done is kept.")
            frame = self._next()
            if frame is None:
                yield from self._silent()
                if self._process is None:
                    return
            elif isinstance(frame, _Gone):
                yield Failed(self._file.source, self._why(frame.process.wait()))
                self.kill()
                return
            else:
                yield frame
                if isinstance(frame, (Finished, Failed)):
                    return
                with self._wake:
                    if not self._frames:
                        self._alive_at = time.monotonic()  # the time that the caller took is not the worker's

    def _silent(self) -> Iterator[Event]:
        limit = self._options.limits.max_seconds
        if time.monotonic() - self._alive_at > limit:
            assert self._file is not None
            yield Failed(
                self._file.source, ReadError(f"Reading took longer than {limit:g} seconds.", "Raise document_processing.max_seconds.")
            )
            self.kill()

    def _why(self, code: int) -> ReadError:
        """The reason why a worker ended by itself."""
        if code == TOO_MUCH_MEMORY:
            most = megabytes(self._options.limits.max_memory_bytes)
            return ReadError(
                f"Reading the file needs more than {most} MB of memory.", "Raise document_processing.max_memory_mb, or split the file."
            )
        assert self._stderr is not None
        self._stderr.seek(max(0, self._stderr.seek(0, os.SEEK_END) - 500))
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        how = f"signal {-code}" if code < 0 else f"exit code {code}{': ' + lines[-1] if lines else ''}"
        return ReadError(f"Reading the file crashed its process ({how}).", "The file is probably damaged.")

    def _next(self) -> Any:
        with self._wake:
            if not self._frames:
                self._wake.wait(POLL_SECONDS)
            if not self._frames:
                return None
            self._wake.notify_all()
            return self._frames.popleft()

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with self._wake:
                self._frames.clear()
                self._wake.notify_all()
            process.wait()
            for pipe in (process.stdin, process.stdout, self._stderr):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]

    def _launch(self) -> None:
        environment = {**os.environ, "PYTHONUTF8": "1", "PYTHONIOENCODING": "utf-8:backslashreplace", "OMP_NUM_THREADS": "1"}
        paths = [str(Path(__file__).parents[1]), *[p for p in sys.path if p]]
        environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
        self._stderr = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ENTRY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, env=environment
        )
        self._frames = deque()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            _send(self._process.stdin, self._options)
        threading.Thread(target=self._receive, args=(self._process, self._frames), daemon=True).start()

    def _receive(self, process: subprocess.Popen[bytes], frames: deque[Any]) -> None:
        """Move frames from the pipe to the queue; at most a few wait there."""
        assert process.stdout is not None
        try:
            while (frame := _receive(process.stdout)) is not None:
                with self._wake:
                    self._wake.wait_for(lambda: len(frames) < FRAMES_WAITING or self._process is not process)
                    if self._process is not process:
                        return
                    self._alive_at = time.monotonic()
                    if frame is _BEAT:
                        continue
                    frames.append(frame)
                    self._wake.notify_all()
        except (OSError, ValueError, EOFError, pickle.UnpicklingError, AttributeError):
            process.kill()  # it was killed in mid-frame, or wrote something that is no frame
        finally:
            with self._wake:
                if self._process is process:
                    frames.append(_Gone(process))
                    self._wake.notify_all()


@dataclass
class _Gone:
    process: subprocess.Popen[bytes]


_BEAT = object()  # a sign of life: a frame without content


def _send(pipe: IO[bytes], item: Any) -> None:
    data = pickle.dumps(item, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(data)) + data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> Any:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    length = _LENGTH.unpack(head)[0]
    return pickle.loads(pipe.read(length)) if length else _BEAT


def read_one(file: FoundFile, options: ReadOptions, beat: Callable[[], None] = lambda: None) -> Iterator[Event]:
    """Read and chunk one file in this process; ``beat`` is called while nothing is yielded for long."""
    try:
        document = read(file.path, source=file.source, limits=options.limits, loaders=options.loaders)
        batch: list[Chunk] = []
        rows = 0
        for piece in chunk(document, options.chunks):
            rows = max(rows, piece.rows[1] if piece.rows else 0)
            batch.append(piece)
            if len(batch) >= CHUNKS_A_FRAME:
                yield ChunkBatch(file.source, tuple(batch))
                batch = []
        if batch:
            yield ChunkBatch(file.source, tuple(batch))
        card = target = None
        try:
            card, target = _build_table(document, options, beat)
        except TableError as error:  # its text is read all the same
            notice = Notice(error.message, "Its records can be searched, but not counted or queried with SQL.", partial=True)
            document = replace(document, notices=(*document.notices, notice))
        yield Finished(file.source, replace(document, rows=None), rows if document.kind == "table" else None, card, target)
    except IndexStorageError as error:
        yield Failed(file.source, error)
    except HybridRagError as error:
        yield Failed(file.source, error if isinstance(error, ReadError) else ReadError(error.message, error.remedy))
    except MemoryError:
        yield Failed(file.source, ReadError("Reading the file needs more memory than there is.", "Split the file."))
    except RecursionError:
        yield Failed(file.source, ReadError("The file is nested too deeply.", "Simplify or split it."))
    except Exception as error:  # a reader's own fault must not harm the other files; it is reported as what it is
        yield Failed(
            file.source, ReadError(f"Reading the file failed unexpectedly: {type(error).__name__}: {error}", "Please report this.")
        )


def _build_table(document: Document, options: ReadOptions, beat: Callable[[], None]) -> tuple[TableCard | None, Path | None]:
    if document.rows is None or not document.rows.header or options.tables_directory is None:
        return None, None
    from hybrid_rag.tables import build

    target = options.tables_directory / f"{document.sha256[:16]}-{os.getpid()}-{time.monotonic_ns()}.parquet"
    try:
        return build(_beating(document.rows, beat), target, source=document.source), target
    except Exception as error:
        raise storage_error(error, str(options.tables_directory)) or error from error


def _beating(rows: RowStream, beat: Callable[[], None]) -> RowStream:
    def stream() -> Iterator[list[str]]:
        for number, row in enumerate(rows.open()):
            if not number % BEAT_ROWS:
                beat()
            yield row

    return RowStream(rows.header, stream)


def main() -> None:
    """The worker's side: options first, then a file at a time until the pipe closes."""
    stdin, stdout = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not disturb the frames
    options = _receive(stdin)
    threading.Thread(target=_watch, args=(os.getppid(), options.limits.max_memory_bytes), daemon=True).start()

    def beat() -> None:
        stdout.write(_LENGTH.pack(0))
        stdout.flush()

    with contextlib.suppress(BrokenPipeError):  # nobody is left to read for
        while (file := _receive(stdin)) is not None:
            for event in read_one(file, options, beat):
                _send(stdout, event)


def _watch(parent: int, most_bytes: int) -> None:
    """End this process when its parent is gone, or when it takes too much memory."""
    while True:
        time.sleep(WATCH_SECONDS)
        if os.getppid() != parent:
            os._exit(0)
        if _memory() > most_bytes:
            os._exit(TOO_MUCH_MEMORY)


def _memory() -> int:
    """Bytes of memory that this process holds (its peak, where the system tells only that)."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
