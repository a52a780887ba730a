"""This project beside what people would use instead: the same files, the same embedder, the same measurement, a fresh process each.

    python benchmarks/peers.py [--quick] [--sizes 4000 16000] [--only NAME ...] [--data DIR] [--cache DIR] [--json FILE] [--chart FILE]

Each peer has a virtual environment in the cache folder, which this makes with pip when it is not there. A peer that cannot be
installed, or a job that fails or takes too long, is named with its reason. `--sizes 4000 44000 440000` draws the whole growth.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import eval_sets
from machine import describe

from hybrid_rag.metrics import hit, ndcg, reciprocal_rank, unique
from hybrid_rag.models import bundled

HERE = Path(__file__).parent / "peers"
sys.path.insert(0, str(HERE))
import data  # noqa: E402

INSTALL_SECONDS, JOB_SECONDS = 900, 420
SETS = ("anthropic_docs sections", "cranfield")


@dataclass(frozen=True)
class System:
    """A system that is measured. ``packages`` are what pip installs; ``python``: the version it needs, None for this one."""

    name: str
    title: str
    packages: tuple[str, ...] = ()
    python: str | None = None

    @property
    def script(self) -> Path:
        return HERE / f"peer_{self.name}.py"


EMBEDDING = ("numpy", "onnxruntime", "tokenizers")
SYSTEMS = (
    System("ours", "hybrid-rag"),
    System(
        "langchain",
        "LangChain",
        ("langchain-classic", "langchain-community", "langchain-chroma", "langchain-text-splitters", "rank-bm25", "pypdf", "docx2txt"),
    ),
    System(
        "llamaindex",
        "LlamaIndex",
        ("llama-index-core", "llama-index-retrievers-bm25", "llama-index-vector-stores-chroma", "llama-index-readers-file", "docx2txt"),
    ),
    System("haystack", "Haystack", ("haystack-ai", "pypdf", "python-docx", "pandas")),
    System("haiku", "haiku.rag", ("haiku-rag-slim", "langchain-text-splitters"), python="3.12"),
)
READS_TEXT_ONLY = ("haiku",)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- environments


def environment(system: System, cache: Path) -> tuple[Path | None, str]:
    """The Python of a system, its environment made when it is not there; or None and why."""
    if not system.packages:
        return Path(sys.executable), ""
    folder = cache / "environments" / system.name
    python, ready = folder / "bin" / "python", folder / "ready"
    if ready.exists():
        return python, ""
    base = _python(system.python)
    if base is None:
        return None, f"it needs Python {system.python}, which is not on this machine"
    say(f"installing {system.title} …")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        subprocess.run([base, "-m", "venv", str(folder)], check=True, capture_output=True, timeout=120)
        line = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *system.packages, *EMBEDDING]
        subprocess.run(line, check=True, capture_output=True, encoding="utf-8", timeout=INSTALL_SECONDS)
    except subprocess.CalledProcessError as error:
        return None, f"it could not be installed: {_last_line(str(error.stderr))}"
    except subprocess.TimeoutExpired:
        return None, f"its installation took longer than {INSTALL_SECONDS} s"
    ready.touch()
    return python, ""


def _python(wanted: str | None) -> str | None:
    if wanted is None or sys.version_info[:2] == tuple(map(int, wanted.split("."))):
        return sys.executable
    candidates = [shutil.which(f"python{wanted}"), *map(str, sorted(Path.home().glob(f".pyenv/versions/{wanted}.*/bin/python")))]
    for python in filter(None, candidates):
        if subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no message"


# ---------------------------------------------------------------- jobs


class Runner:
    """Runs one job of one system after the other, each in a fresh process; keeps why one gave nothing."""

    def __init__(self, systems: Sequence[System], cache: Path, seconds: float, end: float) -> None:
        self.cache, self.seconds, self.end = cache, seconds, end
        self.missing: dict[str, str] = {}
        self.failures: list[str] = []
        self.measured: list[str] = []
        self.versions: dict[str, dict[str, str]] = {}
        self.pythons: dict[System, Path] = {}
        for system in systems:
            python, why = environment(system, cache)
            if python is None:
                self.missing[system.title] = why
            else:
                self.pythons[system] = python

    def run(self, system: System, job: str, what: str, **arguments: object) -> dict[str, Any] | None:
        limit = min(self.seconds, self.end - time.monotonic())
        if limit < 5:
            self.failures.append(f"{system.title}, {job} {what}: not begun, the time was up (--minutes)")
            return None
        out = self.cache / f"result-{os.getpid()}.json"
        out.unlink(missing_ok=True)
        line = [str(self.pythons[system]), str(system.script), job, "--out", str(out)]
        for name, value in arguments.items():
            line += [f"--{name}", str(value)]
        variables = os.environ | {
            "HYBRID_RAG_BGE": str(bundled("bge_small_en")), "HYBRID_RAG_STARTED": repr(time.time()), "PYTHONHASHSEED": "0",
            "ANONYMIZED_TELEMETRY": "False", "HAYSTACK_TELEMETRY_ENABLED": "False", "HF_HUB_OFFLINE": "1", "LOGFIRE_IGNORE_NO_CONFIG": "1",
        }  # fmt: skip
        say(f"{system.title}: {job} {what}")
        try:
            run = subprocess.run(line, env=variables, capture_output=True, encoding="utf-8", errors="replace", timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            self.failures.append(f"{system.title}, {job} {what}: stopped after {limit:.0f} s")
            return None
        if run.returncode or not out.exists():
            self.failures.append(f"{system.title}, {job} {what}: {_last_line(run.stderr)}")
            return None
        self.measured.append(f"{system.title}, {job} {what}:")
        result = json.loads(out.read_text(encoding="utf-8"))
        self.versions[system.title] = result.pop("versions")
        return result


Results = dict[str, dict[str, Any]]  # system -> figures


def loading(runner: Runner, place: Path, quick: bool) -> dict[str, Results]:
    """Reading and chunking: the sample, a long table, Markdown pages."""
    table = place / "table"
    data.make_table(table / "orders.csv", 2_000 if quick else 20_000)
    folders = {"sample, 15 files": eval_sets.PROJECT / "data", f"a table of {2 if quick else 20},000 records": table}
    if (pages := eval_sets.DATA / "anthropic_docs" / "pages_md").is_dir():
        folders["45 Markdown pages"] = pages
    out: dict[str, Results] = {}
    for what, folder in folders.items():
        for system in runner.pythons:
            if system.name in READS_TEXT_ONLY and folder.name != "pages_md":
                continue
            if result := runner.run(system, "load", what, folder=folder):
                out.setdefault(what, {})[system.title] = result
    return out


def quality(runner: Runner, place: Path, names: Sequence[str]) -> tuple[dict[str, Results], list[str]]:
    """Indexing with the bundled embedder, and rankings of public questions. Also sets that are not there."""
    out: dict[str, Results] = {}
    missing = []
    for name in names:
        chosen = eval_sets.load(name, place)
        if chosen is None:
            missing.append(f"{name}: not run, its data is not in {eval_sets.DATA}")
            continue
        folder = place / name.replace(" ", "_")
        queries = folder / "queries.json"
        queries.parent.mkdir(parents=True, exist_ok=True)
        queries.write_text(json.dumps([{"id": q, "text": text} for q, text in chosen.questions.items()]), encoding="utf-8")
        files = {chosen.unit(_chunk(path.name)): path.name for path in sorted(chosen.folder.iterdir())}
        names_of = {file: unit for unit, file in files.items()}
        for system in runner.pythons:
            store = _fresh(folder / "store" / system.name)
            built = runner.run(system, "build", name, folder=chosen.folder, store=store, embedder="bge")
            ranked = built and runner.run(system, "rank", name, folder=chosen.folder, store=store, queries=queries, embedder="bge")
            if built and ranked:
                out.setdefault(name, {})[system.title] = built | _measures(chosen, ranked["rankings"], names_of)
            shutil.rmtree(store, ignore_errors=True)
    return out, missing


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


def growth(runner: Runner, place: Path, sizes: Sequence[int], seconds: float) -> dict[int, Results]:
    """Indexing with a free embedder, cold start, queries, an update, memory and disk, at several sizes."""
    out: dict[int, Results] = {}
    for size in sizes:
        made = data.make(place / f"made_{size}" / "documents", size)
        for system in list(runner.pythons):
            folder = _fresh(place / "run")
            shutil.copytree(made["folder"], folder / "documents")
            options = {
                "folder": folder / "documents",
                "store": _fresh(folder / "store"),
                "embedder": "free",
                "size": data.SIZE,
                "overlap": 0,
            }
            what = f"{size:,} chunks"
            built = runner.run(system, "build", what, **options)
            asked = built and runner.run(
                system, "query", what, **options, queries=made["queries"], seconds=seconds,
                change=folder / "documents" / made["change"].name, word=data.NEW_WORD,
            )  # fmt: skip
            if built:
                figures = {**built, "rss_build_mb": built["rss_mb"], **(asked or {})}
                out.setdefault(size, {})[system.title] = figures
            shutil.rmtree(folder, ignore_errors=True)
    return out


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


# ---------------------------------------------------------------- tables

OURS = SYSTEMS[0].title


def table(title: str, results: Results, columns: Mapping[str, tuple[str, str]], order: Sequence[str]) -> Iterator[str]:
    """A Markdown table; ``columns``: header -> (dotted key, format). Behind a peer's figure: how many times ours it is."""
    yield f"### {title}"
    yield ""
    yield "| | " + " | ".join(columns) + " |"
    yield "|---|" + "---:|" * len(columns)
    for name in (n for n in order if n in results):
        cells = []
        for key, form in columns.values():
            value, base = _get(results[name], key), _get(results.get(OURS, {}), key)
            text = "–" if value is None else form.format(value)
            ratio = f" ({value / base:.3g}×)" if name != OURS and value is not None and base and "@" not in key and key != "MRR" else ""
            cells.append(text + ratio)
        label = f"**{name}**" if name == OURS else name
        yield f"| {label} | " + " | ".join(cells) + " |"
    yield ""


