"""A file of questions in, a file of answers out: in order, resumable, each failure recorded and the others answered."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hybrid_rag.analysis import normalise
from hybrid_rag.batch_output import Form, Written, alone, form_of, read, rendered, write
from hybrid_rag.batch_questions import Question, read_questions
from hybrid_rag.errors import HybridRagError, InputError
from hybrid_rag.filters import Filters
from hybrid_rag.records import Answer

if TYPE_CHECKING:
    from hybrid_rag.service import Service

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """What a batch did. ``answered``, ``abstained``, ``failed``: in this run; ``skipped``: done before, their records kept.

    ``scored`` and ``correct`` count all records of the output. ``exit_code``: 0, or 1 when questions failed.
    """

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
    """Answer the questions that ``output`` does not hold yet, appending each as it is done. Raises InputError.

    What the output holds of failed, changed or no longer asked questions is left out; at the end the records stand in
    the order of the questions. A stopped run keeps what it has written.
    """
    started = time.monotonic()
    form = form_of(output, format)
    asked = read_questions(questions, filters)
    output = output.resolve()
    if output == questions.resolve():
        raise InputError(f"The answers would replace the questions {questions}.", "Name another file for the answers.")
    with alone(output):
        kept = {r.key: r for r in read(output, form) if r.outcome != "failed"}
        kept = {q.key: kept[q.key] for q in asked if q.key in kept}
        todo = [q for q in asked if q.key not in kept]
        try:
            write(output, form, kept.values())
            new = _ask_all(service, todo, output, form, concurrency, filters, on_error, progress)
            everything = kept | new
            in_order = [everything[q.key] for q in asked if q.key in everything]
            if in_order != list(everything.values()):
                write(output, form, in_order)
        except OSError as error:
            raise InputError(
                f"{output} cannot be written: {error.strerror}.", "Check the folder and the disk; what is written is kept."
            ) from error
    outcomes = Counter(record.outcome for record in new.values())
    scored = [record.correct for record in in_order if record.correct is not None]
    return BatchSummary(str(output), len(asked), outcomes["answered"], outcomes["abstained"], outcomes["failed"], len(kept), len(scored),
                        sum(scored), round(time.monotonic() - started, 2))  # fmt: skip


def _ask_all(
    service: Service,
    todo: Sequence[Question],
    output: Path,
    form: Form,
    concurrency: int,
    filters: Filters | None,
    on_error: Literal["continue", "stop"],
    progress: Callable[[int, int, str], None] | None,
) -> dict[str, Written]:
    """Ask in order, append each record and flush it."""
    done: dict[str, Written] = {}
    with open(output, "a", encoding="utf-8", newline="") as file, closing(_answers(service, todo, concurrency, filters)) as answers:
        for place, record in enumerate(answers, start=1):
            written = rendered(record, form)
            file.write(written.text)
            file.flush()
            done[written.key] = written
            if progress:
                progress(place, len(todo), f"{record['question']} ({written.outcome}{': ' + record['error'] if record['error'] else ''})")
            if written.outcome == "failed" and on_error == "stop":
                break
    return done


def _answers(service: Service, todo: Sequence[Question], concurrency: int, filters: Filters | None) -> Iterator[dict[str, Any]]:
    """Records in the order of the questions; whoever stops reading stops the rest from being asked."""
    pool = ThreadPoolExecutor(max_workers=concurrency)
    try:
        yield from pool.map(lambda question: _answer(service, question, filters), todo)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _answer(service: Service, question: Question, filters: Filters | None) -> dict[str, Any]:
    try:
        chosen = Filters.parse(**question.filters) if question.filters else filters
        answer = service.ask(question.question, filters=chosen)
    except HybridRagError as error:
        answer = Answer(question.question, "", "none", False, error=str(error))
    except Exception as error:  # recorded: one question must not end the others
        _log.exception("question %s failed", question.id)
        answer = Answer(question.question, "", "none", False, error=f"Unexpected: {type(error).__name__}: {error}")
    record: dict[str, Any] = {"id": question.id, "key": question.key, **answer.to_dict()}
    record.pop("passages")
    record["expected"] = list(question.expected)
    record["correct"] = is_correct(answer.answer, question.expected) if question.expected and not answer.error else None
    return record


def is_correct(answer: str, expected: Sequence[str]) -> bool:
    """One of the expected answers stands in the answer, as whole words, whatever its case, white space or thousands separators."""
    text = _comparable(answer)
    return any(re.search(rf"(?<!\w){re.escape(_comparable(e))}(?!\w)", text) for e in expected)


def _comparable(text: str) -> str:
    return " ".join(normalise(text).split())
