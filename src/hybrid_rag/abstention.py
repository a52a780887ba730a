"""When not to answer: decided before anything is generated, by the cross-encoder and by the question's own words.

The thresholds belong to the bundled cross-encoder. The rule finds questions that the documents do not touch; it cannot
tell an unanswerable question on a topic that they do cover.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from hybrid_rag.analysis import Analyzer, normalise

CHUNKS_LOOKED_AT = 3
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
_IDENTIFIER = re.compile(r"\b(?=[\w./-]*\d)(?=[\w./-]*[A-Za-z])\w+(?:[-./]\w+)+\b|\b[A-Z]{2,}\d{3,}\b")
_WORD = re.compile(r"[^\W_][\w'’.-]*[^\W_]|[^\W_]")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Of the bundled cross-encoder; another one has its own. As `answers` in the configuration."""

    abstain_below: float = -5.0  # logit
    support_below: float = 2.0  # logit
    coverage_from: float = 0.4  # share, 0..1


def unanswerable(question: str, logits: Sequence[float], best_text: str, covered: float, thresholds: Thresholds) -> bool:
    """True when nothing found answers the question.

    ``logits``: of the first chunks, cross-encoder; ``best_text``: the chunk of the highest; ``covered``: :func:`coverage` by it.
    Abstains below ``abstain_below``; and below ``support_below`` when less than ``coverage_from`` of the question's words, or
    not its names and numbers, stand there.
    """
    best = max(logits[:CHUNKS_LOOKED_AT], default=float("-inf"))
    if best < thresholds.abstain_below:
        return True
    return best < thresholds.support_below and (covered < thresholds.coverage_from or not names_supported(question, best_text))


def weights(question: str, analyzer: Analyzer, frequency: Callable[[str], int], total: int) -> dict[str, float]:
    """The question's terms, function words left out, and what each counts: log(1 + N / (1 + n)), for n of N chunks hold it."""
    return {term: math.log(1 + total / (1 + frequency(term))) for term, _ in analyzer.query(question).terms}


def coverage(wanted: Mapping[str, float], terms: Collection[str]) -> float:
    """Share of the weight of the question's terms that is among a text's; 1 for a question without terms."""
    return sum(weight for term, weight in wanted.items() if term in terms) / total if (total := sum(wanted.values())) else 1.0


def identifiers(question: str) -> list[str]:
    """Words like WC-2024-00318 or SUP-88213, folded: whoever asks for one wants that one and no other."""
    return [normalise(found) for found in _IDENTIFIER.findall(question)]


def names_supported(question: str, text: str) -> bool:
    """Half of the capitalised or numeric words of the question, and every number of it, stand in the text."""
    folded = normalise(text)
    numbers = [normalise(n) for n in _NUMBER.findall(question)]
    if any(number not in folded for number in numbers):
        return False
    names = [
        normalise(w).removesuffix("'s")
        for i, w in enumerate(_WORD.findall(question))
        if i and (w[0].isupper() or w[0].isdigit()) and w != "I"
    ]
    return not names or sum(name in folded for name in names) * 2 >= len(names)
