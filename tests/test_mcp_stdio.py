"""Every line of stdout is JSON-RPC in UTF-8, whatever libraries print, clients send and files hold; and the process ends when it should."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hybrid_rag.service import open_service
from tests.support.files import pdf
from tests.support.mcp_client import SERVER, bare, data_folder, place

# A library that prints where it should not: by Python, past Python, through a child process and through a shell.
NOISY = """
import os, subprocess, sys, warnings
from hybrid_rag import service
from hybrid_rag.cli import main

def noisy(method):
    def call(*args, **named):
        print("Loading weights … 100 %|██████|")
        sys.__stdout__.write("progress\\\\n"); sys.__stdout__.flush()
        os.write(1, b"\\\\xff\\\\xfe native code says hello\\\\n")
        subprocess.run(["echo", "from a child"])
        os.system("echo from a shell")
        warnings.warn("a library warns")
        return method(*args, **named)
    return call

for name in ("search", "documents", "index", "read"):
    setattr(service.Service, name, noisy(getattr(service.Service, name)))
sys.argv[1:1] = ["mcp"]
main()
""".replace("\\\\", "\\")
LOADER = """
import os, sys, warnings
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

class NoisyLoader(BaseLoader):
    def __init__(self, path): self.path = path
    def lazy_load(self):
        print("parsing", self.path)
        os.write(1, b"parsing natively\\n")
        warnings.warn("this file is odd")
        yield Document(page_content="noise from 東京 🔥 about kangaroos")
"""


class Wire:
    """A server spoken to line by line. Every line it writes is kept and must be a JSON-RPC message."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[bytes] = []
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self._answers: dict[Any, dict[str, Any]] = {}
        self._next = 0
        self._dead = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line)
            self._messages.put(json.loads(line.decode("utf-8")))
            if self._dead:
                return

    def shut(self) -> None:
        """Stop reading, as a client that has died."""
        self._dead = True
        self.send("ping")
        self._reader.join()
        self.process.stdout.close()

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: dict[str, Any] | None = None, *, notify: bool = False) -> int:
        self._next += 0 if notify else 1
        message = {
            "jsonrpc": "2.0",
            "method": method,
            **({} if params is None else {"params": params}),
            **({} if notify else {"id": self._next}),
        }
        self.write(json.dumps(message, ensure_ascii=False).encode())
        return self._next

    def answer(self, number: int, seconds: float = 120) -> dict[str, Any]:
        """The answer to a request; other answers are kept, notifications passed over."""
        while number not in self._answers:
            message = self._messages.get(timeout=seconds)
            if "method" not in message:
                self._answers[message["id"]] = message
        return self._answers.pop(number)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.answer(self.send(method, params))

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def open(self) -> dict[str, Any]:
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "東京", "version": "1"}}
        found = self.ask("initialize", about)["result"]
        self.send("notifications/initialized", notify=True)
        return found

    def check(self) -> None:
        """All that was written so far keeps to the protocol."""
        assert self.lines
        for line in self.lines:
            message = json.loads(line.decode("utf-8"))
            assert message["jsonrpc"] == "2.0" and ("id" in message or "method" in message), line
            assert line.endswith(b"\n") and not line.endswith(b"\r\n")


