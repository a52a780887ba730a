"""The file of a batch's answers: JSONL, CSV or Markdown, read back after a stop and never left half-written.

A record is appended and flushed when it is there. Opening an output again keeps the whole records of questions that are
still asked, and leaves out half-written, failed and outdated ones; the file is then replaced in one step. A file that
holds something else is not touched.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hybrid_rag.errors import InputError
from hybrid_rag.markdown_text import as_text
from hybrid_rag.records import rows_in_words

Form = Literal["jsonl", "csv", "markdown"]
FORMS: dict[str, Form] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".md": "markdown", ".markdown": "markdown"}
CSV_FIELDS = ("id", "question", "answer", "mode", "abstained", "citations", "expected", "correct", "sql", "model", "tokens", "milliseconds",
              "checks", "notes", "error", "key")  # fmt: skip
LONGEST_CELL = 1 << 30  # characters of a CSV cell that is read back
_BEGIN = '{"id": '  # of a line of JSONL
_KEY = re.compile(r"[0-9a-f]{16}")
_END = re.compile(r"^<!-- ([0-9a-f]{16}) (answered|abstained|failed) (right|wrong|unscored) -->\n*", re.MULTILINE)
_FORMULA = re.compile(r"^[=@\t\r]|^[+-](?!\s*[\d.])")


@dataclass(frozen=True, slots=True)
class Written:
    """A record as it stands in the file. ``correct``: None when nothing was expected."""

    key: str
    text: str
    outcome: Literal["answered", "abstained", "failed"]
    correct: bool | None


def form_of(output: Path, form: Form | None) -> Form:
    """The form given, or that of the suffix. Raises InputError."""
    found = form or FORMS.get(output.suffix.lower())
    if found is None:
        raise InputError(f"The form of {output} is not clear from its suffix.", "Name it .jsonl, .csv or .md, or give --format.")
    return found


def outcome_of(record: dict[str, Any]) -> Literal["answered", "abstained", "failed"]:
    return "failed" if record["error"] else "abstained" if record["abstained"] else "answered"


def rendered(record: dict[str, Any], form: Form) -> Written:
    """A record in the file's form, ending with a line break."""
    outcome = outcome_of(record)
    if form == "jsonl":
        text = json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "replace").decode("utf-8") + "\n"
    elif form == "csv":
        text = _row([_cell(record.get(name)) for name in CSV_FIELDS])
    else:
        text = _markdown(record, outcome)
    return Written(record["key"], text, outcome, record["correct"])


def read(output: Path, form: Form) -> list[Written]:
    """The whole records of an output, in their order. Raises InputError when it holds something else."""
    if not output.exists():
        return []
    if not output.is_file():
        raise InputError(f"{output} is not a file.", "Name a file for the answers.")
    try:
        raw = output.read_bytes()
    except OSError as error:
        raise InputError(f"{output} cannot be read: {error.strerror}.", "Name another file.") from error
    try:
        text = _decoded(raw)
        return list({"jsonl": _read_jsonl, "csv": _read_csv, "markdown": _read_markdown}[form](text))
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise InputError(
            f"{output} holds something else than the answers of a batch; it is left as it is.", "Name another file, or move this one."
        ) from error


