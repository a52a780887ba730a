"""The public question sets as collections: a folder of documents, questions, and which units answer each.

The data stays where it is (HYBRID_RAG_EVAL_DATA, else ../shared/eval beside the checkout); a set that is missing is said to be.
A unit is what a set judges: a file, or for `squad` a chunk that covers the answer's place in the file.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hybrid_rag.records import Chunk

PROJECT = Path(__file__).parents[1]
DATA = Path(os.environ.get("HYBRID_RAG_EVAL_DATA", PROJECT.parent / "shared" / "eval"))
NAMES = ("anthropic_docs sections", "anthropic_docs pages", "cranfield", "squad", "single_topic_rag")
SQUAD_QUESTIONS = 150  # drawn with a fixed seed; all articles are searched


@dataclass(frozen=True)
class EvalSet:
    """``unit`` names what a chunk counts as; ``relevant`` gives the units that answer a question, from all chunks."""

    name: str
    folder: Path
    questions: Mapping[str, str]
    unit: Callable[[Chunk], str]
    relevant: Callable[[str, list[Chunk]], frozenset[str]]
    files: Callable[[str], frozenset[str]]  # that hold the answer to a question, relative to the folder
    drawn: str = ""  # what part of the set this is; "" the whole


def load(name: str, cache: Path, *, data: Path = DATA, full: bool = False) -> EvalSet | None:
    """The set, its documents written below ``cache`` where it has none as files; None when its data is not there.

    ``full``: all questions of squad, else SQUAD_QUESTIONS of them.
    """
    base = data / name.split()[0]
    if not (base / "queries.jsonl").is_file():
        print(f"\n{name}: not run, its data is not there ({base}).")
        return None
    questions = {row["id"]: row["text"] for row in _jsonl(base / "queries.jsonl")}
    if name == "squad":
        chosen = sorted(questions) if full else random.Random(0).sample(sorted(questions), SQUAD_QUESTIONS)
        return _squad(base, {q: questions[q] for q in chosen})
    qrels = "qrels_pages.tsv" if name.endswith("pages") else "qrels.tsv"
    wanted: dict[str, set[str]] = {}
    for question, unit in _judgements(base / qrels):
        wanted.setdefault(question, set()).add(unit)
    if name.endswith("pages"):
        folder, names = base / "pages_md", {}
    elif name == "single_topic_rag":
        folder, names = base / "files", {}
    else:
        folder = cache / name.replace(" ", "_") / "documents"
        names = _write(_jsonl(base / "corpus.jsonl"), folder)
    questions = {q: text for q, text in questions.items() if q in wanted}
    files = {unit: file for file, unit in names.items()}
    return EvalSet(
        name,
        folder,
        questions,
        lambda c: names.get(c.source, c.source),
        lambda q, chunks: frozenset(wanted[q]),
        lambda q: frozenset(files.get(unit, unit) for unit in wanted[q]),
    )


def part(chosen: EvalSet, folder: Path, characters: int, most: int = 30) -> EvalSet:
    """About so many characters of a set, drawn with a fixed seed, as files in ``folder``: questions with the files that answer them
    fill half of it at most, files that answer none of them the rest.
    """
    sizes = {path.relative_to(chosen.folder).as_posix(): path.stat().st_size for path in sorted(chosen.folder.rglob("*")) if path.is_file()}
    rng, taken, questions = random.Random(0), set[str](), []
    for question in rng.sample(sorted(chosen.questions), len(chosen.questions)):
        needed = taken | chosen.files(question)
        if len(questions) < most and needed <= sizes.keys() and sum(map(sizes.__getitem__, needed)) <= characters / 2:
            taken = needed
            questions.append(question)
    for name in rng.sample(sorted(sizes), len(sizes)):
        if name not in taken and sum(map(sizes.__getitem__, taken)) + sizes[name] <= characters:
            taken.add(name)
    for path in [p for p in folder.rglob("*") if p.is_file() and p.relative_to(folder).as_posix() not in taken]:
        path.unlink()
    for name in taken:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((chosen.folder / name).read_bytes())
    drawn = f"{len(questions)} of {len(chosen.questions)} questions and {len(taken)} of {len(sizes)} files drawn with a fixed seed"
    return replace(chosen, folder=folder, questions={q: chosen.questions[q] for q in questions}, drawn=drawn)


def _squad(base: Path, questions: dict[str, str]) -> EvalSet:
    places: dict[str, tuple[str, int]] = {}
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted((base / "files").glob("*.txt"))}
    files = dict(_judgements(base / "qrels.tsv"))
    for row in _jsonl(base / "answers.jsonl"):
        text = texts[files[row["id"]]]
        at = text.find(row["context"])
        inner = min((i for i in (row["context"].find(a) for a in row["answers"]) if i >= 0), default=-1)
        if at >= 0 and inner >= 0:
            places[row["id"]] = (files[row["id"]], at + inner)

    def relevant(question: str, chunks: list[Chunk]) -> frozenset[str]:
        file, place = places[question]
        return frozenset(c.id for c in chunks if c.source == file and c.start <= place < c.end)

    return EvalSet(
        "squad",
        base / "files",
        {q: t for q, t in questions.items() if q in places},
        lambda c: c.id,
        relevant,
        lambda q: frozenset({places[q][0]}),
    )


def _write(rows: list[dict[str, str]], folder: Path) -> dict[str, str]:
    """One Markdown file a record, its title as its heading; returns file name -> id."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {}
    for number, row in enumerate(rows):
        name = f"{number:05}.md"
        title = " ".join(row["title"].split())
        body = row["text"].removeprefix(row["title"]).lstrip()
        content = f"# {title}\n\n{body}\n" if row["title"] else body
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")
        names[name] = row["id"]
    return names


def _judgements(path: Path) -> list[tuple[str, str]]:
    """(question, unit) of every judgement above 0; some files have a header line."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("query-id")]
    return [(question, unit) for question, unit, gain in rows if float(gain) > 0]


def _jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
