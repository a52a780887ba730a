"""Embeddings by an ONNX model in this process: the bundled one, or any folder with model.onnx and tokenizer.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hybrid_rag.digest import file_digest
from hybrid_rag.embedding import Embedded, fingerprint, prefixes_for
from hybrid_rag.errors import EmbeddingError
from hybrid_rag.models import MODEL_FILE, PINS, bundled
from hybrid_rag.onnx_model import MAX_TOKENS, OnnxModel

if TYPE_CHECKING:
    import numpy as np

Pooling = Literal["cls", "mean"]
BUNDLED_DIMENSIONS = 384
POOLING_FILE = "1_Pooling/config.json"  # of a sentence-transformers model


class OnnxEmbedder:
    """An :class:`~hybrid_rag.embedding.Embedder`. Equal texts have equal vectors, in every call and every process.

    Raises ModelError when the model cannot be loaded. Prefixes and pooling that are not given are the model's own.
    """

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        query_prefix: str | None = None,
        document_prefix: str | None = None,
        threads: int = 0,
        pooling: Pooling | None = None,
        digest: str | None = None,
    ) -> None:
        own = prefixes_for(name)
        self._query_prefix = own[0] if query_prefix is None else query_prefix
        self._document_prefix = own[1] if document_prefix is None else document_prefix
        self._pooling = pooling or pooling_of(folder, name)
        self._model = OnnxModel(folder, threads=threads)
        self.name = name
        self.dimensions = len(self._pool(self._model.run(["x"])[0]))
        self.fingerprint = fingerprint(
            name=f"{name}/{self._pooling}",
            digest=digest or file_digest(folder / MODEL_FILE),
            dimensions=self.dimensions,
            document_prefix=self._document_prefix,
            max_tokens=MAX_TOKENS,
        )

    def embed_documents(self, texts: Sequence[str]) -> Embedded:
        """Embed passages, of each the first 512 tokens; no text is computed twice."""
        import numpy as np

        unique = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        vectors, failures = self._embed([self._document_prefix + text for text in unique])
        places = np.array([unique[text] for text in texts], np.int64)
        return Embedded(vectors[places], {i: failures[p] for i, p in enumerate(places.tolist()) if p in failures})

    def embed_query(self, text: str) -> np.ndarray:
        """Embed a query: float32 (dim,). Raises EmbeddingError when the model gives no usable vector."""
        vectors, failures = self._embed([self._query_prefix + text])
        if failures:
            raise EmbeddingError(f"The query could not be embedded: {failures[0]}.")
        return vectors[0]

    def _embed(self, texts: Sequence[str]) -> tuple[np.ndarray, dict[int, str]]:
        """Unit rows (n, dim), and a reason for each row that is zero."""
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for i, output in enumerate(self._model.run(texts)):
            vectors[i] = self._pool(output)
        norms = np.linalg.norm(vectors, axis=1)
        bad = ~np.isfinite(norms) | (norms == 0)
        vectors[bad], norms[bad] = 0, 1
        return vectors / norms[:, None], {i: "the model gave no finite vector" for i in np.flatnonzero(bad).tolist()}

    def _pool(self, output: np.ndarray) -> np.ndarray:
        """(tokens, dim) to (dim,); nothing to do when the model has pooled."""
        if output.ndim == 1:
            return output
        return output[0] if self._pooling == "cls" else output.mean(axis=0)


def pooling_of(folder: Path, name: str) -> Pooling:
    """How a model makes one vector of its tokens': as its own file says, else by its name (bge takes the first token)."""
    if (folder / POOLING_FILE).is_file():
        settings = json.loads((folder / POOLING_FILE).read_text(encoding="utf-8"))
        return "cls" if settings.get("pooling_mode_cls_token") else "mean"
    return "cls" if any(family in name.lower() for family in ("bge", "mxbai", "arctic")) else "mean"


def bundled_fingerprint(document_prefix: str | None = None) -> str:
    """The fingerprint that :func:`bundled_embedder` has, without loading the model."""
    name = "bundled:bge_small_en"
    prefix = prefixes_for(name)[1] if document_prefix is None else document_prefix
    return fingerprint(
        name=f"{name}/cls",
        digest=PINS["bge_small_en"][MODEL_FILE],
        dimensions=BUNDLED_DIMENSIONS,
        document_prefix=prefix,
        max_tokens=MAX_TOKENS,
    )


def bundled_embedder(*, threads: int = 0, query_prefix: str | None = None, document_prefix: str | None = None) -> OnnxEmbedder:
    """The embedder that comes with the package: bge-small-en, 384 dimensions, English."""
    return OnnxEmbedder(
        bundled("bge_small_en"),
        name="bundled:bge_small_en",
        query_prefix=query_prefix,
        document_prefix=document_prefix,
        threads=threads,
        digest=PINS["bge_small_en"][MODEL_FILE],
    )
