"""A file of questions: TXT, CSV, JSONL or YAML, read whole and checked before anything is asked."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hybrid_rag.errors import InputError
from hybrid_rag.filters import Filters

FIELDS = frozenset({"question", "text", "id", "filters", "expected", "answer", "accept"})


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a batch. ``id``: as given, else its number; ``expected``: right answers, one of which must be given.

    ``key`` changes with anything that could change the record; done questions are known by it. A number that was not
    given is no part of it, so that a line put in above asks nothing anew.
    """

    id: str
    question: str
    key: str
    filters: dict[str, Any] = field(default_factory=dict)
    expected: tuple[str, ...] = ()


def read_questions(path: Path, defaults: Filters | None = None) -> list[Question]:
    """Questions from TXT (one a line), CSV, JSONL or YAML with question, and id, filters, expected. Raises InputError.

    ``defaults``: the filters of questions that give none of their own.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"The questions {path} cannot be read: {error.strerror}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"The questions {path} are not UTF-8: {error.reason} at byte {error.start}.", "Save the file as UTF-8.") from error
    try:
        rows = list(_rows(path, text))
    except (ValueError, yaml.YAMLError, csv.Error) as error:
        raise InputError(f"The questions {path} cannot be read: {error}.", "Check the file's form.") from error
    seen: Counter[str] = Counter()
    out = [_question(row, number, path, defaults, seen) for number, row in enumerate(rows, start=1)]
    if not out:
        raise InputError(f"There are no questions in {path}.", "Write one question a line.")
    if twice := [name for name, count in Counter(q.id for q in out).items() if count > 1]:
        raise InputError(f"Two questions of {path} have the id {twice[0]}.", "Make the ids unique, or leave them out.")
    return out


def _rows(path: Path, text: str) -> Iterator[Any]:
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        yield from _table(path, text)
    elif suffix in (".jsonl", ".ndjson"):
        yield from (_json_line(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
    elif suffix in (".yaml", ".yml", ".json"):
        tree = yaml.safe_load(text)
        tree = tree.get("questions") if isinstance(tree, dict) else tree
        if not isinstance(tree, (list, type(None))):
            raise InputError(f"{path} holds no list of questions.", "Write a list, or a list under the key `questions`.")
        yield from tree or []
    elif suffix in ("", ".txt", ".text", ".md"):
        yield from (line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    else:
        raise InputError(f"The form of {path} is not known by its suffix.", "Name it .txt, .csv, .jsonl or .yaml.")


def _json_line(number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from error


def _table(path: Path, text: str) -> Iterator[dict[str, str]]:
    """Records by column name; the delimiter is the one that makes a column `question` of the first line."""
    first = text.partition("\n")[0]
    for delimiter in (",", ";", "\t", "|"):
        names = [name.strip().casefold() for name in next(csv.reader([first], delimiter=delimiter), [])]
        if "question" in names or "text" in names:
            for cells in list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))[1:]:
                if any(cell.strip() for cell in cells):
                    yield dict(zip(names, cells))
            return
    raise InputError(f"{path} has no column `question`.", "Name the column in the first line.")


def _question(row: Any, number: int, path: Path, defaults: Filters | None, seen: Counter[str]) -> Question:
    if not isinstance(row, dict):
        row = {"question": row if isinstance(row, str) else ""}
    text = str(row.get("question") or row.get("text") or "").strip()
    if not text:
        raise InputError(f"Entry {number} of {path} has no question.", "Each entry needs a field `question`.")
    filters = _filters(row.get("filters"), number, path)
    expected = tuple(e for e in (*_texts(row.get("expected") or row.get("answer")), *_texts(row.get("accept"))) if e)
    given = str(row.get("id") or "").strip() if row.get("id") != 0 else "0"
    about = json.dumps(
        [given, text, filters, expected, "" if filters else str(defaults or "")], ensure_ascii=False, sort_keys=True, default=str
    )
    seen[about] += 1
    key = hashlib.sha256(f"{about}\0{seen[about]}".encode("utf-8", "replace")).hexdigest()[:16]
    return Question(given or str(number), text, key, filters, expected)


def _filters(given: Any, number: int, path: Path) -> dict[str, Any]:
    """Checked filters of an entry; in CSV they are JSON."""
    if not given:
        return {}
    try:
        filters = json.loads(given) if isinstance(given, str) else given
        if not isinstance(filters, dict):
            raise InputError("filters are names with values")
        Filters.parse(**filters)
    except (ValueError, TypeError, InputError) as error:
        raise InputError(
            f"Entry {number} of {path} has wrong filters: {getattr(error, 'message', error)}", 'Write them as {"folder": "policies"}.'
        ) from error
    return filters


def _texts(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(str(v).strip() for v in value) if isinstance(value, (list, tuple)) else (str(value).strip(),)
