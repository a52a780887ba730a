"""When not to answer: decided before anything is generated, by the cross-encoder and the question's own names and numbers.

The thresholds belong to the bundled cross-encoder. The rule finds questions that the documents do not touch; it cannot
tell an unanswerable question on a topic that they do cover.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hybrid_rag.analysis import normalise

CHUNKS_LOOKED_AT = 3
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
_IDENTIFIER = re.compile(r"\b(?=[\w./-]*\d)(?=[\w./-]*[A-Za-z])\w+(?:[-./]\w+)+\b|\b[A-Z]{2,}\d{3,}\b")
_WORD = re.compile(r"[^\W_][\w'’.-]*[^\W_]|[^\W_]")


def unanswerable(question: str, logits: Sequence[float], best_text: str, *, abstain_below: float, support_below: float) -> bool:
    """True when nothing found answers the question.

    ``logits``: of the first chunks, cross-encoder; ``best_text``: the chunk of the highest. Abstains below
    ``abstain_below``, and below ``support_below`` when the question's names and numbers are not in ``best_text``.
    """
    best = max(logits[:CHUNKS_LOOKED_AT], default=float("-inf"))
    if best < abstain_below:
        return True
    return best < support_below and not names_supported(question, best_text)


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
