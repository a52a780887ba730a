"""Embeddings by an ONNX model in this process: the bundled one, or any folder with model.onnx and tokenizer.json.

Texts are sorted by length and batched by tokens (padding counted), so that little is computed for nothing. The
bundled model is quantised dynamically: its activations are scaled over a whole batch, so a text's vector may
differ in the third decimal with its neighbours in the batch. Equal texts of one call get one vector.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hybrid_rag.embedding import BGE_PREFIXES, Embedded, fingerprint
from hybrid_rag.errors import EmbeddingError, ModelError
from hybrid_rag.models import MODEL_FILE, PINS, TOKENIZER_FILE, bundled, file_digest

if TYPE_CHECKING:
    import numpy as np

MAX_TOKENS = 512
MAX_BATCH = 64


class OnnxModel:
    """A tokenizer and an ONNX session: token rows in, the first output out. Used by embedder and cross-encoder."""

    def __init__(self, folder: Path, *, threads: int = 0, max_tokens: int = MAX_TOKENS) -> None:
        for file in (MODEL_FILE, TOKENIZER_FILE):
            if not (folder / file).is_file():
                raise ModelError(f"There is no {file} in {folder}.", "The folder of an ONNX model holds model.onnx and tokenizer.json.")
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or os.cpu_count() or 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(folder / MODEL_FILE), options, providers=["CPUExecutionProvider"])
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        except Exception as error:  # both libraries raise bare exceptions of their own
            raise ModelError(f"The model in {folder} cannot be loaded: {error}") from error
        self._tokenizer.enable_truncation(max_tokens)
        self._tokenizer.no_padding()
        self._inputs = {node.name for node in self._session.get_inputs()}
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[Any]) -> list[Any]:
        """Token rows of texts or of (text, text) pairs, truncated."""
        return self._tokenizer.encode_batch(list(texts))

    def run(self, rows: Sequence[Any]) -> np.ndarray:
        """The model's first output for one batch of token rows, padded to the longest."""
        import numpy as np

        width = max(len(row.ids) for row in rows)
        feeds = {name: np.zeros((len(rows), width), np.int64) for name in ("input_ids", "attention_mask", "token_type_ids")}
        for i, row in enumerate(rows):
            n = len(row.ids)
            feeds["input_ids"][i, :n] = row.ids
            feeds["attention_mask"][i, :n] = 1
            feeds["token_type_ids"][i, :n] = row.type_ids
        with self._lock:
            return self._session.run(None, {k: v for k, v in feeds.items() if k in self._inputs})[0]


def batches(lengths: Sequence[int], *, batch_tokens: int) -> Iterator[list[int]]:
    """Positions in batches of similar length; a batch times its longest row stays within ``batch_tokens``."""
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if batch and ((len(batch) + 1) * lengths[position] > batch_tokens or len(batch) >= MAX_BATCH):
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch


class OnnxEmbedder:
    """An :class:`~hybrid_rag.embedding.Embedder` over an ONNX model. Raises ModelError when it cannot be loaded."""

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        query_prefix: str = "",
        document_prefix: str = "",
        batch_tokens: int = 1024,
        threads: int = 0,
        pooling: Literal["cls", "mean"] = "cls",
        digest: str | None = None,
    ) -> None:
        self._folder, self._threads = folder, threads
        self._query_prefix, self._document_prefix = query_prefix, document_prefix
        self._batch_tokens, self._pooling = batch_tokens, pooling
        self._model = OnnxModel(folder, threads=threads)
        self.name = name
        self.dimensions = int(self._pool([self._model.encode(["x"])[0]]).shape[1])
        self.fingerprint = fingerprint(
            name=f"{name}/{pooling}",
            digest=digest or file_digest(folder / MODEL_FILE),
            dimensions=self.dimensions,
            document_prefix=document_prefix,
            max_tokens=MAX_TOKENS,
        )

    def embed_documents(self, texts: Sequence[str]) -> Embedded:
        """Embed passages; no text is computed twice."""
        import numpy as np

        unique = list(dict.fromkeys(texts))
        vectors, failures = self._embed([self._document_prefix + _clean(text) for text in unique])
        place = {text: i for i, text in enumerate(unique)}
        order = np.fromiter((place[text] for text in texts), dtype=np.int64, count=len(texts))
        return Embedded(vectors[order], {i: failures[place[text]] for i, text in enumerate(texts) if place[text] in failures})

    def embed_query(self, text: str) -> np.ndarray:
        vectors, failures = self._embed([self._query_prefix + _clean(text)])
        if failures:
            raise EmbeddingError(f"The query could not be embedded: {failures[0]}")
        return vectors[0]

    def _embed(self, texts: Sequence[str]) -> tuple[np.ndarray, dict[int, str]]:
        import numpy as np

        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        if not texts:
            return vectors, {}
        rows = self._model.encode(texts)
        for batch in batches([len(row.ids) for row in rows], batch_tokens=self._batch_tokens):
            vectors[batch] = self._pool([rows[i] for i in batch])
        norms = np.linalg.norm(vectors, axis=1)
        bad = np.flatnonzero(~np.isfinite(norms) | (norms == 0))
        vectors[bad] = 0
        norms[bad] = 1
        return (vectors / norms[:, None]).astype(np.float32), {int(i): "the model gave no finite vector" for i in bad}

    def _pool(self, rows: Sequence[Any]) -> np.ndarray:
        import numpy as np

        output = self._model.run(rows)  # (batch, tokens, dim), or (batch, dim) when the model pools by itself
        if output.ndim == 2:
            return output.astype(np.float32)
        if self._pooling == "cls":
            return output[:, 0].astype(np.float32)
        return np.stack([output[i, : len(row.ids)].mean(axis=0) for i, row in enumerate(rows)]).astype(np.float32)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def bundled_embedder(
    *, batch_tokens: int = 1024, threads: int = 0, query_prefix: str = BGE_PREFIXES[0], document_prefix: str = BGE_PREFIXES[1]
) -> OnnxEmbedder:
    """The embedder that comes with the package: bge-small-en, 384 dimensions, English."""
    return OnnxEmbedder(
        bundled("bge_small_en"),
        name="bundled:bge_small_en",
        query_prefix=query_prefix,
        document_prefix=document_prefix,
        batch_tokens=batch_tokens,
        threads=threads,
        digest=PINS["bge_small_en"][MODEL_FILE],
    )
