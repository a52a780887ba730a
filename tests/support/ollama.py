"""A small Ollama server on loopback that keeps to the protocol: scripted answers, recorded requests, faults on demand."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STAMP = "2026-01-02T03:04:05.678901Z"


@dataclass
class FakeOllama:
    """The scripted state of a server. ``reply`` gives the model's text for a request body."""

    models: dict[str, str] = field(default_factory=lambda: {"llama3.1:latest": "sha256:aa", "nomic-embed-text:latest": "sha256:bb"})
    reply: Callable[[dict[str, Any]], str] = lambda body: "I don't know."
    dimensions: int = 16
    context: int = 2048  # characters that an embedding input may have
    busy: int = 0  # so many answers with 503 first
    cut: bool = False  # end the body in mid-stream
    error_line: str = ""  # an error inside the 200 stream
    nan_text: str = "\x00"  # inputs that hold this get "NaN"
    nan_status: int = 400  # 500 with other words, as older servers do
    broken: str = ""  # 500 with these words for every embedding
    short: int = 0  # so many vectors fewer than asked for
    delay: float = 0.0
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    url: str = ""

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [body for p, body in self.requests if p == path]

    def known(self, model: str) -> bool:
        return model in self.models or f"{model}:latest" in self.models


def vector(text: str, dimensions: int) -> list[float]:
    """A unit vector that depends on the text only."""
    raw = [b - 127.5 for b in hashlib.shake_256(text.encode()).digest(dimensions)]
    norm = sum(x * x for x in raw) ** 0.5
    return [x / norm for x in raw]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement
    state: FakeOllama

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        self.state.requests.append((self.path, {}))
        if self.path == "/api/tags":
            details = {"family": "llama", "format": "gguf"}
            models = [{"name": n, "model": n, "modified_at": STAMP, "size": 1, "digest": d, "details": details} for n, d in self.state.models.items()]
            self._json(200, {"models": models})
        elif self.path == "/api/version":
            self._json(200, {"version": "0.33.0"})
        elif self.path == "/":
            self._send(200, b"Ollama is running", "text/plain")
        else:
            self._send(404, b"404 page not found", "text/plain")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        self.state.requests.append((self.path, body))
        time.sleep(self.state.delay)
        if self.state.busy > 0:
            self.state.busy -= 1
            self._json(503, {"error": "server busy, please try again.  maximum pending requests exceeded"})
        elif not body.get("model"):
            self._json(400, {"error": "model is required"})
        elif self.path == "/api/embed":
            self._embed(body)
        elif self.path == "/api/chat":
            self._chat(body)
        else:
            self._send(404, b"404 page not found", "text/plain")

    def _embed(self, body: dict[str, Any]) -> None:
        state, texts = self.state, body["input"] if isinstance(body["input"], list) else [body["input"]]
        if not state.known(body["model"]):
            self._json(404, {"error": f'model "{body["model"]}" not found, try pulling it first'})
        elif state.broken:
            self._json(500, {"error": state.broken})
        elif any(state.nan_text in t for t in texts):
            old = "failed to encode response: json: unsupported value: NaN"
            self._json(state.nan_status, {"error": old if state.nan_status == 500 else "embedding contains NaN or Inf values"})
        elif any(len(t) > state.context for t in texts):
            self._json(400, {"error": "the input length exceeds the context length"})
        else:
            rows = [vector(t, state.dimensions) for t in texts][: len(texts) - state.short]
            self._json(200, {"model": body["model"], "embeddings": rows, "total_duration": 1, "load_duration": 1, "prompt_eval_count": 1})

    def _chat(self, body: dict[str, Any]) -> None:
        state = self.state
        if not state.known(body["model"]):
            self._json(404, {"error": f"model '{body['model']}' not found"})
            return
        text = state.reply(body)
        words = [w + " " for w in text.split(" ")]
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i, word in enumerate(words):
            if i == 1 and state.error_line:
                self._line({"error": state.error_line})
                break
            if i == 1 and state.cut:
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            content = word if i < len(words) - 1 else word[:-1]
            self._line({"model": body["model"], "created_at": STAMP, "message": {"role": "assistant", "content": content}, "done": False})
        else:
            last = {"model": body["model"], "created_at": STAMP, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop",
                    "total_duration": 5, "load_duration": 1, "prompt_eval_count": 123, "prompt_eval_duration": 2, "eval_count": len(words), "eval_duration": 2}  # fmt: skip
            self._line(last)
        self.wfile.write(b"0\r\n\r\n")

    def _line(self, item: dict[str, Any]) -> None:
        data = (json.dumps(item) + "\n").encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _json(self, status: int, item: dict[str, Any]) -> None:
        self._send(status, json.dumps(item).encode(), "application/json; charset=utf-8")

    def _send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if self.state.cut else data)
        self.close_connection = self.close_connection or self.state.cut


@contextmanager
def running(state: FakeOllama | None = None) -> Iterator[FakeOllama]:
    """The server for the time of a block."""
    state = state or FakeOllama()
    handler = type("Handler", (_Handler,), {"state": state})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
