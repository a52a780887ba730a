"""Commands about the index itself: verify, rebuild, backup, restore, reset."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from hybrid_rag.cli.common import Run, command
from hybrid_rag.cli.progress import shown_progress


def register(app: typer.Typer) -> None:
    command(app, "verify")(verify)
    command(app, "rebuild")(rebuild)
    command(app, "backup")(backup)
    command(app, "restore")(restore)
    command(app, "reset")(reset)


def verify(run: Run) -> int:
    """Hold keyword index, vectors and tables against the catalog; exits with 1 when they differ.

    Example: hybrid-rag verify
    """
    from hybrid_rag import render

    with run.service() as service:
        result = service.verify()
    run.show(result, render.verification)
    return 0 if result.ok else 1


def rebuild(
    run: Run,
    part: Annotated[Literal["lexical", "vectors", "all"], typer.Argument(help="What to make again.")] = "all",
) -> int:
    """Make parts of the index again from the catalog, or all of it from the documents.

    Example: hybrid-rag rebuild lexical
    """
    from hybrid_rag import render

    with run.service() as service, shown_progress(run.messages) as (progress, cancelled):
        result = service.rebuild(part, progress=progress, cancel=cancelled)
    run.show(result, render.rebuilt)
    return 0


def backup(run: Run, destination: Annotated[Path, typer.Argument(help="A new folder for the copy.")]) -> int:
    """Copy the index, consistently, while others read and write.

    Example: hybrid-rag backup my-backup
    """
    with run.service() as service:
        service.backup(destination)
    run.note(f"The index was copied to {destination}.")
    return 0


def restore(
    run: Run,
    source: Annotated[Path, typer.Argument(help="A folder made by `hybrid-rag backup`.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Replace the index by a backup.

    Example: hybrid-rag restore my-backup --yes
    """
    if not yes:
        typer.confirm("This replaces the present index. Go on?", abort=True, err=True)
    with run.service() as service:
        service.restore(source)
    run.note(f"The index was restored from {source}.")
    return 0


def reset(run: Run, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> int:
    """Delete the index; the documents stay.

    Example: hybrid-rag reset --yes
    """
    directory = run.loaded.config.vector_store.persist_directory
    if not yes:
        typer.confirm(f"This deletes the index in {directory}. Go on?", abort=True, err=True)
    with run.service() as service:
        service.reset()
    run.note(f"The index in {directory} was deleted.")
    return 0
