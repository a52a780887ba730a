"""Table files to typed columns: one Parquet file a table, with the record number and the values as written beside the typed.

The types are found over all rows by DuckDB; memory stays flat. Identifiers with leading zeros stay text.
"""

from __future__ import annotations

import csv
import os
import re
import tempfile
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import TableError
from hybrid_rag.records import Notice, RowStream, TableCard, TableColumn

if TYPE_CHECKING:
    import duckdb

ROW = "_row"  # record number, from 1
RAW = "_as_written"  # suffix of the column that holds a typed column's cells as written
MISSING = "\x1fmissing\x1f"  # a cell that the record does not have; an empty cell is ''
LINE_END = "\x1e"  # stands for a line end inside a cell while the cells pass through the plain CSV
TYPED_SHARE = 0.95  # of the filled cells that must be of a type
FEW_VALUES = 40  # distinct values up to which all are listed in the card
BUILD_MEMORY = "256MB"
NO_VALUE = ("", "-", "–", "—", "n/a", "na", "null", "none", "nan", "?", "…", "...")

_AS_WRITTEN = "replace({x}, chr(30), chr(10))"  # line ends put back

_INTEGER = r"[-+−]?(?:0|[1-9]\d{0,17}|[1-9]\d{0,2}(?:,\d{3})+)"
_DECIMAL = r"\(?[-+−]?\s?[$€£¥]?\s?[-+−]?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d+)?\s?(?:%|€|\$|£|¥|USD|EUR|GBP)?\)?"
_EUROPEAN = r"[-+−]?[€]?\s?(?:\d{1,3}(?:\.\d{3})+|\d{1,15})(?:,\d{1,4})?\s?(?:%|€|EUR)?"
_LEADING_ZERO = r"[-+]?0\d+"