def _get(figures: Mapping[str, Any], key: str) -> float | None:
    value: Any = figures
    for part in key.split("/"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def report(found: dict[str, Any], order: Sequence[str]) -> Iterator[str]:
    yield "## Beside other systems"
    yield ""
    yield "Each system in a process and an environment of its own, one after the other, on the same files with the same embedder; in brackets"
    yield "how many times our figure. Versions: " + "; ".join(
        f"{name} ({', '.join(f'{p} {v}' for p, v in versions.items())})" for name, versions in found["versions"].items()
    ) + "."  # fmt: skip
    yield ""
    for name, why in found["missing"].items():
        yield f"{name}: not run, {why}."
        yield ""
    for what, results in found["loading"].items():
        yield from table(
            f"Reading and chunking: {what}", results, {"seconds": ("load_s", "{:.2f}"), "chunks": ("chunks", "{:,.0f}")}, order
        )
    columns = {
        "chunks": ("chunks", "{:,.0f}"), "index with the bundled model, s": ("total_s", "{:.1f}"),
        "CPU, s": ("cpu_s", "{:.1f}"), "hit@1": ("hit@1", "{:.3f}"),
        "hit@5": ("hit@5", "{:.3f}"), "MRR": ("MRR", "{:.3f}"), "nDCG@10": ("nDCG@10", "{:.3f}"),
    }  # fmt: skip
    for what, results in found["quality"].items():
        yield from table(f"Retrieval: {what}", results, columns, order)
    for size, results in found["growth"].items():
        making = {
            "read, chunk, index, s": ("total_s", "{:.1f}"),
            "CPU, s": ("cpu_s", "{:.1f}"), "first result from start, s": ("first_s", "{:.1f}"),
            "memory, MB": ("rss_build_mb", "{:,.0f}"), "disk, MB": ("disk_mb", "{:,.0f}"), "cold start, s": ("cold_s", "{:.1f}"),
            "changed file found, s": ("found_s", "{:.1f}"), "whole update, s": ("update_s", "{:.1f}"),
        }  # fmt: skip
        asking = {
            "p50, ms": ("one/p50", "{:.1f}"),
            "CPU, ms": ("one/cpu", "{:.1f}"), "p95": ("one/p95", "{:.1f}"), "p99": ("one/p99", "{:.1f}"), "8 clients p50, ms": ("eight/p50", "{:.1f}"),
            "p95 of 8": ("eight/p95", "{:.1f}"), "p99 of 8": ("eight/p99", "{:.1f}"), "queries/s of 8": ("eight/per_second", "{:.0f}"),
            "memory, MB": ("rss_query_mb", "{:,.0f}"), "found in five": ("found", "{:.2f}"),
        }  # fmt: skip
        yield from table(f"{int(size):,} chunks, free embedder: making and changing", results, making, order)
        yield from table(f"{int(size):,} chunks: asking", results, asking, order)
    for failure in [*found["failures"], *found["sets_missing"]]:
        yield f"Not measured: {failure}."
        yield ""


def merged(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The present figures, with the earlier ones of what was not measured now."""
    out = before | now
    for part in ("loading", "quality", "growth"):
        held = {str(what): results for what, results in now[part].items()}
        out[part] = {
            what: before[part].get(what, {}) | held.get(what, {}) for what in [*before[part], *(w for w in held if w not in before[part])]
        }
    for part in ("versions", "missing"):
        out[part] = before[part] | now[part]
    kept = [failure for failure in before["failures"] if not failure.startswith(tuple(now["measured"]))]
    return out | {"failures": list(dict.fromkeys([*kept, *now["failures"]]))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1,000 chunks, only systems that are installed already, no rankings")
    parser.add_argument("--sizes", type=int, nargs="+", default=[4_000, 16_000])
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--only", nargs="*", default=[s.name for s in SYSTEMS], choices=[s.name for s in SYSTEMS])
    parser.add_argument("--parts", nargs="*", default=["loading", "quality", "growth"], choices=["loading", "quality", "growth"])
    parser.add_argument("--job-seconds", type=float, default=JOB_SECONDS, help="a longer job is stopped and named")
    parser.add_argument("--minutes", type=float, default=15.0, help="no job goes on after that")
    parser.add_argument("--query-seconds", type=float, default=5.0, help="bounds each series of queries")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "hybrid-rag-benchmarks")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--merge", action="store_true", help="keep what the JSON file has and is not measured now")
    parser.add_argument("--chart", type=Path, help="draw the growth into this PNG")
    a = parser.parse_args()
    if a.data:
        eval_sets.DATA = a.data
    chosen = [s for s in SYSTEMS if s.name in a.only]
    if a.quick:
        chosen = [s for s in chosen if not s.packages or (a.cache / "environments" / s.name / "ready").exists()]
    runner = Runner(chosen, a.cache, a.job_seconds, time.monotonic() + 60 * a.minutes)
    if a.quick:
        runner.missing |= {
            s.title: "it is not installed, and --quick installs nothing" for s in SYSTEMS if s not in chosen and s.name in a.only
        }
    place = a.cache / "peers"
    parts = a.parts if not a.quick else ["growth"]
    found: dict[str, Any] = {"loading": loading(runner, place, a.quick) if "loading" in parts else {}}
    found["quality"], found["sets_missing"] = quality(runner, place, a.sets) if "quality" in parts else ({}, [])
    found["growth"] = (
        growth(runner, place, [1_000] if a.quick else a.sizes, 2.0 if a.quick else a.query_seconds) if "growth" in parts else {}
    )
    found |= {
        "machine": describe(),
        "versions": runner.versions,
        "missing": runner.missing,
        "failures": runner.failures,
        "measured": runner.measured,
    }
    if a.merge and a.json and a.json.exists():
        found = merged(json.loads(a.json.read_text(encoding="utf-8")), found)
    if a.json:
        a.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(describe(), end="\n\n")
    print("\n".join(report(found, [s.title for s in SYSTEMS])))
    if a.chart and len(found["growth"]) > 1:
        from chart import draw

        draw(found["growth"], a.chart)


if __name__ == "__main__":
    main()
