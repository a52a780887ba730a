"""A model's query held against the cells: its texts become the cells they mean, text is ordered by the numbers in it.

Small models know the form of SQL better than the table: they write 'Ford Sierra' where the cells say "Ford Sierra RS500", name the
wrong column, order "10th" before "9th", ask for the year of a number. All that is mended in the syntax tree, and told.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hybrid_rag.errors import SqlRejectedError
from hybrid_rag.question_cells import meant, nearest
from hybrid_rag.question_words import MONTHS, stems
from hybrid_rag.records import TableCard, TableColumn
from hybrid_rag.table_sql import expression, nodes, statement, tree_of
from hybrid_rag.tables import RAW, ROW, TOTALS, q

Cells = Callable[[TableCard, TableColumn], Sequence[str]]  # the different cells of a column as written; none when there are too many
SHOWN_CELLS = 6  # of a column that does not hold a text
LONGEST_SHOWN = 40  # characters of each
NUMBERED = 0.5  # of a text column's different cells that must begin with a number for it to be ordered by numbers
_EQUAL, _UNEQUAL = "COMPARE_EQUAL", "COMPARE_NOTEQUAL"
_ORDERED = ("COMPARE_LESSTHAN", "COMPARE_GREATERTHAN", "COMPARE_LESSTHANOREQUALTO", "COMPARE_GREATERTHANOREQUALTO")
_LIKE = ("~~", "~~*", "!~~", "!~~*", "like_escape", "ilike_escape")
_AGGREGATES = frozenset("sum avg mean median count count_star max min arg_max arg_min".split())
_FOLDING = ("lower", "upper", "trim", "lcase", "ucase")
_NUMBER = r"[-−+]?\d+(?:[.,]\d+)*"
_MONTH = re.compile(rf"\b(?:{'|'.join(m[:3] for m in MONTHS)})", re.IGNORECASE)
_DURATION = r"\d+(?::\d{1,2}){1,2}(?:\.\d+)?"


@dataclass(frozen=True, slots=True)
class Mended:
    """A statement that means what was meant. ``changes``: what was changed; ``unknown``: texts that no cell holds; both in words."""

    sql: str
    changes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def mended(sql: str, cards: Sequence[TableCard], cells: Cells) -> Mended:
    """Raises SqlRejectedError for what is no SELECT or lists a whole table; everything else is judged when it runs."""
    tree = tree_of(sql)
    if _is_dump(tree):
        raise SqlRejectedError("The query only lists the whole table.", "Select the column that answers.")
    mender = _Mender(cards, cells)
    before = copy.deepcopy(tree)
    mender.mend(tree)
    unknown = tuple(dict.fromkeys(mender.unknown))
    if tree == before:
        return Mended(sql, (), unknown)
    return Mended(statement(tree), tuple(dict.fromkeys(mender.changes)), unknown)


class _Mender:
    def __init__(self, cards: Sequence[TableCard], cells: Cells) -> None:
        self._cards, self._cells = cards, cells
        self.changes: list[str] = []
        self.unknown: list[str] = []

    def mend(self, tree: Any) -> None:
        used = {str(n.get("table_name", "")).casefold() for n in nodes(tree) if n.get("type") == "BASE_TABLE"}
        self._here = [card for card in self._cards if card.name.casefold() in used]
        if not self._here:
            return
        self._names(tree)
        selected = [(entry, name) for node in nodes(tree) for entry in node.get("select_list") or () if (name := _called(entry))]
        self._conditions(tree)
        for node in list(nodes(tree)):
            if node.get("type") == "SELECT_NODE":
                self._totals(node)
        for entry, name in selected:
            if not entry.get("alias") and _called(entry) != name:
                entry["alias"] = name  # the result's column keeps the name that was asked for

    def _conditions(self, tree: Any) -> None:
        for node in list(nodes(tree)):
            kind = node.get("type")
            if kind in (_EQUAL, _UNEQUAL, *_ORDERED):
                self._comparison(node)
            elif kind == "COMPARE_IN":
                self._listed(node)
            elif kind == "COMPARE_BETWEEN":
                self._between(node)
            elif kind == "CONJUNCTION_AND":
                self._at_once(node)
            elif kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
                self._missing(node)
            elif kind == "FUNCTION":
                self._function(node)
            elif kind == "ORDER_MODIFIER":
                for order in node.get("orders", ()):
                    self._number(order, "expression")

    def _totals(self, node: dict[str, Any]) -> None:
        """Records that add the others up are left out of what is counted, added up or put in order, unless they are asked for."""
        table = node.get("from_table") or {}
        card = next(
            (c for c in self._here if table.get("type") == "BASE_TABLE" and c.name == str(table.get("table_name")).casefold()), None
        )
        if card is None or not card.total_rows:
            return
        where = node.get("where_clause")
        named = {ROW in n["column_names"] for n in nodes(node) if n.get("type") == "COLUMN_REF"}
        wanted = {text.casefold().strip("% ") for n in nodes(where) if (text := _text(n)) is not None}
        functions = {str(n.get("function_name")).casefold() for n in nodes(node["select_list"]) if n.get("type") == "FUNCTION"}
        ordered = any(m.get("type") == "ORDER_MODIFIER" for m in node.get("modifiers") or ())
        if True in named or wanted & set(TOTALS) or not (ordered or functions & _AGGREGATES):
            return
        condition = expression(f"{q(ROW)} NOT IN ({', '.join(map(str, card.total_rows))})")
        if where:
            both = expression("x AND y")
            both["children"] = [where, condition]
        node["where_clause"] = both if where else condition
        several = len(card.total_rows) > 1
        self.changes.append(
            f"{'Records that add' if several else 'The record that adds'} others up {'were' if several else 'was'} left out."
        )

    # ------------------------------------------------------------ columns

    def _column(self, node: Any) -> tuple[TableCard, TableColumn] | None:
        """The column that a node names; letters folded or spaces cut off around it do not matter."""
        while isinstance(node, dict) and node.get("type") == "FUNCTION" and node.get("function_name") in _FOLDING:
            node = node["arguments"][0]["expression"]
        if not isinstance(node, dict) or node.get("type") != "COLUMN_REF":
            return None
        name = str(node["column_names"][-1]).casefold()
        found = [(card, c) for card in self._here for c in card.columns if c.name == name]
        return found[0] if len(found) == 1 else None

    def _names(self, tree: Any) -> None:
        """A column that does not exist, as the one whose name is nearly the same."""
        known = {c.name for card in self._here for c in card.columns}
        known |= {c.name + RAW for card in self._here for c in card.columns} | {ROW}
        aliases = {str(n.get("alias", "")).casefold() for n in nodes(tree)}
        for node in nodes(tree):
            if node.get("type") != "COLUMN_REF":
                continue
            name = str(node["column_names"][-1]).casefold()
            if name in known or name in aliases or (len(self._here) != 1 and len(node["column_names"]) > 1):
                continue
            wanted = set(stems(name))
            close = [c for c in known if set(stems(c)) == wanted]
            close = close or [c for c in known if wanted and wanted <= set(stems(c)) and not c.endswith(RAW)]
            close = close if len(close) == 1 else [c for c in [nearest(name, known)] if c]
            if not close:
                self.unknown.append(f"There is no column {name}; all records may be about it.")
            else:
                node["column_names"] = [*node["column_names"][:-1], close[0]]
                self.changes.append(f"There is no column {name}; {close[0]} was taken.")

    def _of(self, card: TableCard, column: TableColumn) -> Sequence[str]:
        return [cell for cell in self._cells(card, column) if cell.strip()]

    # ------------------------------------------------------------ texts

    def _comparison(self, node: dict[str, Any]) -> None:
        left, right = node["left"], node["right"]
        if _text(left) is not None and _text(right) is None:
            if node["type"] not in (_EQUAL, _UNEQUAL):
                return
            left, right = right, left
        found, text = self._column(left), _text(right)
        if found is None:
            return
        card, column = found
        if node["type"] in _ORDERED:
            if column.type == "text" and (_is_number(right) or (text is not None and re.fullmatch(_NUMBER, text))):
                self._number(node, "left" if left is node["left"] else "right")
            return
        if text is None:
            if column.type == "text" and _is_number(right):
                self._numbered(node, card, column, float(right["literal"]["text"]))
            return
        self._texts(node, card, column, [text], node["type"] == _UNEQUAL)

    def _at_once(self, node: dict[str, Any]) -> None:
        """Two values of one column, both at once: no record can have them."""
        seen: dict[str, list[str]] = {}
        for child in node["children"]:
            if child.get("type") == _EQUAL and (found := self._column(child["left"])) and (text := _text(child["right"])) is not None:
                seen.setdefault(found[1].name, []).append(text)
        for name, texts in seen.items():
            if len(set(texts)) > 1:
                listed = " and ".join(f"'{text}'" for text in dict.fromkeys(texts))
                self.unknown.append(f"No record has {listed} in {name} at once: use OR, or a subquery for each.")

    def _missing(self, node: dict[str, Any]) -> None:
        """A text that is NULL is one that the record does not have; people and models mean empty cells as well."""
        column = node["children"][0]
        found = self._column(column)
        if found is not None and found[1].type == "text" and column.get("type") == "COLUMN_REF" and "" in self._cells(*found):
            filled = expression(f"coalesce({q(found[1].name)}, '') {'=' if node['type'] == 'OPERATOR_IS_NULL' else '<>'} ''")
            _become(node, filled)
            self.changes.append(f"An empty {found[1].label} counts as a missing one.")

    def _listed(self, node: dict[str, Any]) -> None:
        found = self._column(node["children"][0])
        texts = [_text(child) for child in node["children"][1:]]
        if found is not None and texts and None not in texts:
            self._texts(node, *found, texts, False)

    def _texts(self, node: dict[str, Any], card: TableCard, column: TableColumn, texts: Sequence[str], negated: bool) -> None:
        """Texts that a column is compared with become cells, of another column when only that one has them."""
        if column.type == "boolean" or (column.type != "text" and all(_castable(t, column) for t in texts)):
            return
        own = self._of(card, column)
        parts = [meant(text, own) for text in texts]
        place = column
        if not all(part is not None and (part.sure or len(part.cells) > 1) for part in parts):
            others = [
                (c, some)
                for c in card.columns
                if c is not column and c.type == "text" and all(some := [meant(t, self._of(card, c), whole=True) for t in texts])
            ]
            if len(others) == 1:
                place, parts = others[0]
        if None in parts:
            if own:
                self.unknown += [_not_found(text, column, own) for text, part in zip(texts, parts, strict=True) if part is None]
            return
        chosen = tuple(dict.fromkeys(cell for part in parts for cell in part.cells))
        if place is column and column.type == "text" and set(chosen) == set(texts):
            return
        name = q(place.name if place.type == "text" else place.name + RAW)
        listed = ", ".join("'" + c.replace("'", "''") + "'" for c in chosen)
        _become(node, expression(f"{name} {'NOT ' if negated else ''}IN ({listed})"))
        shown = ", ".join(f"“{c}”" for c in chosen[:4]) + (" …" if len(chosen) > 4 else "")
        self.changes.append(f"{' and '.join(f'“{t}”' for t in texts)} was read as {place.label}: {shown}.")

    def _numbered(self, node: dict[str, Any], card: TableCard, column: TableColumn, number: float) -> None:
        """A number that a column of text is compared with, as "1" with "1st"."""
        if (sql := self._as_number(card, column)) is not None:
            sign = "=" if node["type"] == _EQUAL else "<>"
            _become(node, expression(f"{sql} {sign} {number:.15g}"))
            self.changes.append(f"{column.label} was read by the numbers in it.")

    def _like(self, node: dict[str, Any]) -> None:
        """Patterns without regard to case; of a column that is typed, over its cells as written; a text that no cell holds, as above."""
        arguments = node["arguments"]
        found, pattern = self._column(arguments[0]["expression"]), _text(arguments[1]["expression"])
        if found is None or pattern is None:
            return
        card, column = found
        if column.type == "boolean":
            return
        negated = node["function_name"].startswith("!")
        core = pattern.strip("%").strip()
        own = self._of(card, column)
        found_cells = _matching(pattern.casefold(), own, fold=True)
        if column.type == "text" and found_cells and found_cells == _matching(pattern, own):
            return
        if core and not found_cells and own:
            before, unknown = copy.deepcopy(node), len(self.unknown)
            self._texts(node, card, column, [core], negated)
            if node != before:
                return
            self.unknown[unknown:] = [_not_found(core, column, own)]
            others = [c for c in card.columns if c.type == "text" and any(core.casefold() in cell.casefold() for cell in self._of(card, c))]
            if len(others) == 1:
                column = others[0]
                self.unknown.pop()
                self.changes.append(f"“{core}” was looked for in {column.label}.")
        name = q(column.name if column.type == "text" else column.name + RAW)
        quoted = pattern.replace("'", "''")
        _become(node, expression(f"{name} {'NOT ' if negated else ''}ILIKE '{quoted}'"))

    # ------------------------------------------------------------ numbers

    def _between(self, node: dict[str, Any]) -> None:
        if _is_number(node["lower"]) and _is_number(node["upper"]):
            self._number(node, "input")

    def _function(self, node: dict[str, Any]) -> None:
        name, arguments = str(node.get("function_name", "")).casefold(), node.get("arguments") or []
        if name == "-" and len(arguments) == 2 and (column := self._column(arguments[0]["expression"])) is not None:
            if self._column(arguments[1]["expression"]) == column:
                self.unknown.append(f"{column[1].name} - {column[1].name} is always 0: use a subquery for each record.")
            return
        if name in _LIKE and len(arguments) >= 2:
            self._like(node)
            return
        found = self._column(arguments[0]["expression"]) if arguments else None
        if found is None:
            return
        card, column = found
        if name in ("sum", "avg", "mean", "median") and column.type == "text":
            self._number(arguments[0], "expression")
        elif name in ("max", "min") and column.type == "text" and (sql := self._as_number(card, column)) is not None:
            _become(node, expression(f"arg_{name}({q(column.name)}, {sql})"))
            self.changes.append(f"{column.label} was ordered by the numbers in it.")
        elif name == "year" and column.type == "integer":
            _become(node, expression(q(column.name)))
        elif name == "year" and column.type == "text":
            _become(node, expression(f"try_cast(regexp_extract({q(column.name)}, '(1[0-9]|20)[0-9]{{2}}') AS BIGINT)"))
            self.changes.append(f"The year was read from {column.label}.")

    def _number(self, holder: dict[str, Any], key: str) -> None:
        """Order and compare a column of text by the numbers that its cells begin with, where most do."""
        found = self._column(holder[key])
        if found is not None and found[1].type == "text" and (sql := self._as_number(*found)) is not None:
            holder[key] = expression(sql)
            self.changes.append(f"{found[1].label} was ordered by the numbers in it.")

    def _as_number(self, card: TableCard, column: TableColumn) -> str | None:
        """SQL for the number, or the seconds of a duration, that a cell begins with; None when too few cells do."""
        cells = self._of(card, column)
        bare = [re.sub(r"^[^\w+−-]+", "", cell) for cell in cells]
        if any(map(_MONTH.search, bare)):
            return None  # "4 May" is not ordered by its day
        name = q(column.name)
        if sum(bool(re.fullmatch(_DURATION, cell.strip())) for cell in bare) > NUMBERED * len(bare):
            parts = f"list_reverse(string_split(regexp_extract({name}, '[0-9]+(:[0-9]+)+(\\.[0-9]+)?'), ':'))"
            return f"list_sum(list_transform({parts}, lambda p, i: try_cast(p AS DOUBLE) * pow(60, i - 1)))"
        if sum(bool(re.match(_NUMBER + r"(?!\d*[-/–]\d)", cell)) for cell in bare) > NUMBERED * len(bare):
            return f"try_cast(replace(replace(regexp_extract({name}, '[-−+]?[0-9][0-9,]*(\\.[0-9]+)?'), ',', ''), '−', '-') AS DOUBLE)"
        return None


def _is_dump(tree: Any) -> bool:
    """ "SELECT * FROM t", without a condition and without an end."""
    node = tree["statements"][0]["node"] if tree.get("statements") else {}
    if node.get("type") != "SELECT_NODE" or (node.get("from_table") or {}).get("type") != "BASE_TABLE":
        return False
    bounded = node.get("where_clause") or any(
        m.get("type") in ("LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER") for m in node.get("modifiers") or ()
    )
    return not bounded and any(entry.get("type") == "STAR" for entry in node["select_list"])


def _matching(pattern: str, cells: Sequence[str], *, fold: bool = False) -> list[str]:
    """The cells that a pattern of LIKE matches."""
    regex = re.compile("".join({"%": ".*", "_": "."}.get(c) or re.escape(c) for c in pattern), re.DOTALL)
    return [cell for cell in cells if regex.fullmatch(cell.casefold() if fold else cell)]


def _called(entry: Any) -> str:
    """A selected function of one column, as it is written."""
    if not isinstance(entry, dict) or entry.get("type") != "FUNCTION" or len(entry.get("arguments") or ()) != 1:
        return ""
    argument = entry["arguments"][0]["expression"]
    return f"{entry['function_name']}({argument['column_names'][-1]})" if argument.get("type") == "COLUMN_REF" else ""


def _not_found(text: str, column: TableColumn, cells: Sequence[str]) -> str:
    shown = ", ".join(f"'{c[:LONGEST_SHOWN]}'" for c in cells[:SHOWN_CELLS])
    return f"No cell of {column.name} is like '{text}'; its cells: {shown}{', …' if len(cells) > SHOWN_CELLS else '.'}"


def _text(node: Any) -> str | None:
    """The text of a constant, letters folded around it or not."""
    while isinstance(node, dict) and node.get("type") == "FUNCTION" and node.get("function_name") in _FOLDING:
        node = node["arguments"][0]["expression"]
    literal = node.get("literal") if isinstance(node, dict) and node.get("type") == "VALUE_CONSTANT" else None
    return str(literal["text"]) if isinstance(literal, dict) and literal.get("kind") == "STRING" else None


def _is_number(node: Any) -> bool:
    literal = node.get("literal") if isinstance(node, dict) and node.get("type") == "VALUE_CONSTANT" else None
    return (
        isinstance(literal, dict)
        and bool(re.fullmatch(r"-?\d+(?:\.\d+)?", str(literal.get("text", ""))))
        and literal.get("kind") != "STRING"
    )


def _castable(text: str, column: TableColumn) -> bool:
    if column.type in ("date", "datetime"):
        return bool(re.fullmatch(r"\d{4}-\d{2}-\d{2}(?:[ T].*)?", text.strip()))
    return bool(re.fullmatch(r"[-+]?\d+(?:\.\d+)?", text.strip()))


def _become(node: dict[str, Any], other: dict[str, Any]) -> None:
    alias = node.get("alias", "")
    node.clear()
    node.update(other)
    node["alias"] = alias
