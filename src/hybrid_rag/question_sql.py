"""A reading as one SELECT with parameters, and the same with the values written in for people to see and run again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hybrid_rag.question_reading import Condition, Reading
from hybrid_rag.tables import ROW, q


@dataclass(frozen=True, slots=True)
class Query:
    """``parameters`` fill the question marks of ``sql`` in order; ``tables``: SQL names of the tables that it reads."""

    sql: str
    parameters: tuple[Any, ...]
    tables: tuple[str, ...]

    @property
    def shown(self) -> str:
        return written_in(self.sql, self.parameters)


def source(reading: Reading) -> tuple[str, tuple[str, ...]]:
    """(the FROM clause, the tables in it): the table, and for each joined one its key and the columns that are used."""
    table = q(reading.card.name)
    names = [reading.card.name]
    used: dict[str, list[str]] = {}
    joins = {}
    for field in reading.fields:
        if field.join is not None:
            joins[field.join.other_table] = field.join
            columns = used.setdefault(field.join.other_table, [])
            if field.column.name not in columns:
                columns.append(field.column.name)
    for other, columns in used.items():
        join, key = joins[other], q(f"{other}_key")
        some = ", ".join(map(q, columns))
        table += f" LEFT JOIN (SELECT {q(join.other_column)} AS {key}, {some} FROM {q(other)}) ON {q(join.column)} = {key}"
        names.append(other)
    return table, tuple(names)


def where(reading: Reading, conditions: Sequence[Condition] | None = None, *extra: str) -> tuple[str, tuple[Any, ...]]:
    """The WHERE clause with its parameters; rows that add the others up are left out of all but look-ups."""
    some = list(reading.conditions if conditions is None else conditions)
    parts = [c.sql for c in some] + list(extra)
    totals = reading.card.total_rows
    if totals and reading.shape not in ("lookup", "difference"):
        parts.append(f"{q(ROW)} NOT IN ({', '.join(map(str, totals))})")
    return (f" WHERE {' AND '.join(parts)}" if parts else ""), tuple(p for c in some for p in c.parameters)


def compose(reading: Reading) -> Query:
    """The SELECT of a reading. Row by row answers end with the record number."""
    table, names = source(reading)
    sql, parameters = _BY_SHAPE[reading.shape](reading, table)
    return Query(sql, parameters, names)


def plainly(reading: Reading) -> str:
    """The SELECT as people would write it: without record numbers, the first ones of an order, ties or not."""
    table, _ = source(reading)
    order = "DESC" if reading.descending else "ASC"
    limit = f"LIMIT {reading.places or 1}"
    if reading.shape == "ranked":
        clause, parameters = where(reading)
        sql = f"SELECT {reading.target.sql} FROM {table}{clause} ORDER BY {reading.measure.sql} {order} {limit}"
    elif reading.shape == "extreme":
        clause, parameters = where(reading)
        sql = f"SELECT {'max' if reading.descending else 'min'}({reading.measure.sql}) FROM {table}{clause}"
    elif reading.shape == "groups" and reading.places:
        clause, parameters = where(reading)
        value = "count(*)" if reading.aggregate == "count" else f"{reading.aggregate}({reading.measure.sql})"
        sql = f"SELECT {reading.group} FROM {table}{clause} GROUP BY {reading.group} ORDER BY {value} {order} {limit}"
    elif reading.shape == "lookup":
        clause, parameters = where(reading)
        sql = f"SELECT {reading.target.sql} FROM {table}{clause}"
    elif reading.shape in ("place", "neighbour"):
        by, anchor, given = reading.order.sql if reading.order else q(ROW), (), ()
        if reading.shape == "neighbour":
            inner, anchor = where(reading, reading.anchor)
            given = (f"{by} {'<' if reading.descending else '>'} (SELECT {by} FROM {table}{inner})",)
        clause, parameters = where(reading, None, *given)
        sql, parameters = f"SELECT {reading.target.sql} FROM {table}{clause} ORDER BY {by} {order} {limit}", parameters + anchor
    else:
        return compose(reading).shown
    return written_in(sql, parameters)


def records(reading: Reading) -> Query:
    """The numbers of the records that a reading stands on."""
    table, names = source(reading)
    both = (*reading.conditions, *reading.anchor)
    if reading.shape == "difference":
        either = " OR ".join(f"({c.sql})" for c in both)
        return Query(f"SELECT {q(ROW)} FROM {table} WHERE {either} ORDER BY 1", tuple(p for c in both for p in c.parameters), names)
    clause, parameters = where(reading)
    return Query(f"SELECT {q(ROW)} FROM {table}{clause} ORDER BY 1", parameters, names)


def anchors(reading: Reading) -> Query:
    """The numbers of the records that a neighbour is looked for beside."""
    table, names = source(reading)
    clause, parameters = where(reading, reading.anchor)
    return Query(f"SELECT {q(ROW)} FROM {table}{clause} ORDER BY 1", parameters, names)


def is_row_level(reading: Reading) -> bool:
    """Does the answer consist of single records?"""
    return reading.shape in ("extreme", "ranked", "lookup", "place", "neighbour")


def written_in(sql: str, parameters: Sequence[Any]) -> str:
    """``sql`` with its parameters as literals."""
    parts = sql.split("?")
    if len(parts) != len(parameters) + 1:
        raise ValueError("the question marks and the parameters differ in number")
    return parts[0] + "".join(_literal(value) + part for value, part in zip(parameters, parts[1:], strict=True))


def _literal(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value) if isinstance(value, (int, bool)) else "'" + str(value).replace("'", "''") + "'"


# ---------------------------------------------------------------- shapes


def _aggregate(reading: Reading, table: str) -> tuple[str, tuple[Any, ...]]:
    clause, parameters = where(reading)
    if reading.shape == "count":
        value = f"count(DISTINCT {reading.target.sql})" if reading.distinct and reading.target else "count(*)"
    else:
        value = f"{'sum' if reading.shape == 'total' else 'avg'}({reading.measure.sql})"
    return f"SELECT {value} FROM {table}{clause}", parameters


def _ranked(reading: Reading, table: str) -> tuple[str, tuple[Any, ...]]:
    measure = reading.measure.sql
    order = "DESC" if reading.descending else "ASC"
    given = [f"{measure} IS NOT NULL"]
    first = ""
    if reading.shape == "ranked":
        first = f"{reading.target.sql}, "
    clause, parameters = where(reading, None, *given)
    places = reading.places or 1
    ranked = f"QUALIFY rank() OVER (ORDER BY {measure} {order}) <= {places} ORDER BY {measure} {order}, {q(ROW)}"
    return f"SELECT {first}{measure}, {q(ROW)} FROM {table}{clause} {ranked}", parameters


def _groups(reading: Reading, table: str) -> tuple[str, tuple[Any, ...]]:
    value = "count(*)" if reading.aggregate == "count" else f"{reading.aggregate}({reading.measure.sql})"
    if not reading.places:
        clause, parameters = where(reading)
        return f"SELECT {reading.group}, {value} FROM {table}{clause} GROUP BY 1 ORDER BY 1", parameters
    given = [f"{reading.group} IS NOT NULL"]
    if reading.target is not None and reading.target.column.type == "text":
        given.append(f"{reading.group} <> ''")
    clause, parameters = where(reading, None, *given)
    order = "DESC" if reading.descending else "ASC"
    ranked = f"QUALIFY rank() OVER (ORDER BY {value} {order}) <= {reading.places} ORDER BY 2 {order}, 1"
    return f"SELECT {reading.group}, {value} FROM {table}{clause} GROUP BY 1 {ranked}", parameters


def _lookup(reading: Reading, table: str) -> tuple[str, tuple[Any, ...]]:
    clause, parameters = where(reading)
    return f"SELECT {reading.target.sql}, {q(ROW)} FROM {table}{clause} ORDER BY {q(ROW)}", parameters


def _place(reading: Reading, table: str) -> tuple[str, tuple[Any, ...]]:
    by = reading.order.sql if reading.order else q(ROW)
    clause, parameters = where(reading, None, *([f"{by} IS NOT NULL"] if reading.order else []))
    order = "DESC" if reading.descending else "ASC"
    return (
        f"SELECT {reading.target.sql}, {q(ROW)} FROM {table}{clause} QUALIFY rank() OVER (ORDER BY {by} {order}) = 1 ORDER BY {q(ROW)}",
        parameters,
    )


def _neighbour(reading: Reading, table: str) -> tuple[str, tuple[Any, ...]]:
    by = reading.order.sql if reading.order else q(ROW)
    anchor, parameters = where(reading, reading.anchor)
    sign, order = ("<", "DESC") if reading.descending else (">", "ASC")
    clause, given = where(reading, None, f"{by} {sign} (SELECT {by} FROM {table}{anchor})")
    return (
        f"SELECT {reading.target.sql}, {q(ROW)} FROM {table}{clause} QUALIFY rank() OVER (ORDER BY {by} {order}) = 1 ORDER BY {q(ROW)}",
        given + parameters,
    )


def _difference(reading: Reading, table: str) -> tuple[str, tuple[Any, ...]]:
    one, first = where(reading, reading.conditions)
    two, second = where(reading, reading.anchor)
    value = f"(SELECT {reading.measure.sql} FROM {table}{one}) - (SELECT {reading.measure.sql} FROM {table}{two})"
    return f"SELECT {value if reading.signed else f'abs({value})'}", first + second


_BY_SHAPE = {
    "count": _aggregate, "total": _aggregate, "average": _aggregate, "extreme": _ranked, "ranked": _ranked, "groups": _groups,
    "lookup": _lookup, "place": _place, "neighbour": _neighbour, "difference": _difference,
}  # fmt: skip
