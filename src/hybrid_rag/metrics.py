"""Measures of a ranking against what is relevant: binary relevance, unit ids best first, ranks from 1.

nDCG after Järvelin and Kekäläinen (2002) with the discount 1 / log2(rank + 1).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence


def ndcg(ranking: Sequence[str], relevant: Collection[str], k: int = 10) -> float:
    """Discounted gain of the first k over that of the best possible order, 0..1; 0 when nothing is relevant."""
    gain = sum(1 / math.log2(rank + 1) for rank, unit in enumerate(ranking[:k], start=1) if unit in relevant)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(relevant)) + 1))
    return gain / best if best else 0.0


def reciprocal_rank(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """1 / rank of the first relevant unit; 0 when there is none."""
    return next((1 / rank for rank, unit in enumerate(ranking, start=1) if unit in relevant), 0.0)


def hit(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """1 when a relevant unit is among the first k, else 0."""
    return float(any(unit in relevant for unit in ranking[:k]))


def recall(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Share of the relevant units that are among the first k; 0 when nothing is relevant."""
    return len(set(ranking[:k]) & set(relevant)) / len(relevant) if relevant else 0.0


def unique(units: Sequence[str]) -> list[str]:
    """The units in order, each at its first place: chunks of one file count once."""
    return list(dict.fromkeys(units))
