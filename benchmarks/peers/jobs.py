"""Runs the jobs of the comparison one after the other, each in a fresh process with a limit of time and of memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from systems import System, environments, last_line, say

from hybrid_rag.models import bundled

LOOK_SECONDS = 0.25  # between two looks at the memory of a job
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6 if hasattr(os, "sysconf") else 0.0


class Stopped(Exception):
    """A job was ended; the message says why."""


class Runner:
    """Runs one job of one system after the other; keeps why one gave nothing, and the times of the others."""

    def __init__(self, systems: Sequence[System], cache: Path, seconds: float, end: float, memory_mb: float) -> None:
        self.cache, self.seconds, self.end, self.memory_mb = cache, seconds, end, memory_mb
        self.failures: list[str] = []
        self.measured: list[str] = []
        self.versions: dict[str, dict[str, str]] = {}
        found = environments(systems, cache)
        self.missing = {system.title: why for system, (python, why) in found.items() if python is None}
        self.pythons = {system: python for system, (python, _) in found.items() if python is not None}

    def run(self, system: System, job: str, what: str, **arguments: object) -> dict[str, Any] | None:
        """What the job measured; None when it failed, was stopped or had no time, which then stands in ``failures``."""
        label = f"{system.title}, {job} {what}:"
        limit = min(self.seconds, self.end - time.monotonic())
        if limit < 5:
            self.failures.append(f"{label} not begun, the time was up (--minutes)")
            return None
        out = self.cache / f"result-{os.getpid()}.json"
        line = [str(self.pythons[system]), str(system.script), job, "--out", str(out)]
        for name, value in arguments.items():
            line += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
        begin = time.monotonic()
        try:
            code, errors = _watched(line, limit, self.memory_mb)
            if code or not out.exists():
                self.failures.append(f"{label} {last_line(errors)}")
                return None
            result = json.loads(out.read_text(encoding="utf-8"))
        except Stopped as why:
            self.failures.append(f"{label} {why}")
            return None
        finally:
            out.unlink(missing_ok=True)
            say(f"{label} {time.monotonic() - begin:.1f} s, {self.end - time.monotonic():,.0f} s left")
        self.measured.append(label)
        self.versions[system.title] = result.pop("versions")
        return result


def _watched(line: Sequence[str], seconds: float, memory_mb: float) -> tuple[int, str]:
    """Exit code and what stood on stderr. Raises Stopped when it needs longer or more memory."""
    variables = os.environ | {
        "HYBRID_RAG_BGE": str(bundled("bge_small_en")), "HYBRID_RAG_STARTED": repr(time.time()), "PYTHONHASHSEED": "0",
        "ANONYMIZED_TELEMETRY": "False", "HAYSTACK_TELEMETRY_ENABLED": "False", "HF_HUB_OFFLINE": "1", "LOGFIRE_IGNORE_NO_CONFIG": "1",
    }  # fmt: skip
    begin, largest = time.monotonic(), 0.0
    with tempfile.TemporaryFile() as errors, _group(line, variables, errors) as process:
        while process.poll() is None:
            largest = max(largest, _tree_mb(process.pid))
            passed = time.monotonic() - begin
            if passed > seconds:
                raise Stopped(f"stopped after {seconds:.0f} s, at {largest:,.0f} MB")
            if largest > memory_mb:
                raise Stopped(f"stopped after {passed:.0f} s, for it took more than {memory_mb:,.0f} MB")
            try:
                process.wait(LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                continue
        errors.seek(0)
        return process.returncode, errors.read().decode("utf-8", "replace")


@contextmanager
def _group(line: Sequence[str], variables: Mapping[str, str], errors: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The process as the leader of a group, which is ended with all it started."""
    process = subprocess.Popen(line, env=variables, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _tree_mb(pid: int) -> float:
    """Resident memory of a process and its children, where the system says so (Linux), else 0."""
    try:
        mine = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE_MB
        children = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text("ascii").split()]
    except (OSError, IndexError, ValueError):
        return 0.0  # it has just ended, or there is no /proc
    return mine + sum(_tree_mb(int(child)) for child in children)
