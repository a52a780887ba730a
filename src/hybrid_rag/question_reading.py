"""What the rules make of a question: the operators' words, conditions, and the reading over one table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hybrid_rag.records import TableCard, TableColumn

MOST = frozenset(
    [
        "most",
        "highest",
        "maximum",
        "max",
        "largest",
        "biggest",
        "greatest",
        "top",
        "best",
        "longest",
        "latest",
        "newest",
        "heaviest",
        "priciest",
    ]
)
LEAST = frozenset(
    ["least", "lowest", "minimum", "min", "smallest", "fewest", "cheapest", "shortest", "earliest", "oldest", "lightest", "worst"]
)
SUM, AVERAGE = frozenset(["total", "sum", "combined"]), frozenset(["average", "mean", "avg"])
DISTINCT = frozenset(["different", "distinct", "unique"])
PER = frozenset(["per", "each", "every", "by"])
TIME = {"month": "strftime({c}, '%Y-%m')", "year": "year({c})", "quarter": "year({c}) || '-Q' || quarter({c})", "day": "{c}"}
ENTITY_WORDS = {"which", "what", "who"}
PLURAL_PLACES = 5  # answers of "which products have the most …"
PRICE_WORDS = {"cheapest", "priciest", "expensive"}
DATE_WORDS = {"latest", "newest", "earliest", "oldest", "recent"}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as SQL with parameters, and in words."""

    sql: str
    parameters: tuple[Any, ...]
    words: str


@dataclass
class Reading:
    """A question as understood over one table."""

    card: TableCard
    aggregate: str = ""  # count, sum, avg, min, max; "" for a look-up
    column: TableColumn | None = None  # what is counted, summed, compared or looked up
    entity: TableColumn | None = None  # whose extreme is asked for
    group: str = ""  # SQL expression
    group_words: str = ""
    descending: bool = True
    places: int = 0  # of a ranking; 0 when none is asked for
    distinct: bool = False
    conditions: list[Condition] = field(default_factory=list)
    matched: int = 0  # names of table, columns and values found
    by_noun: bool = False  # the question names this table
