"""Which words can mean which column or value of a table: names, word forms, synonyms, cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hybrid_rag.analysis import normalise
from hybrid_rag.question_reading import Field
from hybrid_rag.question_words import FUNCTION_WORDS, Word, is_filler, stem, stems, words_of
from hybrid_rag.records import TableCard, TableColumn

LONGEST_VALUE = 10  # words of a value that is looked for
TELLING_SHARE = 0.5  # of a column's different cells that a word may stand in, for it to pick records
PROSE_WORDS = 6  # words of a cell, on average, from which a column is prose
MOST_CELLS = 200  # different cells that one mention may mean
_GENERIC_ENDS = frozenset(stem(w) for w in "id no number code name date usd eur pct percent percentage quantity amount".split())
_WEAK_ENDS = frozenset(stem(w) for w in "id name date number code".split())
_REMARKS = frozenset(stem(w) for w in "note remark comment description info information synopsis summary reference detail".split())
_PERSONS = frozenset(
    stem(w)
    for w in "name player driver winner artist candidate member president mayor sheriff rider athlete coach author director champion person "
    "employee customer delegate representative senator actor singer competitor skater swimmer jockey pilot leader manager student".split()
)


class Fields:
    """The columns of one table and of those it can be joined with, by the words that name them.

    ``wide``: the question is known to be about this table, so a part of a name is enough.
    """

    def __init__(self, card: TableCard, others: Mapping[str, TableCard], synonyms: Mapping[str, Sequence[str]], *, wide: bool) -> None:
        self.card, self.wide = card, wide
        self.noun = frozenset(stems(card.name)) | frozenset(stems(card.source.rpartition("/")[2].rpartition(".")[0]))
        self.own = [Field(c) for c in card.columns]
        bases = [re.sub(r"_\d+$", "", c.name) for c in card.columns]
        self._repeated = {
            c.name for c, base in zip(card.columns, bases, strict=True) if bases.count(base) > 1 and (base == c.name or base in bases)
        }
        self.joined = list(_joined(card, others))
        self._full: dict[tuple[str, ...], list[Field]] = {}
        self._part: dict[tuple[str, ...], list[Field]] = {}
        for field in (*self.own, *self.joined):
            for name in _forms(field.column, synonyms, short=field.join is None):
                _add(self._full, name, field)
            if wide and field.join is None:
                for name in _parts(field.column):
                    _add(self._part, name, field)
        units = {w for f in self.own if f.column.unit for w in stems(f.column.unit)}
        self.stems = frozenset(w for names in (self._full, self._part) for name in names for w in name) | self.noun | units

    def at(self, words: Sequence[Word], i: int) -> Iterator[tuple[int, list[Field], bool]]:
        """(how many words, fields they can name, whether whole names) for the words from ``i`` on, longest first."""
        for length in range(min(6, len(words) - i), 0, -1):
            key = tuple(w.stem for w in words[i : i + length])
            for names, full in ((self._full, True), (self._part, False)):
                if found := names.get(key):
                    own = [f for f in found if f.join is None]
                    yield length, own or found, full

    def is_repeated(self, field: Field) -> bool:
        """Does another column have the same name? Then a record holds several things of a kind, and none can be counted or picked."""
        return field.join is None and field.column.name in self._repeated

    def naming(self) -> Field | None:
        """What a record of this table is called by: its column of names or titles, else its first column that tells records apart.

        Orders are called by their order_id, though they have a product_name.
        """
        columns = self.card.columns
        texts = [f for f in self.own if f.column.type == "text"]
        named = [f for f in texts if stems(f.label)[-1:] in (("name",), (stem("title"),))]
        telling = [f for f in texts if (f.column.distinct or 0) >= 0.8 * self.card.rows] if self.wide else []
        keys = [Field(c) for c in columns if c.is_key]
        if not any(set(stems(f.label)) & self.noun for f in named) and (own := [f for f in keys if set(stems(f.label)) & self.noun]):
            return own[0]
        return next(iter((*named, *telling, *keys)), None)

    def person(self) -> Field | None:
        """The only column of persons, for "who"."""
        found = [f for f in self.own if f.column.type == "text" and stems(f.label)[-1:] and stems(f.label)[-1] in _PERSONS]
        return found[0] if len(found) == 1 else None

    def times(self) -> list[Field]:
        return [f for f in self.own if f.is_time]

    def years(self) -> list[Field]:
        """Columns of whole numbers that are named year, or season, and look so."""
        return [f for f in self.own if f.column.type == "integer" and _is_year(f.column)]


def _is_year(column: TableColumn) -> bool:
    named = stem("year") in stems(column.label) or (stem("season") in stems(column.label))
    low, high = column.minimum, column.maximum
    return named and isinstance(low, int) and 1000 <= low <= high <= 2200


def _add(names: dict[tuple[str, ...], list[Field]], name: tuple[str, ...], field: Field) -> None:
    if field not in (held := names.setdefault(name, [])):
        held.append(field)


def _joined(card: TableCard, others: Mapping[str, TableCard]) -> Iterator[Field]:
    """Columns of tables that this one's values point to, where their names are new here."""
    names = {c.name for c in card.columns}
    for join in card.joins:
        other = others.get(join.other_table)
        for column in other.columns if other else ():
            if column.name not in names:
                names.add(column.name)
                yield Field(column, join)


def _forms(column: TableColumn, synonyms: Mapping[str, Sequence[str]], *, short: bool) -> Iterator[tuple[str, ...]]:
    """Names of a column: the whole one, without a generic end, its synonyms; ``short``: its last word, or without brackets."""
    full = stems(column.label)
    bare = stems(re.sub(r"[(\[][^)\]]*[)\]]", " ", column.label))
    named = tuple(w for w in full if w not in _GENERIC_ENDS)
    last = full[-1:] if full and full[-1] not in _WEAK_ENDS else ()
    seen: set[tuple[str, ...]] = set()
    for form in (full, named, *((bare, last) if short else ()), *_synonyms(column, synonyms)):
        if form and form not in seen:
            seen.add(form)
            yield form


