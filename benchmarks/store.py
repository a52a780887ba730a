"""The store: how long until words are found, a whole run, a small change, nothing at all; memory, disk, opening, rebuilding.

    python benchmarks/store.py [--quick] [--json FILE] [--model]

Two collections: 124 generated Markdown files with about 7,400 chunks, and the large sample (13 files, 43,328 records and 500
text sections, see scripts/make_sample_data.py). The embedding model is replaced by a free one (a hash gives 384 numbers), so
that the store's own time is seen; with --model the Markdown files are embedded by the bundled model too. Every figure comes from a process
of its own; "first result" is what another process sees, which looks from the start of the run until a search finds something.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from machine import describe

PROJECT = Path(__file__).parents[1]
FILES, SECTIONS = 124, 60  # about 60 chunks a file
WORDS = 110  # of a section: one chunk
RESULT_SECONDS = 600.0


# ---------------------------------------------------------------- collections


def write_markdown(folder: Path, files: int) -> None:
    """Files of sections of invented words, the same ones each time."""
    words = random.Random(1)
    vocabulary = ["".join(words.choices("abdefgiklmnoprstuvz", k=words.randint(4, 9))) for _ in range(6000)]
    for number in range(files):
        (folder / f"page_{number:03}.md").write_text(page(number, vocabulary, 0), encoding="utf-8")


def page(number: int, vocabulary: Sequence[str], edition: int) -> str:
    chosen = random.Random(number)
    parts = [f"# Page {number}\n"]
    for section in range(SECTIONS):
        heading, body = " ".join(chosen.choices(vocabulary, k=3)), " ".join(chosen.choices(vocabulary, k=WORDS))
        changed = f" edition{edition} of page{number}" if edition and section == SECTIONS // 2 else ""
        parts.append(f"## {heading.capitalize()} {number}-{section}\n\n{body}{changed}.\n")
    return "\n".join(parts)


def change(path: Path, edition: int) -> None:
    """One more sentence in a Markdown file, one more record in a table."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        path.write_text(text + text.splitlines()[-1] + "\n", encoding="utf-8")
    else:
        path.write_text(f"{text}\n\nThe edition{edition} says so.\n", encoding="utf-8")


# ---------------------------------------------------------------- steps, each in a process of its own


class FreeEmbedder:
    """384 numbers from a hash of the text: costs nothing, and equal texts have equal vectors."""

    name, dimensions, fingerprint = "bundled:free", 384, "0" * 32

    def embed_documents(self, texts: Sequence[str]):
        import numpy as np

        from hybrid_rag.embedding import Embedded

        rows = np.stack([self._vector(text) for text in texts]) if texts else np.zeros((0, self.dimensions), np.float32)
        return Embedded(rows)

    def embed_query(self, text: str):
        return self._vector(text)

    def _vector(self, text: str):
        import numpy as np

        seed = int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big")
        row = np.random.default_rng(seed).standard_normal(self.dimensions, dtype=np.float32)
        return row / np.linalg.norm(row)


def step_index(data: Path, directory: Path, model: bool) -> dict[str, Any]:
    from hybrid_rag.index import Index, IndexOptions
    from hybrid_rag.ingest import IngestOptions, ingest

    def embedder():
        if not model:
            return FreeEmbedder()
        from hybrid_rag.embedding_onnx import bundled_embedder

        return bundled_embedder()

    began = time.monotonic()
    index = Index(IndexOptions(directory), create=True)
    report = ingest(index, IngestOptions(data), embedder=embedder)
    index.close()
    own, readers = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "seconds": time.monotonic() - began, "words_seconds": report.first_searchable_seconds, "embedded": report.chunks_embedded,
        "written": report.chunks_written, "reused": report.chunks_reused, "memory_mb": own / 1024, "reader_memory_mb": readers / 1024,
        "counts": report.counts,
    }  # fmt: skip


def step_look(data: Path, directory: Path, model: bool) -> dict[str, Any]:
    """Search from now on until something is found."""
    from hybrid_rag.errors import HybridRagError
    from hybrid_rag.index import Index, IndexOptions

    began = time.monotonic()
    index = None
    while time.monotonic() - began < RESULT_SECONDS:
        try:
            index = index or Index(IndexOptions(directory))
            index.refresh()
            if index.catalog.documents() and index.lexical.search(index.analyzer.query("page product the"), k=3):
                return {"seconds": time.monotonic() - began}
        except HybridRagError:
            pass  # there is no index yet
        time.sleep(0.05)
    raise SystemExit("nothing was found")


def step_open(data: Path, directory: Path, model: bool) -> dict[str, Any]:
    """A process that opens the index and searches: by words, and by both."""
    from hybrid_rag.index import Index, IndexOptions

    began = time.monotonic()
    index = Index(IndexOptions(directory, cold=True))
    index.lexical.search(index.analyzer.query("page product the"), k=5)
    words = time.monotonic() - began
    vector = FreeEmbedder().embed_query("page")
    for kind in ("table", "text"):
        index.search_vectors(kind, vector, k=5)
    both = time.monotonic() - began
    began = time.monotonic()
    server = Index(IndexOptions(directory))
    for kind in ("table", "text"):
        server.search_vectors(kind, vector, k=5)
    chroma = time.monotonic() - began
    began = time.monotonic()
    for kind in ("table", "text"):
        server.search_vectors(kind, vector, k=5)
    again = time.monotonic() - began
    return {"words": words, "both": both, "server": chroma, "again": again}


