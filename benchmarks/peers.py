"""This project beside what people would use instead: the same files, the same embedder, the same measurement, a fresh process each.

    python benchmarks/peers.py [--quick] [--sizes 4000 16000] [--only NAME ...] [--data DIR] [--cache DIR] [--json FILE] [--chart FILE]
    python benchmarks/peers.py --parts growth --sizes 4000 44000 440000 --job-seconds 3600 --minutes 300 --growth-page docs/growth.md

Each peer has a virtual environment in the cache folder, which this makes with pip when it is not there (`--install` does that alone).
A peer that cannot be installed, or a job that fails, takes too long or too much memory, is named with its reason. The second form
writes a page on the growth alone, with its chart beside it in images/.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import eval_sets
from machine import describe

from hybrid_rag.metrics import hit, ndcg, reciprocal_rank, unique

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from jobs import Runner
from report import growth_page, merged, report
from systems import SYSTEMS, environments, installed

import data

JOB_SECONDS, MEMORY_MB = 420, 12_000
SIZES = (4_000, 16_000)
SETS = ("anthropic_docs sections", "cranfield")  # the first one's index is timed; vectors of the others are kept for the next run
PARTS = ("loading", "quality", "growth")
READS_TEXT_ONLY = ("haiku",)
Keep = Callable[[str, str, str, dict[str, Any]], None]  # part, what, system, figures


def loading(runner: Runner, place: Path, quick: bool, keep: Keep) -> None:
    """Reading and chunking: the sample, a long table, Markdown pages."""
    table = place / "table"
    data.make_table(table / "orders.csv", 2_000 if quick else 20_000)
    folders = {"sample, 15 files": eval_sets.PROJECT / "data", f"a table of {2 if quick else 20},000 records": table}
    if (pages := eval_sets.DATA / "anthropic_docs" / "pages_md").is_dir():
        folders["45 Markdown pages"] = pages
    for what, folder in folders.items():
        for system in runner.pythons:
            if system.name in READS_TEXT_ONLY and folder.name != "pages_md":
                continue
            if result := runner.run(system, "load", what, folder=folder):
                keep("loading", what, system.title, result)


def quality(runner: Runner, place: Path, name: str, timed: bool, keep: Keep) -> str:
    """Indexing with the bundled embedder, and rankings of public questions; why there are none, else "".

    Unless ``timed``, vectors are taken from earlier runs and other systems, so that only the rankings count.
    """
    chosen = eval_sets.load(name, place, data=eval_sets.DATA)
    if chosen is None:
        return f"{name}: its data is not in {eval_sets.DATA}"
    folder = place / name.replace(" ", "_")
    folder.mkdir(parents=True, exist_ok=True)
    queries = folder / "queries.json"
    queries.write_text(json.dumps([{"id": q, "text": text} for q, text in chosen.questions.items()]), encoding="utf-8")
    names = {path.name: chosen.unit(_chunk(path.name)) for path in sorted(chosen.folder.iterdir())}
    kept = {} if timed else {"vectors": place / "vectors.sqlite"}
    for system in runner.pythons:
        store = _fresh(folder / "store" / system.name)
        built = runner.run(system, "build", name, folder=chosen.folder, store=store, embedder="bge", **kept)
        ranked = built and runner.run(system, "rank", name, folder=chosen.folder, store=store, queries=queries, embedder="bge", **kept)
        if built and ranked:
            times = {**built, "rss_build_mb": built["rss_mb"]} if timed else {"chunks": built["chunks"]}
            keep("quality", name, system.title, times | _measures(chosen, ranked["rankings"], names))
        shutil.rmtree(store, ignore_errors=True)
    return ""


def _chunk(name: str) -> Any:
    from hybrid_rag.records import Chunk

    return Chunk(name, "text", 0, "", 0, 0)


def _measures(chosen: eval_sets.EvalSet, rankings: Mapping[str, list[str]], names: Mapping[str, str]) -> dict[str, float]:
    rows = []
    for question, found in rankings.items():
        wanted, ranking = chosen.relevant(question, []), unique([names[f] for f in found])
        rows.append((hit(ranking, wanted, 1), hit(ranking, wanted, 5), reciprocal_rank(ranking, wanted), ndcg(ranking, wanted)))
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    return dict(zip(("hit@1", "hit@5", "MRR", "nDCG@10"), means, strict=True))


def growth(runner: Runner, place: Path, size: int, seconds: float, unfinished: dict[str, int], keep: Keep) -> None:
    """Indexing with a free embedder, cold start, queries, an update, memory and disk, at one size.

    ``unfinished``: the systems that did not finish a smaller size, which are not tried again; those of this size are added.
    """
    made = data.make(place / f"made_{size}" / "documents", size)
    for system in list(runner.pythons):
        if system.title in unfinished:
            runner.failures.append(f"{system.title}, build {size:,} chunks: not tried after {unfinished[system.title]:,} chunks")
            continue
        folder = _fresh(place / f"run-{os.getpid()}")
        shutil.copytree(made["folder"], folder / "documents")
        options = {"folder": folder / "documents", "store": _fresh(folder / "store"), "embedder": "free", "size": data.SIZE, "overlap": 0}
        what = f"{size:,} chunks"
        built = runner.run(system, "build", what, **options)
        asked = built and runner.run(
            system, "query", what, **options, queries=made["queries"], seconds=seconds,
            change=[folder / "documents" / name for name in data.NOTES], word=data.NEW_WORD,
        )  # fmt: skip
        if built:
            keep("growth", str(size), system.title, {**built, "rss_build_mb": built["rss_mb"], **(asked or {})})
        else:
            unfinished[system.title] = size
        shutil.rmtree(folder, ignore_errors=True)


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def measure(runner: Runner, a: argparse.Namespace, save: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """All parts, the most telling first, for the time may not do for the last ones. What is there is saved after every job."""
    place = a.cache / "peers"
    sizes, sets, parts = ([1_000], [], ["growth"]) if a.quick else (a.sizes, a.sets, a.parts)
    steps: list[tuple[str, Any]] = [
        ("growth", sizes[:1]),
        ("quality", sets[:1]),
        ("loading", ()),
        ("quality", sets[1:]),
        ("growth", sizes[1:]),
    ]
    found: dict[str, Any] = {
        "loading": {},
        "quality": {},
        "growth": {},
        "sets_missing": [],
        "machine": describe(),
        "missing": runner.missing,
    }

    unfinished: dict[str, int] = {}

    def keep(part: str, what: str, system: str, figures: dict[str, Any]) -> None:
        found[part].setdefault(what, {})[system] = figures
        save(found | {"versions": runner.versions, "failures": runner.failures, "measured": runner.measured})

    passed = 0.0  # seconds of the first size
    for part, values in (step for step in steps if step[0] in parts):
        if part == "loading":
            loading(runner, place, a.quick, keep)
        for value in values:
            if part == "growth":
                if a.shrink and passed:
                    value = fitting(value, sizes[0], passed, runner.end - time.monotonic())
                begin = time.monotonic()
                growth(runner, place, value, 2.0 if a.quick else a.query_seconds, unfinished, keep)
                passed = passed or time.monotonic() - begin
            elif why := quality(runner, place, value, timed=value == SETS[0], keep=keep):
                found["sets_missing"].append(why)
    return found | {"versions": runner.versions, "failures": runner.failures, "measured": runner.measured}


def fitting(size: int, first: int, passed: float, left: float) -> int:
    """The size, halved until it should be done in ``left`` seconds, when ``first`` chunks took ``passed``: half of the time
    grows with the chunks, queries are bounded. Not below twice the first."""
    while size > 2 * first and passed * (1 + size / first) / 2 > left:
        size //= 2
    return size


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [s.name for s in SYSTEMS]
    parser.add_argument("--quick", action="store_true", help="1,000 chunks, only systems that are installed already, no rankings")
    parser.add_argument("--install", action="store_true", help="make the environments and end")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--shrink", action="store_true", help="a smaller last size rather than none when the time is short")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=[n for n in eval_sets.NAMES if n != "squad"])
    parser.add_argument("--only", nargs="*", default=names, choices=names)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--job-seconds", type=float, default=JOB_SECONDS, help="a longer job is stopped and named")
    parser.add_argument("--memory-mb", type=float, default=MEMORY_MB, help="a job that takes more is stopped and named (Linux)")
    parser.add_argument("--minutes", type=float, default=15.0, help="no job goes on after that")
    parser.add_argument("--query-seconds", type=float, default=5.0, help="bounds each series of queries")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "hybrid-rag-benchmarks")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--merge", action="store_true", help="keep what the JSON file has and is not measured now")
    parser.add_argument("--chart", type=Path, help="draw the growth into this PNG")
    parser.add_argument("--growth-page", type=Path, help="write the growth's tables into this page, its chart into images/ beside it")
    parser.add_argument("--note", default="", help="on how the growth was measured, for its page")
    return parser.parse_args(arguments)


def main() -> int:
    a = options()
    if a.data:
        eval_sets.DATA = a.data
    chosen = [s for s in SYSTEMS if s.name in a.only]
    if a.install:
        why_not = {system.title: why for system, (python, why) in environments(chosen, a.cache).items() if python is None}
        print("\n".join(f"{name}: {why}" for name, why in why_not.items()), file=sys.stderr)
        return 1 if why_not else 0
    absent = [s for s in chosen if a.quick and not installed(s, a.cache)]
    end = time.monotonic() + 60 * a.minutes
    runner = Runner([s for s in chosen if s not in absent], a.cache, a.job_seconds, end, a.memory_mb)
    runner.missing |= {s.title: "it is not installed, and --quick installs nothing" for s in absent}
    before = json.loads(a.json.read_text(encoding="utf-8")) if a.merge and a.json and a.json.exists() else None

    def save(found: dict[str, Any]) -> None:
        if a.json:
            a.json.write_text(json.dumps(merged(before, found) if before else found, indent=1), encoding="utf-8")

    found = measure(runner, a, save)
    save(found)
    found = merged(before, found) if before else found
    order = [s.title for s in SYSTEMS]
    print(describe(), end="\n\n")
    print("\n".join(report(found, order)))
    chart = a.growth_page.parent / "images" / "growth.png" if a.growth_page else a.chart
    if chart and len(found["growth"]) > 1:
        from chart import draw

        draw(found["growth"], chart)
    if a.growth_page:
        command = "python benchmarks/peers.py --parts growth --growth-page"
        a.growth_page.write_text(growth_page(found, order, command, f"images/{chart.name}", a.note), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
