"""One writer at a time. The operating system drops the lock of a process that died, so none is ever stale."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hybrid_rag.errors import HybridRagError, IndexLockedError
from hybrid_rag.file_lock import is_held

LOCK_FILE, HOLDER_FILE = "lock", "lock.json"
PATIENCE_SECONDS, POLL_SECONDS = 10.0, 0.002  # looks at the lock by other processes must not make a writer fail


@contextmanager
def write_lock(directory: Path) -> Iterator[None]:
    """Hold the lock of an index directory. Raises IndexLockedError, which says who holds it, since when, and where."""
    from filelock import FileLock, Timeout

    lock = FileLock(str(directory / LOCK_FILE), thread_local=False)
    give_up = time.monotonic() + PATIENCE_SECONDS
    try:
        while not lock.is_locked:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                if is_locked(directory) or time.monotonic() > give_up:
                    message = f"The index is being written by {holder(directory) or 'another process'}."
                    raise IndexLockedError(message, "Wait for it to finish, or stop it.") from None
                time.sleep(POLL_SECONDS)  # somebody looks at the lock
    except OSError as error:
        raise HybridRagError(
            f"The index directory {directory} cannot be written: {error.strerror}.", "Check its permissions and the disk."
        ) from error
    try:
        about = {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat(timespec="seconds"),
                 "command": " ".join(Path(a).name if i == 0 else a for i, a in enumerate(sys.argv[:3]))}  # fmt: skip
        with contextlib.suppress(OSError):  # only an explanation for others
            (directory / HOLDER_FILE).write_text(json.dumps(about), encoding="utf-8")
        yield
        with contextlib.suppress(OSError):
            (directory / HOLDER_FILE).unlink()
    finally:
        lock.release()


def is_locked(directory: Path) -> bool:
    """True while a process holds the lock. Looking takes nothing away from others and writes nothing."""
    try:
        return is_held(directory / LOCK_FILE)
    except OSError:
        return False  # there is no lock file, or none that this process may open


def holder(directory: Path) -> str:
    """Who wrote last, in words; "" when nothing is known."""
    try:
        about = json.loads((directory / HOLDER_FILE).read_text(encoding="utf-8"))
        return f"process {about['pid']} on {about['host']} since {about['since']} ({about['command']})"
    except (OSError, ValueError, KeyError):
        return ""
