"""How written cells become values: the readers of one column, as patterns and DuckDB expressions.

A reader is chosen for a whole column: a random sample proposes readers, all rows decide. Cells that the reader cannot read
become NULL and stay as written in their own column. Numbers with leading zeros are identifiers and stay text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

ColumnType = Literal["integer", "decimal", "date", "datetime", "boolean", "text"]

TYPED_SHARE = 0.95  # of the filled cells that must be of a type …
SPARED_CELLS = 3  # … or all but these few, and never more than
SPARED_SHARE = 0.2  # this share, in a small table
SAMPLE_SHARE = 0.6  # of a sample's cells, for a reader to be tried on all rows
NO_VALUE = r"(?i)\s*(?:-+|–|—|n/?a|null|none|nan|nil|\?|…|\.\.\.|tbd|unknown)?\s*"  # what stands in a cell that has no value

_SIGN = r"[-+−–]?"
_MONEY = r"(?:(?:US\$|A\$|C\$|[$€£¥₹]|USD|EUR|GBP|CHF)\s?)?"
_THOUSANDS = "[, \u00a0\u2009\u202f'’]"
_GROUPED = rf"\d{{1,3}}(?:{_THOUSANDS}\d{{3}})+"
_PLAIN = rf"(?:{_GROUPED}|\d{{1,18}})"
_ENGLISH = rf"(?:{_PLAIN}(?:\.\d+)?|\.\d+)"
_EUROPEAN = "(?:\\d{1,3}(?:[. \u00a0\u2009\u202f'’]\\d{3})+|\\d{1,15})(?:,\\d+)?"
_MARK = r"(?:\s?(?:\[[^\]]{1,8}\]|[*†‡§]+))*"  # footnote marks
_REMARK = rf"{_MARK}(?:\s*\([^()]*\))?{_MARK}"
_AFTER_MONEY = r"(?:\s?(?:[€$£¥%]|USD|EUR|GBP|CHF))?"
_NEGATIVE = r"^[^0-9.]*[-−–]|^\("
_UNIT = r"[^\W\d_][^\d\s()\[\]*]{0,11}(?: [^\W\d_][^\d\s()\[\]*]{0,11})?"

LEADING_ZERO = r"[-+]?0\d+"
COMMA_DECIMALS = r".*,(?:\d{1,2}|\d{4,})\D*"
POINT_DECIMALS = r".*\.(?:\d{1,2}|\d{4,})\D*"

_DATES: tuple[tuple[str, tuple[str, ...]], ...] = (  # (pattern, strptime formats of DuckDB)
    (r"\d{4}-\d{1,2}-\d{1,2}", ("%Y-%m-%d",)),
    (r"\d{4}/\d{1,2}/\d{1,2}", ("%Y/%m/%d",)),
    (r"\d{1,2}\.\s?\d{1,2}\.\s?(?:\d{4}|\d{2})", ("%d.%m.%Y", "%d. %m. %Y", "%d.%m.%y")),
    (r"\d{1,2}/\d{1,2}/\d{4}", ("%m/%d/%Y",)),
    (r"\d{1,2}/\d{1,2}/\d{4}", ("%d/%m/%Y",)),
    (r"\d{1,2}/\d{1,2}/\d{2}", ("%m/%d/%y",)),
    (r"\d{1,2}/\d{1,2}/\d{2}", ("%d/%m/%y",)),
    (r"\d{1,2}-\d{1,2}-\d{4}", ("%d-%m-%Y",)),
    (r"\d{1,2}-\d{1,2}-\d{4}", ("%m-%d-%Y",)),
    (
        r"(?:[A-Za-z]{6,9},? )?(?:[A-Za-z]{3,9}\.? \d{1,2},? \d{4}|\d{1,2}\.? [A-Za-z]{3,9},? \d{4}|\d{1,2}-[A-Za-z]{3}-\d{2,4}|\d{4} [A-Za-z]{3,9} \d{1,2})",
        ("%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y", "%b. %d, %Y", "%d. %B %Y", "%d %B, %Y", "%d-%b-%Y", "%d-%b-%y",
         "%Y %b %d", "%Y %B %d", "%A, %B %d, %Y", "%A, %d %B %Y", "%A %d %B %Y"),
    ),
    (r"[A-Za-z]{3,9},? \d{4}", ("%B %Y", "%b %Y", "%B, %Y")),
)  # fmt: skip
DAY_MONTH_UNSURE = ("%m/%d/%Y", "%m/%d/%y", "%d-%m-%Y")  # each stands before its twin with day and month exchanged
_DATETIME = r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?"


@dataclass(frozen=True, slots=True)
class Reader:
    """How a column is read. ``pattern``: what a whole cell must match; ``sql``: the cell ``{x}`` as a value or NULL."""

    type: ColumnType
    pattern: str
    sql: str
    unit: str = ""

    def value(self, x: str) -> str:
        """The SQL expression for the cell expression ``x``; NULL when the pattern does not match or the value is impossible."""
        return f"CASE WHEN regexp_full_match({x}, {quoted(self.pattern)}, 's') THEN {self.sql.replace('{x}', x)} END"


def candidates(sample: Sequence[str]) -> list[Reader]:
    """Readers that could read a column, judged by a sample of its filled cells, best first (text is not among them)."""
    if not sample:
        return []
    enough = SAMPLE_SHARE * len(sample)
    return [r for r in _readers(sample) if sum(re.fullmatch(r.pattern, cell, re.DOTALL) is not None for cell in sample) >= enough]


def spared(filled: int) -> float:
    """How many filled cells a reader may fail to read."""
    return max((1 - TYPED_SHARE) * filled, min(SPARED_CELLS, SPARED_SHARE * filled))


def quoted(value: str) -> str:
    """A text literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def _readers(sample: Sequence[str]) -> Iterator[Reader]:
    yield Reader("boolean", r"(?i)true|false|yes|no", "lower({x}) IN ('true', 'yes')")
    yield Reader("integer", rf"{_SIGN}{_PLAIN}{_MARK}", _number("BIGINT"))
    yield Reader("integer", r"\d{1,6}(?:\.|st|nd|rd|th)" + _REMARK, r"try_cast(regexp_extract({x}, '^\d+') AS BIGINT)")
    european = sum(re.fullmatch(COMMA_DECIMALS, cell, re.DOTALL) is not None for cell in sample)
    english = sum(re.fullmatch(POINT_DECIMALS, cell, re.DOTALL) is not None for cell in sample)
    if european > english:
        yield Reader("decimal", rf"{_SIGN}\s?{_MONEY}{_SIGN}{_EUROPEAN}{_AFTER_MONEY}{_REMARK}", _number("DOUBLE", decimal=","))
    yield Reader("decimal", rf"\(?{_SIGN}\s?{_MONEY}{_SIGN}\s?{_ENGLISH}{_AFTER_MONEY}\)?{_REMARK}", _number("DOUBLE"), _currency(sample))
    if unit := _unit(sample):
        word = re.escape(unit).replace("\\ ", " ")
        yield Reader(
            "decimal", rf"{_SIGN}{_MONEY}{_ENGLISH}\s?(?:{word}){'s?' if unit.isalpha() else ''}{_REMARK}", _number("DOUBLE"), unit
        )
    yield from _date_readers()
    yield Reader("datetime", _DATETIME, "try_cast({x} AS TIMESTAMP)")


