"""Evaluations and the query log for people: each function takes a record and a Rich console, and returns nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from hybrid_rag.render_text import counted, grid, safe, say, short

if TYPE_CHECKING:
    from rich.console import Console

    from hybrid_rag.evaluation import Difference, Evaluation, Miss
    from hybrid_rag.evaluation_answers import AnswerScores, Score
    from hybrid_rag.query_log import LogSummary

LONGEST = 100  # characters of a question


def evaluation(result: Evaluation, console: Console, misses: int = 10) -> None:
    """What was measured on what, the tables with 95 % intervals, differences, floors, and the first ``misses`` misses."""
    say(console, f"{counted(result.count, 'question')} of {result.questions}, {result.judged:,} of them with a place to find", "bold")
    for name, index in result.index.items():
        what = f"{counted(index['documents'], 'document')}, {counted(index['chunks'], 'chunk')}, vectors of {index['embedder'] or 'no model'}, fusion {index['fusion']}"
        say(console, f"{name}: {what}" if name else what, "dim")
    if result.retrieval:
        _retrieval(result, console)
    for name, answers in result.answers.items():
        _answers(name, answers, console)
    for note in result.notes:
        say(console, note, "yellow")
    _misses(result, console, misses)
    for floor in result.floors:
        line = f"Floor {floor.name}: {floor.value:.3f}, at least {floor.floor:.3f} is wanted"
        say(console, f"{line}: {'reached' if floor.ok else 'NOT REACHED'}", "green" if floor.ok else "bold red")


def _retrieval(result: Evaluation, console: Console) -> None:
    measures = list(result.retrieval[0].scores)
    table = Table(box=None, pad_edge=False, title="Retrieval, with 95 % intervals", title_justify="left", padding=(0, 1, 0, 0))
    table.add_column("")
    for measure in measures:
        table.add_column(measure, justify="right")
    for row in result.retrieval:
        table.add_row(
            safe(f"{row.variant} {row.mode}".strip()), *(f"{row.scores[m].value:.3f}\n{_between(row.scores[m])}" for m in measures)
        )
    grid(console, table)
    _by_type(result, console)
    _differences(result.differences, console)


def _between(score: Score | Difference) -> str:
    return f"{_short(score.low)}-{_short(score.high)}"


def _short(value: float) -> str:
    """ ".87", "1"."""
    text = f"{value:.2f}"
    return "1" if text == "1.00" else "0" if text in ("0.00", "-0.00") else text.replace("0.", ".", 1)


def _by_type(result: Evaluation, console: Console) -> None:
    if not result.by_type:
        return
    columns = ("hit@1", "hit@3", "hit@10", "MRR", "nDCG@10")
    table = Table(box=None, pad_edge=False, title="By type of question", title_justify="left", padding=(0, 1, 0, 0))
    for name in ("", "type", "questions"):
        table.add_column(name, justify="right" if name == "questions" else "left")
    for name in columns:
        table.add_column(name, justify="right")
    for label, types in result.by_type.items():
        for kind, values in types.items():
            table.add_row(safe(label), safe(kind or "(none)"), f"{values['n']:.0f}", *(f"{values[c]:.3f}" for c in columns))
    grid(console, table)


def _differences(differences: Sequence[Difference], console: Console) -> None:
    if not differences:
        return
    table = Table(box=None, pad_edge=False, title="Differences on the same questions", title_justify="left", padding=(0, 1, 0, 0))
    for name in ("", "measure", "difference", "95 % interval", ""):
        table.add_column(name, justify="right" if name == "difference" else "left")
    for d in differences:
        verdict = "more than chance" if d.shown else "may be chance"
        table.add_row(safe(f"{d.second} against {d.first}"), d.measure, f"{d.value:+.3f}", f"{d.low:+.3f} to {d.high:+.3f}", verdict)
    grid(console, table)


def _answers(name: str, answers: AnswerScores, console: Console) -> None:
    from hybrid_rag.evaluation_answers import MEASURES

    modes = ", ".join(f"{mode} {count}" for mode, count in answers.modes.items())
    table = Table(
        box=None, pad_edge=False, title=safe(f"Answers {name}".strip() + f" ({modes})"), title_justify="left", padding=(0, 1, 0, 0)
    )
    for column in ("measure", "value", "95 % interval", "questions", "meaning"):
        table.add_column(column, justify="right" if column in ("value", "questions") else "left")
    for measure, found in answers.scores.items():
        if found.n:
            table.add_row(measure, f"{found.value:.3f}", _between(found), f"{found.n}", MEASURES[measure])
    grid(console, table)
    if answers.tokens:
        labels = {"prompt": "prompt", "answer": "answer", "context": "passages", "whole_files": "whole files instead"}
        held = ", ".join(f"{labels.get(k, k)} {v:,.0f}" for k, v in answers.tokens.items())
        say(console, f"Tokens of a question on average: {held}", "dim")


def _misses(result: Evaluation, console: Console, most: int) -> None:
    """Of the best mode measured: what was not among the first ten. Then wrong answers."""
    if most < 1:
        return
    if result.retrieval:
        last = result.retrieval[-1]
        chosen = next((r for r in result.retrieval if r.mode == "hybrid"), last)
        held = [m for m in result.misses if (m.variant, m.mode) == (chosen.variant, chosen.mode)]
        name = f"{chosen.variant} {chosen.mode}".strip()
        say(console, f"Missed by {name}: {len(held)} of {result.judged}" + (f", the first {most}" if len(held) > most else ""), "bold")
        for miss in held[:most]:
            _miss(miss, console)
    for name, answers in result.answers.items():
        say(
            console,
            f"Wrong answers{f' of {name}' if name else ''}: {len(answers.wrong)}"
            + (f", the first {most}" if len(answers.wrong) > most else ""),
            "bold",
        )
        for one in answers.wrong[:most]:
            say(console, f"{one.id}  {short(one.question, LONGEST)}")
            wanted = " | ".join(one.gold) or ("no answer" if not one.wanted else "")
            say(
                console,
                short(f"wanted: {'; '.join(part for part in (', '.join(one.wanted), wanted) if part)}", 2 * LONGEST),
                "dim",
                indent=4,
            )
            said = "nothing" if one.abstained else " ".join(one.answer.split())
            say(
                console,
                short(f"said: {said}" + (f" ({'; '.join(one.cited)})" if one.cited and not one.abstained else ""), 2 * LONGEST),
                "dim",
                indent=4,
            )


def _miss(miss: Miss, console: Console) -> None:
    rank = f"place {miss.rank}" if miss.rank else "not found"
    say(console, f"{miss.id}  {short(miss.question, LONGEST)}")
    say(console, f"wanted: {'; '.join(miss.wanted)} ({rank})", "dim", indent=4)
    say(console, f"came instead: {'; '.join(miss.came) or 'nothing'}", "dim", indent=4)


# ---------------------------------------------------------------- query log


def query_log(result: LogSummary, console: Console) -> None:
    """Counts, latency percentiles by stage, the slowest queries and those without an answer."""
    if not result.count:
        say(console, f"No queries are logged in {result.file}. Set logging.query_log to text or hash.", "yellow")
        return
    say(
        console,
        f"{_plural(result.count, 'query', 'queries')} from {_minute(result.first)} to {_minute(result.last)} (UTC) in {result.file}",
        "bold",
    )
    parts = [_plural(result.searches, "search", "searches"), counted(result.asks, "question")]
    parts += [
        f"{n} {name}" for n, name in ((result.abstained, "not answered"), (result.failed, "failed"), (result.cached, "from memory")) if n
    ]
    say(console, ", ".join(parts) + "; by mode " + ", ".join(f"{mode} {n}" for mode, n in result.modes.items()), "dim")
    table = Table(box=None, pad_edge=False, title="Milliseconds", title_justify="left", padding=(0, 1, 0, 0))
    for name in ("call", "stage", "count", "p50", "p95", "p99", "longest"):
        table.add_column(name, justify="left" if name in ("call", "stage") else "right")
    for call, stages in result.latency.items():
        for stage, s in stages.items():
            table.add_row(call, safe(stage), f"{s.count:,}", *(f"{v:,.1f}" for v in (s.p50, s.p95, s.p99, s.longest)))
    grid(console, table)
    say(console, "Slowest:", "bold")
    for one in result.slowest:
        say(console, f"{one['milliseconds']:,.1f} ms  {one['call']}  {_minute(one['time'])}  {short(_line(one), LONGEST)}", indent=2)
    say(console, "Not answered:" if result.unanswered else "Not answered: none.", "bold")
    for one in result.unanswered:
        say(console, f"{one['count']} ×  last {_minute(one['last'])}  {short(_line(one), LONGEST)}", indent=2)
    if result.damaged_lines:
        say(console, f"{counted(result.damaged_lines, 'line')} of the log could not be read.", "yellow")


def _plural(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _line(one: dict[str, Any]) -> str:
    return " ".join(str(one["query"]).split())


def _minute(time: str | None) -> str:
    return (time or "")[:16].replace("T", " ")
