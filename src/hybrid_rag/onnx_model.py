"""An ONNX model with its tokenizer, run in this process: what the embedder and the cross-encoder share.

Every text is run alone, on as many threads as there are cores. The bundled models are quantised dynamically, that is,
activations are scaled over all that is computed together: in a batch a text's vector depends on its neighbours (cosine to
the vector of the text alone down to .974). Alone it depends on nothing but the text, nothing is padded, and it is faster
than batches (docs/models.md).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import ModelError
from hybrid_rag.models import MODEL_FILE, TOKENIZER_FILE

if TYPE_CHECKING:
    import numpy as np

MAX_TOKENS = 512
NO_TELEMETRY = "ORT_DISABLE_TELEMETRY"
KNOWN_INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})


def libraries() -> tuple[Any, Any]:
    """The module onnxruntime and the class Tokenizer, imported when first asked for; no model is loaded."""
    os.environ.setdefault(NO_TELEMETRY, "1")  # read when the library is loaded: it keeps an identity and reports usage otherwise
    import onnxruntime
    from tokenizers import Tokenizer

    return onnxruntime, Tokenizer


class OnnxModel:
    """Texts, or (text, text) pairs, in; the model's first output for each out. Thread-safe. Raises ModelError."""

    def __init__(self, folder: Path, *, threads: int = 0, max_tokens: int = MAX_TOKENS) -> None:
        """``threads``: texts computed at the same time, 0 for one a core."""
        for file in (MODEL_FILE, TOKENIZER_FILE):
            if not (folder / file).is_file():
                raise ModelError(f"There is no {file} in {folder}.", "The folder of an ONNX model holds model.onnx and tokenizer.json.")
        onnxruntime, Tokenizer = libraries()

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(folder / MODEL_FILE), options, providers=["CPUExecutionProvider"])
            self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        except Exception as error:  # both libraries raise bare exceptions of their own
            raise ModelError(
                f"The model in {folder} cannot be loaded: {error}", "Is it a text model in ONNX form, downloaded whole?"
            ) from error
        self._tokenizer.enable_truncation(max_tokens)
        self._tokenizer.no_padding()
        self._threads = threads or os.cpu_count() or 1
        self._inputs = {node.name for node in self._session.get_inputs()}
        if unknown := self._inputs - KNOWN_INPUTS:
            raise ModelError(f"The model in {folder} wants inputs that are not known here: {', '.join(sorted(unknown))}.")

    def run(self, texts: Sequence[Any]) -> list[np.ndarray]:
        """The first output for each text, without the batch dimension: (tokens, dim), or (dim,) when the model pools."""
        rows = self._tokenizer.encode_batch([_clean(text) for text in texts])
        longest_first = sorted(range(len(rows)), key=lambda i: (-len(rows[i].ids), i))
        outputs: list[Any] = [None] * len(rows)
        if self._threads == 1 or len(rows) == 1:
            for i in longest_first:
                outputs[i] = self._run_one(rows[i])
            return outputs
        pool = ThreadPoolExecutor(min(self._threads, max(1, len(rows))), thread_name_prefix="onnx")
        try:
            for i, output in zip(longest_first, pool.map(lambda i: self._run_one(rows[i]), longest_first), strict=True):
                outputs[i] = output
        finally:
            pool.shutdown(wait=True, cancel_futures=True)  # an interrupt does not wait for what has not begun
        return outputs

    def _run_one(self, row: Any) -> np.ndarray:
        import numpy as np

        feeds = {"input_ids": row.ids, "attention_mask": row.attention_mask, "token_type_ids": row.type_ids}
        return self._session.run(None, {name: np.array([feeds[name]], np.int64) for name in self._inputs})[0][0]


def _clean(text: Any) -> Any:
    """Without lone surrogates, which the tokenizer refuses."""
    if isinstance(text, tuple):
        return tuple(map(_clean, text))
    return text.encode("utf-8", "replace").decode("utf-8")
