"""A question as a row of items: operators, columns, values, numbers, dates. Words that are none of these stay visible as such.

Each kind is one letter, so that a whole question can be held against patterns (see :mod:`hybrid_rag.question_shapes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

from hybrid_rag.analysis import normalise
from hybrid_rag.question_fields import Fields, Match, Values
from hybrid_rag.question_reading import Field
from hybrid_rag.question_words import MONTHS, Word, is_filler, stems, words_of

MOST_ROWS_OF_ITEMS = 8  # ways to read a question's words that are tried

# kind: what it is
#   n how many          N total number of     w which, what, who …     m how much, how long
#   s most, least …     f first, last         T total   A average      q different    g per
#   > a comparison      b before, after       x next, previous         D difference   M more, less (compared)
#   ! not, without      o other than          & and   | or   t than   B between   e only   = same
#   L listed, in the table   G per month, year …   c column   v value   # number   d date   U the table's own name   u a word that nothing explains
_OPERATORS: dict[str, tuple[str, Any]] = {
    "how many": ("n", None), "number of": ("n", None), "count of": ("n", None), "count": ("n", None), "amount of": ("n", None), "how many times": ("n", "times"),
    "number of times": ("n", "times"), "amount of times": ("n", "times"),
    "total number of": ("N", None), "total amount of": ("N", None), "how many total": ("N", None), "total count of": ("N", None),
    "combined number of": ("N", None), "overall number of": ("N", None), "total numbers of": ("N", None),
    "how much": ("m", None), "which": ("w", "which"), "what": ("w", "what"), "who": ("w", "who"), "whom": ("w", "who"), "when": ("w", "when"),
    "where": ("w", "where"), "list": ("w", "list"), "name": ("w", "list"), "what is the name of": ("w", "which"), "what was the name of": ("w", "which"),
    "what are the names of": ("w", "list"), "name one of": ("w", "any"),
    "total": ("T", None), "sum": ("T", None), "combined": ("T", None), "in total": ("T", None), "sum of": ("T", None), "total of": ("T", None),
    "average": ("A", None), "mean": ("A", None), "avg": ("A", None), "on average": ("A", None), "average of": ("A", None), "average number of": ("A", None),
    "different": ("q", None), "distinct": ("q", None), "unique": ("q", None),
    "per": ("g", "per"), "each": ("g", "each"), "every": ("g", "each"), "by": ("g", "by"), "for each": ("g", "each"),
    "more than": (">", ">"), "greater than": (">", ">"), "higher than": (">", ">"), "larger than": (">", ">"), "bigger than": (">", ">"), "longer than": (">", ">"),
    "over": (">", ">"), "above": (">", ">"), "exceeding": (">", ">"), "beyond": (">", ">"), "exceeds": (">", ">"), "exceeded": (">", ">"), "exceed": (">", ">"),
    "less than": (">", "<"), "fewer than": (">", "<"), "lower than": (">", "<"), "smaller than": (">", "<"), "shorter than": (">", "<"),
    "under": (">", "<"), "below": (">", "<"), "at least": (">", ">="), "at most": (">", "<="), "no more than": (">", "<="), "no less than": (">", ">="),
    "no fewer than": (">", ">="), "not more than": (">", "<="), "not less than": (">", ">="), "up to": (">", "<="),
    "or more": ("p", ">="), "or higher": ("p", ">="), "or above": ("p", ">="), "or greater": ("p", ">="), "and above": ("p", ">="), "or over": ("p", ">="),
    "or less": ("p", "<="), "or fewer": ("p", "<="), "or lower": ("p", "<="), "or below": ("p", "<="), "or under": ("p", "<="),
    "before": ("b", "<"), "prior to": ("b", "<"), "earlier than": ("b", "<"), "after": ("b", ">"), "later than": ("b", ">"), "since": ("b", ">="),
    "until": ("b", "<="), "previous to": ("x", -1), "directly before": ("x", -1), "immediately before": ("x", -1), "right before": ("x", -1), "just before": ("x", -1),
    "directly after": ("x", 1), "immediately after": ("x", 1), "right after": ("x", 1), "just after": ("x", 1), "next after": ("x", 1),
    "directly above": ("x", -1), "directly below": ("x", 1), "immediately following": ("x", 1), "next": ("y", 1), "previous": ("y", -1), "following": ("y", 1),
    "difference in": ("D", None), "difference between": ("D", None), "difference of": ("D", None), "difference": ("D", None),
    "more": ("M", True), "higher": ("M", True), "larger": ("M", True), "greater": ("M", True), "bigger": ("M", True), "longer": ("M", "long"), "older": ("M", "old"),
    "taller": ("M", "tall"), "heavier": ("M", "heavy"), "less": ("M", False), "fewer": ("M", False), "lower": ("M", False), "smaller": ("M", False),
    "shorter": ("M", "short"), "younger": ("M", "young"), "earlier": ("M", "early"), "later": ("M", "late"), "compared to": ("t", None),
    "not": ("!", None), "never": ("!", None), "without": ("!", None), "no": ("!", None), "n't": ("!", None),
    "other than": ("o", None), "besides": ("o", None), "except": ("o", None), "except for": ("o", None), "apart from": ("o", None), "excluding": ("o", None),
    "not including": ("o", None), "and": ("&", None), "but": ("&", None), "as well as": ("&", None), "or": ("|", None), "than": ("t", None), "between": ("B", None),
    "only": ("e", None), "both": ("&", "both"), "same": ("=", None), "first": ("f", 1), "last": ("f", -1), "final": ("f", -1), "listed first": ("F", 1), "listed last": ("F", -1),
}  # fmt: skip
_HINTS = {
    "expensive": ("price", "cost"), "cheap": ("price", "cost"), "old": ("age",), "young": ("age",), "tall": ("height",), "long": ("length", "duration", "distance"),
    "short": ("length", "duration", "distance"), "heavy": ("weight",), "light": ("weight",), "late": (), "early": (), "recent": (),
}  # fmt: skip
_SUPERLATIVES: dict[str, tuple[bool, str]] = {  # (descending, hint)
    **dict.fromkeys(["most", "highest", "maximum", "max", "largest", "biggest", "greatest", "most number of", "highest number of", "largest number of",
                     "greatest number of", "highest amount of", "most amount of", "highest total number of", "highest recorded"], (True, "")),
    **dict.fromkeys(["least", "lowest", "minimum", "min", "smallest", "fewest", "least number of", "lowest number of", "smallest number of", "fewest number of",
                     "least amount of", "lowest amount of"], (False, "")),
    "top": (True, "top"), "best": (True, "top"), "worst": (False, "top"),
    "longest": (True, "long"), "shortest": (False, "short"), "tallest": (True, "tall"), "heaviest": (True, "heavy"), "lightest": (False, "light"),
    "priciest": (True, "expensive"), "cheapest": (False, "cheap"), "most expensive": (True, "expensive"), "least expensive": (False, "expensive"),
    "latest": (True, "late"), "newest": (True, "late"), "most recent": (True, "recent"), "earliest": (False, "early"), "oldest": (True, "old"),
    "youngest": (False, "young"), "least recent": (False, "recent"),
}  # fmt: skip
_NOISE = [
    tuple(p.split())
    for p in "according to the table|in the table|on the table|in this table|in the list|on the list|on this list|on this chart|on the chart|in the chart|"
    "of all time|in all|there are|were there|are there|was there|is there|as a|at all|in terms of|yes or no|part of".split("|")
]
_PHRASES = sorted({**_OPERATORS, **dict.fromkeys(_SUPERLATIVES)}, key=lambda p: -len(p.split()))
_BY_FIRST: dict[str, list[tuple[str, ...]]] = {}
for _p in _PHRASES:
    _BY_FIRST.setdefault(_p.split()[0], []).append(tuple(_p.split()))
for _n in _NOISE:
    _BY_FIRST.setdefault(_n[0], []).append(_n)
for _some in _BY_FIRST.values():
    _some.sort(key=len, reverse=True)
_OPERATOR_WORDS = frozenset(word for phrase in (*_PHRASES, *map(" ".join, _NOISE)) for word in phrase.split()) | {
    "month",
    "year",
    "quarter",
    "day",
}
TIME_UNITS = ("month", "year", "quarter", "day")


@dataclass(frozen=True, slots=True)
class When:
    """A date of which parts are given; ``year`` with ``decade`` means ten years, with ``quarter`` (1 to 4) three months."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    decade: bool = False
    quarter: int | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a question; what ``value`` holds depends on the kind."""

    kind: str
    words: tuple[Word, ...]
    value: Any = None
    fields: tuple[Field, ...] = ()
    matches: tuple[Match, ...] = ()
    full: bool = True


def is_known(word: Word) -> bool:
    """Does a word say something of itself: a part of an operator, a filler, a number, a month?"""
    return word.plain in _OPERATOR_WORDS or is_filler(word) or word.number is not None or word.ordinal is not None or bool(_month(word))


def rows_of_items(words: Sequence[Word], fields: Fields, values: Values, found: Sequence[Match]) -> Iterator[list[Item]]:
    """The ways to read the question's words, the likelier first. ``found``: identifiers that only the table itself knows."""
    cells: dict[tuple[str, ...], list[Match]] = {}
    for match in found:
        cells.setdefault(tuple(w.plain for w in words_of(match.cells[0])), []).append(match)
    slots: list[list[Item]] = []
    i = 0
    while i < len(words):
        options = _options(words, i, fields, values, cells)
        longest = max(len(o.words) for o in options)
        some = [o for o in options if len(o.words) == longest]
        if slots and slots[-1][0].kind in "wnN" and longest == 1 and some[0].kind == "v" and some[0].matches[0].level == 2:
            some = [Item("u", some[0].words)]  # "which songs": what is asked for, not a word of some title
        slots.append(some)
        i += longest
    for row in islice(product(*slots), MOST_ROWS_OF_ITEMS):
        yield list(_timed(_without_doubles(row), fields))


