"""The tables of an index: their cards with likely joins, read-only SQL over them, and their records as written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hybrid_rag.errors import InputError, TableError
from hybrid_rag.records import TableCard, TableColumn, TableJoin, TableResult
from hybrid_rag.table_database import SqlLimits, TableDatabase
from hybrid_rag.table_sql import check
from hybrid_rag.table_worker import SqlWorker
from hybrid_rag.tables import RAW, ROW, q

__all__ = ["SqlLimits", "TableStore"]

JOIN_OVERLAP = 0.5  # share of a column's values that must be in the other table's key
MOST_JOINS_TRIED = 200
MOST_WORKERS = 2  # kept between queries
OWN_MEMORY_MB = 1024  # for the statements of our own rules


@dataclass(frozen=True, slots=True)
class _Known:
    """The tables of one state of the index."""

    generation: str
    cards: tuple[TableCard, ...]
    files: dict[str, str]


class TableStore:
    """The tables of an index. ``tables`` gives the cards and the names of the columnar files in ``directory``.

    Thread-safe. Free SQL runs in a process of its own; the parameterised statements of our rules run here.
    """

    def __init__(
        self, directory: Path, tables: Callable[[], Sequence[tuple[TableCard, str]]], generation: Callable[[], str], *, limits: SqlLimits
    ) -> None:
        self._directory, self._tables, self._generation, self._limits = directory, tables, generation, limits
        self._lock = threading.RLock()
        self._known = _Known("", (), {})
        self._database: TableDatabase | None = None
        self._workers: list[SqlWorker] = []

    # ------------------------------------------------------------ cards

    @property
    def generation(self) -> str:
        return self._generation()

    def cards(self) -> list[TableCard]:
        """All tables by source, with unique names and likely joins."""
        return list(self._current().cards)

    def card(self, name: str) -> TableCard | None:
        """The table of this SQL name or file."""
        return next((c for c in self._current().cards if name in (c.name, c.source)), None)

    def _current(self) -> _Known:
        with self._lock:
            generation = self._generation()
            if self._known.generation != generation:
                cards, files = [], {}
                for card, file in self._tables():
                    name, n = card.name, 1
                    while name in files:
                        n += 1
                        name = f"{card.name}_{n}"
                    files[name] = file
                    cards.append(replace(card, name=name))
                self._known = _Known(generation, tuple(cards), files)
                self._known = _Known(generation, tuple(self._joined(cards)), files)
            return self._known

    def _joined(self, cards: Sequence[TableCard]) -> Iterator[TableCard]:
        """The cards with their likely joins: a column whose values are found in another table's key of the same name."""
        keys: dict[str, list[tuple[TableCard, TableColumn]]] = {}
        for card in cards:
            for column in card.columns:
                if column.is_key:
                    keys.setdefault(column.name, []).append((card, column))
        tried = 0
        for card in cards:
            joins = []
            for column in card.columns:
                for other, key in keys.get(column.name, ()):
                    if other.name == card.name or column.is_key or not _may_overlap(column, key) or tried >= MOST_JOINS_TRIED:
                        continue
                    tried += 1
                    if (share := self._overlap(card, other, column.name)) >= JOIN_OVERLAP:
                        joins.append(TableJoin(column.name, other.name, key.name, round(share, 3)))
            yield replace(card, joins=tuple(joins))

    def _overlap(self, card: TableCard, other: TableCard, column: str) -> float:
        values = f"SELECT DISTINCT {q(column)} v FROM {q(card.name)} WHERE {q(column)} IS NOT NULL"
        sql = f"SELECT count(*) FILTER (WHERE v IN (SELECT {q(column)} FROM {q(other.name)})) / greatest(count(*), 1) FROM ({values})"
        return float(self.fetch(sql, (), (card.name, other.name))[0][0])

    # ------------------------------------------------------------ queries

    def query(self, sql: str) -> TableResult:
        """Run one SELECT. Raises SqlRejectedError, SqlLimitError, TableError (with the known tables)."""
        known = self._current()
        statement, names = check(sql, known.files, self._help())
        answer = self._asked(statement, {name: known.files[name] for name in names})
        return TableResult(
            sql=statement,
            columns=tuple(answer["columns"]),
            rows=tuple(tuple(row) for row in answer["rows"]),
            tables=names,
            sources=tuple(card.source for card in known.cards if card.name in names),
            truncated=answer["truncated"],
            milliseconds=answer["milliseconds"],
        )

    def _asked(self, sql: str, files: dict[str, str]) -> dict[str, Any]:
        with self._lock:
            worker = self._workers.pop() if self._workers else SqlWorker(self._directory, self._limits)
        try:
            return worker.query(sql, files)
        except TableError as error:
            if type(error) is TableError:
                raise TableError(error.message, self._help()) from None
            raise
        finally:
            with self._lock:
                if worker.alive and len(self._workers) < MOST_WORKERS:
                    self._workers.append(worker)
                    worker = None
            if worker is not None and worker.alive:
                worker.close()

    def fetch(self, sql: str, parameters: Sequence[Any], names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Rows of a statement of our own with parameters, over the named tables."""
        import duckdb

        with self._lock:
            if self._database is None:
                self._database = TableDatabase(self._directory, OWN_MEMORY_MB)
            database, files = self._database, self._known.files
        try:
            database.use({name: files[name] for name in names})
            cursor = database.cursor()
            try:
                return cursor.execute(sql, list(parameters)).fetchall()
            finally:
                cursor.close()
        except duckdb.IOException as error:
            raise TableError(
                f"The table file of {', '.join(names)} cannot be read: {str(error).splitlines()[0][:200]}", "Run `hybrid-rag rebuild all`."
            ) from error
        except duckdb.Error as error:
            raise TableError(f"The query failed: {str(error).splitlines()[0][:400]}") from error

    # ------------------------------------------------------------ records

    def rows(self, source: str, first: int, last: int) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """(header, records ``first`` to ``last`` as written). Raises InputError for an unknown table."""
        card = self.card(source)
        if card is None:
            raise InputError(f"There is no table {source!r}.", self._help())
        found = self.records(card, range(max(first, 1), min(last, card.rows) + 1)) if last >= first else {}
        return tuple(c.label for c in card.columns), [found[number] for number in sorted(found)]

    def records(self, card: TableCard, numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Records as written, by their number."""
        columns = ", ".join(q(c.name if c.type == "text" else c.name + RAW) for c in card.columns)
        where = f"{q(ROW)} BETWEEN ? AND ?" if isinstance(numbers, range) else f"{q(ROW)} IN (SELECT unnest(?::BIGINT[]))"
        parameters = (numbers.start, numbers.stop - 1) if isinstance(numbers, range) else (list(numbers),)
        found = self.fetch(f"SELECT {q(ROW)}, {columns} FROM {q(card.name)} WHERE {where}", parameters, [card.name])
        return {int(row[0]): tuple("" if value is None else str(value) for value in row[1:]) for row in found}

    def _help(self) -> str:
        names = ", ".join(card.name for card in self._known.cards[:20])
        return f"Tables: {names}. `hybrid-rag tables` shows their columns." if names else "There are no tables in the index."

    def close(self) -> None:
        with self._lock:
            for worker in self._workers:
                worker.close()
            self._workers = []
            if self._database is not None:
                self._database.close()
            self._database = None


def _may_overlap(column: TableColumn, key: TableColumn) -> bool:
    """False when the ranges of the two columns say that they share no value."""
    if column.type != key.type or column.minimum is None or key.minimum is None:
        return False
    return not (column.maximum < key.minimum or column.minimum > key.maximum)
