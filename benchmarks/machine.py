"""One line on the machine, the day and the versions, for the head of a benchmark's tables."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def describe() -> str:
    """For instance "2 cores (Intel Xeon), 23 GB, Linux 6.1, Python 3.11.7, hybrid-rag 0.1.0, 2026-11-30"."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30 if hasattr(os, "sysconf") else 0
    parts = [
        f"{os.cpu_count()} cores ({_processor()})", f"{memory:.0f} GB", f"{platform.system()} {platform.release()}",
        f"Python {platform.python_version()}", f"hybrid-rag {version('hybrid-rag')}", datetime.now(UTC).strftime("%Y-%m-%d"),
    ]  # fmt: skip
    return ", ".join(parts)


def load() -> float:
    """Processes that wait for a core, on average over the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
