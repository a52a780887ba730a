"""The bounded memory of results."""

from __future__ import annotations

import threading

from hybrid_rag.search_cache import Recent


def test_the_least_recently_used_goes_first() -> None:
    kept: Recent[int] = Recent(2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (1, None, 3)
    assert len(kept) == 2


def test_another_state_forgets_everything() -> None:
    kept: Recent[int] = Recent(9)
    kept.put("a", 1, state=1)
    assert kept.get("a", state=1) == 1
    assert kept.get("a", state=2) is None
    assert kept.get("a", state=1) is None
    kept.put("b", 2, state=3)
    assert len(kept) == 1


def test_size_zero_keeps_nothing() -> None:
    kept: Recent[int] = Recent(0)
    kept.put("a", 1)
    assert kept.get("a") is None


def test_many_threads_stay_within_the_bound() -> None:
    kept: Recent[int] = Recent(10)

    def work(seed: int) -> None:
        for i in range(500):
            kept.put((seed * i) % 37, i)
            kept.get(i % 37)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept) <= 10
