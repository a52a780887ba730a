"""SQL that people and models write runs in a process of its own: whatever it does, it can be stopped.

DuckDB's memory limit and interrupt do not reach into single text functions (`repeat('x', 1e9)` ignores both), so the worker's
memory is limited by the system where that is possible, and a worker that does not stop in time ends itself or is killed.

Messages are lines of JSON. Request: {"sql", "files": {table: file}}. Answer: {"columns", "rows", "truncated", "milliseconds"}
or {"error": "time" | "memory" | "size" | "failed", "message"}.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hybrid_rag.errors import SqlLimitError, TableError
from hybrid_rag.table_database import SqlLimits, TableDatabase, plain

GRACE_SECONDS = 2.0  # between the interrupt and the end of the process
START_SECONDS = 30.0
SYSTEM_MEMORY_MB = 512  # what the process may have beyond the query's limit
FETCHED = 500  # rows at a time


class SqlWorker:
    """One worker process; a thread at a time may ask it."""

    def __init__(self, directory: Path, limits: SqlLimits) -> None:
        self._limits = limits
        settings = [str(directory), str(limits.seconds), str(limits.memory_mb), str(limits.rows), str(limits.characters)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hybrid_rag.table_worker", *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def query(self, sql: str, files: Mapping[str, str]) -> dict[str, Any]:
        """The answer. Raises SqlLimitError or TableError; then the worker may be gone (see ``alive``)."""
        line = json.dumps({"sql": sql, "files": dict(files)}) + "\n"
        started = time.monotonic()
        killer = threading.Timer(self._limits.seconds + GRACE_SECONDS * 2 + START_SECONDS, self._process.kill)
        killer.daemon = True
        killer.start()
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = b""
        finally:
            killer.cancel()
        if not answer.endswith(b"\n"):
            self.close()
            raise self._stopped("time" if time.monotonic() - started >= self._limits.seconds else "memory")
        out = json.loads(answer)
        if "error" in out:
            raise self._stopped(out["error"], out["message"])
        return out

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            pipe.close()

    def _stopped(self, why: str, message: str = "") -> TableError:
        if why == "time":
            return SqlLimitError(
                f"The query took longer than {self._limits.seconds:g} seconds.", "Make it simpler, or raise tables.max_seconds."
            )
        if why == "memory":
            return SqlLimitError(
                f"The query needs more than {self._limits.memory_mb} MB.", "Make it simpler, or raise tables.max_memory_mb."
            )
        if why == "size":
            return SqlLimitError(f"The result has more than {self._limits.characters:,} characters.", "Select fewer columns or rows.")
        return TableError(f"The query failed: {message}")


# ---------------------------------------------------------------- the worker's side


def main(arguments: list[str]) -> None:
    """Answer requests until the pipe closes."""
    limits = SqlLimits(float(arguments[1]), int(arguments[2]), int(arguments[3]), int(arguments[4]))
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not disturb the answers
    database = TableDatabase(Path(arguments[0]), limits.memory_mb)
    _limit_memory(limits.memory_mb + SYSTEM_MEMORY_MB)
    for line in sys.stdin.buffer:
        answer = _answer(database, json.loads(line), limits)
        out.write(json.dumps(answer, ensure_ascii=True).encode() + b"\n")
        out.flush()


def _limit_memory(megabytes: int) -> None:
    try:
        import resource
    except ImportError:  # not a POSIX system: DuckDB's own limit and the time limit remain
        return
    with open("/proc/self/statm", encoding="ascii") if os.path.exists("/proc/self/statm") else open(os.devnull, encoding="ascii") as file:
        fields = file.read().split()
    used = int(fields[5]) * resource.getpagesize() if len(fields) > 5 else 0
    limit = used + megabytes * 1_000_000
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _answer(database: TableDatabase, request: dict[str, Any], limits: SqlLimits) -> dict[str, Any]:
    import duckdb

    cursor = database.cursor()
    timers = [threading.Timer(limits.seconds, cursor.interrupt), threading.Timer(limits.seconds + GRACE_SECONDS, os._exit, [3])]
    started = time.perf_counter()
    try:
        database.use(request["files"])
        for timer in timers:
            timer.daemon = True
            timer.start()
        cursor.execute(request["sql"])
        columns = [d[0] for d in cursor.description or ()]
        rows, truncated = _fetched(cursor, limits)
    except duckdb.InterruptException:
        return {"error": "time", "message": ""}
    except (duckdb.OutOfMemoryException, MemoryError):
        return {"error": "memory", "message": ""}
    except duckdb.Error as error:
        text = str(error)
        return {"error": "memory" if "bad_alloc" in text or "Out of Memory" in text else "failed", "message": text.splitlines()[0][:400]}
    finally:
        for timer in timers:
            timer.cancel()
        cursor.close()
    if rows is None:
        return {"error": "size", "message": ""}
    return {"columns": columns, "rows": rows, "truncated": truncated, "milliseconds": round((time.perf_counter() - started) * 1000, 2)}


def _fetched(cursor: Any, limits: SqlLimits) -> tuple[list[list[Any]] | None, bool]:
    """(rows up to the limit, whether there are more); (None, False) when they are too large together."""
    rows: list[list[Any]] = []
    size = 0
    while len(rows) <= limits.rows and (batch := cursor.fetchmany(min(FETCHED, limits.rows + 1 - len(rows)))):
        size += sum(len(str(value)) for row in batch for value in row)
        if size > limits.characters:
            return None, False
        rows += [[plain(value) for value in row] for row in batch]
    return rows[: limits.rows], len(rows) > limits.rows


if __name__ == "__main__":
    main(sys.argv[1:])
