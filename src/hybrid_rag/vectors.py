"""What a vector index is. The implementations stand beside this file: vectors_exact, vectors_chroma.

A vector index is a copy that can be rebuilt: the truth is a source of vectors (the catalog). Chunks are known here by
their number only, in two collections, one a kind. Vectors are float32 unit rows, scores are cosines (higher is better).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from hybrid_rag.errors import IndexError_
from hybrid_rag.records import Kind

if TYPE_CHECKING:
    import numpy as np

GAP = 128  # rows between two stretches of allowed ones that are looked at in passing: that costs as much as a stretch more
STRETCHES = 2_000  # more of them are looked at in one
DIGITS = 6  # cosines are rounded to it, so that equal vectors tie whatever multiplied them


class VectorsClosed(IndexError_):
    """The vector index was closed under a call. Its owner opens another; nobody else meets this."""

    def __init__(self, message: str = "The vector index is closed.", remedy: str = "") -> None:
        super().__init__(message, remedy)


class VectorSource(Protocol):
    """The truth: ``(numbers int64 (n,), vectors float32 (n, dim))`` of a kind; of all chunks, or of the numbers asked for.

    Numbers without a vector are left out. Any order.
    """

    def __call__(self, kind: Kind, numbers: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]: ...

    def numbers(self, kind: Kind) -> np.ndarray:
        """The chunks of a kind that have a vector: int64, ascending."""
        ...


@dataclass(frozen=True)
class Allowed:
    """Chunks that a filter lets through, made once for many searches. ``numbers``: int64, ascending, each once."""

    numbers: np.ndarray
    _placed: list[tuple[np.ndarray, list[tuple[int, int]], np.ndarray | None]] = field(default_factory=list)

    @classmethod
    def of(cls, numbers: np.ndarray | Allowed) -> Allowed:
        """From chunk numbers in any order."""
        return numbers if isinstance(numbers, Allowed) else cls(ascending(numbers))

    def __len__(self) -> int:
        return len(self.numbers)

    def rows(self, known: np.ndarray) -> tuple[list[tuple[int, int]], np.ndarray | None]:
        """Where they stand in ``known`` (int64, ascending): stretches [start, stop) of it, and which places of all that these
        hold, one after another, are not allowed; None when all are. Kept for the last ``known``.
        """
        for kept, stretches, dropped in self._placed:
            if kept is known:
                return stretches, dropped
        stretches, dropped = _stretches(known, self.numbers)
        self._placed[:] = [(known, stretches, dropped)]
        return stretches, dropped


class VectorIndex(Protocol):
    """One contract over exact search, embedded Chroma and a Chroma server. All calls are thread-safe."""

    def upsert(self, kind: Kind, numbers: Sequence[int], documents: Sequence[int], vectors: np.ndarray) -> None:
        """Put vectors in, replacing those of the same numbers. Zero rows or a wrong width raise ValueError."""
        ...

    def delete(self, kind: Kind, numbers: Sequence[int]) -> None:
        """Take vectors out; unknown numbers are no error."""
        ...

    def count(self, kind: Kind) -> int: ...

    def numbers(self, kind: Kind) -> set[int]:
        """The chunk numbers that have a vector here."""
        ...

    def search(self, kind: Kind, vector: np.ndarray, *, k: int, numbers: np.ndarray | Allowed | None = None) -> list[tuple[int, float]]:
        """The k nearest (chunk number, cosine), best first, ties by number. ``numbers``: only these (sorted or not).

        Never fewer than k when k are allowed. Raises IndexDamagedError when the index cannot be used.
        """
        ...

    def warm(self) -> None:
        """Make ready what the first search needs, so that it is as fast as the others. Raises as a search does."""
        ...

    def reload(self) -> None:
        """Make visible what another process wrote."""
        ...

    def clear(self) -> None:
        """Forget all vectors of this embedder."""
        ...

    def close(self) -> None:
        """Safe while another thread searches; calls after it raise VectorsClosed."""
        ...


def best(numbers: np.ndarray, cosines: np.ndarray, k: int) -> list[tuple[int, float]]:
    """The k highest (number, cosine), ties by number."""
    import numpy as np

    if k <= 0 or not len(numbers):
        return []
    scores = np.round(cosines.astype(np.float64), DIGITS)
    if k < len(scores):
        kept = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
        numbers, scores = numbers[kept], scores[kept]
    order = np.lexsort((numbers, -scores))[:k]
    return [(int(numbers[i]), float(scores[i])) for i in order]


def ascending(numbers: np.ndarray) -> np.ndarray:
    """Chunk numbers as int64, ascending, each once; what is so already is not sorted again."""
    import numpy as np

    given = np.asarray(numbers, np.int64)
    return given if len(given) < 2 or (given[1:] > given[:-1]).all() else np.unique(given)


def _stretches(known: np.ndarray, allowed: np.ndarray) -> tuple[list[tuple[int, int]], np.ndarray | None]:
    """See :meth:`Allowed.rows`."""
    import numpy as np

    good = np.flatnonzero(held(allowed, known)) if len(allowed) else np.zeros(0, np.int64)
    if not len(good):
        return [], None
    breaks = np.flatnonzero(np.diff(good) > GAP)
    if len(breaks) >= STRETCHES:
        breaks = breaks[:0]
    starts, stops = good[np.concatenate([[0], breaks + 1])], good[np.concatenate([breaks, [len(good) - 1]])] + 1
    stretches = list(zip(starts.tolist(), stops.tolist(), strict=True))
    looked_at = np.concatenate([np.arange(start, stop) for start, stop in stretches])
    return stretches, np.flatnonzero(~np.isin(looked_at, good, assume_unique=True)) if len(looked_at) > len(good) else None


def held(allowed: np.ndarray, numbers: Sequence[int]) -> np.ndarray:
    """Which of some numbers are among the allowed ones (ascending): bool (n,)."""
    import numpy as np

    asked = np.asarray(numbers, np.int64)
    if not len(allowed):
        return np.zeros(len(asked), bool)
    return allowed[np.minimum(np.searchsorted(allowed, asked), len(allowed) - 1)] == asked


def checked(numbers: Sequence[int], vectors: np.ndarray, dimensions: int) -> np.ndarray:
    """Vectors as float32 (n, dimensions), every row finite and not zero; else ValueError."""
    import numpy as np

    rows = np.asarray(vectors, np.float32)
    if rows.shape != (len(numbers), dimensions):
        raise ValueError(f"expected {len(numbers)} vectors of {dimensions} dimensions, got an array of shape {rows.shape}")
    norms = np.linalg.norm(rows, axis=1)
    if not (np.isfinite(norms) & (norms > 0)).all():
        bad = int(np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))[0])
        raise ValueError(f"the vector of chunk {numbers[bad]} is zero or not finite")
    return rows
