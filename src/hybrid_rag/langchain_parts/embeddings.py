"""Embedders and LangChain's Embeddings, each as the other."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from hybrid_rag.embedding import Embedded, Embedder, fingerprint
from hybrid_rag.errors import ConfigError, EmbeddingError

if TYPE_CHECKING:
    import numpy as np


class HybridRagEmbeddings(Embeddings):
    """One of our embedders for LangChain's vector stores and retrievers, with its prefixes.

    >>> from hybrid_rag.embedding_onnx import bundled_embedder
    >>> HybridRagEmbeddings(bundled_embedder())  # doctest: +SKIP
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Raises EmbeddingError when a text fails: LangChain has no place for a missing vector."""
        embedded = self.embedder.embed_documents(texts)
        if embedded.failures:
            place, reason = min(embedded.failures.items())
            raise EmbeddingError(
                f"{len(embedded.failures)} of {len(texts)} texts could not be embedded; the first is number {place + 1}: {reason}."
            )
        return embedded.vectors.tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embedder.embed_query(text).tolist()


class LangChainEmbedder:
    """Any LangChain Embeddings as an :class:`~hybrid_rag.embedding.Embedder`.

    ``digest`` tells versions of a model apart; without one only the name and the dimensions do.
    """

    def __init__(self, embeddings: Embeddings, *, name: str = "", digest: str = "") -> None:
        self._embeddings = embeddings
        self.name = f"langchain:{name or _model_name(embeddings)}"
        self.dimensions = len(embeddings.embed_query("dimensions"))
        self.fingerprint = fingerprint(name=self.name, digest=digest, dimensions=self.dimensions, document_prefix="", max_tokens=0)

    def embed_documents(self, texts: Sequence[str]) -> Embedded:
        """No text twice. A text without a finite vector fails alone; an exception of the embeddings is raised as it is."""
        import numpy as np

        unique = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        if not unique:
            return Embedded(np.zeros((0, self.dimensions), np.float32))
        rows = np.array(self._embeddings.embed_documents(list(unique)), np.float32)
        if rows.shape != (len(unique), self.dimensions):
            raise EmbeddingError(f"{self.name} gave vectors of shape {rows.shape} where {(len(unique), self.dimensions)} was due.")
        norms = np.linalg.norm(rows, axis=1)
        bad = ~np.isfinite(norms) | (norms == 0)
        rows[bad], norms[bad] = 0, 1
        places = np.array([unique[text] for text in texts], np.int64)
        return Embedded(
            (rows / norms[:, None])[places], {i: "the model gave no finite vector" for i, p in enumerate(places.tolist()) if bad[p]}
        )

    def embed_query(self, text: str) -> np.ndarray:
        import numpy as np

        vector = np.array(self._embeddings.embed_query(text), np.float32)
        norm = float(np.linalg.norm(vector))
        if not np.isfinite(norm) or norm == 0:
            raise EmbeddingError(f"The query could not be embedded: {self.name} gave no finite vector.")
        return vector / norm


def load_embedder(path: str, **options: object) -> LangChainEmbedder:
    """An Embeddings class by its dotted path ("package.module:Class"), built with the options. Raises ConfigError."""
    module, _, name = path.partition(":")
    try:
        made = getattr(importlib.import_module(module), name)(**options)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"The embeddings {path!r} cannot be loaded: {error}", 'Give them as "package.module:Class".') from error
    if not isinstance(made, Embeddings):
        raise ConfigError(f"{path!r} is not a LangChain Embeddings class.", 'Give one as "package.module:Class".')
    return LangChainEmbedder(made)


def _model_name(embeddings: Embeddings) -> str:
    model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
    return f"{type(embeddings).__name__}/{model}" if model else type(embeddings).__name__
