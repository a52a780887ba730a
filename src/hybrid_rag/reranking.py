"""The cross-encoder: reads question and passage together and scores how well the one answers the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np

BATCH_TOKENS = 1024


class Reranker(Protocol):
    """Scores passages for a query: float32 (n,) logits, higher is better, comparable between passages of one model."""

    name: str

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray: ...


class OnnxReranker:
    """A :class:`Reranker` over an ONNX cross-encoder. Raises ModelError when it cannot be loaded."""

    def __init__(self, folder: Path, *, name: str, threads: int = 0) -> None:
        from hybrid_rag.embedding_onnx import OnnxModel

        self.name = name
        self._model = OnnxModel(folder, threads=threads)

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Logits of all pairs; pairs are cut at 512 tokens."""
        import numpy as np

        from hybrid_rag.embedding_onnx import batches

        logits = np.zeros(len(texts), np.float32)
        if not len(texts):
            return logits
        clean = query.encode("utf-8", "replace").decode("utf-8")
        rows = self._model.encode([(clean, text.encode("utf-8", "replace").decode("utf-8")) for text in texts])
        for batch in batches([len(row.ids) for row in rows], batch_tokens=BATCH_TOKENS):
            logits[batch] = self._model.run([rows[i] for i in batch])[:, 0]
        return logits
