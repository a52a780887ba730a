"""Rankings into one ranking, and places of one list for two kinds. Pure functions over (item, score) lists, best first.

``combine`` is a convex combination of scores, each leg stretched to 0..1 (Bruch, Gai and Ingber, "An analysis of fusion
functions for hybrid retrieval", 2023); ``mix`` adds a cross-encoder's view in the same way; ``fuse`` is reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).
Why scores: docs/retrieval.md.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

Item = TypeVar("Item", bound=Hashable)

CLASSIC_K = 60
LOGIT_BOUND = 11.0  # of cross-encoders trained on MS MARCO: what is certain lies about there
WEAK = 0.5  # a kind whose best evidence is below this share of the other's gets no place while the other has hits


def combine(legs: Sequence[Sequence[tuple[Item, float]]], weights: Sequence[float], floors: Sequence[float]) -> list[tuple[Item, float]]:
    """Items by falling sum of weight times the leg's score stretched from its floor (0) to its best (1); ties by item.

    A floor is the score that stands for "not found": an item that a leg does not have gets nothing from it.
    """
    scores: dict[Item, float] = {}
    for leg, weight, floor in zip(legs, weights, floors, strict=True):
        if not leg or weight <= 0:
            continue
        span = leg[0][1] - floor
        for item, score in leg:
            scores[item] = scores.get(item, 0.0) + weight * (max(0.0, score - floor) / span if span > 0 else 1.0)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))  # type: ignore[type-var]


def mix(scores: Sequence[float], logits: Sequence[float], share: float) -> list[tuple[int, float]]:
    """(place in ``scores`` from 0, mixed score) of the first hits by falling mixed score, when a cross-encoder has read them.

    ``scores``: fused, in the hits' order, which they need not follow: a hit counts as much as the best behind it. ``logits``
    within LOGIT_BOUND become 0..1. A cross-encoder that is sure moves a hit far, one to which all are alike moves none.
    """
    risen: list[float] = []
    for score in reversed(scores):
        risen.append(max(score, risen[-1] if risen else 0.0))
    top = risen[-1] if risen else 0.0
    bases = [score / top if top > 0 else 1.0 for score in reversed(risen)]
    shares = [min(1.0, max(0.0, (logit + LOGIT_BOUND) / (2 * LOGIT_BOUND))) for logit in logits]
    mixed = [(place, (1 - share) * base + share * value) for place, (base, value) in enumerate(zip(bases, shares, strict=True))]
    return sorted(mixed, key=lambda item: (-item[1], item[0]))


def reciprocal_ranks(rankings: Sequence[Sequence[Item]], weights: Sequence[float], *, k: int) -> dict[Item, float]:
    """Score of each item: the sum over rankings of weight / (k + rank), ranks from 1. Items in order of first appearance."""
    scores: dict[Item, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + weight / (k + rank)
    return scores


def fuse(rankings: Sequence[Sequence[Item]], weights: Sequence[float], *, k: int) -> list[tuple[Item, float]]:
    """Items by falling score; ties by the item itself. A ranking of weight 0 gives no items."""
    used = [(r, w) for r, w in zip(rankings, weights, strict=True) if w > 0]
    scores = reciprocal_ranks([r for r, _ in used], [w for _, w in used], k=k)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))  # type: ignore[type-var]


def fuse_classic(rankings: Sequence[Sequence[Item]], weights: Sequence[float]) -> list[tuple[Item, float]]:
    """As LangChain's EnsembleRetriever: k = 60, ties in order of first appearance."""
    scores = reciprocal_ranks(rankings, weights, k=CLASSIC_K)
    return sorted(scores.items(), key=lambda item: -item[1])


def evidence(best: Mapping[str, float], overall: float, floor: float = 0.0) -> dict[str, float]:
    """Each kind's best score as a share, 0..1, of the best of all, above a floor that a chance hit reaches too."""
    span = overall - floor
    return {kind: max(0.0, min(1.0, (score - floor) / span)) if span > 0 else 0.0 for kind, score in best.items()}


def places(strengths: Mapping[str, float], weights: Mapping[str, float], lengths: Mapping[str, int]) -> Iterator[str]:
    """Which kind gets each place, one after another, until all hits have theirs.

    The first goes to the strongest evidence. The others by the highest quotient of weight times strength and places
    already held (D'Hondt's method): .4 and .6 at equal strength give two and three of five. A kind much weaker than
    the other waits until the other has no more hits; a kind of weight 0 gets none.
    """
    live = {kind: strength for kind, strength in strengths.items() if weights[kind] > 0 and lengths[kind]}
    top = max(live.values(), default=0.0)
    strong = {kind for kind, strength in live.items() if strength >= WEAK * top}
    held = dict.fromkeys(live, 0)
    while free := [kind for kind in live if held[kind] < lengths[kind]]:
        free = [kind for kind in free if kind in strong] or free
        if any(held.values()):
            chosen = max(free, key=lambda kind: (weights[kind] * max(live[kind], 1e-9) / (held[kind] + 1), weights[kind], kind))
        else:
            chosen = max(free, key=lambda kind: (live[kind], weights[kind], kind))
        held[chosen] += 1
        yield chosen
