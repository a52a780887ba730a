"""The same measurement for every system: run by each adapter in a fresh process, in the environment of its system.

    python peer_x.py load  --folder FOLDER --out FILE
    python peer_x.py build --folder FOLDER --store STORE --embedder free|bge --out FILE
    python peer_x.py query --folder FOLDER --store STORE --embedder free|bge --queries FILE [--change FILE ... --word WORD] --out FILE
    python peer_x.py rank  --store STORE --embedder bge --queries FILE --out FILE

Needs numpy, and for `bge` onnxruntime and tokenizers; nothing of this project, except in the adapter of this project.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import sqlite3
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

DIMENSIONS = 384
K = 5  # hits asked for when times are measured
DEPTH = 100  # chunks asked for when rankings are
CLIENTS = 8
WARM_UP = 5
UPDATE_SECONDS = 300.0


class FreeEmbedder:
    """Random unit vectors by hash of the text: costs nearly nothing, so that the rest is what is measured."""

    def documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.query(text) for text in texts]

    def query(self, text: str) -> list[float]:
        seed = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")
        vector = np.random.Generator(np.random.PCG64(seed)).standard_normal(DIMENSIONS, np.float32)
        return (vector / np.linalg.norm(vector)).tolist()


class BgeEmbedder:
    """bge-small-en-v1.5 (int8 ONNX) as this project runs it: each text alone, one a core. ``HYBRID_RAG_BGE`` names its folder."""

    PREFIX = "Represent this sentence for searching relevant passages: "

    def __init__(self, kept: Path | None = None) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        self._kept = KeptVectors(kept) if kept else None
        folder = Path(os.environ["HYBRID_RAG_BGE"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        self._inputs = {node.name for node in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(512)
        self._tokenizer.no_padding()
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1)

    def documents(self, texts: Sequence[str]) -> list[list[float]]:
        known = self._kept.get(texts) if self._kept else {}
        missing = list(dict.fromkeys(text for text in texts if text not in known))
        made = dict(zip(missing, self._pool.map(self._one, missing), strict=True))
        if self._kept and made:
            self._kept.put(made)
        return [known[text] if text in known else made[text] for text in texts]

    def query(self, text: str) -> list[float]:
        return self.documents([self.PREFIX + text])[0]

    def _one(self, text: str) -> list[float]:
        row = self._tokenizer.encode(text)
        feeds = {"input_ids": row.ids, "attention_mask": row.attention_mask, "token_type_ids": row.type_ids}
        out = self._session.run(None, {k: np.array([v], np.int64) for k, v in feeds.items() if k in self._inputs})[0][0, 0]
        return (out / np.linalg.norm(out)).tolist()


class KeptVectors:
    """Vectors by text in a file, so that rankings can be measured again, and of several systems, without computing them again."""

    def __init__(self, file: Path) -> None:
        self._database = sqlite3.connect(file, check_same_thread=False, timeout=60)
        self._lock = threading.Lock()
        with self._lock, self._database:
            self._database.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID")

    def get(self, texts: Sequence[str]) -> dict[str, list[float]]:
        out = {}
        with self._lock:
            for text in texts:
                row = self._database.execute("SELECT vector FROM vectors WHERE text = ?", (self._key(text),)).fetchone()
                if row:
                    out[text] = np.frombuffer(row[0], np.float32).tolist()
        return out

    def put(self, vectors: dict[str, list[float]]) -> None:
        with self._lock, self._database:
            rows = [(self._key(text), np.array(vector, np.float32).tobytes()) for text, vector in vectors.items()]
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def _key(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()


class Peer(ABC):
    """One system. ``size`` and ``overlap`` of text chunks are in characters, ``k`` is what its retrievers are asked for."""

    packages: tuple[str, ...] = ()
    reads_itself = False  # `index` reads and chunks; `load` is measured apart
    searches_while_updating = False
    folder: Path | None = None
    vectors: Path | None = None

    def __init__(self, store: Path | None, embedder: str, *, size: int, overlap: int, k: int) -> None:
        self.store, self.size, self.overlap, self.k = store, size, overlap, k
        self.embedder_name = embedder
        self._embedder: FreeEmbedder | BgeEmbedder | None = None

    @property
    def embedder(self) -> FreeEmbedder | BgeEmbedder:
        if self._embedder is None:
            self._embedder = BgeEmbedder(self.vectors) if self.embedder_name == "bge" else FreeEmbedder()
        return self._embedder

    @abstractmethod
    def load(self, folder: Path) -> list[Any]:
        """Read and chunk the folder's files."""

    @abstractmethod
    def index(self, folder: Path, chunks: list[Any]) -> float | None:
        """Make a new index in ``store``, durably. Returns after how many seconds a search could find something, if that was before the end."""

    @abstractmethod
    def open(self) -> None:
        """Open the index in ``store``, in a new process."""

    @abstractmethod
    def search(self, query: str) -> list[str]:
        """The file names of the best chunks, a name a chunk, best first."""

    @abstractmethod
    def update(self, folder: Path, changed: Path) -> None:
        """Bring the open index up to date after one file has changed."""

    def count(self, chunks: list[Any]) -> int:
        """Of indexed chunks."""
        return len(chunks)

    def close(self) -> None:  # noqa: B027
        """Release what is held; nothing by default."""