def _without_doubles(row: Sequence[Item]) -> list[Item]:
    """Without fillers, without an unknown word that stood before, and without a column that is named twice in a row."""
    out: list[Item] = []
    for item in row:
        if item.kind == " ":
            continue
        if item.kind == "u" and any(i.kind == "u" and i.words[0].stem == item.words[0].stem for i in out):
            continue
        if item.kind == "c" and out and out[-1].kind == "c" and len(item.fields) == 1 and item.fields == out[-1].fields:
            out[-1] = replace(item, words=out[-1].words + item.words)
            continue
        out.append(item)
    return out


def _timed(items: list[Item], fields: Fields) -> Iterator[Item]:
    """ "per month" and "by year" as one item, where the table has one column of dates."""
    times = fields.times()
    i = 0
    while i < len(items):
        following = items[i + 1] if i + 1 < len(items) else None
        own = following is not None and following.kind == "c" and following.full and any(f.join is None for f in following.fields)
        if (
            items[i].kind == "g"
            and following is not None
            and following.kind in "uc"
            and not own
            and len(times) == 1
            and following.words[0].plain in TIME_UNITS
        ):
            yield Item("G", (*items[i].words, *following.words), (times[0], following.words[0].plain))
            i += 2
            continue
        timed = following is not None and following.kind == "u" and following.words[0].plain in TIME_UNITS and len(times) == 1
        if items[i].kind == "w" and timed and i + 2 < len(items) and items[i + 2].kind == "s":  # "which month had the most orders"
            yield items[i]
            yield Item("G", following.words, (times[0], following.words[0].plain))
            i += 2
            continue
        yield items[i]
        i += 1


