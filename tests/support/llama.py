"""A real small model (GGUF, run by llama.cpp in this process) that answers for the test server.

The model's file is not part of the project. It is looked for at the path in the environment variable, then in the
cache folder where scripts/fetch_test_model.py puts it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.ollama import FakeOllama

VARIABLE = "HYBRID_RAG_TEST_MODEL"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hybrid-rag" / "smollm2.gguf"


def model_file() -> Path | None:
    """Where the small model is, or None."""
    given = os.environ.get(VARIABLE)
    found = Path(given) if given else CACHE
    return found if found.is_file() else None


def why_not() -> str:
    """The reason for which there is no real model to test with; empty when there is one."""
    try:
        import xllamacpp  # noqa: F401
    except ImportError as error:
        return f"xllamacpp cannot be imported ({error}); it is in the extra `test`"
    if model_file() is None:
        return f"no model at ${VARIABLE} or {CACHE}: run `python scripts/fetch_test_model.py`"
    return ""


@contextmanager
def loaded(path: Path, *, num_ctx: int = 4096, threads: int = 1) -> Iterator[Callable[[dict[str, Any]], Iterator[str | dict[str, Any]]]]:
    """The model as a ``reply`` for :class:`FakeOllama`: pieces of text, then the model's own counts."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = num_ctx, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cpuparams.poll = params.cpuparams_batch.poll = 0  # do not spin on a core that others need
    params.verbosity = -1
    server = xllamacpp.Server(params)
    with httpx.Client(base_url=server.listening_address, trust_env=False, timeout=3600) as client:
        yield lambda body: _reply(client, body)
    del server


def _reply(client: httpx.Client, body: dict[str, Any]) -> Iterator[str | dict[str, Any]]:
    options = body.get("options") or {}
    request = {
        "messages": body["messages"],
        "temperature": options.get("temperature", 0.8),
        "seed": options.get("seed", 0),
        "max_tokens": options.get("num_predict", -1),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if isinstance(body.get("format"), dict):
        request["response_format"] = {"type": "json_schema", "json_schema": {"schema": body["format"]}}
    end: dict[str, Any] = {}
    with client.stream("POST", "/v1/chat/completions", json=request) as response:
        if response.status_code >= 400:
            raise RuntimeError(response.read().decode())
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            item = json.loads(line.removeprefix("data: "))
            for choice in item.get("choices") or []:
                if text := choice["delta"].get("content"):
                    yield text
                if choice.get("finish_reason"):
                    end["done_reason"] = "length" if choice["finish_reason"] == "length" else "stop"
            if usage := item.get("usage"):
                end |= {"prompt_eval_count": usage["prompt_tokens"], "eval_count": usage["completion_tokens"]}
    yield end


def answering(reply: Callable[[dict[str, Any]], Any]) -> FakeOllama:
    """A server's state with a chat model only, which is the real one (no embeddings)."""
    return FakeOllama(models={"llama3.1:latest": "sha256:aa"}, reply=reply)
