"""Answers judged against gold answers, gold places and whether there is an answer at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hybrid_rag.answer_metrics import exact_match, holds, normalise_answer, same_value, token_f1
from hybrid_rag.metrics import interval

if TYPE_CHECKING:
    from hybrid_rag.evaluation_questions import EvalQuestion
    from hybrid_rag.records import Answer

SHORT_GOLD = 10  # words; a longer gold answer is a paraphrase, which stands in no text word for word
TABLE = "table"  # the type of a question about a whole table
_MARKERS = re.compile(r"\s*\[\d+\]")
MEASURES = {
    "exact_match": "the answer is a gold answer, word for word (SQuAD's normalisation)",
    "f1": "words common with the nearest gold answer",
    "holds_gold": "the answer holds a gold answer of at most ten words",
    "cited_place": "of the given answers: a citation is at a gold place",
    "cited_gold": "of the given answers: a cited passage holds a gold answer of at most ten words",
    "table_exact": "table questions: the result of the query has the gold values",
    "abstention_precision": "of the questions left unanswered: those that have no answer",
    "abstention_recall": "of the questions without an answer: those left unanswered",
}


@dataclass(frozen=True, slots=True)
class Score:
    """A mean over ``n`` questions with its bootstrap interval; 0 when there is none."""

    value: float
    low: float
    high: float
    n: int


def score(values: Sequence[float], seed: int = 0) -> Score:
    """The mean of the values, one a question, rounded to six digits."""
    if not values:
        return Score(0.0, 0.0, 0.0, 0)
    low, high = interval(values, seed=seed)
    return Score(round(sum(values) / len(values), 6), round(low, 6), round(high, 6), len(values))


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """One answer with what each measure says of it; a measure that does not apply is not there."""

    id: str
    question: str
    mode: str
    abstained: bool
    answer: str
    gold: tuple[str, ...]
    cited: tuple[str, ...]
    wanted: tuple[str, ...]
    measures: dict[str, float]
    tokens: dict[str, int]

    @property
    def wrong(self) -> bool:
        """Answered although there is no answer, not answered although there is one, or answered without the gold."""
        m = self.measures
        unanswered = m.get("abstention_recall") == 0 or m.get("abstention_precision") == 0
        return unanswered or m.get("table_exact", m.get("holds_gold", m.get("cited_place", 1.0))) == 0


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """The measures over all answers, how they came about, their mean tokens, and those that were wrong."""

    scores: dict[str, Score]
    modes: dict[str, int]
    tokens: dict[str, float]
    wrong: tuple[JudgedAnswer, ...]


def judge(question: EvalQuestion, answer: Answer) -> JudgedAnswer:
    """The measures that apply to the question: gold answers, gold places, a table, or that there is no answer."""
    measures: dict[str, float] = {}
    if question.unanswerable:
        measures["abstention_recall"] = float(answer.abstained)
    if answer.abstained:
        measures["abstention_precision"] = float(question.unanswerable)
    if question.answers:
        measures |= _against_gold(question, answer)
    if not answer.abstained and not question.unanswerable:
        measures |= _citations(question, answer)
    cited = tuple(dict.fromkeys(", ".join(p for p in (c.source, c.place()) if p) for c in answer.citations))
    wanted = tuple(str(p) for p in question.places)
    return JudgedAnswer(question.id, question.question, answer.mode, answer.abstained, answer.answer, question.answers, cited, wanted,
                        measures, dict(answer.tokens))  # fmt: skip


def _against_gold(question: EvalQuestion, answer: Answer) -> dict[str, float]:
    said = "" if answer.abstained else _MARKERS.sub("", answer.answer)
    short = _short(question)
    out = {"exact_match": exact_match(said, question.answers), "f1": token_f1(said, question.answers) if said else 0.0}
    if short:
        out["holds_gold"] = holds(said, short)
    if question.type == TABLE:
        out["table_exact"] = float(_in_result(answer, question.answers))
    return out


def _citations(question: EvalQuestion, answer: Answer) -> dict[str, float]:
    out: dict[str, float] = {}
    if question.places:
        held = any(p.covers(c.source, c.page, c.heading, c.rows) for p in question.places for c in answer.citations)
        out["cited_place"] = float(held)
    if (short := _short(question)) and answer.mode != "table":
        texts = {hit.chunk_id: hit.chunk.text for hit in answer.hits}
        out["cited_gold"] = max((holds(f"{c.quote}\n{texts.get(c.chunk_id, '')}", short) for c in answer.citations), default=0.0)
    return out


def _short(question: EvalQuestion) -> list[str]:
    return [gold for gold in question.answers if 0 < len(normalise_answer(gold).split()) <= SHORT_GOLD]


def _in_result(answer: Answer, gold: Sequence[str]) -> bool:
    """Whether a cell of the query's result is a gold value; a result that was not calculated is none."""
    if answer.mode != "table" or answer.table is None:
        return False
    return any(same_value(cell, one) for row in answer.table.rows for cell in row for one in gold)


def summarise(judged: Sequence[JudgedAnswer], *, seed: int = 0) -> AnswerScores:
    """Means with intervals; measures that applied to no question have n = 0."""
    scores = {name: score([j.measures[name] for j in judged if name in j.measures], seed) for name in MEASURES}
    names = unique_names(judged)
    tokens = {name: round(_mean([j.tokens[name] for j in judged if name in j.tokens]), 1) for name in names}
    return AnswerScores(scores, dict(sorted(Counter(j.mode for j in judged).items())), tokens, tuple(j for j in judged if j.wrong))


def unique_names(judged: Sequence[JudgedAnswer]) -> list[str]:
    return sorted({name for j in judged for name in j.tokens})


def _mean(values: Sequence[Any]) -> float:
    return sum(values) / len(values) if values else 0.0
