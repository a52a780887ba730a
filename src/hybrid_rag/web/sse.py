"""Server-sent events: work in a thread tells what it does, and stops when the client has gone."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import StreamingResponse

from hybrid_rag.errors import Cancelled, HybridRagError
from hybrid_rag.web.threads import Busy, Threads

EVENT = {"type": "object", "properties": {"event": {"type": "string"}, "data": {"type": "string", "description": "JSON."}}}
EVENTS = {200: {"description": "Server-sent events.", "content": {"text/event-stream": {"schema": EVENT}}}}
LOOK_SECONDS = 0.25  # between two looks at whether the client is there
BEAT_SECONDS = 15.0  # of silence, after which a comment keeps the connection open

INTERNAL = {"error": "InternalError", "message": "Something went wrong in the server.", "remedy": "Its log says what."}
log = logging.getLogger(__name__)

T = TypeVar("T")
Tell = Callable[[str, Any], None]  # event name, JSON-ready data


def event(name: str, data: Any) -> bytes:
    """One event; the data is JSON on one line."""
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False, default=str)}\n\n".encode("utf-8", "replace")


def response(events: AsyncIterator[bytes]) -> StreamingResponse:
    """``X-Accel-Buffering``: a proxy in between must not hold the events back."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})


async def stream(request: Request, threads: Threads, work: Callable[[Tell, Callable[[], bool]], None]) -> AsyncIterator[bytes]:
    """Run ``work(tell, gone)`` in a thread and send what it tells. An error becomes an event "error" with its message and remedy."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    gone = threading.Event()

    def tell(name: str, data: Any) -> None:
        loop.call_soon_threadsafe(queue.put_nowait, event(name, data))

    task = asyncio.ensure_future(threads.run(work, tell, gone.is_set))
    try:
        async for data in _until_done(request, task, queue):
            yield data
        try:
            task.result()
        except Busy:
            yield event("error", {"error": "Busy", "message": "Too many questions are being answered.", "remedy": "Try again in a moment."})
        except Cancelled:
            pass  # the client has gone: nobody to tell
        except HybridRagError as error:
            yield event("error", error.to_dict())
        except Exception:
            log.exception("A stream failed")
            yield event("error", INTERNAL)
    finally:
        gone.set()
        task.add_done_callback(_seen)


async def while_there(request: Request, threads: Threads, work: Callable[[Callable[[], bool]], T]) -> T:
    """The result of ``work(gone)``, run in a thread that is told when the client has gone. Raises Busy, Cancelled, and what it raises."""
    gone = threading.Event()
    task = asyncio.ensure_future(threads.run(work, gone.is_set))
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=LOOK_SECONDS)
            if not task.done() and await request.is_disconnected():
                gone.set()
        return task.result()
    finally:
        gone.set()
        task.add_done_callback(_seen)


async def _until_done(request: Request, task: asyncio.Future[None], queue: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
    silent = 0.0
    while not (task.done() and queue.empty()):
        getting = asyncio.ensure_future(queue.get())
        await asyncio.wait({getting, task}, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if getting.done():
            silent = 0.0
            yield getting.result()
            continue
        getting.cancel()
        if await request.is_disconnected():
            raise asyncio.CancelledError
        silent += LOOK_SECONDS
        if silent >= BEAT_SECONDS:
            silent = 0.0
            yield b": still at work\n\n"


def _seen(task: asyncio.Future[None]) -> None:
    """An error after the client has gone concerns nobody; asyncio would print it."""
    if not task.cancelled():
        task.exception()
