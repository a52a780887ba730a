"""Commands that find and answer: search, ask, chat, batch."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from hybrid_rag.cli.common import Run, command, fail
from hybrid_rag.errors import ConfigError, HybridRagError
from hybrid_rag.filters import Filters
from hybrid_rag.records import Answer
from hybrid_rag.render_text import safe, say


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
    live = LiveAnswer(run)
    with run.service() as service:
        answer = service.ask(question, filters=filters, k=k, on_token=live.on_token)
    live.show(answer)
    return 0


def chat(run: Run, filters: Filters | None = None) -> int:
    """Ask several questions in turn; follow-up questions are understood.

    Type /sources, /reset, /export FILE, or an empty line to end.

    Example: echo "What is the return window?" | hybrid-rag chat
    """
    from hybrid_rag.conversation import Conversation

    failed = 0
    with run.service() as service:
        conversation = Conversation(service, filters=filters)
        while line := _next_line(run):
            live = LiveAnswer(run)
            try:
                if line.startswith("/"):
                    say(run.console, conversation.command(line))
                else:
                    live.show(conversation.ask(line, on_token=live.on_token, on_rewritten=live.on_rewritten))
            except HybridRagError as error:  # one question that fails does not end the conversation
                live.end_line()
                failed = fail(error)
    return failed


class LiveAnswer:
    """An answer that is shown while it is written: on a terminal only, and only sentences that have passed the check."""

    def __init__(self, run: Run) -> None:
        self._run, self._streamed = run, ""
        self.on_token = None if run.as_json or not run.console.is_terminal else self._piece

    def _piece(self, text: str) -> None:
        self._streamed += text
        self._run.console.out(safe(text), end="", style="bold", highlight=False)
        self._run.console.file.flush()

    def on_rewritten(self, question: str) -> None:
        self._run.note(f"Understood as: {safe(question)}")

    def end_line(self) -> None:
        if self._streamed:
            self._run.console.out("")

    def show(self, answer: Answer) -> None:
        """The whole record; of its text only what does not stand there yet."""
        from hybrid_rag import render

        self.end_line()
        complete = self._streamed == answer.answer
        if self._streamed and not complete:
            self._run.note("The answer as checked in whole:")
        root = self._run.loaded.config.data.directory
        self._run.show(answer, partial(render.answer, root=root, streamed=bool(self._streamed) and complete))


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
    own = Filters.parse(**settings.filters.model_dump())  # empty: those of every search apply
    with run.service() as service:
        summary = run_batch(
            service,
            questions,
            output,
            format=form or settings.format,
            concurrency=concurrency or settings.concurrency,
            filters=filters or (None if own.empty else own),
            on_error=settings.on_error,
            progress=lambda done, total, text: run.note(f"[{done}/{total}] {text}"),
        )
    run.show(summary, render.batch_summary)
    return summary.exit_code
