"""The parts that a configuration names: embedder, cross-encoder, language model. Built once, when first needed.

Each ``auto`` that falls back says so in a note; an explicit choice that cannot be had raises.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from hybrid_rag.errors import ConfigError, HybridRagError, OllamaError

if TYPE_CHECKING:
    from hybrid_rag.config import Config
    from hybrid_rag.embedding import Embedder
    from hybrid_rag.llm import OllamaChat
    from hybrid_rag.reranking import Reranker

RECHECK_SECONDS = 30.0  # how long the answer "the server is (not) there" is trusted


class Parts:
    """Lazily built models. Thread-safe."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._lock = threading.RLock()  # of the embedders: building one may wait for a server
        self._reranker_lock, self._chat_lock = threading.RLock(), threading.RLock()
        self._embedders: dict[str, Embedder] = {}
        self._reranker: Reranker | None = None
        self._chat: OllamaChat | None = None
        self._chat_checked = 0.0
        self._chat_problem: OllamaError | None = None

    # ------------------------------------------------------------ embedder

    def embedder(self, provider: str) -> Embedder:
        """The embedder of a provider ("bundled", "ollama", "onnx"). Raises ModelError or OllamaError."""
        with self._lock:
            if provider not in self._embedders:
                self._embedders[provider] = self._build_embedder(provider)
            return self._embedders[provider]

    def embedder_of(self, name: str, provider: str) -> Embedder:
        """The embedder that made an index's vectors, when it can be had; else the one of ``provider``.

        They differ while the vectors of a newly configured model are being made. Raises ModelError or OllamaError.
        """
        kind, _, model = name.partition(":")
        if kind not in ("bundled", "ollama") or (kind == provider and model == self._model_of(kind)):
            return self.embedder(provider)
        with self._lock:
            if name not in self._embedders:
                self._embedders[name] = self._build_embedder(kind, model)
            return self._embedders[name]

    def _model_of(self, kind: str) -> str:
        return self._config.ollama.embedding_model if kind == "ollama" else "bge_small_en"

    def choose_provider(self, indexed_with: str | None) -> tuple[str | None, tuple[str, ...]]:
        """Which provider embeds, and notes on why. ``indexed_with``: name of the index's embedder ("ollama:…"), if any."""
        wanted = self._config.embedding.provider
        if wanted == "none":
            return None, ()
        if wanted != "auto":
            return wanted, ()
        if indexed_with:
            return indexed_with.partition(":")[0], ()
        try:
            self.embedder("ollama")
        except OllamaError as error:
            return "bundled", (f"Vectors come from the bundled model: {error.message}",)
        return "ollama", ()

    def _build_embedder(self, provider: str, model: str | None = None) -> Embedder:
        settings, ollama = self._config.embedding, self._config.ollama
        if provider == "ollama":
            from hybrid_rag.embedding_ollama import OllamaEmbedder

            return OllamaEmbedder(
                base_url=ollama.base_url,
                model=model or ollama.embedding_model,
                query_prefix=settings.query_prefix,
                document_prefix=settings.document_prefix,
                connect_seconds=ollama.connect_seconds,
                answer_seconds=ollama.answer_seconds,
                retries=ollama.retries,
            )
        if provider == "onnx" and settings.model_path is None:
            raise ConfigError("embedding.provider is onnx, but embedding.model_path is not set.", "Set it to the model's folder.")
        from hybrid_rag.embedding_onnx import OnnxEmbedder, bundled_embedder

        options = {"threads": settings.threads}
        prefixes = {"query_prefix": settings.query_prefix, "document_prefix": settings.document_prefix}
        options |= {key: value for key, value in prefixes.items() if value is not None}
        if provider == "onnx":
            return OnnxEmbedder(settings.model_path, name=f"onnx:{settings.model_path.name}", **options)
        return bundled_embedder(**options)

    # ------------------------------------------------------------ cross-encoder

    def reranker(self) -> Reranker | None:
        """The bundled cross-encoder, or None when it is switched off. Raises ModelError."""
        if self._config.retrieval.rerank == "off":
            return None
        with self._reranker_lock:
            if self._reranker is None:
                from hybrid_rag.reranking import bundled_reranker

                self._reranker = bundled_reranker(threads=self._config.embedding.threads)
            return self._reranker

    # ------------------------------------------------------------ language model

    def chat(self) -> OllamaChat | None:
        """The language model; None when there is none and the configuration allows that. Raises OllamaError otherwise."""
        provider = self._config.llm.provider
        if provider == "none":
            return None
        with self._chat_lock:
            chat = self._chat_client()
            if time.monotonic() - self._chat_checked > RECHECK_SECONDS or not self._chat_checked:
                self._chat_problem = _problem(chat)
                self._chat_checked = time.monotonic()
            if self._chat_problem is None:
                return chat
            if provider == "ollama":
                raise self._chat_problem
            return None

    def chat_note(self) -> str:
        """Why the last call of :meth:`chat` gave None, for people; "" when it did not, or was not meant to."""
        if self._config.llm.provider == "none" or self._chat_problem is None:
            return ""
        return self._chat_problem.message

    def _chat_client(self) -> OllamaChat:
        if self._chat is None:
            from hybrid_rag.llm import OllamaChat

            settings = self._config.ollama
            self._chat = OllamaChat(
                base_url=settings.base_url,
                model=settings.llm_model,
                num_ctx=settings.num_ctx,
                temperature=settings.temperature,
                seed=settings.seed,
                keep_alive=settings.keep_alive,
                connect_seconds=settings.connect_seconds,
                answer_seconds=settings.answer_seconds,
                retries=settings.retries,
                max_answer_tokens=settings.max_answer_tokens,
            )
        return self._chat


def _problem(chat: OllamaChat) -> OllamaError | None:
    try:
        chat.check()
    except OllamaError as error:
        return error
    except HybridRagError as error:
        return OllamaError(error.message, error.remedy)
    return None
