"""Commands about tables: tables, sql."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from hybrid_rag.cli.common import Run, command


def register(app: typer.Typer) -> None:
    command(app, "tables")(tables)
    command(app, "sql")(sql)


def tables(run: Run, name: Annotated[str | None, typer.Argument(help="One table; unset: all.")] = None) -> int:
    """List the tables with their columns, types, ranges, keys and likely joins.

    Example: hybrid-rag tables
    """
    from hybrid_rag import render
    from hybrid_rag.errors import InputError

    with run.service() as service:
        cards = service.tables()
    if name is not None:
        known = [card.name for card in cards]
        cards = [card for card in cards if name in (card.name, card.source)]
        if not cards:
            raise InputError(f"There is no table {name!r}.", f"Known tables: {', '.join(known) or 'none'}.")
    run.show(cards, render.table_cards)
    return 0


def sql(
    run: Run,
    statement: Annotated[str, typer.Argument(help="One SELECT; `hybrid-rag tables` shows names and columns.")],
    form: Annotated[Literal["table", "csv", "json"], typer.Option("--format", help="Form of the result.")] = "table",
) -> int:
    """Run a read-only SQL query over the tables.

    Example: hybrid-rag sql "SELECT count(*) FROM orders"
    """
    from hybrid_rag import render

    run.as_json = run.as_json or form == "json"
    with run.service() as service:
        result = service.sql(statement)
    run.show(result, render.table_csv if form == "csv" else render.table_result)
    return 0