_DATES: tuple[tuple[str, str], ...] = (  # (pattern, strptime formats of DuckDB)
    (r"\d{4}-\d{1,2}-\d{1,2}", "%Y-%m-%d"),
    (r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d"),
    (r"\d{1,2}\.\d{1,2}\.\d{4}", "%d.%m.%Y"),
    (r"\d{1,2}/\d{1,2}/\d{4}", "%m/%d/%Y"),
    (r"\d{1,2}/\d{1,2}/\d{4}", "%d/%m/%Y"),
    (r"[A-Za-z]{3,9} \d{1,2}, \d{4}", "%B %d, %Y"),
    (r"[A-Za-z]{3} \d{1,2}, \d{4}", "%b %d, %Y"),
    (r"\d{1,2} [A-Za-z]{3,9} \d{4}", "%d %B %Y"),
    (r"\d{1,2} [A-Za-z]{3} \d{4}", "%d %b %Y"),
)
_TIMES: tuple[tuple[str, str], ...] = (
    (r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:\.\d+)?Z?", ""),
    (r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}", ""),
)


@dataclass(frozen=True, slots=True)
class _Typed:
    """How a column is read: its type and the SQL that turns the written cell (``{x}``) into a value or NULL."""

    type: Any
    sql: str


def build(rows: RowStream, target: Path, *, source: str) -> TableCard:
    """Write the columnar file of a table, atomically, and describe it. Raises TableError."""
    import duckdb

    names = sql_names(rows.header)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as folder:
        plain, partial = Path(folder) / "cells.csv", Path(folder) / "table.parquet"
        extra = _write_plain(rows, plain, len(names))
        connection = duckdb.connect(":memory:", config={"memory_limit": BUILD_MEMORY, "threads": 1, "temp_directory": folder})
        try:
            card = _build(connection, names, rows.header, plain, partial, source, extra)
        except duckdb.Error as error:
            raise TableError(f"The table {source} could not be made: {str(error)[:300]}") from error
        finally:
            connection.close()
        os.replace(partial, target)
    return card


def sql_names(labels: Sequence[str]) -> list[str]:
    """Names for SQL: lower case, words joined by underscores, unique, never a number or a name of our own."""
    out: list[str] = []
    for i, label in enumerate(labels, start=1):
        name = sql_name(label) or f"column_{i}"
        base, n = name, 1
        while name in out or name == ROW or f"{name}{RAW}" in out:
            n += 1
            name = f"{base}_{n}"
        out.append(name)
    return out


def sql_name(label: str) -> str:
    plain = unicodedata.normalize("NFKC", label).casefold().replace("#", " number ").replace("%", " percent ")
    name = re.sub(r"\W+", "_", plain).strip("_")
    return f"c_{name}" if name[:1].isdigit() else name


def _write_plain(rows: RowStream, path: Path, width: int) -> int:
    """The cells in one plain CSV, record number first; returns how many records have extra cells."""
    extra = 0
    missing = [MISSING] * width
    with open(path, "w", encoding="utf-8", newline="") as file:
        write = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow
        for number, cells in enumerate(rows.open(), start=1):
            extra += len(cells) > width
            cells = [cell.replace("\r\n", LINE_END).replace("\n", LINE_END).replace("\r", LINE_END) for cell in cells]
            write([number, *cells[:width], *missing[len(cells) :]])
    return extra


def _build(
    db: duckdb.DuckDBPyConnection, names: list[str], labels: Sequence[str], plain: Path, partial: Path, source: str, extra: int
) -> TableCard:
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in (ROW, *names))
    db.execute(
        f"CREATE VIEW cells AS SELECT * FROM read_csv(?, header=false, auto_detect=false, delim=',', quote='\"', escape='\"', "
        f"nullstr='{MISSING}', columns={{{columns}}}, max_line_size=100000000, new_line='\\n', strict_mode=true)".replace("?", _text(str(plain)))
    )
    typed = [_find_type(db, name) for name in names]
    selected = [f'"{ROW}"::BIGINT AS "{ROW}"']
    for name, how in zip(names, typed, strict=True):
        selected.append(f"{how.sql.format(x=_q(name))} AS {_q(name)}")
        if how.type != "text":
            selected.append(f"{_AS_WRITTEN.format(x=_q(name))} AS {_q(name + RAW)}")
    db.execute(f"COPY (SELECT {', '.join(selected)} FROM cells) TO {_text(str(partial))} (FORMAT parquet, COMPRESSION zstd)")
    db.execute(f"CREATE VIEW done AS SELECT * FROM read_parquet({_text(str(partial))})")
    count = db.execute("SELECT count(*) FROM done").fetchone()[0]
    described = tuple(_describe(db, name, label, how.type, count) for name, label, how in zip(names, labels, typed, strict=True))
    notices = (Notice(f"{extra} records have cells beyond the header; they are in the text, not in the table."),) if extra else ()
    stem = source.rpartition("/")[2].rpartition(".")[0] or source
    return TableCard(name=sql_name(stem) or "table", source=source, rows=count, columns=described, notices=notices)


