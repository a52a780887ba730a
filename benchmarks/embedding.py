"""Embedding speed: every text alone on a thread a core, against plain fixed batches of 32, in the same run.

    python benchmarks/embedding.py [--quick] [--chunks 256] [--folder FOLDER] [--data DIR] [--json FILE]

Prints chunks a second for both, their ratio, how far a vector moves with its neighbours in a batch, and the time of a query
and of a reranked pair. The texts are windows of real Markdown pages (HYBRID_RAG_EVAL_DATA) or of the sample data.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import eval_sets
import numpy as np
from machine import describe, load

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
    parser.add_argument("--quick", action="store_true", help="64 chunks, two rounds")
    parser.add_argument("--data", type=Path, default=eval_sets.DATA)
    parser.add_argument("--folder", type=Path, help="Markdown files; unset: pages of the public sets, else the sample data")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder or arguments.data / "anthropic_docs" / "pages_md"
    if not folder.is_dir():
        print(f"The pages of the public sets: not run, they are not there ({folder}); the sample data is embedded instead.")
        folder = PROJECT / "data"
    texts = list(chunks(folder, 64 if arguments.quick else arguments.chunks))
    if not texts:
        raise SystemExit(f"There are no Markdown files in {folder}.")
    print(f"{describe()}; load {load():.1f}")
    out = speed(texts, 2 if arguments.quick else 3) | stages(texts)
    if arguments.json:
        arguments.json.write_text(json.dumps(out, indent=1), encoding="utf-8")


def speed(texts: list[str], times: int) -> dict[str, float]:
    """Both ways in turn, so many rounds, the best of each: what else the machine does meets both."""
    ours, plain = bundled_embedder(), FixedBatches()
    ours.embed_documents(texts[:4])
    plain.embed(texts[:4])
    repeated = texts + texts[::4]  # every fourth text twice, as boilerplate is
    rounds = [
        (
            timed(lambda: plain.embed(texts)),
            timed(lambda: ours.embed_documents(texts).vectors),
            timed(lambda: ours.embed_documents(repeated)),
        )
        for _ in range(times)
    ]
    (batched, _), (alone, _), _ = rounds[0]
    slow, fast, twice = (min(r[i][1] for r in rounds) for i in range(3))
    cosines = np.sum(batched * alone, axis=1)
    print(f"\n## Embedding {len(texts)} chunks of {sum(map(len, texts)) / len(texts):.0f} characters on average\n")
    print("| way | chunks/s | times as fast | cosine to the same text alone: lowest, mean |\n|---|---|---|---|")
    print(
        f"| fixed batches of {FIXED_BATCH}, padded, all cores | {len(texts) / slow:.1f} | 1.00 | {cosines.min():.4f}, {cosines.mean():.4f} |"
    )
    same = np.abs(rounds[0][1][0] - rounds[1][1][0]).max() == 0
    print(
        f"| one text a run, a run a core, longest first | {len(texts) / fast:.1f} | {slow / fast:.2f} | {'1, to the last bit' if same else 'differs!'} |"
    )
    print(f"| the same, every fourth text twice | {len(repeated) / twice:.1f} | {slow / len(texts) * len(repeated) / twice:.2f} | |")
    return {"fixed chunks/s": len(texts) / slow, "ours chunks/s": len(texts) / fast, "ratio": slow / fast, "lowest cosine": float(cosines.min()),
            "mean cosine": float(cosines.mean()), "with repeats chunks/s": len(repeated) / twice, "bit-identical": bool(same)}  # fmt: skip


def stages(texts: list[str]) -> dict[str, float]:
    """What a search pays: its query's vector, and a reranked pair."""
    embedder, reranker = bundled_embedder(), bundled_reranker()
    queries = [timed(lambda i=i: embedder.embed_query(f"How do I return order {i}?"))[1] for i in range(30)]
    query = 1000 * float(np.median(queries))
    reranker.score("warm", texts[:2])
    pairs = [
        timed(lambda i=i: reranker.score("How do I create an evaluation?", texts[i : i + 10]))[1] for i in range(0, min(40, len(texts)), 10)
    ]
    pair = 1000 * float(np.median(pairs)) / 10
    print(f"\nA query's vector takes {query:.1f} ms, a reranked pair {pair:.1f} ms (ten at a time, all cores).")
    return {"query ms": query, "pair ms": pair}


if __name__ == "__main__":
    main()
