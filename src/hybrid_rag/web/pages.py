"""The pages and the fragments that the script puts into them, rendered by the server. Everything of documents is escaped."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from fastapi.templating import Jinja2Templates

from hybrid_rag.errors import HybridRagError, IndexEmptyError
from hybrid_rag.filters import Filters
from hybrid_rag.records import SearchResult
from hybrid_rag.service import parse_rows
from hybrid_rag.web import presenting, sse
from hybrid_rag.web.api_ask import Question, answer
from hybrid_rag.web.api_documents import Page, RowsGiven, Source, Span, found
from hybrid_rag.web.context import LONGEST_QUERY, Context, FiltersGiven, Here, client
from hybrid_rag.web.facets import facets
from hybrid_rag.web.guard import COOKIE, cookie_of
from hybrid_rag.web.sources import RECORDS, Place, view

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
FOLDER = Path(__file__).parent
RESULTS = 10  # of a search of the page, unless more are configured
MOST_RESULTS = 100
DOCUMENTS_SHOWN = 500
RECENT = 6
RELATED = 6

Query_ = Annotated[str, Query(max_length=LONGEST_QUERY)]
More = Annotated[int | None, Query(ge=1, le=MOST_RESULTS)]


def _templates() -> Jinja2Templates:
    templates = Jinja2Templates(directory=FOLDER / "templates")
    assert templates.env.autoescape
    templates.env.trim_blocks = templates.env.lstrip_blocks = True
    templates.env.filters |= {"cell": presenting.cell, "size": presenting.size, "format_name": presenting.format_name}
    templates.env.globals |= {
        "query": presenting.query, "source_href": presenting.source_href, "split_path": presenting.split_path,
        "without": presenting.without, "RECORDS": RECORDS,
    }  # fmt: skip
    return templates


templates = _templates()


def page(request: Request, name: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    here: Context = request.app.state.context
    common = {"path": request.url.path, "token": here.token is not None, "upload": here.settings.upload, "version": request.app.version}
    return templates.TemplateResponse(request, name, {**common, **values}, status)


# ---------------------------------------------------------------- search


@router.get("/")
async def search_page(here: Here, request: Request, filters: FiltersGiven, q: Query_ = "", k: More = None) -> Response:
    """Works without the script too: the results are in the page."""
    found_ = await here.quick.run(_search, here, request, q, filters, k, "hybrid")
    return page(request, "search.html", **{**await _choices(here, request, filters, q), **found_})


@router.get("/fragments/results")
async def results(
    here: Here, request: Request, filters: FiltersGiven, q: Query_ = "", k: More = None, mode: Literal["hybrid", "keyword"] = "hybrid"
) -> Response:
    return page(request, "results.html", **await here.quick.run(_search, here, request, q, filters, k, mode))


@router.get("/fragments/filters")
async def filter_form(here: Here, request: Request, filters: FiltersGiven, q: Query_ = "") -> Response:
    return page(request, "filters.html", **await _choices(here, request, filters, q))


def _search(
    here: Context, request: Request, q: str, filters: Filters | None, k: int | None, mode: Literal["hybrid", "keyword"]
) -> dict[str, Any]:
    wanted = k or max(RESULTS, here.service.config.retrieval.results)
    values: dict[str, Any] = {"q": q, "k": wanted, "most": MOST_RESULTS, "params": _params(request), "mode": mode, "result": None}
    if not q.strip():
        documents = here.documents()
        names = [card.name for card in here.service.tables()] if documents else []
        recent = here.service.recent(RECENT, filters) if documents else []
        return values | {"documents": len(documents), "tables": names, "recent": recent}
    find = here.timed("search", here.service.search)
    try:
        result: SearchResult = find(q, k=wanted, filters=filters, mode=mode, explain=True)
    except IndexEmptyError:
        return values | {"documents": 0}
    return values | {"documents": len(here.documents()), "result": result, "hits": [presenting.hit_view(h) for h in result.hits]}


async def _choices(here: Context, request: Request, filters: Filters | None, q: str) -> dict[str, Any]:
    chosen = filters or Filters()
    counted = await here.quick.run(lambda: facets(here.documents(), chosen))
    tags = request.query_params.getlist("tag")
    return {"facets": counted, "filters": chosen, "tags": tags, "q": q, "params": _params(request), "filtered": filters is not None}


def _params(request: Request) -> dict[str, Any]:
    """The parameters of the address that say what is searched, for links that change one of them."""
    names = ("q", "folder", "glob", "kind", "tag", "since", "until", "recent")
    given = request.query_params
    return {n: given.getlist(n) if n == "tag" else given[n] for n in names if given.get(n)}


# ---------------------------------------------------------------- ask


@router.get("/ask")
async def ask_page(here: Here, request: Request, filters: FiltersGiven, q: Query_ = "") -> Response:
    """The script asks; a page that is only looked at starts no language model."""
    names = await here.quick.run(lambda: [card.name for card in here.service.tables()] if here.documents() else [])
    total = len(await here.quick.run(here.documents))
    return page(request, "ask.html", documents=total, tables=names, **await _choices(here, request, filters, q))


@router.post("/fragments/ask", response_class=StreamingResponse)
async def ask(here: Here, request: Request, body: Question) -> StreamingResponse:
    """Events: `token` while a model writes, then `done` with the answer as HTML and as a turn of the conversation, or `error`."""
    here.ask_limit.take(client(request))

    def work(tell: sse.Tell, gone: Callable[[], bool]) -> None:
        given = answer(here, body, on_token=lambda text: tell("token", {"text": text}), cancel=gone)
        html = templates.get_template("answer.html").render(view=presenting.answer_view(given), request=request)
        sources = list(dict.fromkeys(c.source for c in given.citations))
        turn = {"question": given.question, "rewritten": given.rewritten_question, "answer": given.answer, "sources": sources}
        tell("done", {"html": html, "turn": turn})

    return sse.response(sse.stream(request, here.answers, work))


# ---------------------------------------------------------------- sources


@router.get("/source")
async def source_page(here: Here, request: Request, source: Source, page_: Annotated[Page, Query(alias="page")] = None, rows: RowsGiven = None,
                      start: Span = None, end: Span = None) -> Response:  # fmt: skip
    values = await here.quick.run(_source, here, source, page_, rows, start, end)
    return page(request, "source_page.html", q="", **values)


@router.get("/fragments/source")
async def source_fragment(here: Here, request: Request, source: Source, page_: Annotated[Page, Query(alias="page")] = None,
                          rows: RowsGiven = None, start: Span = None, end: Span = None) -> Response:  # fmt: skip
    return page(request, "source.html", **await here.quick.run(_source, here, source, page_, rows, start, end))


def _source(here: Context, source: str, page_: int | None, rows: str | None, start: int | None, end: int | None) -> dict[str, Any]:
    found(here, source)
    place = Place(page_, parse_rows(rows) if rows else None, start, end)
    shown = view(here.service, source, place)
    return {"view": shown, "document": shown.document}


@router.get("/fragments/related")
async def related(here: Here, request: Request, source: Source) -> Response:
    found_ = await here.quick.run(lambda: found(here, source) and here.service.related(source, RELATED))
    return page(request, "related.html", related=found_)


# ---------------------------------------------------------------- documents and statistics


@router.get("/documents")
async def documents_page(
    here: Here, request: Request, filters: FiltersGiven, find: Annotated[str, Query(max_length=1000)] = ""
) -> Response:
    return page(request, "documents.html", q="", **await here.quick.run(_documents, here, request, filters, find))


@router.get("/fragments/documents")
async def documents_fragment(
    here: Here, request: Request, filters: FiltersGiven, find: Annotated[str, Query(max_length=1000)] = ""
) -> Response:
    return page(request, "document_list.html", **await here.quick.run(_documents, here, request, filters, find))


def _documents(here: Context, request: Request, filters: Filters | None, find: str) -> dict[str, Any]:
    matching = [d for d in here.documents() if filters is None or filters.matches(d)]
    matching = presenting.documents_matching(matching, find)
    try:
        report, recent = here.service.report(), here.service.recent(RECENT)
    except IndexEmptyError:
        report, recent = None, []
    unread = [f for f in report.files if f.status != "read" and f.change != "deleted"] if report else []
    return {
        "documents": matching[:DOCUMENTS_SHOWN], "matching": len(matching), "total": len(here.documents()), "find": find, "report": report,
        "unread": unread, "recent": recent, "state": here.service.background.state, "folder": here.service.config.data.directory,
        "params": _params(request), "writing": here.service.lock_holder(),
    }  # fmt: skip


@router.get("/statistics")
async def statistics_page(here: Here, request: Request) -> Response:
    def values() -> dict[str, Any]:
        try:
            stats = here.service.stats()
        except IndexEmptyError:
            stats = None
        return {"stats": stats, "latency": here.measures.latency(), "model": _model(here)}

    return page(request, "statistics.html", q="", **await here.quick.run(values))


def _model(here: Context) -> str:
    """What writes the answers, for people."""
    try:
        chat = here.service.parts.chat()
    except HybridRagError as error:
        return error.message
    return chat.model if chat else here.service.parts.chat_note() or "none: answers are quoted from the documents"


# ---------------------------------------------------------------- login


@router.get("/login")
async def login_page(here: Here, request: Request) -> Response:
    return page(request, "login.html", q="", wrong=False) if here.token else RedirectResponse("/", 303)


@router.post("/login")
async def login(here: Here, request: Request) -> Response:
    """Exchange the token for a cookie that says that it was known."""
    if here.token is None:
        return RedirectResponse("/", 303)
    here.login_limit.take(client(request))
    given = await _form_field(request, "token")
    if not hmac.compare_digest(given.encode(), here.token.encode()):
        return page(request, "login.html", status=401, q="", wrong=True)
    response = RedirectResponse("/", 303)
    response.set_cookie(
        COOKIE, cookie_of(here.token), max_age=30 * 86400, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return response


@router.post("/logout")
async def logout() -> Response:
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response


async def _form_field(request: Request, name: str) -> str:
    """A field of a URL-encoded form of at most 4 kB."""
    from urllib.parse import parse_qs

    body = b""
    async for data in request.stream():
        body += data
        if len(body) > 4096:
            return ""
    return parse_qs(body.decode("utf-8", "replace")).get(name, [""])[0].strip()
