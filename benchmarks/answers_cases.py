"""Questions put to collections, what became of them, and shares with their intervals: shared by the benchmarks of answers."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hybrid_rag.answering import NOT_FOUND, Answerer, AnswerOptions
from hybrid_rag.extraction import extract
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.parts import Parts
from hybrid_rag.records import Answer
from hybrid_rag.reranking import Reranker
from hybrid_rag.retrieval import RetrievalOptions, Retriever

T = TypeVar("T")
FOLDERS = {"squad": "squad/files", "anthropic_docs": "anthropic_docs/pages_md", "single_topic_rag": "single_topic_rag/files"}


@dataclass
class Case:
    """One question put to one collection. ``gold``: any of these is right; empty when only the document is judged.

    ``documents``: the files that answer; empty when nothing there does.
    """

    question: str
    gold: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()


@dataclass
class Outcome:
    """What became of a case. ``had``: the gold was in the first five passages; ``quoted``: in the best quote, claimed or not."""

    case: Case
    mode: str
    abstained: bool  # "not in your documents", rather than the closest passages without a claim
    claimed: bool
    milliseconds: float
    processor: float  # milliseconds of processor time, over all cores
    answer: str = ""
    had: bool = False
    quoted: bool = False
    right: bool = False
    document_right: bool = False
    score: float | None = None  # logit of the best sentence
    sources: tuple[str, ...] = ()  # that are cited
    written: str = ""  # by a model, before the checks
    details: dict[str, Any] = field(default_factory=dict)


class Collection:
    """The documents of a set, indexed once, and answers from them. ``cases``: the answerable questions whose documents are there."""

    def __init__(self, name: str, data: Path, cache: Path, parts: Parts, reranker: Callable[[], Reranker | None], *, part: int) -> None:
        """``part``: where the set is not indexed yet, so many documents that hold answers and as many that do not; 0: all."""
        self.name, self._parts, self.reranker = name, parts, reranker
        folder, directory = data / FOLDERS[name], index_directory(name, cache)
        self.cases, self.unanswered = cases_of(name, data)
        if part and not directory.is_dir():
            folder, directory = _part(folder, self.cases, cache / f"{name}_{part}", part)
        self.index = Index(IndexOptions(directory, vector_mode="exact"), create=True)
        report = ingest(self.index, IngestOptions(folder), embedder=lambda: parts.embedder("bundled"))
        held = {document.source for document in self.index.catalog.documents()}
        self.cases = [case for case in self.cases if held.issuperset(case.documents)]
        self.documents = len(held)
        if report.chunks_embedded:
            log(f"{name}: {report.chunks_embedded} chunks embedded in {report.seconds:.0f} s")
        self._retriever = Retriever(
            self.index, lambda: parts.embedder("bundled"), lambda: self.reranker(), RetrievalOptions(cache_entries=0)
        )

    def ask(self, case: Case, chat: Any = None) -> tuple[Outcome, Answer]:
        before = time.process_time()
        answer = Answerer(self._retriever, lambda: chat, self.reranker, AnswerOptions()).answer(case.question)
        claimed = answer.mode in ("extractive", "llm")
        out = Outcome(case, answer.mode, answer.answer == NOT_FOUND, claimed, answer.milliseconds["total"],
                      1000 * (time.process_time() - before), answer.answer)  # fmt: skip
        out.had = any(holds(hit.chunk.text, case.gold) for hit in answer.hits[:5])
        out.right = claimed and holds(answer.answer, case.gold)
        out.sources = tuple(citation.source for citation in answer.citations)
        out.document_right = bool(answer.citations) and answer.citations[0].source in case.documents
        return out, answer

    def shown_to_model(self, answer: Answer) -> dict[int, str]:
        """The passages by their numbers, with their neighbours, as a model gets them."""
        options, hits = AnswerOptions(), answer.hits
        chunks = self._retriever.windows([hit.chunk for hit in hits[: options.context_chunks]], options.neighbours)
        return {n: chunk.text for n, chunk in enumerate(chunks, start=1)}

    def best_quote(self, question: str) -> tuple[str, float | None]:
        """What would be quoted, whether it is claimed or not, with its logit."""
        found = extract(
            question,
            self._retriever.search(question, k=5, rerank=True).hits,
            analyzer=self.index.analyzer,
            frequency=self.index.lexical.document_frequency,
            total=self.index.lexical.count(),
            reranker=self.reranker(),
            sure_from=AnswerOptions().quote_from,
        )
        return (found[0].citation(1, question).quote, found[0].score) if found else ("", None)


def ask_all(collection: Collection, cases: Sequence[Case], *, quotes: bool = False) -> list[Outcome]:
    """Without a model. ``quotes``: also look at the best quote where none was claimed."""
    out = []
    for place, case in enumerate(cases, start=1):
        outcome = collection.ask(case)[0]
        if quotes:
            quote, outcome.score = collection.best_quote(case.question)
            outcome.quoted = holds(quote, case.gold)
        out.append(outcome)
        if place % 20 == 0:
            log(f"{collection.name}: {place} of {len(cases)}")
    return out


# ---------------------------------------------------------------- the sets


def index_directory(name: str, cache: Path) -> Path:
    """The same as for the benchmark of retrieval, so that a set is embedded once."""
    return cache / ("anthropic_docs_pages" if name == "anthropic_docs" else name) / "index"


def cases_of(name: str, data: Path) -> tuple[list[Case], list[Case]]:
    """The questions of a set that its documents answer, and those that they do not."""
    base = data / name
    questions = {row["id"]: row["text"] for row in jsonl(base / "queries.jsonl")}
    answers = {row["id"]: row for row in jsonl(base / "answers.jsonl")}
    documents: dict[str, list[str]] = {}
    qrels = base / ("qrels_pages.tsv" if name == "anthropic_docs" else "qrels.tsv")
    for line in qrels.read_text(encoding="utf-8").splitlines():
        question, document, _ = line.split("\t")
        documents.setdefault(question, []).append(document)
    if name == "squad":
        return [Case(q, tuple(answers[i]["answers"]), tuple(documents[i])) for i, q in questions.items()], []
    answered = [Case(q, (), tuple(documents[i])) for i, q in questions.items() if i in documents]
    return answered, [Case(q) for i, q in questions.items() if answers.get(i, {}).get("kind") == "none"]


def _part(folder: Path, cases: Sequence[Case], cache: Path, count: int) -> tuple[Path, Path]:
    """Folder and index directory of a part of a set's documents."""
    answering = sorted({case.documents[0] for case in cases if len(case.documents) == 1})
    others = sorted(path.name for path in folder.iterdir() if path.name not in answering)
    part = cache / "documents"
    part.mkdir(parents=True, exist_ok=True)
    for name in (*spread(answering, count), *spread(others, count)):
        if not (part / name).exists():
            shutil.copyfile(folder / name, part / name)
    return part, cache / "index"


