"""Quality of retrieval on the public question sets and on the sample, beside LangChain's stock pipeline, in one run.

    python benchmarks/retrieval.py [--quick] [--sets NAME ...] [--full] [--json FILE] [--data DIR] [--cache FOLDER]

For every set: nDCG@10, MRR, hit@1/3/5, recall@10/50 of the keyword leg, the vector leg, both fused, with the cross-encoder,
`fusion: classic`, and the stock pipeline (BM25Retriever with its own tokens, EnsembleRetriever, k as wide as ours). Then how
sure the gain over the better leg is, the same with parameters that were chosen on other questions, forms of reranking, and the
mixed questions of tests/eval over data/.

Indexes and the cross-encoder's scores are kept in the cache folder: the first run takes ten minutes more. `--quick` draws a part of
each set with a fixed seed, and leaves out the cross-encoder and the studies: the figures are not those of the whole sets, fewer documents
are easier to tell apart. Of squad 150 questions are drawn with a fixed seed; `--full` asks all 628.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import eval_sets
import retrieval_studies
import sample_questions
from kept import KeptReranker, OnceEmbedder
from machine import describe, load
from stock import StockPipeline

from hybrid_rag.config import Config
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.metrics import hit, ndcg, recall, reciprocal_rank, unique
from hybrid_rag.parts import Parts
from hybrid_rag.records import Chunk
from hybrid_rag.retrieval import RetrievalOptions, Retriever

QUICK_CHARACTERS = 100_000  # of each set in a quick run: about 150 chunks, five seconds of embedding on two cores
DEPTH = 100  # chunks asked for; several may belong to one unit
MEASURES = ("nDCG@10", "MRR", "hit@1", "hit@3", "hit@5", "recall@10", "recall@50")
Search = Callable[[str], list[Chunk]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "hybrid-rag-benchmarks")
    parser.add_argument("--data", type=Path, default=eval_sets.DATA)
    parser.add_argument("--sets", nargs="*", default=[*eval_sets.NAMES, "sample"])
    parser.add_argument("--quick", action="store_true", help="parts of the sets, without the cross-encoder and the studies")
    parser.add_argument("--full", action="store_true", help="all questions of squad")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(f"{describe()}; load {load():.1f}")
    arguments.cache.mkdir(parents=True, exist_ok=True)
    reranker = None if arguments.quick else KeptReranker(arguments.cache / "reranker.sqlite")
    results: dict[str, Any] = {}
    studies: dict[str, retrieval_studies.Study] = {}
    for name in arguments.sets:
        if name == "sample":
            measure_sample(arguments.cache, reranker, results, studies)
        elif chosen := eval_sets.load(name, arguments.cache, data=arguments.data, full=arguments.full or arguments.quick):
            base = arguments.cache / ("quick" if arguments.quick else "") / name.replace(" ", "_")
            folder = base / "index"
            if arguments.quick:
                chosen = eval_sets.part(chosen, base / "part", QUICK_CHARACTERS)
            results[name], studies[name] = measure_set(chosen, folder, reranker, grid=not arguments.quick)
    if not arguments.quick and studies:
        results["studies"] = retrieval_studies.report(studies)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


def measure_sample(cache: Path, reranker: KeptReranker | None, results: dict[str, Any], studies: dict[str, Any]) -> None:
    with opened(eval_sets.PROJECT / "data", cache / "sample" / "index") as (index, parts):
        chosen = sample_questions.as_set(eval_sets.PROJECT / "data")
        results["sample"], studies["sample"] = measure(chosen, index, parts, reranker, grid=reranker is not None)
        results["sample, both kinds"] = sample_questions.measure(index, parts)


def measure_set(
    chosen: eval_sets.EvalSet, directory: Path, reranker: KeptReranker | None, *, grid: bool
) -> tuple[dict, retrieval_studies.Study]:
    with opened(chosen.folder, directory) as (index, parts):
        return measure(chosen, index, parts, reranker, grid=grid)


def measure(
    chosen: eval_sets.EvalSet, index: Index, parts: Parts, reranker: KeptReranker | None, *, grid: bool
) -> tuple[dict[str, dict[str, float]], retrieval_studies.Study]:
    """The table of a set, printed; and what the studies need of it."""
    chunks = [stored.chunk for stored in index.catalog.iterate_chunks()]
    relevant = {question: chosen.relevant(question, chunks) for question in chosen.questions}
    print(f"\n## {chosen.name}: {len(chosen.questions)} questions, {len(chunks):,} chunks\n")
    if chosen.drawn:
        print(f"A quick run: {chosen.drawn}. The whole set gives other figures.\n")
    print("| pipeline | " + " | ".join(MEASURES) + " | ms |\n|---|" + "---|" * (len(MEASURES) + 1))
    embedder = OnceEmbedder(parts.embedder("bundled"))
    for text in chosen.questions.values():
        embedder.embed_query(text)
    out, rankings = {}, {}
    for name, search in pipelines(index, embedder, chunks, reranker):
        started = time.perf_counter()
        rankings[name] = {q: unique([chosen.unit(c) for c in search(text)]) for q, text in chosen.questions.items()}
        milliseconds = 1000 * (time.perf_counter() - started) / len(relevant)
        out[name] = averages([(rankings[name][q], relevant[q]) for q in relevant]) | {"ms": round(milliseconds, 1)}
        print(f"| {name} | " + " | ".join(f"{out[name][m]:.3f}" for m in MEASURES) + f" | {milliseconds:.1f} |", flush=True)
    study = retrieval_studies.collect(chosen, relevant, rankings, make(index, embedder, reranker), grid=grid)
    if reranker is not None:
        reranker.save()
    return out, study


def make(index: Index, embedder: OnceEmbedder, reranker: KeptReranker | None) -> Callable[..., Retriever]:
    return lambda **options: Retriever(index, lambda: embedder, lambda: reranker, RetrievalOptions(cache_entries=0, **options))


def pipelines(index: Index, embedder: OnceEmbedder, chunks: list[Chunk], reranker: KeptReranker | None) -> Iterator[tuple[str, Search]]:
    new = make(index, embedder, reranker)

    def ours(mode: str = "hybrid", rerank: bool = False, **options: object) -> Search:
        retriever = new(**options)
        return lambda text: [h.chunk for h in retriever.search(text, k=DEPTH, mode=mode, rerank=rerank).hits]  # type: ignore[arg-type]

    ours()("to load the vectors")
    yield "keyword", ours("keyword")
    yield "dense", ours("dense")
    yield "hybrid", ours()
    if reranker is not None:
        yield "hybrid + rerank", ours(rerank=True)
    yield "rrf", ours(fusion="rrf", dense_weight=0.3)
    yield "classic", ours(fusion="classic", keyword_search_k=DEPTH, vector_search_k=DEPTH)
    try:
        stock = StockPipeline(index, chunks, embedder, k=DEPTH)
    except ImportError as error:
        print(f"\nLangChain's stock pipeline: not run, {error.name} is not installed (`pip install hybrid-rag[test]`).")
        return
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
            print(f"indexed {self._folder}: {report.chunks_embedded} chunks embedded in {report.seconds:.0f} s", file=sys.stderr)
        return self.index, self.parts

    def __exit__(self, *_: object) -> None:
        self.index.close()


if __name__ == "__main__":
    main()
