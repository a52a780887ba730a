"""Starts indexing runs that are to be killed: ``python -m tests.support.killing DIRECTORY DATA``.

Reads commands from stdin, a line each: ``run SECONDS`` forks a run of its own, kills it with SIGKILL so long after it began
to work, and answers "killed" or "done". All libraries are loaded once, so that a kill costs little.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from pathlib import Path

from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from tests.support.embedders import HashEmbedder


def run(directory: Path, data: Path, started: int) -> None:
    os.setsid()  # the readers that it starts die with its group
    index = Index(IndexOptions(directory), create=True)
    os.write(started, b"x")
    ingest(index, IngestOptions(data, workers=1), embedder=lambda: HashEmbedder(delay=0.01))
    index.close()


def killed_after(seconds: float, directory: Path, data: Path) -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            run(directory, data, writing)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    time.sleep(seconds)
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        return "done" if status == 0 else f"failed {status}"
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "killed"


if __name__ == "__main__":
    import numpy  # noqa: F401
    import tantivy  # noqa: F401

    print("ready", flush=True)
    for line in sys.stdin:
        print(killed_after(float(line.split()[1]), Path(sys.argv[1]), Path(sys.argv[2])), flush=True)
