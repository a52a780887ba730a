"""JSON: search, facets, and the ways around a collection. The same fields as the command line's ``--json``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from hybrid_rag.filters import Filters
from hybrid_rag.records import DocumentInfo
from hybrid_rag.web.context import LONGEST_NAME, LONGEST_QUERY, FiltersGiven, Here
from hybrid_rag.web.facets import facets
from hybrid_rag.web.shapes import FacetsShape, RelatedShape, SearchShape, TimelineShape, gives

router = APIRouter(prefix="/api", tags=["search"])

Text = Annotated[str, Query(min_length=1, max_length=LONGEST_QUERY)]
Few = Annotated[int, Query(ge=1, le=100)]


@router.get("/search", summary="Passages and table rows", **gives(SearchShape))
async def search(
    here: Here,
    q: Text,
    filters: FiltersGiven,
    k: Annotated[int | None, Query(ge=1, le=200, description="Results; unset: as configured.")] = None,
    mode: Annotated[Literal["hybrid", "keyword", "dense"], Query(description="Legs to use.")] = "hybrid",
    rerank: Annotated[bool | None, Query(description="Use the cross-encoder; unset: as configured.")] = None,
    explain: bool = False,
) -> dict[str, Any]:
    """As `hybrid-rag search --json`."""
    find = here.timed("search", here.service.search)
    return (await here.quick.run(find, q, k=k, filters=filters, mode=mode, rerank=rerank, explain=explain)).to_dict()


@router.get("/facets", summary="Filters with their counts", **gives(FacetsShape))
async def counts(here: Here, filters: FiltersGiven) -> dict[str, Any]:
    """How many documents each folder, kind, tag and span of time would leave."""
    return (await here.quick.run(lambda: facets(here.documents(), filters or Filters()))).to_dict()


@router.get("/recent", summary="The latest documents", **gives(list[DocumentInfo]))
async def recent(here: Here, filters: FiltersGiven, k: Few = 10) -> list[dict[str, Any]]:
    """As `hybrid-rag recent --json`."""
    return [d.to_dict() for d in await here.quick.run(here.service.recent, k, filters)]


@router.get("/related", summary="Documents near one", **gives(list[RelatedShape]))
async def related(here: Here, source: Annotated[str, Query(min_length=1, max_length=LONGEST_NAME)], k: Few = 5) -> list[dict[str, Any]]:
    """As `hybrid-rag related --json`."""
    return [r.to_dict() for r in await here.quick.run(here.service.related, source, k)]


@router.get("/timeline", summary="Documents in time around the best match", **gives(TimelineShape))
async def timeline(
    here: Here,
    q: Text,
    filters: FiltersGiven,
    before: Annotated[int, Query(ge=0, le=100)] = 3,
    after: Annotated[int, Query(ge=0, le=100)] = 3,
) -> dict[str, Any]:
    """As `hybrid-rag timeline --json`; `q` is a question or a document."""
    return (await here.quick.run(here.service.timeline, q, before, after, filters)).to_dict()
