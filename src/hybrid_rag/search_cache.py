"""A bounded memory of results, the least recently used forgotten first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Keeps the ``size`` entries used last; 0 keeps none. Thread-safe."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, Value] = OrderedDict()
        self._state: Hashable = None

    def get(self, key: Hashable, *, state: Hashable = None) -> Value | None:
        """The value kept for a key, None when there is none. Another ``state`` than at the last call forgets everything."""
        with self._lock:
            self._expect(state)
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: Hashable, value: Value, *, state: Hashable = None) -> None:
        with self._lock:
            self._expect(state)
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)

    def _expect(self, state: Hashable) -> None:
        if state != self._state:
            self._entries.clear()
            self._state = state
