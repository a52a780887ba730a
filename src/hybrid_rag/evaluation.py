"""Measure a collection with questions: rankings of every mode, answers, what was missed; each figure with its interval.

No times are kept here, so that two runs over the same index give the same record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from hybrid_rag.errors import InputError
from hybrid_rag.evaluation_answers import AnswerScores, Score, judge, score, summarise
from hybrid_rag.evaluation_questions import EvalQuestion
from hybrid_rag.filters import Filters
from hybrid_rag.metrics import hit, interval, ndcg, recall, reciprocal_rank, unique

if TYPE_CHECKING:
    from hybrid_rag.records import Hit
    from hybrid_rag.service import Service

Mode = Literal["keyword", "dense", "hybrid", "rerank"]
MODES: tuple[Mode, ...] = get_args(Mode)
DEPTH = 100  # passages asked for: several may be of one file; ranks beyond count as not found
MISSED_BEYOND = 10  # a question is missed when no right passage or file is among the first ten
CAME_INSTEAD = 3
ABSENT_SHOWN = 5
Measure = Callable[[Sequence[str], Mapping[str, float]], float]
MEASURES: dict[str, Measure] = {
    "recall@1": lambda ranking, gains: recall(ranking, gains, 1),
    "recall@5": lambda ranking, gains: recall(ranking, gains, 5),
    "recall@10": lambda ranking, gains: recall(ranking, gains, 10),
    "hit@1": lambda ranking, gains: hit(ranking, gains, 1),
    "hit@3": lambda ranking, gains: hit(ranking, gains, 3),
    "hit@5": lambda ranking, gains: hit(ranking, gains, 5),
    "hit@10": lambda ranking, gains: hit(ranking, gains, 10),
    "MRR": reciprocal_rank,
    "nDCG@10": ndcg,
}
COMPARED = ("hit@1", "MRR", "nDCG@10")


@dataclass(frozen=True, slots=True)
class ModeScores:
    """How one mode of one variant ranked; ``scores`` by measure, each over the questions that name a place."""

    variant: str
    mode: Mode
    scores: dict[str, Score]


@dataclass(frozen=True, slots=True)
class Difference:
    """``second`` minus ``first`` on the same questions; ``shown`` when 0 is outside the interval."""

    first: str
    second: str
    measure: str
    value: float
    low: float
    high: float

    @property
    def shown(self) -> bool:
        return self.low > 0 or self.high < 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"shown": self.shown}


@dataclass(frozen=True, slots=True)
class Miss:
    """A question whose right place was not among the first ten, and what came instead."""

    variant: str
    mode: Mode
    id: str
    question: str
    wanted: tuple[str, ...]
    rank: int | None  # of the first right one within the depth, if any
    came: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """The rankings of one variant: for each mode the measures of every question, in the order of the questions."""

    variant: str
    ids: tuple[str, ...]
    types: tuple[str, ...]
    values: dict[Mode, dict[str, tuple[float, ...]]]
    misses: tuple[Miss, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FloorCheck:
    """A value that must be reached."""

    name: str
    floor: float
    value: float

    @property
    def ok(self) -> bool:
        return self.value >= self.floor

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"ok": self.ok}


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What was measured, over which questions and index. Without times, so that two runs give the same."""

    questions: str
    count: int
    judged: int  # questions that name a place; the rankings are measured on these
    index: dict[str, dict[str, Any]]  # by variant: documents, chunks, embedder, fusion
    retrieval: tuple[ModeScores, ...]
    by_type: dict[str, dict[str, dict[str, float]]]  # "variant mode" or mode -> type -> measure -> value
    differences: tuple[Difference, ...]
    answers: dict[str, AnswerScores]  # by variant
    misses: tuple[Miss, ...]
    floors: tuple[FloorCheck, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        out = asdict(self)
        out["differences"] = [d.to_dict() for d in self.differences]
        out["floors"] = [f.to_dict() for f in self.floors]
        return out


# ---------------------------------------------------------------- one variant


def rank_all(
    service: Service,
    questions: Sequence[EvalQuestion],
    *,
    variant: str = "",
    modes: Sequence[Mode] = MODES,
    own_filters: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Ranked:
    """Search every question that names a place, in every mode. A mode that the index cannot give is a note.

    ``own_filters``: the filters of the questions alone count, not those of the configuration.
    """
    judged = [q for q in questions if q.places]
    absent = _absent(service, judged)
    values: dict[Mode, dict[str, tuple[float, ...]]] = {}
    misses: list[Miss] = []
    notes = [_named(variant, absent)] if absent else []
    for mode in modes:
        rows: list[dict[str, float]] = []
        why = ""
        for number, question in enumerate(judged, start=1):
            hits, why = _search(service, question, mode, own_filters)
            if why:
                break
            ranking, gains = units(hits, question), {p.unit: p.gain for p in question.places}
            rows.append({name: measure(ranking, gains) for name, measure in MEASURES.items()})
            if not rows[-1]["hit@10"]:
                misses.append(_miss(variant, mode, question, hits, ranking))
            if progress:
                progress(_label(variant, mode), number, len(judged))
        if why:
            notes.append(f"{_label(variant, mode)} is not measured: {why}")
        elif rows:
            values[mode] = {name: tuple(row[name] for row in rows) for name in MEASURES}
    return Ranked(variant, tuple(q.id for q in judged), tuple(q.type for q in judged), values, tuple(misses), tuple(notes))


def _absent(service: Service, questions: Sequence[EvalQuestion]) -> list[str]:
    """The files that the questions name and the collection has not: a name that is written wrongly cannot be found."""
    held = {document.source for document in service.documents()}
    return sorted({place.source for question in questions for place in question.places} - held)


def _named(variant: str, absent: Sequence[str]) -> str:
    more = f" and {len(absent) - ABSENT_SHOWN} more" if len(absent) > ABSENT_SHOWN else ""
    return f"{f'{variant}: ' if variant else ''}The questions name files that are not in the collection: {', '.join(absent[:ABSENT_SHOWN])}{more}."


def _search(service: Service, question: EvalQuestion, mode: Mode, own_filters: bool) -> tuple[tuple[Hit, ...], str]:
    """The hits, and why the mode was not what was asked for ("" when it was)."""
    searched = "hybrid" if mode == "rerank" else mode
    result = service.search(
        question.question, k=DEPTH, filters=chosen_filters(question, own_filters), mode=searched, rerank=mode == "rerank"
    )
    if result.mode != searched:
        return (), " ".join(result.notes) or f"the search was by {result.mode} only."
    if mode == "rerank" and result.hits and not result.reranked:
        return (), "retrieval.rerank is off."
    return result.hits, ""


def chosen_filters(question: EvalQuestion, own: bool) -> Filters | None:
    """The question's filters; without any, none at all (``own``) or None for those of the configuration."""
    return Filters.parse(**question.filters) if question.filters else Filters() if own else None


def units(hits: Sequence[Hit], question: EvalQuestion) -> list[str]:
    """The hits as a ranking of units: the places that a hit is of; else its file, or itself where places are parts of files."""
    by_file = all(place.whole_file for place in question.places)
    out: list[str] = []
    for one in hits:
        c = one.chunk
        matched = [p.unit for p in question.places if p.covers(c.source, c.page, c.heading, c.rows)]
        out += matched or [c.source if by_file else one.chunk_id]
    return unique(out)


def _miss(variant: str, mode: Mode, question: EvalQuestion, hits: Sequence[Hit], ranking: Sequence[str]) -> Miss:
    wanted = {p.unit for p in question.places}
    rank = next((n for n, unit in enumerate(ranking, start=1) if unit in wanted), None)
    came = tuple(unique([_where(one) for one in hits])[:CAME_INSTEAD])
    return Miss(variant, mode, question.id, question.question, tuple(str(p) for p in question.places), rank, came)


def _where(one: Hit) -> str:
    c = one.chunk
    rows = f"rows {c.rows[0]}-{c.rows[1]}" if c.rows else ""
    return ", ".join(part for part in (c.source, f"page {c.page}" if c.page else "", rows, " > ".join(c.heading)) if part)


def answer_all(
    service: Service,
    questions: Sequence[EvalQuestion],
    *,
    variant: str = "",
    own_filters: bool = False,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
) -> AnswerScores:
    """Ask every question that names an answer or a place, or must not be answered, and judge the answers."""
    judged = []
    for number, question in enumerate(questions, start=1):
        judged.append(judge(question, service.ask(question.question, filters=chosen_filters(question, own_filters))))
        if progress:
            progress(f"{variant} answers".strip(), number, len(questions))
    return summarise(judged, seed=seed)


# ---------------------------------------------------------------- all together


def evaluate(
    name: str,
    questions: Sequence[EvalQuestion],
    ranked: Sequence[Ranked],
    answers: Mapping[str, AnswerScores],
    index: Mapping[str, dict[str, Any]],
    *,
    seed: int = 0,
    floors: Mapping[str, float] | None = None,
) -> Evaluation:
    """Put the measurements of all variants together. Raises InputError for a floor of an unknown name."""
    retrieval = tuple(
        ModeScores(r.variant, mode, {m: score(values[m], seed) for m in MEASURES}) for r in ranked for mode, values in r.values.items()
    )
    return Evaluation(
        questions=name,
        count=len(questions),
        judged=len(ranked[0].ids) if ranked else 0,
        index=dict(index),
        retrieval=retrieval,
        by_type={_label(r.variant, mode): _by_type(r, mode) for r in ranked for mode in r.values} if _has_types(ranked) else {},
        differences=tuple(_differences(ranked, seed)),
        answers=dict(answers),
        misses=tuple(miss for r in ranked for miss in r.misses),
        floors=tuple(_floors(floors or {}, retrieval, answers)),
        notes=tuple(note for r in ranked for note in r.notes),
    )


def _label(variant: str, mode: str) -> str:
    return f"{variant} {mode}".strip()


def _has_types(ranked: Sequence[Ranked]) -> bool:
    return len({kind for r in ranked for kind in r.types}) > 1


def _by_type(r: Ranked, mode: Mode) -> dict[str, dict[str, float]]:
    out = {}
    for kind in unique(r.types):
        places = [i for i, t in enumerate(r.types) if t == kind]
        out[kind] = {"n": float(len(places))} | {m: round(sum(v[i] for i in places) / len(places), 6) for m, v in r.values[mode].items()}
    return out


def _differences(ranked: Sequence[Ranked], seed: int) -> list[Difference]:
    """Modes against "hybrid" inside a variant; the same mode of each other variant against the first."""
    pairs = [
        ((_label(r.variant, mode), r.values[mode]), (_label(r.variant, "hybrid"), r.values["hybrid"]))
        if mode != "rerank"
        else ((_label(r.variant, "hybrid"), r.values["hybrid"]), (_label(r.variant, mode), r.values[mode]))
        for r in ranked[:1]
        for mode in r.values
        if mode != "hybrid" and "hybrid" in r.values
    ]
    if len(ranked) > 1:
        first = ranked[0]
        pairs = [
            ((_label(first.variant, mode), first.values[mode]), (_label(r.variant, mode), r.values[mode]))
            for r in ranked[1:]
            for mode in r.values
            if mode in first.values
        ]
    out = []
    for (one, before), (other, after) in pairs:
        for measure in COMPARED:
            gaps = [b - a for a, b in zip(before[measure], after[measure], strict=True)]
            low, high = interval(gaps, seed=seed)
            out.append(Difference(one, other, measure, round(sum(gaps) / len(gaps), 6), round(low, 6), round(high, 6)))
    return out


# ---------------------------------------------------------------- floors


def parse_floor(text: str) -> tuple[str, float]:
    """ "hit@3=.95" as name and value. Raises InputError."""
    name, sign, value = text.partition("=")
    try:
        if not sign:
            raise ValueError
        return name.strip(), float(value)
    except ValueError:
        raise InputError(
            f"{text!r} is no floor.", "Write for instance --floor hit@3=.95 or --floor answers.abstention_recall=.9."
        ) from None


def _floors(floors: Mapping[str, float], retrieval: Sequence[ModeScores], answers: Mapping[str, AnswerScores]) -> list[FloorCheck]:
    """Every variant must reach a floor: the lowest value counts. A bare measure is that of "hybrid", or of the only mode."""
    values: dict[str, list[float]] = {}
    default = "hybrid" if any(m.mode == "hybrid" for m in retrieval) or not retrieval else retrieval[0].mode
    for mode in retrieval:
        for name, found in mode.scores.items():
            for key in (f"{mode.mode}.{name}", *((name,) if mode.mode == default else ())):
                values.setdefault(key, []).append(found.value)
    for scores in answers.values():
        for name, found in scores.scores.items():
            if found.n:
                values.setdefault(f"answers.{name}", []).append(found.value)
    unknown = [name for name in floors if name not in values]
    if unknown:
        raise InputError(
            f"Nothing was measured that is called {unknown[0]}.", f"Measured were {', '.join(values) or 'no questions at all'}."
        )
    return [FloorCheck(name, floor, min(values[name])) for name, floor in floors.items()]
