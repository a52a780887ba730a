"""Questions with what is right for them, from YAML, CSV or JSONL, or from a folder of corpus, queries and judgements."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hybrid_rag.errors import InputError
from hybrid_rag.records import Rows

SEPARATOR = "|"  # between several values in one cell of a CSV
UNANSWERABLE = "unanswerable"
LONGEST_NAME = 100  # characters of a file made for a record
_NO_FILE_NAME = re.compile(r"[^\w.-]+", re.ASCII)
_FORM = "Each entry needs `question`, and `source`, `answer` or `type: unanswerable`; docs/evaluation.md shows the forms."


@dataclass(frozen=True, slots=True)
class Place:
    """Where an answer stands: a file, or a page, heading or rows in it. ``gain``: how relevant, above 0."""

    source: str
    page: int | None = None
    heading: str | None = None
    rows: Rows | None = None
    gain: float = 1.0

    @property
    def whole_file(self) -> bool:
        return self.page is None and self.heading is None and self.rows is None

    @property
    def unit(self) -> str:
        """The place as a unit of a ranking."""
        return self.source if self.whole_file else f"{self.source}\0{self.page}\0{self.heading}\0{self.rows}"

    def covers(self, source: str, page: int | None, headings: Sequence[str], rows: Rows | None) -> bool:
        """Whether a passage with this page, heading path and rows is of the place."""
        if source != self.source or (self.page is not None and page != self.page):
            return False
        if self.heading is not None and self.heading.casefold() not in (h.casefold() for h in (*headings, " > ".join(headings))):
            return False
        return self.rows is None or bool(rows and rows[0] <= self.rows[1] and self.rows[0] <= rows[1])

    def __str__(self) -> str:
        rows = (
            f"rows {self.rows[0]}-{self.rows[1]}"
            if self.rows and self.rows[0] < self.rows[1]
            else f"row {self.rows[0]}"
            if self.rows
            else ""
        )
        parts = [self.source, f"page {self.page}" if self.page is not None else "", rows, self.heading or ""]
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """One question. ``places`` where it is answered, ``answers`` the right ones, any of which will do."""

    id: str
    question: str
    type: str = ""
    places: tuple[Place, ...] = ()
    answers: tuple[str, ...] = ()
    unanswerable: bool = False
    filters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions and the documents they are about: a folder of files, a ``corpus.jsonl``, or neither (the configured collection)."""

    name: str
    questions: tuple[EvalQuestion, ...]
    files: Path | None = None
    corpus: Path | None = None

    @property
    def own_documents(self) -> bool:
        return self.files is not None or self.corpus is not None


def read_set(path: Path) -> QuestionSet:
    """The questions of a file or of a folder. Raises InputError."""
    if not path.exists():
        raise InputError(
            f"There are no questions {path}.", "Give a file, or let `hybrid-rag eval --make-questions 20 -o questions.yaml` propose some."
        )
    try:
        found = _folder(path) if path.is_dir() else QuestionSet(path.name, tuple(_file(path)))
    except (OSError, ValueError, KeyError, yaml.YAMLError, csv.Error) as error:
        raise InputError(f"The questions {path} cannot be read: {error}.", _FORM) from error
    if not found.questions:
        raise InputError(f"There are no questions in {path}.", _FORM)
    if len({q.id for q in found.questions}) < len(found.questions):
        raise InputError(f"Two questions of {path} have the same id.", "Make the ids unique, or leave them out.")
    return found


# ---------------------------------------------------------------- files


def _file(path: Path) -> Iterator[EvalQuestion]:
    text = path.read_text(encoding="utf-8-sig")
    for number, row in enumerate(_rows(path.suffix.lower(), text), start=1):
        if not isinstance(row, dict) or not str(row.get("question") or row.get("text") or "").strip():
            raise InputError(f"Entry {number} of {path} has no question.", _FORM)
        yield _question(row, number, path)


def _rows(suffix: str, text: str) -> Iterable[Any]:
    if suffix == ".csv":
        return csv.DictReader(text.splitlines())
    if suffix in (".jsonl", ".ndjson"):
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if suffix in (".yaml", ".yml", ".json"):
        tree = yaml.safe_load(text)
        return (tree.get("questions") if isinstance(tree, dict) else tree) or []
    raise ValueError(f"its suffix is {suffix or 'missing'}; known are .yaml, .yml, .json, .jsonl and .csv")


