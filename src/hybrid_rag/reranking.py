"""The cross-encoder: reads question and passage together and scores how well the one answers the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np


class Reranker(Protocol):
    """Scores passages for a query: float32 (n,) logits, higher is better, comparable between passages of one model."""

    name: str

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray: ...


class OnnxReranker:
    """A :class:`Reranker` over an ONNX cross-encoder. A pair's logit depends on nothing but the pair.

    Raises ModelError when it cannot be loaded.
    """

    def __init__(self, folder: Path, *, name: str, threads: int = 0) -> None:
        from hybrid_rag.onnx_model import OnnxModel

        self.name = name
        self._model = OnnxModel(folder, threads=threads)

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        """Logits of all pairs; pairs are cut at 512 tokens, the longer part first."""
        import numpy as np

        unique = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        logits = np.array([output[0] for output in self._model.run([(query, text) for text in unique])], np.float32)
        return logits[[unique[text] for text in texts]] if len(texts) else logits


def bundled_reranker(*, threads: int = 0) -> OnnxReranker:
    """The cross-encoder that comes with the package, English."""
    from hybrid_rag.models import bundled

    return OnnxReranker(bundled("reranker_en"), name="bundled:reranker_en", threads=threads)
