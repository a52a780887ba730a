"""Measures of a ranking against what is relevant: unit ids best first, ranks from 1; and intervals by the bootstrap.

Relevance is a collection of units (binary) or a mapping unit -> gain above 0. nDCG after Järvelin and Kekäläinen (2002), with
linear gain and the discount 1 / log2(rank + 1), as trec_eval computes it. The bootstrap (Efron, 1979) draws questions with
replacement; its interval is that of the percentiles of the means.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

RESAMPLES = 2000
LEVEL = 0.95  # of the intervals


def ndcg(ranking: Sequence[str], relevant: Collection[str] | Mapping[str, float], k: int = 10) -> float:
    """Discounted gain of the first k over that of the best possible order, 0..1; 0 when nothing is relevant."""
    gains = relevant if isinstance(relevant, Mapping) else dict.fromkeys(relevant, 1.0)
    gain = sum(gains.get(unit, 0.0) / math.log2(rank + 1) for rank, unit in enumerate(ranking[:k], start=1))
    best = sum(value / math.log2(rank + 1) for rank, value in enumerate(sorted(gains.values(), reverse=True)[:k], start=1))
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


# ---------------------------------------------------------------- intervals


def interval(values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> tuple[float, float]:
    """The bootstrap interval of the mean of the values, one a question, at LEVEL. The same seed gives the same interval.

    Of differences between two systems on the same questions it is the paired bootstrap: a difference is more than chance
    when 0 is outside. (nan, nan) for no values.
    """
    if not len(values):
        return math.nan, math.nan
    held = np.asarray(values, np.float64)
    drawn = np.random.default_rng(seed).integers(0, len(held), size=(resamples, len(held)))
    low, high = np.quantile(held[drawn].mean(axis=1), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
