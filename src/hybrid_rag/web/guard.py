"""Who may ask, from where, and what a browser may do with the answer: one ASGI middleware around everything.

- Host: without a token only this machine's names are answered, so that no web site can reach the server by a name of its own
  that it points here (DNS rebinding).
- Origin: what changes something, and what a page of another site would load, must come from this page.
- Token: a bearer token, or a cookie that is derived from it; compared in constant time.
- Headers: a content security policy without inline script or style, no framing, no sniffing, no referrer for others.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hybrid_rag.access import bears, is_loopback
from hybrid_rag.web.measures import Measures

COOKIE = "hybrid_rag"
OPEN_PATHS = ("/login", "/api/health", "/static/")  # answered without a token
SAFE_METHODS = frozenset(["GET", "HEAD", "OPTIONS"])
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # none at all would make the forms of this page say "Origin: null"
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
log = logging.getLogger(__name__)


def cookie_of(token: str) -> str:
    """What the cookie holds: it shows that the token was known, and is not the token."""
    return hmac.new(token.encode(), b"hybrid-rag cookie 1", hashlib.sha256).hexdigest()


class Guard:
    """The middleware. ``token`` None: everyone who reaches the server by this machine's names may ask.

    ``failed`` makes the answer to an error that nothing foresaw.
    """

    def __init__(
        self, app: ASGIApp, *, token: str | None, measures: Measures, failed: Callable[[Request, Exception], Awaitable[Response]]
    ) -> None:
        self._app, self._measures, self._failed = app, measures, failed
        self._token = token
        self._cookie = cookie_of(token) if token else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # nothing here speaks WebSocket; the server refuses the handshake
        started, status = time.perf_counter(), 0

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-cache" if scope["path"].startswith("/static/") else "no-store")
            await send(message)

        refusal = self._refusal(HTTPConnection(scope))
        try:
            await (refusal or self._app)(scope, receive, guarded)
        except Exception as error:
            response = await self._failed(Request(scope, receive), error)
            if not status:
                await response(scope, receive, guarded)
        finally:
            route = getattr(scope.get("route"), "path", "") or ("/static" if scope["path"].startswith("/static/") else "other")
            self._measures.request(scope["method"], route, status)
            log.info("%s %s %d %.1f ms", scope["method"], route, status, (time.perf_counter() - started) * 1000)  # no query: it is private

    def _refusal(self, request: HTTPConnection) -> Response | None:
        headers = request.headers
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        if self._token is None and not is_loopback(host):
            return _refused(403, "Forbidden", f"This server does not answer to the name {host!r}.", "Open it by http://127.0.0.1.")
        if not self._same_origin(request.scope, headers):
            return _refused(
                403, "Forbidden", "The request comes from another site.", "Use the page itself, or a client that sends no Origin."
            )
        if self._token is None or self._knows_token(request) or request.url.path.startswith(OPEN_PATHS):
            return None
        if request.scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            return RedirectResponse("/login", status_code=303)
        return _refused(401, "Unauthorized", "A token is needed.", "Send it as `Authorization: Bearer …`, or open /login.")

    def _same_origin(self, scope: Scope, headers: Headers) -> bool:
        """Browsers say where a request comes from; other clients send neither header and cannot be tricked by a site."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            return False
        if site in (None, "same-origin", "none"):
            return True
        opened = headers.get("sec-fetch-mode") == "navigate" and scope["method"] in SAFE_METHODS
        return opened and not scope["path"].startswith("/api/")

    def _knows_token(self, request: HTTPConnection) -> bool:
        assert self._token is not None
        if bears(request.headers.get("authorization", ""), self._token):
            return True
        return hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), self._cookie.encode())


def _refused(status: int, error: str, message: str, remedy: str) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"error": error, "message": message, "remedy": remedy}, status, headers)
