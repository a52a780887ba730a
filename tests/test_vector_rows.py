"""Rows of vectors in memory: as exact as float32, filtered before the cut, nearly so when signs choose what is multiplied."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_rag import vector_rows, vectors
from hybrid_rag.records import Kind
from hybrid_rag.vector_rows import VectorRows
from hybrid_rag.vectors import Allowed, best
from hybrid_rag.vectors_exact import ExactVectors

DIMENSIONS = 100  # no multiple of eight


def clustered(count: int, seed: int = 0, dimensions: int = DIMENSIONS) -> np.ndarray:
    """Unit rows around some dozens of centres that share a direction, as embeddings of texts do."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((40, dimensions)) + 1.5
    rows = (centres[rng.integers(0, 40, count)] + 0.7 * rng.standard_normal((count, dimensions))).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def by_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_rows, "DIRECT", 1_000)
    monkeypatch.setattr(vector_rows, "CHOSEN", 600)


@pytest.mark.parametrize("count", [1, 5, 3_000])
def test_hits_and_cosines_are_those_of_float32(count: int) -> None:
    rows, query = clustered(count), clustered(1, seed=9)[0]
    numbers = np.random.default_rng(1).permutation(10 * count)[:count]
    made = VectorRows.of([(numbers[i : i + 700], rows[i : i + 700]) for i in range(0, count, 700)], count)
    for k in (1, 10, 200):
        hits, wanted = made.search(query, k), best(numbers, rows @ query, k)
        assert [n for n, _ in hits] == [n for n, _ in wanted]
        assert [c for _, c in hits] == pytest.approx([c for _, c in wanted], abs=2e-6)


def test_a_row_of_zeros_is_near_to_nothing() -> None:
    rows = clustered(300)
    rows[17] = 0
    hits = VectorRows.of([(np.arange(300), rows)], 300).search(clustered(1, seed=9)[0], 300)
    assert dict(hits)[17] == 0.0 and [c for _, c in hits] == sorted((c for _, c in hits), reverse=True)


def test_equal_vectors_are_all_looked_at_and_ordered_by_number() -> None:
    rows = clustered(2_000)
    rows[500:1_700] = rows[3]
    hits = VectorRows.of([(np.arange(2_000), rows)], 2_000).search(rows[3], 900)
    assert [n for n, _ in hits] == [3, *range(500, 1_399)]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.sets(st.integers(0, 120), max_size=80), st.sets(st.integers(0, 120), max_size=80), st.integers(0, 6), st.integers(1, 12))
def test_stretches_hold_the_allowed_rows_and_name_the_others(known: set[int], allowed: set[int], gap: int, most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "GAP", gap)
        patch.setattr(vectors, "STRETCHES", most)
        held = np.array(sorted(known), np.int64)
        stretches, dropped = Allowed.of(np.array(list(allowed), np.int64)).rows(held)
    looked_at = [row for start, stop in stretches for row in range(start, stop)]
    left = np.delete(looked_at, dropped) if dropped is not None else looked_at
    assert [int(held[row]) for row in left] == sorted(known & allowed)
    assert len(stretches) <= most and sorted(set(looked_at)) == looked_at


@pytest.mark.parametrize(
    "allowed", [range(5_000), range(700, 4_000), range(0, 5_000, 3), range(0, 5_000, 400), [7], [*range(40), *range(4_000, 4_900)]]
)
@pytest.mark.parametrize("k", [1, 20, 300, 1_000])
def test_signs_choose_never_fewer_than_k_and_only_what_is_allowed(by_signs: None, allowed: list[int], k: int) -> None:
    rows, query = clustered(5_000), clustered(1, seed=4)[0]
    hits = VectorRows.of([(np.arange(5_000), rows)], 5_000).search(query, k, Allowed.of(np.array(allowed)))
    assert len(hits) == min(k, len(allowed)) == len({n for n, _ in hits})
    assert {n for n, _ in hits} <= set(allowed)
    assert [c for _, c in hits] == pytest.approx([float(rows[n] @ query) for n, _ in hits], abs=2e-6)
    assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))


