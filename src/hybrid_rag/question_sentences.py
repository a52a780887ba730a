"""The result of a table question as a sentence. Every number in it is a cell of the result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hybrid_rag.question_reading import Reading
from hybrid_rag.question_words import stem, stems
from hybrid_rag.records import TableColumn, TableResult

_UNGROUPED = frozenset(stem(w) for w in "year season founded id no number code zip postcode".split())
YEARS = (1000, 2200)  # whole numbers of a column that all lie between these are written without separators
_LATE = {True: "Latest", False: "Earliest"}
_HIGH = {True: "Highest", False: "Lowest"}


def columns_of(reading: Reading) -> tuple[str, ...]:
    """Names of the result's columns."""
    measure = reading.measure.label if reading.measure else ""
    target = reading.target.label if reading.target else ""
    if reading.shape == "count":
        return (f"different {target}",) if reading.distinct else ("count",)
    if reading.shape == "total":
        return (f"sum of {measure}",)
    if reading.shape == "average":
        return (f"average {measure}",)
    if reading.shape == "difference":
        return (f"difference in {measure}",)
    if reading.shape == "extreme":
        return (measure,)
    if reading.shape == "ranked":
        return target, measure
    if reading.shape == "groups":
        return reading.group_words, {"count": "count", "sum": f"sum of {measure}", "avg": f"average {measure}"}[reading.aggregate]
    return (target,)


def sentence(reading: Reading, result: TableResult) -> str:
    name = reading.card.source.rpartition("/")[2].rpartition(".")[0].replace("_", " ") or reading.card.name
    given = " and ".join(c.words for c in reading.conditions)
    condition = f" where {given}" if given else ""
    if not result.rows or (len(result.rows) == 1 and result.rows[0][-1] is None):
        return f"No record of {name}{condition} gives a result."
    label = result.columns[-1]
    plain = years(reading.card.columns)
    first = shown(result.rows[0][0], result.columns[0], plain)
    values = ", ".join(dict.fromkeys(shown(row[0], result.columns[0], plain) for row in result.rows))
    if reading.shape == "count":
        return f"{first} {label if reading.distinct else 'records'} in {name}{condition}."
    if reading.shape == "lookup":
        return f"{label}: {values} ({name}{condition})."
    if reading.shape == "place":
        by = f"by {reading.order.label}" if reading.order else "in the order of the file"
        return f"{label} of the {'last' if reading.descending else 'first'} record {by} in {name}{condition}: {values}."
    if reading.shape == "neighbour":
        beside = " and ".join(c.words for c in reading.anchor)
        return f"{label} of the record {'before' if reading.descending else 'after'} the one where {beside} in {name}: {values}."
    if reading.shape == "difference":
        beside = " and ".join(c.words for c in reading.anchor)
        return f"{_capital(label)} between {given} and {beside} in {name}: {first}."
    if reading.shape in ("total", "average"):
        return f"{_capital(label)} in {name}{condition}: {first}."
    extreme = (_LATE if reading.measure and reading.measure.is_time else _HIGH)[reading.descending]
    if reading.shape == "extreme":
        return f"{extreme} {label} in {name}{condition}: {first}."
    listed = "; ".join(f"{shown(row[0], result.columns[0], plain)}: {shown(row[-1], label, plain)}" for row in result.rows)
    title = f"{label} by {result.columns[0]}" if reading.shape == "groups" else f"{extreme} {label} by {result.columns[0]}"
    return f"{_capital(title)} in {name}{condition}: {listed}."


def years(columns: Iterable[TableColumn]) -> frozenset[str]:
    """Names and labels of the columns that look like years."""
    some = [c for c in columns if c.type == "integer" and isinstance(c.minimum, int) and YEARS[0] <= c.minimum <= c.maximum <= YEARS[1]]
    return frozenset(name for c in some for name in (c.name, " ".join(c.label.split())))


def shown(value: Any, column: str = "", plain: frozenset[str] = frozenset()) -> str:
    """A cell of a result for people; years and numbers that are names (``plain``: such columns) stand without separators."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "(none)"}[value]
    if isinstance(value, float):
        return f"{value:,.2f}" if value != int(value) else f"{int(value):,}"
    if isinstance(value, int) and column not in plain and not set(stems(column)) & _UNGROUPED:
        return f"{value:,}"
    return str(value)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
