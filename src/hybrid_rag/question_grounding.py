"""Is what a query asks for in the question? Small models copy cells of the records they are shown into conditions that nobody asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hybrid_rag.analysis import normalise
from hybrid_rag.errors import TableError
from hybrid_rag.question_cells import nearest
from hybrid_rag.question_words import MONTHS, Word, is_filler, stem, stems, words_of
from hybrid_rag.table_sql import columns_in, nodes, statement, tree_of

SHORTEST_SHARED = 4  # letters with which two words begin that can be forms of one: "Canada", "Canadian"
SHORT = 2  # letters of a cell that may stand for a word of the question: "W" for "won"
_CONDITIONS = frozenset(
    "COMPARE_EQUAL COMPARE_NOTEQUAL COMPARE_LESSTHAN COMPARE_GREATERTHAN COMPARE_LESSTHANOREQUALTO COMPARE_GREATERTHANOREQUALTO "
    "COMPARE_IN COMPARE_NOT_IN COMPARE_BETWEEN COMPARE_DISTINCT_FROM COMPARE_NOT_DISTINCT_FROM".split()
)
_PATTERNS = frozenset("~~ ~~* !~~ !~~* like_escape ilike_escape not_like_escape not_ilike_escape contains starts_with ends_with".split())
_NEGATIONS = frozenset(
    "COMPARE_NOTEQUAL COMPARE_NOT_IN COMPARE_DISTINCT_FROM OPERATOR_NOT !~~ !~~* not_like_escape not_ilike_escape".split()
)
_NEGATIVE = frozenset(
    "not no never none nor neither without except excluding excluded besides apart other others another but different outside cannot rather "
    "unlike only non rest remaining".split()
)
_NEGATIVE_STARTS = ("un", "non", "dis")  # "unfinished"
_KINDS = ("STRING", "INTEGER", "NUMERIC")
_FREE = frozenset(("", "yes", "no", "true", "false"))
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "percent": 1e-2, "%": 1e-2}
_PART = re.compile(r"\d+(?:\.\d+)?")


def invented(sql: str, question: str, synonyms: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Texts and numbers of the query's conditions for which no word of the question stands, as they are written.

    A condition that is turned round ("<>", "NOT") counts as a text, "not", unless a word of the question does so.
    A text stands for a question that has one of its words, in whatever form or spelling, or a number of it; a number for one that has it
    in digits or letters, in a decade, or as a month. 0 and 1 are always allowed. What cannot be parsed holds nothing.
    """
    try:
        tree = tree_of(sql)
    except TableError:
        return ()
    asked = _Asked(question, synonyms)
    strange = [text for text, is_text in _constants(tree) if not asked.has(text, is_text)]
    if not asked.turns_round and any(map(_turned_round, nodes(tree))):
        strange.append("not")
    return tuple(dict.fromkeys(strange))


def without(sql: str, question: str, synonyms: Mapping[str, Sequence[str]]) -> str | None:
    """The query without the conditions that the question does not have; None when they do not stand by themselves."""
    tree, asked = tree_of(sql), _Asked(question, synonyms)

    def strange(condition: Any) -> bool:
        constants = list(_constants(condition))
        return bool(constants) and not any(asked.has(text, is_text) for text, is_text in constants)

    for node in list(nodes(tree)):
        clause = node.get("where_clause")
        if not isinstance(clause, dict):
            continue
        kept = clause["children"] if clause.get("type") == "CONJUNCTION_AND" else [clause]
        kept = [child for child in kept if not strange(child)]
        node["where_clause"] = clause | {"children": kept} if len(kept) > 1 else next(iter(kept), None)
    less = statement(tree)
    return less if not invented(less, question, synonyms) else None


def said(sql: str, question: str) -> frozenset[str]:
    """Stems of the question's words for which the query has a column, or a constant in a condition."""
    try:
        constants, columns = list(_constants(tree_of(sql))), columns_in(sql)
    except TableError:
        return frozenset()
    there = {w.stem for text, _ in constants for w in words_of(text)} | {part for name in columns for part in stems(name)}
    return frozenset(w.stem for w in words_of(question) if not is_filler(w)) & there


def _turned_round(node: dict[str, Any]) -> bool:
    if (node.get("function_name") if node.get("type") == "FUNCTION" else node.get("type")) not in _NEGATIONS:
        return False
    constants = list(_constants(node))
    return bool(constants) and any(text.strip("% ") for text, _ in constants)