def test_signs_choose_the_nearest() -> None:
    """Of 80,000 vectors a seventh is multiplied; the 100 nearest are among them."""
    rows, queries = np.split(clustered(80_012, dimensions=256), [80_000])
    made, found, first = VectorRows.of([(np.arange(80_000), rows)], 80_000), [], []
    for query in queries:
        wanted = [n for n, _ in best(np.arange(80_000), rows @ query, 100)]
        hits = [n for n, _ in made.search(query, 100)]
        found.append(len(set(hits) & set(wanted)) / 100)
        first.append(len(set(hits[:10]) & set(wanted[:10])) / 10)
        assert made.search(query, 100) == made.search(query, 100)
    assert np.mean(found) >= 0.99 and np.mean(first) >= 0.99


def test_vectors_that_are_all_alike_do_not_mislead_the_sample(by_signs: None) -> None:
    rows = np.repeat(clustered(1), 3_000, axis=0)
    rows[1::16] = clustered(len(rows[1::16]), seed=2)  # none of them is in the sample
    assert len(VectorRows.of([(np.arange(3_000), rows)], 3_000).search(clustered(1)[0], 500)) == 500


def test_changes_give_what_building_anew_gives(by_signs: None) -> None:
    rows, query = clustered(4_000), clustered(1, seed=3)[0]
    numbers = np.arange(0, 8_000, 2)
    old = VectorRows.of([(numbers[:3_000], rows[:3_000])], 3_000)
    kept = numbers[100:3_000]
    new = old.changed(kept, [(numbers[3_000:], rows[3_000:])], 1_000)
    anew = VectorRows.of([(numbers[100:], rows[100:])], 5_000)
    assert new.search(query, 50) == anew.search(query, 50) and (new.numbers == anew.numbers).all()
    assert old.changed(numbers[:3_000], [], 0) is old
    assert len(old.changed(numbers[:0], [], 0)) == 0
    assert len(VectorRows.of([], 0).changed(numbers[:5], [(numbers[:5], rows[:5])], 5)) == 5


class Source:
    """Vectors by number, and which of them were read."""

    def __init__(self) -> None:
        self.kept: dict[int, np.ndarray] = {}
        self.read: list[int] = []

    def __call__(self, kind: Kind, numbers: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        wanted = [n for n in (self.numbers(kind) if numbers is None else numbers).tolist() if n in self.kept]
        self.read += wanted
        return np.array(wanted, np.int64), np.array([self.kept[n] for n in wanted], np.float32).reshape(len(wanted), DIMENSIONS)

    def numbers(self, kind: Kind) -> np.ndarray:
        return np.array(sorted(self.kept), np.int64)


def test_after_a_change_only_what_is_new_is_read() -> None:
    rows, source = clustered(60), Source()
    index = ExactVectors(source)
    source.kept = dict(enumerate(rows[:50]))
    assert len(index.search("text", rows[0], k=100)) == 50 and len(source.read) == 50
    del source.kept[7]
    source.kept |= {50: rows[50], 51: rows[51]}
    source.read.clear()
    index.reload()
    assert index.count("text") == 51  # a look at the numbers does not hide that vectors are to be read
    assert {n for n, _ in index.search("text", rows[0], k=100)} == set(source.kept)
    assert source.read == [50, 51]
    source.kept[3] = rows[59]
    index.upsert("text", [3], [1], rows[59:])
    assert index.search("text", rows[59], k=1) == [(3, pytest.approx(1.0, abs=2e-6))]
    assert source.read == [50, 51, 3]


def test_a_process_that_asks_once_keeps_nothing_and_finds_the_same() -> None:
    rows, query, source = clustered(200), clustered(1, seed=8)[0], Source()
    source.kept = dict(enumerate(rows))
    cold, warm = ExactVectors(source, cold=True), ExactVectors(source)
    first = cold.search("text", query, k=20)
    assert not cold._rows
    assert [n for n, _ in first] == [n for n, _ in warm.search("text", query, k=20)]
    assert cold.search("text", query, k=20) == warm.search("text", query, k=20)
    assert cold._rows
