"""A local log of searches and questions: JSON lines in one file, bounded in size. Off unless the configuration asks for it.

A line: ``time`` (ISO 8601 UTC), ``call`` ("search" or "ask"), ``query`` or ``query_hash``, ``mode``, ``hits``, ``abstained``
(asks), ``cached``, ``milliseconds`` by stage with ``total``, ``error`` (the error's class) when it failed. The hash is keyed
with random bytes that stand beside the log, so that equal queries are equal within a log and cannot be guessed from it alone.
A full file becomes ``….1``, in the place of the one before.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hybrid_rag.file_lock import LockTimeout, hold
from hybrid_rag.percentiles import percentile

FILE_NAME = "queries.jsonl"
LOCK_SECONDS = 1.0
PERCENTILES = (50, 95, 99)
log = logging.getLogger(__name__)


def older(path: Path) -> Path:
    """Where a full log goes."""
    return path.with_name(path.name + ".1")


def key_file(path: Path) -> Path:
    return path.with_name(path.name + ".key")


class QueryLog:
    """Appends to a log file. Thread-safe, and safe with other processes. A log that cannot be written harms no query: it is a warning."""

    def __init__(self, path: Path, content: Literal["hash", "text"], max_bytes: int) -> None:
        self.path, self._content, self._max_bytes = path, content, max_bytes
        self._lock = threading.Lock()
        self._warned = False

    def add(self, call: Literal["search", "ask"], query: str, **fields: Any) -> None:
        """Write one line."""
        record = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "call": call}
        try:
            with self._lock:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with hold(self.path.with_name(self.path.name + ".lock"), exclusive=True, seconds=LOCK_SECONDS):
                    record |= {"query": query} if self._content == "text" else {"query_hash": self._hash(query)}
                    self._write(json.dumps(record | fields, ensure_ascii=False) + "\n")
        except (OSError, LockTimeout) as error:
            if not self._warned:
                log.warning("the query log %s cannot be written: %s", self.path, error)
                self._warned = True

    def _write(self, line: str) -> None:
        data = line.encode("utf-8", "backslashreplace")
        if self.path.exists() and self.path.stat().st_size + len(data) > self._max_bytes:
            os.replace(self.path, older(self.path))
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)

    def _hash(self, query: str) -> str:
        file = key_file(self.path)
        if not file.exists():
            handle = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
            os.write(handle, secrets.token_bytes(32))
            os.close(handle)
        text = " ".join(query.casefold().split())
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12, key=file.read_bytes()).hexdigest()


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class StageLatency:
    """Milliseconds of one stage over the queries that went through it."""

    count: int
    p50: float
    p95: float
    p99: float
    longest: float


@dataclass(frozen=True, slots=True)
class LogSummary:
    """What a log says: how many, how fast, the slowest, and what was not answered."""

    file: str
    first: str | None
    last: str | None
    count: int
    searches: int
    asks: int
    abstained: int
    failed: int
    cached: int
    modes: dict[str, int]
    latency: dict[str, dict[str, StageLatency]]  # call -> stage -> latency
    slowest: tuple[dict[str, Any], ...]  # time, call, query (or its hash), milliseconds
    unanswered: tuple[dict[str, Any], ...]  # query (or its hash), count, last; the most frequent first
    damaged_lines: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_log(path: Path, since: str | None = None) -> tuple[list[dict[str, Any]], int]:
    """The records of a log and the file before it, oldest first, and how many lines could not be read."""
    records, damaged = [], 0
    for line in _lines(path):
        try:
            record = json.loads(line)
            if since is None or record["time"] >= since:
                records.append(record)
        except (ValueError, KeyError, TypeError):
            damaged += 1
    return records, damaged


def _lines(path: Path) -> Iterator[str]:
    for file in (older(path), path):
        if file.exists():
            yield from (line for line in file.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip())


def summarise(path: Path, records: Sequence[dict[str, Any]], *, damaged: int = 0, show: int = 10) -> LogSummary:
    """Percentiles by linear interpolation; ``show`` bounds the lists of slowest and unanswered."""
    calls = Counter(r["call"] for r in records)
    slowest = sorted((r for r in records if r.get("milliseconds")), key=lambda r: (-_total(r), r["time"]))[:show]
    unanswered: dict[str, list[str]] = defaultdict(list)
    for r in records:
        if r.get("abstained"):
            unanswered[_name(r)].append(r["time"])
    order = sorted(unanswered.items(), key=lambda item: (-len(item[1]), item[0]))[:show]
    return LogSummary(
        file=str(path),
        first=records[0]["time"] if records else None,
        last=records[-1]["time"] if records else None,
        count=len(records),
        searches=calls["search"],
        asks=calls["ask"],
        abstained=sum(bool(r.get("abstained")) for r in records),
        failed=sum(bool(r.get("error")) for r in records),
        cached=sum(bool(r.get("cached")) for r in records),
        modes=dict(sorted(Counter(r["mode"] for r in records if r.get("mode")).items())),
        latency={
            call: _latency(r["milliseconds"] for r in records if r["call"] == call and r.get("milliseconds")) for call in sorted(calls)
        },
        slowest=tuple({"time": r["time"], "call": r["call"], "query": _name(r), "milliseconds": round(_total(r), 1)} for r in slowest),
        unanswered=tuple({"query": query, "count": len(times), "last": max(times)} for query, times in order),
        damaged_lines=damaged,
    )


def _name(record: dict[str, Any]) -> str:
    return str(record.get("query") or f"#{record.get('query_hash', '')}")


def _total(record: dict[str, Any]) -> float:
    return float(record["milliseconds"].get("total", 0.0))


def _latency(all_times: Iterable[dict[str, float]]) -> dict[str, StageLatency]:
    stages: dict[str, list[float]] = defaultdict(list)
    for times in all_times:
        for stage, value in times.items():
            stages[stage].append(float(value))
    out = {}
    for stage, values in stages.items():
        p50, p95, p99 = (round(percentile(sorted(values), p), 1) for p in PERCENTILES)
        out[stage] = StageLatency(len(values), p50, p95, p99, round(max(values), 1))
    return dict(sorted(out.items(), key=lambda item: (item[0] == "total", item[0])))