def _constants(tree: Any) -> Iterator[tuple[str, bool]]:
    """(constant, is it a text) of the comparisons, lists and patterns, in no particular order."""
    for node in nodes(tree):
        if node.get("type") in _CONDITIONS:
            operands = [node.get(name) for name in ("left", "right", "lower", "upper")] + list(node.get("children") or ())
        elif node.get("type") == "FUNCTION" and node.get("function_name") in _PATTERNS:
            operands = [argument.get("expression") for argument in node.get("arguments") or ()]
        else:
            continue
        yield from (found for operand in operands if (found := _constant(operand)) is not None)


def _constant(node: Any) -> tuple[str, bool] | None:
    while isinstance(node, dict) and (node.get("type") == "OPERATOR_CAST" or node.get("type") == "FUNCTION"):
        inner = [node["child"]] if "child" in node else [a["expression"] for a in node.get("arguments") or ()]
        if len(inner) != 1:
            return None
        node = inner[0]
    literal = node.get("literal") if isinstance(node, dict) and node.get("type") == "VALUE_CONSTANT" else None
    if not isinstance(literal, dict) or literal.get("kind") not in _KINDS:
        return None
    return str(literal["text"]), literal.get("kind") == "STRING"


class _Asked:
    """The words and numbers of a question."""

    def __init__(self, question: str, synonyms: Mapping[str, Sequence[str]]) -> None:
        words = words_of(question)
        self._words = [w for w in words if not is_filler(w)]
        self.turns_round = any(
            w.plain in _NEGATIVE or w.plain.startswith(_NEGATIVE_STARTS) or re.search(r"n['’]t$", w.plain) for w in words
        )
        self._stems = {w.stem for w in words}
        self._stems |= {stem(w.plain.removeprefix(start)) for w in words for start in _NEGATIVE_STARTS if w.plain.startswith(start)}
        self._plain = {w.plain for w in words}
        self._synonyms = {normalise(name): tuple(others) for name, others in synonyms.items()}
        numbers = {n for w in words for n in (w.number, w.ordinal) if n is not None}
        numbers |= {float(n) for w in words for n in _PART.findall(w.plain)}
        numbers |= {float(i) for i, month in enumerate(MONTHS, start=1) if any(p == month or p == month[:3] for p in self._plain)}
        scales = [scale for word, scale in _SCALES.items() if word in self._plain]
        numbers |= {n * scale for n in numbers for scale in scales} | set(scales)
        decades = {float(n) for w in words for n in re.findall(r"(\d+0)['’]?s$", w.plain)}
        self._numbers = numbers | {n + i for n in decades for i in range(11)} | {0.0, 1.0}

    def has(self, text: str, is_text: bool) -> bool:
        if not is_text:
            return self._has_number(text)
        core = text.strip().strip("%").strip()
        if normalise(core) in _FREE:
            return True
        words = words_of(core)
        if any(self._has_number(n) for n in _PART.findall(core) if float(n) not in (0.0, 1.0)):
            return True
        if not [w for w in words if not is_filler(w)]:
            return not words or any(w.stem in self._stems for w in words)
        others = [w for other in self._synonyms.get(normalise(core), ()) for w in words_of(other)]
        return any(self._has_word(w) for w in (*words, *others) if not is_filler(w)) or self._has_initials(core)

    def _has_number(self, text: str) -> bool:
        try:
            wanted = abs(float(text))
        except ValueError:
            return False
        return any(abs(wanted - n) < 1e-9 * max(1.0, n) for n in self._numbers)

    def _has_word(self, word: Word) -> bool:
        if word.stem in self._stems:
            return True
        if len(word.plain) <= SHORT:
            return any(w.plain.startswith(word.plain) for w in self._words)
        start = word.plain[:SHORTEST_SHARED]
        if len(start) == SHORTEST_SHARED and any(w.plain.startswith(start) for w in self._words):
            return True
        return nearest(word.stem, self._stems) is not None

    def _has_initials(self, text: str) -> bool:
        """ "USA" of a question about the United States of America; "NY" of one about New York."""
        letters = re.sub(r"[\W\d_]", "", normalise(text))
        starts = "".join(w.plain[0] for w in self._words)
        return 2 <= len(letters) <= 5 and (letters in starts or (letters[:-1] in starts and len(letters) > 2))
