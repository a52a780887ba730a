"""The page under load: eight people at once over the sample, times of every kind of request, and memory from beginning to end.

    python benchmarks/web.py [--quick] [--seconds 120] [--clients 8] [--config FILE] [--data DIR] [--json FILE]

The server is a process of its own, as `hybrid-rag serve` starts it; the clients are threads of this one, each with requests in a seeded
order and no rest between them. --config takes an index that is there (else the sample is indexed, with --quick without vectors).
--data is taken for uniformity with the other scripts; nothing is read from it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml
from machine import describe, load

from hybrid_rag.percentiles import percentile
from hybrid_rag.service import open_service

PROJECT = Path(__file__).parents[1]
WORDS = ["return", "opened", "headphones", "battery", "warranty", "claims", "Berlin", "restocking", "fee", "shipping", "Norway", "manual", "noise",
         "charging", "supplier", "agreement", "discount", "handbook", "receipt", "laptop", "camera", "delivery", "refund", "firmware"]  # fmt: skip
QUESTIONS = ["How many orders came from Berlin?", "What is the total order value per month?", "How many orders per channel?"]
KINDS = {"search": 0.5, "page of results": 0.2, "filters": 0.1, "source": 0.1, "table question": 0.1}
LOOKS = 12  # at the memory


@contextmanager
def served(config: Path):
    server = subprocess.Popen(
        [sys.executable, "-m", "hybrid_rag", "serve", "--port", "0", "--config", str(config), "--set", "web.requests_per_minute=1000000"],
        stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    try:
        address = re.search(r"http://[\d.:]+", server.stderr.readline())
        assert address
        threading.Thread(target=lambda: sys.stderr.writelines(server.stderr), daemon=True).start()  # what it says while it serves
        yield address[0], server.pid
    finally:
        server.terminate()
        server.wait(timeout=60)


def sample(folder: Path, *, vectors: bool) -> Path:
    tree = {"data": {"directory": str(PROJECT / "data")}, "vector_store": {"persist_directory": str(folder / "index")},
            "llm": {"provider": "none"}, "embedding": {"provider": "bundled" if vectors else "none"}}  # fmt: skip
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(tree), encoding="utf-8")
    with open_service(config) as service:
        service.index()
    return config


def requests(client: httpx.Client, rng: random.Random, sources: Sequence[str]) -> dict[str, Callable[[], httpx.Response]]:
    """One request of each kind, its words drawn when it is made."""

    def words() -> str:
        return " ".join(rng.sample(WORDS, rng.randint(1, 4)))

    return {
        "search": lambda: client.get("/api/search", params={"q": words(), "k": 10}),
        "page of results": lambda: client.get("/fragments/results", params={"q": words()}),
        "filters": lambda: client.get("/fragments/filters", params={"q": words(), "kind": rng.choice(["text", "table"])}),
        "source": lambda: client.get("/fragments/source", params={"source": rng.choice(sources)}),
        "table question": lambda: client.post("/api/ask", json={"question": rng.choice(QUESTIONS)}),
    }


def work(address: str, seed: int, sources: Sequence[str], until: float, times: dict[str, list[float]], faults: list[str]) -> None:
    rng = random.Random(seed)
    with httpx.Client(base_url=address, timeout=120) as client:
        made = requests(client, rng, sources)
        while time.monotonic() < until:
            kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
            started = time.perf_counter()
            answer = made[kind]()
            times[kind].append(time.perf_counter() - started)
            if answer.status_code != 200:
                faults.append(f"{kind}: {answer.status_code} {answer.text[:200]}")


def memory(pid: int) -> float:
    """MB that the server holds; 0 where the system does not say."""
    file = Path(f"/proc/{pid}/status")
    match = re.search(r"VmRSS:\s+(\d+) kB", file.read_text(encoding="utf-8")) if file.exists() else None
    return int(match[1]) / 1024 if match else 0.0


def measure(config: Path, clients: int, seconds: float) -> dict[str, Any]:
    with served(config) as (address, pid):
        sources = [d["source"] for d in httpx.get(f"{address}/api/documents", timeout=60).json()]
        for _ in range(3):  # everything is loaded before the clock runs
            httpx.get(f"{address}/api/search", params={"q": "warm up"}, timeout=120)
            httpx.post(f"{address}/api/ask", json={"question": QUESTIONS[0]}, timeout=120)
        until = time.monotonic() + seconds
        times: dict[str, list[float]] = {kind: [] for kind in KINDS}
        faults: list[str] = []
        threads = [threading.Thread(target=work, args=(address, n, sources, until, times, faults)) for n in range(clients)]
        for thread in threads:
            thread.start()
        held = []
        for _ in range(LOOKS):
            time.sleep(seconds / LOOKS)
            held.append(round(memory(pid), 1))
        for thread in threads:
            thread.join()
    kinds = {
        kind: {"count": len(found), "p50": percentile(sorted(found), 50) * 1000, "p95": percentile(sorted(found), 95) * 1000,
               "largest": max(found, default=0.0) * 1000}
        for kind, found in times.items()
    }  # fmt: skip
    return {"clients": clients, "seconds": seconds, "kinds": kinds, "memory_mb": held, "faults": faults, "load": load()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 seconds, without vectors")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = options.config or sample(Path(folder), vectors=not options.quick)
        found = measure(config, options.clients, options.seconds or (20 if options.quick else 120))
    print("load ended", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps({"machine": describe(), **found}, indent=2), encoding="utf-8")
    total = sum(kind["count"] for kind in found["kinds"].values())
    print(f"{describe()}\n")
    print(f"## The page under load\n\n{found['clients']} clients without rest for {found['seconds']:.0f} s: {total:,} requests, "
          f"{total / found['seconds']:.0f} a second, {len(found['faults'])} failed.\n")  # fmt: skip
    print("| request | count | p50 ms | p95 ms | largest ms |\n|---|--:|--:|--:|--:|")
    for kind, t in found["kinds"].items():
        print(f"| {kind} | {t['count']:,} | {t['p50']:,.0f} | {t['p95']:,.0f} | {t['largest']:,.0f} |")
    print(f"\nMemory of the server at twelve times of the run, MB: {', '.join(f'{m:,.0f}' for m in found['memory_mb'])}.")
    for fault in found["faults"][:5]:
        print(f"\n{fault}")
    if found["faults"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
