"""Long tables: read as a stream, in memory that does not grow with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hybrid_rag.loading import Limits
from hybrid_rag.loading.scan import scan
from hybrid_rag.workers import ChunkBatch, Finished, ReadOptions, read_all

PEAK = """
import sys
from pathlib import Path
from hybrid_rag.loading.scan import scan
from hybrid_rag.workers import ReadOptions, read_one
(file,) = scan(Path(sys.argv[1]).parent, below=[Path(sys.argv[1])]).files
for event in read_one(file, ReadOptions()):
    pass
print(event.rows, next(line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


def write(path: Path, count: int) -> Path:
    with open(path, "w", encoding="utf-8") as file:
        file.write("id,city,amount,note\n")
        for number in range(count):
            file.write(f'K-{number:07},Kraków,{number % 997}.50,"late, order {number}"\n')
    return path


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not tell the peak of a process")
def test_memory_does_not_grow_with_a_table(tmp_path: Path) -> None:
    peaks = {}
    for count in (10_000, 150_000):
        path = write(tmp_path / f"{count}.csv", count)
        done = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, timeout=120, check=True)
        rows, peak = map(int, done.stdout.split())
        assert rows == count
        peaks[count] = peak / 1024
    assert path.stat().st_size / 1e6 > 6
    assert peaks[150_000] - peaks[10_000] < 4, peaks  # MB


@pytest.mark.slow
def test_a_million_records_with_their_typed_table(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "a.csv", 1_000_000)
    options = ReadOptions(limits=Limits(max_memory_bytes=700 << 20), tables_directory=tmp_path)
    numbers, end = 0, None
    for event in read_all(scan(tmp_path / "data").files, options):
        if isinstance(event, ChunkBatch):
            for chunk in event.chunks:
                if chunk.role == "body":
                    assert chunk.rows is not None
                    assert chunk.rows[0] == numbers + 1
                    numbers = chunk.rows[1]
        else:
            end = event
    assert isinstance(end, Finished), end
    assert (numbers, end.rows, end.card.rows if end.card else None) == (1_000_000, 1_000_000, 1_000_000)
