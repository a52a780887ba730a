"""The command line's root: names the commands and says the version."""

from __future__ import annotations

import typer

from hybrid_rag.cli import asking, configuring, documents, mcp, measuring, page, storing, tabular

app = typer.Typer(
    name="hybrid-rag",
    help="Ask a folder of documents and tables, and get answers you can check.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"hybrid-rag {version('hybrid-rag')}")
        raise typer.Exit


@app.callback()
def root(version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version.")) -> None:
    """Ask a folder of documents and tables, and get answers you can check."""


for part in (documents, asking, tabular, page, measuring, configuring, storing, mcp):
    part.register(app)
