"""Commands about the collection: index, watch, list, read, report, stats, related, recent, timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hybrid_rag.cli.common import Run, command
from hybrid_rag.cli.progress import shown_progress
from hybrid_rag.filters import Filters


def register(app: typer.Typer) -> None:
    command(app, "index")(index)
    command(app, "watch", json_output=False)(watch)
    command(app, "list", filters=True)(list_documents)
    command(app, "read")(read)
    command(app, "report")(report)
    command(app, "stats")(stats)
    command(app, "related")(related)
    command(app, "recent", filters=True)(recent)
    command(app, "timeline", filters=True)(timeline)


def index(
    run: Run,
    paths: Annotated[list[Path] | None, typer.Argument(help="Parts of the data folder; none: all of it.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Hash every file, also those whose size and time are unchanged.")] = False,
) -> int:
    """Bring the index up to date with the data folder.

    Example: hybrid-rag index
    """
    from hybrid_rag import render

    with run.service() as service, shown_progress(run.messages) as (progress, cancelled):
        result = service.index(paths or None, verify=verify, progress=progress, cancel=cancelled)
    run.show(result, render.index_report)
    return 1 if result.files and all(f.status == "not read" for f in result.files if f.change != "deleted") else 0


def watch(run: Run) -> int:
    """Follow the data folder and index what changes, until stopped with Ctrl-C.

    Example: hybrid-rag watch
    """
    from hybrid_rag.watching import watch as follow

    with run.service() as service:
        follow(service, report=lambda text: run.note(text))
    return 0


def list_documents(run: Run, filters: Filters | None = None) -> int:
    """List the documents of the index.

    Example: hybrid-rag list --kind table
    """
    from hybrid_rag import render

    with run.service() as service:
        found = service.documents(filters)
    run.show(found, render.documents)
    return 0


def read(
    run: Run,
    source: Annotated[str, typer.Argument(help="A document, as `hybrid-rag list` names it.")],
    page: Annotated[int | None, typer.Option(help="A page of a PDF, from 1.")] = None,
    rows: Annotated[str | None, typer.Option(help="Records of a table: '5' or '5-9', from 1.")] = None,
    heading: Annotated[str | None, typer.Option(help="A section, by its heading.")] = None,
    chunk: Annotated[str | None, typer.Option(help="A chunk, by the id that `search --json` shows.")] = None,
    window: Annotated[int, typer.Option(min=0, help="Neighbours (pages, chunks, records) on each side.")] = 0,
) -> int:
    """Show a document, or a part of it.

    Example: hybrid-rag read return_policy.md
    """
    from hybrid_rag import render
    from hybrid_rag.service import parse_rows

    with run.service() as service:
        passage = service.read(source, page=page, rows=parse_rows(rows) if rows else None, heading=heading, chunk=chunk, window=window)
    run.show(passage, render.passage)
    return 0


def report(run: Run) -> int:
    """Say what the last run could not read, or only in part, and why.

    Example: hybrid-rag report
    """
    from hybrid_rag import render

    with run.service() as service:
        run.show(service.report(), render.read_report)
    return 0


def stats(run: Run) -> int:
    """Show what is indexed: documents, chunks, share with vectors, size.

    Example: hybrid-rag stats
    """
    from hybrid_rag import render

    with run.service() as service:
        run.show(service.stats(), render.stats)
    return 0


def related(
    run: Run,
    source: Annotated[str, typer.Argument(help="A document, as `hybrid-rag list` names it.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Documents to show.")] = 5,
) -> int:
    """Find the documents nearest to one.

    Example: hybrid-rag related return_policy.md
    """
    from hybrid_rag import render

    with run.service() as service:
        run.show(service.related(source, k), render.related)
    return 0


def recent(run: Run, k: Annotated[int, typer.Option("-k", min=1, help="Documents to show.")] = 10, filters: Filters | None = None) -> int:
    """Show the latest documents, by their own date, else by the file's.

    Example: hybrid-rag recent -k 5
    """
    from hybrid_rag import render

    with run.service() as service:
        run.show(service.recent(k, filters), render.documents)
    return 0


def timeline(
    run: Run,
    what: Annotated[str, typer.Argument(metavar="QUERY|DOCUMENT", help="A question, or a document.")],
    before: Annotated[int, typer.Option(min=0, help="Documents before the best match.")] = 3,
    after: Annotated[int, typer.Option(min=0, help="Documents after it.")] = 3,
    filters: Filters | None = None,
) -> int:
    """Show documents in time order around the best match.

    Example: hybrid-rag timeline "battery recall" --before 2 --after 2
    """
    from hybrid_rag import render

    with run.service() as service:
        run.show(service.timeline(what, before, after, filters), render.timeline)
    return 0
