"""Quality of retrieval on the public question sets and on the sample, beside LangChain's stock pipeline, in one run.

    python benchmarks/retrieval.py [--cache FOLDER] [--sets NAME ...] [--no-rerank] [--json FILE]

For every set: nDCG@10, MRR, hit@1/3/5, recall@10/50 of the keyword leg, the vector leg, both fused, with the cross-encoder,
`fusion: classic`, and the stock pipeline (BM25Retriever with its own tokens, EnsembleRetriever, k as wide as ours). Then
the mixed questions of tests/eval over data/. Indexes are kept in the cache folder: a second run embeds nothing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import eval_sets
import sample_questions
from stock import StockPipeline

from hybrid_rag.config import Config
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.metrics import hit, ndcg, recall, reciprocal_rank, unique
from hybrid_rag.parts import Parts
from hybrid_rag.records import Chunk
from hybrid_rag.retrieval import RetrievalOptions, Retriever

DEPTH = 100  # chunks asked for; several may belong to one unit
MEASURES = ("nDCG@10", "MRR", "hit@1", "hit@3", "hit@5", "recall@10", "recall@50")
Search = Callable[[str], list[Chunk]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "hybrid-rag-benchmarks")
    parser.add_argument("--sets", nargs="*", default=list(eval_sets.NAMES))
    parser.add_argument("--no-rerank", action="store_true", help="leave out the cross-encoder (it takes most of the time)")
    parser.add_argument("--no-sample", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results = {}
    for name in arguments.sets:
        if chosen := eval_sets.load(name, arguments.cache):
            results[name] = measure_set(chosen, arguments.cache / name.replace(" ", "_") / "index", rerank=not arguments.no_rerank)
    if not arguments.no_sample:
        with opened(eval_sets.PROJECT / "data", arguments.cache / "sample" / "index") as (index, parts):
            results["sample"] = sample_questions.measure(index, parts)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


def measure_set(chosen: eval_sets.EvalSet, directory: Path, *, rerank: bool) -> dict[str, dict[str, float]]:
    with opened(chosen.folder, directory) as (index, parts):
        chunks = [stored.chunk for stored in index.catalog.iterate_chunks()]
        print(f"\n{chosen.name}: {len(chosen.questions)} questions, {len(chunks)} chunks")
        print(f"  {'':28}" + "".join(f"{name:>11}" for name in MEASURES) + f"{'ms':>9}")
        relevant = {question: chosen.relevant(question, chunks) for question in chosen.questions}
        out = {}
        for name, search in pipelines(index, parts, chunks, rerank=rerank):
            started = time.perf_counter()
            rankings = {q: unique([chosen.unit(c) for c in search(text)]) for q, text in chosen.questions.items()}
            milliseconds = 1000 * (time.perf_counter() - started) / len(rankings)
            out[name] = averages([(rankings[q], relevant[q]) for q in rankings]) | {"ms": round(milliseconds, 1)}
            print(f"  {name:28}" + "".join(f"{out[name][m]:11.3f}" for m in MEASURES) + f"{milliseconds:9.1f}")
        return out


def pipelines(index: Index, parts: Parts, chunks: list[Chunk], *, rerank: bool) -> Iterator[tuple[str, Search]]:
    def ours(mode: str = "hybrid", rerank: bool = False, **options: object) -> Search:
        retriever = Retriever(index, lambda: parts.embedder("bundled"), parts.reranker, RetrievalOptions(cache_entries=0, **options))  # type: ignore[arg-type]
        return lambda text: [h.chunk for h in retriever.search(text, k=DEPTH, mode=mode, rerank=rerank).hits]  # type: ignore[arg-type]

    ours()("to load the models")
    yield "keyword", ours("keyword")
    yield "dense", ours("dense")
    yield "hybrid", ours()
    if rerank:
        yield "hybrid + rerank", ours(rerank=True)
    yield "rrf", ours(fusion="rrf", dense_weight=0.3)
    yield "classic", ours(fusion="classic", keyword_search_k=DEPTH, vector_search_k=DEPTH)
    stock = StockPipeline(index, chunks, parts.embedder("bundled"), k=DEPTH)
    yield "LangChain stock BM25", stock.keyword
    yield "LangChain stock ensemble", stock.hybrid


def averages(pairs: Sequence[tuple[list[str], frozenset[str]]]) -> dict[str, float]:
    """The mean of each measure over (ranking, relevant units)."""
    rows = [
        (
            ndcg(ranking, wanted),
            reciprocal_rank(ranking, wanted),
            *(hit(ranking, wanted, k) for k in (1, 3, 5)),
            *(recall(ranking, wanted, k) for k in (10, 50)),
        )
        for ranking, wanted in pairs
    ]
    return {name: round(sum(column) / len(rows), 4) for name, column in zip(MEASURES, zip(*rows, strict=True), strict=True)}


class opened:
    """A folder's index, brought up to date: (index, models), closed at the end."""

    def __init__(self, folder: Path, directory: Path) -> None:
        self._folder = folder
        self.parts = Parts(Config())
        self.index = Index(IndexOptions(directory, vector_mode="exact"), create=True)

    def __enter__(self) -> tuple[Index, Parts]:
        report = ingest(self.index, IngestOptions(self._folder), embedder=lambda: self.parts.embedder("bundled"))
        if report.chunks_embedded:
            print(f"indexed {self._folder}: {report.chunks_embedded} chunks embedded in {report.seconds:.0f} s")
        return self.index, self.parts

    def __exit__(self, *_: object) -> None:
        self.index.close()


if __name__ == "__main__":
    main()
