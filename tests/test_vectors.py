"""One contract over exact search, embedded Chroma and a Chroma server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid_rag import vectors_chroma_base, vectors_exact
from hybrid_rag.errors import IndexError_
from hybrid_rag.records import Kind
from hybrid_rag.vectors import VectorIndex, best
from hybrid_rag.vectors_chroma import ChromaServerVectors, ChromaVectors
from hybrid_rag.vectors_exact import ExactVectors
from tests.support import chroma_server

DIMENSIONS = 32
FINGERPRINT = "0123456789abcdef0123456789abcdef"


class Truth:
    """Where vectors are kept first, as in the index: a source that every form may read."""

    def __init__(self) -> None:
        self.kept: dict[Kind, dict[int, np.ndarray]] = {"text": {}, "table": {}}

    def __call__(self, kind: Kind, numbers: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        kept = self.kept[kind] if numbers is None else {n: self.kept[kind][n] for n in numbers.tolist() if n in self.kept[kind]}
        vectors = np.array(list(kept.values()), np.float32).reshape(len(kept), DIMENSIONS)
        return np.array(list(kept), np.int64), vectors

    def numbers(self, kind: Kind) -> np.ndarray:
        return np.array(sorted(self.kept[kind]), np.int64)


class Store:
    """A vector index with its truth: writes go to both, the truth first."""

    def __init__(self, truth: Truth, index: VectorIndex) -> None:
        self.truth, self.index = truth, index
        self.search, self.count, self.numbers = index.search, index.count, index.numbers

    def put(self, numbers: list[int], vectors: np.ndarray, kind: Kind = "text") -> None:
        self.truth.kept[kind].update(zip(numbers, vectors, strict=True))
        self.index.upsert(kind, numbers, [1] * len(numbers), vectors)

    def take(self, numbers: list[int], kind: Kind = "text") -> None:
        for number in numbers:
            self.truth.kept[kind].pop(number, None)
        self.index.delete(kind, numbers)

    def expected(self, vector: np.ndarray, k: int, allowed: set[int] | None = None, kind: Kind = "text") -> list[int]:
        """The k nearest by the definition of the cosine."""
        kept = self.truth.kept[kind]
        cosines = {
            n: round(float(np.dot(v.astype(float), vector.astype(float))), 5) for n, v in kept.items() if allowed is None or n in allowed
        }
        return sorted(cosines, key=lambda n: (-cosines[n], n))[:k]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with chroma_server.running(tmp_path_factory.mktemp("chroma")) as port:
        yield port


@pytest.fixture(params=["exact", "chroma", "chroma graph", "server graph"])
def open_index(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., VectorIndex]:
    """Opens the form under test, again and again over the same data."""

    def open_it(truth: Truth | None, fingerprint: str = FINGERPRINT) -> VectorIndex:
        options: dict[str, Any] = {
            "prefix": tmp_path.name.replace("[", "_").replace("]", "_")[:40],
            "fingerprint": fingerprint,
            "dimensions": DIMENSIONS,
        }
        options["exact_up_to"] = 0 if "graph" in request.param else 20_000
        if request.param == "exact":
            return ExactVectors(truth or Truth())
        if request.param.startswith("chroma"):
            return ChromaVectors(tmp_path / "vectors", **options, source=truth)
        return ChromaServerVectors("127.0.0.1", request.getfixturevalue("server"), **options, source=truth)

    return open_it


@pytest.fixture
def store(open_index: Callable[..., VectorIndex]) -> Iterator[Store]:
    truth = Truth()
    index = open_index(truth)
    yield Store(truth, index)
    index.close()


def unit(count: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def found(hits: list[tuple[int, float]]) -> list[int]:
    return [number for number, _ in hits]


def test_an_empty_index_finds_nothing(store: Store) -> None:
    query = unit(1)[0]
    assert store.count("text") == 0 and store.numbers("table") == set()
    assert store.search("text", query, k=5) == []
    assert store.search("text", query, k=5, numbers=np.array([1, 2])) == []
    store.index.delete("text", [4])


def test_the_nearest_come_first_with_their_cosines(store: Store) -> None:
    vectors, query = unit(300), unit(1, seed=9)[0]
    store.put(list(range(10, 310)), vectors)
    hits = store.search("text", query, k=10)
    assert found(hits) == store.expected(query, 10)
    for number, cosine in hits:
        assert cosine == pytest.approx(float(vectors[number - 10] @ query), abs=2e-6)
    assert store.count("text") == 300 and store.numbers("text") == set(range(10, 310))


def test_kinds_are_apart(store: Store) -> None:
    a, b = unit(2)
    store.put([1], a[None], "text")
    store.put([1, 2], np.stack([b, a]), "table")
    assert found(store.search("text", a, k=5)) == [1]
    assert found(store.search("table", a, k=5)) == [2, 1]


def test_upsert_replaces_and_delete_removes(store: Store) -> None:
    a, b, c = unit(3)
    store.put([1, 2], np.stack([a, b]))
    store.put([1], c[None])
    assert store.search("text", c, k=1) == [(1, pytest.approx(1.0, abs=1e-5))]
    assert store.count("text") == 2
    store.take([1, 999])
    assert found(store.search("text", c, k=5)) == [2] and store.numbers("text") == {2}


def test_equal_vectors_are_ordered_by_number(store: Store) -> None:
    a, b = unit(2)
    store.put([7, 3, 11, 5], np.stack([a, a, b, a]))
    assert found(store.search("text", a, k=2)) == [3, 5]
    assert found(store.search("text", a, k=10)) == [3, 5, 7, 11]


@pytest.mark.parametrize("allowed", [[17], list(range(40, 60)), list(range(0, 500, 3)), list(range(500)), [600, 2, 2, 1]])
def test_filters_act_before_the_cut(store: Store, allowed: list[int]) -> None:
    store.put(list(range(500)), unit(500))
    query = unit(1, seed=4)[0]
    hits = store.search("text", query, k=10, numbers=np.array(allowed))
    assert found(hits) == store.expected(query, 10, set(allowed))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(st.data())
def test_filters_of_any_size_give_k_hits_when_k_are_allowed_also_in_large_collections(
    store: Store, patch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    """The bounds between the ways to filter are lowered, so that each of them is taken."""
    if not store.truth.kept["text"]:
        store.put(list(range(400)), unit(400))
    gather = data.draw(st.sampled_from([1, 20, 1_000]))
    patch.setattr(vectors_chroma_base, "GATHER", gather)
    patch.setattr(vectors_exact, "GATHER", gather)
    allowed = data.draw(st.sets(st.integers(0, 410), max_size=400))
    k = data.draw(st.sampled_from([1, 5, 50]))
    query = unit(1, seed=data.draw(st.integers(0, 5)))[0]
    hits = store.search("text", query, k=k, numbers=np.array(sorted(allowed), np.int64))
    assert found(hits) == store.expected(query, k, allowed)


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patched:
        yield patched


def test_an_empty_filter_allows_nothing(store: Store) -> None:
    store.put([1], unit(1))
    assert store.search("text", unit(1)[0], k=3, numbers=np.array([], np.int64)) == []


def test_no_hits_are_wanted(store: Store) -> None:
    store.put([1], unit(1))
    assert store.search("text", unit(1)[0], k=0) == []


def test_warming_changes_no_hit(store: Store) -> None:
    vectors = unit(40, seed=3)
    store.index.warm()  # there is nothing yet
    store.put(list(range(1, 41)), vectors)
    store.index.warm()
    assert found(store.search("text", vectors[7], k=5)) == store.expected(vectors[7], 5)


def test_the_same_search_gives_the_same_hits(store: Store) -> None:
    store.put(list(range(400)), unit(400))
    query = unit(1, seed=3)[0]
    first = store.search("text", query, k=20)
    assert all(store.search("text", query, k=20) == first for _ in range(5))


def test_more_than_one_batch_goes_in_and_out(store: Store) -> None:
    store.put(list(range(6_000)), unit(6_000))
    assert store.count("text") == 6_000
    store.take(list(range(5_990)))
    assert store.numbers("text") == set(range(5_990, 6_000))
    assert len(store.search("text", unit(1)[0], k=20)) == 10


def test_what_another_client_wrote_is_seen_after_a_reload(store: Store, open_index: Callable[..., VectorIndex]) -> None:
    a, b, c = unit(3)
    store.put([1, 2], np.stack([a, b]))
    other = open_index(store.truth)
    assert found(other.search("text", a, k=3)) == [1, 2]
    store.put([3], c[None])
    store.take([1])
    other.reload()
    assert sorted(found(other.search("text", c, k=3))) == [2, 3]
    assert other.numbers("text") == {2, 3}
    other.close()


def test_clear_forgets_everything_and_goes_on(store: Store) -> None:
    store.put([1, 2], unit(2))
    store.truth.kept["text"].clear()
    store.index.clear()
    assert store.count("text") == 0 and store.search("text", unit(1)[0], k=2) == []
    store.put([5], unit(1))
    assert found(store.search("text", unit(1)[0], k=2)) == [5]


def test_a_closed_index_says_so(store: Store) -> None:
    store.put([1], unit(1))
    store.index.close()
    store.index.close()
    with pytest.raises(IndexError_, match="closed"):
        store.search("text", unit(1)[0], k=1)
    with pytest.raises(IndexError_, match="closed"):
        store.search("text", unit(1)[0], k=1, numbers=np.array([1]))


def test_reloading_and_closing_under_searching_threads_is_safe(store: Store) -> None:
    store.put(list(range(300)), unit(300))
    query, problems, stop = unit(1)[0], [], threading.Event()

    def search() -> None:
        while not stop.is_set():
            try:
                hits = store.search("text", query, k=5)
                if len(hits) != 5:
                    problems.append(hits)
            except Exception as error:
                if "The vector index is closed" not in str(error):
                    problems.append(error)
                return

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        store.index.reload()
        store.search("text", query, k=1)
    store.index.close()
    stop.set()
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()
    assert problems == []


@pytest.mark.parametrize("k", [1, 3, 10, 50])
def test_best_is_the_sorted_head(k: int) -> None:
    rng = np.random.default_rng(k)
    numbers = rng.permutation(40)
    cosines = rng.integers(0, 6, 40) / 10  # many ties
    wanted = sorted(zip(numbers.tolist(), cosines.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0]))[:k]
    assert best(numbers, cosines, k) == wanted
