"""Table questions: which can be answered by one query, by which query, and the answer with its proof."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hybrid_rag.filters import Filters
from hybrid_rag.question_reading import Reading
from hybrid_rag.question_rules import read
from hybrid_rag.records import Answer, Citation, TableCard, TableColumn, TableResult
from hybrid_rag.retrieval import Retriever
from hybrid_rag.table_store import TableStore
from hybrid_rag.tables import ROW

if TYPE_CHECKING:
    from hybrid_rag.llm import OllamaChat

SHOWN_RECORDS = 20  # record numbers in the proof
QUOTED_RECORDS = 3  # records quoted when the result stands on few
SHOWN_EXCLUDED = 10
GROUPS_SHOWN = 60
_CALCULATION = re.compile(
    r"\b(how many|how much|number of|count|total|sum|average|mean|highest|lowest|most|least|fewest|maximum|minimum|largest|smallest|top \d+|per (?:month|year|\w+))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Query:
    """SQL with parameters, and the sentence's form."""

    sql: str
    parameters: tuple[Any, ...]
    shown: str  # the same with the values written in


class TableAnswerer:
    """Answers table questions by one read-only query; declines everything else."""

    def __init__(
        self, store: TableStore, retriever: Retriever, chat: Callable[[], OllamaChat | None], *, synonyms: Mapping[str, Sequence[str]]
    ) -> None:
        self._store, self._retriever, self._chat, self._synonyms = store, retriever, chat, synonyms

    def answer(self, question: str, *, filters: Filters | None = None) -> Answer | None:
        """The answer with its SQL and rows; None when this is no table question, or none that can be answered surely."""
        started = time.perf_counter()
        cards = self._cards(filters)
        readings = [r for card in cards if (r := read(question, card, self._synonyms, self._find)) is not None]
        if not readings:
            return None
        best = max(_closeness(r) for r in readings)
        chosen = [r for r in readings if _closeness(r) == best]
        if len(chosen) > 1:
            return None  # two tables could be meant
        answer = self._run(question, chosen[0])
        return replace(answer, milliseconds={"table": (time.perf_counter() - started) * 1000})

    def guard(self, answer: Answer) -> Answer:
        """A calculation is never answered from the few rows that a search has found: then say what it needs."""
        if answer.mode == "table" or not answer.citations or not _CALCULATION.search(answer.question):
            return answer
        if any(c.kind != "table" for c in answer.citations[:1]):
            return answer
        card = self._store.card(answer.citations[0].source)
        if card is None:
            return answer
        columns = ", ".join(f"{c.label} ({c.type})" for c in card.columns)
        text = f"This needs a calculation over the table {card.name} ({card.source}), which could not be read from the question. Its columns: {columns}."
        return replace(answer, answer=text, mode="none", abstained=True, citations=(), notes=(*answer.notes, "Ask for a count, sum, average or extreme of a column, or use `hybrid-rag sql`."))

    def _cards(self, filters: Filters | None) -> list[TableCard]:
        if filters is None or filters.empty:
            return self._store.cards()
        allowed = {d.source for d in self._retriever.index.catalog.documents() if filters.matches(d)}
        return [card for card in self._store.cards() if card.source in allowed]

    def _find(self, card: TableCard, texts: Sequence[str]) -> list[tuple[TableColumn, str]]:
        """Columns of text in which one of the texts is a whole cell, with the cell as written."""
        columns = [c for c in card.columns if c.type == "text"]
        if not columns:
            return []
        parts = [f"SELECT {i}, min(\"{c.name}\") FROM \"{card.name}\" WHERE lower(trim(\"{c.name}\")) = ? HAVING count(*) > 0" for i, c in enumerate(columns)]
        wanted = texts[0].casefold()
        found = self._store.fetch(" UNION ALL ".join(parts) + " ORDER BY 1", [wanted] * len(parts), [card.name])
        return [(columns[i], value) for i, value in found]

    # ------------------------------------------------------------ running

    def _run(self, question: str, reading: Reading) -> Answer:
        card = reading.card
        where, parameters = _where(reading)
        query = _compose(reading, where, parameters)
        rows = self._store.fetch(query.sql, query.parameters, [card.name])
        numbers = [r[0] for r in self._store.fetch(f'SELECT "{ROW}" FROM "{card.name}"{where} ORDER BY 1', parameters, [card.name])]
        excluded = self._excluded(reading, where, parameters)
        proof = _proof_rows(reading, rows) or numbers
        result = TableResult(
            sql=query.shown,
            columns=_columns(reading),
            rows=tuple(tuple(_plain(v) for v in (row[:-1] if _row_level(reading) else row)) for row in rows[:GROUPS_SHOWN]),
            tables=(card.name,),
            sources=(card.source,),
            row_count=len(proof) if _row_level(reading) else len(numbers),
            record_numbers=tuple(proof[:SHOWN_RECORDS]),
            excluded=excluded,
            truncated=len(rows) > GROUPS_SHOWN,
        )
        return Answer(question, _sentence(reading, result), "table", False, self._citations(card, proof), sql=query.shown, table=result)

    def _excluded(self, reading: Reading, where: str, parameters: Sequence[Any]) -> tuple[str, ...]:
        """Records that a number column leaves out: no value, or one that cannot be read."""
        column = reading.column
        if column is None or reading.aggregate not in ("sum", "avg", "min", "max"):
            return ()
        sql = f'SELECT "{ROW}" FROM "{reading.card.name}"{where}{" AND" if where else " WHERE"} "{column.name}" IS NULL ORDER BY 1'
        rows = [r[0] for r in self._store.fetch(sql, parameters, [reading.card.name])]
        if not rows:
            return ()
        shown = ", ".join(map(str, rows[:SHOWN_EXCLUDED])) + (" …" if len(rows) > SHOWN_EXCLUDED else "")
        return (f"{len(rows)} records have no readable {column.label} and were left out (rows {shown}).",)

    def _citations(self, card: TableCard, numbers: Sequence[int]) -> tuple[Citation, ...]:
        if not numbers:
            return (Citation(1, card.source, "table", verified=True),)
        if len(numbers) > QUOTED_RECORDS:
            return (Citation(1, card.source, "table", rows=(numbers[0], numbers[-1]), verified=True),)
        out = []
        for n, number in enumerate(numbers, start=1):
            header, found = self._store.rows(card.source, number, number)
            quote = "\n".join(f"{name}: {cell}" for name, cell in zip(header, found[0], strict=True) if cell)
            out.append(Citation(n, card.source, "table", rows=(number, number), quote=quote, verified=True))
        return tuple(out)


