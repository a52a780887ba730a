"""The mixed questions of tests/eval over the sample: text and tables in one list, as people meet them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from eval_sets import EvalSet

from hybrid_rag.analysis import IDENTIFIER_BOOST, is_identifier
from hybrid_rag.index import Index
from hybrid_rag.parts import Parts
from hybrid_rag.records import Chunk
from hybrid_rag.retrieval import RetrievalOptions, Retriever

HALF, NEARLY = 0.5, 0.75  # see matching_kinds
QUESTIONS = Path(__file__).parents[1] / "tests" / "eval" / "questions.yaml"


def as_set(folder: Path) -> EvalSet:
    """The questions for a text or an identifier as a set; a unit is a section, a page or a group of rows."""
    questions = {q["id"]: q for q in yaml.safe_load(QUESTIONS.read_text(encoding="utf-8")) if q["type"] in ("text", "identifier")}

    def relevant(question: str, chunks: list[Chunk]) -> frozenset[str]:
        return frozenset(place(c) for c in chunks if is_right(questions[question], c))

    return EvalSet(
        "sample", folder, {i: q["question"] for i, q in questions.items()}, place, relevant, lambda i: frozenset({questions[i]["source"]})
    )


def place(chunk: Chunk) -> str:
    return f"{chunk.source} {chunk.page or ''} {chunk.rows or ''} {' > '.join(chunk.heading)}"


def is_right(question: dict[str, Any], chunk: Chunk) -> bool:
    """The chunk is of the question's file, and of its page, heading or row where one is named."""
    if chunk.source != question["source"]:
        return False
    if (row := question.get("rows")) is not None:
        first, last = row if isinstance(row, list) else (row, row)
        return bool(chunk.rows and chunk.rows[0] <= first and last <= chunk.rows[1])
    if question.get("heading"):
        return any(question["heading"].casefold() in heading.casefold() for heading in chunk.heading)
    return question.get("page") is None or chunk.page == question["page"]


def matching_kinds(index: Index, question: str) -> set[str]:
    """The kinds that have something for a question: a chunk that holds every identifier of it, or, where it has none, at least half of
    its words and no fewer than three quarters of what the best chunk of all holds. Stop words do not count.
    """
    query = index.analyzer.query(question).terms
    words, identifiers = {term for term, _ in query}, {term for term, weight in query if weight >= IDENTIFIER_BOOST and is_identifier(term)}
    best = {"table": 0.0, "text": 0.0}
    for chunk in (stored.chunk for stored in index.catalog.iterate_chunks()):
        held = words & set(index.analyzer.terms(f"{chunk.context}\n{chunk.text}"))
        share_held = float(identifiers <= held) if identifiers else len(held) / len(words)
        best[chunk.kind] = max(best[chunk.kind], share_held)
    return {kind for kind, value in best.items() if value >= max(HALF, NEARLY * max(best.values()))}


def measure(index: Index, parts: Parts) -> dict[str, dict[str, float]]:
    questions = yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))
    out = {}
    print(f"\n## Sample: {len(questions)} questions, tables and text mixed\n")
    wanted = [q["id"] for q in questions if q["type"] != "unanswerable" and len(matching_kinds(index, q["question"])) == 2]
    print(
        f"Both kinds match {len(wanted)} of them ({', '.join(wanted)}): a chunk of each holds the identifier asked for, or, where there is"
    )
    print("none, at least half of the question's words and three quarters of what the best chunk holds.\n")
    print(
        "| fusion | text hit@1 | text hit@3 | identifier hit@1 | both kinds in five, where both match | missed |\n|---|---|---|---|---|---|"
    )
    for name, options in (("weighted", {}), ("rrf", {"fusion": "rrf", "dense_weight": 0.3}), ("classic", {"fusion": "classic"})):
        retriever = Retriever(index, lambda: parts.embedder("bundled"), lambda: None, RetrievalOptions(cache_entries=0, **options))
        found = {q["id"]: retriever.search(q["question"], k=5).hits for q in questions}
        ranks = {q["id"]: next((h.rank for h in found[q["id"]] if is_right(q, h.chunk)), 0) for q in questions if q.get("source")}
        text = [q["id"] for q in questions if q["type"] == "text"]
        identifiers = [q["id"] for q in questions if q["type"] == "identifier"]
        out[name] = {
            "text hit@1": share(ranks[i] == 1 for i in text),
            "text hit@3": share(1 <= ranks[i] <= 3 for i in text),
            "identifier hit@1": share(ranks[i] == 1 for i in identifiers),
            "both kinds in five": share(len({h.chunk.kind for h in found[i]}) == 2 for i in wanted),
        }
        missed = [i for i in text if not 1 <= ranks[i] <= 3] + [i for i in identifiers if ranks[i] != 1]
        print(f"| {name} | " + " | ".join(f"{value:.2f}" for value in out[name].values()) + f" | {', '.join(missed) or 'none'} |")
    return out


def share(values: Any) -> float:
    held = list(values)
    return sum(held) / len(held) if held else 0.0
