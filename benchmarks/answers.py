"""Quality of answers: extractive ones, what is refused, how long it takes, and what a small real model makes of it.

    python benchmarks/answers.py [--quick | --all] [--data DIR] [--cache FOLDER] [--json FILE] [--model FILE.gguf]

Without ``--model`` answers are quotes. ``squad`` has exact gold spans: is the gold in the quote, is a claimed answer right.
Abstention: one set's questions put to another set's documents, and the questions of ``single_topic_rag`` that its pages
touch but do not answer. Questions are taken evenly from the whole of a set, the same ones every time. Intervals are Wilson's
at 95 %; "halves" are the questions of even and odd place, so that a threshold that fits one half only would show. Where a set
is not indexed yet, a part of its documents is, unless ``--all`` asks for the whole. Indexes and the cross-encoder's logits are
kept in the cache folder; times are of questions asked without kept logits.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import eval_sets
from answers_cases import FOLDERS, Case, Collection, Outcome, ask_all, at, header, row, share, spread
from kept import KeptReranker
from machine import describe

from hybrid_rag.config import Config
from hybrid_rag.parts import Parts


@dataclass(frozen=True)
class Size:
    """How many questions of each kind, and (``part``) documents with answers of a set that is not indexed yet; 0: all."""

    squad: int
    others: int  # of each other set
    foreign: int  # of each pair of sets
    timed: int
    part: int


SIZES = {"quick": Size(12, 6, 3, 6, 4), "default": Size(80, 30, 10, 24, 12), "all": Size(10_000, 10_000, 150, 60, 0)}
PAIRS = [(asker, other) for asker in FOLDERS for other in FOLDERS if asker != other]  # whose questions are put to whose documents


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=eval_sets.DATA)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "hybrid-rag-benchmarks")
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--quick", dest="size", action="store_const", const="quick", default="default", help="under two minutes, nothing indexed"
    )
    size.add_argument("--all", dest="size", action="store_const", const="all", help="every question and document")
    parser.add_argument("--model", type=Path, help="a GGUF file: answers are written by it, through the test server")
    parser.add_argument("--sample", type=int, default=24, help="with --model: questions of squad; half as many of the other kinds")
    parser.add_argument("--attacks", type=int, default=100, help="with --model: documents that try to rule the answer, at most")
    parser.add_argument("--minutes", type=float, default=40, help="with --model: ask nothing more after this time")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    print(describe())
    size = SIZES["all" if arguments.model else arguments.size]
    parts = Parts(Config())
    arguments.cache.mkdir(parents=True, exist_ok=True)
    kept = KeptReranker(arguments.cache / "reranker.sqlite")
    present = [name for name in FOLDERS if (arguments.data / FOLDERS[name]).is_dir()]
    collections = {name: Collection(name, arguments.data, arguments.cache, parts, lambda: kept, part=size.part) for name in present}
    if arguments.model:
        from answers_model import with_model

        results = with_model(arguments.model, collections, arguments.sample, arguments.attacks, arguments.minutes, arguments.cache)
    else:
        results = extractive(collections, size)
        kept.save()
        results["times"] = _times(collections, size, parts)
    for name in FOLDERS:
        if name not in present:
            print(f"\nNot run: {name}, for its data is not at {arguments.data / FOLDERS[name]}.")
    for collection in collections.values():
        collection.index.close()
    kept.save()
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8")


# ---------------------------------------------------------------- without a model


def extractive(collections: dict[str, Collection], size: Size) -> dict[str, Any]:
    asked: dict[str, list[Outcome]] = {}
    if squad := collections.get("squad"):
        asked["squad"] = ask_all(squad, spread(squad.cases, size.squad), quotes=True)
        _quotes_table(asked["squad"], squad.documents)
    for name, collection in collections.items():
        if name != "squad":
            asked[name] = ask_all(collection, spread(collection.cases, size.others))
    off: dict[str, list[Outcome]] = {}
    for asker, other in PAIRS:
        if asker in collections and other in collections:
            cases = [Case(c.question) for c in spread(collections[asker].cases, size.foreign)]
            off[f"{asker} to {other}"] = ask_all(collections[other], cases)
    if not asked:
        return {}
    _abstention_table(asked, off)
    covered: list[Outcome] = []
    if single := collections.get("single_topic_rag"):
        covered = ask_all(single, spread(single.unanswered, size.others))
        _covered_table(covered, asked["single_topic_rag"])
    everything = {**asked, **off, "unanswered, topic covered": covered}
    return {name: [asdict(o) for o in found] for name, found in everything.items()}


def _times(collections: dict[str, Collection], size: Size, parts: Parts) -> list[dict[str, float]]:
    """Answerable questions of all sets in turn, with models that are loaded and nothing kept."""
    found: list[Outcome] = []
    for collection in collections.values():
        cases, collection.reranker = spread(collection.cases, max(2, size.timed // len(collections))), parts.reranker
        collection.ask(cases[0])  # loads the models
        found += ask_all(collection, cases)
    if found:
        _time_table(found)
    return [{"milliseconds": o.milliseconds, "processor": o.processor} for o in found]


def _quotes_table(found: list[Outcome], documents: int) -> None:
    had = [o for o in found if o.had]
    header(f"Quotes: squad, {len(found)} questions with exact gold spans, {documents} articles")
    row("gold in one of the five passages", [o.had for o in found])
    row("gold in the best quote, where retrieval had it", [o.quoted for o in had])
    row("an answer is claimed (sentence logit at least 2)", [o.claimed for o in found])
    row("right, where an answer is claimed", [o.right for o in found if o.claimed])
    print("\n| sentence logit | questions | gold in the quote |\n|---|---|---|")
    for low, high in ((5, 99), (3.5, 5), (2, 3.5), (0, 2), (-2, 0), (-99, -2)):
        inside = [o.quoted for o in found if o.score is not None and low <= o.score < high]
        name = f"{low} to {high}" if abs(low) < 90 and high < 90 else f"from {low}" if high > 90 else f"below {high}"
        print(f"| {name} | {len(inside)} | {share(inside)} |")


def _abstention_table(asked: dict[str, list[Outcome]], off: dict[str, list[Outcome]]) -> None:
    answerable, foreign = [o for found in asked.values() for o in found], [o for found in off.values() for o in found]
    header("Abstention: questions of one set put to another's documents")
    for name, found in off.items():
        row(f"abstained: {name}", [o.abstained for o in found])
    row("recall: abstained, of all off-corpus", [o.abstained for o in foreign])
    row("no answer claimed, of all off-corpus", [not o.claimed for o in foreign])
    for name, found in asked.items():
        row(f"wrongly refused: {name}", [o.abstained for o in found])
    row("wrongly refused, of all answerable", [o.abstained for o in answerable])
    row("precision: off-corpus, of all abstentions", [not o.case.documents for o in [*answerable, *foreign] if o.abstained])
    recall, refused = (sum(o.abstained for o in found) / max(1, len(found)) for found in (foreign, answerable))
    if recall:
        print(
            f"\nPrecision depends on the share of off-corpus questions; with as many as answerable ones it is {recall / (recall + refused):.3f}."
        )


def _covered_table(unanswered: list[Outcome], answered: list[Outcome]) -> None:
    header("Questions on a topic that the pages cover but do not answer (single_topic_rag)")
    row("not answered in the pages: abstained", [o.abstained for o in unanswered])
    row("not answered in the pages: no answer claimed", [not o.claimed for o in unanswered])
    row("answered in the pages: an answer is claimed", [o.claimed for o in answered])
    row("answered in the pages: right page cited first", [o.document_right for o in answered])


def _time_table(found: list[Outcome]) -> None:
    print("\n## Time of an answer without a model, once loaded\n")
    print("| | p50 | p95 | questions |\n|---|---|---|---|")
    for name, values in (("time", [o.milliseconds for o in found]), ("processor time, all cores", [o.processor for o in found])):
        print(f"| {name} | {at(sorted(values), 0.5):,.0f} ms | {at(sorted(values), 0.95):,.0f} ms | {len(values)} |")


if __name__ == "__main__":
    main()
