"""The command that serves the page: serve."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid_rag.cli.common import Run, command


def register(app: typer.Typer) -> None:
    command(app, "serve", json_output=False)(serve)


def serve(
    run: Run,
    host: Annotated[str | None, typer.Option(help="Address to listen on; unset: `web.host`.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port; 0 takes a free one; unset: `web.port`.")] = None,
) -> int:
    """Open a page to search and ask in, and its JSON API, until stopped with Ctrl-C.

    Example: hybrid-rag serve --port 8080
    """
    from hybrid_rag.web.server import serve as serve_page

    settings = run.loaded.config.web
    with run.service(cold=False) as service:
        serve_page(
            service,
            host=settings.host if host is None else host,
            port=settings.port if port is None else port,
            say=lambda text: run.note(text),
        )
    run.note("Stopped.")
    return 0
