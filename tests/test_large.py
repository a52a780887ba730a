"""Large tables: memory stays flat, and no limit of the engines is met. Slow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid_rag.chunking import ChunkOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.workers import ReadOptions
from tests.support.world import World

RUN = """
import json, resource, sys, time
from pathlib import Path
import numpy as np
from hybrid_rag.embedding import Embedded
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest

class Free:
    name, dimensions, fingerprint = "bundled:free", 384, "0" * 32
    def embed_documents(self, texts):
        rows = np.random.default_rng(len(texts[0])).standard_normal((len(texts), 384), dtype=np.float32)
        return Embedded(rows / np.linalg.norm(rows, axis=1, keepdims=True))

began = time.monotonic()
index = Index(IndexOptions(Path(sys.argv[1])), create=True)
report = ingest(index, IngestOptions(Path(sys.argv[2])), embedder=Free)
seconds = time.monotonic() - began
own, readers = (resource.getrusage(w).ru_maxrss / 1024 for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({"seconds": seconds, "first": report.first_searchable_seconds, "own_mb": own, "reader_mb": readers,
                  "chunks": report.chunks_written, "embedded": report.chunks_embedded, "read": report.counts["read"]}))
"""


@pytest.mark.slow
def test_a_table_of_350_000_records_is_indexed_below_a_gigabyte(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with open(tmp_path / "data" / "orders.csv", "w", encoding="utf-8") as file:
        file.write("order_id,customer,city,product,quantity,price,ordered_on,note\n")
        for i in range(350_000):
            file.write(
                f"ORD-{i:07},Customer {i % 9973},City {i % 311},Product {i % 1201},{i % 9 + 1},{i % 500}.99,2025-{i % 12 + 1:02}-{i % 28 + 1:02},note {i * 7919 % 100_003}\n"
            )
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "index"), str(tmp_path / "data")], capture_output=True, encoding="utf-8", check=True
    )
    told = json.loads(run.stdout.splitlines()[-1])
    print(told)
    assert told["read"] == 1
    assert told["embedded"] == told["chunks"] == 35_001
    assert max(told["own_mb"], told["reader_mb"]) < 1000


@pytest.mark.slow
def test_fifty_thousand_chunks_of_one_table_come_change_and_go(tmp_path: Path) -> None:
    world = World(tmp_path)
    lines = [f"K-{i},value {i}\n" for i in range(50_000)]
    world.write("t.csv", "key,value\n" + "".join(lines))
    world.write("stays.txt", "stays")
    options = IngestOptions(world.root, read=ReadOptions(chunks=ChunkOptions(rows=1)))
    index = world.open()
    ingest(index, options, embedder=lambda: world.embedder)
    assert index.vectors.count("table") == 50_001
    lines[777] = "K-777,other\n"
    world.write("t.csv", "key,value\n" + "".join(lines))
    before = len(world.embedder.texts)
    ingest(index, options, embedder=lambda: world.embedder)
    assert len(world.embedder.texts) - before <= 2  # the record, and the card
    world.check()
    os.unlink(world.root / "t.csv")
    ingest(index, options, embedder=lambda: world.embedder)
    assert index.vectors.count("table") == 0
    world.check()
    index.close()