def files(folder: Path, suffixes: Sequence[str] = (".csv", ".md", ".txt", ".pdf", ".docx")) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in suffixes and p.is_file())


def recursive_splitter(size: int, overlap: int) -> Callable[[str], list[str]]:
    """For systems that bring no splitter without further models: that of LangChain."""
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    return RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=overlap).split_text


# ---------------------------------------------------------------- jobs


def main(system: type[Peer]) -> None:
    started = float(os.environ.get("HYBRID_RAG_STARTED", time.time()))
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=("load", "build", "query", "rank"))
    for name in ("folder", "store", "queries", "vectors", "out"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--change", type=Path, nargs="*", default=[], help="files of which one is changed")
    parser.add_argument("--embedder", choices=("free", "bge"), default="free")
    parser.add_argument("--word", default="")
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--overlap", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10.0, help="bounds each of the two series of queries")
    a = parser.parse_args()
    peer = system(a.store, a.embedder, size=a.size, overlap=a.overlap, k=DEPTH if a.job == "rank" else K)
    peer.folder, peer.vectors = a.folder, a.vectors
    out: dict[str, Any] = {"versions": {name: version(name) for name in system.packages}}
    out |= {"load": _load, "build": _build, "query": _query, "rank": _rank}[a.job](peer, a, started)
    peer.close()
    out["rss_mb"] = round(_peak_mb(), 1)
    a.out.write_text(json.dumps(out), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # threads of some libraries keep their process alive


def _load(peer: Peer, a: argparse.Namespace, started: float) -> dict[str, Any]:
    del started
    peer.load(a.folder)  # imports and first calls
    times = []
    for _ in range(2):
        begin, cpu = time.perf_counter(), _cpu_seconds()
        count = len(peer.load(a.folder))
        times.append((time.perf_counter() - begin, _cpu_seconds() - cpu))
    return {"load_s": min(t for t, _ in times), "load_cpu_s": min(c for _, c in times), "chunks": count}


def _build(peer: Peer, a: argparse.Namespace, started: float) -> dict[str, Any]:
    begin, clock = time.perf_counter(), time.time()
    chunks = [] if peer.reads_itself else peer.load(a.folder)
    loaded = time.perf_counter()
    early = peer.index(a.folder, chunks)
    done = time.perf_counter()
    first = clock - started + (loaded - begin) + (early if early is not None else done - loaded)
    size = sum(p.stat().st_size for p in a.store.rglob("*") if p.is_file())
    return {
        "load_s": loaded - begin,
        "index_s": done - loaded,
        "total_s": done - begin,
        "first_s": first,
        "chunks": peer.count(chunks),
        "disk_mb": size / 1e6,
        "cpu_s": _cpu_seconds(),
    }


def _query(peer: Peer, a: argparse.Namespace, started: float) -> dict[str, Any]:
    queries = json.loads(a.queries.read_text(encoding="utf-8"))
    peer.open()
    peer.search(queries[0]["text"])
    out: dict[str, Any] = {"cold_s": time.time() - started}
    for query in queries[1 : 1 + WARM_UP]:
        peer.search(query["text"])
    queries = queries[1 + WARM_UP :]
    cpu = _cpu_seconds()
    times, found = _series(peer, queries, a.seconds)
    cpu = 1000 * (_cpu_seconds() - cpu) / len(times)
    out |= {"one": _percentiles(times) | {"cpu": cpu}, "found": sum(found) / len(found)}
    begin = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        parts = [queries[n::CLIENTS] for n in range(CLIENTS)]
        results = list(pool.map(lambda part: _series(peer, part, a.seconds)[0], parts))
    times = [t for result in results for t in result]
    out["eight"] = _percentiles(times) | {"per_second": len(times) / (time.perf_counter() - begin)}
    out["rss_query_mb"] = round(_peak_mb(), 1)
    if a.change:
        out |= _update(peer, a.folder, a.change, a.word)
    return out


def _update(peer: Peer, folder: Path, files: Sequence[Path], word: str) -> dict[str, float | None]:
    """Seconds from a changed file to its new word being found (None: not within UPDATE_SECONDS), and to the end of the update.

    Of the files one is changed that the word does not find beforehand: some systems fill their hits up with what does not match.
    """
    near = peer.search(word)[:K]
    changed = next(path for path in files if path.name not in near)
    with changed.open("a", encoding="utf-8") as file:
        file.write(f"\n\nThe new word of this paragraph is {word}, which stands nowhere else in the whole collection of files.\n")
    begin = time.perf_counter()
    done: list[float] = []

    def update() -> None:
        peer.update(folder, changed)
        done.append(time.perf_counter() - begin)

    thread = threading.Thread(target=update)
    thread.start()
    if not peer.searches_while_updating:
        thread.join()
    found: float | None = None
    while found is None and time.perf_counter() - begin < UPDATE_SECONDS:
        if changed.name in peer.search(word)[:K]:
            found = time.perf_counter() - begin
        time.sleep(0.02)
    thread.join()
    return {"found_s": found, "update_s": done[0] if done else None}


def _rank(peer: Peer, a: argparse.Namespace, started: float) -> dict[str, Any]:
    del started
    peer.open()
    rankings = {query["id"]: peer.search(query["text"]) for query in json.loads(a.queries.read_text(encoding="utf-8"))}
    return {"rankings": rankings}


def _series(peer: Peer, queries: Sequence[dict[str, str]], seconds: float) -> tuple[list[float], list[bool]]:
    """Times in ms, and whether the file of each query was among the hits; ends after ``seconds``, not before 3 queries."""
    times, found = [], []
    end = time.perf_counter() + seconds
    for query in queries:
        begin = time.perf_counter()
        hits = peer.search(query["text"])
        times.append((time.perf_counter() - begin) * 1000)
        found.append(query["file"] in hits[:K])
        if time.perf_counter() > end and len(times) >= 3:
            break
    return times, found


def _percentiles(times: Sequence[float]) -> dict[str, float]:
    p50, p95, p99 = np.percentile(times, (50, 95, 99))
    return {"n": len(times), "p50": float(p50), "p95": float(p95), "p99": float(p99)}


def _cpu_seconds() -> float:
    """Of this process since its start and of its ended children: hardly touched by what else the machine does."""
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def _peak_mb() -> float:
    """The largest resident size so far of this process, and of the largest of its children."""
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024


class Once:
    """Runs a coroutine on one event loop in a thread of its own, for systems that are asynchronous only."""

    def __init__(self) -> None:
        import asyncio

        self._asyncio = asyncio
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine: Any) -> Any:
        return self._asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()
