"""`hybrid-rag serve` as a person starts it: the address is said, a signal ends it cleanly, and it listens only where it may."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.web import service_over, write_collection


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    settings = [
        f"data.directory={folder / 'data'}",
        f"vector_store.persist_directory={folder / 'index'}",
        "embedding.provider=none",
        "llm.provider=none",
    ]
    given = [part for setting in settings for part in ("--set", setting)]
    return subprocess.Popen(
        [sys.executable, "-m", "hybrid_rag", "serve", *given, *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("serve")
    write_collection(folder)
    service_over(folder).close()
    return folder


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_its_address_answers_and_stops_cleanly(folder: Path, number: signal.Signals) -> None:
    server = start(folder, "--port", "0", "--set", "web.sync_on_start=true")
    try:
        line = server.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert address, line + server.stderr.read()
        assert "Search 20 documents" in httpx.get(address[0], timeout=30).text
        assert httpx.get(f"{address[0]}api/search", params={"q": "parcels"}, timeout=30).json()["hits"]
        server.send_signal(number)
        out, err = server.communicate(timeout=40)
    finally:
        server.kill()
    assert (server.returncode, out) == (0, "")
    assert err.strip() == "Stopped."


def test_it_does_not_listen_elsewhere_without_a_token(folder: Path) -> None:
    server = start(folder, "--host", "0.0.0.0", "--port", "0")
    out, err = server.communicate(timeout=40)
    assert (server.returncode, out) == (2, "")
    assert "web.token is not set" in err and "HYBRID_RAG__WEB__TOKEN=" in err