def _parts(column: TableColumn) -> Iterator[tuple[str, ...]]:
    """Runs of words inside a column's name that say something."""
    words = [w for w in re.findall(r"[^\W_]+", column.label)]
    found = [stem(w) for w in words]
    for i in range(len(found)):
        for j in range(i + 1, len(found) + 1):
            if (
                any(normalise(w) not in FUNCTION_WORDS and len(w) > 1 and not w.isdigit() for w in words[i:j])
                and normalise(words[i]) not in FUNCTION_WORDS
            ):
                yield tuple(found[i:j])


def _synonyms(column: TableColumn, synonyms: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
    names = {normalise(column.name), normalise(column.label)}
    for name, others in synonyms.items():
        if normalise(name) in names:
            for other in others:
                yield stems(other)


# ---------------------------------------------------------------- values


@dataclass(frozen=True, slots=True)
class Match:
    """Cells of a column that a mention can mean. ``level``: 0 whole cell, 1 cell without remarks, 2 words inside the cell."""

    field: Field
    cells: tuple[str, ...]
    level: int
    loose: bool = False  # whole cells, but other cells of the column hold the words too


class Values:
    """The cells of text columns by their words. ``cells``: (field, its different cells); ``synonyms``: other words for a cell."""

    def __init__(self, cells: Iterable[tuple[Field, Sequence[str]]], synonyms: Mapping[str, Sequence[str]], *, wide: bool) -> None:
        self._synonyms = {normalise(name): tuple(others) for name, others in synonyms.items()}
        self._whole: dict[tuple[str, ...], list[tuple[Field, str, int]]] = {}
        self._inside: dict[str, list[tuple[Field, str, tuple[str, ...]]]] = {}
        for field, some in cells:
            inside = wide and not _is_prose(field, some)
            for cell in some:
                if normalise(cell) == normalise(field.label):
                    continue  # a header that is repeated among the records
                self._add(field, cell, wide, inside)
        self.stems = frozenset(word for cell in self._whole for word in cell) | self._inside.keys()

    def _add(self, field: Field, cell: str, wide: bool, inside: bool) -> None:
        words = words_of(cell)
        whole = tuple(w.stem for w in words)
        if not whole:
            return
        if len(whole) <= LONGEST_VALUE:
            for name in (whole, *(tuple(w.stem for w in words_of(other)) for other in self._synonyms.get(normalise(cell), ()))):
                self._whole.setdefault(name, []).append((field, cell, 0))
        if wide:
            bare = tuple(w.stem for w in words_of(re.sub(r"\([^)]*\)|\[[^\]]*\]", " ", cell)))
            if bare and bare != whole and len(bare) <= LONGEST_VALUE:
                self._whole.setdefault(bare, []).append((field, cell, 1))
        if inside:
            for word in set(whole):
                self._inside.setdefault(word, []).append((field, cell, whole))

    def at(self, words: Sequence[Word], i: int) -> Iterator[tuple[int, list[Match]]]:
        """(how many words, matches of the best level) for the words from ``i`` on, longest first."""
        if is_filler(words[i]):
            last = min(LONGEST_VALUE, len(words) - i)
            span = range(last, 1, -1)
        else:
            span = range(min(LONGEST_VALUE, len(words) - i), 0, -1)
        for length in span:
            key = tuple(w.stem for w in words[i : i + length])
            contained = self._contained(words[i : i + length], key)
            if found := self._whole.get(key):
                yield length, [replace(m, loose=_is_loose(m, contained)) for m in _grouped(found)]
            elif contained:
                found = _grouped((f, c, 2) for f, c in contained)
                yield length, [m for m in found if len(m.cells) <= max(1, TELLING_SHARE * (m.field.column.distinct or 1))]

    def _contained(self, words: Sequence[Word], key: tuple[str, ...]) -> list[tuple[Field, str]]:
        if not self._inside or is_filler(words[0]) or is_filler(words[-1]) or (len(words) == 1 and len(words[0].plain) < 3):
            return []
        rarest = min((self._inside.get(k, []) for k in key), key=len)
        n = len(key)
        return [(f, c) for f, c, whole in rarest if any(whole[j : j + n] == key for j in range(len(whole) - n + 1))]


def _is_prose(field: Field, cells: Sequence[str]) -> bool:
    """Remarks and descriptions: a word in them says little about the record."""
    if set(stems(field.label)) & _REMARKS:
        return True
    some = list(cells[:: max(1, len(cells) // 200)])
    return sum(len(cell.split()) for cell in some) > PROSE_WORDS * len(some)


def _is_loose(match: Match, contained: Iterable[tuple[Field, str]]) -> bool:
    return any(f.column.name == match.field.column.name and c not in match.cells for f, c in contained)


def _grouped(found: Iterable[tuple[Field, str, int]]) -> list[Match]:
    """Matches by field, the best level of each; better levels first."""
    by_field: dict[str, tuple[Field, dict[int, list[str]]]] = {}
    for field, cell, level in found:
        levels = by_field.setdefault(field.column.name, (field, {}))[1]
        if cell not in levels.setdefault(level, []):
            levels[level].append(cell)
    out = [Match(field, tuple(levels[min(levels)]), min(levels)) for field, levels in by_field.values()]
    return sorted((m for m in out if len(m.cells) <= MOST_CELLS), key=lambda m: m.level)


Find = Callable[[Sequence[str]], list[tuple[Field, str, str]]]  # texts -> (field, the text, the cell as written)
