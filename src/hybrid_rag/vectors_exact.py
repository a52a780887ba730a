"""Exact search in memory: the vectors of a kind, read from the source when first needed, and kept up to date by what has changed.

Used for all collections that are not too large for it (see vectors_chroma_base), where Chroma is switched off, stale or damaged, and in
a process that asks once. A filtered search reads only the allowed vectors, until so many were read that having all of them pays.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hybrid_rag.records import KINDS, Kind
from hybrid_rag.vector_rows import VectorRows
from hybrid_rag.vectors import Allowed, VectorsClosed, VectorSource, best

if TYPE_CHECKING:
    import numpy as np

GATHER = 20_000  # vectors of a kind that are read for single searches, before all of them are
PART = 4_096  # vectors read at a time; what is freed after larger reads stays with the process


class ExactVectors:
    """A :class:`~hybrid_rag.vectors.VectorIndex` that holds nothing of its own: writes go to the source first, then here."""

    def __init__(self, source: VectorSource, *, cold: bool = False) -> None:
        """``cold``: of a process that may ask only once, so that the first search of a kind keeps nothing."""
        self._source, self._cold = source, cold
        self._lock = threading.Lock()
        self._rows: dict[Kind, tuple[np.ndarray, VectorRows]] = {}  # with the numbers that the source held then
        self._numbers: dict[Kind, np.ndarray] = {}  # what the source holds, as of the last change or reload
        self._replaced: dict[Kind, set[int]] = {}  # to be read again
        self._gathered: dict[Kind, int] = {}  # vectors read for single searches since the last change
        self._closed = False

    def upsert(self, kind: Kind, numbers: Sequence[int], documents: Sequence[int], vectors: np.ndarray) -> None:
        """The source already holds these vectors; what was read before is stale."""
        self._changed(kind, numbers)

    def delete(self, kind: Kind, numbers: Sequence[int]) -> None:
        self._changed(kind, numbers)

    def count(self, kind: Kind) -> int:
        return len(self._held(kind))

    def numbers(self, kind: Kind) -> set[int]:
        return set(self._held(kind).tolist())

    def search(self, kind: Kind, vector: np.ndarray, *, k: int, numbers: np.ndarray | Allowed | None = None) -> list[tuple[int, float]]:
        allowed = None if numbers is None else Allowed.of(numbers)
        if self._gathers(kind, None if allowed is None else len(allowed)):
            return self.gather(kind, vector, k, Allowed(self._held(kind)) if allowed is None else allowed)
        return self._all(kind).search(vector, k, allowed)

    def gather(self, kind: Kind, vector: np.ndarray, k: int, allowed: Allowed) -> list[tuple[int, float]]:
        """A search that reads no more than the allowed vectors, some at a time, and keeps none of them."""
        import numpy as np

        self._assert_open()
        found: list[tuple[int, float]] = []
        for start in range(0, len(allowed), GATHER):
            known, vectors = self._source(kind, allowed.numbers[start : start + GATHER])
            if len(known):
                found += best(np.asarray(known, np.int64), vectors @ vector, k)
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:k]

    def warm(self, kinds: Sequence[Kind] = KINDS) -> None:
        for kind in kinds:
            if self.count(kind) and not self._cold:
                self._all(kind)

    def reload(self) -> None:
        with self._lock:
            self._numbers, self._gathered = {}, {}

    def clear(self) -> None:
        with self._lock:
            self._rows, self._numbers, self._gathered, self._replaced = {}, {}, {}, {}

    def close(self) -> None:
        with self._lock:
            self._closed, self._rows = True, {}

    def _changed(self, kind: Kind, numbers: Sequence[int]) -> None:
        with self._lock:
            self._numbers.pop(kind, None)
            self._gathered.pop(kind, None)
            if kind in self._rows:
                self._replaced.setdefault(kind, set()).update(int(n) for n in numbers)

    def _gathers(self, kind: Kind, count: int | None) -> bool:
        """Read only what a search needs (None: all)? Not when all is there already, nor when reading all would have been cheaper."""
        with self._lock:
            if kind in self._rows:
                return False
            first = self._cold and kind not in self._gathered
            if count is None:
                self._gathered.setdefault(kind, 0)
                return first
            self._gathered[kind] = self._gathered.get(kind, 0) + count
            return first or self._gathered[kind] <= GATHER

    def _assert_open(self) -> None:
        if self._closed:
            raise VectorsClosed

    def _held(self, kind: Kind) -> np.ndarray:
        with self._lock:
            return self._now(kind)

    def _now(self, kind: Kind) -> np.ndarray:
        self._assert_open()
        if kind not in self._numbers:
            self._numbers[kind] = self._source.numbers(kind)
        return self._numbers[kind]

    def _all(self, kind: Kind) -> VectorRows:
        """All rows of a kind. A chunk's vector never changes under its number, but by a call of ``upsert``: what is here is not read again."""
        import numpy as np

        with self._lock:
            numbers, replaced = self._now(kind), self._replaced.pop(kind, None)
            then, rows = self._rows.get(kind, (None, None))
            if rows is None:
                rows = VectorRows.of(self._parts(kind, numbers), len(numbers))
            elif then is not numbers or replaced:
                kept = np.intersect1d(numbers, rows.numbers, assume_unique=True)
                if replaced:
                    kept = np.setdiff1d(kept, np.array(list(replaced), np.int64), assume_unique=True)
                new = np.setdiff1d(numbers, kept, assume_unique=True)
                rows = rows.changed(kept, self._parts(kind, new), len(new))
            self._rows[kind] = numbers, rows
            return rows

    def _parts(self, kind: Kind, numbers: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for start in range(0, len(numbers), PART):
            yield self._source(kind, numbers[start : start + PART])
