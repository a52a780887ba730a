"""Percentiles of times, the same wherever they are shown."""

from __future__ import annotations

from collections.abc import Sequence


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Of values in rising order, between the two nearest by linear interpolation (Hyndman and Fan's type 7, as numpy has it by
    default); ``percent`` is 0..100. 0 when there are no values."""
    if not ordered:
        return 0.0
    place = (len(ordered) - 1) * percent / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
