"""From a reduced row of items to readings: the shapes of questions, as patterns over the items' kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from hybrid_rag.question_conditions import same
from hybrid_rag.question_extremes import TIME_SQL, Extremes
from hybrid_rag.question_frame import identifies
from hybrid_rag.question_items import Item, plural
from hybrid_rag.question_pairs import Pairs
from hybrid_rag.question_reading import Condition, Field, Reading
from hybrid_rag.question_words import stem, stems

_PLACES = frozenset(stem(w) for w in "city location venue place country town circuit site".split())


class Shapes(Extremes, Pairs):
    """All readings of one reduced row of items over one table."""

    def readings(self) -> Iterator[Reading]:
        if not all(self._is_noun(i) for i, item in enumerate(self._items) if item.kind == "u"):
            return
        for reading in self._all():
            if not _contradictory(reading.conditions) and not any(self._fields.is_repeated(f) for f in reading.fields):
                yield reading

    def _all(self) -> Iterator[Reading]:
        for shape in (
            self._counts,
            self._totals,
            self._groups,
            self._extremes,
            self._places,
            self._neighbours,
            self._comparisons,
            self._differences,
            self._lookups,
        ):
            yield from shape()

    # ------------------------------------------------------------ counts

    def _counts(self) -> Iterator[Reading]:
        if self._match("[wm]?[nN]u?T?") and (self._by_noun or self._conditions) and not (self._has("u") and not self._wide):
            if self._get("n" if self._has("n") else "N").value == "times" and (not self._conditions or self._has("u")):
                return
            if not (self._wide and any(c.loose or (c.level and self._has("u")) for c in self._conditions)):
                yield self._reading("count", guessed=self._has("u") or self._guessed)
        elif self._match("w?[nN]qc"):
            if field := self._field(self._get("c")):
                yield self._reading("count", target=field, distinct=True)
        elif self._match("w?[nN]cu?"):
            yield from self._count_of(self._field(self._get("c")))

    def _count_of(self, field: Field | None) -> Iterator[Reading]:
        if field is None or (self._has("u") and not self._wide) or (self._wide and any(c.loose for c in self._conditions)):
            return
        card = self._fields.card
        if field.is_number and not identifies(field) and field not in self._fields.years():
            if self._has("u"):
                return
            if self._conditions and self._wide:
                yield self._reading("total", measure=field, one=not self._has("N"))
            return
        distinct = self._reading("count", target=field, distinct=True, guessed=self._wide)
        if field.join is not None:
            return
        if (
            field.is_key
            or field.column.distinct == card.rows - len(card.total_rows)
            or (stems(field.label)[-1:] and field.label.casefold() in card.name)
        ):
            yield self._reading("count", guessed=self._wide and not self._names_records(field))
        elif self._wide:
            yield self._reading("count", guessed=True)
            yield distinct

    # ------------------------------------------------------------ totals and groups

    def _totals(self) -> Iterator[Reading]:
        if self._match("[wmn]?T[nN]?c|[wm]?[nN]cT|w?Nc"):
            if self._match("w?Nc") and not self._conditions and not self._wide:
                return
            field = self._field(self._get("c"), number=True)
            if field is not None and field.is_number and not (self._match("w?Nc") and identifies(field)):
                yield self._reading("total", measure=field)
        elif self._match("[wmn]?A[nN]?c|w?cA"):
            field = self._field(self._get("c"), number=True)
            if field is not None and field.is_number:
                yield self._reading("average", measure=field)

    def _groups(self) -> Iterator[Reading]:
        if not re.search("[gG]", self._bare):
            return
        values: dict[str, Any]
        if self._match("[wm]?[nNTA]?c?(?:gc|G)") or self._match("[wm]?[TA][nN]?c(?:gc|G)"):
            values = self._group_of(self._rest[-1])
            if not values:
                return
            before = [i for i in self._rest[:-1] if i.kind == "c"]
            measure = self._field(before[0], number=True) if before else None
            if before and (measure is None or not measure.is_number):
                return
            if self._has("T") or self._has("A"):
                if measure is not None:
                    yield self._reading("groups", measure=measure, aggregate="sum" if self._has("T") else "avg", **values)
            elif measure is None and (self._has("n") or self._has("N")) and (self._by_noun or self._conditions):
                yield self._reading("groups", **values)

    def _group_of(self, item: Item) -> dict[str, Any]:
        if item.kind == "G":
            field, unit = item.value
            return {"group": TIME_SQL[unit].format(c=field.sql), "group_words": unit, "target": field}
        field = self._field(item)
        return {"group": field.sql, "group_words": field.label, "target": field} if field else {}

    # ------------------------------------------------------------ look-ups

    def _lookups(self) -> Iterator[Reading]:
        if not self._conditions or not self._match("[wm]e?(?:c|u)?e?|[wm]?(?:e?c)|cw|[wm]ce?u"):
            return
        columns = [i for i in self._rest if i.kind == "c"]
        asked = self._get("w").value if self._has("w") else ""
        target = self._field(columns[0]) if columns else None
        if columns and target is None:
            return
        if not self._wide:
            yield from self._by_key(target)
            return
        if target is None and self._has("w"):
            if asked == "when":
                times = self._times()
                target = times[0] if len(times) == 1 else None
            elif asked == "where":
                some = [f for f in self._fields.own if stems(f.label)[-1:] and stems(f.label)[-1] in _PLACES]
                target = some[0] if len(some) == 1 else None
            elif asked == "who":
                target = self._fields.person() or self._fields.naming()
            elif self._has("u") or asked in ("which", "list", "any"):
                target = self._fields.naming()
        if target is None or any(same(target, f) for c in self._conditions for f in c.fields):
            return
        head = next((i for i in self._rest if i.kind in "cu"), None)
        many = asked in ("list", "any") or (head is not None and plural(head.words[-1]))
        yield self._reading("lookup", target=target, one=not many or self._has("e"), rank=1 if self._has("u") else 0)

    def _by_key(self, target: Field | None) -> Iterator[Reading]:
        """Over all tables: one named column of the one record that an identifier picks out, or several whole cells together."""
        if target is None:
            return
        if len(self._conditions) > 1:
            fields = [c.fields[0] for c in self._conditions]
            whole = all(c.picks and not c.level and not c.loose for c in self._conditions)
            if whole and all(f.join is None for f in (target, *fields)) and not any(same(target, f) for f in fields):
                yield self._reading("lookup", target=target, one=True)
            return
        condition = self._conditions[0]
        if (
            condition.picks
            and condition.fields[0].column.is_key
            and condition.fields[0].join is None
            and not same(target, condition.fields[0])
        ):
            yield self._reading("lookup", target=target)


def _contradictory(conditions: Sequence[Condition]) -> bool:
    """Two conditions that pick different values of one column: no record can meet both, so something was misread."""
    for i, one in enumerate(conditions):
        for two in conditions[i + 1 :]:
            if one.picks and two.picks and same(one.fields[0], two.fields[0]) and not set(one.picks) & set(two.picks):
                return True
    return False
