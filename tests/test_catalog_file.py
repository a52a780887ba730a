"""Connections to the catalog: one a thread, none left behind."""

from __future__ import annotations

import threading
from pathlib import Path

from hybrid_rag.catalog import Catalog


def test_threads_that_have_ended_leave_no_connection_behind(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "catalog.sqlite", create=True)
    for _ in range(30):
        thread = threading.Thread(target=catalog.documents)
        thread.start()
        thread.join()
    assert len(catalog._connections) <= 2
    both = [threading.Barrier(8), threading.Barrier(8)]

    def read() -> None:
        both[0].wait()
        assert catalog.documents() == []
        both[1].wait()

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert catalog.documents() == []
    catalog.close()
    assert not catalog._connections
