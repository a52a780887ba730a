"""A real Chroma server on a free loopback port, as `chroma run` starts it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 30.0


@contextmanager
def running(folder: Path) -> Iterator[int]:
    """Start a server that keeps its data in ``folder``; gives the port. It is stopped at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    with open(folder / "server.log", "wb") as log:
        environment = {**os.environ, "ANONYMIZED_TELEMETRY": "False"}
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder, env=environment)
        try:
            _wait(server, port, folder / "server.log")
            yield port
        finally:
            server.terminate()
            server.wait(timeout=10)


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    give_up = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up and server.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"the Chroma server did not start:\n{log.read_text(encoding='utf-8', errors='replace')}")
