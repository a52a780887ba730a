"""The vectors of a kind in memory, searched row by row: rounded for the many, restored for the few that may be best.

A component is kept as an int8 and an int16 for what that leaves: 3 bytes instead of 4. All allowed rows are multiplied as int8, and
those within the error of rounding of the best k again as float32; the result is that of float32, to the sixth digit. Among more
than DIRECT rows the signs of the centred components, a bit each, choose the rows that are multiplied at all, so that the time of a
search grows a tenth as fast. Signs as sketches of angles: Charikar, STOC 2002. Measured in docs/vectors.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from hybrid_rag.vectors import Allowed, best

if TYPE_CHECKING:
    import numpy as np

DIRECT = 65_536  # so many rows are all multiplied
CHOSEN = 8_192  # of more, about so many are chosen by their signs
CENTRED = 8_192  # rows whose mean is the centre: the first ones, which stay the same while a collection grows
SAMPLED = 16  # every so many'th row tells how alike the CHOSEN'th is
SURE = 8.0  # standard deviations of the error of rounding
LEVELS, REST = 127, 65_000  # steps of a component: to the row's largest, and of a step
CACHED = 256  # rows rounded at a time
SMALLEST = 1e-30  # so that a row of zeros, which is near to nothing, can be kept
IN_CACHE = 16_384  # rows whose signs are compared at a time
NOT_ALLOWED = 65_535  # more signs than there are
BLOCK = 512  # rows restored at a time: products of more are given to several threads, which costs more than it saves
Parts = Iterable[tuple["np.ndarray", "np.ndarray"]]  # (numbers, float32 unit rows)


def bytes_per_row(dimensions: int) -> int:
    return 3 * dimensions + dimensions // 8 + 16


class VectorRows:
    """A table of vectors, ascending by chunk number; it never changes."""

    def __init__(self, numbers: np.ndarray, coarse: np.ndarray, rest: np.ndarray, scales: np.ndarray) -> None:
        """``numbers`` int64 (n,), ascending; ``coarse`` int8 and ``rest`` int16 (n, dim); ``scales`` float32 (n,)."""
        import numpy as np

        self.numbers, self._coarse, self._rest, self._scales = numbers, coarse, rest, scales
        if len(numbers) > DIRECT:
            self._centre = self._restored(slice(0, CENTRED)).mean(axis=0)
            self._signs = np.empty((-(-coarse.shape[1] // 64), len(numbers)), np.uint64)  # 64 of all rows, the next 64 of all rows, …
            for start in range(0, len(numbers), BLOCK):
                rows = slice(start, start + BLOCK)
                self._signs[:, rows] = _packed(self._coarse[rows] * self._scales[rows, None] > self._centre).T

    @classmethod
    def of(cls, parts: Parts, most: int) -> VectorRows:
        """From vectors in any order, some at a time, ``most`` in all or fewer."""
        return cls(*_ascending(_filled((_rounded(numbers, vectors) for numbers, vectors in parts), most)))

    def changed(self, numbers: np.ndarray, parts: Parts, most: int) -> VectorRows:
        """The rows of those ``numbers`` that are here, and those of ``parts``, ``most`` of them or fewer."""
        import numpy as np

        kept = np.isin(self.numbers, numbers)
        if kept.all() and not most:
            return self
        old = [column[kept] for column in self._columns]
        added = (_rounded(numbers, vectors) for numbers, vectors in parts)
        return VectorRows(*_ascending(_filled(chain([old], added), len(old[0]) + most)))

    @property
    def _columns(self) -> tuple[np.ndarray, ...]:
        return self.numbers, self._coarse, self._rest, self._scales

    def __len__(self) -> int:
        return len(self.numbers)

    def search(self, vector: np.ndarray, k: int, allowed: Allowed | None = None) -> list[tuple[int, float]]:
        """The k nearest (chunk number, cosine), best first, ties by number; never fewer when so many are allowed."""
        import numpy as np

        slices, dropped = allowed.rows(self.numbers) if allowed is not None else ([(0, len(self))], None)
        scanned = sum(stop - start for start, stop in slices)
        count = scanned - (len(dropped) if dropped is not None else 0)
        if k <= 0 or not count:
            return []
        query, step = _rounded_query(vector)
        if scanned > max(DIRECT, 16 * k):
            rows = self._alike(vector, max(CHOSEN, 4 * k), slices, dropped, scanned)
            cosines = _products(query, self._coarse[rows]) * (self._scales[rows] * step)
        else:
            rows = _rows(slices)
            cosines = _joined([_products(query, self._coarse[start:stop]) for start, stop in slices]) * (self._scales[rows] * step)
            if dropped is not None:
                cosines[dropped] = -np.inf
        bound = -2.0
        if k < count:
            error = SURE * float(np.hypot(step, self._scales[rows].max())) / 12**0.5
            bound = float(np.partition(cosines, len(rows) - k)[len(rows) - k]) - error
        rows = rows[cosines >= bound]
        exact = _joined([self._restored(rows[start : start + BLOCK]) @ vector for start in range(0, len(rows), BLOCK)])
        return best(self.numbers[rows], exact, k)

    def _alike(
        self, vector: np.ndarray, wanted: int, slices: Sequence[tuple[int, int]], dropped: np.ndarray | None, scanned: int
    ) -> np.ndarray:
        """About ``wanted`` rows whose signs differ least from the vector's, ascending; at least half of them, or all that are allowed."""
        import numpy as np

        signs = _packed(np.asarray(vector, np.float32)[None, :] > self._centre)[0]
        differ = np.empty(scanned, np.uint16)
        at = 0
        for start, stop in slices:
            _differing(signs, self._signs[:, start:stop], differ[at : at + stop - start])
            at += stop - start
        if dropped is not None:
            differ[dropped] = NOT_ALLOWED
        sample = np.sort(differ[::SAMPLED])
        bound = sample[min(len(sample) - 1, wanted // SAMPLED)]
        places = np.flatnonzero(differ <= min(bound, NOT_ALLOWED - 1))
        if len(places) < min(wanted // 2, scanned - (len(dropped) if dropped is not None else 0)):  # the sample was not like the whole
            places = np.sort(np.argpartition(differ, min(wanted, scanned) - 1)[:wanted])
            places = places[differ[places] < NOT_ALLOWED]
        return _rows(slices, places)

    def _restored(self, rows: np.ndarray | slice) -> np.ndarray:
        """float32 (len(rows), dim), as they were given."""
        import numpy as np

        values = self._coarse[rows].astype(np.float32)
        values += self._rest[rows] * np.float32(1 / REST)
        values *= self._scales[rows, None]
        return values


def _filled(blocks: Iterable[list[np.ndarray]], most: int) -> list[np.ndarray]:
    """The columns of some blocks, one after another, in arrays made once: pieces freed one by one would leave holes in the memory."""
    import numpy as np

    columns, count = [np.zeros(0, np.int64), np.zeros((0, 0), np.int8), np.zeros((0, 0), np.int16), np.zeros(0, np.float32)], 0
    for block in blocks:
        if not len(block[0]):
            continue
        if not count:
            columns = [np.empty((most, *values.shape[1:]), values.dtype) for values in block]
        for column, values in zip(columns, block, strict=True):
            column[count : count + len(values)] = values
        count += len(block[0])
    return [column[:count] for column in columns]


def _rounded(numbers: np.ndarray, vectors: np.ndarray) -> list[np.ndarray]:
    """numbers, coarse, rest and scales of some vectors."""
    import numpy as np

    if not len(numbers):
        return [np.zeros(0, np.int64)]
    coarse, rest, scales = np.empty(vectors.shape, np.int8), np.empty(vectors.shape, np.int16), np.empty(len(vectors), np.float32)
    for start in range(0, len(vectors), CACHED):  # few enough to stay in the processor's cache
        rows = slice(start, start + CACHED)
        part = vectors[rows]
        scales[rows] = np.maximum(np.maximum(part.max(axis=1), -part.min(axis=1)), SMALLEST) / LEVELS
        steps = part * (1 / scales[rows, None])
        whole = np.rint(steps)
        steps -= whole
        steps *= REST
        coarse[rows], rest[rows] = whole, np.rint(steps, out=steps)
    return [np.asarray(numbers, np.int64), coarse, rest, scales]


def _rounded_query(vector: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """int8 (1, dim) and the size of a step."""
    import numpy as np

    step = np.float32(max(float(np.abs(vector).max()), 1e-12) / LEVELS)
    return np.rint(vector / step).astype(np.int8)[None, :], step


def _ascending(columns: list[np.ndarray]) -> list[np.ndarray]:
    import numpy as np

    numbers = columns[0]
    if len(numbers) < 2 or (numbers[1:] > numbers[:-1]).all():
        return columns
    order = np.argsort(numbers, kind="stable")
    return [column[order] for column in columns]


def _rows(slices: Sequence[tuple[int, int]], places: np.ndarray | None = None) -> np.ndarray:
    """Row numbers of all that some slices hold, one after another, or of the places in that order."""
    import numpy as np

    if places is None:
        return _joined([np.arange(start, stop) for start, stop in slices])
    starts = np.array([start for start, _ in slices])
    before = np.concatenate([[0], np.cumsum([stop - start for start, stop in slices])[:-1]])
    return places + (starts - before)[np.searchsorted(before, places, side="right") - 1]


def _products(query: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """float32 (n,): sums of products of int8 (1, dim) and (n, dim)."""
    import numkong
    import numpy as np

    return np.asarray(numkong.cdist(query, rows, "dot", out_dtype="float32"))[0]


def _packed(signs: np.ndarray) -> np.ndarray:
    """bool (n, dim) as uint64 (n, dim / 64)."""
    import numpy as np

    whole = np.zeros((len(signs), -(-signs.shape[1] // 64) * 64), bool)
    whole[:, : signs.shape[1]] = signs
    return np.packbits(whole, axis=1).view(np.uint64)


def _differing(signs: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
    """How many bits of uint64 (words,) and of each column of (words, n) differ, into uint16 (n,)."""
    import numpy as np

    words, counts = np.empty(min(IN_CACHE, len(out)), np.uint64), np.empty(min(IN_CACHE, len(out)), np.uint8)
    for start in range(0, len(out), IN_CACHE):
        sums = out[start : start + IN_CACHE]
        some, count = words[: len(sums)], counts[: len(sums)]
        sums[:] = 0
        for sign, column in zip(signs, columns, strict=True):
            np.bitwise_xor(column[start : start + IN_CACHE], sign, out=some)
            np.add(sums, np.bitwise_count(some, out=count), out=sums)


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    import numpy as np

    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
