"""Progress of an indexing run on stderr: a bar on a terminal, a line a stage elsewhere. Ctrl-C stops cleanly."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from hybrid_rag.records import Progress


@contextmanager
def shown_progress(console: Console) -> Iterator[tuple[Callable[[Progress], None], Callable[[], bool]]]:
    """Yield (progress callback, cancelled predicate). The first Ctrl-C asks the run to stop, the second interrupts."""
    stop = threading.Event()

    def on_interrupt(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        console.print("Stopping after the present batch; what is done is kept. (Ctrl-C again stops at once.)", style="yellow")

    main = threading.current_thread() is threading.main_thread()
    previous = signal.signal(signal.SIGINT, on_interrupt) if main else None
    try:
        with _bars(console) if console.is_terminal else _lines(console) as show:
            yield show, stop.is_set
    finally:
        if main:
            signal.signal(signal.SIGINT, previous)


@contextmanager
def _bars(console: Console) -> Iterator[Callable[[Progress], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console, transient=True) as bars:
        tasks: dict[str, int] = {}

        def show(event: Progress) -> None:
            rate = f"{event.rate:,.0f}/s" if event.rate else ""
            if event.stage not in tasks:
                tasks[event.stage] = bars.add_task(event.stage.capitalize(), total=event.total, rate=rate)
            bars.update(tasks[event.stage], completed=event.done, total=event.total, rate=rate)

        yield show


@contextmanager
def _lines(console: Console) -> Iterator[Callable[[Progress], None]]:
    last: dict[str, int] = {}

    def show(event: Progress) -> None:
        percent = 100 * event.done // event.total if event.total else 100
        if percent >= last.get(event.stage, -10) + 10 or (percent == 100 and last.get(event.stage) != 100):
            last[event.stage] = percent
            rate = f", {event.rate:,.0f}/s" if event.rate else ""
            left = f", {event.remaining_seconds:,.0f} s left" if event.remaining_seconds else ""
            console.print(f"{event.stage}: {event.done:,} of {event.total:,} ({percent} %{rate}{left})", markup=False)

    yield show
