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


class OllamaEmbedder:
    """An :class:`~hybrid_rag.embedding.Embedder` over ``POST /api/embed``.

    Building one asks the server for the model. Raises OllamaUnreachableError or OllamaModelMissingError.
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
        self.dimensions = len(self._request(["dimensions"])[0])
        self.fingerprint = fingerprint(
            name=self.name, digest=digest, dimensions=self.dimensions, document_prefix=self._document_prefix, max_tokens=MAX_TOKENS
        )

    def embed_documents(self, texts: Sequence[str]) -> Embedded:
        """Embed passages. Raises OllamaError when the server is gone, busy or without the model."""
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        failures: dict[int, str] = {}
        for batch in _batches(texts):
            prefixed = [self._document_prefix + texts[i] for i in batch]
            for position, outcome in zip(batch, self._embed_each(prefixed), strict=True):
                if isinstance(outcome, str):
                    failures[position] = outcome
                else:
                    vectors[position] = outcome
        return Embedded(vectors, failures)

    def embed_query(self, text: str) -> np.ndarray:
        outcome = self._embed_each([self._query_prefix + text])[0]
        if isinstance(outcome, str):
            raise EmbeddingError(f"The query could not be embedded: {outcome}")
        return outcome

    def _embed_each(self, texts: list[str]) -> list[np.ndarray | str]:
        """A unit vector or a reason for each text. A refused batch is halved until the guilty text stands alone."""
        try:
            return [_unit(row) for row in self._request(texts)]
        except OllamaError as error:
            if not _is_about_a_text(error):
                raise
            if len(texts) > 1:
                half = len(texts) // 2
                return self._embed_each(texts[:half]) + self._embed_each(texts[half:])
            return [self._embed_pieces(texts[0], error)]

    def _embed_pieces(self, text: str, error: OllamaError) -> np.ndarray | str:
        """A text over the model's context is embedded in two halves and averaged (weighted by length)."""
        if not _is_too_long(error) or len(text) < 2 * SMALLEST_PIECE:
            return error.message
        cut = text.rfind(" ", 0, len(text) // 2 + 1)
        cut = cut if cut > len(text) // 4 else len(text) // 2
        first, second = self._embed_each([text[:cut]])[0], self._embed_each([text[cut:]])[0]
        if isinstance(first, str):
            return first
        if isinstance(second, str):
            return second
        return _unit(first * cut + second * (len(text) - cut))

    def _request(self, texts: list[str]) -> list[list[float]]:
        answer = self._server.post("/api/embed", {"model": self._model, "input": texts, "truncate": False})
        rows = answer.get("embeddings")
        if not isinstance(rows, list) or len(rows) != len(texts):
            got = len(rows) if isinstance(rows, list) else "no"
            raise OllamaProtocolError(f"Ollama gave {got} vectors for {len(texts)} texts.", "Update the server; look at its log.")
        return rows


def _batches(texts: Sequence[str]) -> list[list[int]]:
    out: list[list[int]] = []
    size = BATCH_CHARACTERS
    for i, text in enumerate(texts):
        if size + len(text) > BATCH_CHARACTERS or len(out[-1]) >= BATCH_TEXTS:
            out.append([])
            size = 0
        out[-1].append(i)
        size += len(text)
    return out


def _is_too_long(error: OllamaError) -> bool:
    return "context length" in error.message or "too long" in error.message


def _is_about_a_text(error: OllamaError) -> bool:
    if isinstance(error, OllamaModelMissingError):
        return False
    return _is_too_long(error) or "NaN" in error.message or "status 500" in error.message or "status 400" in error.message


def _unit(row: Sequence[float] | np.ndarray) -> np.ndarray | str:
    import numpy as np

    vector = np.asarray(row, np.float32)
    norm = float(np.linalg.norm(vector))
    if not np.isfinite(norm) or norm == 0:
        return "the model gave no finite vector"
    return vector / norm
