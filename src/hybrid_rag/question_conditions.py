"""From items to conditions: comparisons, dates, values. What is understood is taken out of the row of items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from hybrid_rag.analysis import normalise
from hybrid_rag.question_dates import moment, span
from hybrid_rag.question_fields import Fields, Match
from hybrid_rag.question_items import Item, When, plural
from hybrid_rag.question_reading import Condition, Field
from hybrid_rag.question_words import stem, stems

COMMON_STEM = 5  # letters that a verb and the one who does it share: "directed", "director"
MOST_DATED = 3  # columns that a date may mean
FINISHING = frozenset(stem(w) for w in ("finish", "place", "rank", "end"))  # "who finished in first place"
RANK_NAMES = frozenset((stem(w),) for w in ("position", "place", "rank"))


@dataclass
class Reduced:
    """A row of items without its conditions. A value or date that is left in place has its condition beside it."""

    items: list[Item]
    conditions: list[Condition] = field(default_factory=list)
    matched: int = 0
    rank: int = 0  # raised by each step that was not certain
    guessed: bool = False  # a noun behind a value was taken for "records"


def same(some: Field, other: Field) -> bool:
    return some.column.name == other.column.name


def reduce(items: Sequence[Item], fields: Fields) -> Iterator[Reduced]:
    """Readings of the conditions in a row of items, the likelier first."""
    for choice in _choices(items, fields):
        pick, picks = 0, 1
        while pick < picks:  # dates that several columns can mean: each in turn
            reducer = _Reducer(choice, fields, pick)
            yield reducer.run()
            pick, picks = pick + 1, max(picks, min(reducer.dated, MOST_DATED))


def _choices(items: Sequence[Item], fields: Fields) -> Iterator[list[Item]]:
    """Values that several columns hold: the column named beside it; else each of the best ones in turn."""
    rows: list[list[Item]] = [[]]
    for i, item in enumerate(items):
        options = [item]
        if item.kind == "v" and len(item.matches) > 1:
            near = {f.column.name for j in (i - 2, i - 1, i + 1) if 0 <= j < len(items) and items[j].kind == "c" for f in items[j].fields}
            chosen = [m for m in item.matches if m.field.column.name in near]
            best = [m for m in item.matches if m.level == item.matches[0].level]
            best = [m for m in best if _as_written(item, m)] or best  # "phones" is the category "Phones", not the channel "phone"
            own = [m for m in best if m.field.join is None] or best
            keys = [m for m in own if m.field.is_key]
            options = [replace(item, matches=(m,)) for m in (chosen or (keys if len(keys) == 1 else own))[:3]]
        rows = [[*row, option] for row in rows for option in options][:6]
    yield from rows


def _as_written(item: Item, match: Match) -> bool:
    return any(normalise(cell).strip() == " ".join(w.plain for w in item.words) for cell in match.cells)


class _Reducer:
    def __init__(self, items: Sequence[Item], fields: Fields, pick: int) -> None:
        self._items, self._fields, self._pick = list(items), fields, pick
        self.dated = 1  # columns that a date can mean
        self._out = Reduced([])

    def run(self) -> Reduced:
        self._nouns()
        self._numbers()
        self._dates()
        self._values()
        self._out.items = self._items
        return self._out

    # ------------------------------------------------------------ helpers

    def _kind(self, i: int) -> str:
        return self._items[i].kind if 0 <= i < len(self._items) else ""

    def _head(self, i: int) -> bool:
        """Is the column at ``i`` what the question asks for: the first one behind its question word?"""
        before = i - 1
        while self._kind(before) in ("e", "q", "f"):
            before -= 1
        asked = self._kind(before)
        return self._kind(i) == "c" and (
            asked in ("n", "N", "m") or (asked == "w" and self._items[before].value not in ("when", "where", "who"))
        )

    def _is_of(self, i: int, value: Item) -> bool:
        """Does the column item at ``i`` name the column of the value?"""
        return any(same(f, value.matches[0].field) for f in self._items[i].fields)

    def _one(self, i: int, *, number: bool = False) -> Field | None:
        """The only field that the column item at ``i`` can mean."""
        if self._kind(i) != "c":
            return None
        some = [f for f in self._items[i].fields if not number or f.is_number]
        return some[0] if len({f.column.name for f in some}) == 1 else None

    def _put(self, first: int, last: int, condition: Condition, *, keep: Item | None = None) -> None:
        """Take items ``first`` to ``last`` out; a "not" before them turns the condition round."""
        while self._kind(first - 1) in ("!", "o"):
            first -= 1
            condition = condition.negated()
            keep = None
        self._out.conditions.append(condition)
        self._out.matched += sum(len(i.words) for i in self._items[first : last + 1] if i.kind in "cv#d")
        self._items[first : last + 1] = [Item("k", (), condition)] if keep is None else [replace(keep, value=condition)]

    def _nouns(self) -> None:
        """ "the nkf trains": the noun behind a value, and the column's own name beside it, say nothing more."""
        self._items = [
            item for i, item in enumerate(self._items) if not (item.kind == "g" and item.value == "by" and self._kind(i + 1) == "v")
        ]
        if not self._fields.wide:
            return
        for i in range(len(self._items) - 1, 0, -1):
            if self._kind(i - 1) == "v" and self._kind(i) == "u" and plural(self._items[i].words[-1]):
                del self._items[i]
                self._out.guessed = True
            elif (self._kind(i) == "u" and self._kind(i + 1) == "v" and self._does(i)) or (
                self._kind(i - 1) == "v" and self._kind(i) == "c" and self._kind(i + 1) in ("&", "|") and self._is_of(i, self._items[i - 1])
            ):
                del self._items[i]

    def _does(self, i: int) -> bool:
        """Is the word at ``i`` what those in the column of the following value do: "directed by X", in the column "director"?"""
        word = self._items[i].words[-1].stem
        names = stems(self._items[i + 1].matches[0].field.label)
        return len(names) == 1 and len(word) >= COMMON_STEM and word[:COMMON_STEM] == names[0][:COMMON_STEM]

    # ------------------------------------------------------------ numbers

    def _numbers(self) -> None:
        i = 0
        while i < len(self._items):
            kind = self._kind(i)
            if kind in (">", "p") or (kind == "B" and self._kind(i + 2) == "&"):
                self._comparison(i)
            elif kind in "#f" and self._rank_equal(i):
                pass
            elif kind in "#d" and self._kind(i - 1) != ">" and self._kind(i + 1) != "p":
                self._number_equal(i)
            i += 1

    def _value_of(self, i: int) -> float | None:
        item = self._items[i] if 0 <= i < len(self._items) else None
        if item is None:
            return None
        if item.kind == "#":
            return float(item.value)
        if item.kind == "d" and item.value == When(item.value.year) and item.value.year is not None:
            return float(item.value.year)
        return None

    def _comparison(self, i: int) -> None:
        item = self._items[i]
        if item.kind == "p":  # "7 or more games"
            low, sign, first, last = self._value_of(i - 1), item.value, i - 1, i
            high = None
        elif item.kind == "B":
            low, high, sign, first, last = self._value_of(i + 1), self._value_of(i + 3), "between", i, i + 3
        else:
            low, sign, first, last = self._value_of(i + 1), item.value, i, i + 1
            high = None
        if low is None or (item.kind == "B" and high is None):
            return
        found = self._number_field(first, last)
        if found is None:
            return
        column, first, last = found
        if column in self._fields.years() and item.kind != "p" and self._items[i + 1].kind == "d":
            return  # a date
        if sign == "between":
            condition = Condition(f"{column.sql} BETWEEN ? AND ?", (low, high), f"{column.label} between {low:g} and {high:g}", (column,))
        else:
            condition = Condition(f"{column.sql} {sign} ?", (low,), f"{column.label} {sign} {low:,.10g}", (column,))
        self._put(first, last, condition)

    def _number_field(self, first: int, last: int) -> tuple[Field, int, int] | None:
        """(column of a comparison, first and last item that it takes): by its unit, or named before or behind the number."""
        after = self._items[last + 1] if last + 1 < len(self._items) else None
        if after is not None and after.kind in ("u", "c"):
            unit = [f for f in self._fields.own if f.is_number and f.column.unit and stem(f.column.unit) == after.words[0].stem]
            if len(unit) == 1 and len(after.words) == 1:
                before = first - 1 if self._one(first - 1) == unit[0] and not self._head(first - 1) else first
                return unit[0], before, last + 1
        before_field = self._one(first - 1, number=True)
        while before_field is not None and self._kind(last + 1) == "c" and any(same(f, before_field) for f in self._items[last + 1].fields):
            last += 1  # "a profit over 2,000 thou. PLN"
        after_field = self._one(last + 1, number=True)
        if before_field is not None and not (self._head(first - 1) and after_field is not None):
            if self._head(first - 1) and self._kind(first - 2) in ("n", "N"):
                return None
            extra = 1 if self._kind(last + 1) == "u" and self._fields.wide and self._kind(last + 2) in ("", "k") else 0
            return before_field, first - 1, last + extra
        if after_field is not None:
            return after_field, first, last + 1
        far = self._one(first - 2, number=True)
        if far is not None and not self._head(first - 2) and self._kind(first - 1) in ("U", "!"):
            return far, first - 1, last
        return None

    def _number_equal(self, i: int) -> None:
        """ "position 1", "a record low of -7", "in first place", "3 goals"."""
        number = self._value_of(i)
        if number is None:
            return
        dated = self._items[i].kind == "d"
        column = self._one(i - 1, number=True)
        if column is not None and not self._head(i - 1) and (not dated or column in self._fields.years() or column.column.maximum >= 1000):
            values, last = [number], i
            while self._kind(last + 1) in ("|", "&") and (more := self._value_of(last + 2)) is not None:
                values.append(more)
                last += 2
            self._equal_number(column, values, i - 1, last)
            return
        after = self._one(i + 1, number=True)
        if after is not None and not dated and self._kind(i - 1) not in ("s", "B", "&", "|"):
            self._equal_number(after, [number], i, i + 1)

    def _rank_equal(self, i: int) -> bool:
        """ "in first place", "2nd position": a column of ranks, of numbers or of text like "1st"."""
        column = self._one(i + 1)
        value = self._items[i].value
        if column is None or value < 1 or stems(column.label)[-1:] not in RANK_NAMES or column.is_time:
            return False
        first = i - 1 if self._kind(i - 1) == "u" and self._items[i - 1].words[-1].stem in FINISHING else i
        if column.is_number:
            self._equal_number(column, [float(value)], first, i + 1)
            return True
        number = int(value)
        cells = (str(number), f"{number}.", f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }")
        self._put(first, i + 1, Condition(f"lower(trim({column.sql})) IN (?, ?, ?)", cells, f"{column.label} is {number}", (column,)))
        return True

    def _equal_number(self, column: Field, values: list[float], first: int, last: int) -> None:
        shown = " or ".join(f"{v:,.10g}" if column not in self._fields.years() else f"{v:g}" for v in values)
        parameters = tuple(int(v) if v == int(v) and column.column.type == "integer" else v for v in values)
        marks = ", ".join("?" * len(values))
        sql = f"{column.sql} = ?" if len(values) == 1 else f"{column.sql} IN ({marks})"
        self._put(first, last, Condition(sql, parameters, f"{column.label} is {shown}", (column,)))

    # ------------------------------------------------------------ dates

    def _dates(self) -> None:
        i = 0
        while i < len(self._items):
            if self._kind(i) == "d":
                self._date(i)
            i += 1

    def _date(self, i: int) -> None:
        when: When = self._items[i].value
        found = self._date_field(i)
        if found is None:
            return
        column, named_at = found
        before = self._kind(i - 1)
        between = (before == "B" or self._written(i - 1, "from")) and self._kind(i + 1) in ("&", "") and self._kind(i + 2) == "d"
        if before == "B" and between:
            condition = span(column, when, self._items[i + 2].value)
            first, last = i - 1, i + 2
        else:
            sign = self._items[i - 1].value if before == "b" else "="
            condition = moment(column, sign, when)
            first, last = (i - 1 if before == "b" else i), i
        if condition is None:
            return
        if named_at == first - 1 and not self._head(named_at):
            first = named_at
        elif named_at == last + 1 and not self._head(named_at):
            last = named_at
        self._put(first, last, condition)

    def _written(self, i: int, word: str) -> bool:
        return 0 <= i < len(self._items) and any(w.plain == word for w in self._items[i].words)

    def _date_field(self, i: int) -> tuple[Field, int] | None:
        pool = [*self._fields.times(), *self._fields.years()]
        year_only = self._items[i].value.month is None and self._items[i].value.quarter is None
        if not year_only:
            pool = self._fields.times()
        if not pool and self._fields.wide:
            pool = [f for f in self._fields.own if f.column.type == "text" and stems(f.label)[:1] == (stem("date"),)]
        for j in (i - 1, i - 2, i + 1):
            if self._kind(j) == "c":
                named = [f for f in self._items[j].fields if f in pool]
                if len(named) == 1:
                    return named[0], j
                spans = [
                    f for f in self._items[j].fields if f.column.type == "integer" and 1000 <= f.column.minimum <= f.column.maximum <= 2200
                ]
                if year_only and len(spans) == 1:
                    return spans[0], j
        if not pool or (len(pool) > 1 and not self._fields.wide):
            return None
        self.dated = max(self.dated, len(pool))
        return pool[min(self._pick, len(pool) - 1)], -9

    # ------------------------------------------------------------ values

    def _values(self) -> None:
        i = 0
        while i < len(self._items):
            if self._kind(i) == "v":
                self._equal(i)
            i += 1

    def _list_end(self, i: int) -> int:
        """The last item of "A, B and C" or "A or B", values of one column; ``i`` itself when there is no such list."""
        field, j, bound = self._items[i].matches[0].field, i, False
        bindings = ("&",) if any(item.kind in "MsfxyDt" for item in self._items) else ("&", "|")  # "which is larger, A or B" is no list
        while True:
            k = j + 2 if self._kind(j + 1) in bindings else j + 1
            if self._kind(k) != "v" or not same(self._items[k].matches[0].field, field):
                return j if bound else i
            bound = bound or k == j + 2
            j = k

    def _equal(self, i: int) -> None:
        item = self._items[i]
        match = item.matches[0]
        self._out.rank += match.level
        condition = condition_of(match, item)
        if self._than(i, condition):
            return
        first = last = i
        values = [match]
        listed = self._list_end(i)
        values += [self._items[j].matches[0] for j in range(i + 1, listed + 1) if self._kind(j) == "v"]
        last = listed
        named = [j for j in (i - 1, last + 1) if self._kind(j) == "c" and any(same(f, match.field) for f in self._items[j].fields)]
        keep = item
        if len(values) > 1:
            cells = tuple(dict.fromkeys(c for m in values for c in m.cells))
            condition = condition_of(Match(match.field, cells, max(m.level for m in values), any(m.loose for m in values)), item)
            keep = Item("V", item.words, [condition_of(m, item) for m in values], matches=tuple(values))
            self._items[i : last + 1] = [keep]
            last = i
            named = [j for j in (i - 1, i + 1) if self._kind(j) == "c" and any(same(f, match.field) for f in self._items[j].fields)]
            for j in sorted(named, reverse=True):
                if not self._head(j):
                    del self._items[j]
            self._out.conditions.append(condition)
            self._out.matched += len(item.words)
            return
        for j in named:
            if not self._head(j):
                first, last = min(first, j), max(last, j)
        self._put(first, last, condition, keep=keep)

    def _than(self, i: int, condition: Condition) -> bool:
        """ "a population greater than X's", "a higher density than X": the number of another record, whose own is left out."""
        field = condition.fields[0]
        if self._kind(i - 1) == ">" and self._kind(i - 2) == "c" and not self._head(i - 2):
            first, at, sign = i - 2, i - 2, self._items[i - 1].value
        elif (
            self._kind(i - 1) == "t"
            and self._kind(i - 2) == "c"
            and self._kind(i - 3) == "M"
            and isinstance(self._items[i - 3].value, bool)
        ):
            if self._kind(i - 4) in ("n", "m"):
                return False  # "how many more points than X": a difference
            first, at, sign = i - 3, i - 2, ">" if self._items[i - 3].value else "<"
        else:
            return False
        column = self._one(at, number=True)
        if column is None or not column.is_number or field.join is not None or column.join is not None:
            return False
        table = '"' + self._fields.card.name.replace('"', '""') + '"'
        sql = f"{column.sql} {sign} (SELECT {column.sql} FROM {table} WHERE {condition.sql})"
        words = f"{column.label} {sign} that of the record where {condition.words}"
        self._put(first, i, Condition(sql, condition.parameters, words, (column,), one_of=condition))
        return True


def condition_of(match: Match, item: Item) -> Condition:
    field = match.field
    if field.column.type == "boolean":
        value = match.cells[0].casefold() in ("true", "yes")
        return Condition(f"{field.sql} = ?", (value,), f"{field.label} is {'yes' if value else 'no'}", (field,))
    marks = ", ".join("?" * len(match.cells))
    some = " or ".join(match.cells[:4]) + (" …" if len(match.cells) > 4 else "")
    shown = some if match.level < 2 or len(match.cells) == 1 else f"one with “{' '.join(w.text for w in item.words)}”"
    return Condition(f"{field.sql} IN ({marks})", match.cells, f"{field.label} is {shown}", (field,), match.cells, match.level, match.loose)