def _decoded(raw: bytes) -> str:
    """The text, without a character that a cut has halved. Raises UnicodeDecodeError for other bytes that are not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(raw) - 3:
            raise
        return raw[: error.start].decode("utf-8")


def write(output: Path, form: Form, records: Iterable[Written]) -> None:
    """Replace the file by these records, in one step. Raises OSError."""
    beside = _hidden(output, "tmp")
    with open(beside, "w", encoding="utf-8", newline="") as file:
        file.write(_HEADS[form] + "".join(record.text for record in records))
        file.flush()
        os.fsync(file.fileno())
    if output.exists():
        os.chmod(beside, output.stat().st_mode & 0o7777)
    os.replace(beside, output)


def _hidden(output: Path, suffix: str) -> Path:
    return output.with_name(f".{output.name}.{suffix}")


@contextmanager
def alone(output: Path) -> Iterator[None]:
    """Nobody else writes this output meanwhile. Raises InputError when somebody does, or when its folder cannot be written."""
    from filelock import FileLock, Timeout

    path = _hidden(output, "lock")
    lock = FileLock(str(path), thread_local=False)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(f"Another batch is writing {output}.", "Wait for it to finish, or name another file.") from None
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror}.", "Name another file.") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        lock.release()


# ---------------------------------------------------------------- JSONL


def _read_jsonl(text: str) -> Iterator[Written]:
    lines = text.split("\n")
    for place, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            found = rendered(record, "jsonl")
        except (ValueError, KeyError, TypeError):
            if place == len(lines) - 1 and _BEGIN.startswith(line[: len(_BEGIN)]):
                return  # half-written
            raise
        yield found


# ---------------------------------------------------------------- CSV


def _row(cells: Iterable[Any]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


_HEADS: dict[Form, str] = {"jsonl": "", "csv": _row(CSV_FIELDS), "markdown": "<!-- Answers of a batch of hybrid-rag. -->\n\n"}


def _cell(value: Any) -> str:
    """A value as text; a text that a spreadsheet would take for a formula gets an apostrophe in front."""
    if value is None:
        return ""
    if isinstance(value, (list, dict)):
        return json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace").decode("utf-8")
    text = str(value).encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    return f"'{text}" if _FORMULA.match(text) else text


def _read_csv(text: str) -> Iterator[Written]:
    csv.field_size_limit(LONGEST_CELL)
    rows = csv.reader(io.StringIO(text, newline=""))
    if _HEADS["csv"].startswith(text):
        return  # half-written
    if tuple(next(rows)) != CSV_FIELDS:
        raise ValueError("another head")
    for cells in rows:
        if len(cells) != len(CSV_FIELDS) or not _KEY.fullmatch(cells[-1]):
            if next(rows, None) is None:
                return  # half-written
            raise ValueError("not a record")
        record = dict(zip(CSV_FIELDS, cells, strict=True))
        outcome = outcome_of({"error": record["error"], "abstained": record["abstained"] == "True"})
        yield Written(record["key"], _row(cells), outcome, {"True": True, "False": False}.get(record["correct"]))


# ---------------------------------------------------------------- Markdown


def _markdown(record: dict[str, Any], outcome: str) -> str:
    """Everything from documents and models stands as text: no link, image or HTML of theirs takes effect."""
    lines = [f"## {as_text(' '.join(record['question'].split()))}", ""]
    lines += [f"**Failed:** {as_text(record['error'])}" if record["error"] else as_text(record["answer"]), ""]
    for c in record["citations"]:
        place = [
            f"page {c['page']}" if c["page"] else "",
            rows_in_words(c["rows"]) if c["rows"] else "",
            " > ".join(c["heading"]),
        ]
        lines.append(f"- \\[{c['n']}\\] {as_text(', '.join(p for p in (c['source'], *place) if p))}")
        if c["quote"] and c["quote"] not in record["answer"]:
            lines += [f"  > {line}" for line in as_text(c["quote"]).split("\n")]
    lines += [""] if record["citations"] else []
    if record["sql"]:
        lines += [*(f"    {line}" for line in record["sql"].splitlines()), ""]
    about = [record["mode"], record["model"] or "", "abstained" if record["abstained"] else "", _numbers("tokens", record["tokens"]),
             _numbers("ms", record["milliseconds"])]  # fmt: skip
    lines += [f"*{as_text('; '.join(a for a in about if a))}*", ""]
    lines += [f"- {as_text(note)}" for note in (*record["checks"], *record["notes"])]
    lines += [""] if record["checks"] or record["notes"] else []
    if record["correct"] is not None:
        lines += [f"Expected: {as_text(' or '.join(record['expected']))} ({'right' if record['correct'] else 'wrong'})", ""]
    score = {True: "right", False: "wrong", None: "unscored"}[record["correct"]]
    return "\n".join(lines) + f"\n<!-- {record['key']} {outcome} {score} -->\n\n"


def _numbers(name: str, values: dict[str, Any]) -> str:
    return f"{name}: {', '.join(f'{k} {v:,.0f}' for k, v in values.items())}" if values else ""


def _read_markdown(text: str) -> Iterator[Written]:
    head = _HEADS["markdown"]
    if head.startswith(text):
        return  # half-written
    if not text.startswith(head):
        raise ValueError("another head")
    at = len(head)
    for match in _END.finditer(text):
        correct = {"right": True, "wrong": False}.get(match[3])
        yield Written(match[1], text[at : match.end()].rstrip("\n") + "\n\n", match[2], correct)  # type: ignore[arg-type]
        at = match.end()
