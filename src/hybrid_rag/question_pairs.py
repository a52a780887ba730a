"""Two records held against each other: the one before or after another, the greater of two, the difference between two."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hybrid_rag.question_conditions import condition_of, same
from hybrid_rag.question_fields import Match
from hybrid_rag.question_frame import RANKS, Frame
from hybrid_rag.question_items import Item, plural
from hybrid_rag.question_reading import Condition, Reading
from hybrid_rag.question_words import stems


class Pairs(Frame):
    """ "who is listed after X", "which has more points, X or Y", "the difference in points between X and Y"."""

    # ------------------------------------------------------------ neighbours, comparisons, differences

    def _without(self, *items: Item) -> tuple[Condition, ...]:
        gone = [c for item in items for c in ([*item.value, _union(item)] if item.kind == "V" else [item.value])]
        return tuple(c for c in self._conditions if c not in gone)

    def _neighbours(self) -> Iterator[Reading]:
        kinds = [i for i in self._items if i.kind not in "kU"]
        kinds = [i for i in kinds if i.kind != "v" or i is kinds[-1]]  # the others are conditions on both records
        if not self._wide or not re.fullmatch("w[yfe]?(?:c|u)?[yf]?[bx>](?:c)?v|w(?:c|u)?yv", "".join(i.kind for i in kinds)):
            return
        anchor = kinds[-1]
        sign = next(i for i in kinds if i.kind in "bx>y" and (i.kind != "y" or not any(j.kind in "bx" for j in kinds)))
        if sign.kind == ">" and sign.words[0].plain not in ("above", "below"):
            return
        if any(i.kind == "f" for i in kinds):
            return
        step = sign.value if sign.kind in "xy" else {"<": -1, ">": 1}.get(sign.value, 0)
        if sign.kind == ">":
            step = -1 if sign.words[0].plain == "above" else 1
        others = self._without(anchor)
        if not step or any(not c.picks for c in others):
            return
        columns = [i for i in kinds if i.kind == "c"]
        target = self._field(columns[0]) if columns else anchor.matches[0].field
        if target is None or len(columns) > 1 or (target.column.distinct or 0) < 0.8 * self._fields.card.rows:
            return
        if not columns and (self._get("w").value in ("when", "where") or (self._has("u") and not self._names_records(target))):
            return
        if any(plural(i.words[-1]) for i in kinds if i.kind in "cu"):
            return  # all the records before another
        orders = [None] if sign.kind == ">" or self._listed else [None, *self._times()[:1]]
        for order in orders:
            yield self._reading(
                "neighbour", target=target, conditions=others, anchor=(*others, anchor.value), descending=step < 0, order=order, one=True
            )

    def _comparisons(self) -> Iterator[Reading]:
        """ "which has more points, A or B"."""
        full = self._full.replace("U", "")
        if self._by_noun and re.fullmatch("wcMv\\|v", full):
            yield from self._more_records()
        if not self._wide or full.count("v|v") + full.count("BV") != 1:
            return
        rest = full.replace("v|v", "").replace("BV", "")
        if not re.fullmatch("w?c?[Msf]c?|w?[Msf]c|w?cc?[Msf]|[Ms]c", rest):
            return
        pair = [i for i in self._items if i.kind in "vV"]
        matches = pair[0].matches if pair[0].kind == "V" else tuple(i.matches[0] for i in pair[:2])
        if len(matches) != 2 or not same(matches[0].field, matches[1].field) or len(self._without(*pair)) > 0:
            return
        first, second = matches
        field = first.field
        sign = next(i for i in self._items if i.kind in "Msf")
        columns = [
            f
            for i in self._items
            if i.kind == "c"
            if (f := self._field(i, number=True, wanted=lambda f: f.is_number or f.is_time)) and not same(f, field)
        ]
        values: dict[str, Any] = {}
        if sign.kind == "M":
            descending, hint = (
                (sign.value, "") if isinstance(sign.value, bool) else (sign.value not in ("short", "young", "early"), sign.value)
            )
        elif sign.kind == "s":
            descending, hint, _ = sign.value
        else:
            descending, hint = sign.value == -1, "late"
        measure = columns[0] if len(columns) == 1 else self._hinted(hint) if hint and not columns else None
        if (
            measure is None
            or not (measure.is_number or measure.is_time)
            or (sign.kind == "f" and not (measure.is_time or measure in self._fields.years()))
        ):
            return
        if set(stems(measure.label)) & RANKS:
            return
        cells = tuple(dict.fromkeys((*first.cells, *second.cells)))
        if len(first.cells) != 1 or len(second.cells) != 1:
            return
        either = Condition(
            f"{field.sql} IN ({', '.join('?' * len(cells))})", cells, f"{field.label} is {' or '.join(cells)}", (field,), cells
        )
        yield self._reading("ranked", target=field, measure=measure, places=1, descending=descending, conditions=(either,), **values)

    def _more_records(self) -> Iterator[Reading]:
        """ "which city has more orders, A or B": the records of each are counted."""
        asked, sign = (next(i for i in self._items if i.kind == kind) for kind in "cM")
        first, second = (i.matches[0] for i in self._items if i.kind == "v")
        field = self._field(asked)
        behind = [i.kind for i in self._items[self._items.index(sign) :]]
        if field is None or not same(field, first.field) or not same(field, second.field) or "U" not in behind:
            return
        if not isinstance(sign.value, bool) or self._without(*(i for i in self._items if i.kind == "v")):
            return
        cells = tuple(dict.fromkeys((*first.cells, *second.cells)))
        words = f"{field.label} is {' or '.join(cells)}"
        either = Condition(f"{field.sql} IN ({', '.join('?' * len(cells))})", cells, words, (field,), cells)
        group = {"target": field, "group": field.sql, "group_words": field.label}
        yield self._reading("groups", descending=sign.value, places=1, conditions=(either,), **group)

    def _differences(self) -> Iterator[Reading]:
        full = self._full.replace("U", "")
        if not self._wide:
            return
        pairs = [i for i in self._items if i.kind in "vV"]
        if re.fullmatch("[wm]?(?:DT?c|cD|TcD)B?(?:V|v[&t]v)", full):
            signed = False
        elif re.fullmatch("[nm]Mc?v(?:c)?tv", full):
            signed = True
        else:
            return
        if pairs[0].kind == "V":
            if len(pairs) != 1 or len(pairs[0].value) != 2:
                return
            one, two = pairs[0].value
        else:
            one, two = (i.value for i in pairs)
        columns = [i for i in self._items if i.kind == "c"]
        measure = self._field(columns[0], number=True) if len(columns) == 1 else None
        if measure is None or not measure.is_number or self._without(*pairs):
            return
        yield self._reading("difference", measure=measure, conditions=(one,), anchor=(two,), signed=signed, one=True)


def _union(item: Item) -> Condition | None:
    """The condition that a list of values made, as :mod:`hybrid_rag.question_conditions` writes it."""
    matches = item.matches
    cells = tuple(dict.fromkeys(c for m in matches for c in m.cells))
    return condition_of(Match(matches[0].field, cells, max(m.level for m in matches), any(m.loose for m in matches)), item)
