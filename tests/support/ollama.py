"""A small Ollama server on loopback that keeps to the protocol: scripted answers, recorded requests, faults on demand."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STAMP = "2026-01-02T03:04:05.678901Z"
DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "llama",
    "families": ["llama"],
    "parameter_size": "8.0B",
    "quantization_level": "Q4_K_M",
}


@dataclass
class FakeOllama:
    """The scripted state of a server. ``reply`` gives the model's text for a request body, whole or in pieces; a dict among
    the pieces holds the fields of the last line (counts, ``done_reason``), for a real model behind this server.

    Every fault is off by default. Sizes are in characters where the real server counts tokens.
    """

    models: dict[str, str] = field(default_factory=lambda: {"llama3.1:latest": "sha256:aa", "nomic-embed-text:latest": "sha256:bb"})
    reply: Callable[[dict[str, Any]], str | Iterable[str | dict[str, Any]]] = lambda body: "I don't know."
    dimensions: int = 16
    context: int = 2048  # characters that an embedding input may have
    context_length: int | None = None  # of the model, as /api/show tells it
    busy: int = 0  # so many answers with 503 first
    cut: bool = False  # end the body in mid-stream
    error_line: str = ""  # an error inside the 200 stream
    only_load: bool = False  # answer that the model was loaded, and nothing else
    refusal: tuple[int, str] | None = None  # this status and error for every chat
    html: bool = False  # answer like another program, in HTML
    nan_text: str = "\x00"  # inputs that hold this get "NaN"
    nan_status: int = 400  # 500 with other words, as older servers do
    broken: str = ""  # 500 with these words for every embedding
    short: int = 0  # so many vectors fewer than asked for
    delay: float = 0.0  # seconds before an answer begins
    pause: float = 0.0  # seconds between two pieces
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
        state = self.state
        state.requests.append((self.path, {}))
        models = [{"name": n, "model": n, "size": 1, "digest": d, "details": DETAILS} for n, d in state.models.items()]
        if state.html:
            self._send(200, b"<html>Hello</html>", "text/html")
        elif self.path == "/api/tags":
            self._json(200, {"models": [{**m, "modified_at": STAMP} for m in models]})
        elif self.path == "/api/ps":
            self._json(200, {"models": [{**m, "expires_at": STAMP, "size_vram": 0, "context_length": 4096} for m in models]})
        elif self.path == "/api/version":
            self._json(200, {"version": "0.33.0"})
        elif self.path == "/":
            self._send(200, b"Ollama is running", "text/plain")
        else:
            self._send(404, b"404 page not found", "text/plain")

    def do_POST(self) -> None:
        state = self.state
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw or b"{}")
        state.requests.append((self.path, body))
        time.sleep(state.delay)
        handler = {"/api/embed": self._embed, "/api/chat": self._chat, "/api/generate": self._chat, "/api/show": self._show}.get(self.path)
        if handler is None:
            self._send(404, b"404 page not found", "text/plain")
        elif state.busy > 0:
            state.busy -= 1
            self._json(503, {"error": "server busy, please try again.  maximum pending requests exceeded"})
        elif not raw:
            self._json(400, {"error": "missing request body"})
        elif not body.get("model"):
            self._json(400, {"error": "model is required"})
        else:
            handler(body)

    def _show(self, body: dict[str, Any]) -> None:
        if not self.state.known(body["model"]):
            self._json(404, {"error": f"model '{body['model']}' not found"})
        else:
            info = {"general.architecture": "llama"} | (
                {"llama.context_length": self.state.context_length} if self.state.context_length else {}
            )
            self._json(
                200,
                {"modelfile": "", "parameters": "", "template": "", "details": DETAILS, "model_info": info, "capabilities": ["completion"]},
            )

    def _embed(self, body: dict[str, Any]) -> None:
        state, texts = self.state, body.get("input")
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
            self._json(400, {"error": "invalid input type"})
        elif not state.known(body["model"]):
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

    # ------------------------------------------------------------ chat and generate

    def _chat(self, body: dict[str, Any]) -> None:
        state = self.state
        if not state.known(body["model"]):
            self._json(404, {"error": f"model '{body['model']}' not found"})
        elif state.refusal:
            self._json(state.refusal[0], {"error": state.refusal[1]})
        elif "embed" in body["model"]:
            self._json(400, {"error": f'"{body["model"]}" does not support chat'})
        elif body.get("stream") is False:
            pieces = list(_pieces(state.reply(body)))
            texts = [piece for piece in pieces if isinstance(piece, str)]
            own = {key: value for piece in pieces if isinstance(piece, dict) for key, value in piece.items()}
            self._json(200, {**self._part(body, "".join(texts)), **self._end(body, texts), **own})
        else:
            self._stream(body)

    def _stream(self, body: dict[str, Any]) -> None:
        state = self.state
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if state.only_load:
            self._line({**self._part(body, ""), "done": True, "done_reason": "load"})
            self.wfile.write(b"0\r\n\r\n")
            return
        limit = int((body.get("options") or {}).get("num_predict") or -1)
        sent: list[str] = []
        own: dict[str, Any] = {}
        for piece in _pieces(state.reply(body)):
            if isinstance(piece, dict):
                own |= piece
                continue
            if sent and state.error_line:
                self._line({"error": state.error_line})
                break
            if sent and state.cut:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if len(sent) == limit:
                self._line({**self._end(body, sent), "done_reason": "length"})
                break
            if sent:
                time.sleep(state.pause)
            self._line(self._part(body, piece))
            sent.append(piece)
        else:
            self._line({**self._end(body, sent), **own})
        self.wfile.write(b"0\r\n\r\n")

    def _part(self, body: dict[str, Any], content: str) -> dict[str, Any]:
        told = {"message": {"role": "assistant", "content": content}} if self.path == "/api/chat" else {"response": content}
        return {"model": body["model"], "created_at": STAMP, **told, "done": False}

    def _end(self, body: dict[str, Any], sent: list[str]) -> dict[str, Any]:
        counts = {"prompt_eval_count": 123, "prompt_eval_duration": 2, "eval_count": len(sent), "eval_duration": 2}
        done = {"done": True, "done_reason": "stop", "total_duration": 5, "load_duration": 1, **counts}
        return done if body.get("stream") is False else {**self._part(body, ""), **done}

    # ------------------------------------------------------------ the wire

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


def _pieces(reply: str | Iterable[str | dict[str, Any]]) -> Iterable[str | dict[str, Any]]:
    """A text as a model gives it: word by word."""
    return re.findall(r"\s*\S+|\s+$", reply) if isinstance(reply, str) else reply


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up in mid-answer is part of the tests."""


@contextmanager
def running(state: FakeOllama | None = None) -> Iterator[FakeOllama]:
    """The server for the time of a block."""
    state = state or FakeOllama()
    handler = type("Handler", (_Handler,), {"state": state})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