@contextmanager
def started(config: Path, command: list[str] | None = None, cwd: str | Path = "/", **environment: str) -> Iterator[Wire]:
    with (config.parent / "stderr.txt").open("ab") as errors:
        process = subprocess.Popen(
            [*(command or SERVER), "--config", str(config)], cwd="/", env=bare(config.parent) | environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
        try:
            yield Wire(process)
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                stream.close()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = place(tmp_path, {"a.md": "# A\n\nwords about kangaroos in 東京 🔥"}, loaders={".noise": "noisy_loader:NoisyLoader"})
    with open_service(file) as service:
        service.index()
    return file


def test_every_line_is_json_rpc_whatever_is_printed(config: Path) -> None:
    (config.parent / "noisy.py").write_text(NOISY, encoding="utf-8")
    (config.parent / "noisy_loader.py").write_text(LOADER, encoding="utf-8")
    data = data_folder(config)
    whole = pdf(data / "whole.pdf", ["one page", "another page"]).read_bytes()
    (data / "cut.pdf").write_bytes(whole[: len(whole) // 2])  # parsers warn about it and about the next
    (data / "odd.pdf").write_bytes(whole.replace(b"startxref", b"startxxxx"))
    (data / "broken.docx").write_bytes(b"PK\x03\x04 no archive")
    (data / "x.noise").write_text("x", encoding="utf-8")
    command = [sys.executable, str(config.parent / "noisy.py")]
    with started(config, command, PYTHONIOENCODING="cp1252", PYTHONPATH=str(config.parent)) as wire:
        assert wire.open()["serverInfo"]["name"] == "hybrid-rag"
        update = wire.send("tools/call", {"name": "update_documents", "arguments": {}, "_meta": {"progressToken": "東京"}})
        for n in range(40):
            found = wire.call("search_documents", query="kangaroos 東京 🔥", k=3)
            assert "東京 🔥" in found["content"][0]["text"]
            wire.call("list_documents")
            wire.call("read_document", source="a.md")
            assert wire.ask("ping")["result"] == {}
            if n % 10 == 0:
                wire.ask("resources/list")
                wire.write(b"this is no JSON \xff\xfe")
                wire.write(b'{"jsonrpc": "2.0", "id": "\\ud800", "method": 7}')
                assert "error" in wire.ask("no/such/method")
                assert wire.call("search_documents", query="\ud83d kangaroos".encode("utf-8", "replace").decode())["content"]
        done = wire.answer(update)["result"]
        assert not done.get("isError"), done
        assert {f["source"] for f in done["structuredContent"]["report"]["files"] if f["status"] == "not read"} == {
            "cut.pdf",
            "broken.docx",
        }
        assert wire.call("search_documents", query="noise")["structuredContent"]["hits"][0]["source"] == "x.noise"
        wire.check()
        assert any(b"notifications/progress" in line for line in wire.lines)
        assert len(wire.lines) > 170
    errors = (config.parent / "stderr.txt").read_bytes()
    for noise in ("Loading weights … 100 %|██████|", "native code says hello", "from a child", "from a shell"):
        assert noise.encode() in errors


def test_half_a_character_from_a_client_does_not_stop_the_server(config: Path) -> None:
    with started(config) as wire:
        wire.open()
        wire.write(
            b'{"jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": {"name": "search_documents", "arguments": {"query": "\\ud83d kangaroos"}}}'
        )
        wire.write(
            b'{"jsonrpc": "2.0", "id": 901, "method": "tools/call", "params": {"name": "read_document", "arguments": {"source": "\\udc80.md"}}}'
        )
        assert wire.call("search_documents", query="kangaroos")["structuredContent"]["hits"]
        wire.check()


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("way", ["end of input", "interrupt", "terminate", "closed pipe"])
def test_the_server_ends_when_its_client_does(config: Path, way: str) -> None:
    with started(config) as wire:
        wire.open()
        wire.call("search_documents", query="kangaroos")
        if way == "end of input":
            wire.process.stdin.close()
        elif way == "closed pipe":
            wire.shut()
            wire.send("ping")
        else:
            wire.process.send_signal(signal.SIGINT if way == "interrupt" else signal.SIGTERM)
        code = wire.process.wait(timeout=30)
        assert code == {"end of input": 0, "closed pipe": 0, "interrupt": 130, "terminate": -signal.SIGTERM}[way]


def test_a_broken_configuration_is_told_on_stderr_and_never_on_stdout(config: Path) -> None:
    config.write_text("dta: {}\n", encoding="utf-8")
    done = subprocess.run([*SERVER, "--config", str(config)], cwd="/", env=bare(config.parent), input=b"", capture_output=True)
    assert (done.returncode, done.stdout) == (2, b"")
    assert "Did you mean" in done.stderr.decode()


def test_a_log_that_cannot_be_written_stops_nothing(config: Path) -> None:
    blocked = config.parent / "server.log"
    blocked.mkdir()
    with started(config) as wire:
        wire.open()
        assert wire.call("search_documents", query="kangaroos")["structuredContent"]["hits"]
    assert "no log file" in (config.parent / "stderr.txt").read_text(encoding="utf-8")


def test_the_handshake_does_not_wait_for_the_index(config: Path) -> None:
    """Opening the index takes minutes here; initialize, the lists and ping do not wait for it."""
    slow = config.parent / "slow.py"
    slow.write_text(
        "import sys, time\nfrom hybrid_rag import service\nfrom hybrid_rag.cli import main\n"
        "service.Service._open = lambda self, **_: time.sleep(600)\nsys.argv[1:1] = ['mcp']\nmain()\n",
        encoding="utf-8",
    )
    started_at = time.monotonic()
    with started(config, [sys.executable, str(slow)]) as wire:
        wire.open()
        assert len(wire.ask("tools/list")["result"]["tools"]) == 12
        wire.send("tools/call", {"name": "search_documents", "arguments": {"query": "kangaroos"}})
        assert wire.ask("prompts/list")["result"]["prompts"]
        assert wire.ask("ping")["result"] == {}
        print(f"initialize, tools/list, prompts/list, ping: {time.monotonic() - started_at:.2f} s with the start of the process")


def test_nothing_is_written_where_the_client_stands(config: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    with started(config, cwd=tmp_path / "elsewhere") as wire:
        wire.open()
        assert wire.call("update_documents")["structuredContent"]["indexing"]["state"] == "done"
        assert wire.call("search_documents", query="kangaroos")["structuredContent"]["hits"]
    assert list((tmp_path / "elsewhere").iterdir()) == []
