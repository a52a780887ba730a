"""An HTTP server process for a test, on a free port."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.mcp_client import SERVER, bare


@contextmanager
def http_server(config: Path, *extra: str, **environment: str) -> Iterator[str]:
    """The address of a server that was started as a person would, with ``--http``."""
    log = config.parent / "http-stderr.txt"
    command = [*SERVER, "--http", "--port", "0", "--config", str(config), *extra]
    with log.open("wb") as errors:
        process = subprocess.Popen(command, cwd="/", env=bare(config.parent) | environment, stdout=errors, stderr=errors)
    try:
        end = time.monotonic() + 60
        while not (found := re.search(r"http://\S+/mcp", log.read_text(encoding="utf-8"))):
            assert process.poll() is None and time.monotonic() < end, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        yield found[0]
    finally:
        process.terminate()
        process.wait(timeout=20)