# ---------------------------------------------------------------- SQL


def _closeness(reading: Reading) -> tuple[bool, int, bool]:
    """Of two tables that could be meant: the one that is named, more of whose names are, whose key is asked for."""
    return reading.by_noun, reading.matched, bool(reading.entity and reading.entity.is_key)


def _where(reading: Reading) -> tuple[str, list[Any]]:
    if not reading.conditions:
        return "", []
    return " WHERE " + " AND ".join(c.sql for c in reading.conditions), [p for c in reading.conditions for p in c.parameters]


def _row_level(reading: Reading) -> bool:
    """The answer is in single records: an extreme of a column, or a look-up."""
    return not reading.aggregate or (reading.aggregate in ("min", "max") and not reading.group)


def _compose(reading: Reading, where: str, parameters: Sequence[Any]) -> _Query:
    table, column = f'"{reading.card.name}"', f'"{reading.column.name}"' if reading.column else ""
    order = "DESC" if reading.descending else "ASC"
    if not reading.aggregate:
        sql = f'SELECT {column}, "{ROW}" FROM {table}{where} ORDER BY "{ROW}"'
    elif _row_level(reading):
        first = f'"{reading.entity.name}", ' if reading.entity else ""
        given = f"{where}{' AND' if where else ' WHERE'} {column} IS NOT NULL"
        sql = f'SELECT {first}{column}, "{ROW}" FROM {table}{given} QUALIFY rank() OVER (ORDER BY {column} {order}) <= {reading.places} ORDER BY {column} {order}, "{ROW}"'
    else:
        value = "count(*)" if reading.aggregate == "count" and not reading.distinct else f"{reading.aggregate}({'DISTINCT ' if reading.distinct else ''}{column})"
        if not reading.group:
            sql = f"SELECT {value} FROM {table}{where}"
        elif reading.places:
            given = f"{where}{' AND' if where else ' WHERE'} {reading.group} IS NOT NULL"
            sql = f"SELECT {reading.group}, {value} FROM {table}{given} GROUP BY 1 QUALIFY rank() OVER (ORDER BY {value} {order}) <= {reading.places} ORDER BY 2 {order}, 1"
        else:
            sql = f"SELECT {reading.group}, {value} FROM {table}{where} GROUP BY 1 ORDER BY 1"
    return _Query(sql, tuple(parameters), _written_in(sql, parameters))


def _written_in(sql: str, parameters: Sequence[Any]) -> str:
    for value in parameters:
        text = f"{value:g}" if isinstance(value, float) else str(value) if isinstance(value, (int, bool)) else "'" + str(value).replace("'", "''") + "'"
        sql = sql.replace("?", text.replace("?", "\0"), 1)
    return sql.replace("\0", "?")


def _proof_rows(reading: Reading, rows: Sequence[tuple[Any, ...]]) -> list[int]:
    return [int(row[-1]) for row in rows] if _row_level(reading) else []


# ---------------------------------------------------------------- words


def _columns(reading: Reading) -> tuple[str, ...]:
    value = reading.column.label if reading.column else "rows"
    names = {"sum": f"sum of {value}", "avg": f"average {value}", "count": f"different {value}" if reading.distinct else "count"}
    label = names.get(reading.aggregate, value)
    if _row_level(reading):
        return (reading.entity.label, label) if reading.entity else (label,)
    return (reading.group_words, label) if reading.group else (label,)


def _sentence(reading: Reading, result: TableResult) -> str:
    name = reading.card.name.replace("_", " ")
    condition = f" where {' and '.join(c.words for c in reading.conditions)}" if reading.conditions else ""
    if not result.rows or (len(result.rows) == 1 and result.rows[0][-1] is None):
        return f"No record of {name}{condition} gives a result."
    label = result.columns[-1]
    if not reading.aggregate:
        return f"{label}: {', '.join(dict.fromkeys(_shown(row[0]) for row in result.rows))} ({name}{condition})."
    if reading.aggregate == "count" and not reading.group:
        what = label if reading.distinct else "records"
        return f"{_shown(result.rows[0][0])} {what} in {name}{condition}."
    if len(result.columns) == 1:
        extreme = {"max": "Highest ", "min": "Lowest "}.get(reading.aggregate, "")
        text = f"{extreme}{label}" if extreme else label[0].upper() + label[1:]
        return f"{text} in {name}{condition}: {_shown(result.rows[0][0])}."
    listed = "; ".join(f"{_shown(row[0])}: {_shown(row[-1])}" for row in result.rows[:GROUPS_SHOWN])
    title = f"{label} by {result.columns[0]}" if reading.group else f"{'Highest' if reading.descending else 'Lowest'} {label} by {result.columns[0]}"
    return f"{title[0].upper() + title[1:]} in {name}{condition}: {listed}."


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "(none)"}[value]
    if isinstance(value, float):
        return f"{value:,.2f}" if value != int(value) else f"{int(value):,}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if value is None or isinstance(value, (bool, int)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
