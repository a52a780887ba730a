"""Follow the data folder: settle a burst of changes, index what changed, survive errors, stop cleanly."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from hybrid_rag.errors import Cancelled, HybridRagError, IndexLockedError

if TYPE_CHECKING:
    from hybrid_rag.service import Service

SETTLE_MILLISECONDS = 800  # of quiet before a run
LONGEST_WAIT_MILLISECONDS = 5000
RETRY_SECONDS = 5.0  # after a run that another process's lock has prevented


def watch(service: Service, *, report: Callable[[str], None], stop: threading.Event | None = None) -> None:
    """Index now and whenever something in the folder changes, until ``stop`` is set or Ctrl-C. Raises DataError at the start."""
    from watchfiles import watch as changes_of

    stop = stop or threading.Event()
    folder = service.config.data.directory
    pending = not _run(service, report, stop, first=True)
    report(f"Watching {folder}; Ctrl-C ends.")
    waits = {"debounce": LONGEST_WAIT_MILLISECONDS, "step": SETTLE_MILLISECONDS, "rust_timeout": int(RETRY_SECONDS * 1000)}
    for changes in changes_of(folder, stop_event=stop, yield_on_timeout=True, raise_interrupt=False, **waits):
        if changes or pending:
            pending = not _run(service, report, stop)
    report("Stopped watching.")


def _run(service: Service, report: Callable[[str], None], stop: threading.Event, *, first: bool = False) -> bool:
    """One indexing run; False when it has to be tried again."""
    try:
        result = service.index(cancel=stop.is_set)
    except Cancelled:
        return True
    except IndexLockedError as error:
        report(f"Waiting: {error.message}")
        return False
    except HybridRagError as error:
        if first:
            raise
        report(f"Not indexed: {error.message} {error.remedy}".rstrip())
        return True
    c = result.counts
    if first or any(c[k] for k in ("added", "changed", "renamed", "deleted", "failed")):
        report(
            f"Indexed: {c['added']} new, {c['changed']} changed, {c['renamed']} renamed, {c['deleted']} deleted, {c['failed']} failed ({result.seconds:.1f} s)."
        )
    return True
