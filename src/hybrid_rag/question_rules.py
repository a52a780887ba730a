"""Plain table questions to SQL by rules. A rule answers only when every content word of the question is accounted for.

The question is walked once against one table; each word must be an operator, a filler, a column, a value, a number, a
date or the table's own name. What is left unexplained makes the rules decline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hybrid_rag.question_reading import (
    AVERAGE,
    DATE_WORDS,
    DISTINCT,
    ENTITY_WORDS,
    LEAST,
    MOST,
    PER,
    PRICE_WORDS,
    SUM,
    TIME,
    Condition,
    Reading,
)
from hybrid_rag.question_shapes import Shapes
from hybrid_rag.question_words import FILLER_STEMS, FILLERS, MONTHS, Vocabulary, stems, value_at, words_of
from hybrid_rag.records import TableCard, TableColumn

Find = Callable[[TableCard, Sequence[str]], list[tuple[TableColumn, str]]]


def read(question: str, card: TableCard, synonyms: Mapping[str, Sequence[str]], find: Find) -> Reading | None:
    """The question as a reading over this table, or None. ``find`` looks values up that the card does not list."""
    return _Walk(question, card, synonyms, find).reading()


class _Walk(Shapes):
    """One pass over the question's words; :class:`Shapes` then makes the reading of what was found."""

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
        if word in PRICE_WORDS:
            self._measure_hint = "price"
        elif word in DATE_WORDS:
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
        """ "price over 100", "rating below 3", "between 5 and 10 units", "at least 4 stars": a number needs a named column."""
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
                        self._condition(
                            f"{q} BETWEEN ? AND ?", (given[0], given[1]), f"{column.label} between {given[0]:g} and {given[1]:g}"
                        )
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
                    self._condition(
                        f'month("{column.name}") = ?', (MONTHS.index(word.plain) + 1,), f"month of {column.label} is {word.text}"
                    )
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
        self._condition(
            f"{expression} {sign} ?",
            (year,),
            f"year of {column.label} {sign} {year}" if sign != "=" else f"year of {column.label} is {year}",
        )
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
