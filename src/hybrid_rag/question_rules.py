"""Plain table questions to SQL by rules. A rule answers only when every content word of the question is accounted for.

The question is walked once against one table; each word must be an operator, a filler, a column, a value, a number, a
date or the table's own name. What is left unexplained makes the rules decline.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hybrid_rag.question_words import FILLER_STEMS, FILLERS, MONTHS, Vocabulary, Word, stems, value_at, words_of
from hybrid_rag.records import TableCard, TableColumn

MOST = frozenset("most highest maximum max largest biggest greatest top best longest latest newest heaviest priciest".split())
LEAST = frozenset("least lowest minimum min smallest fewest cheapest shortest earliest oldest lightest worst".split())
SUM, AVERAGE = frozenset("total sum combined".split()), frozenset("average mean avg".split())
DISTINCT = frozenset("different distinct unique".split())
PER = frozenset("per each every by".split())
ABOVE = frozenset("over above exceeding beyond after since".split())
BELOW = frozenset("under below before".split())
TIME = {"month": "strftime({c}, '%Y-%m')", "year": "year({c})", "quarter": "year({c}) || '-Q' || quarter({c})", "day": "{c}"}
ENTITY_WORDS = {"which", "what", "who"}
PLURAL_PLACES = 5  # answers of "which products have the most …"
_PRICE_WORDS = {"cheapest", "priciest", "expensive"}
_DATE_WORDS = {"latest", "newest", "earliest", "oldest", "recent"}

Find = Callable[[TableCard, Sequence[str]], list[tuple[TableColumn, str]]]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as SQL with parameters, and in words."""

    sql: str
    parameters: tuple[Any, ...]
    words: str


@dataclass
class Reading:
    """A question as understood over one table."""

    card: TableCard
    aggregate: str = ""  # count, sum, avg, min, max; "" for a look-up
    column: TableColumn | None = None  # what is counted, summed, compared or looked up
    entity: TableColumn | None = None  # whose extreme is asked for
    group: str = ""  # SQL expression
    group_words: str = ""
    descending: bool = True
    places: int = 0  # of a ranking; 0 when none is asked for
    distinct: bool = False
    conditions: list[Condition] = field(default_factory=list)
    matched: int = 0  # names of table, columns and values found
    by_noun: bool = False  # the question names this table


def read(question: str, card: TableCard, synonyms: Mapping[str, Sequence[str]], find: Find) -> Reading | None:
    """The question as a reading over this table, or None. ``find`` looks values up that the card does not list."""
    return _Walk(question, card, synonyms, find).reading()


