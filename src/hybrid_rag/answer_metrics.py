"""Measures of an answer against gold answers: exact match and token F1 as SQuAD defines them, containment, values of tables.

Normalisation after Rajpurkar et al. (2016): lower case, no punctuation, no articles, single spaces.
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")


def normalise_answer(text: str) -> str:
    """The text as answers are compared."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, gold: Iterable[str]) -> float:
    """1 when the answer equals one of the gold answers, normalised."""
    found = normalise_answer(answer)
    return float(any(found == normalise_answer(one) for one in gold))


def token_f1(answer: str, gold: Iterable[str]) -> float:
    """The best F1 of common words with a gold answer, 0..1; two texts without words are equal."""
    return max((_f1(normalise_answer(answer).split(), normalise_answer(one).split()) for one in gold), default=0.0)


def _f1(found: Sequence[str], wanted: Sequence[str]) -> float:
    if not found or not wanted:
        return float(list(found) == list(wanted))
    common = sum((Counter(found) & Counter(wanted)).values())
    return 2 * common / (len(found) + len(wanted))


def holds(text: str, gold: Iterable[str]) -> float:
    """1 when the words of a gold answer stand in the text one after the other, normalised."""
    words = f" {normalise_answer(text)} "
    return float(any(one and f" {one} " in words for one in map(normalise_answer, gold)))


def same_value(cell: Any, gold: str) -> bool:
    """Whether a cell of a result is the gold value: numbers to the decimals that the gold has, other values by their text."""
    wanted = _NUMBER.fullmatch(gold.strip().strip("%$€£ "))
    if wanted and (number := _number(cell)) is not None:
        text = wanted.group().replace(",", "")
        decimals = len(text.partition(".")[2])
        return math.isclose(round(number, decimals), float(text), abs_tol=10.0**-decimals / 1000)
    return normalise_answer(str(cell)) == normalise_answer(gold)


def _number(cell: Any) -> float | None:
    if isinstance(cell, bool) or cell is None:
        return None
    if isinstance(cell, (int, float)):
        return float(cell)
    found = _NUMBER.fullmatch(str(cell).strip())
    return float(found.group().replace(",", "")) if found else None
