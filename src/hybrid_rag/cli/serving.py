"""Commands that serve other programs and people: mcp, serve."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Nothing yet to register."""
