"""Calls that may hang, waited for only so long."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class TooLate(Exception):
    """The call takes longer than its caller waits. It goes on in its thread."""


class Patience:
    """Waits at most ``seconds`` for a call. While a late one is still on, no other is begun: it could only wait behind it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._late: Future[Any] | None = None

    def call(self, function: Callable[[], T]) -> T:
        """The result of the function, or what it raises. Raises TooLate."""
        with self._lock:
            if self._late is not None and not self._late.done():
                raise TooLate
            self._late = None
        future: Future[T] = Future()
        context = contextvars.copy_context()

        def work() -> None:
            try:
                future.set_result(context.run(function))
            except BaseException as error:  # raised again in the thread that waits
                future.set_exception(error)

        threading.Thread(target=work, name="waited for", daemon=True).start()
        try:
            return future.result(self.seconds)
        except TimeoutError:
            if future.done():
                raise
            with self._lock:
                self._late = future
            raise TooLate from None