def _options(words: list[Word], i: int, fields: Fields, values: Values, cells: dict[tuple[str, ...], list[Match]]) -> list[Item]:
    """What the words from ``i`` on can be; the first ones are likelier among those of the same length."""
    out: list[Item] = []
    date = _date(words, i)
    operator = None if date is not None and date.value.quarter else _operator(words, i, fields)  # "first quarter" is no "first"
    column = _column(words, i, fields)
    value = _value(words, i, values, cells)
    word = words[i]
    if operator:
        out.append(operator)
    if column and not (operator and len(column.words) <= len(operator.words) and not (operator.kind in "TAM" and column.full)):
        out.append(column)
    if value and not (operator and len(value.words) <= len(operator.words)) and not (is_filler(word) and len(value.words) == 1):
        # a mention that is a name and a cell alike is taken for the name, unless the cell is longer
        if not column or len(value.words) > len(column.words) or (not column.full and value.matches[0].level == 0):
            out.insert(0, value)
        elif value.matches[0].level == 0 and len(value.words) == len(column.words):
            out.append(value)
    if date:
        out.append(date)
    if out:
        return out
    own = word.stem in fields.noun
    if own:
        return [Item("U", (word,))]
    if is_filler(word):
        return [Item("L" if word.plain == "listed" else " ", (word,))]
    if word.number is not None:
        return [Item("#", (word,), word.number)]
    return [Item("u", (word,))]


