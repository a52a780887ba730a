"""Dates of a question as conditions: moments and spans over date columns, columns of years, and dates that stand as text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hybrid_rag.question_items import When
from hybrid_rag.question_reading import Condition, Field
from hybrid_rag.question_words import MONTHS, stem, stems


def moment(field: Field, sign: str, when: When) -> Condition | None:
    year, month, day = when.year, when.month, when.day
    if when.quarter is not None:
        if sign != "=" or not field.is_time:
            return None
        parts = [(f"quarter({field.sql}) = ?", when.quarter), *([(f"year({field.sql}) = ?", year)] if year is not None else [])]
        return Condition(" AND ".join(sql for sql, _ in parts), tuple(v for _, v in parts), f"{field.label} in {_shown(when)}", (field,))
    if when.decade:
        year_sql = field.sql if field.column.type == "integer" else f"year({field.sql})"
        if sign != "=" or field.column.type == "text":
            return None
        return Condition(f"{year_sql} BETWEEN ? AND ?", (year, year + 9), f"year of {field.label} between {year} and {year + 9}", (field,))
    if field.column.type == "integer":
        if month is not None:
            return None
        shown = (
            f"{field.label} {sign} {year}"
            if sign != "="
            else f"year of {field.label} is {year}"
            if stems(field.label) != (stem("year"),)
            else f"{field.label} is {year}"
        )
        return Condition(f"{field.sql} {sign} ?", (year,), shown, (field,))
    if field.column.type == "text":
        return _written_date(field, when) if sign == "=" else None
    if sign == "=":
        parts = [(f"year({field.sql}) = ?", year), (f"month({field.sql}) = ?", month), (f"day({field.sql}) = ?", day)]
        given = [(sql, value) for sql, value in parts if value is not None]
        words = f"{field.label} in {_shown(when)}" if year is None or month else f"year of {field.label} is {year}"
        return Condition(" AND ".join(sql for sql, _ in given), tuple(v for _, v in given), words, (field,))
    if year is None:
        return None
    if month is None:
        return Condition(f"year({field.sql}) {sign} ?", (year,), f"year of {field.label} {sign} {year}", (field,))
    words = f"{field.label} {sign} {_shown(when)}"
    if day is None:
        return Condition(f"date_trunc('month', {field.sql}) {sign} ?::DATE", (f"{year:04d}-{month:02d}-01",), words, (field,))
    return Condition(f"{field.sql} {sign} ?::DATE", (f"{year:04d}-{month:02d}-{day:02d}",), words, (field,))


def span(field: Field, low: When, high: When) -> Condition | None:
    if low.quarter is not None or high.quarter is not None:
        return None
    if low.month is None and high.month is None and field.column.type != "text":
        sql = field.sql if field.column.type == "integer" else f"year({field.sql})"
        return Condition(f"{sql} BETWEEN ? AND ?", (low.year, high.year), f"{field.label} between {low.year} and {high.year}", (field,))
    if high.month is not None and low.month is not None and field.is_time:
        low = replace(low, year=low.year or high.year)
        first, last = moment(field, ">=", low), moment(field, "<=", high)
        if first and last:
            return Condition(
                f"{first.sql} AND {last.sql}",
                first.parameters + last.parameters,
                f"{field.label} between {_shown(low)} and {_shown(high)}",
                (field,),
            )
    return None


def _written_date(field: Field, when: When) -> Condition | None:
    """Dates that stand as text ("23 Feb"), by their month's name, their day and their year."""
    parts: list[tuple[str, Any]] = []
    if when.month is not None:
        name = MONTHS[when.month - 1]
        parts.append((f"regexp_matches(lower({field.sql}), ?)", rf"\b({name}|{name[:3]})\b"))
    if when.day is not None:
        parts.append((f"regexp_matches({field.sql}, ?)", rf"\b0?{when.day}\b"))
    if when.year is not None:
        parts.append((f"regexp_matches({field.sql}, ?)", rf"\b{when.year}\b"))
    return Condition(" AND ".join(sql for sql, _ in parts), tuple(v for _, v in parts), f"{field.label} in {_shown(when)}", (field,))


def _shown(when: When) -> str:
    month = MONTHS[when.month - 1].capitalize() if when.month else ""
    quarter = f"Q{when.quarter}" if when.quarter else ""
    return " ".join(str(part) for part in (quarter, when.day, month, when.year) if part)
