"""Runs the page: checks where it may listen, opens the socket, says the address, and stops cleanly."""

from __future__ import annotations

import errno
import signal
import socket
import threading
from collections.abc import Callable

from hybrid_rag.access import check_listening
from hybrid_rag.errors import HybridRagError
from hybrid_rag.service import Service

BACKLOG = 128


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises HybridRagError."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            raise HybridRagError(f"Port {port} of {host} is in use.", "Choose another: `hybrid-rag serve --port 8081`.") from error
        raise HybridRagError(f"The page cannot listen on {host}:{port}: {error}.", "Set web.host and web.port.") from error


def serve(service: Service, *, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. Raises ConfigError, HybridRagError."""
    import uvicorn

    from hybrid_rag.web.app import create_app

    token = service.config.web.token
    check_listening("web", host, token)
    with listen(host, port) as sock:
        app = create_app(service, token=token)
        config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False, lifespan="on", timeout_graceful_shutdown=5,
                                proxy_headers=False, ws="none")  # fmt: skip
        shown = f"[{host}]" if ":" in host else host
        say(f"The page is at http://{shown}:{sock.getsockname()[1]}/ (Ctrl-C ends).")
        _keep_signals()
        threading.Thread(target=_warm_up, args=(service,), daemon=True, name="web-warm-up").start()
        if service.config.web.sync_on_start:
            service.background.start()
        uvicorn.Server(config).run(sockets=[sock])


def _keep_signals() -> None:
    """uvicorn stops at these signals and then raises them again: the service must still be closed, so they do nothing then."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)


def _warm_up(service: Service) -> None:
    """Open the index and load the embedder now, so that the first search does not wait for them."""
    try:
        service.search("warm up", k=1)
    except HybridRagError:
        return  # nothing is indexed yet, or it cannot be read: the first request says so
