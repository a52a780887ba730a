"""The service behind the tools: opened in the background, once, when the first client has been answered."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from hybrid_rag.errors import HybridRagError

if TYPE_CHECKING:
    from hybrid_rag.config import Loaded
    from hybrid_rag.service import Service

log = logging.getLogger(__name__)


class Library:
    """Opens the service when it is first needed. Thread-safe."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self._lock = threading.Lock()
        self._service: Service | None = None
        self._warming: threading.Thread | None = None
        self._closed = False

    @property
    def service(self) -> Service:
        """The open service; the first call imports what it is made of. Raises ConfigError."""
        with self._lock:
            if self._service is None:
                from hybrid_rag.service import open_service

                self._service = open_service(self.loaded)
            return self._service

    @property
    def budget(self) -> int:
        """Tokens that a result may have."""
        return self.loaded.config.mcp.max_result_tokens

    def warm(self, then: Callable[[Service], None] = lambda service: None) -> None:
        """Begin to open the service and the index in another thread, once, so that the first call finds them open; ``then`` follows."""
        with self._lock:
            if self._warming is not None or self._closed:
                return
            self._warming = threading.Thread(target=self._open, args=(then,), name="open the index", daemon=True)
        self._warming.start()

    def _open(self, then: Callable[[Service], None]) -> None:
        try:
            from hybrid_rag.mcp_server import handlers  # noqa: F401  (imported here so that no call waits for it)

            service = self.service
            then(service)
            service.warm()
        except HybridRagError as error:
            log.info("not opened before the first call: %s", error.message)  # the call itself will say so
        except Exception:
            log.exception("opening the index failed; the first call tries again")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._service is not None:
                self._service.close()
                self._service = None
