"""The demonstration: find the documents, bring the index up to date, answer questions with citations, go on asking."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from hybrid_rag import render
from hybrid_rag.cli.common import set_up_logging
from hybrid_rag.cli.progress import shown_progress
from hybrid_rag.config import load
from hybrid_rag.errors import HybridRagError
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
            for question in arguments or QUESTIONS:
                _ask(service, question, console)
            if sys.stdin.isatty():
                _converse(service, console)
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
    kinds = Counter(d.format for d in service.documents())
    console.print(Text(f"Files by kind: {', '.join(f'{n} {kind}' for kind, n in sorted(kinds.items()))}"))
    render.stats(service.stats(), console)


def _ask(service: Service, question: str, console: Console) -> None:
    console.print(Rule(Text(question, style="bold cyan"), align="left"))
    render.answer(service.ask(question), console)


def _converse(service: Service, console: Console) -> None:
    console.print(Text("\nAsk on; an empty line ends.", style="dim"))
    while question := console.input("[bold]?[/bold] ").strip():
        _ask(service, question, console)
