"""The mixed questions of tests/eval over the sample: text and tables in one list, as people meet them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from hybrid_rag.index import Index
from hybrid_rag.parts import Parts
from hybrid_rag.records import Hit
from hybrid_rag.retrieval import RetrievalOptions, Retriever

QUESTIONS = Path(__file__).parents[1] / "tests" / "eval" / "questions.yaml"


def is_right(question: dict[str, Any], hit: Hit) -> bool:
    """The hit is of the question's file, and of its page, heading or row where one is named."""
    chunk = hit.chunk
    if chunk.source != question["source"]:
        return False
    if (row := question.get("rows")) is not None:
        first, last = row if isinstance(row, list) else (row, row)
        return bool(chunk.rows and chunk.rows[0] <= first and last <= chunk.rows[1])
    if question.get("heading"):
        return any(question["heading"].casefold() in heading.casefold() for heading in chunk.heading)
    return question.get("page") is None or chunk.page == question["page"]


def measure(index: Index, parts: Parts) -> dict[str, dict[str, float]]:
    questions = yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))
    out = {}
    print(f"\nsample: {len(questions)} questions, tables and text mixed")
    for name, options in (("weighted", {}), ("rrf", {"fusion": "rrf", "dense_weight": 0.3}), ("classic", {"fusion": "classic"})):
        retriever = Retriever(index, lambda: parts.embedder("bundled"), lambda: None, RetrievalOptions(cache_entries=0, **options))
        found = {q["id"]: retriever.search(q["question"], k=5).hits for q in questions if q.get("source")}
        ranks = {q["id"]: next((h.rank for h in found[q["id"]] if is_right(q, h)), 0) for q in questions if q["id"] in found}
        text = [q["id"] for q in questions if q["type"] == "text"]
        identifiers = [q["id"] for q in questions if q["type"] == "identifier"]
        both = sum(len({h.chunk.kind for h in hits}) == 2 for hits in found.values())
        out[name] = {
            "text hit@1": share(ranks[i] == 1 for i in text),
            "text hit@3": share(1 <= ranks[i] <= 3 for i in text),
            "identifier hit@1": share(ranks[i] == 1 for i in identifiers),
            "both kinds in five": both / len(found),
        }
        print(f"  {name:10}" + "".join(f"  {key} {value:.2f}" for key, value in out[name].items()))
        missed = [i for i in text if not 1 <= ranks[i] <= 3] + [i for i in identifiers if ranks[i] != 1]
        print(f"             missed: {', '.join(missed) or 'none'}")
    return out


def share(values: Any) -> float:
    held = list(values)
    return sum(held) / len(held) if held else 0.0
