"""A reduced row of items, and what the patterns of :mod:`hybrid_rag.question_shapes` ask of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hybrid_rag.question_conditions import Reduced, same
from hybrid_rag.question_fields import Fields
from hybrid_rag.question_items import Item, hints, plural
from hybrid_rag.question_reading import Field, Reading, Shape
from hybrid_rag.question_words import stem, stems

PLURAL_PLACES = 5  # answers of "which products have the most …"
BEFORE_NOUNS = frozenset("nNwmsfFqeyT#")  # kinds of items behind which an unknown word is what the records are called
RANKS = frozenset(stem(w) for w in "rank position place pos".split())


class Frame:
    """The items that are left, as a text of their kinds: ``_full`` with the values, ``_bare`` without; and the conditions."""

    def __init__(self, reduced: Reduced, fields: Fields) -> None:
        self._fields, self._wide = fields, fields.wide
        self._conditions = list(reduced.conditions)
        self._guessed = reduced.guessed
        self._listed = any(i.kind == "L" for i in reduced.items)
        self._rank, self._matched = reduced.rank, reduced.matched
        self._items = _tidy(reduced.items)
        self._by_noun = any(i.kind == "U" for i in reduced.items)
        self._matched += sum(len(i.words) for i in self._items if i.kind in "cU")
        self._full = "".join(i.kind for i in self._items if i.kind != "k")
        rest = [i for i in self._items if i.kind not in "kvVU"]
        self._bare, self._rest = "".join(i.kind for i in rest), rest

    # ------------------------------------------------------------ helpers

    def _match(self, pattern: str, text: str | None = None) -> bool:
        return re.fullmatch(pattern, self._bare if text is None else text) is not None

    def _get(self, kind: str, n: int = 0) -> Item:
        return [i for i in self._rest if i.kind == kind][n]

    def _has(self, kind: str) -> bool:
        return kind in self._bare

    def _reading(self, shape: Shape, *, rank: int = 0, **values: Any) -> Reading:
        given = {"conditions": tuple(self._conditions), "one": self._has("e"), **values}
        return Reading(self._fields.card, shape, matched=self._matched, by_noun=self._by_noun, rank=self._rank * 2 + rank, **given)

    def _field(self, item: Item, *, number: bool | None = None, wanted: Callable[[Field], bool] | None = None) -> Field | None:
        """The only field that a column item can mean; names and texts are preferred where no number is wanted."""
        some = list(item.fields)
        if wanted is not None:
            some = [f for f in some if wanted(f)] or some
        if number:
            some = [f for f in some if f.is_number and not identifies(f)] or some
        if len(some) > 1 and not number:
            some = [f for f in some if f.label.casefold().endswith("name")] or [f for f in some if f.column.type == "text"] or some
        return some[0] if len({f.column.name for f in some}) == 1 else None

    def _is_noun(self, i: int) -> bool:
        """Can the unknown item at ``i`` be what the records are called: behind a question word, a superlative, or a value ("nkf trains")?"""
        if self._items[i].words[-1].plain.endswith("ed"):
            return False  # "which was completed last"
        before = self._items[i - 1].kind if i else ""
        return before in BEFORE_NOUNS or (before in ("v", "V", "k") and plural(self._items[i].words[-1]))

    def _noun_is_given(self) -> bool:
        return self._by_noun or (self._wide and (self._has("u") or self._has("U")))

    def _names_records(self, field: Field) -> bool:
        naming = self._fields.naming()
        return naming is not None and same(naming, field)

    def _hinted(self, name: str) -> Field | None:
        """The column that "tallest", "latest" and the like compare."""
        if name in ("late", "recent", "early"):
            pool = [*self._fields.times(), *self._fields.years()]
        else:
            wanted = {stem(w) for w in hints(name)}
            pool = [
                f for f in self._fields.own if (f.is_number or (f.is_time and name in ("old", "young"))) and wanted & set(stems(f.label))
            ]
            if not pool and name == "old" and not self._wide:
                pool = self._fields.times()
        return pool[0] if len(pool) == 1 else None


def _tidy(items: list[Item]) -> list[Item]:
    """Without what binds: "and" beside a condition, "by" that groups nothing, a second question word."""
    out: list[Item] = []
    items = [i for i in items if i.kind != "L"]
    for i, item in enumerate(items):
        following = items[i + 1] if i + 1 < len(items) else None
        before = out[-1] if out else None
        beside = [j is None or j.kind in "kvV" for j in (before, following)]
        pair = before is not None and before.kind == "v" and following is not None and following.kind == "v" and _alike(before, following)
        if item.kind == "&" and (item.value == "both" or any(beside)) and not pair:
            continue
        if (
            item.kind == "g"
            and item.value == "by"
            and next((j.kind for j in items[i + 1 :] if j.kind not in "UTA"), "") not in ("c", "n", "N")
        ):
            continue
        if item.kind == "w" and any(j.kind in "wmnN" for j in out) and item.value in ("which", "who", "where", "when", "what"):
            if item.value in ("which", "what") and following is not None and following.kind in "cu":
                pass
            else:
                continue
        if item.kind in "nN" and out and out[-1].kind in "nN":
            continue
        out.append(item)
    return out


def _alike(some: Item, other: Item) -> bool:
    """Do two values stand in the same column, so that they can be held against each other?"""
    return same(some.matches[0].field, other.matches[0].field)


def identifies(field: Field) -> bool:
    """A column of whole numbers that are names: unique, and called id, number or the like, or counting the records."""
    column = field.column
    named = stems(field.label)[-1:] in (("id",), ("no",), (stem("number"),), ("code",), ("rank",))
    counting = column.type == "integer" and column.minimum in (0, 1) and column.maximum - column.minimum == column.distinct - 1
    return column.is_key and (named or counting)