class _Walk:
    def __init__(self, question: str, card: TableCard, synonyms: Mapping[str, Sequence[str]], find: Find) -> None:
        self._words = words_of(question)
        self._card, self._vocabulary = card, Vocabulary(card, synonyms)
        self._done = [False] * len(self._words)
        self._columns: list[tuple[int, list[TableColumn]]] = []
        self._find = find
        self._out = Reading(card)
        self._flags: set[str] = set()
        self._measure_hint = ""
        self._per_at: list[int] = []
        self._entity_at = -1
        self._count_at = -1

    def reading(self) -> Reading | None:
        if not self._words or not self._card.rows:
            return None
        self._operators()
        self._values()
        self._comparisons()
        self._dates()
        self._names()
        for i, word in enumerate(self._words):
            self._done[i] = self._done[i] or word.plain in FILLERS or word.stem in FILLER_STEMS or word.plain in ("$", "€", "£")
        if not all(self._done):
            return None
        return self._shape()

    # ------------------------------------------------------------ operators

    def _take(self, *at: int) -> None:
        for i in at:
            self._done[i] = True

    def _operators(self) -> None:
        plain = [w.plain for w in self._words]
        for i, word in enumerate(plain):
            following = plain[i + 1] if i + 1 < len(plain) else ""
            if (word, following) in (("how", "many"), ("number", "of"), ("count", "of")) or (word == "count" and i == 0):
                self._flags.add("count")
                self._count_at = i + 1
                self._take(i, *([i + 1] if following in ("many", "of") else []))
            elif word in ("most", "least") and following in ("expensive", "recent"):
                self._extreme(i, (word == "most") == (following in ("expensive", "recent")), following)
                self._take(i + 1)
            elif word in ("more", "less", "greater", "fewer", "at") and following in ("than", "least", "most"):
                continue  # a comparison
            elif word in MOST or word in LEAST:
                if i and plain[i - 1] == "at":
                    continue
                self._extreme(i, word in MOST, word)
            elif word in SUM:
                self._flags.add("sum")
                self._take(i)
            elif word in AVERAGE:
                self._flags.add("avg")
                self._take(i)
            elif word in DISTINCT:
                self._flags.add("distinct")
                self._take(i)
            elif word in PER or (word == "for" and following == "each"):
                self._per_at.append(i)
                self._take(i)
            elif word in ENTITY_WORDS and self._entity_at < 0:
                self._entity_at = i
                self._take(i)

    def _extreme(self, i: int, most: bool, word: str) -> None:
        self._flags.add("extreme")
        self._out.descending = most
        self._take(i)
        if word in _PRICE_WORDS:
            self._measure_hint = "price"
        elif word in _DATE_WORDS:
            self._measure_hint = "date"
        around = [j for j in (i + 1, i - 1) if 0 <= j < len(self._words)]
        for j in around:
            number = self._words[j].number
            if number is not None and 0 < number <= 100 and number == int(number) and not self._done[j]:
                self._out.places = int(number)
                self._take(j)
                break

    # ------------------------------------------------------------ conditions

    def _values(self) -> None:
        """Values of the table that the question names, longest first; a word that is also a column's name stays a name."""
        i = 0
        while i < len(self._words):
            if self._done[i] or self._words[i].plain in FILLERS:
                i += 1
                continue
            found, length = value_at(self._card, self._words, i)
            name, name_length = self._vocabulary.column_at(self._words, i)
            if found and (length > name_length or not name) and not any(self._done[i : i + length]):
                self._equal(found, i, length)
                i += length
                continue
            i += 1
        self._looked_up()

    def _looked_up(self) -> None:
        """Identifiers and names that the card does not list are looked for in the table itself."""
        free = [i for i in range(len(self._words)) if not self._done[i]]
        for start in free:
            for length in range(5, 0, -1):
                span = self._words[start : start + length]
                if len(span) < length or any(self._done[start : start + length]):
                    continue
                text = " ".join(w.text for w in span)
                telling = any(c.isdigit() or c.isupper() for c in text)
                if not telling or (length == 1 and span[0].number is not None and len(span[0].text) < 5) or span[0].plain in FILLERS:
                    continue
                if found := self._find(self._card, [text]):
                    self._equal(found, start, length)
                    break

    def _equal(self, found: Sequence[tuple[TableColumn, str]], at: int, length: int) -> None:
        columns = {c.name for c, _ in found}
        column, value = found[0]
        if len(columns) > 1:
            near = self._columns_near(at, length)
            chosen = [(c, v) for c, v in found if c.name in near] or [(c, v) for c, v in found if c.is_key]
            if not chosen:
                return  # it could mean several columns
            column, value = chosen[0]
        if column.type == "boolean":
            self._condition(f'"{column.name}" = ?', (value == "True",), f"{column.label} is {value}")
        else:
            values = [v for c, v in found if c.name == column.name]
            marks = ", ".join("?" * len(values))
            self._condition(f'"{column.name}" IN ({marks})', tuple(values), f"{column.label} is {' or '.join(values)}")
        self._take(*range(at, at + length))
        self._out.matched += length
        for j in (at - 1, at + length):  # "status approved", "approved status": the name belongs to the condition
            if 0 <= j < len(self._words) and column in self._vocabulary.column_at(self._words, j)[0]:
                self._take(j)

    def _columns_near(self, at: int, length: int) -> set[str]:
        near: set[str] = set()
        for j in (at - 2, at - 1, at + length, at + length + 1):
            if 0 <= j < len(self._words):
                near |= {c.name for c in self._vocabulary.column_at(self._words, j)[0]}
        return near

    def _condition(self, sql: str, parameters: tuple[Any, ...], words: str) -> None:
        self._out.conditions.append(Condition(sql, parameters, words))

    def _comparisons(self) -> None:
        """"price over 100", "rating below 3", "between 5 and 10 units", "at least 4 stars": a number needs a named column."""
        words = self._words
        i = 0
        while i < len(words):
            sign, used = self._sign(i)
            if sign:
                numbers = [words[j].number for j in range(i + used, min(i + used + (4 if sign == "between" else 2), len(words)))]
                given = [n for n in numbers if n is not None]
                column, name_at = self._number_column(i, i + used)
                if column is not None and given and (sign != "between" or len(given) >= 2) and not self._is_year(given[0], column):
                    last = i + used + max(j for j, n in enumerate(numbers) if n is not None)
                    self._take(*range(i, last + 1), *name_at)
                    q = f'"{column.name}"'
                    if sign == "between":
                        self._condition(f"{q} BETWEEN ? AND ?", (given[0], given[1]), f"{column.label} between {given[0]:g} and {given[1]:g}")
                    else:
                        self._condition(f"{q} {sign} ?", (given[0],), f"{column.label} {sign} {given[0]:g}")
                    self._out.matched += 1
                    i = last
            i += 1

    def _sign(self, i: int) -> tuple[str, int]:
        pair = tuple(w.plain for w in self._words[i : i + 2])
        one = pair[0] if pair else ""
        pairs = {("more", "than"): ">", ("greater", "than"): ">", ("higher", "than"): ">", ("less", "than"): "<", ("fewer", "than"): "<",
                 ("lower", "than"): "<", ("at", "least"): ">=", ("at", "most"): "<="}  # fmt: skip
        if pair in pairs:
            return pairs[pair], 2
        if one in ("over", "above", "exceeding", "beyond"):
            return ">", 1
        if one in ("under", "below"):
            return "<", 1
        if one == "between":
            return "between", 1
        return "", 0

    def _number_column(self, before: int, after: int) -> tuple[TableColumn | None, list[int]]:
        """The numeric column named nearest: up to three words before the sign, or after the number."""
        for j in (before - 1, before - 2, before - 3, after + 1, after + 2, after + 3, after + 4):
            if 0 <= j < len(self._words):
                columns, length = self._vocabulary.column_at(self._words, j)
                numeric = [c for c in columns if c.type in ("integer", "decimal")]
                if len(numeric) == 1:
                    return numeric[0], list(range(j, j + length))
        return None, []

    def _is_year(self, number: float, column: TableColumn) -> bool:
        return 1500 <= number <= 2100 and column in self._vocabulary.years()

    def _dates(self) -> None:
        """Years and months, on the only date column, or on the one that the question names."""
        words = self._words
        for i, word in enumerate(words):
            if self._done[i]:
                continue
            if word.plain in MONTHS and (word.plain != "may" or word.text[0].isupper()):
                column = self._date_column(i)
                if column is not None:
                    self._condition(f'month("{column.name}") = ?', (MONTHS.index(word.plain) + 1,), f"month of {column.label} is {word.text}")
                    self._take(i)
            elif word.number is not None and 1500 <= word.number <= 2100 and len(word.plain) == 4:
                self._year(i, int(word.number))

    def _year(self, i: int, year: int) -> None:
        before = self._words[i - 1].plain if i else ""
        sign = ">" if before == "after" else "<" if before == "before" else ">=" if before == "since" else "="
        named = self._vocabulary.years()
        column = named[0] if len(named) == 1 else self._date_column(i)
        if column is None:
            return
        expression = f'"{column.name}"' if column in named else f'year("{column.name}")'
        if before == "and" and i > 2 and self._words[i - 2].number and self._words[i - 3].plain == "between" and self._out.conditions:
            first = self._out.conditions.pop()
            low = first.parameters[-1]
            self._condition(f"{expression} BETWEEN ? AND ?", (low, year), f"{column.label} between {low} and {year}")
            self._take(i, i - 1, i - 3)
            return
        self._condition(f"{expression} {sign} ?", (year,), f"year of {column.label} {sign} {year}" if sign != "=" else f"year of {column.label} is {year}")
        self._take(i, *([i - 1] if sign != "=" else []))

    def _date_column(self, at: int) -> TableColumn | None:
        dates = self._vocabulary.dates()
        if len(dates) == 1:
            return dates[0]
        named = [c for j in range(len(self._words)) for c in self._vocabulary.column_at(self._words, j)[0] if c in dates]
        distinct = list({c.name: c for c in named}.values())
        return distinct[0] if len(distinct) == 1 else None

    # ------------------------------------------------------------ names

    def _names(self) -> None:
        i = 0
        while i < len(self._words):
            word = self._words[i]
            if self._done[i]:
                i += 1
                continue
            columns, length = self._vocabulary.column_at(self._words, i)
            own = word.stem in self._vocabulary.noun
            if own and length == 1 and not any(stems(c.label) == (word.stem,) and self._count_at != i for c in columns):
                columns = []  # the table's own name, not a column whose name begins with it
            if columns:
                self._columns.append((i, columns))
                self._take(*range(i, i + length))
                self._out.matched += length
                i += length
            elif own:
                self._flags.add("noun")
                self._out.matched += 1
                self._take(i)
                i += 1
            elif word.plain in TIME and any(i - 2 <= p < i for p in self._per_at) and len(self._vocabulary.dates()) == 1:
                self._group_by_time(word.plain)
                self._take(i)
                i += 1
            else:
                i += 1

    def _group_by_time(self, unit: str) -> None:
        column = self._vocabulary.dates()[0]
        self._out.group = TIME[unit].format(c=f'"{column.name}"')
        self._out.group_words = unit

    # ------------------------------------------------------------ the shape of the answer

    def _shape(self) -> Reading | None:
        out, flags = self._out, self._flags
        self._take_group()
        out.by_noun = "noun" in flags
        measures, others = self._split_columns()
        if measures is None:
            return None
        if out.group and not flags & {"count", "sum", "avg", "extreme"}:
            return None
        if "extreme" in flags:
            return self._extreme_shape(measures, others)
        if "sum" in flags or "avg" in flags:
            if len(measures) != 1 or others or "count" in flags:
                return None
            out.aggregate, out.column = ("sum" if "sum" in flags else "avg"), measures[0]
            return out
        if "count" in flags:
            return self._count_shape(measures, others)
        return self._lookup_shape(measures + others)

    def _take_group(self) -> None:
        for per in self._per_at:
            for place, (at, columns) in enumerate(self._columns):
                if per < at <= per + 2 and not self._out.group and len({c.name for c in columns}) == 1:
                    by = self._words[per].plain == "by"
                    if by and "extreme" in self._flags and columns[0].type in ("integer", "decimal"):
                        continue  # "top five products by price": the measure
                    self._out.group, self._out.group_words = f'"{columns[0].name}"', columns[0].label
                    del self._columns[place]
                    break

    def _split_columns(self) -> tuple[list[TableColumn] | None, list[TableColumn]]:
        """(numeric columns, others) that the question names; (None, …) when a name could mean several columns."""
        measures: list[TableColumn] = []
        others: list[TableColumn] = []
        wants_number = bool(self._flags & {"sum", "avg"})
        for _, columns in self._columns:
            numeric = [c for c in columns if c.type in ("integer", "decimal") and not _identifies(c)]
            chosen = numeric if wants_number and numeric else columns
            if len(chosen) > 1:
                chosen = [c for c in chosen if c.label.casefold().endswith("name")] or [c for c in chosen if c.type == "text" and not wants_number]
            if len({c.name for c in chosen}) != 1:
                return None, []
            column = chosen[0]
            target = measures if column in numeric else others
            if column not in target:
                target.append(column)
        return measures, others

    def _count_shape(self, measures: list[TableColumn], others: list[TableColumn]) -> Reading | None:
        out = self._out
        named = measures + others
        if "distinct" in self._flags:
            if len(named) != 1:
                return None
            out.aggregate, out.column, out.distinct = "count", named[0], True
            return out
        if named:
            column = named[0]
            if len(named) > 1 or column.type in ("integer", "decimal") or not (column.is_key or column.label.casefold() in self._card.name):
                return None  # "how many products" over a table where a product has many rows: rows or products?
        elif "noun" not in self._flags and not out.conditions:
            return None
        out.aggregate = "count"
        return out

    def _extreme_shape(self, measures: list[TableColumn], others: list[TableColumn]) -> Reading | None:
        out, flags = self._out, self._flags
        if not measures and self._measure_hint:
            hinted = [c for c in self._card.columns if c.type in ("integer", "decimal") and "price" in c.label.casefold()]
            dates = self._vocabulary.dates()
            pool = hinted if self._measure_hint == "price" else dates
            measures = pool if len(pool) == 1 else []
            if not measures:
                return None
        if len(measures) > 1 or len(others) > 1 or (measures and "count" in flags):
            return None  # "the most number of points": the highest value, or the most frequent one?
        entity = others[0] if others else None
        if entity is None and measures and "noun" in flags:
            entity = self._naming_column()
        if out.group:
            entity = None
            expression = out.group
        else:
            expression = f'"{entity.name}"' if entity else ""
        plural = bool(entity) and self._plural_entity()
        asked = self._words[self._entity_at].plain if self._entity_at >= 0 else ""
        if not expression and (asked in ("who", "which") or asked == "what" and "noun" in flags):
            return None  # somebody or something is asked for, and no column says whom
        out.entity = entity
        out.places = out.places or (PLURAL_PLACES if plural else 1)
        summed = bool(entity) and not entity.is_key and self._measure_by()
        if measures and not summed and not flags & {"sum", "avg", "count"}:
            out.aggregate, out.column = ("max" if out.descending else "min"), measures[0]
            return out
        if not expression or (not measures and not (flags & {"count", "noun"})):
            return None
        out.aggregate = "avg" if "avg" in flags else "sum" if measures else "count"
        out.column = measures[0] if measures else None
        out.group, out.group_words = expression, out.group_words or (entity.label if entity else "")
        return out

    def _naming_column(self) -> TableColumn | None:
        """What a record of this table is called by: its name column, else its key."""
        columns = self._card.columns
        named = [c for c in columns if c.type == "text" and stems(c.label)[-1:] in (("name",), ("titl",))]
        return next(iter(named or [c for c in columns if c.is_key]), None)

    def _measure_by(self) -> bool:
        """"top three cities by order value": what is ranked stands before "by", and is added up."""
        return any(self._words[i].plain == "by" for i in self._per_at)

    def _plural_entity(self) -> bool:
        after = self._words[self._entity_at + 1 : self._entity_at + 3] if self._entity_at >= 0 else []
        return any(re.search(r"[^s]s$", w.plain) and w.plain not in ("is", "was", "has", "does") for w in after[:1]) or any(re.search(r"(?:^|\W)(?:are|have)(?:\W|$)", w.plain) for w in after)

    def _lookup_shape(self, named: list[TableColumn]) -> Reading | None:
        """One named column of the one record that an identifier picks out."""
        keys = {c.name for c in self._card.columns if c.is_key}
        by_key = [c for c in self._out.conditions if any(f'"{name}" IN (?)' == c.sql for name in keys)]
        if not by_key or len(self._out.conditions) != 1 or len(named) != 1 or self._flags - {"noun"}:
            return None
        if f'"{named[0].name}" IN' in by_key[0].sql:
            return None
        self._out.column = named[0]
        return self._out


def _identifies(column: TableColumn) -> bool:
    """A column of numbers that are names: unique, and called id, number or the like."""
    return column.is_key and stems(column.label)[-1:] in (("id",), ("no",), ("number",), ("code",), ("rank",))
