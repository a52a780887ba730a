"""What the server has done since it started: requests by route and status, and how long searches and answers took."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any

from hybrid_rag.percentiles import percentile

KEPT = 1000  # latest durations of a kind, for the percentiles
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


class Measures:
    """Counters and durations. Thread-safe."""

    def __init__(self) -> None:
        self.started = time.time()
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()  # method, route, status
        self._latest: dict[str, deque[float]] = {}
        self._buckets: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def request(self, method: str, route: str, status: int) -> None:
        with self._lock:
            self._requests[method, route, status] += 1

    def took(self, kind: str, seconds: float) -> None:
        """A search ("search") or an answer ("ask") was given after so many seconds."""
        with self._lock:
            self._latest.setdefault(kind, deque(maxlen=KEPT)).append(seconds)
            buckets = self._buckets.setdefault(kind, [0] * (len(BUCKETS) + 1))
            buckets[next((i for i, top in enumerate(BUCKETS) if seconds <= top), len(BUCKETS))] += 1
            self._sums[kind] += seconds  # type: ignore[assignment]

    def latency(self) -> dict[str, dict[str, float]]:
        """Kind -> count since the start, and percentiles of the latest in milliseconds."""
        with self._lock:
            out = {}
            for kind, latest in sorted(self._latest.items()):
                ordered = sorted(latest)
                shares = {f"p{percent}": round(percentile(ordered, percent) * 1000, 2) for percent in (50, 95, 99)}
                out[kind] = {"count": sum(self._buckets[kind]), **shares}
            return out

    def prometheus(self, gauges: Iterable[tuple[str, str, float]]) -> str:
        """Prometheus text format 0.0.4. ``gauges``: name without prefix, help, value."""
        with self._lock:
            lines = ["# HELP hybrid_rag_requests_total Requests by method, route and status.", "# TYPE hybrid_rag_requests_total counter"]
            for (method, route, status), count in sorted(self._requests.items()):
                lines.append(f'hybrid_rag_requests_total{{method="{_quoted(method)}",route="{_quoted(route)}",status="{status}"}} {count}')
            lines += ["# HELP hybrid_rag_duration_seconds Time until a result was there.", "# TYPE hybrid_rag_duration_seconds histogram"]
            for kind, buckets in sorted(self._buckets.items()):
                lines += self._histogram(kind, buckets)
        for name, text, value in [*gauges, ("start_time_seconds", "When the server started, Unix time.", self.started)]:
            lines += [f"# HELP hybrid_rag_{name} {text}", f"# TYPE hybrid_rag_{name} gauge", f"hybrid_rag_{name} {value:.15g}"]
        return "\n".join(lines) + "\n"

    def _histogram(self, kind: str, buckets: Sequence[int]) -> list[str]:
        lines, total = [], 0
        for top, count in zip([*map(str, BUCKETS), "+Inf"], buckets, strict=True):
            total += count
            lines.append(f'hybrid_rag_duration_seconds_bucket{{kind="{kind}",le="{top}"}} {total}')
        sums: Any = self._sums[kind]
        return [
            *lines,
            f'hybrid_rag_duration_seconds_sum{{kind="{kind}"}} {sums:.6f}',
            f'hybrid_rag_duration_seconds_count{{kind="{kind}"}} {total}',
        ]


def _quoted(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
