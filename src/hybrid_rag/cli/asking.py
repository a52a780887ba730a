"""Commands that find and answer: search, ask, chat, batch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from hybrid_rag.cli.common import Run, command
from hybrid_rag.errors import ConfigError
from hybrid_rag.filters import Filters


def register(app: typer.Typer) -> None:
    command(app, "search", filters=True)(search)
    command(app, "ask", filters=True)(ask)
    command(app, "chat", filters=True, json_output=False)(chat)
    command(app, "batch", filters=True)(batch)


def search(
    run: Run,
    query: Annotated[str, typer.Argument(help='Words, a question, an identifier, or "an exact phrase" in quotes.')],
    k: Annotated[int | None, typer.Option("-k", min=1, max=1000, help="Results.")] = None,
    mode: Annotated[Literal["hybrid", "keyword", "dense"], typer.Option(help="Legs to use.")] = "hybrid",
    rerank: Annotated[bool | None, typer.Option("--rerank/--no-rerank", help="Use the cross-encoder; unset: as configured.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each hit is where it is.")] = False,
    filters: Filters | None = None,
) -> int:
    """Find passages and table rows.

    Example: hybrid-rag search "opened headphones return" --kind text
    """
    from hybrid_rag import render

    with run.service() as service:
        result = service.search(query, k=k, filters=filters, mode=mode, rerank=rerank, explain=explain)
    run.show(result, render.search_result)
    return 0


def ask(
    run: Run,
    question: Annotated[str, typer.Argument(help="A question in plain words.")],
    k: Annotated[int | None, typer.Option("-k", min=1, max=50, help="Passages to answer from.")] = None,
    filters: Filters | None = None,
) -> int:
    """Answer a question, with citations that code has checked.

    Example: hybrid-rag ask "How long can opened headphones be returned?"
    """
    from hybrid_rag import render

    with run.service() as service:
        answer = service.ask(question, filters=filters, k=k)
    run.show(answer, render.answer)
    return 0


def chat(run: Run, filters: Filters | None = None) -> int:
    """Ask several questions in turn; follow-up questions are understood.

    Type /sources, /reset, /export FILE, or an empty line to end.

    Example: echo "What is the return window?" | hybrid-rag chat
    """
    from hybrid_rag import render
    from hybrid_rag.conversation import Conversation

    with run.service() as service:
        conversation = Conversation(service, filters=filters)
        while line := _next_line(run):
            if line.startswith("/"):
                run.console.print(conversation.command(line), markup=False)
                continue
            answer = conversation.ask(line)
            if answer.rewritten_question:
                run.note(f"Understood as: {answer.rewritten_question}")
            render.answer(answer, run.console)
    return 0


def _next_line(run: Run) -> str:
    if sys.stdin.isatty():
        run.messages.print("\n[bold]?[/bold] ", end="")
    return sys.stdin.readline().strip()


def batch(
    run: Run,
    questions: Annotated[Path | None, typer.Argument(help="TXT, CSV, JSONL or YAML; unset: `batch.questions`.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSONL, CSV or Markdown; unset: `batch.output`.")] = None,
    form: Annotated[Literal["jsonl", "csv", "markdown"] | None, typer.Option("--format", help="Unset: by the output's suffix.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, max=32, help="Questions asked at the same time.")] = None,
    filters: Filters | None = None,
) -> int:
    """Answer a file of questions; a stopped batch goes on where it was.

    Example: hybrid-rag batch questions.txt -o answers.jsonl
    """
    from hybrid_rag import render
    from hybrid_rag.batch import run_batch

    settings = run.loaded.config.batch
    questions, output = questions or settings.questions, output or settings.output
    if questions is None or output is None:
        raise ConfigError(
            "A batch needs a file of questions and a place for the answers.",
            "Give them: `hybrid-rag batch questions.txt -o answers.jsonl`, or set batch.questions and batch.output.",
        )
    with run.service() as service:
        summary = run_batch(
            service,
            questions,
            output,
            format=form or settings.format,
            concurrency=concurrency or settings.concurrency,
            filters=filters or Filters.parse(**settings.filters.model_dump()),
            on_error=settings.on_error,
            progress=lambda done, total, text: run.note(f"[{done}/{total}] {text}"),
        )
    run.show(summary, render.batch_summary)
    return summary.exit_code
