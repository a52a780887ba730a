"""How fast files are read and cut into chunks, and in how much memory, beside the usual libraries in the same run."""

from __future__ import annotations

import json
import random
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import eval_sets
from readers_gold import need

from hybrid_rag.loading import Limits, read
from hybrid_rag.loading.scan import scan
from hybrid_rag.workers import ChunkBatch, ReadOptions, read_all

# Runs in a process of its own, so that its peak is its own: seconds, records, chunks, peak in KB.
_ALONE = """
import json, resource, sys, time
from pathlib import Path
from hybrid_rag.loading.scan import scan
from hybrid_rag.workers import ChunkBatch, Finished, ReadOptions, read_one
(file,) = scan(Path(sys.argv[1]).parent, below=[Path(sys.argv[1])]).files
start, chunks, rows = time.perf_counter(), 0, 0
for event in read_one(file, ReadOptions()):
    chunks += len(event.chunks) if isinstance(event, ChunkBatch) else 0
    rows = event.rows if isinstance(event, Finished) else rows
"""
_LANGCHAIN_ALONE = """
import json, resource, sys, time, warnings
from pathlib import Path
warnings.filterwarnings("ignore")
from langchain_community.document_loaders import CSVLoader
from langchain_text_splitters import RecursiveCharacterTextSplitter
start = time.perf_counter()
documents = CSVLoader(sys.argv[1], encoding="utf-8").load()
chunks = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200).split_documents(documents)
rows, chunks = len(documents), len(chunks)
"""
# The peak since this program began: ru_maxrss, where there is no better, counts the memory of the process that started it too.
_FIGURES = """
status = Path("/proc/self/status")
lines = status.read_text().splitlines() if status.exists() else []
peak = next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(json.dumps([time.perf_counter() - start, rows, chunks, peak]))
"""


def _clocks() -> tuple[float, float]:
    """(wall, processor) seconds, those of ended child processes included."""
    mine, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime


def _medians(ways: dict[str, Callable[[], int]], rounds: int) -> dict[str, tuple[float, float, int]]:
    """(wall, processor seconds, result) of each way; the ways take turns, so that other load meets all of them."""
    taken: dict[str, list[tuple[float, float, int]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, run in ways.items():
            wall, processor = _clocks()
            result = run()
            after = _clocks()
            taken[name].append((after[0] - wall, after[1] - processor, result))
    return {
        name: (statistics.median(t[0] for t in times), statistics.median(t[1] for t in times), times[0][2]) for name, times in taken.items()
    }


def large(folder: Path, *, rounds: int) -> dict[str, Any]:
    """Loading and chunking of the large generated sample."""
    script = eval_sets.PROJECT / "scripts" / "make_sample_data.py"
    subprocess.run([sys.executable, str(script), str(folder), "--scale", "large"], check=True, stdout=subprocess.DEVNULL)

    def ours(workers: int) -> int:
        events = read_all(scan(folder).files, ReadOptions(), workers=workers)
        return sum(len(event.chunks) for event in events if isinstance(event, ChunkBatch))

    ways: dict[str, Callable[[], int]] = {
        "hybrid-rag, a process a core": lambda: ours(0),
        "hybrid-rag, one reading process": lambda: ours(1),
    }
    notes = [
        "hybrid-rag starts its reading processes anew in each round; hashes, dialects, languages and table cards are part of its work."
    ]
    if (peer := _langchain(folder)) is None:
        notes.append("LangChain: not run, langchain-community is not installed.")
    else:
        peer()  # imports
        ways["LangChain CSVLoader, TextLoader + RecursiveCharacterTextSplitter"] = peer
    rows = [[name, round(wall, 2), round(processor, 2), chunks] for name, (wall, processor, chunks) in _medians(ways, rounds).items()]
    return {
        "title": f"Loading and chunking 43,328 records and 500 sections in 13 files (median of {rounds})",
        "columns": ["way", "seconds", "processor seconds", "chunks"],
        "rows": rows,
        "notes": notes,
    }


def _langchain(folder: Path) -> Callable[[], int] | None:
    warnings.filterwarnings("ignore", message=".*langchain-community.*")
    try:
        from langchain_community.document_loaders import CSVLoader, TextLoader
        from langchain_text_splitters import RecursiveCharacterTextSplitter
    except ImportError:
        return None
    splitter = RecursiveCharacterTextSplitter(chunk_size=1000, chunk_overlap=200)

    def run() -> int:
        chunks = 0
        for path in sorted(folder.iterdir()):
            loader = CSVLoader if path.suffix == ".csv" else TextLoader
            chunks += len(splitter.split_documents(loader(str(path), encoding="utf-8").load()))
        return chunks

    return run


def million(scratch: Path, rows: int) -> dict[str, Any]:
    """A long table read as a stream: records a second and peak memory, which must not grow with the table."""
    out = []
    for count in (rows // 10, rows):
        path = scratch / "long" / f"{count}.csv"
        path.parent.mkdir(exist_ok=True)
        write_table(path, count)
        for name, script in (("hybrid-rag", _ALONE), ("LangChain CSVLoader.load + splitter", _LANGCHAIN_ALONE)):
            if name != "hybrid-rag" and count == rows:
                continue  # it holds every record at once; the shorter table shows how much
            done = subprocess.run(
                [sys.executable, "-c", script + _FIGURES, str(path)], capture_output=True, text=True, encoding="utf-8", check=False
            )
            if done.returncode:
                print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
                out.append([name, count, "not run", "not run", "not run"])
                continue
            seconds, found, chunks, peak = json.loads(done.stdout)
            out.append([name, found, round(found / seconds), chunks, round(peak / 1024)])
        path.unlink()
    return {
        "title": "A long table as a stream",
        "columns": ["reader", "records", "records/s", "chunks", "peak memory, MB"],
        "rows": out,
        "notes": ["Each in a process of its own, in which Python and the imports are counted too."],
    }


def write_table(path: Path, count: int) -> None:
    """Orders with seven columns, some quoted; the same bytes each time."""
    chance = random.Random(7)
    cities = ("Berlin", "São Paulo", "Kraków", "New York", "Malmö")
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write("order_id,date,customer,city,amount,status,note\n")
        for number in range(count):
            day = f"2024-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"
            note = f'"late, order {number}"' if number % 7 == 0 else "none"
            file.write(
                f"O-{number:07},{day},C{chance.randint(1, 9999):04},{cities[number % 5]},{chance.randint(100, 99999) / 100:.2f},open,{note}\n"
            )


def pdf(folder: Path, *, rounds: int) -> dict[str, Any]:
    """Pages a second, the whole reader beside pypdf's bare text."""
    files = sorted(need(folder).glob("*.pdf"))

    def ours() -> int:
        return sum(read(path, source=path.name, limits=Limits()).pages or 0 for path in files)

    def plain() -> int:
        from pypdf import PdfReader

        pages = 0
        for path in files:
            for page in PdfReader(path).pages:
                page.extract_text()
                pages += 1
        return pages

    ours()  # imports
    found = _medians({"hybrid-rag (blocks, hyphens, headings)": ours, "pypdf (text only)": plain}, rounds)
    rows = [[name, pages, round(pages / wall, 1), round(pages / processor, 1)] for name, (wall, processor, pages) in found.items()]
    return {
        "title": f"PDF: pages a second, {len(files)} papers (median of {rounds})",
        "columns": ["reader", "pages", "pages/s", "pages/processor second"],
        "rows": rows,
    }