def _operator(words: Sequence[Word], i: int, fields: Fields) -> Item | None:
    for phrase in _BY_FIRST.get(words[i].plain, ()):
        if tuple(w.plain for w in words[i : i + len(phrase)]) == phrase:
            text, taken = " ".join(phrase), tuple(words[i : i + len(phrase)])
            if "amount" in phrase and any(full for _, _, full in fields.at(words, i + phrase.index("amount"))):
                continue  # a column
            if phrase in _NOISE:
                return Item("L" if phrase[-1] in ("table", "list", "chart") else " ", taken)
            if text in _SUPERLATIVES:
                return _superlative(words, i, len(phrase), _SUPERLATIVES[text])
            kind, value = _OPERATORS[text]
            if kind == "w" and text in ("list", "name") and i:
                continue
            return Item(kind, taken, value)
    ordinal = words[i].ordinal
    return Item("#", (words[i],), float(ordinal)) if ordinal is not None else None


def _superlative(words: Sequence[Word], i: int, length: int, meaning: tuple[bool, str]) -> Item:
    """ "three cheapest", "top 5" take their number with them."""
    after = words[i + length].number if i + length < len(words) else None
    places = 0
    if (
        after is not None
        and 0 < after <= 100
        and after == int(after)
        and words[i].plain in ("top", "most", "least", "highest", "lowest", "best", "worst")
    ):
        places, length = int(after), length + 1
    return Item("s", tuple(words[i : i + length]), (*meaning, places))


def _column(words: Sequence[Word], i: int, fields: Fields) -> Item | None:
    for length, some, full in fields.at(words, i):
        own = length == 1 and words[i].stem in fields.noun
        if own and not any(_named(f, words[i]) for f in some):
            continue  # the table's own name, not a column whose name begins with it
        if length == 1 and is_filler(words[i]) and not full:
            continue
        if length == 1 and not full and words[i].number is not None:
            continue
        return Item("c", tuple(words[i : i + length]), None, tuple(some), full=full)
    return None


def _named(field: Field, word: Word) -> bool:
    return stems(field.label) == (word.stem,)


def _value(words: Sequence[Word], i: int, values: Values, cells: dict[tuple[str, ...], list[Match]]) -> Item | None:
    for length in range(min(8, len(words) - i), 0, -1):
        if known := cells.get(tuple(w.plain for w in words[i : i + length])):
            return Item("v", tuple(words[i : i + length]), None, matches=tuple(known))
    for length, matches in values.at(words, i):
        if matches and not (length == 1 and words[i].number is not None and matches[0].level == 2):
            return Item("v", tuple(words[i : i + length]), None, matches=tuple(matches))
    return None


