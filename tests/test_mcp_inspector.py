"""The MCP Inspector's command line, a client that we did not write, against the block that --print-config gives and over HTTP."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hybrid_rag.service import open_service
from tests.support.mcp_client import SERVER, bare, place
from tests.support.mcp_servers import http_server

INSPECTOR = (
    Path(sys.prefix) / "inspector" / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
)
NODE = shutil.which("node")
pytestmark = [
    pytest.mark.skipif(NODE is None, reason="Node.js is not installed: no MCP Inspector"),
    pytest.mark.skipif(
        not INSPECTOR.is_file(), reason=f"the MCP Inspector is not installed in {sys.prefix}: run `make setup-test` where npm is"
    ),
]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = place(
        tmp_path_factory.mktemp("inspector"),
        {"a.md": "# A\n\nwords about 東京 🔥", "t.csv": "city,n\nBerlin,3\nParis,4\n"},
        mcp={"token": "a-token-of-length"},
    )
    with open_service(file) as service:
        service.index()
    return file


@pytest.fixture(scope="module")
def block(config: Path) -> Path:
    """What the command prints, in a file, as the client wants it."""
    done = subprocess.run([*SERVER, "--print-config", "--config", str(config)], env=bare(config.parent), capture_output=True, check=True)
    file = config.parent / "claude_desktop_config.json"
    file.write_bytes(done.stdout)
    return file


def inspect(home: Path, *arguments: str, code: int = 0) -> tuple[Any, str]:
    """What the Inspector prints as JSON, and its stderr."""
    environment = bare(home) | {"MCP_INSPECTOR_SECRET_STORE": "memory"}
    done = subprocess.run(
        [NODE, str(INSPECTOR), "--cli", *arguments], cwd=home, env=environment, capture_output=True, encoding="utf-8", timeout=120
    )
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout), done.stderr


def test_every_schema_is_portable(block: Path) -> None:
    found, said = inspect(block.parent, "--config", str(block), "--server", "hybrid-rag", "--method", "tools/list", "--strict")
    assert len(found["tools"]) == 12
    assert "Issue:" not in said, said


def test_a_tool_is_called(block: Path) -> None:
    server = ("--config", str(block), "--server", "hybrid-rag", "--method", "tools/call")
    found, _ = inspect(block.parent, *server, "--tool-name", "search_documents", "--tool-arg", "query=東京 🔥", "k=1")
    assert "東京 🔥" in found["structuredContent"]["hits"][0]["text"]
    refused, _ = inspect(block.parent, *server, "--tool-name", "read_document", "--tool-arg", "source=nope.md", code=5)
    assert refused["isError"] and "no document" in refused["content"][0]["text"]


def test_resources_and_prompts_are_had_over_http(config: Path) -> None:
    with http_server(config) as url:
        server = ("--server-url", url, "--transport", "http", "--header", "Authorization: Bearer a-token-of-length")
        listed, _ = inspect(config.parent, *server, "--method", "resources/list")
        uris = {r["name"]: r["uri"] for r in listed["resources"]}
        assert set(uris) == {"a.md", "t.csv", "table t"}
        read, _ = inspect(config.parent, *server, "--method", "resources/read", "--uri", uris["a.md"])
        assert "東京 🔥" in read["contents"][0]["text"]
        prompt, _ = inspect(
            config.parent, *server, "--method", "prompts/get", "--prompt-name", "answer_from_my_documents", "--prompt-args", "question=why"
        )
        assert "why" in prompt["messages"][0]["content"]["text"]
