"""The application: routes, errors as JSON or pages, static files, and the guard around everything."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from hybrid_rag import errors
from hybrid_rag.service import Service
from hybrid_rag.web import api_ask, api_documents, api_index, api_search, pages
from hybrid_rag.web.context import Context, HttpError
from hybrid_rag.web.guard import Guard
from hybrid_rag.web.limits import TooMany
from hybrid_rag.web.threads import Busy

STATUS: tuple[tuple[type[errors.HybridRagError], int], ...] = (
    (errors.InputError, 400),
    (errors.SqlLimitError, 422),
    (errors.TableError, 400),
    (errors.ReadError, 422),
    (errors.DataError, 409),
    (errors.IndexEmptyError, 409),
    (errors.IndexLockedError, 409),
    (errors.OllamaBusyError, 503),
    (errors.OllamaError, 502),
    (errors.Cancelled, 499),  # nobody reads it: the client has gone
)
LARGEST_BODY = 1 << 20  # bytes of a request that is no upload
DESCRIPTION = (
    "Search a folder of documents and tables, and get answers that can be checked. The records are those of the command line's `--json`."
)
log = logging.getLogger(__name__)


def create_app(service: Service, *, token: str | None = None) -> FastAPI:
    """The page and API of a service. ``token`` None: whoever reaches it by this machine's names may use it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        app.state.context.close()

    app = FastAPI(
        title="hybrid-rag", version=version("hybrid-rag"), description=DESCRIPTION, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json", redirect_slashes=False, responses=_responses(),
        max_body_size=LARGEST_BODY,
    )  # fmt: skip
    context = app.state.context = Context(service, service.config.web, token)
    for module in (api_search, api_ask, api_documents, api_index, pages):
        app.include_router(module.router)
    app.mount("/static", StaticFiles(directory=pages.FOLDER / "static"), name="static")
    app.add_middleware(Guard, token=token, measures=context.measures, failed=_unexpected)
    app.add_exception_handler(errors.HybridRagError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(TooMany, _too_many)
    app.add_exception_handler(Busy, _busy)
    return app


def _responses() -> dict[int | str, dict[str, Any]]:
    text = {"type": "string"}
    schema = {"type": "object", "properties": {"error": text, "message": text, "remedy": text}, "required": ["error", "message", "remedy"]}
    told = {400: "An argument is wrong.", 403: "Not allowed.", 404: "There is no such thing.", 409: "The index or the data folder is not ready for this.",
            413: "The request is too large.", 422: "The request is not of the form described, or beyond a limit.", 429: "Too many requests of one client.",
            502: "The language model failed.", 503: "Everything is busy."}  # fmt: skip
    return {status: {"description": text_, "content": {"application/json": {"schema": schema}}} for status, text_ in told.items()}


def _answered(request: Request, status: int, body: dict[str, str], headers: dict[str, str] | None = None) -> Response:
    """The error as JSON, or as a page for someone who opens an address."""
    page = (
        request.method == "GET"
        and not request.url.path.startswith(("/api/", "/static/"))
        and "text/html" in request.headers.get("accept", "")
    )
    if page:
        fragment = request.url.path.startswith("/fragments/")
        return pages.page(request, "error.html" if fragment else "error_page.html", status=status, q="", **body)
    return JSONResponse(body, status, headers)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, errors.HybridRagError)
    status = error.status if isinstance(error, HttpError) else next((s for kind, s in STATUS if isinstance(error, kind)), 500)
    if status == 500:
        log.error("%s: %s", request.url.path, error.message)
    return _answered(request, status, error.to_dict())


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    lines = [f"{'.'.join(str(part) for part in p['loc'][1:]) or p['loc'][0]}: {p['msg']}" for p in error.errors()[:5]]
    return _answered(
        request, 422, {"error": "InvalidRequest", "message": "; ".join(lines), "remedy": "/api/openapi.json describes the API."}
    )


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = {"error": "NotFound" if error.status_code == 404 else "Refused", "message": str(error.detail), "remedy": ""}
    return _answered(request, error.status_code, body, dict(error.headers or {}))


async def _too_many(request: Request, error: Exception) -> Response:
    assert isinstance(error, TooMany)
    body = {"error": "TooManyRequests", "message": str(error), "remedy": "Wait a moment, or raise web.requests_per_minute."}
    return _answered(request, 429, body, {"Retry-After": str(error.seconds)})


async def _busy(request: Request, error: Exception) -> Response:
    body = {"error": "Busy", "message": "The server has too much to do.", "remedy": "Try again in a moment."}
    return _answered(request, 503, body, {"Retry-After": "2"})


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("%s failed", request.url.path, exc_info=error)
    return _answered(
        request, 500, {"error": "InternalError", "message": "Something went wrong in the server.", "remedy": "Its log says what."}
    )