def _date_readers() -> Iterator[Reader]:
    for pattern, formats in _DATES:
        listed = ", ".join(quoted(f) for f in formats)
        bare = rf"regexp_replace({{x}}, '{_MARK}$', '')"
        yield Reader("date", pattern + _MARK, f"try_strptime({bare}, [{listed}])::DATE")


def _number(type_: str, decimal: str = ".") -> str:
    """The leading number of a cell; brackets around the whole mean negative, as in accounts."""
    number = _EUROPEAN if decimal == "," else _ENGLISH
    found = f"regexp_extract({{x}}, {quoted(number)})"
    bare = f"regexp_replace({found}, {quoted('[^0-9.]' if decimal == '.' else '[^0-9,]')}, '', 'g')"
    if decimal == ",":
        bare = f"replace({bare}, ',', '.')"
    negative = f"regexp_matches({{x}}, {quoted(_NEGATIVE)})"
    return f"try_cast({bare} AS {type_}) * CASE WHEN {negative} THEN -1 ELSE 1 END"


def _unit(sample: Sequence[str]) -> str:
    """The unit that nearly all cells of a sample end in ("1,450 tonnes"), or ""."""
    found: Counter[str] = Counter()
    for cell in sample:
        if match := re.match(rf"{_SIGN}{_MONEY}{_ENGLISH}\s?({_UNIT})", cell):
            unit = match.group(1)
            found[unit[:-1] if unit.isalpha() and unit.endswith("s") and len(unit) > 3 else unit] += 1
    if not found:
        return ""
    unit, n = found.most_common(1)[0]
    return unit if n >= SAMPLE_SHARE * len(sample) else ""


def _currency(sample: Sequence[str]) -> str:
    """The currency sign or percent sign that most cells carry, or ""."""
    signs = Counter(m.group(0) for cell in sample if (m := re.search(r"US\$|A\$|C\$|[$€£¥₹%]|USD|EUR|GBP|CHF", cell)))
    if not signs:
        return ""
    sign, n = signs.most_common(1)[0]
    return sign if n >= SAMPLE_SHARE * len(sample) else ""
