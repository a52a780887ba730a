"""Serve many clients over streamable HTTP: Host and Origin are checked, and a bearer token where one is set.

Without a token only this machine is listened to. A page in a browser cannot reach the server: its Origin is refused, and a
name that was bent to this address (DNS rebinding) is not among the hosts.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hybrid_rag.access import bears, check_listening
from hybrid_rag.errors import HybridRagError

if TYPE_CHECKING:
    from hybrid_rag.config import Loaded

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
BACKLOG = 128
CLOSE_SECONDS = 3  # for open streams when the server ends
Scope = dict[str, Any]
log = logging.getLogger(__name__)


def serve(loaded: Loaded, host: str, port: int, *, listening: Callable[[str], None]) -> None:
    """Serve until interrupted. ``listening`` is told the address. Raises ConfigError without a token where one is needed."""
    token = loaded.config.mcp.token
    check_listening("mcp", host, token)
    import uvicorn

    from hybrid_rag.mcp_server.library import Library
    from hybrid_rag.mcp_server.server import DocumentServer

    listener = _listen(host, port)
    documents = DocumentServer(Library(loaded))
    app = Guard(application(documents), {*LOOPBACK, host, socket.gethostname(), *loaded.config.mcp.allowed_hosts}, token)
    shown = f"[{host}]" if ":" in host else host
    listening(f"Serving MCP on http://{shown}:{listener.getsockname()[1]}{PATH}; Ctrl-C ends.")
    documents.warm()
    try:
        uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=CLOSE_SECONDS)).run([listener])
    finally:
        documents.close()
        listener.close()


def application(documents: Any) -> Any:
    """The ASGI application of the SDK; the guard before it does what its own checks would do."""
    from mcp.server.transport_security import TransportSecuritySettings

    off = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return documents.server.streamable_http_app(streamable_http_path=PATH, transport_security=off)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)  # whoever comes before the server runs waits in the queue
    except OSError as error:
        listener.close()
        raise HybridRagError(
            f"Cannot listen on {host}:{port}: {error.strerror or error}.", "Set mcp.host and mcp.port, or --host and --port."
        ) from error
    return listener


class Guard:
    """Lets a request through whose Host, Origin and token are right. ``hosts``: names, without port, that mean this server."""

    def __init__(self, app: Any, hosts: Iterable[str], token: str | None) -> None:
        self._app, self._token = app, token
        self._hosts = {host.casefold() for host in hosts}

    async def __call__(self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
        if scope["type"] == "http" and (refused := self.judge(scope)) is not None:
            status, message, remedy = refused
            log.warning("refused a request from %s: %s", (scope.get("client") or ["?"])[0], message)
            body = json.dumps({"error": "Refused", "message": message, "remedy": remedy}).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            if status == 401:
                headers.append((b"www-authenticate", b"Bearer"))
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        await self._app(scope, receive, send)

    def judge(self, scope: Scope) -> tuple[int, str, str] | None:
        """None, or status, message and remedy of a refusal."""
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        host = headers.get(b"host", [])
        if len(host) != 1 or not self._is_here(_host_of(f"//{host[0].decode('latin-1')}"), scope):
            return 421, "The Host header does not name this server.", "Add the name to mcp.allowed_hosts."
        for origin in headers.get(b"origin", []):
            if not self._is_here(_host_of(origin.decode("latin-1")), scope):
                return 403, "The Origin header names another site.", "Add its host to mcp.allowed_hosts."
        given = headers.get(b"authorization", [])
        if self._token is not None and not (len(given) == 1 and bears(given[0].decode("latin-1"), self._token)):
            return (
                401,
                "The bearer token is missing or wrong.",
                "Send the header `Authorization: Bearer TOKEN` with the value of mcp.token.",
            )
        return None

    def _is_here(self, host: str, scope: Scope) -> bool:
        """A known name, or the very address at which the request came in."""
        server = scope.get("server")
        return bool(host) and (host in self._hosts or bool(server and host == str(server[0]).casefold()))


def _host_of(address: str) -> str:
    """The host of "//name:port" or "http://name:port", lower case; "" when it is none."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return ""
    return "" if parts.username or parts.path.strip("/") or parts.query else (parts.hostname or "").casefold()