def _question(row: dict[str, Any], number: int, path: Path) -> EvalQuestion:
    kind = str(row.get("type") or "").strip()
    places = tuple(_places(row))
    answers = tuple(text for key in ("answer", "answers", "accept", "expected") for text in _texts(row.get(key)))
    unanswerable = kind == UNANSWERABLE
    name = str(row.get("id") or number)
    if unanswerable and (places or answers):
        raise InputError(f"Question {name} of {path} is unanswerable, but names a source or an answer.", "Take one of them away.")
    if not unanswerable and not places and not answers:
        raise InputError(f"Nothing says what is right for question {name} of {path}.", _FORM)
    filters = row.get("filters") or {}
    filters = json.loads(filters) if isinstance(filters, str) else filters
    return EvalQuestion(name, str(row.get("question") or row["text"]).strip(), kind, places, answers, unanswerable, filters)


def _texts(value: Any) -> list[str]:
    if value is None or value == "":
        return []
    held = value if isinstance(value, list) else value.split(SEPARATOR) if isinstance(value, str) and SEPARATOR in value else [value]
    return [str(one).strip() for one in held if str(one).strip()]


def _places(row: dict[str, Any]) -> Iterator[Place]:
    for one in row.get("places") or [row]:
        page, heading = one.get("page"), str(one.get("heading") or "").strip()
        for source in _texts(one.get("source")):
            yield Place(source, int(page) if page not in (None, "") else None, heading or None, _span(one.get("rows")))


def _span(value: Any) -> Rows | None:
    if value in (None, ""):
        return None
    if isinstance(value, list):
        return int(value[0]), int(value[-1])
    first, _, last = str(value).partition("-")
    return int(first), int(last or first)


# ---------------------------------------------------------------- folders


def _folder(base: Path) -> QuestionSet:
    """``queries.jsonl`` and ``qrels.tsv`` (or ``qrels/test.tsv``); with ``files/``, else ``corpus.jsonl``, its own documents."""
    judged = next((p for p in (base / "qrels.tsv", base / "qrels" / "test.tsv") if p.is_file()), None)
    missing = [
        name for name, there in (("queries.jsonl", (base / "queries.jsonl").is_file()), ("qrels.tsv", judged is not None)) if not there
    ]
    if missing:
        raise InputError(
            f"The folder {base} has no {' and no '.join(missing)}.",
            "Give a file of questions, or a folder with both and corpus.jsonl or files/.",
        )
    assert judged is not None
    files = base / "files" if (base / "files").is_dir() else None
    corpus = base / "corpus.jsonl" if files is None and (base / "corpus.jsonl").is_file() else None
    names = corpus_files(corpus) if corpus else {}
    places: dict[str, list[Place]] = {}
    for question, document, gain in _judgements(judged):
        if gain > 0 and (not corpus or document in names):
            places.setdefault(question, []).append(Place(names.get(document, document), gain=gain))
    answers = {_id(row): row for row in _jsonl(base / "answers.jsonl")} if (base / "answers.jsonl").is_file() else {}
    questions = []
    for row in _jsonl(base / "queries.jsonl"):
        held = answers.get(_id(row), {})
        gold = _texts(held.get("answers") or held.get("answer"))
        nothing = bool(held) and not gold
        where = () if nothing else tuple(places.get(_id(row), ()))
        if where or gold or nothing:
            questions.append(EvalQuestion(_id(row), str(row["text"]), UNANSWERABLE if nothing else "", where, tuple(gold), nothing))
    return QuestionSet(base.name, tuple(questions), files, corpus)


def _id(row: Mapping[str, Any]) -> str:
    return str(row.get("id") or row["_id"])


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _judgements(path: Path) -> Iterator[tuple[str, str, float]]:
    """(query, document, gain); a header line is passed over, TREC's four columns are understood."""
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        cells = line.split("\t") if "\t" in line else line.split()
        if len(cells) < 3 or cells[0] in ("query-id", "query_id"):
            continue
        yield cells[0], cells[-2], float(cells[-1])


def corpus_files(corpus: Path) -> dict[str, str]:
    """A file name for each id of a ``corpus.jsonl``: the id as far as it can be one, with its number where two would be the same."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for number, row in enumerate(_jsonl(corpus)):
        name = _NO_FILE_NAME.sub("-", _id(row).rpartition("://")[2]).strip("-.")[:LONGEST_NAME] or "record"
        if name.casefold() in taken:
            name = f"{name}-{number:06}"
        taken.add(name.casefold())
        names[_id(row)] = f"{name}.md"
    return names


def write_corpus(corpus: Path, folder: Path) -> None:
    """One Markdown file a record of ``corpus.jsonl``, its title as its heading."""
    folder.mkdir(parents=True, exist_ok=True)
    names = corpus_files(corpus)
    for row in _jsonl(corpus):
        title, text = " ".join(str(row.get("title") or "").split()), str(row["text"])
        body = text.removeprefix(str(row.get("title") or "")).lstrip()
        path, content = folder / names[_id(row)], f"# {title}\n\n{body}\n" if title else text
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.write_text(content, encoding="utf-8")
