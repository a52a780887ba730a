"""A process that changes a data folder and indexes it: ``python -m tests.support.changing DIRECTORY DATA``.

For each line on stdin with a number: adds a file, changes one, removes one, indexes, and answers with the number.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from tests.support.embedders import HashEmbedder

if __name__ == "__main__":
    directory, data = Path(sys.argv[1]), Path(sys.argv[2])
    index = Index(IndexOptions(directory), create=True)
    embedder = HashEmbedder()
    print("ready", flush=True)
    for line in sys.stdin:
        i = int(line)
        (data / f"added{i}.txt").write_text(f"common added{i}", encoding="utf-8")
        (data / "changed.txt").write_text(f"common version{i}", encoding="utf-8")
        (data / f"added{i - 1}.txt").unlink(missing_ok=True)
        ingest(index, IngestOptions(data, workers=1), embedder=lambda: embedder)
        print(i, flush=True)
    index.close()
