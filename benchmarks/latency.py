"""How long a search takes in a large collection, and what it costs to keep open, beside LangChain's stock pipeline, in one run.

    python benchmarks/latency.py [--scale 10] [--quick] [--json FILE] [--cache FOLDER]

43,828 records and sections, a chunk each; the query's vector is given, no result comes from a cache. ``--scale N`` adds a
collection N times as large (ours only: the stock pipeline's BM25 takes N times its memory and time). Indexes are kept in the cache folder.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from large_collection import FILTERS, Asked, StockLarge, prepare, questions
from machine import describe, load

from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.retrieval import RetrievalOptions, Retriever

K = 5
WARM = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "hybrid-rag-benchmarks")
    parser.add_argument("--scale", type=int, default=1, metavar="N", help="also N times as many records")
    parser.add_argument("--queries", type=int, default=200, help="of ours; the stock pipeline gets a quarter")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, 50 queries, one filter")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--data", type=Path, help="as the other benchmarks have it; not used, the collection is generated")
    parser.add_argument("--child", nargs=2, metavar=("ours|stock", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(opened_once(*arguments.child)))
        return
    if arguments.quick:
        arguments.queries = 50
    print(f"{describe()}; load {load():.1f}\n")
    base = prepare(arguments.cache, 0.1 if arguments.quick else 1)
    out: dict[str, Any] = {"latency": latency(base, arguments), "open": {}, "command": {}}
    if arguments.scale > 1:
        out[f"latency at {arguments.scale} times"] = latency_of_scales(base, prepare(arguments.cache, arguments.scale), arguments)
    out["open"] = memory(base)
    out["command"] = command(base, 3 if arguments.quick else 7)
    if arguments.json:
        arguments.json.write_text(json.dumps(out, indent=1), encoding="utf-8")


# ---------------------------------------------------------------- latency


def latency(base: Path, arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """p50, p99 and median CPU time of both, filter by filter, queries of both in turn so that a load of the machine meets both."""
    index = Index(IndexOptions(base / "index"))
    retriever = fresh(index)
    asked = questions(index, arguments.queries)
    try:
        stock = StockLarge(base)
    except ImportError as error:
        raise SystemExit(f"LangChain's stock pipeline: not run, {error.name} is not installed (`pip install hybrid-rag[test]`).") from error
    print(f"## Latency: {len(stock.documents):,} records, the query's vector given, k = {K}, milliseconds\n")
    print(
        "| filter | passing | ours p50 | ours p99 | ours, filter's first use | stock p50 | stock p99 | stock / ours, p50 | ours CPU | stock CPU | stock / ours, CPU |"
    )
    print("|---" * 11 + "|")
    warm(retriever, asked)
    out = {}
    for name in ["none", "folder"] if arguments.quick else FILTERS:
        passing = [d.source for d in index.catalog.documents() if FILTERS[name].matches(d)]
        share = sum(d.chunks for d in index.catalog.documents() if d.source in passing)
        stock.use(name, passing)
        first = timed(lambda: fresh(index).search(asked[0].text, k=K, vector=asked[0].vector, filters=FILTERS[name]))[0]  # noqa: B023
        ours, theirs = [], []
        for i, one in enumerate(asked):
            ours.append(timed(lambda: retriever.search(one.text, k=K, vector=one.vector, filters=FILTERS[name])))  # noqa: B023
            if i % 4 == 0:
                theirs.append(timed(lambda: stock.search(one)))  # noqa: B023
        row = {"passing": share, "ours first": round(first, 3), **figures("ours", ours), **figures("stock", theirs)}
        row["ratio"], row["CPU ratio"] = row["stock p50"] / row["ours p50"], row["stock CPU"] / row["ours CPU"]
        out[name] = row
        print(
            f"| {name} | {share:,} | {row['ours p50']:.1f} | {row['ours p99']:.1f} | {first:.1f} | {row['stock p50']:.0f} | {row['stock p99']:.0f} "
            f"| {row['ratio']:.0f} | {row['ours CPU']:.1f} | {row['stock CPU']:.0f} | {row['CPU ratio']:.0f} |",
            flush=True,
        )
    index.close()
    return out


def latency_of_scales(small: Path, big: Path, arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Ours at both sizes, in turn."""
    indexes = [Index(IndexOptions(base / "index")) for base in (small, big)]
    retrievers = [fresh(index) for index in indexes]
    asked = [questions(index, arguments.queries) for index in indexes]
    counts = [sum(c["chunks"] for c in index.catalog.counts().values()) for index in indexes]
    print(f"\n## {counts[1]:,} chunks beside {counts[0]:,}, milliseconds\n")
    keys = [f"{size} {figure}" for size in ("small", "large") for figure in ("p50", "p99", "CPU")]
    print("| filter | " + " | ".join(keys) + " | large / small, p50 | large / small, CPU |\n" + "|---" * 9 + "|")
    for retriever, some in zip(retrievers, asked, strict=True):
        warm(retriever, some)
    out = {}
    for name in ["none", "folder"] if arguments.quick else FILTERS:
        times: list[list[tuple[float, float]]] = [[], []]
        for pair in zip(*asked, strict=True):
            for held, retriever, one in zip(times, retrievers, pair, strict=True):
                held.append(timed(lambda: retriever.search(one.text, k=K, vector=one.vector, filters=FILTERS[name])))  # noqa: B023
        row = figures("small", times[0]) | figures("large", times[1])
        row["ratio"], row["CPU ratio"] = row["large p50"] / row["small p50"], row["large CPU"] / row["small CPU"]
        out[name] = row
        print(f"| {name} | " + " | ".join(f"{row[key]:.1f}" for key in (*keys, "ratio", "CPU ratio")) + " |", flush=True)
    for index in indexes:
        index.close()
    return out


