"""What the words of a question can mean in each table: kept for as long as the index does not change."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Mapping, Sequence

from hybrid_rag.question_fields import Fields, Values
from hybrid_rag.question_items import is_known
from hybrid_rag.question_reading import Field
from hybrid_rag.question_words import is_filler, words_of
from hybrid_rag.records import TableCard, TableColumn
from hybrid_rag.table_store import TableStore
from hybrid_rag.tables import RAW, q

MOST_DISTINCT = 5_000  # different cells of a column whose words are kept in memory, when a question is asked of one table
KEPT_TABLES = 1_000  # whose words are kept in memory
KNOWN_SHARE = 0.4  # of a question's content words that must be names or values of a table for it to be about that table
MOST_RELEVANT = 3  # tables that a language model is shown, beside those that they can be joined with


class TableWords:
    """Words of the tables of one store. Thread-safe. ``synonyms``: other words for columns, by column name."""

    def __init__(self, store: TableStore, synonyms: Mapping[str, Sequence[str]]) -> None:
        self._store, self.synonyms = store, synonyms
        self._lock = threading.Lock()
        self._held: dict[tuple[str, str, bool], tuple[Fields, Values]] = {}

    def of(self, card: TableCard, wide: bool) -> tuple[Fields, Values]:
        """The columns and the cells of a table by the words that name them."""
        key = (self._store.generation, card.name, wide)
        with self._lock:
            held = self._held.get(key)
        if held is None:
            others = {c.name: c for c in self._store.cards() if c.name != card.name}
            fields = Fields(card, others, self.synonyms, wide=wide)
            held = fields, Values([(f, self._cells(f, card, wide)) for f in (*fields.own, *fields.joined)], self.synonyms, wide=wide)
            with self._lock:
                while len(self._held) >= KEPT_TABLES:
                    del self._held[next(iter(self._held))]
                self._held[key] = held
        return held

    def _cells(self, field: Field, card: TableCard, wide: bool) -> Sequence[str]:
        """The different cells of a text column, when they are few enough to be known by their words."""
        column = field.column
        if column.type not in ("text", "boolean"):
            return ()
        if not wide or column.type == "boolean" or field.join is not None:
            return column.values
        if (column.distinct or 0) > MOST_DISTINCT:
            return ()
        return [
            r[0]
            for r in self._store.fetch(
                f"SELECT DISTINCT {field.sql} FROM {q(card.name)} WHERE {field.sql} IS NOT NULL ORDER BY 1", (), [card.name]
            )
        ]

    def cells(self, card: TableCard, column: TableColumn) -> Sequence[str]:
        """The different cells of a column as written; none when there are more than ``MOST_DISTINCT``."""
        if column.type == "text" and (column.distinct or 0) > MOST_DISTINCT:
            return ()
        name = column.name if column.type == "text" else column.name + RAW
        sql = f"SELECT DISTINCT {q(name)} FROM {q(card.name)} WHERE {q(name)} IS NOT NULL ORDER BY 1 LIMIT {MOST_DISTINCT + 1}"
        found = [str(row[0]) for row in self._store.fetch(sql, (), [card.name])]
        return found if len(found) <= MOST_DISTINCT else ()

    def find(self, fields: Fields, texts: Sequence[str]) -> list[tuple[Field, str, str]]:
        """Text columns in which one of the texts is a whole cell, with the cell as written."""
        columns = [f for f in fields.own if f.column.type == "text"]
        if not columns or not texts:
            return []
        wanted = sorted({t.casefold() for t in texts})
        name = fields.card.name
        parts = [
            f"SELECT DISTINCT {i}, {f.sql} FROM {q(name)} WHERE lower(trim({f.sql})) IN (SELECT unnest(?::VARCHAR[]))"
            for i, f in enumerate(columns)
        ]
        found = self._store.fetch(" UNION ALL ".join(parts) + " ORDER BY 1, 2", [wanted] * len(parts), [name])
        return [(columns[i], value.strip().casefold(), value) for i, value in found]

    def relevant(self, question: str, cards: Sequence[TableCard]) -> list[TableCard]:
        """The tables that a question is about, the likeliest first: by its words that name their columns and values, rare ones more.

        A table must be named by itself or by a column, and a good part of the words that carry meaning must be known to it.
        """
        words = [w for w in words_of(question) if not is_filler(w)]
        content = {w.stem for w in words if not is_known(w)}
        known = {card.name: {w.stem for w in words} & self._vocabulary(card) for card in cards}
        frequency = Counter(stem for found in known.values() for stem in found)
        weight = {stem: math.log(1 + len(cards) / n) for stem, n in frequency.items()}
        scored = []
        for card in cards:
            found = known[card.name]
            if found & self.of(card, False)[0].stems and len(found) >= KNOWN_SHARE * len(content | found):
                scored.append((-sum(weight[stem] for stem in found), card.name, card))
        return [card for _, _, card in sorted(scored, key=lambda entry: entry[:2])[:MOST_RELEVANT]]

    def _vocabulary(self, card: TableCard) -> frozenset[str]:
        fields, values = self.of(card, False)
        return fields.stems | values.stems
