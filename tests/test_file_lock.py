"""Many readers or one writer, across processes; a dead holder holds nothing, and a broken-off write leaves its mark."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hybrid_rag.file_lock import LockTimeout, hold

HOLDER = """
import sys, time
from pathlib import Path
from hybrid_rag.file_lock import hold
with hold(Path({path!r}), exclusive={exclusive}, seconds=5):
    print("held", flush=True)
    time.sleep(60)
"""


def other(path: Path, *, exclusive: bool) -> subprocess.Popen[str]:
    """Another process that holds the lock until it is killed."""
    code = HOLDER.format(path=str(path), exclusive=exclusive)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.lock"


@pytest.mark.skipif(sys.platform == "win32", reason="readers take turns there")
def test_readers_share(path: Path) -> None:
    process = other(path, exclusive=False)
    with hold(path, exclusive=False, seconds=0), hold(path, exclusive=False, seconds=0):
        pass
    with pytest.raises(LockTimeout), hold(path, exclusive=True, seconds=0.05):
        pass
    process.kill()
    process.wait()


@pytest.mark.parametrize("exclusive", [True, False])
def test_a_writer_is_alone_and_a_dead_one_holds_nothing(path: Path, exclusive: bool) -> None:
    process = other(path, exclusive=True)
    with pytest.raises(LockTimeout), hold(path, exclusive=exclusive, seconds=0.05):
        pass
    process.send_signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    process.wait()
    with hold(path, exclusive=exclusive, seconds=5) as held:
        assert held.broken_off


def test_a_mark_stays_until_a_write_ends_cleanly(path: Path) -> None:
    with hold(path, exclusive=True, seconds=1) as held:
        assert not held.broken_off
        held.clean = False
    for _ in range(2):
        with hold(path, exclusive=False, seconds=1) as held:
            assert held.broken_off
    with pytest.raises(KeyError), hold(path, exclusive=True, seconds=1):
        raise KeyError  # an error that does not concern what is written
    with hold(path, exclusive=False, seconds=1) as held:
        assert not held.broken_off


def test_threads_exclude_each_other(path: Path) -> None:
    inside, most = [], []

    def write() -> None:
        for _ in range(20):
            with hold(path, exclusive=True, seconds=10):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.0005)
                inside.pop()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80


def test_a_writer_gets_in_between_readers_that_never_stop(path: Path) -> None:
    """Their holds overlap, so that there is no moment without one."""
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            with contextlib.suppress(LockTimeout), hold(path, exclusive=False, seconds=0.1):
                time.sleep(0.02)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            with hold(path, exclusive=True, seconds=30):
                pass
    finally:
        stop.set()
        for thread in threads:
            thread.join()
