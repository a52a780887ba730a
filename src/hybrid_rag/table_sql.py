"""What SQL may say: one SELECT over the known tables, judged by its syntax tree before anything runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import SqlRejectedError

if TYPE_CHECKING:
    import duckdb

LONGEST_SQL = 20_000  # characters
TABLE_FUNCTIONS = frozenset(["range", "generate_series", "unnest"])
FORBIDDEN_FUNCTIONS = frozenset(["getenv", "current_setting", "getvariable", "nextval", "currval", "write_log", "txid_current"])
FORBIDDEN_PREFIXES = ("read_", "pragma_", "duckdb_", "parquet_", "sniff_", "pg_", "which_secret", "json_execute", "from_substrait")


def check(sql: str, tables: Collection[str], remedy: str = "") -> tuple[str, tuple[str, ...]]:
    """(the statement, names of the tables that it reads). Raises SqlRejectedError for all but one SELECT over ``tables``."""
    import duckdb

    if len(sql) > LONGEST_SQL:
        raise SqlRejectedError(f"The SQL has {len(sql):,} characters; {LONGEST_SQL:,} are allowed.")
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise SqlRejectedError(f"The SQL cannot be read: {str(error).splitlines()[0][:300]}", remedy) from error
    if len(statements) != 1:
        raise SqlRejectedError(f"One statement is allowed, not {len(statements)}.", "Run them one at a time.")
    if statements[0].type != duckdb.StatementType.SELECT:
        raise SqlRejectedError(f"Only SELECT is allowed, not {statements[0].type.name}.", "The tables are read-only.")
    known = {name.casefold(): name for name in tables}
    used = _judged(tree_of(sql), known, remedy)
    return sql.strip().rstrip(";").rstrip(), used


def tree_of(sql: str) -> Any:
    """The syntax tree of a SELECT. Raises SqlRejectedError."""
    import duckdb

    try:
        tree = json.loads(_parser().cursor().execute("SELECT json_serialize_sql(?)", [sql]).fetchone()[0])
    except (duckdb.Error, RecursionError, ValueError) as error:
        raise SqlRejectedError(
            "The SQL cannot be judged; it is nested too deeply or of an unusual form.", "Write a plain SELECT."
        ) from error
    if tree.get("error"):
        raise SqlRejectedError(f"Only SELECT is allowed: {tree.get('error_message')}", "Write a plain SELECT.")
    return tree


def _judged(tree: Any, known: dict[str, str], remedy: str) -> tuple[str, ...]:
    all_nodes = list(nodes(tree))
    named = {
        str(entry["key"]).casefold() for node in all_nodes if isinstance(node.get("map"), list) for entry in node["map"] if "key" in entry
    }
    used: list[str] = []
    for node in all_nodes:
        kind = node.get("type")
        if kind == "BASE_TABLE":
            path = [str(p) for p in node.get("qualified_name", {}).get("path", [node.get("table_name", "")])]
            name = path[-1].casefold()
            if len(path) > 1 or (name not in known and name not in named):
                raise SqlRejectedError(f"There is no table {'.'.join(path)!r} in the index.", remedy)
            if name in known and known[name] not in used:
                used.append(known[name])
        elif kind == "TABLE_FUNCTION":
            function = str(node.get("function", {}).get("function_name", "")).casefold()
            if function not in TABLE_FUNCTIONS:
                raise SqlRejectedError(f"The function {function!r} is not allowed: only the tables of the index can be read.", remedy)
        elif kind == "SHOW_REF":
            raise SqlRejectedError(
                "SHOW, DESCRIBE and SUMMARIZE are not allowed.", "`hybrid-rag tables` shows the tables and their columns."
            )
        if "function_name" in node and _forbidden(str(node["function_name"]).casefold()):
            raise SqlRejectedError(
                f"The function {node['function_name']!r} is not allowed.", "Functions of text, numbers, dates and aggregates are."
            )
    return tuple(used)


def records_of(sql: str) -> str | None:
    """The statement that gives the record numbers that a checked SELECT over one table stands on; None for other forms."""
    import duckdb

    tree = tree_of(sql)
    node = tree["statements"][0]["node"]
    if node.get("type") != "SELECT_NODE" or (node.get("from_table") or {}).get("type") != "BASE_TABLE" or node["cte_map"]["map"]:
        return None
    plain = tree_of('SELECT "_row" FROM t')["statements"][0]["node"]
    for part in ("select_list", "group_expressions", "group_sets", "having", "qualify", "modifiers", "aggregate_handling"):
        node[part] = plain[part]
    try:
        return statement(tree)
    except duckdb.Error:
        return None


def statement(tree: Any) -> str:
    """A syntax tree as SQL, in the forms that people write."""
    sql = str(_parser().cursor().execute("SELECT json_deserialize_sql(?::JSON)", [json.dumps(tree)]).fetchone()[0])
    parts = sql.split("'")  # every second part is inside a text
    for form, common in (
        ("count_star()", "count(*)"),
        (" !~~* ", " NOT ILIKE "),
        (" ~~* ", " ILIKE "),
        (" !~~ ", " NOT LIKE "),
        (" ~~ ", " LIKE "),
    ):
        parts[::2] = [part.replace(form, common) for part in parts[::2]]
    return "'".join(parts)


def expression(sql: str) -> Any:
    """The syntax tree of an expression of our own."""
    return tree_of(f"SELECT {sql} FROM t")["statements"][0]["node"]["select_list"][0]


def columns_in(sql: str) -> frozenset[str]:
    """Names of the columns that a checked SELECT mentions, in lower case."""
    names = (node["column_names"][-1] for node in nodes(tree_of(sql)) if node.get("type") == "COLUMN_REF" and node.get("column_names"))
    return frozenset(str(name).casefold() for name in names)


def _forbidden(function: str) -> bool:
    return function in FORBIDDEN_FUNCTIONS or function.startswith(FORBIDDEN_PREFIXES)


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All nodes of a syntax tree."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    """A connection that only parses."""
    import duckdb

    connection = duckdb.connect(":memory:", config={"memory_limit": "64MB", "threads": 1})
    for setting in ("autoinstall_known_extensions=false", "autoload_known_extensions=false", "enable_external_access=false"):
        connection.execute(f"SET {setting}")
    return connection
