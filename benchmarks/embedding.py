"""Embedding speed: every text alone on a thread a core, against plain fixed batches of 32, in the same run.

    python benchmarks/embedding.py [--chunks 256] [--folder FOLDER]

Prints chunks a second for both, their ratio, how far a vector moves with its neighbours in a batch, and the time of a query
and of a reranked pair. The texts are windows of real Markdown pages (HYBRID_RAG_EVAL_DATA) or of the sample data.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hybrid_rag.embedding_onnx import bundled_embedder
from hybrid_rag.models import MODEL_FILE, TOKENIZER_FILE, bundled
from hybrid_rag.onnx_model import MAX_TOKENS
from hybrid_rag.reranking import bundled_reranker

PROJECT = Path(__file__).parents[1]
WINDOWS = (1000, 1000, 1000, 800, 600, 300, 150, 80)  # characters; most chunks are full, section ends are short
FIXED_BATCH = 32


def chunks(folder: Path, count: int) -> Iterator[str]:
    """Windows of the folder's Markdown files, in the order of reading."""
    text = "\n\n".join(path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.rglob("*.md")))
    windows, start = random.Random(0), 0
    while count and start < len(text):
        size = windows.choice(WINDOWS)
        yield text[start : start + size]
        start += size
        count -= 1


class FixedBatches:
    """The plain way: batches of 32 in the order of arrival, padded to the longest, all cores inside one run."""

    def __init__(self) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        folder = bundled("bge_small_en")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = os.cpu_count() or 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(folder / MODEL_FILE), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()
        self._inputs = {node.name for node in self._session.get_inputs()}

    def embed(self, texts: list[str]) -> np.ndarray:
        parts = []
        for start in range(0, len(texts), FIXED_BATCH):
            rows = self._tokenizer.encode_batch(texts[start : start + FIXED_BATCH])
            feeds = {
                "input_ids": np.array([row.ids for row in rows], np.int64),
                "attention_mask": np.array([row.attention_mask for row in rows], np.int64),
                "token_type_ids": np.array([row.type_ids for row in rows], np.int64),
            }
            parts.append(self._session.run(None, {k: v for k, v in feeds.items() if k in self._inputs})[0][:, 0])
        vectors = np.concatenate(parts)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=256)
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(os.environ.get("HYBRID_RAG_EVAL_DATA", PROJECT.parent / "shared" / "eval")) / "anthropic_docs" / "pages_md",
    )
    arguments = parser.parse_args()
    folder = arguments.folder
    if not folder.is_dir():
        print(f"The evaluation pages {folder} are missing; the sample data is used instead.")
        folder = PROJECT / "data"
    texts = list(chunks(folder, arguments.chunks))
    if not texts:
        raise SystemExit(f"There are no Markdown files in {folder}.")
    ours, plain = bundled_embedder(), FixedBatches()
    ours.embed_documents(texts[:4])
    plain.embed(texts[:4])
    print(f"{len(texts)} chunks, {sum(map(len, texts)) / len(texts):.0f} characters on average, {os.cpu_count()} cores")
    rounds = [(timed(lambda: plain.embed(texts)), timed(lambda: ours.embed_documents(texts).vectors)) for _ in range(3)]
    (batched, slow), (alone, fast) = rounds[0][0], rounds[0][1]
    slow, fast = min(r[0][1] for r in rounds), min(r[1][1] for r in rounds)
    print(f"fixed batches of {FIXED_BATCH}: {len(texts) / slow:6.1f} chunks/s")
    print(f"alone, a thread a core: {len(texts) / fast:6.1f} chunks/s, {slow / fast:.2f} times as fast")
    cosines = np.sum(batched * alone, axis=1)
    print(f"cosine of a vector in a batch to the same alone: lowest {cosines.min():.4f}, mean {cosines.mean():.4f}")
    print(f"the same again, largest difference: {np.abs(rounds[0][1][0] - rounds[1][1][0]).max():g}")
    queries = [timed(lambda i=i: ours.embed_query(f"How do I return order {i}?"))[1] for i in range(30)]
    print(f"a query: {1000 * float(np.median(queries)):.1f} ms")
    reranker = bundled_reranker()
    reranker.score("warm", texts[:2])
    _, seconds = timed(lambda: reranker.score("How do I create an evaluation?", texts[:40]))
    print(f"a reranked pair: {1000 * seconds / min(40, len(texts)):.1f} ms on all cores")


if __name__ == "__main__":
    main()
