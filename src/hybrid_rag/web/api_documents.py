"""JSON: documents, their parts and pages, tables and SQL, and upload into the data folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from hybrid_rag.errors import InputError
from hybrid_rag.records import DocumentInfo, Passage, TableCard, TableResult
from hybrid_rag.service import parse_rows
from hybrid_rag.web.context import LONGEST_NAME, Context, FiltersGiven, Here, HttpError, client
from hybrid_rag.web.shapes import SourceShape, UploadShape, gives
from hybrid_rag.web.sources import Place, view
from hybrid_rag.web.uploads import receive

router = APIRouter(prefix="/api", tags=["documents"])

NO_LIMIT = 1 << 50  # bytes: an upload is held against web.max_upload_mb as it comes in
Source = Annotated[str, Query(min_length=1, max_length=LONGEST_NAME, description="As the list of documents names it.")]
Page = Annotated[int | None, Query(ge=1, le=1_000_000)]
RowsGiven = Annotated[str | None, Query(max_length=40, description="`5` or `5-9`, from 1.")]
Span = Annotated[int | None, Query(ge=0, le=2**31)]


@router.get("/documents", summary="The documents of the index", **gives(list[DocumentInfo]))
async def documents(here: Here, filters: FiltersGiven) -> list[dict[str, Any]]:
    """As `hybrid-rag list --json`."""
    found = await here.quick.run(here.documents)
    return [d.to_dict() for d in found if filters is None or filters.matches(d)]


@router.get("/document", summary="A document, or a part of it", **gives(Passage))
async def document(
    here: Here,
    source: Source,
    page: Page = None,
    rows: RowsGiven = None,
    heading: Annotated[str | None, Query(max_length=LONGEST_NAME)] = None,
    chunk: Annotated[str | None, Query(max_length=100)] = None,
    window: Annotated[int, Query(ge=0, le=100)] = 0,
    max_tokens: Annotated[int | None, Query(ge=1, le=10_000_000)] = None,
) -> dict[str, Any]:
    """As `hybrid-rag read --json`."""
    wanted = parse_rows(rows) if rows else None
    read = here.service.read
    passage = await here.quick.run(
        lambda: (
            found(here, source) and read(source, page=page, rows=wanted, heading=heading, chunk=chunk, window=window, max_tokens=max_tokens)
        )
    )
    return passage.to_dict()


@router.get("/source", summary="A document at a place, ready to be shown", **gives(SourceShape))
async def source_view(
    here: Here, source: Source, page: Page = None, rows: RowsGiven = None, start: Span = None, end: Span = None
) -> dict[str, Any]:
    """A page's text with the place of the passage on its picture, records, Markdown as safe HTML, or text."""
    place = Place(page, parse_rows(rows) if rows else None, start, end)
    return (await here.quick.run(lambda: found(here, source) and view(here.service, source, place))).to_dict()


@router.get("/page", summary="A page of a PDF as a picture", response_class=Response, responses={200: {"content": {"image/png": {}}}})
async def page_image(
    here: Here, source: Source, page: Annotated[int, Query(ge=1, le=1_000_000)], width: Annotated[int, Query(ge=200, le=2000)] = 1000
) -> Response:
    image = await here.quick.run(lambda: found(here, source) and here.service.files.page_image(source, page, width=width))
    return Response(image.png, media_type="image/png", headers={"Cache-Control": "private, max-age=60"})


def found(here: Context, source: str) -> bool:
    """True, or the error that there is no such document, as 404."""
    try:
        here.service.files.document(source)
    except InputError as error:
        raise HttpError(404, error.message, error.remedy) from error
    return True


# ---------------------------------------------------------------- tables


class Sql(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sql: str = Field(min_length=1, max_length=100_000, description="One SELECT.")


@router.get("/tables", summary="The tables with their columns", tags=["tables"], **gives(list[TableCard]))
async def tables(here: Here) -> list[dict[str, Any]]:
    """As `hybrid-rag tables --json`."""
    return [card.to_dict() for card in await here.quick.run(here.service.tables)]


@router.post("/sql", summary="One read-only SELECT", tags=["tables"], **gives(TableResult))
async def sql(here: Here, request: Request, body: Sql) -> dict[str, Any]:
    """As `hybrid-rag sql --json`."""
    here.ask_limit.take(client(request))
    return (await here.answers.run(here.service.sql, body.sql)).to_dict()


# ---------------------------------------------------------------- upload


@router.put(
    "/upload",
    status_code=201,
    max_body_size=NO_LIMIT,
    summary="Put a file into the data folder",
    **gives(UploadShape, 201),
    openapi_extra={"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}},
)
async def upload(here: Here, request: Request, name: Annotated[str, Query(min_length=1, max_length=LONGEST_NAME)]) -> dict[str, Any]:
    """The body is the file. Off unless `web.upload` is set; a file that is there is never overwritten. Index it with `POST /api/index`."""
    here.index_limit.take(client(request))
    run: Callable[..., Any] = here.quick.run
    source, size = await receive(here.service.config, name, request, run)
    return {"source": source, "size": size}
