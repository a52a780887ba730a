"""A file of questions in, a file of answers out: in order, resumable, each failure recorded and the others answered."""

from __future__ import annotations

import csv
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from hybrid_rag.errors import HybridRagError, InputError
from hybrid_rag.filters import Filters
from hybrid_rag.records import Answer, rows_in_words

if TYPE_CHECKING:
    from hybrid_rag.service import Service

Form = Literal["jsonl", "csv", "markdown"]
FORMS: dict[str, Form] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".md": "markdown", ".markdown": "markdown"}
CSV_FIELDS = ("id", "key", "question", "answer", "mode", "abstained", "citations", "expected", "correct", "tokens", "milliseconds", "error")


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a batch. ``expected``: right answers, any of which must stand in the answer."""

    id: str
    question: str
    filters: dict[str, Any] = field(default_factory=dict)
    expected: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Changes with anything that could change the answer; done questions are known by it."""
        text = json.dumps([self.id, self.question, self.filters], ensure_ascii=False, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """What a batch did. ``exit_code``: 0, or 1 when questions failed."""

    output: str
    total: int
    answered: int
    abstained: int
    failed: int
    skipped: int
    scored: int
    correct: int
    seconds: float

    @property
    def exit_code(self) -> int:
        return 1 if self.failed else 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def run_batch(
    service: Service,
    questions: Path,
    output: Path,
    *,
    format: Form | None = None,
    concurrency: int = 1,
    filters: Filters | None = None,
    on_error: Literal["continue", "stop"] = "continue",
    progress: Callable[[int, int, str], None] | None = None,
) -> BatchSummary:
    """Answer the questions that ``output`` does not hold yet, appending as they are done. Raises InputError."""
    started = time.monotonic()
    asked = read_questions(questions)
    form = format or FORMS.get(output.suffix.lower())
    if form is None:
        raise InputError(f"The form of {output} is not clear from its suffix.", "Name it .jsonl, .csv or .md, or give --format.")
    done = _done(output, form)
    todo = [q for q in asked if q.key not in done]
    counts = {"answered": 0, "abstained": 0, "failed": 0, "scored": 0, "correct": 0}
    with _Writer(output, form) as writer, ThreadPoolExecutor(max_workers=concurrency) as pool:
        for place, record in enumerate(pool.map(lambda q: _answer(service, q, filters), todo), start=1):
            writer.write(record)
            _count(counts, record)
            if progress:
                progress(place, len(todo), record["question"])
            if record["error"] and on_error == "stop":
                pool.shutdown(wait=False, cancel_futures=True)
                break
    return BatchSummary(str(output), len(asked), skipped=len(asked) - len(todo), seconds=round(time.monotonic() - started, 2), **counts)


def _answer(service: Service, question: Question, filters: Filters | None) -> dict[str, Any]:
    record: dict[str, Any] = {"id": question.id, "key": question.key}
    try:
        chosen = Filters.parse(**question.filters) if question.filters else filters
        answer = service.ask(question.question, filters=chosen)
    except HybridRagError as error:
        answer = Answer(question.question, "", "none", False, error=str(error))
    record.update(answer.to_dict())
    record.pop("passages")
    record["expected"] = list(question.expected)
    record["correct"] = _correct(answer, question.expected) if question.expected and not answer.error else None
    return record


def _correct(answer: Answer, expected: Sequence[str]) -> bool:
    text = " ".join(answer.answer.split()).casefold()
    return any(" ".join(e.split()).casefold() in text for e in expected)


def _count(counts: dict[str, int], record: dict[str, Any]) -> None:
    counts["failed" if record["error"] else "abstained" if record["abstained"] else "answered"] += 1
    if record["correct"] is not None:
        counts["scored"] += 1
        counts["correct"] += record["correct"]


# ---------------------------------------------------------------- questions


def read_questions(path: Path) -> list[Question]:
    """Questions from TXT (one a line), CSV, JSONL or YAML with question, and id, filters, expected. Raises InputError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The questions {path} cannot be read: {error}.", "Give a UTF-8 file.") from error
    try:
        rows = list(_rows(path.suffix.lower(), text))
    except (ValueError, yaml.YAMLError, csv.Error) as error:
        raise InputError(f"The questions {path} cannot be read: {error}.", "Check the file's form.") from error
    out = [_question(row, number, path) for number, row in enumerate(rows, start=1)]
    if not out:
        raise InputError(f"There are no questions in {path}.", "Write one question a line.")
    if len({q.id for q in out}) < len(out):
        raise InputError(f"Two questions of {path} have the same id.", "Make the ids unique, or leave them out.")
    return out


def _rows(suffix: str, text: str) -> Iterator[Any]:
    if suffix == ".csv":
        yield from csv.DictReader(text.splitlines())
    elif suffix in (".jsonl", ".ndjson"):
        yield from (json.loads(line) for line in text.splitlines() if line.strip())
    elif suffix in (".yaml", ".yml", ".json"):
        tree = yaml.safe_load(text)
        yield from (tree.get("questions") or []) if isinstance(tree, dict) else tree or []
    else:
        yield from (line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def _question(row: Any, number: int, path: Path) -> Question:
    if isinstance(row, str):
        return Question(str(number), row)
    text = str((row.get("question") or row.get("text") or "") if isinstance(row, dict) else "").strip()
    if not text:
        raise InputError(f"Entry {number} of {path} has no question.", "Each entry needs a field `question`.")
    filters = row.get("filters") or {}
    if isinstance(filters, str):
        filters = json.loads(filters)
    expected = row.get("expected") or row.get("answer") or ()
    expected = [expected] if isinstance(expected, (str, int, float)) else list(expected)
    more = row.get("accept") or ()
    return Question(str(row.get("id") or number), text, filters, tuple(str(e) for e in (*expected, *more)))


# ---------------------------------------------------------------- answers


def _done(output: Path, form: Form) -> set[str]:
    """Keys of the questions that are answered already; a half-written last line of a killed run is cut off."""
    if not output.exists():
        return set()
    text = output.read_text(encoding="utf-8")
    if form == "csv":
        return {row["key"] for row in csv.DictReader(text.splitlines()) if row.get("key") and not row.get("error")}
    if form == "markdown":
        return {line.removeprefix("<!-- ").removesuffix(" -->") for line in text.splitlines() if line.startswith("<!-- ")}
    whole = text if text.endswith("\n") else text[: text.rfind("\n") + 1]
    if whole != text:
        output.write_text(whole, encoding="utf-8")
    records = [json.loads(line) for line in whole.splitlines() if line.strip()]
    return {r["key"] for r in records if not r.get("error")}


class _Writer:
    """Appends records, each flushed at once."""

    def __init__(self, output: Path, form: Form) -> None:
        self._form = form
        output.parent.mkdir(parents=True, exist_ok=True)
        new = not output.exists() or not output.stat().st_size
        self._file = open(output, "a", encoding="utf-8", newline="")
        if form == "csv":
            self._csv = csv.DictWriter(self._file, CSV_FIELDS, extrasaction="ignore", lineterminator="\n")
            if new:
                self._csv.writeheader()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, record: dict[str, Any]) -> None:
        if self._form == "jsonl":
            self._file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
        elif self._form == "csv":
            nested = {k: json.dumps(v, ensure_ascii=False, default=str) if isinstance(v, (list, dict)) else v for k, v in record.items()}
            self._csv.writerow(nested)
        else:
            self._file.write(_markdown(record))
        self._file.flush()


def _markdown(record: dict[str, Any]) -> str:
    lines = [f"## {record['question']}", "", record["error"] or record["answer"], ""]
    lines += [f"- [{c['n']}] {c['source']}" + (f", page {c['page']}" if c["page"] else "") + (f", {rows_in_words(c['rows'])}" if c["rows"] else "") for c in record["citations"]]
    if record["sql"]:
        lines += ["", f"`{record['sql']}`"]
    key = [] if record["error"] else [f"<!-- {record['key']} -->"]
    return "\n".join([*lines, "", *key, "", ""])
