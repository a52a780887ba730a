"""The demonstration: find the documents, bring the index up to date, answer questions with citations, go on asking."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.text import Text

from hybrid_rag import render
from hybrid_rag.cli.common import set_up_logging
from hybrid_rag.cli.progress import shown_progress
from hybrid_rag.config import load
from hybrid_rag.errors import HybridRagError
from hybrid_rag.render_text import safe
from hybrid_rag.service import Service, open_service

QUESTIONS = (
    "How long does the Auralis Studio headphone play with noise cancelling on?",
    "How many days of paid leave does an employee have?",
    "Within how many days can opened headphones be returned?",
    "Which product has the SKU HP-2352?",
    "Which products have the highest warranty claims?",
    "How many warranty claims were rejected?",
    "What is the total order value per month?",
    "Who won the football world cup in 1998?",
)


def main(arguments: Sequence[str]) -> int:
    """Run the demonstration; ``arguments`` are questions, none takes our own. Returns the exit code."""
    console, messages = Console(highlight=False), Console(stderr=True, highlight=False)
    try:
        loaded = load()
        set_up_logging(loaded.config.logging.level, loaded.config.logging.suppress_warnings, False)
        with open_service(loaded) as service:
            _prepare(service, console, messages)
            said: set[str] = set()
            for question in arguments or QUESTIONS:
                _ask(service, question, console, said)
            if sys.stdin.isatty():
                _converse(service, console, said)
    except HybridRagError as error:
        messages.print(Text(f"Error: {error.message}", style="bold red"))
        if error.remedy:
            messages.print(Text(f"What to do: {error.remedy}"))
        return error.exit_code
    return 0


def _prepare(service: Service, console: Console, messages: Console) -> None:
    console.print(Text(f"Documents in {service.config.data.directory}", style="bold"))
    with shown_progress(messages) as (progress, cancelled):
        report = service.index(progress=progress, cancel=cancelled)
    render.index_report(report, console)
    render.stats(service.stats(), console)


def _ask(service: Service, question: str, console: Console, said: set[str]) -> None:
    """Ask and show; a note that stood under an earlier answer is not repeated."""
    console.print()
    console.print(Text(f"? {safe(question)}", style="bold cyan"), soft_wrap=not console.is_terminal)
    answer = service.ask(question)
    render.answer(replace(answer, notes=tuple(note for note in answer.notes if note not in said)), console)
    said.update(answer.notes)


def _converse(service: Service, console: Console, said: set[str]) -> None:
    console.print(Text("\nAsk on; an empty line ends.", style="dim"))
    while question := console.input("[bold]?[/bold] ").strip():
        try:
            _ask(service, question, console, said)
        except HybridRagError as error:
            console.print(Text(str(error), style="red"))
