"""Serve one client over stdin and stdout. The protocol has the real stdout for itself, whatever any library prints."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from io import TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid_rag.config import Loaded
    from hybrid_rag.mcp_server.server import DocumentServer

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wires:
    """The two streams of the protocol, UTF-8 whatever the environment says."""

    reading: TextIOWrapper
    writing: TextIOWrapper


def take_streams() -> Wires:
    """Keep stdin and stdout for the protocol. File 0 is empty from now on and file 1 is stderr, also for child processes."""
    sys.stdout.flush()
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.stdin = open(os.devnull, encoding="utf-8")
    sys.stdout = sys.stderr
    return Wires(
        TextIOWrapper(os.fdopen(reading, "rb"), encoding="utf-8", errors="replace"),
        TextIOWrapper(os.fdopen(writing, "wb"), encoding="utf-8", errors="replace", newline="\n"),
    )


def serve(loaded: Loaded, wires: Wires) -> None:
    """Answer the client until it closes its side."""
    import gc

    gc.disable()  # the protocol's many classes are made once and stay
    import anyio

    from hybrid_rag.mcp_server.library import Library
    from hybrid_rag.mcp_server.server import DocumentServer

    gc.freeze()
    gc.enable()
    documents = DocumentServer(Library(loaded))
    try:
        anyio.run(_serve, documents, wires)
    except* (BrokenPipeError, ConnectionResetError):
        log.info("the client has gone")
    finally:
        documents.close()


async def _serve(documents: DocumentServer, wires: Wires) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    from hybrid_rag.mcp_server.server import CHANGES

    server = documents.server
    async with stdio_server(_lines(wires.reading), anyio.wrap_file(wires.writing)) as (reading, writing):  # type: ignore[arg-type]
        await server.run(reading, writing, server.create_initialization_options(CHANGES))


async def _lines(stream: TextIOWrapper) -> AsyncIterator[str]:
    """The lines of a stream, read by a thread that nobody has to wait for: Ctrl-C ends the server while it reads."""
    import anyio.from_thread
    from anyio.lowlevel import current_token

    send, receive = anyio.create_memory_object_stream[str](0)
    token = current_token()

    def read() -> None:
        try:
            for line in stream:
                anyio.from_thread.run(send.send, line, token=token)
            anyio.from_thread.run_sync(send.close, token=token)
        except (anyio.RunFinishedError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the server has ended

    threading.Thread(target=read, name="stdin", daemon=True).start()
    async with receive:
        async for line in receive:
            yield line
