"""Commands that measure: eval, log."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybrid_rag.cli.common import Run, command, set_up_logging
from hybrid_rag.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable


def register(app: typer.Typer) -> None:
    command(app, "eval")(evaluate)
    command(app, "log")(log)


def evaluate(
    run: Run,
    questions: Annotated[Path | None, typer.Argument(help="YAML, CSV or JSONL, or a folder with queries.jsonl and qrels.tsv.")] = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            "--compare", metavar="KEY=A,B", help="Measure with each value: embedder=bundled,none, fusion=weighted,rrf, any key; repeatable."
        ),
    ] = None,
    modes: Annotated[str, typer.Option(help="Ways of searching, separated by commas.")] = "keyword,dense,hybrid,rerank",
    answers: Annotated[bool, typer.Option("--answers/--no-answers", help="Also ask the questions and judge the answers.")] = True,
    floor: Annotated[
        list[str] | None,
        typer.Option("--floor", metavar="NAME=VALUE", help="Exit with 1 below it: hit@3=.95, keyword.MRR=.8, answers.f1=.5; repeatable."),
    ] = None,
    misses: Annotated[int, typer.Option(min=0, help="Missed questions and wrong answers shown.")] = 10,
    keep: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Keep the indexes made for this here, for the next run.")] = None,
    seed: Annotated[int, typer.Option(help="Of the intervals and of proposed questions.")] = 0,
    make_questions: Annotated[
        int | None,
        typer.Option(
            "--make-questions", metavar="N", min=1, max=1000, help="Propose questions from the collection instead, for you to edit."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Where proposed questions go; unset: stdout.")] = None,
) -> int:
    """Measure how well questions find their place and are answered, with intervals.

    Example: hybrid-rag eval tests/eval/questions.yaml --floor hit@3=.9
    """
    if make_questions is not None:
        return _propose(run, make_questions, output, seed)
    from hybrid_rag.evaluation import MODES, parse_floor
    from hybrid_rag.evaluation_questions import read_set
    from hybrid_rag.evaluation_runs import run_evaluation
    from hybrid_rag.render_measures import evaluation

    if questions is None:
        raise InputError(
            "There are no questions to measure with.",
            "Name a file of questions, or propose some: `hybrid-rag eval --make-questions 20 -o questions.yaml`.",
        )
    chosen = [mode.strip() for mode in modes.split(",") if mode.strip()]
    if not chosen or (unknown := [mode for mode in chosen if mode not in MODES]):
        raise InputError(f"{unknown[0] if chosen else 'Nothing'!s} is no way of searching.", f"Known are {', '.join(MODES)}.")
    started = time.monotonic()
    set_up_logging(run.loaded.config.logging.level, run.loaded.config.logging.suppress_warnings, run.debug)
    result = run_evaluation(
        run.load,
        read_set(questions),
        comparisons=compare or (),
        modes=chosen,  # type: ignore[arg-type]
        answers=answers,
        floors=dict(parse_floor(text) for text in floor or ()),
        keep=keep,
        seed=seed,
        progress=_progress(run),
        indexing=lambda event: _progress(run)(event.stage, event.done, event.total),
    )
    run.note(f"Measured in {time.monotonic() - started:.0f} s.")
    run.show(result, functools.partial(evaluation, misses=misses))
    return 1 if any(not check.ok for check in result.floors) else 0


def _progress(run: Run) -> Callable[[str, int, int], None]:
    def show(stage: str, done: int, total: int) -> None:
        if done == total or done * 10 // total > (done - 1) * 10 // total:
            run.note(f"{stage}: {done:,} of {total:,}")

    return show


def _propose(run: Run, n: int, output: Path | None, seed: int) -> int:
    from hybrid_rag.evaluation_proposals import as_yaml, propose

    if output is not None and output.exists():
        raise InputError(f"{output} is there already.", "Name another file, so that edited questions are not lost.")
    with run.service() as service:
        entries = propose(service, n, seed=seed)
    if len(entries) < n:
        run.note(f"The collection gives no more than {len(entries)} questions.")
    if output is not None:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(as_yaml(entries), encoding="utf-8")
        run.note(f"{len(entries)} questions were written to {output}: edit them, then `hybrid-rag eval {output}`.")
    elif run.as_json:
        from hybrid_rag.cli.common import print_json

        print_json(entries)
    else:
        print(as_yaml(entries), end="")
    return 0


def log(
    run: Run,
    since: Annotated[str | None, typer.Option(help="Only queries on or after this day (YYYY-MM-DD, UTC).")] = None,
    show: Annotated[int, typer.Option("-n", min=1, max=1000, help="Slowest and unanswered queries shown.")] = 10,
) -> int:
    """Show what was asked, how fast it was, and what was not answered, from the local log.

    The log is off unless `logging.query_log` is `text` or `hash`.

    Example: hybrid-rag log --since 2026-01-31
    """
    from datetime import date

    from hybrid_rag.query_log import older, read_log, summarise
    from hybrid_rag.render_measures import query_log

    if since is not None:
        try:
            date.fromisoformat(since)
        except ValueError:
            raise InputError(f"{since!r} is no day.", "Write YYYY-MM-DD.") from None
    with run.service() as service:
        path, state = service.query_log_path, service.config.logging.query_log
    if not path.exists() and not older(path).exists():
        kept = f"logging.query_log is {state}."
        raise InputError(f"There is no log of queries in {path}; {kept}", "Set logging.query_log to text or hash, then search and ask.")
    records, damaged = read_log(path, since)
    run.show(summarise(path, records, damaged=damaged, show=show), query_log)
    return 0
