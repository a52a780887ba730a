"""From the words found in a question to its reading: a count, a total, an extreme, a ranking, groups, or a look-up."""

from __future__ import annotations

import re

from hybrid_rag.question_reading import PLURAL_PLACES, Reading
from hybrid_rag.question_words import Vocabulary, Word, stems
from hybrid_rag.records import TableCard, TableColumn


class Shapes:
    """The second half of the walk over a question; the first half fills these fields."""

    _words: list[Word]
    _card: TableCard
    _vocabulary: Vocabulary
    _columns: list[tuple[int, list[TableColumn]]]  # (place, columns that the name there can mean)
    _out: Reading
    _flags: set[str]
    _measure_hint: str
    _per_at: list[int]
    _entity_at: int

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
                chosen = [c for c in chosen if c.label.casefold().endswith("name")] or [
                    c for c in chosen if c.type == "text" and not wants_number
                ]
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
        if not expression and (asked in ("who", "which") or (asked == "what" and "noun" in flags)):
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
        """ "top three cities by order value": what is ranked stands before "by", and is added up."""
        return any(self._words[i].plain == "by" for i in self._per_at)

    def _plural_entity(self) -> bool:
        after = self._words[self._entity_at + 1 : self._entity_at + 3] if self._entity_at >= 0 else []
        return any(re.search(r"[^s]s$", w.plain) and w.plain not in ("is", "was", "has", "does") for w in after[:1]) or any(
            re.search(r"(?:^|\W)(?:are|have)(?:\W|$)", w.plain) for w in after
        )

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
