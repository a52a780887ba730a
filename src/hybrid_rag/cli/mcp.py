"""The command mcp: serve the documents to clients of the Model Context Protocol, or print what such a client needs."""

from __future__ import annotations

from typing import Annotated

import typer

from hybrid_rag.cli.common import Run, command, set_up_logging


def register(app: typer.Typer) -> None:
    command(app, "mcp", json_output=False)(mcp)


def mcp(
    run: Run,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP instead of stdin and stdout.")] = False,
    host: Annotated[str | None, typer.Option(help="Address of --http; unset: `mcp.host`.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port of --http, 0 takes a free one; unset: `mcp.port`.")] = None,
    print_config: Annotated[bool, typer.Option("--print-config", help="Print the block for Claude Desktop, and where it belongs.")] = False,
) -> int:
    """Serve the documents to Claude Desktop and other MCP clients, over stdin and stdout.

    Example: hybrid-rag mcp --print-config
    """
    if print_config:
        return _print_config(run)
    if not http:
        from hybrid_rag.mcp_server.stdio import take_streams

        wires = take_streams()  # before anything else can print
    from hybrid_rag.mcp_server.logs import add_file

    config = run.loaded.config
    set_up_logging(config.logging.level, config.logging.suppress_warnings, run.debug)
    add_file(config.mcp.log_file)
    if http:
        from hybrid_rag.mcp_server.http import serve

        serve(run.loaded, host or config.mcp.host, config.mcp.port if port is None else port, listening=run.note)
    else:
        from hybrid_rag.mcp_server.stdio import serve as serve_stdio

        serve_stdio(run.loaded, wires)
    return 0


def _print_config(run: Run) -> int:
    from hybrid_rag.cli.common import print_json
    from hybrid_rag.mcp_server.client_config import FILES, block

    print_json(block(run.loaded))
    run.note("Put this into the file of Claude Desktop (Settings > Developer > Edit Config), then restart it:")
    run.note(*(f"  {system:<8} {path}" for system, path in FILES.items()))
    return 0
