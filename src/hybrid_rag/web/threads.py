"""The core is synchronous: its calls run in threads, so many at once and so many waiting, and never on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Busy(Exception):
    """More calls wait than may; the client is told to come again."""


class Threads:
    """A bounded pool: ``workers`` calls run, ``waiting`` more queue. For one event loop."""

    def __init__(self, name: str, *, workers: int, waiting: int) -> None:
        self._name, self._workers, self._room = name, workers, workers + waiting
        self._pool: ThreadPoolExecutor | None = None
        self.inside = 0

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The function's result. Raises Busy, and what the function raises."""
        if self.inside >= self._room:
            raise Busy
        self.inside += 1
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix=self._name)
        future = asyncio.get_running_loop().run_in_executor(self._pool, lambda: function(*args, **kwargs))
        future.add_done_callback(self._left)  # not when the caller leaves: the thread is at work until then
        return await future

    def _left(self, _: object) -> None:
        self.inside -= 1

    def close(self) -> None:
        """Wait for what is at work; the next call begins anew."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
