"""Streamable HTTP: the same tools for many clients, and no way in for pages, strangers and bent names."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from hybrid_rag.mcp_server.http import Guard
from hybrid_rag.service import open_service
from tests.support.mcp_client import SERVER, bare, over_http, place
from tests.support.mcp_servers import http_server

TOKEN = "ein geheimes Wört-7"
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = place(tmp_path_factory.mktemp("http"), {"a.md": "# A\n\nwords about 東京 🔥"})
    with open_service(file) as service:
        service.index()
    return file


@pytest.fixture(scope="module")
def url(config: Path) -> Iterator[str]:
    with http_server(config) as url:
        yield url


@pytest.fixture(scope="module")
def guarded(config: Path) -> Iterator[str]:
    with http_server(config, "--set", "mcp.allowed_hosts=[docs.example]", HYBRID_RAG__MCP__TOKEN=TOKEN) as url:
        yield url


def post(url: str, **headers: str) -> httpx.Response:
    given = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"} | {
        k.replace("_", "-"): v for k, v in headers.items()
    }
    return httpx.post(url, content=json.dumps(INITIALIZE), headers={k: v.encode() for k, v in given.items()}, trust_env=False)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_tools_are_the_same_over_http(url: str, mode: str) -> None:
    with over_http(url, mode=mode) as talk:
        assert len(talk.run(talk.client.list_tools).tools) == 12
        assert "東京 🔥" in talk.call("search_documents", query="東京")["hits"][0]["text"]
        assert talk.call("update_documents")["indexing"]["state"] == "done"
        assert "no document" in talk.refused("read_document", source="nope.md")


def test_only_names_of_this_machine_are_answered(url: str) -> None:
    port = url.split(":")[2].split("/")[0]
    assert post(url).status_code == 200
    for host in (f"localhost:{port}", "localhost", f"127.0.0.1:{port}", "[::1]:1"):
        assert post(url, Host=host).status_code == 200, host
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "docs.example",
        "127.0.0.1@evil.example",
        "",
    ):
        answer = post(url, Host=host)
        assert answer.status_code in (400, 421), host
    for origin in ("http://localhost:6274", f"http://127.0.0.1:{port}", "https://localhost"):
        assert post(url, Origin=origin).status_code == 200, origin
    for origin in ("https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1@evil.example", "file://"):
        answer = post(url, Origin=origin)
        assert answer.status_code == 403 and "mcp.allowed_hosts" in answer.json()["remedy"], origin


def test_without_the_token_nothing_is_answered(guarded: str) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN}x"},
    ):
        answer = post(guarded, **headers)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in answer.text
    assert httpx.get(guarded, trust_env=False).status_code == 401
    assert httpx.delete(guarded, trust_env=False).status_code == 401
    assert post(guarded, Authorization=f"Bearer {TOKEN}").status_code == 200
    assert post(guarded, Authorization=f"bearer  {TOKEN}", Host="docs.example").status_code == 200


def test_a_client_with_the_token_works(guarded: str) -> None:
    with over_http(guarded, token=TOKEN) as talk:
        assert talk.call("search_documents", query="words")["hits"]


def test_a_server_for_other_machines_needs_a_token(config: Path) -> None:
    for host in ("0.0.0.0", "192.0.2.1", "::", "example.org"):
        command = [*SERVER, "--http", "--port", "0", "--host", host, "--config", str(config)]
        done = subprocess.run(command, env=bare(config.parent), capture_output=True, encoding="utf-8", timeout=60)
        assert done.returncode == 2 and "mcp.token is not set" in done.stderr, done.stderr
        assert done.stdout == ""


def test_a_token_that_can_be_guessed_is_refused(config: Path) -> None:
    command = [*SERVER, "--http", "--port", "0", "--config", str(config), "--set", "mcp.token=short"]
    done = subprocess.run(command, env=bare(config.parent), capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == 2 and "mcp.token has 5 characters; 16 are needed" in done.stderr, done.stderr


def test_a_taken_port_is_named(config: Path, url: str) -> None:
    port = url.split(":")[2].split("/")[0]
    done = subprocess.run(
        [*SERVER, "--http", "--port", port, "--config", str(config)],
        env=bare(config.parent),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 1 and f"127.0.0.1:{port}" in done.stderr and "mcp.port" in done.stderr


def test_the_address_that_a_request_came_in_at_is_a_name_of_the_server() -> None:
    guard = Guard(None, ["127.0.0.1"], None)
    for host, status in ((b"192.0.2.7:80", None), (b"192.0.2.8:80", 421)):
        judged = guard.judge({"type": "http", "headers": [(b"host", host)], "server": ("192.0.2.7", 80)})
        assert (judged and judged[0]) == status
    assert guard.judge({"type": "http", "headers": [(b"host", b"127.0.0.1"), (b"host", b"evil")], "server": None})[0] == 421
    assert guard.judge({"type": "http", "headers": [], "server": None})[0] == 421
