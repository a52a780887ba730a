"""Table files to typed columns: one Parquet file a table, with the record number and the values as written beside the typed.

Records stream into DuckDB, whose memory is bounded; the types are decided over all rows (see :mod:`hybrid_rag.table_types`).
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import TableError
from hybrid_rag.records import Notice, RowStream, TableCard, TableColumn
from hybrid_rag.table_database import plain
from hybrid_rag.table_types import DAY_MONTH_UNSURE, LEADING_ZERO, NO_VALUE, Reader, candidates, quoted, spared

if TYPE_CHECKING:
    import duckdb

ROW = "_row"  # record number, from 1
RAW = "_as_written"  # suffix of the column that holds a typed column's cells as written
FEW_VALUES = 40  # distinct values up to which all are listed in the card
LONGEST_LISTED = 200  # characters of a listed value
BATCH_CELLS = 200_000  # cells that wait in Python
LIST_CELLS = 20_000  # batches up to this size are handed over as lists, without NumPy
BUILD_MEMORY = "256MB"
SAMPLE_ROWS = 200
SCANNED_CELLS = 400_000  # cells that one statement looks at, so that wide and long tables stay within memory
MOST_COLUMNS = 32  # of one statement: each of its expressions keeps memory of its own, of wide tables more than a GB together
TOTAL_TOLERANCE = 0.005
TOTALS = ("total", "totals", "grand total", "subtotal", "sub-total", "sum", "overall total")  # what a record that adds others up is called
MOST_TOTALS = 20  # such records of a table
_TOTAL = re.compile(r"(grand |sub-?)?totals?\b|sum\b|overall\b|all\b", re.IGNORECASE)


def build(rows: RowStream, target: Path, *, source: str) -> TableCard:
    """Write the columnar file of a table, atomically, and describe it. Raises TableError.

    Columns of the file: ``_row``, then each column typed, with ``<name>_as_written`` beside it unless it is text. A cell
    that the record does not have is NULL, an empty one is ''.
    """
    import duckdb

    names = sql_names(rows.header)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as folder:
        partial = Path(folder) / "table.parquet"
        connection = _connection(target.parent)
        try:
            card = _Build(connection, names, rows, source).write(partial)
        except duckdb.Error as error:
            _dismiss()
            raise TableError(f"The table {source} could not be made: {str(error)[:300]}") from error
        except BaseException:
            _dismiss()  # half a table is in it
            raise
        os.replace(partial, target)
    return card


_kept = threading.local()  # a connection of each thread for the next table: to open one costs more than a small table does


def _connection(folder: Path) -> duckdb.DuckDBPyConnection:
    """An empty database in memory that spills into ``folder``."""
    import duckdb

    if getattr(_kept, "folder", None) != folder:
        _dismiss()
        spill = folder / f"spill-{os.getpid()}-{threading.get_ident()}"  # made when it is needed
        config = {"memory_limit": BUILD_MEMORY, "threads": 1, "temp_directory": str(spill), "preserve_insertion_order": True}
        _kept.connection, _kept.folder = duckdb.connect(":memory:", config=config), folder
    return _kept.connection


def _dismiss() -> None:
    """Close this thread's connection."""
    if getattr(_kept, "folder", None) is not None:
        _kept.connection.close()
    _kept.folder = None


def sql_names(labels: Sequence[str]) -> list[str]:
    """Names for SQL: lower case, words joined by underscores, unique, never a number or a name of our own."""
    out: list[str] = []
    taken = {ROW}
    for i, label in enumerate(labels, start=1):
        name = sql_name(label) or f"column_{i}"
        base, n = name, 1
        while name in taken or name + RAW in taken or name.removesuffix(RAW) in taken:
            n += 1
            name = f"{base}_{n}"
        out.append(name)
        taken.add(name)
    return out


def sql_name(label: str) -> str:
    plain = unicodedata.normalize("NFKC", label).casefold().replace("#", " number ").replace("%", " percent ")
    name = re.sub(r"\W+", "_", plain).strip("_")
    return f"c_{name}" if name[:1].isdigit() else name


