"""The SDK's client over a real server process, with plain calls for tests; and a folder for it to serve."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

SERVER = [sys.executable, "-m", "hybrid_rag", "mcp"]


def bare(home: Path) -> dict[str, str]:
    """The environment in which a client starts a server, and no more."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(home)}


def place(folder: Path, files: Mapping[str, str | bytes], **config: dict[str, Any]) -> Path:
    """A data folder and a configuration file with relative paths, below a name with blanks and other letters; the file's path."""
    base = folder / "Meine Akten 東京 é"
    data = base / "doc s"
    data.mkdir(parents=True)
    for name, text in files.items():
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    tree = {
        "data": {"directory": "doc s"}, "vector_store": {"persist_directory": "in dex"}, "embedding": {"provider": "none"}, "llm": {"provider": "none"},
        "ollama": {"base_url": "http://127.0.0.1:9"}, "mcp": {"log_file": "server.log"}, "document_processing": {"workers": 1},
    }  # fmt: skip
    for section, values in config.items():
        tree.setdefault(section, {}).update(values)
    file = base / "conf ig.yaml"
    file.write_text(yaml.safe_dump(tree, allow_unicode=True), encoding="utf-8")
    return file


def data_folder(config: Path) -> Path:
    return config.parent / "doc s"


class Talk:
    """A connected client. ``call`` gives the structured part and fails on a tool error; ``refused`` wants one."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal, self.client = portal, client

    def run(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return self.portal.call(lambda: function(*args, **named))

    def result(self, name: str, /, *, progress: Callable[..., Any] | None = None, **arguments: Any) -> CallToolResult:
        return self.run(self.client.call_tool, name, arguments, progress_callback=progress)

    def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        result = self.result(name, **arguments)
        assert not result.is_error, result.content[0].text
        assert result.content[0].text
        return result.structured_content

    def text(self, name: str, /, **arguments: Any) -> str:
        result = self.result(name, **arguments)
        assert not result.is_error, result.content[0].text
        return result.content[0].text

    def refused(self, name: str, /, **arguments: Any) -> str:
        result = self.result(name, **arguments)
        assert result.is_error, result.content[0].text
        return result.content[0].text


@contextmanager
def connected(client: Client) -> Iterator[Talk]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as inside:
        yield Talk(portal, inside)


@contextmanager
def over_stdio(
    config: Path, *extra: str, mode: str = "legacy", command: list[str] | None = None, env: dict[str, str] | None = None
) -> Iterator[Talk]:
    """A server of its own, started in / with next to no environment; its stderr goes to ``stderr.txt`` beside the configuration."""
    head, *rest = command or SERVER
    parameters = StdioServerParameters(command=head, args=[*rest, "--config", str(config), *extra], env=env or bare(config.parent), cwd="/")
    with (
        (config.parent / "stderr.txt").open("a", encoding="utf-8") as errors,
        connected(Client(stdio_client(parameters, errlog=errors), mode=mode)) as talk,
    ):
        yield talk


@contextmanager
def over_http(url: str, token: str = "", mode: str = "legacy") -> Iterator[Talk]:
    import httpx2

    headers = {"Authorization": f"Bearer {token}".encode()} if token else {}
    transport = streamable_http_client(url, http_client=httpx2.AsyncClient(headers=headers, timeout=60))
    with connected(Client(transport, mode=mode)) as talk:
        yield talk


def size(result: CallToolResult) -> int:
    """Bytes of a result as it goes over the wire: text and structured part."""
    structured = json.dumps(result.structured_content, ensure_ascii=False)
    return len(structured.encode()) + sum(len(part.text.encode()) for part in result.content)
