"""Commands about the set-up: init, config, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hybrid_rag.cli.common import Run, command


def register(app: typer.Typer) -> None:
    command(app, "init")(init)
    command(app, "config")(config)
    command(app, "doctor")(doctor)


def init(
    run: Run,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder with your documents and tables.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")] = Path("hybrid-rag.yaml"),
    index: Annotated[Path, typer.Option("--index", metavar="DIR", help="Where the index goes.")] = Path("hybrid-rag-index"),
) -> int:
    """Write a configuration file for a folder of yours; a file that exists is left alone.

    Example: hybrid-rag init ~/Documents/shop
    """
    from hybrid_rag import render
    from hybrid_rag.starting import write_starter

    run.show(write_starter(output, folder=folder, index=index), render.starter)
    return 0


def config(run: Run) -> int:
    """Print the effective configuration and where each value comes from.

    Example: hybrid-rag config
    """
    from hybrid_rag import render

    rows = [{"key": key, "value": value, "origin": origin} for key, value, origin in run.loaded.rows()]
    run.show({"file": str(run.loaded.path) if run.loaded.path else None, "values": rows}, render.configuration)
    return 0


def doctor(run: Run) -> int:
    """Check the set-up and say how to mend what is wrong; exits with 1 when something is.

    Example: hybrid-rag doctor
    """
    from hybrid_rag import render
    from hybrid_rag.doctor import examine

    findings = examine(run.loaded)
    run.show(findings, render.findings)
    return 1 if any(finding.level == "error" for finding in findings) else 0
