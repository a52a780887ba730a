"""A lock file that several may hold for reading, or one for writing. The system drops the holds of a dead process.

The file remembers a writer that ended in mid-write: it holds a mark while one writes, taken away at a clean end.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_SECONDS = 0.005
MARK = b"writing"


class LockTimeout(Exception):
    """The lock could not be had in time."""


class Hold:
    """A held lock. ``broken_off``: the last writer did not end cleanly."""

    def __init__(self, handle: int, exclusive: bool) -> None:
        self._handle = handle
        self.broken_off = os.fstat(handle).st_size > 0
        self.clean = True  # set to False when a write has failed: the mark stays
        if exclusive:
            os.lseek(handle, 0, os.SEEK_SET)
            os.write(handle, MARK)

    def release(self, exclusive: bool) -> None:
        if exclusive and self.clean:
            os.ftruncate(self._handle, 0)


@contextmanager
def hold(path: Path, *, exclusive: bool, seconds: float) -> Iterator[Hold]:
    """Hold the lock for a block. Raises LockTimeout after ``seconds``. Not to be nested in one thread."""
    give_up = time.monotonic() + seconds
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        with _turn(path, exclusive, give_up):
            _wait(handle, path, exclusive, give_up)
        held = Hold(handle, exclusive)
        try:
            yield held
        finally:
            held.release(exclusive)
    finally:
        os.close(handle)  # which lets go of the lock


@contextmanager
def _turn(path: Path, exclusive: bool, give_up: float) -> Iterator[None]:
    """A writer that waits keeps new readers waiting: else many readers, one after another, would keep it out for ever."""
    gate = os.open(path.with_name(f"{path.name}.turn"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _wait(gate, path, exclusive, give_up)
        yield
    finally:
        os.close(gate)


def _wait(handle: int, path: Path, exclusive: bool, give_up: float) -> None:
    while not _try(handle, exclusive):
        if time.monotonic() >= give_up:
            raise LockTimeout(str(path))
        time.sleep(POLL_SECONDS)


if sys.platform == "win32":
    import msvcrt

    FAR = 1 << 30  # a byte beyond the mark: Windows would keep others from reading a locked one

    def _try(handle: int, exclusive: bool) -> bool:
        """Windows has no shared form here: readers take turns."""
        os.lseek(handle, FAR, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try(handle: int, exclusive: bool) -> bool:
        try:
            fcntl.flock(handle, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def is_held(path: Path) -> bool:
    """True while a process holds the lock for writing; needs no more than the right to read. Raises OSError without a file."""
    handle = os.open(path, os.O_RDONLY)
    try:
        return not _try(handle, exclusive=False)
    finally:
        os.close(handle)
