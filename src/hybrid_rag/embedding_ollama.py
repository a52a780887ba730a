"""Embeddings by an Ollama server, in bounded batches; a text that fails does so alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid_rag.embedding import Embedded, fingerprint, prefixes_for
from hybrid_rag.errors import EmbeddingError, OllamaError, OllamaModelMissingError, OllamaProtocolError
from hybrid_rag.ollama_server import OllamaServer

if TYPE_CHECKING:
    import numpy as np

BATCH_TEXTS = 32
BATCH_CHARACTERS = 60_000
SMALLEST_PIECE = 64  # characters; a shorter text is not split further
MAX_TOKENS = 0  # the server's own limit; part of the fingerprint
CANARY = "dimensions"  # a text that every model embeds
TOO_LONG = ("context length", "too long", "maximum context", "too large")
NOT_FINITE = ("NaN", "Inf value")
NO_VECTOR = "the model gave no finite vector"


class WrongReply(OllamaProtocolError):
    """Not one vector of the right width for each text."""


class OllamaEmbedder:
    """An :class:`~hybrid_rag.embedding.Embedder` over ``POST /api/embed``.

    Building one asks the server for the model. Raises OllamaUnreachableError, OllamaModelMissingError, or OllamaError when
    the model makes no embeddings. Prefixes that are not given are the model's own.
    """

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        connect_seconds: float = 2.0,
        answer_seconds: float = 180.0,
        retries: int = 3,
    ) -> None:
        own = prefixes_for(model)
        self._query_prefix = own[0] if query_prefix is None else query_prefix
        self._document_prefix = own[1] if document_prefix is None else document_prefix
        self._server = OllamaServer(base_url, connect_seconds=connect_seconds, answer_seconds=answer_seconds, retries=retries)
        self._model = model
        self.name = f"ollama:{model}"
        digest = self._server.digest(model)
        self.dimensions = len(self._first_vector())
        self.fingerprint = fingerprint(
            name=self.name.removesuffix(":latest"),
            digest=digest,
            dimensions=self.dimensions,
            document_prefix=self._document_prefix,
            max_tokens=MAX_TOKENS,
        )

    def embed_documents(self, texts: Sequence[str]) -> Embedded:
        """Embed passages; none is sent twice. Raises OllamaError when the server is gone, busy, broken or without the model."""
        import numpy as np

        unique = list(dict.fromkeys(texts))
        outcomes: dict[str, np.ndarray | str] = {}
        for batch in _batches(unique):
            found = self._embed_each(batch, self._document_prefix)
            if all(isinstance(outcome, str) for outcome in found):
                self._request([CANARY])  # is it these texts, or the server? Raises when the server embeds nothing at all
            outcomes.update(zip(batch, found, strict=True))
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        failures: dict[int, str] = {}
        for position, text in enumerate(texts):
            outcome = outcomes[text]
            if isinstance(outcome, str):
                failures[position] = outcome
            else:
                vectors[position] = outcome
        return Embedded(vectors, failures)

    def embed_query(self, text: str) -> np.ndarray:
        """Embed a query: float32 (dim,). Raises EmbeddingError, or OllamaError as above."""
        outcome = self._embed_each([text], self._query_prefix)[0]
        if isinstance(outcome, str):
            raise EmbeddingError(f"The query could not be embedded: {outcome}")
        return outcome

    def _embed_each(self, texts: list[str], prefix: str) -> list[np.ndarray | str]:
        """A unit vector or a reason for each text. A refused batch is halved until the guilty text stands alone."""
        try:
            return [_unit(row) for row in self._request([prefix + text for text in texts])]
        except OllamaError as error:
            if not _is_about_a_text(error):
                raise
            if len(texts) > 1:
                half = len(texts) // 2
                return self._embed_each(texts[:half], prefix) + self._embed_each(texts[half:], prefix)
            return [self._embed_halves(texts[0], prefix, error)]

    def _embed_halves(self, text: str, prefix: str, error: OllamaError) -> np.ndarray | str:
        """A text over the model's context is embedded in two halves and averaged, weighted by length."""
        if not any(sign in error.message for sign in TOO_LONG) or len(text) < 2 * SMALLEST_PIECE:
            return error.message
        cut = text.rfind(" ", len(text) // 4, len(text) // 2 + 1)
        cut = cut if cut > 0 else len(text) // 2
        first, second = (self._embed_each([piece], prefix)[0] for piece in (text[:cut], text[cut:]))
        if isinstance(first, str):
            return first
        if isinstance(second, str):
            return second
        return _unit(first * cut + second * (len(text) - cut))

    def _request(self, texts: list[str]) -> np.ndarray:
        """The server's vectors: float32 (n, dim), not yet of unit length."""
        import numpy as np

        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # a lone surrogate is no JSON
        answer = self._server.post("/api/embed", {"model": self._model, "input": clean, "truncate": False})
        try:
            rows = np.array(answer.get("embeddings"), np.float32)
        except (TypeError, ValueError):
            rows = np.zeros(0, np.float32)
        wanted = (len(texts), getattr(self, "dimensions", rows.shape[-1] if rows.ndim == 2 else 0))
        if rows.shape != wanted:
            raise WrongReply(f"Ollama gave vectors of shape {rows.shape} where {wanted} was due.", "Update the server; look at its log.")
        return rows

    def _first_vector(self) -> np.ndarray:
        try:
            return self._request([CANARY])[0]
        except OllamaError as error:
            if "does not support" not in error.message:
                raise
            raise OllamaError(error.message, "Set ollama.embedding_model to an embedding model, such as nomic-embed-text.") from error


def _batches(texts: Sequence[str]) -> list[list[str]]:
    """The texts in their order, cut where a batch has enough texts or characters."""
    out: list[list[str]] = []
    size = 0
    for text in texts:
        if not out or size + len(text) > BATCH_CHARACTERS or len(out[-1]) >= BATCH_TEXTS:
            out.append([])
            size = 0
        out[-1].append(text)
        size += len(text)
    return out


def _is_about_a_text(error: OllamaError) -> bool:
    """Might another batch succeed? Not when the server is gone, busy or without the model."""
    if isinstance(error, OllamaModelMissingError):
        return False
    if isinstance(error, OllamaProtocolError):
        return isinstance(error, WrongReply)
    return any(sign in error.message for sign in (*TOO_LONG, *NOT_FINITE, "status 500", "status 400"))


def _unit(row: np.ndarray) -> np.ndarray | str:
    import numpy as np

    norm = float(np.linalg.norm(row))
    return row / norm if np.isfinite(norm) and norm > 0 else NO_VECTOR
