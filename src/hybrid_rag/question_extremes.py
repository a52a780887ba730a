"""Superlatives, first and last: the shapes whose answer is at an end of an order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hybrid_rag.question_conditions import same
from hybrid_rag.question_frame import PLURAL_PLACES, RANKS, Frame, identifies
from hybrid_rag.question_items import Item, plural
from hybrid_rag.question_reading import Field, Reading
from hybrid_rag.question_words import stems

TIME_SQL = {"month": "strftime({c}, '%Y-%m')", "year": "year({c})", "quarter": "year({c}) || '-Q' || quarter({c})", "day": "{c}"}
MOST_SHARED = 0.6  # different values a record, up to which a column groups the records


class Extremes(Frame):
    """ "which team has the most points", "the three cheapest products", "who was listed first"."""

    # ------------------------------------------------------------ extremes

    def _extremes(self) -> Iterator[Reading]:
        if self._bare.count("s") != 1:
            return
        descending, hint, places = self._get("s").value
        bare = self._bare
        if re.match("w?#(?:s|cs)", bare):  # the three cheapest, which ten cities have the most
            number = self._get("#").value
            if number != int(number) or not 1 <= number <= 100:
                return
            places, bare = int(number), bare.replace("#", "", 1)
        if "#" in bare:
            return
        columns = [i for i in self._rest if i.kind == "c"]
        values: dict[str, Any] = {"descending": descending}
        if re.fullmatch("w?cs[TA][nN]?c", bare):  # which brand has the highest total order value
            target, measure = self._field(columns[0]), self._field(columns[1], number=True)
            if target is not None and measure is not None and measure.is_number and not target.is_key and hint in ("", "top"):
                many = PLURAL_PLACES if plural(columns[0].words[-1]) and not self._wide else 1
                kind = "sum" if self._has("T") else "avg"
                yield self._by_value(target, measure=measure, aggregate=kind, places=places or many, **values)
        elif re.fullmatch("w?cu?s[nN]?c|w?us[nN]?c", bare):  # which team has the highest points
            target = self._field(columns[0]) if len(columns) == 2 else self._fields.naming()
            if len(columns) < 2 and not self._wide:
                return
            yield from self._ranked(target, columns[-1], values, places, hint, plural(columns[0].words[-1]) if len(columns) == 2 else False)
        elif re.fullmatch("ws[nN]?c[uc]", bare):  # the highest points of any team
            if (
                self._get("w").value == "what"
                and not hint
                and (len(columns) == 1 or not any(f.is_number or f.is_time for f in columns[1].fields))
            ):
                yield from self._extreme_of(columns[0], values, places, hint)
        elif re.fullmatch("w?[nm]?s[nN]?c", bare):
            yield from self._extreme_of(columns[0], values, places, hint)
        elif re.fullmatch("w?scg[nN]", bare):  # top five products by number of claims
            target = self._field(columns[0])
            if target is not None and self._by_noun and not target.is_key:
                yield self._by_value(target, places=places or PLURAL_PLACES, **values)
        elif re.fullmatch("w?Gs(?:T[nN]?c)?", bare):  # which month had the most orders, the highest total amount
            yield from self._best_time(values, places, hint)
        elif re.fullmatch("w?csu", bare) and self._wide:  # which director has the most cartoons
            yield from self._most_named(columns[0], values, places, hint)
        elif re.fullmatch("w?cs", bare):
            yield from self._most_records(columns[0], values, places, hint)
        elif re.fullmatch("w?su?", bare) and hint and hint != "top":
            measure, target = self._hinted(hint), self._fields.naming()
            if measure is None or target is None or not (self._by_noun or (self._wide and "u" in bare)):
                return
            if hint == "old" and measure.is_time:
                values["descending"] = not descending
            yield self._reading(
                "ranked", target=target, measure=measure, places=places or (PLURAL_PLACES if self._plural_noun() else 1), **values
            )
        elif re.fullmatch("w?s(?:c|u)?g[TA]?c", bare):  # top five products by price, top three cities by total order value
            measure = self._field(columns[-1], number=True)
            target = self._field(columns[0]) if len(columns) == 2 else self._fields.naming()
            if measure is None or target is None or not measure.is_number or not (len(columns) == 2 or self._noun_is_given()):
                return
            places = places or PLURAL_PLACES
            if target.is_key or (target.join is None and target.column.distinct == self._fields.card.rows):
                if "T" not in bare and "A" not in bare:
                    yield self._reading("ranked", target=target, measure=measure, places=places, **values)
            else:
                kind = "avg" if "A" in bare else "sum"
                yield self._by_value(target, measure=measure, aggregate=kind, places=places, **values)

    def _ranked(self, target: Field | None, item: Item, values: dict[str, Any], places: int, hint: str, many: bool) -> Iterator[Reading]:
        measure = self._field(item, number=True, wanted=lambda f: f.is_number or f.is_time)
        if target is None or measure is None or same(target, measure):
            return
        if not (measure.is_number or measure.is_time):
            yield from self._most_different(target, measure, values, places, hint, many)
            return
        if set(stems(measure.label)) & RANKS:
            if hint != "top":
                return
            values = {**values, "descending": not values["descending"]}
        elif hint and hint != "top" and not (measure.is_time and hint in ("late", "early", "recent", "old", "young")):
            return
        if hint == "old" and measure.is_time:
            values = {**values, "descending": not values["descending"]}
        word = self._get("s").words[0].plain
        ranked = self._reading(
            "ranked", target=target, measure=measure, places=places or (PLURAL_PLACES if many and not self._wide else 1), **values
        )
        unique = target.is_key or target.column.distinct == self._fields.card.rows
        if not unique and word in ("most", "least", "fewest") and measure.is_number and not places:
            yield self._by_value(target, measure=measure, aggregate="sum", places=1, **values)
        yield ranked

    def _most_different(
        self, target: Field, measured: Field, values: dict[str, Any], places: int, hint: str, many: bool
    ) -> Iterator[Reading]:
        """ "which director has the most titles": records by director, where the titles name the records."""
        word = self._get("s").words[0].plain
        if hint or word not in ("most", "least", "fewest", "highest", "lowest") or measured.join is not None:
            return
        if (measured.column.distinct or 0) >= 0.9 * self._fields.card.rows and not target.is_key:
            yield self._by_value(target, places=places or (PLURAL_PLACES if many and not self._wide else 1), **values)

    def _extreme_of(self, item: Item, values: dict[str, Any], places: int, hint: str) -> Iterator[Reading]:
        """ "the highest price", "who has the most points", "the most expensive product"."""
        asked = self._get("w").value if self._has("w") else ""
        measure = self._field(item, number=True, wanted=lambda f: f.is_number or f.is_time)
        if measure is not None and (measure.is_number or measure.is_time):
            if set(stems(measure.label)) & RANKS and hint != "top":
                return
            if hint == "top" and not measure.is_number:
                return
            if asked == "who" or (self._by_noun and asked in ("which", "what")):
                target = (self._fields.person() if asked == "who" else None) or self._fields.naming()
                if target is None:
                    return
                if set(stems(measure.label)) & RANKS:
                    values = {**values, "descending": not values["descending"]}
                yield self._reading("ranked", target=target, measure=measure, places=places or 1, **values)
            elif (
                asked in ("what", "", "when")
                and not places
                and hint in ("", "late", "early", "recent")
                and not (set(stems(measure.label)) & RANKS)
            ):
                yield self._reading("extreme", measure=measure, **values)
            return
        target = self._field(item)
        if target is None or not hint or hint == "top":
            return
        compared = self._hinted(hint)
        if compared is None:
            return
        if hint == "old" and compared.is_time:
            values = {**values, "descending": not values["descending"]}
        many = PLURAL_PLACES if plural(item.words[-1]) and not self._wide else 1
        yield self._reading("ranked", target=target, measure=compared, places=places or many, **values)

    def _most_records(self, item: Item, values: dict[str, Any], places: int, hint: str) -> Iterator[Reading]:
        """ "which city has the fewest orders": records are counted by the column."""
        target = self._field(item)
        after = self._items[next(i for i, x in enumerate(self._items) if x.kind == "s") + 1 :]
        noun = any(i.kind == "U" for i in after)
        if target is None or target.is_key or hint or not noun:
            return
        if target.is_number and target not in self._fields.years():
            return
        many = PLURAL_PLACES if plural(item.words[-1]) and not self._wide else 1
        yield self._by_value(target, places=places or many, **values)

    def _best_time(self, values: dict[str, Any], places: int, hint: str) -> Iterator[Reading]:
        field, unit = self._get("G").value
        group = {"group": TIME_SQL[unit].format(c=field.sql), "group_words": unit, "target": field}
        columns = [i for i in self._rest if i.kind == "c"]
        measure = self._field(columns[0], number=True) if columns else None
        if hint or (columns and (measure is None or not measure.is_number)) or not (self._by_noun or columns):
            return
        kind = {"measure": measure, "aggregate": "sum"} if columns else {}
        yield self._reading("groups", places=places or 1, **group, **kind, **values)

    def _most_named(self, item: Item, values: dict[str, Any], places: int, hint: str) -> Iterator[Reading]:
        """ "which director has the most cartoons": a noun that the table does not know is what its records are, where it counts nothing else."""
        target = self._field(item)
        noun = self._items[-1]
        if target is None or target.column.type != "text" or hint or places or noun.kind != "u" or not plural(noun.words[-1]):
            return
        counted = [
            f
            for f in self._fields.own
            if f.is_number and not identifies(f) and f not in self._fields.years() and not (set(stems(f.label)) & RANKS)
        ]
        if counted or (target.column.distinct or 0) > MOST_SHARED * self._fields.card.rows:
            return
        yield self._by_value(target, places=1, **values)

    def _by_value(self, target: Field, **values: Any) -> Reading:
        """A count, sum or average by each value of ``target``."""
        return self._reading("groups", target=target, group=target.sql, group_words=target.label, **values)

    def _plural_noun(self) -> bool:
        return any(plural(w) for i in self._items if i.kind == "U" for w in i.words) and not self._wide

    # ------------------------------------------------------------ first and last

    def _places(self) -> Iterator[Reading]:
        if not self._wide or not self._match("w?[fF](?:c|u)?|w?(?:c|u)[fF]u?|w?cfc"):
            return
        item = self._get("f" if self._has("f") else "F")
        columns = [i for i in self._rest if i.kind == "c"]
        asked = self._get("w").value if self._has("w") else ""
        target = self._field(columns[0]) if columns else None
        if columns and target is None:
            return
        descending = item.value == -1
        if target is not None and len(columns) == 1 and (target.is_time or target in self._fields.years()):
            named = self._fields.person() if asked == "who" else self._fields.naming()
            if self._match("w?[fF]c") and asked in ("what", "when", ""):
                yield self._reading("extreme", measure=target, descending=descending)
            elif self._match("wc[fF]") and asked in ("which", "who") and named is not None and item.kind == "f":
                yield self._reading("ranked", target=named, measure=target, descending=descending, places=1)
            return
        if target is None:
            named = {"who": self._fields.person() or self._fields.naming(), "when": next(iter(self._times()), None)}
            target = named.get(asked, self._fields.naming())
        if target is None:
            return
        if len(columns) == 2:
            noun = self._field(columns[1])
            if noun is None or noun.column.type != "text":
                return
        orders: list[Field | None] = [None] if item.kind == "F" or self._listed else [None, *self._times()]
        for order in orders:
            yield self._reading("place", target=target, descending=descending, order=order, places=1)

    def _times(self) -> list[Field]:
        return [*self._fields.times(), *self._fields.years()]