def fresh(index: Index) -> Retriever:
    return Retriever(index, lambda: None, lambda: None, RetrievalOptions(cache_entries=0))


def warm(retriever: Retriever, asked: Sequence[Asked]) -> None:
    for chosen in FILTERS.values():
        for one in asked[:WARM]:
            retriever.search(one.text, k=K, vector=one.vector, filters=chosen)


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """(milliseconds passed, milliseconds of computing in all threads); the second does not depend on what else the machine does."""
    started, before = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - started) * 1000, (time.process_time() - before) * 1000


def figures(name: str, times: Sequence[tuple[float, float]]) -> dict[str, float]:
    passed, computed = zip(*times, strict=True)
    return {f"{name} p50": percentile(passed, 50), f"{name} p99": percentile(passed, 99), f"{name} CPU": percentile(computed, 50)}


def percentile(values: Sequence[float], p: int) -> float:
    return round(float(np.percentile(values, p)), 3)


# ---------------------------------------------------------------- memory and start


def memory(base: Path) -> dict[str, Any]:
    """Each pipeline in a process of its own: from start to the first answer, memory then and after filtered searches."""
    print("\n## Open: a process of its own for each\n")
    print("| pipeline | first result after, s | memory then, MB | after filtered searches, MB |\n|---|---|---|---|")
    out = {}
    for name in ("ours", "stock"):
        started = time.time()
        run = subprocess.run(
            [sys.executable, __file__, "--child", name, str(base)], check=True, capture_output=True, text=True, encoding="utf-8"
        )
        out[name] = json.loads(run.stdout.splitlines()[-1])
        out[name]["seconds"] = round(out[name].pop("first at") - started, 2)
        print(f"| {name} | {out[name]['seconds']:.1f} | {out[name]['memory']:.0f} | {out[name]['memory filtered']:.0f} |")
    return out


def opened_once(name: str, folder: str) -> dict[str, float]:
    """Run in the child: open, search, look at the memory."""
    index = Index(IndexOptions(Path(folder) / "index"))
    asked = questions(index, 20)
    documents = index.catalog.documents()
    if name == "ours":
        retriever = fresh(index)

        def search(one: Asked, chosen: str) -> Any:
            return retriever.search(one.text, k=K, vector=one.vector, filters=FILTERS[chosen])

    else:
        index.close()
        stock = StockLarge(Path(folder))

        def search(one: Asked, chosen: str) -> Any:
            stock.use(chosen, [d.source for d in documents if FILTERS[chosen].matches(d)])
            return stock.search(one)

    search(asked[0], "none")
    first = time.time()
    for one in asked:
        search(one, "none")
    before = resident()
    for chosen in FILTERS:
        search(asked[0], chosen)
    return {"first at": first, "memory": before, "memory filtered": resident()}


def resident() -> float:
    """Resident memory of this process, MB."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(row for row in status.read_text(encoding="utf-8").splitlines() if row.startswith("VmRSS"))
        return int(line.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def command(base: Path, rounds: int) -> dict[str, float]:
    """The command line, a process a search: from its start to its end."""
    print("\n## The command `hybrid-rag search`, from start to end, seconds (median)\n")
    print("| search | s |\n|---|---|")
    program = [sys.executable, "-m", "hybrid_rag", "search", "battery drains fast", "--json"]
    program += ["--set", f"vector_store.persist_directory={base / 'index'}", "--set", f"data.directory={base / 'data'}"]
    out = {}
    for name, options in (
        ("keywords", ["--mode", "keyword"]),
        ("hybrid, with the query's embedding", []),
        ("hybrid, a filter", ["--folder", "claims"]),
    ):
        times = [timed(lambda: subprocess.run([*program, *options], check=True, capture_output=True))[0] / 1000 for _ in range(rounds)]  # noqa: B023
        out[name] = percentile(times, 50)
        print(f"| {name} | {out[name]:.2f} |")
    return out


if __name__ == "__main__":
    main()
