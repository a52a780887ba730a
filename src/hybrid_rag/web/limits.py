"""How often one client may start something costly: a token bucket a client and kind of request."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict

CLIENTS_KEPT = 4096


class TooMany(Exception):
    """``seconds``: after how long the next request is allowed."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"Too many requests; the next is allowed in {seconds} s.")
        self.seconds = seconds


class RateLimit:
    """``per_minute`` requests a client, all of them at once if it likes. Thread-safe."""

    def __init__(self, per_minute: int) -> None:
        self._capacity = per_minute
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # client -> (tokens, when)

    def take(self, client: str, *, now: float | None = None) -> None:
        """Count a request. Raises TooMany."""
        now = time.monotonic() if now is None else now
        with self._lock:
            tokens, when = self._buckets.pop(client, (float(self._capacity), now))
            tokens = min(self._capacity, tokens + (now - when) * self._capacity / 60)
            allowed = tokens >= 1
            self._buckets[client] = (tokens - allowed, now)
            if len(self._buckets) > CLIENTS_KEPT:
                self._buckets.popitem(last=False)
        if not allowed:
            raise TooMany(math.ceil((1 - tokens) * 60 / self._capacity))
