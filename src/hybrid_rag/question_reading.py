"""What the rules make of a question: conditions, and the reading over one table, possibly joined with others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hybrid_rag.records import TableCard, TableColumn, TableJoin

Shape = Literal[
    "count",  # records, or distinct values of target
    "total",  # sum of measure
    "average",
    "extreme",  # greatest or least value of measure
    "ranked",  # target and measure of the records with the extreme measure
    "groups",  # count, sum or average per group, all or the extreme ones
    "lookup",  # target of the records that meet the conditions
    "place",  # target of the first or last record
    "neighbour",  # target of the record before or after another
    "difference",  # of measure between two records
]
NUMBERS = ("integer", "decimal")
TIMES = ("date", "datetime")


@dataclass(frozen=True, slots=True)
class Field:
    """A column that a question can name, of the table itself or of one joined with it."""

    column: TableColumn
    join: TableJoin | None = None

    @property
    def sql(self) -> str:
        return '"' + self.column.name.replace('"', '""') + '"'

    @property
    def label(self) -> str:
        return " ".join(self.column.label.split())

    @property
    def is_key(self) -> bool:
        """Does it tell the records of the table apart? A key of a joined table does not."""
        return self.column.is_key and self.join is None

    @property
    def is_number(self) -> bool:
        return self.column.type in NUMBERS

    @property
    def is_time(self) -> bool:
        return self.column.type in TIMES


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as SQL with parameters, and in words. ``fields``: what it reads; ``picks``: it names values of a column."""

    sql: str
    parameters: tuple[Any, ...]
    words: str
    fields: tuple[Field, ...] = ()
    picks: tuple[str, ...] = ()
    level: int = 0  # of the match of a value, see :class:`hybrid_rag.question_fields.Match`
    loose: bool = False
    one_of: Condition | None = None  # must hold for exactly one record: the one that is compared with

    def negated(self) -> Condition:
        words = self.words.replace(" is ", " is not ", 1) if " is " in self.words else f"not {self.words}"
        return Condition(f"NOT coalesce({self.sql}, false)", self.parameters, words, self.fields, one_of=self.one_of)


@dataclass(frozen=True)
class Reading:
    """A question as understood over one table."""

    card: TableCard
    shape: Shape
    conditions: tuple[Condition, ...] = ()
    target: Field | None = None  # what is asked for
    measure: Field | None = None  # what is summed or compared
    group: str = ""  # SQL expression
    group_words: str = ""
    aggregate: Literal["count", "sum", "avg"] = "count"  # of groups
    descending: bool = True
    places: int = 0  # of a ranking; 0: no ranking
    distinct: bool = False
    one: bool = False  # exactly one record must be meant
    anchor: tuple[Condition, ...] = ()  # the record that a neighbour stands beside, or the second one of a difference
    order: Field | None = None  # of places and neighbours; None: the order of the file
    signed: bool = False  # a difference that must be positive as asked
    matched: int = 0  # names of table, columns and values found
    by_noun: bool = False  # the question names this table
    guessed: bool = False  # a word was taken for "records"
    rank: int = 0  # of two readings with different results the lower one holds; equal ranks: none does

    @property
    def fields(self) -> tuple[Field, ...]:
        some = [f for f in (self.target, self.measure, self.order) if f is not None]
        return tuple(some) + tuple(f for c in (*self.conditions, *self.anchor) for f in c.fields)