def q(name: str) -> str:
    """An identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


class _Build:
    """One table on its way into its file."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, names: list[str], rows: RowStream, source: str) -> None:
        self._db, self._names, self._rows, self._source = connection, names, rows, source
        self._count = self._extra = 0

    def write(self, target: Path) -> TableCard:
        self._load()
        readers = self._readers()
        selected = [q(ROW)]
        for name, reader in zip(self._names, readers, strict=True):
            if reader is None:
                selected.append(q(name))
            else:
                selected += [f"{reader.value(_trimmed(name))} AS {q(name)}", f"{q(name)} AS {q(name + RAW)}"]
        self._db.execute(
            f"COPY (SELECT {', '.join(selected)} FROM cells ORDER BY {q(ROW)}) TO {quoted(str(target))} (FORMAT parquet, COMPRESSION zstd)"
        )
        small = self._count * len(self._names) <= SCANNED_CELLS  # then it is held: each look into a wide file costs its whole directory
        kind = "TABLE" if small else "VIEW"
        self._db.execute(f"DROP TABLE cells; CREATE {kind} done AS SELECT * FROM read_parquet({quoted(str(target))})")
        columns = tuple(self._described(readers))
        notices = list(self._notices(readers))
        stem = self._source.rpartition("/")[2].rpartition(".")[0] or self._source
        totals = self._total_rows(columns)
        self._db.execute(f"DROP {kind} done")
        return TableCard(sql_name(stem) or "table", self._source, self._count, columns, notices=tuple(notices), total_rows=totals)

    # ------------------------------------------------------------ loading

    def _load(self) -> None:
        columns = ", ".join(f"{q(name)} VARCHAR" for name in self._names)
        self._db.execute(f"CREATE TABLE cells ({q(ROW)} BIGINT, {columns})")
        width = len(self._names)
        for batch in _batches(self._rows.open(), max(1, BATCH_CELLS // (width + 1))):
            self._extra += sum(len(cells) > width for cells in batch)
            padded = [cells[:width] + [None] * (width - len(cells)) for cells in batch]
            numbers = range(self._count + 1, self._count + len(batch) + 1)
            self._insert([list(numbers), *map(list, zip(*padded, strict=True))])
            self._count += len(batch)

    def _insert(self, columns: list[list[Any]]) -> None:
        if len(columns) * len(columns[0]) <= LIST_CELLS:
            unnested = ", ".join(f"unnest(?::{'BIGINT' if i == 0 else 'VARCHAR'}[])" for i in range(len(columns)))
            self._db.execute(f"INSERT INTO cells SELECT {unnested}", columns)
            return
        import numpy as np

        batch = {f"c{i}": np.array(cells, dtype=np.int64 if i == 0 else object) for i, cells in enumerate(columns)}
        self._db.register("batch", batch)
        self._db.execute("INSERT INTO cells SELECT * FROM batch")
        self._db.unregister("batch")

    # ------------------------------------------------------------ types

    def _readers(self) -> list[Reader | None]:
        """The reader of each column; None for text."""
        samples = self._samples()
        tried = [candidates(sample) for sample in samples]
        out: list[Reader | None] = []
        for some in self._by_scan(list(zip(self._names, tried, strict=True))):
            out += self._decided(some)
        return out

    def _samples(self) -> list[list[str]]:
        rows = self._db.execute(
            f"SELECT {', '.join(map(q, self._names))} FROM cells USING SAMPLE reservoir({SAMPLE_ROWS} ROWS) REPEATABLE (7)"
        ).fetchall()
        columns = list(zip(*rows, strict=True)) or [()] * len(self._names)
        return [[cell.strip() for cell in column if cell is not None and not re.fullmatch(NO_VALUE, cell)] for column in columns]

    def _decided(self, columns: list[tuple[str, list[Reader]]]) -> list[Reader | None]:
        counts = []
        for name, readers in columns:
            if readers:
                x = _trimmed(name)
                counts.append(f"count(*) FILTER (WHERE {_filled(name)})")
                counts.append(f"count(*) FILTER (WHERE regexp_full_match({x}, {quoted(LEADING_ZERO)}))")
                counts += [f"count({reader.value(x)})" for reader in readers]
        found = iter(self._db.execute(f"SELECT {', '.join(counts)} FROM cells").fetchone() if counts else ())
        out: list[Reader | None] = []
        for _, readers in columns:
            filled, zeros = (next(found), next(found)) if readers else (0, 0)
            chosen = None
            for reader in readers:
                missed = filled - next(found)
                if chosen is None and filled and missed <= (0 if reader.type == "boolean" else spared(filled)):
                    chosen = None if zeros and reader.type in ("integer", "decimal") else reader
            out.append(chosen)
        return out

    def _by_scan(self, columns: list[Any]) -> Iterator[list[Any]]:
        size = min(MOST_COLUMNS, max(1, SCANNED_CELLS // max(1, self._count)))
        return (columns[i : i + size] for i in range(0, len(columns), size))

    # ------------------------------------------------------------ description

    def _described(self, readers: Sequence[Reader | None]) -> Iterator[TableColumn]:
        for some in self._by_scan(list(zip(self._names, self._rows.header, readers, strict=True))):
            parts = []
            for name, _, reader in some:
                filled, x = _filled(name + RAW if reader else name), q(name)
                parts += [
                    f"count(*) FILTER (WHERE {filled})",
                    f"count(*) FILTER (WHERE {filled} AND {x} IS NULL)",
                    f"min({x})",
                    f"max({x})",
                ]
            found = self._db.execute(f"SELECT {', '.join(parts)} FROM done").fetchone()
            counted = (
                f"SELECT {i}, count(*) FROM (SELECT DISTINCT {q(name)} v FROM done) WHERE v IS NOT NULL"
                for i, (name, _, _) in enumerate(some)
            )
            distinct = dict(self._db.execute(" UNION ALL ".join(counted)).fetchall())  # far cheaper than count(DISTINCT) in one statement
            few = [i for i in range(len(some)) if 0 < distinct[i] <= FEW_VALUES]
            lists = (
                f"(SELECT list(v ORDER BY v) FROM (SELECT DISTINCT {q(some[i][0])} v FROM done WHERE {q(some[i][0])} IS NOT NULL))"
                for i in few
            )
            values = dict(zip(few, self._db.execute(f"SELECT {', '.join(lists)}").fetchone() if few else (), strict=True))
            for i, (name, label, reader) in enumerate(some):
                yield self._column(name, label, reader, distinct[i], values.get(i, ()), *found[4 * i : 4 * i + 4])

    def _column(
        self,
        name: str,
        label: str,
        reader: Reader | None,
        distinct: int,
        values: Sequence[Any],
        given: int,
        unreadable: int,
        low: Any,
        high: Any,
    ) -> TableColumn:
        return TableColumn(
            name=name,
            label=label,
            type=reader.type if reader else "text",
            nulls=self._count - given,
            unreadable=unreadable if reader else 0,
            distinct=distinct,
            minimum=plain(low),
            maximum=plain(high),
            values=tuple(str(plain(v))[:LONGEST_LISTED] for v in values),
            is_key=self._count > 0 and distinct == self._count == given,
            unit=reader.unit if reader else "",
        )

    def _notices(self, readers: Sequence[Reader | None]) -> Iterator[Notice]:
        if self._extra:
            yield Notice(f"{self._extra} records have cells beyond the header; they are in the text, not in the table.")
        for name, label, reader in zip(self._names, self._rows.header, readers, strict=True):
            if reader and reader.type == "date" and any(quoted(form) in reader.sql for form in DAY_MONTH_UNSURE):
                below = self._db.execute(f"SELECT coalesce(max(day({q(name)})), 0) FROM done").fetchone()[0]
                if below <= 12:
                    order = "day first" if quoted("%d-%m-%Y") in reader.sql else "month first"
                    yield Notice(f"The dates of {label!r} could have the day or the month first; they were read {order}.")

    def _total_rows(self, columns: Sequence[TableColumn]) -> tuple[int, ...]:
        """Records that add others up: those called "Total", and the last one when sums prove it.

        Two columns prove it; one does when the record says so, or when it alone has no number in a column that counts them.
        """
        numeric = [c for c in columns if c.type in ("integer", "decimal")]
        if self._count < 4 or not numeric:
            return ()
        texts = [c.name if c.type == "text" else c.name + RAW for c in columns][:2]
        called = " OR ".join(f"lower(trim({q(t)}, ' :.')) IN ({', '.join(map(quoted, TOTALS))})" for t in texts)
        named = [r[0] for r in self._db.execute(f"SELECT {q(ROW)} FROM done WHERE {called} ORDER BY 1 LIMIT {MOST_TOTALS + 1}").fetchall()]
        if len(named) > MOST_TOTALS or 4 * len(named) > self._count:
            named = []  # a kind of record, then, and no summary
        last = self._db.execute(f"SELECT {', '.join(map(q, texts))} FROM done WHERE {q(ROW)} = {self._count}").fetchone()
        among = f"{q(ROW)} NOT IN ({', '.join(map(str, [*named, self._count]))})"
        found: list[Any] = []
        for some in self._by_scan(numeric):
            sums = ", ".join(
                f"sum({q(c.name)}) FILTER (WHERE {among}), sum({q(c.name)}) FILTER (WHERE {q(ROW)} = {self._count})" for c in some
            )
            found += self._db.execute(f"SELECT {sums} FROM done").fetchone()
        pairs = [(a, b) for a, b in zip(found[::2], found[1::2], strict=True) if a is not None and b is not None and a > 0]
        proved = sum(abs(a - b) <= TOTAL_TOLERANCE * abs(a) for a, b in pairs)
        counting = [
            (c, found[2 * i + 1]) for i, c in enumerate(numeric) if c.type == "integer" and c.minimum == 1 and c.maximum == c.distinct
        ]
        said = any(isinstance(cell, str) and _TOTAL.match(cell.strip()) for cell in last)
        uncounted = any(c.distinct == self._count - 1 and value is None for c, value in counting)
        if proved >= (1 if said or uncounted else 2) and self._count not in named:
            named.append(self._count)
        return tuple(named)


def _batches(records: Iterable[list[str]], size: int) -> Iterator[list[list[str]]]:
    iterator = iter(records)
    while batch := list(islice(iterator, size)):
        yield batch


def _trimmed(name: str) -> str:
    return f"trim({q(name)})"


def _filled(name: str) -> str:
    """True where a cell holds a value; false for empty cells, NULL for missing ones."""
    return f"NOT regexp_full_match({q(name)}, {quoted(NO_VALUE)})"
