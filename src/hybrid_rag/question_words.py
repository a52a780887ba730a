"""The words of a table question and what they can mean: operators, fillers, columns, values, numbers, dates of one table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hybrid_rag.analysis import Analyzer, normalise
from hybrid_rag.records import TableCard, TableColumn
from hybrid_rag.stopwords import STOPWORDS

MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"]
NUMBER_WORDS = {
    w: i for i, w in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"])
}
LONGEST_VALUE = 8  # words of a value that is looked for
FILLERS = STOPWORDS["en"] | frozenset(
    [
        "show",
        "list",
        "give",
        "tell",
        "find",
        "get",
        "display",
        "name",
        "please",
        "many",
        "much",
        "number",
        "count",
        "record",
        "row",
        "entry",
        "table",
        "data",
        "file",
        "there",
        "exist",
        "exactly",
        "altogether",
        "overall",
        "currently",
        "ever",
        "kind",
        "value",
        "out",
        "much",
        "several",
        "various",
        "any",
        "available",
        "called",
        "named",
        "whose",
        "belong",
        "s",
        "t",
        "placed",
        "came",
        "come",
        "coming",
        "went",
        "filed",
        "made",
        "received",
        "submitted",
        "recorded",
        "registered",
        "reported",
        "listed",
        "happened",
        "occurred",
        "took",
        "taken",
        "given",
    ]
)
_TOKEN = re.compile(r"[^\W_]+(?:[-./:@&'’_][^\W_]+)*|[$€£%]")
_stem = Analyzer("en").terms


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question: as written, folded, stemmed."""

    text: str
    plain: str
    stem: str

    @property
    def number(self) -> float | None:
        """Its value when it is a number in digits or a small one in letters."""
        bare = self.plain.replace(",", "").removesuffix("th")
        if re.fullmatch(r"\d+(?:\.\d+)?", bare):
            return float(bare)
        return float(NUMBER_WORDS[self.plain]) if self.plain in NUMBER_WORDS else None


FILLER_STEMS = frozenset(stem for word in FILLERS for stem in _stem(word))


def words_of(question: str) -> list[Word]:
    plain = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", question)
    return [Word(text, normalise(text), stem(text)) for text in _TOKEN.findall(plain)]


def stem(text: str) -> str:
    found = _stem(text)
    return found[0] if found else normalise(text)


def stems(label: str) -> tuple[str, ...]:
    """Stems of a column's or table's name: "unit_price" and "UnitPrice" give unit, price."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label)
    return tuple(stem(w) for w in re.findall(r"[^\W_]+", parted))


class Vocabulary:
    """The names of one table: which words of a question can mean which column."""

    def __init__(self, card: TableCard, synonyms: Mapping[str, Sequence[str]]) -> None:
        self.card = card
        self.noun = frozenset(stems(card.name)) | frozenset(stems(card.source.rpartition("/")[2].rpartition(".")[0]))
        self._names: dict[tuple[str, ...], list[TableColumn]] = {}
        for column in card.columns:
            for name in self._forms(column, synonyms):
                self._names.setdefault(name, []).append(column)

    def _forms(self, column: TableColumn, synonyms: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
        full = stems(column.label)
        seen = {full}
        yield full
        short = tuple(w for w in full if w not in ("id", "no", "number", "code", "name", "date", "usd", "eur", "pct", "percent"))
        for form in (
            short,
            full[-1:] if full and full[-1] not in ("id", "name", "date", "number", "code") else (),
            *self._others(column, synonyms),
        ):
            if form and form not in seen:
                seen.add(form)
                yield form

    def _others(self, column: TableColumn, synonyms: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, ...]]:
        names = {normalise(column.name), normalise(column.label)}
        for name, others in synonyms.items():
            if normalise(name) in names:
                for other in others:
                    yield stems(other)

    def column_at(self, words: Sequence[Word], at: int) -> tuple[list[TableColumn], int]:
        """(columns that the words from ``at`` on can name, how many words the name takes); the longest name wins."""
        for length in range(min(4, len(words) - at), 0, -1):
            key = tuple(w.stem for w in words[at : at + length])
            if key in self._names:
                return self._names[key], length
        return [], 0

    def dates(self) -> list[TableColumn]:
        return [c for c in self.card.columns if c.type in ("date", "datetime")]

    def years(self) -> list[TableColumn]:
        """Columns of integers that are named year."""
        return [c for c in self.card.columns if c.type == "integer" and "year" in stems(c.label)]


def value_at(card: TableCard, words: Sequence[Word], at: int) -> tuple[list[tuple[TableColumn, str]], int]:
    """Values listed in the card that the words from ``at`` on spell, and how many words they take."""
    for length in range(min(LONGEST_VALUE, len(words) - at), 0, -1):
        spelled = " ".join(w.plain for w in words[at : at + length])
        stemmed = " ".join(w.stem for w in words[at : at + length])
        found = []
        for column in card.columns:
            if column.type in ("text", "boolean"):
                for value in column.values:
                    folded = " ".join(w.plain for w in words_of(value))
                    if folded and (
                        folded == spelled or ((length > 1 or len(stemmed) > 3) and " ".join(w.stem for w in words_of(value)) == stemmed)
                    ):
                        found.append((column, value))
        if found:
            return found, length
    return [], 0
