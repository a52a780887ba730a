"""The Ollama server as seen from here: which models it has, plain requests, and its errors as ours."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import (
    HybridRagError,
    OllamaBusyError,
    OllamaError,
    OllamaModelMissingError,
    OllamaProtocolError,
    OllamaUnreachableError,
)

if TYPE_CHECKING:
    import httpx

FIRST_PAUSE = 0.5  # seconds before the first retry; doubled each time


class OllamaServer:
    """Requests to one server, with time limits and retries when it is busy. No connection is made by building one."""

    def __init__(self, base_url: str, *, connect_seconds: float = 2.0, answer_seconds: float = 180.0, retries: int = 3) -> None:
        self.base_url = base_url.rstrip("/")
        self.connect_seconds, self.answer_seconds, self.retries = connect_seconds, answer_seconds, retries
        self._client: httpx.Client | None = None

    def models(self) -> dict[str, str]:
        """Installed models: name (with tag) -> digest. Raises OllamaUnreachableError."""
        found = self._send("GET", "/api/tags", None, seconds=max(self.connect_seconds, 5.0)).get("models") or []
        return {str(m.get("model") or m.get("name")): str(m.get("digest") or "") for m in found}

    def digest(self, model: str) -> str:
        """The digest of an installed model. Raises OllamaModelMissingError or OllamaUnreachableError."""
        models = self.models()
        for name in (model, f"{model}:latest"):
            if name in models:
                return models[name]
        raise missing(model, self.base_url)

    def context_length(self, model: str) -> int | None:
        """Tokens that a model can take at all, whatever ``num_ctx`` says; None when the server does not tell. Raises OllamaError."""
        about = self._send("POST", "/api/show", {"model": model}, seconds=max(self.connect_seconds, 5.0)).get("model_info")
        found = [value for key, value in about.items() if key.endswith(".context_length")] if isinstance(about, dict) else []
        return int(found[0]) if found and isinstance(found[0], int) else None

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """One request, retried with back-off while the server is busy. Raises OllamaError."""
        for attempt in range(self.retries + 1):
            try:
                return self._send("POST", path, body, seconds=self.answer_seconds)
            except OllamaBusyError:
                if attempt == self.retries:
                    raise
                time.sleep(pause(attempt))
        raise AssertionError("unreachable")

    def _send(self, method: str, path: str, body: dict[str, Any] | None, *, seconds: float) -> dict[str, Any]:
        import httpx

        if self._client is None:
            self._client = httpx.Client(base_url=self.base_url, trust_env=False)
        limits = httpx.Timeout(seconds, connect=self.connect_seconds)
        try:
            response = self._client.request(method, path, json=body, timeout=limits)
            if response.status_code >= 400:
                raise from_status(response.status_code, _error_text(response), (body or {}).get("model", ""), self.base_url)
            answer = response.json()
        except httpx.HTTPError as error:
            raise from_exception(error, self.base_url) from error
        except ValueError as error:
            raise OllamaProtocolError(f"{self.base_url}{path} did not answer with JSON.", "Is another program listening there?") from error
        if not isinstance(answer, dict):
            raise OllamaProtocolError(f"{self.base_url}{path} answered with something unexpected.", "Is another program listening there?")
        if "error" in answer:
            raise OllamaError(f"Ollama at {self.base_url} reports: {answer['error']}")
        return answer


def pause(attempt: int) -> float:
    """Seconds to wait before retry number ``attempt`` (from 0): doubled each time, with a little jitter."""
    return FIRST_PAUSE * 2**attempt * (1 + 0.1 * random.Random(attempt).random())


def missing(model: str, base_url: str) -> OllamaModelMissingError:
    return OllamaModelMissingError(f"Ollama at {base_url} does not have the model {model}.", f"Run `ollama pull {model}`.")


def unreachable(base_url: str, why: str = "") -> OllamaUnreachableError:
    detail = f" ({why})" if why else ""
    return OllamaUnreachableError(
        f"No Ollama server answers at {base_url}{detail}.", "Start it with `ollama serve`, or set ollama.base_url."
    )


def from_status(status: int, text: str, model: str, base_url: str) -> OllamaError:
    """Our error for an HTTP status and the server's own words."""
    if status == 404 and "model" in text and "not found" in text:
        return missing(model, base_url)
    if status == 404:
        return OllamaProtocolError(
            f"{base_url} does not know this request: {text}", "Is it an Ollama server, and a recent one? Check ollama.base_url."
        )
    if status == 503:
        return OllamaBusyError(f"Ollama at {base_url} is busy: {text}", "Wait a little, or raise OLLAMA_MAX_QUEUE on the server.")
    if status in (-1, 200):
        return OllamaProtocolError(f"Ollama at {base_url} stopped in mid-answer: {text}", "Look at the server's log.")
    if "does not support chat" in text:
        return OllamaError(f"Ollama says: {text}.", "Set ollama.llm_model to a chat model, such as llama3.1:latest.")
    if "system memory" in text:
        return OllamaError(f"Ollama at {base_url} cannot load {model}: {text}", "Take a smaller model, or lower ollama.num_ctx.")
    return OllamaError(f"Ollama at {base_url} answered with status {status}: {text}", "Look at the server's log.")


def from_exception(error: Exception, base_url: str) -> OllamaError:
    """Our error for anything that the client libraries raise (httpx, ollama, the built-in ConnectionError)."""
    import httpx

    if isinstance(error, HybridRagError):
        return error if isinstance(error, OllamaError) else OllamaError(error.message, error.remedy)
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, ConnectionError)):
        return unreachable(base_url)
    if isinstance(error, (httpx.TimeoutException, TimeoutError)):
        return OllamaError(f"Ollama at {base_url} took longer than allowed.", "Raise ollama.answer_seconds, or take a smaller model.")
    if isinstance(error, httpx.HTTPError):
        return OllamaProtocolError(f"Ollama at {base_url} broke off its answer: {error}", "Try again; look at the server's log.")
    status = getattr(error, "status_code", None)
    if status is not None:
        return from_status(int(status), str(getattr(error, "error", error)), "", base_url)
    return OllamaProtocolError(f"Ollama at {base_url} gave an answer that cannot be read: {error}")


def _error_text(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return response.text[:200]