def _date(words: Sequence[Word], i: int) -> Item | None:
    """A year, a month with what stands around it, an ISO date, a decade."""
    word = words[i]
    if match := re.fullmatch(r"(\d{4})-(\d{2})(?:-(\d{2}))?", word.plain):
        return Item("d", (word,), When(int(match[1]), int(match[2]), int(match[3]) if match[3] else None))
    if quarter := _quarter(words, i):
        return quarter
    if match := re.fullmatch(r"([12]\d{2}0)s", word.plain):
        return Item("d", (word,), When(int(match[1]), decade=True))
    if word.plain in ("year", "month", "season") and i + 1 < len(words):
        skipped = 2 if words[i + 1].plain == "of" and i + 2 < len(words) else 1
        named = _date(words, i + skipped)
        if named is not None and (word.plain != "month" or named.value.month):
            return Item("d", tuple(words[i : i + skipped + len(named.words)]), named.value)
    j, day = i, None
    if (
        (bare := _day(word))
        and i + 1 < len(words)
        and (_month(words[i + 1]) or (words[i + 1].plain == "of" and i + 2 < len(words) and _month(words[i + 2])))
    ):
        day, j = bare, i + (1 if _month(words[i + 1]) else 2)
    month = _month(words[j])
    if not month:
        return Item("d", (word,), When(int(word.plain))) if _is_year(word) else None
    if words[j].plain in ("may", "march", "mar", "sun", "dec") and day is None and not _dated(words, j):
        return None
    j += 1
    if day is None and j < len(words) and (bare := _day(words[j])):
        day, j = bare, j + 1
    if j < len(words) and words[j].plain == "of":
        j += 1
    year = None
    if j < len(words) and _is_year(words[j]):
        year, j = int(words[j].plain), j + 1
    return Item("d", tuple(words[i:j]), When(year, month, day))


def _quarter(words: Sequence[Word], i: int) -> Item | None:
    """ "Q2 2024", "the second quarter of 2024"."""
    if match := re.fullmatch(r"q([1-4])", words[i].plain):
        quarter, j = int(match[1]), i + 1
    elif 1 <= (words[i].ordinal or 0) <= 4 and i + 1 < len(words) and words[i + 1].plain == "quarter":
        quarter, j = int(words[i].ordinal), i + 2
    else:
        return None
    of = j + 1 if j + 1 < len(words) and words[j].plain in ("of", "in") else j
    if of < len(words) and _is_year(words[of]):
        return Item("d", tuple(words[i : of + 1]), When(int(words[of].plain), quarter=quarter))
    return Item("d", tuple(words[i:j]), When(quarter=quarter))


def _dated(words: Sequence[Word], j: int) -> bool:
    """Is "may" or "march" a month here: something before or after says so."""
    before, after = (words[j - 1].plain if j else ""), (words[j + 1] if j + 1 < len(words) else None)
    return before in ("in", "of", "on", "since", "before", "after", "during", "until", "or", "and", "month") or bool(
        after and (_is_year(after) or _day(after))
    )


def _month(word: Word) -> int:
    plain = word.plain.rstrip(".")
    for number, name in enumerate(MONTHS, start=1):
        if plain == name or (len(plain) >= 3 and plain in (name[:3], name[:4] if name == "september" else name[:3])):
            return number
    return 0


def _day(word: Word) -> int | None:
    match = re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", word.plain)
    return int(match[1]) if match and 1 <= int(match[1]) <= 31 else None


def _is_year(word: Word) -> bool:
    return bool(re.fullmatch(r"1\d{3}|20\d{2}|21\d{2}", word.plain))


def hints(name: str) -> tuple[str, ...]:
    """Words for columns that a superlative without a column means ("tallest": height)."""
    return _HINTS.get(name, ())


def plural(word: Word) -> bool:
    plain = normalise(word.text)
    return plain.endswith("s") and not plain.endswith(("ss", "us", "is")) and plain not in ("has", "does", "was")
