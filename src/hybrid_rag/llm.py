"""The language model on an Ollama server, through LangChain's ChatOllama: configured once, its failures in our words."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import Cancelled, HybridRagError, OllamaBusyError, OllamaError, OllamaProtocolError
from hybrid_rag.ollama_server import OllamaServer, from_exception, from_status, pause

if TYPE_CHECKING:
    from langchain_ollama import ChatOllama

Message = tuple[str, str]  # role ("system", "human", "ai") and text
_log = logging.getLogger(__name__)
CANCEL_SECONDS = 0.1  # between two looks at whether the asker still wants the answer
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
        self._asked_for_context = False
        self._options = {"temperature": temperature, "seed": seed, "keep_alive": keep_alive}
        self._connect_seconds, self._answer_seconds, self._retries = connect_seconds, answer_seconds, retries
        self._server = OllamaServer(base_url, connect_seconds=connect_seconds, answer_seconds=answer_seconds, retries=retries)

    def check(self) -> None:
        """Is the model there, and how much does it take? ``num_ctx`` becomes the model's own context where that is smaller:
        the server would cut a longer prompt without a word. Raises OllamaUnreachableError or OllamaModelMissingError."""
        self._server.digest(self.model)
        if not self._asked_for_context:
            try:
                self.num_ctx = min(self.num_ctx, self._server.context_length(self.model) or self.num_ctx)
            except OllamaProtocolError as error:  # a server that does not know the request; the configured length then holds
                _log.info("the context length of %s is not known: %s", self.model, error.message)
            self._asked_for_context = True

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
        self,
        messages: Sequence[Message],
        *,
        schema: dict[str, Any] | None = None,
        temperature: float | None = None,
        on_token: Callable[[str], None] | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> Generation:
        """Let the model write; ``schema`` makes it write JSON of that form, ``temperature`` takes the place of the configured
        one. Raises OllamaError, Cancelled.

        A busy server is asked again with back-off. ``on_token`` gets the pieces as they come. ``answer_seconds`` bounds
        the whole answer and each wait for a piece of it. When ``cancel`` says so, the connection is closed at once, also
        before the first piece, and the server stops writing; not for a thread that runs an event loop.
        """
        overrides = ({"format": schema} if schema else {}) | ({} if temperature is None else {"temperature": temperature})
        for attempt in range(self._retries + 1):
            if cancel is not None and cancel():
                raise _cancelled()
            try:
                return self._generate(messages, overrides, on_token, cancel)
            except OllamaBusyError:
                if attempt == self._retries:
                    raise
                time.sleep(pause(attempt))
        raise AssertionError("unreachable")

    def _generate(
        self,
        messages: Sequence[Message],
        overrides: dict[str, Any],
        on_token: Callable[[str], None] | None,
        cancel: Callable[[], bool] | None,
    ) -> Generation:
        model = self.chat_model(**overrides)
        started = time.perf_counter()  # loading LangChain is no part of the server's time
        parts: list[str] = []
        info: dict[str, Any] = {}
        try:
            with closing(_pieces(model, list(messages), cancel)) as pieces:
                for piece in pieces:
                    if text := str(piece.text):
                        parts.append(text)
                        if on_token:
                            on_token(text)
                    info.update(piece.response_metadata or {})
                    if time.perf_counter() - started > self._answer_seconds:
                        raise TimeoutError
        except HybridRagError:
            raise
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


def _cancelled() -> Cancelled:
    return Cancelled("The answer was stopped.", "Ask again.")


def _pieces(model: ChatOllama, messages: list[Message], cancel: Callable[[], bool] | None) -> Iterator[Any]:
    return model.stream(messages) if cancel is None else _stoppable(model, messages, cancel)


def _stoppable(model: ChatOllama, messages: list[Message], cancel: Callable[[], bool]) -> Iterator[Any]:
    """The model's pieces; a wait for one ends when ``cancel`` says so, which a blocking read of a socket would not."""
    loop = asyncio.new_event_loop()
    pieces = model.astream(messages)

    async def following() -> Any:
        return await anext(pieces, None)

    task = loop.create_task(following())
    try:
        while True:
            while not task.done():
                loop.run_until_complete(asyncio.wait([task], timeout=CANCEL_SECONDS))
                if cancel():
                    raise _cancelled()
            if (piece := task.result()) is None:
                return
            yield piece
            task = loop.create_task(following())
    finally:
        task.cancel()
        loop.run_until_complete(asyncio.wait([task]))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
