"""The language model on an Ollama server, through LangChain's ChatOllama: configured once, its failures in our words."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import OllamaBusyError, OllamaError, OllamaProtocolError
from hybrid_rag.ollama_server import OllamaServer, from_exception, from_status, pause

if TYPE_CHECKING:
    from langchain_ollama import ChatOllama

Message = tuple[str, str]  # role ("system", "human", "ai") and text
_THOUGHT = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>\s*|\Z)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Generation:
    """What the model wrote (not what it thought aloud before), with the server's own counts.

    ``done_reason``: "stop", or "length" when the answer was cut off.
    """

    text: str
    prompt_tokens: int
    answer_tokens: int
    milliseconds: float
    done_reason: str


class OllamaChat:
    """One chat model on one server. Building it reaches nobody."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        num_ctx: int = 8192,
        temperature: float = 0.0,
        seed: int = 42,
        keep_alive: str = "5m",
        connect_seconds: float = 2.0,
        answer_seconds: float = 180.0,
        retries: int = 3,
        max_answer_tokens: int = 400,
    ) -> None:
        self.base_url, self.model, self.num_ctx, self.max_answer_tokens = base_url, model, num_ctx, max_answer_tokens
        self._options = {"temperature": temperature, "seed": seed, "keep_alive": keep_alive}
        self._connect_seconds, self._answer_seconds, self._retries = connect_seconds, answer_seconds, retries
        self._server = OllamaServer(base_url, connect_seconds=connect_seconds, answer_seconds=answer_seconds, retries=retries)

    def check(self) -> None:
        """Raises OllamaUnreachableError or OllamaModelMissingError."""
        self._server.digest(self.model)

    def available(self) -> bool:
        try:
            self.check()
        except OllamaError:
            return False
        return True

    @property
    def budget(self) -> int:
        """Tokens that a prompt may have, so that the answer still fits into the context."""
        return self.num_ctx - self.max_answer_tokens - 64

    def chat_model(self, **overrides: Any) -> ChatOllama:
        """LangChain's chat model with this configuration."""
        import httpx
        from langchain_ollama import ChatOllama

        limits = httpx.Timeout(self._answer_seconds, connect=self._connect_seconds)
        return ChatOllama(
            base_url=self.base_url,
            model=self.model,
            num_ctx=self.num_ctx,
            num_predict=self.max_answer_tokens,
            reasoning=False,  # a model that can think aloud first answers at once
            client_kwargs={"timeout": limits, "trust_env": False},
            **{**self._options, **overrides},
        )

    def generate(
        self, messages: Sequence[Message], *, schema: dict[str, Any] | None = None, on_token: Callable[[str], None] | None = None
    ) -> Generation:
        """Let the model write; ``schema`` makes it write JSON of that form. Raises OllamaError.

        A busy server is asked again with back-off. ``on_token`` gets the pieces as they come. ``answer_seconds`` bounds
        the whole answer and each wait for a piece of it.
        """
        for attempt in range(self._retries + 1):
            try:
                return self._generate(messages, schema, on_token)
            except OllamaBusyError:
                if attempt == self._retries:
                    raise
                time.sleep(pause(attempt))
        raise AssertionError("unreachable")

    def _generate(self, messages: Sequence[Message], schema: dict[str, Any] | None, on_token: Callable[[str], None] | None) -> Generation:
        started = time.perf_counter()
        parts: list[str] = []
        info: dict[str, Any] = {}
        try:
            for piece in self.chat_model(**({"format": schema} if schema else {})).stream(list(messages)):
                if text := str(piece.text):
                    parts.append(text)
                    if on_token:
                        on_token(text)
                info.update(piece.response_metadata or {})
                if time.perf_counter() - started > self._answer_seconds:
                    raise TimeoutError
        except Exception as error:  # httpx, ollama and langchain raise their own kinds; they are told apart below
            raise self._translated(error) from error
        if not info.get("done_reason"):
            raise OllamaProtocolError(f"Ollama at {self.base_url} broke off its answer.", "Try again; look at the server's log.")
        spent = (time.perf_counter() - started) * 1000
        text = _THOUGHT.sub("", "".join(parts))
        return Generation(text, int(info.get("prompt_eval_count") or 0), int(info.get("eval_count") or 0), spent, str(info["done_reason"]))

    def _translated(self, error: Exception) -> OllamaError:
        status = getattr(error, "status_code", None)
        if status is not None:
            text = str(getattr(error, "error", error))
            return from_status(int(status), text, self.model, self.base_url)
        if isinstance(error, ValueError) and ("No data received" in str(error) or "No generation chunks" in str(error)):
            return OllamaProtocolError(
                f"Ollama at {self.base_url} loaded {self.model} but wrote nothing.", "Try again; look at the server's log."
            )
        return from_exception(error, self.base_url)
