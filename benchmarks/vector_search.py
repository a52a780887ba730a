"""What the search of vectors in memory misses and takes, against multiplying all of them, and Chroma's graph beside it.

    python benchmarks/vector_search.py [--quick] [--json FILE] [--data DIR] [--cache FOLDER]

Real vectors are read from the indexes that benchmarks/retrieval.py leaves in the cache folder, and blended into more of them; the
questions are the sets'. The graph is that of benchmarks/latency.py's collection, with its random vectors. What is not there is not measured.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import eval_sets
import numpy as np
from machine import describe, load

from hybrid_rag.embedding_onnx import bundled_embedder
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.records import KINDS
from hybrid_rag.vector_rows import VectorRows, bytes_per_row
from hybrid_rag.vectors import Allowed, best

K = 100
BLEND = 0.4  # of the difference of two vectors, added to a third
PART = 16_384


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "hybrid-rag-benchmarks")
    parser.add_argument("--data", type=Path, default=eval_sets.DATA)
    parser.add_argument("--quick", action="store_true", help="100,000 vectors instead of 430,000")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    count = 100_000 if arguments.quick else 430_000
    print(f"{describe()}; load {load():.1f}")
    out: dict[str, Any] = {}
    print(f"\n## Searching {count:,} vectors of 384 dimensions in memory, {count * bytes_per_row(384) / 1e6:.0f} MB, k = {K}\n")
    print("| vectors | rows let through | recall@10 | recall@100 | ms, computing |\n|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    if (real := real_vectors(arguments.cache)) is not None and (asked := questions(arguments)):
        embedder = bundled_embedder()
        queries = np.array([embedder.embed_query(text) for text in asked])
        out["blended"] = recall("blended", lambda n: blended(real, n, rng), count, queries)
    else:
        print(f"| blended | not run: no index of benchmarks/retrieval.py in {arguments.cache} | | | |")
    out["random"] = recall("random", lambda n: unit(rng.standard_normal((n, 384), np.float32)), count, unit(rng.standard_normal((30, 384))))
    out["graph"] = graph(arguments.cache)
    if arguments.json:
        arguments.json.write_text(json.dumps(out, indent=1), encoding="utf-8")


def real_vectors(cache: Path) -> np.ndarray | None:
    found = []
    for name in eval_sets.NAMES:
        folder = cache / name.replace(" ", "_") / "index"
        if folder.is_dir():
            index = Index(IndexOptions(folder, vector_mode="exact"))
            found += [index.catalog.vectors(index.fingerprint, kind)[1] for kind in KINDS] if index.fingerprint else []
            index.close()
    found = [vectors for vectors in found if len(vectors)]
    return np.unique(np.concatenate(found), axis=0) if found else None


def questions(arguments: argparse.Namespace) -> list[str]:
    sets = [eval_sets.load(name, arguments.cache, data=arguments.data) for name in eval_sets.NAMES]
    return [text for chosen in sets if chosen for text in list(chosen.questions.values())[:15]]


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def blended(real: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    a, b, c = (real[rng.integers(0, len(real), count)] for _ in range(3))
    return unit(a + BLEND * (b - c))


def recall(name: str, make: Callable[[int], np.ndarray], count: int, queries: np.ndarray) -> dict[str, dict[str, float]]:
    """Recall and time with every number of rows let through; the vectors are made a part at a time and kept as float16 besides."""
    plain = np.empty((count, queries.shape[1]), np.float16)

    def parts() -> Any:
        for start in range(0, count, PART):
            vectors = make(min(PART, count - start))
            plain[start : start + PART] = vectors
            yield np.arange(start, start + len(vectors)), vectors

    rows = VectorRows.of(parts(), count)
    out = {}
    for passing in [n for n in (8_000, 44_000, 87_000, 173_000, 430_000) if n <= count]:
        allowed = None if passing == count else Allowed(np.arange(passing))
        wanted = [[n for n, _ in best(np.arange(passing), products(plain[:passing], query), K)] for query in queries]
        found, times = [], []
        for query in queries:
            before = time.process_time()
            found.append([n for n, _ in rows.search(query, K, allowed)])
            times.append(1000 * (time.process_time() - before))
        row = {f"recall@{k}": float(np.mean([shared(f, w, k) for f, w in zip(found, wanted, strict=True)])) for k in (10, K)}
        out[str(passing)] = row | {"ms": float(np.median(times))}
        print(f"| {name} | {passing:,} | {row['recall@10']:.3f} | {row[f'recall@{K}']:.3f} | {np.median(times):.1f} |", flush=True)
    return out


def products(plain: np.ndarray, query: np.ndarray) -> np.ndarray:
    return np.concatenate([plain[start : start + PART].astype(np.float32) @ query for start in range(0, len(plain), PART)])


def shared(found: Sequence[int], wanted: Sequence[int], k: int) -> float:
    """Of the k nearest, those that are among the first k found."""
    return len(set(found[:k]) & set(wanted[:k])) / k


def graph(cache: Path) -> dict[str, float]:
    """Chroma's graph over the larger kind of the generated collections."""
    print(f"\n## Chroma's graph over random vectors, k = {K}\n\n| vectors | recall@10 | recall@100 | ms, computing |\n|---|---|---|---|")
    out = {}
    for folder in [f / "index" for f in sorted(cache.glob("large-*")) if (f / "complete").exists()]:
        index = Index(IndexOptions(folder))
        held = index.vectors
        if held is None or not hasattr(held, "_nearest"):
            continue
        numbers, vectors = index.catalog.vectors(index.fingerprint, "table")
        found, times, queries = [], [], unit(np.random.default_rng(1).standard_normal((25, vectors.shape[1])))
        for query in queries:
            before = time.process_time()
            hits = held._nearest("table", query, K)
            times.append(1000 * (time.process_time() - before))
            wanted = [n for n, _ in best(numbers, vectors @ query, K)]
            found.append([shared([n for n, _ in hits], wanted, k) for k in (10, K)])
        first, all_ = np.mean(found, axis=0)
        out[str(len(numbers))] = float(all_)
        print(f"| {len(numbers):,} | {first:.3f} | {all_:.3f} | {np.median(times):.1f} |", flush=True)
        index.close()
    if not out:
        print(f"| not run: no collection of benchmarks/latency.py in {cache} | | | |")
    return out


if __name__ == "__main__":
    main()
