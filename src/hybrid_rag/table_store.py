"""Read-only SQL over the tables: one SELECT, in memory, cut off from the machine, with limits."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import InputError, SqlLimitError, SqlRejectedError, TableError
from hybrid_rag.records import TableCard, TableJoin, TableResult
from hybrid_rag.tables import RAW, ROW

if TYPE_CHECKING:
    import duckdb

LOAD_MEMORY = "2GB"
JOIN_OVERLAP = 0.5  # share of a column's values that must be in the other table's key
LONGEST_CELL = 10_000  # characters
LARGEST_RESULT = 5_000_000  # characters


@dataclass(frozen=True, slots=True)
class SqlLimits:
    """Limits of one query; ``rows`` cuts the result and says so, the others stop the query."""

    seconds: float = 10.0
    memory_mb: int = 512
    rows: int = 1000


class TableStore:
    """The tables of an index. ``tables`` gives the cards and the names of the columnar files in ``directory``."""

    def __init__(
        self, directory: Path, tables: Callable[[], Sequence[tuple[TableCard, str]]], generation: Callable[[], int], *, limits: SqlLimits
    ) -> None:
        self._directory, self._tables, self._generation, self._limits = directory, tables, generation, limits
        self._lock = threading.RLock()
        self._cards: tuple[int, list[TableCard], dict[str, str]] = (-1, [], {})
        self._loaded: tuple[Any, duckdb.DuckDBPyConnection | None] = (None, None)

    # ------------------------------------------------------------ cards

    def cards(self) -> list[TableCard]:
        """All tables by source, with unique names and likely joins."""
        return self._known()[1]

    def card(self, name: str) -> TableCard | None:
        return next((c for c in self.cards() if name in (c.name, c.source)), None)

    def _known(self) -> tuple[int, list[TableCard], dict[str, str]]:
        with self._lock:
            generation = self._generation()
            if self._cards[0] != generation:
                cards, files, taken = [], {}, set()
                for card, file in self._tables():
                    name, n = card.name, 1
                    while name in taken:
                        n += 1
                        name = f"{card.name}_{n}"
                    taken.add(name)
                    files[name] = file
                    cards.append(replace(card, name=name))
                self._cards = (generation, cards, files)
                self._cards = (generation, [replace(c, joins=self._joins(c, cards)) for c in cards], files)
            return self._cards

    def _joins(self, card: TableCard, cards: Sequence[TableCard]) -> tuple[TableJoin, ...]:
        """Columns of this table whose values are found in the key of another: same name, or the other table's name within."""
        out = []
        for column in card.columns:
            for other in cards:
                for key in other.columns:
                    if other.name == card.name or not key.is_key or column.is_key or key.type != column.type or key.name != column.name:
                        continue
                    sql = f'SELECT count(*) FILTER (WHERE v IN (SELECT "{key.name}" FROM "{other.name}")) / greatest(count(*), 1) FROM (SELECT DISTINCT "{column.name}" v FROM "{card.name}" WHERE "{column.name}" IS NOT NULL)'
                    share = float(self._fetch(sql, [card.name, other.name])[0][0])
                    if share >= JOIN_OVERLAP:
                        out.append(TableJoin(column.name, other.name, key.name, round(share, 3)))
        return tuple(out)

    # ------------------------------------------------------------ queries

    def query(self, sql: str) -> TableResult:
        """Run one SELECT. Raises SqlRejectedError, SqlLimitError, TableError (with the known tables or columns)."""
        import duckdb

        statement = self._checked(sql)
        with self._lock:
            names = self._used(statement)
            connection = self._connection(names)
            started = time.perf_counter()
            timer = threading.Timer(self._limits.seconds, connection.interrupt)
            timer.start()
            try:
                cursor = connection.execute(statement)
                columns = tuple(d[0] for d in cursor.description or ())
                rows = cursor.fetchmany(self._limits.rows + 1)
            except duckdb.InterruptException:
                raise SqlLimitError(f"The query took longer than {self._limits.seconds:g} seconds.", "Make it simpler, or raise tables.max_seconds.") from None
            except duckdb.OutOfMemoryException:
                raise SqlLimitError(f"The query needs more than {self._limits.memory_mb} MB.", "Make it simpler, or raise tables.max_memory_mb.") from None
            except duckdb.Error as error:
                raise TableError(f"The query failed: {str(error).splitlines()[0][:400]}", self._help()) from error
            finally:
                timer.cancel()
            spent = (time.perf_counter() - started) * 1000
        return self._result(statement, columns, rows, names, spent)

    def _result(self, sql: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]], names: list[str], spent: float) -> TableResult:
        plain = [tuple(_plain(v) for v in row) for row in rows[: self._limits.rows]]
        if sum(len(str(v)) for row in plain for v in row) > LARGEST_RESULT:
            raise SqlLimitError(f"The result has more than {LARGEST_RESULT:,} characters.", "Select fewer columns or rows.")
        sources = tuple(card.source for card in self.cards() if card.name in names)
        return TableResult(sql, columns, tuple(plain), tuple(names), sources, truncated=len(rows) > self._limits.rows, milliseconds=round(spent, 2))

    def _checked(self, sql: str) -> str:
        import duckdb

        try:
            statements = duckdb.extract_statements(sql)
        except duckdb.Error as error:
            raise SqlRejectedError(f"The SQL cannot be read: {str(error).splitlines()[0][:300]}", self._help()) from error
        if len(statements) != 1:
            raise SqlRejectedError(f"One statement is allowed, not {len(statements)}.", "Run them one at a time.")
        if statements[0].type != duckdb.StatementType.SELECT:
            raise SqlRejectedError(f"Only SELECT is allowed, not {statements[0].type.name}.", "The tables are read-only.")
        return sql.strip().rstrip(";")

    def _used(self, sql: str) -> list[str]:
        """Names of the tables that a statement reads."""
        import duckdb

        try:
            named = {n.split(".")[-1].strip('"').casefold() for n in duckdb.connect(":memory:").get_table_names(sql)}
        except duckdb.Error:
            named = set(re.findall(r"\w+", sql.casefold()))
        return [card.name for card in self.cards() if card.name in named]

    def _connection(self, names: Sequence[str]) -> duckdb.DuckDBPyConnection:
        """A locked-down connection with these tables in memory."""
        key = (self._generation(), tuple(names))
        if self._loaded[0] != key or self._loaded[1] is None:
            if self._loaded[1] is not None:
                self._loaded[1].close()
            self._loaded = (key, self._load(names, self._cards[2]))
        return self._loaded[1]  # type: ignore[return-value]

    def _load(self, names: Sequence[str], files: dict[str, str]) -> duckdb.DuckDBPyConnection:
        import duckdb

        connection = duckdb.connect(":memory:", config={"memory_limit": LOAD_MEMORY, "threads": 2})
        try:
            for name in names:
                path = str(self._directory / files[name]).replace("'", "''")
                connection.execute(f"CREATE TABLE \"{name}\" AS SELECT * FROM read_parquet('{path}')")
        except duckdb.Error as error:
            connection.close()
            raise TableError(f"The table {name} cannot be read: {str(error).splitlines()[0][:300]}", "Run `hybrid-rag rebuild all`.") from error
        used = connection.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()[0] or 0
        connection.execute(f"SET memory_limit='{int(used) // 1_000_000 + self._limits.memory_mb}MB'")
        for setting in ("autoinstall_known_extensions=false", "autoload_known_extensions=false", "allow_community_extensions=false",
                        "temp_directory=''", "enable_external_access=false", "lock_configuration=true"):  # fmt: skip
            connection.execute(f"SET {setting}")
        return connection

    def _fetch(self, sql: str, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Rows of a statement of our own."""
        with self._lock:
            return self._connection(list(names)).execute(sql).fetchall()

    def fetch(self, sql: str, parameters: Sequence[Any], names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Rows of a statement of our own with parameters, over the named tables."""
        import duckdb

        with self._lock:
            self._known()
            try:
                return self._connection(sorted(names)).execute(sql, list(parameters)).fetchall()
            except duckdb.Error as error:
                raise TableError(f"The query failed: {str(error).splitlines()[0][:400]}") from error

    # ------------------------------------------------------------ records

    def rows(self, source: str, first: int, last: int) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """(header, records ``first`` to ``last`` as written). Raises InputError for an unknown table."""
        card = self.card(source)
        if card is None:
            raise InputError(f"There is no table {source!r}.", self._help())
        columns = ", ".join(f'"{c.name if c.type == "text" else c.name + RAW}"' for c in card.columns)
        found = self.fetch(f'SELECT {columns} FROM "{card.name}" WHERE "{ROW}" BETWEEN ? AND ? ORDER BY "{ROW}"', (first, last), [card.name])
        return tuple(c.label for c in card.columns), [tuple("" if v is None else str(v) for v in row) for row in found]

    def _help(self) -> str:
        names = ", ".join(card.name for card in self.cards()[:20])
        return f"Tables: {names}. `hybrid-rag tables` shows their columns." if names else "There are no tables in the index."

    def close(self) -> None:
        with self._lock:
            if self._loaded[1] is not None:
                self._loaded[1].close()
            self._loaded = (None, None)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 10)
    if value is None or isinstance(value, (bool, int)):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)[:LONGEST_CELL]
