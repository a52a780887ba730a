"""The MCP server: how soon a client is answered on a large index, and what a search costs beside whole documents.

    python benchmarks/mcp_server.py [--quick] [--data DIR] [--json FILE]

The server is started as a client starts it: a new process in /, with PATH and HOME alone. The large index has 43,828 units (43,328
records, a chunk each, and 500 sections) with random vectors of the bundled model's form, searched through Chroma. Tokens are
estimates; ten questions on documentation pages, with the vectors of the bundled model (without any with --quick).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import eval_sets
import numpy as np
import yaml
from machine import describe

from hybrid_rag.embedding import Embedded
from hybrid_rag.embedding_onnx import bundled_embedder
from hybrid_rag.prompts import estimate_tokens
from hybrid_rag.service import open_service

PROJECT = Path(__file__).parents[1]
sys.path.insert(0, str(PROJECT / "scripts"))
from sample_data import large  # noqa: E402

QUESTIONS = 10
RUNS = 3
HITS = 5


class RandomEmbedder:
    """A random unit vector for each text, the same each time: free, and the worst case for a graph of neighbours."""

    def __init__(self) -> None:
        model = bundled_embedder()
        self.name, self.fingerprint, self.dimensions = model.name, model.fingerprint, model.dimensions

    def embed_documents(self, texts: Sequence[str]) -> Embedded:
        return Embedded(np.array([self.embed_query(text) for text in texts], np.float32).reshape(len(texts), self.dimensions))

    def embed_query(self, text: str) -> np.ndarray:
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        vector = np.random.Generator(np.random.PCG64(seed)).standard_normal(self.dimensions, np.float32)
        return vector / np.linalg.norm(vector)


class Session:
    """A server process and the lines to and from it."""

    def __init__(self, config: Path) -> None:
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hybrid_rag", "mcp", "--config", str(config)], cwd="/",
            env={"PATH": os.defpath, "HOME": str(config.parent)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._number = 0

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params or {}})
        while (answer := json.loads(self._process.stdout.readline())).get("id") != self._number:
            pass
        return answer["result"]

    def open(self) -> None:
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "benchmark", "version": "1"}})
        self._send({"method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        return result

    def cpu(self) -> float:
        """Seconds of a core that the server has used; 0 where the system does not say."""
        file = Path(f"/proc/{self._process.pid}/stat")
        fields = file.read_text(encoding="utf-8").rpartition(")")[2].split() if file.exists() else ["0"] * 13
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if file.exists() else 0.0

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def _send(self, message: dict[str, Any]) -> None:
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


def configuration(folder: Path, data: Path, **sections: dict[str, Any]) -> Path:
    tree = {"data": {"directory": str(data)}, "vector_store": {"persist_directory": str(folder / "index")}, "llm": {"provider": "none"},
            "ollama": {"base_url": "http://127.0.0.1:9"}, "mcp": {"log_file": str(folder / "mcp.log")}, **sections}  # fmt: skip
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return file


def large_index(folder: Path, times: float) -> tuple[Path, int]:
    """The configuration of the large index, and its chunks."""
    data = folder / "data"
    data.mkdir()
    large.RECORDS = int(large.RECORDS * times)
    large.write(data)
    config = configuration(folder, data, document_processing={"csv_chunk_size": 1}, embedding={"provider": "bundled"})
    with open_service(config) as service:
        service.parts.embedder = lambda provider: RandomEmbedder()  # type: ignore[method-assign]
        service.index()
        return config, service.stats().chunks


def start(config: Path, runs: int) -> dict[str, list[float]]:
    """Seconds from the start of the process: three kinds of cold start, each in processes of its own."""
    times: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        times.setdefault(name, []).append(value)

    first: dict[str, Callable[[Session], Any]] = {
        "first search by words": lambda s: s.call("search_documents", query="headphone overheats", k=HITS, mode="keyword"),
        "first search by words and meaning": lambda s: s.call("search_documents", query="headphone overheats", k=HITS),
        "first query of a table": lambda s: s.call("query_tables", sql="SELECT count(*) FROM stock"),
    }
    for _ in range(runs):
        for name, call in first.items():
            session = Session(config)
            session.open()
            note("initialize", time.perf_counter() - session.started)
            note("initialize (CPU)", session.cpu())
            asked = time.perf_counter()
            session.ask("tools/list")
            note("tools/list", time.perf_counter() - asked)
            asked, used = time.perf_counter(), session.cpu()
            call(session)
            note(f"{name}, after initialize", time.perf_counter() - asked)
            note(f"{name}, after initialize (CPU)", session.cpu() - used)
            asked = time.perf_counter()
            session.call("search_documents", query="cracked screen in Berlin", k=HITS, mode="keyword" if "by words" in name else "hybrid")
            if name.startswith("first search"):
                note(name.replace("first", "next"), time.perf_counter() - asked)
            session.close()
    return times


def tokens(folder: Path, quick: bool) -> list[dict[str, Any]] | str:
    """For each question the tokens of the tool's whole answer and of whole documents; why not, when the set is missing."""
    pages = eval_sets.load("anthropic_docs pages", folder)
    if pages is None:
        return "the documentation pages are not there"
    (folder / "tokens").mkdir()
    config = configuration(folder / "tokens", pages.folder, embedding={"provider": "none" if quick else "bundled"})
    with open_service(config) as service:
        service.index()
        whole = service.whole_tokens(d.source for d in service.documents())
    session, rows = Session(config), []
    session.open()
    chosen = sorted(pages.questions)[:: max(1, len(pages.questions) // QUESTIONS)][:QUESTIONS]
    for question in chosen:
        result = session.call("search_documents", query=pages.questions[question], k=HITS)
        hits = result["structuredContent"]["hits"]
        right = pages.relevant(question, [])
        rows.append({
            "question": pages.questions[question], "answer": estimate_tokens(result["content"][0]["text"]), **result["structuredContent"]["tokens"],
            "collection": whole, "documents": len({h["source"] for h in hits}), "right": any(h["source"] in right for h in hits),
        })  # fmt: skip
    session.close()
    return rows


def show(chunks: int, times: dict[str, list[float]], rows: list[dict[str, Any]] | str) -> None:
    print(f"## MCP server: from the start of its process, {chunks:,} chunks\n\n| | median s | slowest s |\n|---|---:|---:|")
    for name, values in times.items():
        print(f"| {name} | {statistics.median(values):.2f} | {max(values):.2f} |")
    print(f"\n## MCP server: tokens of search_documents with {HITS} hits, and of whole documents\n")
    if isinstance(rows, str):
        print(f"Not run: {rows}.")
        return
    print(
        "| question | result as text | snippets | whole documents of the hits | share | right page among them |\n|---|---:|---:|---:|---:|---|"
    )
    for row in rows:
        share = row["answer"] / row["whole_documents"]
        title = row["question"].replace("|", "/")
        print(
            f"| {title[:70]} | {row['answer']:,} | {row['snippets']:,} | {row['whole_documents']:,} | {share:.1%} | {'yes' if row['right'] else 'no'} |"
        )
    text, whole = (sum(row[key] for row in rows) for key in ("answer", "whole_documents"))
    right = sum(row["right"] for row in rows)
    print(
        f"| all {len(rows)} | {text:,} | {sum(row['snippets'] for row in rows):,} | {whole:,} | {text / whole:.1%} | {right} of {len(rows)} |"
    )
    print(f"\nThe whole collection has about {rows[0]['collection']:,} tokens.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, no vectors of the documentation, under a minute")
    parser.add_argument("--data", type=Path, help="the public question sets; unset: ../shared/eval beside the project")
    parser.add_argument("--json", type=Path, help="write all figures here too")
    a = parser.parse_args()
    if a.data:
        eval_sets.DATA = a.data
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        rows = tokens(place, a.quick)
        print("tokens counted", file=sys.stderr)
        (place / "large").mkdir()
        config, chunks = large_index(place / "large", 0.1 if a.quick else 1)
        print(f"{chunks} chunks indexed", file=sys.stderr)
        times = start(config, 1 if a.quick else RUNS)
    print(f"{describe()}\n")
    show(chunks, times, rows)
    if a.json:
        a.json.write_text(
            json.dumps({"machine": describe(), "chunks": chunks, "seconds": times, "tokens": rows}, indent=1), encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