def step_rebuild(data: Path, directory: Path, model: bool) -> dict[str, Any]:
    from hybrid_rag.index import Index, IndexOptions
    from hybrid_rag.maintenance import rebuild, sizes, verify

    index = Index(IndexOptions(directory))
    out: dict[str, Any] = {"sizes": sizes(index)}
    for part in ("lexical", "vectors"):
        began = time.monotonic()
        rebuild(index, part)
        out[part] = time.monotonic() - began
    began = time.monotonic()
    found = verify(index)
    out |= {"verify": time.monotonic() - began, "problems": list(found.problems), "chunks": found.counts["chunks"]}
    index.close()
    return out


STEPS = {"index": step_index, "look": step_look, "open": step_open, "rebuild": step_rebuild}


def start(step: str, data: Path, directory: Path, model: bool) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--step", step, "--folders", str(data), str(directory), *(["--model"] if model else [])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8")


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"a step ended with exit code {process.returncode}")
    return json.loads(out.splitlines()[-1])


# ---------------------------------------------------------------- one collection


def measure(name: str, data: Path, directory: Path, model: bool) -> dict[str, Any]:
    def run(step: str) -> dict[str, Any]:
        print(f"  {name}: {step}", file=sys.stderr)
        return finish(start(step, data, directory, model))

    looking = start("look", data, directory, model)
    first = run("index")
    out: dict[str, Any] = {"name": name, "first_result": finish(looking)["seconds"], "full": first}
    files = sorted(p for p in data.iterdir() if p.is_file())
    time.sleep(2.1)  # stamps that close to a run would be hashed
    out["nothing"] = run("index")
    change(files[0], 1)
    out["one"] = run("index")
    for path in files[:10]:
        change(path, 2)
    out["ten"] = run("index")
    out["open"] = run("open")
    out["rebuild"] = run("rebuild")
    return out


def table(results: Sequence[dict[str, Any]]) -> str:
    def row(label: str, give) -> str:
        return f"| {label} | " + " | ".join(give(r) for r in results) + " |"

    def size(result: dict[str, Any], *parts: str) -> str:
        return f"{sum(result['rebuild']['sizes'][p] for p in parts) / result['rebuild']['chunks']:,.0f}"

    all_parts = ("catalog", "keyword", "vectors", "tables")
    return "\n".join(
        [
            "| | " + " | ".join(r["name"] for r in results) + " |",
            "|---" * (len(results) + 1) + "|",
            row("chunks", lambda r: f"{r['rebuild']['chunks']:,}"),
            row("first keyword result in another process, s", lambda r: f"{r['first_result']:.1f}"),
            row("whole first run, s", lambda r: f"{r['full']['seconds']:.1f}"),
            row("nothing changed, s", lambda r: f"{r['nothing']['seconds']:.2f}"),
            row("one file changed, s (texts embedded)", lambda r: f"{r['one']['seconds']:.2f} ({r['one']['embedded']})"),
            row("ten files changed, s (texts embedded)", lambda r: f"{r['ten']['seconds']:.2f} ({r['ten']['embedded']})"),
            row("memory of the run, MB", lambda r: f"{r['full']['memory_mb']:.0f}"),
            row("memory of a reading process, MB", lambda r: f"{r['full']['reader_memory_mb']:.0f}"),
            row("open and search by words, s", lambda r: f"{r['open']['words']:.2f}"),
            row("open and search by both, once, s", lambda r: f"{r['open']['both']:.2f}"),
            row("open Chroma and search, s", lambda r: f"{r['open']['server']:.2f}"),
            row("search again, ms", lambda r: f"{1000 * r['open']['again']:.1f}"),
            row("keyword index again, s", lambda r: f"{r['rebuild']['lexical']:.1f}"),
            row("vector index again, s", lambda r: f"{r['rebuild']['vectors']:.1f}"),
            row("verify, s", lambda r: f"{r['rebuild']['verify']:.1f}"),
            row("bytes on disk a chunk", lambda r: size(r, *all_parts)),
            *[row(f"… {part}", lambda r, part=part: size(r, part)) for part in all_parts],
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the Markdown files alone, a quarter of them")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--data", type=Path, help="not used: the collections are generated")
    parser.add_argument("--model", action="store_true", help="embed the Markdown files by the bundled model, too")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("--folders", nargs=2, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        print(json.dumps(STEPS[given.step](*given.folders, given.model)))
        return
    work = Path(tempfile.mkdtemp(prefix="hybrid-rag-bench-"))
    try:
        collections = [("Markdown files, free model", work / "pages", False)]
        (work / "pages").mkdir()
        write_markdown(work / "pages", FILES // 4 if given.quick else FILES)
        if not given.quick:
            make = [sys.executable, str(PROJECT / "scripts" / "make_sample_data.py"), str(work / "sample"), "--scale", "large"]
            subprocess.run(make, check=True, stdout=sys.stderr, env={**os.environ, "PYTHONUTF8": "1"})
            collections.append(("large sample, free model", work / "sample", False))
        if given.model:
            shutil.copytree(work / "pages", work / "pages_model")
            collections.append(("Markdown files, bundled model", work / "pages_model", True))
        results = [measure(name, data, work / f"{data.name}_index", model) for name, data, model in collections]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if problems := [p for r in results for p in r["rebuild"]["problems"]]:
        raise SystemExit(f"the index differs from its catalog: {problems}")
    print(f"{describe()}\n\n## Store\n\n{table(results)}")
    if given.json:
        given.json.write_text(json.dumps({"machine": describe(), "results": results}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
