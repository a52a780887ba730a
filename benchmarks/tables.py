"""Answers from tables: how many questions the rules (and a model) answer, how many of these rightly, and how fast.

python benchmarks/tables.py [--quick] [--data DIR] [--json FILE] [--misses] [--model GGUF]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import wtq

from hybrid_rag import open_service
from hybrid_rag.filters import Filters
from hybrid_rag.records import Answer
from hybrid_rag.service import Service

DATA = Path(__file__).parents[2] / "shared" / "eval"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def service_over(folder: Path, index: Path, **settings: Any) -> Service:
    given = {
        "data.directory": folder,
        "vector_store.persist_directory": index,
        "embedding.provider": "none",
        "llm.provider": "none",
        **settings,
    }
    return open_service(settings=[f"{key}={value}" for key, value in given.items()])


def answers(answer: Answer) -> list[Any]:
    """What the answer claims: the first cell of each row of the result."""
    return [row[0] for row in answer.table.rows] if answer.table else []


def questions_of_tables(data: Path, work: Path, *, misses: str) -> dict[str, Any] | None:
    folder = data / "wikitablequestions"
    if not (folder / "questions.tsv").is_file():
        return None
    asked = wtq.load(folder)
    with service_over(folder / "csv", work / "wtq") as service:
        started = time.perf_counter()
        service.index()
        say(f"indexed in {time.perf_counter() - started:.1f} s")
        out = {}
        times = []
        for half, held in (("tune", False), ("held out", True)):
            some = [q for q in asked if q.held_out == held]
            answered = right = 0
            for q in some:
                started = time.perf_counter()
                answer = service.ask_tables(q.text, filters=Filters.parse(sources=(q.source,)))
                times.append(time.perf_counter() - started)
                if answer is None:
                    if misses in ("all", "declined") and not held:
                        say(f"-- {q.id} {q.source} {q.text}  GOLD {q.gold}")
                    continue
                answered += 1
                good = wtq.is_right(answers(answer), q.gold)
                right += good
                if ((misses in ("wrong", "all") and not good) or (misses == "right" and good)) and not held:
                    say(f"{'OK' if good else 'XX'} {q.id} {q.source} {q.text}\n   {answer.sql}\n   GOT {answers(answer)[:6]} GOLD {q.gold}")
            out[half] = {"questions": len(some), "answered": answered, "right": right}
        out["milliseconds"] = sorted(times)[len(times) // 2] * 1000
        return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--misses", choices=["none", "wrong", "declined", "all", "right"], default="none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = questions_of_tables(options.data, options.work or Path(folder), misses=options.misses)
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