def _find_type(db: duckdb.DuckDBPyConnection, name: str) -> _Typed:
    """The narrowest type that nearly all filled cells have."""
    x = f"trim({_q(name)})"
    filled = f"lower({x}) NOT IN ({', '.join(map(_text, NO_VALUE))})"
    tests = [f"count(*) FILTER (WHERE {filled})", f"count(*) FILTER (WHERE regexp_full_match({x}, '{_LEADING_ZERO}'))"]
    tests += [f"count(*) FILTER (WHERE regexp_full_match({x}, {_text(p)}))" for p in (_INTEGER, _DECIMAL, _EUROPEAN)]
    tests.append(f"count(*) FILTER (WHERE lower({x}) IN ('true', 'false', 'yes', 'no'))")
    tests.append(f"count(*) FILTER (WHERE regexp_matches({x}, ',\\d{{1,2}}\\D*$') AND NOT regexp_matches({x}, '\\.\\d{{1,2}}\\D*$'))")
    total, zeros, integers, decimals, european, booleans, comma = db.execute(f"SELECT {', '.join(tests)} FROM cells").fetchone()
    text = _Typed("text", _AS_WRITTEN)
    if not total or zeros:
        return text
    enough = TYPED_SHARE * total
    plain = "replace(replace(trim({x}), ',', ''), '−', '-')"
    if integers >= enough:
        return _Typed("integer", f"CASE WHEN regexp_full_match(trim({{x}}), {_braced(_INTEGER)}) THEN try_cast({plain} AS BIGINT) END")
    if comma and european >= enough and european >= decimals:
        bare = r"regexp_replace(replace(replace(trim({x}), '.', ''), ',', '.'), '[^0-9.\-]', '', 'g')"
        return _Typed("decimal", f"CASE WHEN regexp_full_match(trim({{x}}), {_braced(_EUROPEAN)}) THEN try_cast({bare} AS DOUBLE) END")
    if decimals >= enough:
        bare = f"regexp_replace({plain}, '[^0-9.\\-]', '', 'g')"
        sign = "CASE WHEN trim({x}) LIKE '(%)' THEN -1 ELSE 1 END"
        return _Typed("decimal", f"CASE WHEN regexp_full_match(trim({{x}}), {_braced(_DECIMAL)}) THEN {sign} * try_cast({bare} AS DOUBLE) END")
    if booleans == total:
        return _Typed("boolean", "CASE lower(trim({x})) WHEN 'true' THEN true WHEN 'yes' THEN true WHEN 'false' THEN false WHEN 'no' THEN false END")
    return _find_date(db, x, enough) or text


def _find_date(db: duckdb.DuckDBPyConnection, x: str, enough: float) -> _Typed | None:
    for pattern, form in _DATES:
        condition = f"regexp_full_match({x}, {_text(pattern)}) AND try_strptime({x}, {_text(form)}) IS NOT NULL"
        if db.execute(f"SELECT count(*) FROM cells WHERE {condition}").fetchone()[0] >= enough:
            return _Typed("date", f"try_strptime(trim({{x}}), {_text(form)})::DATE")
    for pattern, _ in _TIMES:
        condition = f"regexp_full_match({x}, {_text(pattern)}) AND try_cast({x} AS TIMESTAMP) IS NOT NULL"
        if db.execute(f"SELECT count(*) FROM cells WHERE {condition}").fetchone()[0] >= enough:
            return _Typed("datetime", "try_cast(trim({x}) AS TIMESTAMP)")
    return None


def _describe(db: duckdb.DuckDBPyConnection, name: str, label: str, kind: Any, count: int) -> TableColumn:
    q = _q(name)
    raw = q if kind == "text" else _q(name + RAW)
    filled = f"{raw} IS NOT NULL AND lower(trim({raw})) NOT IN ({', '.join(map(_text, NO_VALUE))})"
    sql = f"SELECT count(*) FILTER (WHERE {filled}), count(*) FILTER (WHERE {filled} AND {q} IS NULL), count(DISTINCT {q}), min({q}), max({q}) FROM done"
    given, unreadable, distinct, low, high = db.execute(sql).fetchone()
    few = 0 < distinct <= FEW_VALUES
    values = [r[0] for r in db.execute(f"SELECT DISTINCT {q} FROM done WHERE {q} IS NOT NULL ORDER BY 1").fetchall()] if few else []
    return TableColumn(
        name=name,
        label=label,
        type=kind,
        nulls=count - given,
        unreadable=unreadable if kind != "text" else 0,
        distinct=distinct,
        minimum=_plain(low),
        maximum=_plain(high),
        values=tuple(str(_plain(v))[:80] for v in values),
        is_key=count > 0 and distinct == count and given == count,
    )


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _q(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _braced(pattern: str) -> str:
    """A pattern as SQL text inside a template for str.format."""
    return _text(pattern).replace("{", "{{").replace("}", "}}")