def spread(cases: Sequence[T], count: int) -> list[T]:
    """So many of the cases, evenly from the whole list: the same ones every time."""
    if count >= len(cases):
        return list(cases)
    return [cases[i * len(cases) // count] for i in range(count)]


def jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def holds(text: str, gold: Sequence[str]) -> bool:
    folded = " ".join(text.split()).casefold()
    return any(" ".join(g.split()).casefold() in folded for g in gold)


# ---------------------------------------------------------------- shares


def header(title: str) -> None:
    print(f"\n## {title}\n\n| | share | 95 % interval | halves | questions |\n|---|---|---|---|---|")


def row(name: str, values: Sequence[bool]) -> None:
    halves = f"{share(values[::2])} / {share(values[1::2])}"
    low, high = interval(values)
    print(f"| {name} | {share(values)} | {low:.3f} to {high:.3f} | {halves} | {len(values)} |", flush=True)


def share(values: Sequence[bool]) -> str:
    return f"{sum(values) / len(values):.3f}" if values else "-"


def interval(values: Sequence[bool]) -> tuple[float, float]:
    """Wilson's score interval at 95 %: for shares near 0 and 1 too, where resampling shows no spread."""
    if not values:
        return 0.0, 1.0
    n, z2 = len(values), 1.96**2
    p = sum(values) / n
    centre, half = p + z2 / (2 * n), 1.96 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    return max(0.0, (centre - half) / (1 + z2 / n)), min(1.0, (centre + half) / (1 + z2 / n))


def at(ordered: Sequence[float], quantile: float) -> float:
    return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))] if ordered else 0.0


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
