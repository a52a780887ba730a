"""JSON: the index itself: runs in the background, the report, statistics, health and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from hybrid_rag.errors import HybridRagError, InputError
from hybrid_rag.loading.scan import source_of
from hybrid_rag.records import IndexReport, Stats
from hybrid_rag.web import sse
from hybrid_rag.web.context import LONGEST_NAME, Context, Here, client
from hybrid_rag.web.shapes import HealthShape, RunShape, gives

router = APIRouter(prefix="/api", tags=["index"])

LOOK_SECONDS = 0.2  # between two looks at a run's progress


class Run(BaseModel):
    """What to index; without paths all of the data folder."""

    model_config = ConfigDict(extra="forbid")

    paths: list[str] | None = Field(None, max_length=1000, description="Parts of the data folder.")
    verify: bool = Field(False, description="Hash every file, also those whose size and time are unchanged.")


@router.post("/index", status_code=202, summary="Index what changed, in the background", **gives(RunShape, 202))
async def start(here: Here, request: Request, body: Run | None = None) -> dict[str, Any]:
    """Begins a run, or lets one follow the present one. `GET /api/index` says how it goes."""
    here.index_limit.take(client(request))
    wanted = body or Run()  # type: ignore[call-arg]

    def begin() -> None:
        root = here.service.config.data.directory
        for path in wanted.paths or ():
            if len(path) > LONGEST_NAME or "\0" in path:
                raise InputError("A path is too long or holds a NUL.")
            source_of(root, root / path)
        here.service.background.start([root / p for p in wanted.paths] if wanted.paths is not None else None, verify=wanted.verify)

    await here.quick.run(begin)
    return here.service.background.state.to_dict()


@router.get("/index", summary="The run in the background", **gives(RunShape))
async def state(here: Here) -> dict[str, Any]:
    return here.service.background.state.to_dict()


@router.delete("/index", summary="Stop the run", **gives(RunShape))
async def cancel(here: Here) -> dict[str, Any]:
    """It ends after its present batch; what is done is kept."""
    here.service.background.cancel()
    return here.service.background.state.to_dict()


@router.get("/index/events", summary="The run's progress as events", response_class=StreamingResponse, responses=sse.EVENTS)
async def events(here: Here, request: Request) -> StreamingResponse:
    """Events `state`, whenever something moved, until no run is under way; the last one is the end."""
    return sse.response(_states(here, request))


async def _states(here: Context, request: Request) -> AsyncIterator[bytes]:
    last: dict[str, Any] | None = None
    silent = 0.0
    while not await request.is_disconnected():
        now = here.service.background.state.to_dict()
        if now != last:
            last, silent = now, 0.0
            yield sse.event("state", now)
        elif (silent := silent + LOOK_SECONDS) >= sse.BEAT_SECONDS:
            silent = 0.0
            yield b": still at work\n\n"
        if not now["running"]:
            return
        await asyncio.sleep(LOOK_SECONDS)


@router.get("/report", summary="What the last run could not read", **gives(IndexReport | None))
async def report(here: Here) -> dict[str, Any] | None:
    """As `hybrid-rag report --json`."""
    found = await here.quick.run(here.service.report)
    return found.to_dict() if found else None


@router.get("/stats", summary="What is indexed", **gives(Stats))
async def stats(here: Here) -> dict[str, Any]:
    """As `hybrid-rag stats --json`."""
    return (await here.quick.run(here.service.stats)).to_dict()


@router.get("/latency", summary="How long searches and answers took")
async def latency(here: Here) -> dict[str, dict[str, float]]:
    """Since the server started: `search` and `ask`, each with `count`, and `p50`, `p95`, `p99` of the latest 1,000 in milliseconds."""
    return here.measures.latency()


@router.get("/health", summary="Is the server there?", **gives(HealthShape))
async def health() -> dict[str, str]:
    """Needs no token."""
    return {"status": "ok", "version": version("hybrid-rag")}


@router.get("/metrics", summary="For Prometheus", response_class=PlainTextResponse)
async def metrics(here: Here) -> PlainTextResponse:
    gauges: list[tuple[str, str, float]] = [
        ("calls", "Searches and look-ups at work or waiting.", here.quick.inside),
        ("answers", "Questions at work or waiting.", here.answers.inside),
        ("indexing", "1 while an indexing run is under way.", float(here.service.background.state.running)),
    ]
    try:
        s = await here.quick.run(here.service.stats)
    except HybridRagError:
        gauges.append(("index_open", "1 when the index can be read.", 0))
    else:
        gauges += [
            ("index_open", "1 when the index can be read.", 1),
            ("documents", "Documents of the index.", s.documents),
            ("chunks", "Chunks of the index.", s.chunks),
            ("vector_share", "Share of the chunks that have vectors.", s.vector_share),
            ("index_bytes", "Size of the index on disk.", s.size_bytes),
            ("files_not_read", "Files that could not be read.", s.not_read),
        ]
    return PlainTextResponse(here.measures.prometheus(gauges), media_type="text/plain; version=0.0.4")
