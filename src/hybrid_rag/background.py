"""Indexing in a thread of its own, one run at a time, while searches go on.

    service.background.start()            begin a run; while one is under way, another is noted to follow it
    service.background.start(["notes"])   a part of the data folder
    service.background.state              running, progress, last report, last error; ``to_dict()`` for JSON
    service.background.stop()             ask the run to end after its present batch, and wait; what is done is kept
    service.background.wait(seconds)      until nothing runs any more

A server that starts with ``sync_on_start`` calls ``start()`` once; after an upload it calls ``start([path])``. What fails
is kept in the state and logged, never raised into the caller's thread. All methods may be called from any thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from hybrid_rag.errors import Cancelled, HybridRagError
from hybrid_rag.records import IndexReport, Progress

log = logging.getLogger(__name__)


class Runner(Protocol):
    """One indexing run, as ``Service.index`` makes it."""

    def __call__(
        self,
        paths: Iterable[str | Path] | None = None,
        *,
        verify: bool = False,
        progress: Callable[[Progress], None] | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> IndexReport: ...


@dataclass(frozen=True, slots=True)
class BackgroundState:
    """What the background does now, and how its last run ended. ``error`` and ``report`` are of the last run that ended."""

    running: bool = False
    started: str | None = None  # of the run under way, else of the last one; ISO 8601 UTC
    waiting: bool = False  # another run follows the present one
    progress: Progress | None = None
    report: IndexReport | None = None
    error: HybridRagError | None = None
    cancelled: bool = False
    runs: int = 0  # that have ended, well or not

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values; of the report its counts, time and messages (``Service.report()`` gives all of it)."""
        report = self.report
        short = {
            "started": report.started, "seconds": report.seconds, "counts": report.counts, "chunks_embedded": report.chunks_embedded,
            "chunks_failed": report.chunks_failed, "messages": list(report.messages),
        } if report else None  # fmt: skip
        return {
            "running": self.running, "started": self.started, "waiting": self.waiting,
            "progress": asdict(self.progress) if self.progress else None, "report": short,
            "error": self.error.to_dict() if self.error else None, "cancelled": self.cancelled, "runs": self.runs,
        }  # fmt: skip


@dataclass(slots=True)
class _Wish:
    """A run that was asked for. ``paths`` None: all of the data folder."""

    paths: list[str | Path] | None
    verify: bool
    listeners: list[Callable[[Progress], None]]

    def join(self, other: _Wish) -> None:
        """One run that does what both ask for."""
        self.paths = None if self.paths is None or other.paths is None else [*self.paths, *other.paths]
        self.verify |= other.verify
        self.listeners += other.listeners


class Background:
    """Runs of one service. ``run`` does the work; ``leave`` is called in the thread when it ends (to close its connections)."""

    def __init__(self, run: Runner, leave: Callable[[], None] = lambda: None) -> None:
        self._run, self._leave = run, leave
        self._changed = threading.Condition()
        self._state = BackgroundState()
        self._next: _Wish | None = None
        self._stop = threading.Event()

    @property
    def state(self) -> BackgroundState:
        with self._changed:
            return self._state

    def start(
        self, paths: Iterable[str | Path] | None = None, *, verify: bool = False, progress: Callable[[Progress], None] | None = None
    ) -> bool:
        """Index all of the data folder, or parts. True: a run began; False: one is under way, and this one follows it.

        ``progress`` is called in the run's thread.
        """
        wish = _Wish(None if paths is None else list(paths), verify, [progress] if progress else [])
        with self._changed:
            if self._state.running:
                if self._next is None:
                    self._next = wish
                else:
                    self._next.join(wish)
                self._state = replace(self._state, waiting=True)
                return False
            self._stop.clear()
            self._begin()
        threading.Thread(target=self._work, args=(wish,), name="hybrid-rag-index", daemon=True).start()
        return True

    def cancel(self) -> None:
        """Ask the run under way to end after its present batch; what waits is forgotten. Returns at once."""
        with self._changed:
            self._next = None
            self._state = replace(self._state, waiting=False)
            self._stop.set()

    def wait(self, seconds: float | None = None) -> BackgroundState:
        """Wait until nothing runs, at most so long; the state then."""
        with self._changed:
            self._changed.wait_for(lambda: not self._state.running, timeout=seconds)
            return self._state

    def stop(self) -> BackgroundState:
        """Cancel and wait."""
        self.cancel()
        return self.wait()

    # ------------------------------------------------------------ the thread

    def _begin(self) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._state = replace(self._state, running=True, started=now, waiting=False, progress=None, cancelled=False)

    def _work(self, wish: _Wish) -> None:
        while True:
            report, error = self._one(wish)
            with self._changed:
                cancelled = isinstance(error, Cancelled)
                failure = None if cancelled else error
                done = replace(
                    self._state, report=report or self._state.report, error=failure, cancelled=cancelled, runs=self._state.runs + 1
                )
                if self._next is None:
                    self._leave()
                    self._state = replace(done, running=False, progress=None)
                    self._changed.notify_all()
                    return
                wish, self._next = self._next, None
                self._state = done
                self._begin()
                self._changed.notify_all()

    def _one(self, wish: _Wish) -> tuple[IndexReport | None, HybridRagError | None]:
        def show(event: Progress) -> None:
            with self._changed:
                self._state = replace(self._state, progress=event)
            for listener in wish.listeners:
                listener(event)

        try:
            return self._run(wish.paths, verify=wish.verify, progress=show, cancel=self._stop.is_set), None
        except HybridRagError as error:
            if not isinstance(error, Cancelled):
                log.warning("Not indexed: %s %s", error.message, error.remedy)
            return None, error
        except Exception as error:  # nobody is above this thread: it is logged, and told by the state
            log.exception("The indexing run in the background failed")
            return None, HybridRagError(f"The indexing run failed unexpectedly: {type(error).__name__}: {error}", "Please report this.")
