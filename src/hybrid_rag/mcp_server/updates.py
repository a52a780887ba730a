"""update_documents: the indexing run in the background, told by progress notifications, stopped when its caller cancels."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from hybrid_rag.mcp_server.library import Library
from hybrid_rag.mcp_server.results import RESERVE, Reply, clean, tokens

if TYPE_CHECKING:
    from hybrid_rag.background import BackgroundState
    from hybrid_rag.records import Progress
    from hybrid_rag.service import Service

LOOK_SECONDS = 0.2  # between two looks at a run
PATIENCE_SECONDS = 50  # a client without progress notifications may give up after 60
NOTICE_SECONDS = 0.3  # in which the reason of a cancellation arrives
STAGES = {"scan": (0, 2), "read": (2, 40), "embed text": (40, 72), "embed tables": (72, 98), "optimise": (98, 100)}  # percent of a run


@dataclass(slots=True)
class _Call:
    """One call of the tool. ``mine``: it has begun the run it waits for."""

    mine: bool
    told: float = -1.0


class Updates:
    """Runs that clients ask for, one at a time for all of them."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._reasons: OrderedDict[str, str] = OrderedDict()

    def note_cancelled(self, request: Any, reason: str) -> None:
        """A client has cancelled a request; its reason says whether somebody said stop or the client only gave up waiting."""
        self._reasons[str(request)] = reason
        while len(self._reasons) > 100:
            self._reasons.popitem(last=False)

    def begin(self, service: Service, paths: list[str] | None = None, *, verify: bool = False) -> bool:
        """Begin a run unless one is under way. Raises InputError for a path outside of the data folder."""
        from hybrid_rag.mcp_server.arguments import real

        chosen = [real(path, service.config.data.directory) for path in paths] if paths else None
        return False if service.background.state.running else service.background.start(chosen, verify=verify)

    async def call(self, a: dict[str, Any], ctx: Any) -> Reply:
        """Begin a run, or join the one under way; tell its progress until it ends or the wait is over."""
        service = await anyio.to_thread.run_sync(lambda: self._library.service)
        call = _Call(await anyio.to_thread.run_sync(lambda: self.begin(service, a.get("paths"), verify=a["verify"])))
        listens = (ctx.meta or {}).get("progress_token") is not None
        limit = a.get("wait_seconds", None if listens else PATIENCE_SECONDS)
        deadline = None if limit is None else time.monotonic() + limit
        try:
            while (state := service.background.state).running and (deadline is None or time.monotonic() < deadline):
                await _tell(ctx, state.progress, call)
                await anyio.sleep(LOOK_SECONDS)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._left(service, call, ctx)
            raise
        reply = await anyio.to_thread.run_sync(lambda: self._reply(service, service.background.state, call))
        await ctx.session.send_resource_list_changed()
        return reply

    async def _left(self, service: Service, call: _Call, ctx: Any) -> None:
        """The caller is gone: stop its run, unless the client only lost patience."""
        await anyio.sleep(NOTICE_SECONDS)
        reason = self._reasons.pop(str(ctx.request_id), "").casefold()
        if call.mine and "timed out" not in reason and "timeout" not in reason:
            service.background.cancel()

    def _reply(self, service: Service, state: BackgroundState, call: _Call) -> Reply:
        from hybrid_rag.mcp_server.handlers import fitted_report, report_text
        from hybrid_rag.mcp_server.shapes import report

        if state.error is not None and not state.running:
            raise state.error
        run = run_state(state)
        if state.running:
            hint = "It goes on in the background: search works meanwhile; call update_documents again to wait for its end, or get_stats to look at it."
            return Reply({"indexing": run, "report": None}, f"{run['message']}\n\n{hint}")
        made = (
            fitted_report(report(state.report), self._library.budget - RESERVE - tokens(run))
            if state.report and not state.cancelled
            else None
        )
        joined = "" if call.mine else "\n\nThis was a run that was under way already; what changed after it began needs another call."
        return Reply({"indexing": run, "report": made}, (report_text(made) if made else run["message"]) + joined)

    def stats(self) -> Reply:
        """The state of the index and of the run."""
        service = self._library.service
        body = service.stats().to_dict()
        run = run_state(service.background.state)
        data = clean(body | {"written_by": service.lock_holder(), "indexing": run})
        kinds = ", ".join(f"{n} {form}" for form, n in body["by_format"].items())
        text = [
            f"{body['documents']} documents ({kinds or 'none'}), {body['chunks']} passages, {body['tables']} tables; "
            f"{body['vector_share']:.0%} of the passages have vectors ({body['embedder'] or 'no embedder'}).",
            f"Documents in {body['data_directory']}, index in {body['persist_directory']} ({body['size_bytes'] / 1e6:.1f} MB), last run {body['last_run'] or 'never'}.",
        ]
        if body["not_read"] or body["partly_read"] or body["failed_chunks"]:
            text.append(
                f"{body['not_read']} files not read, {body['partly_read']} partly, {body['failed_chunks']} passages without vector: see get_report."
            )
        if run["state"] != "idle":
            text.append(run["message"])
        elif data["written_by"]:
            text.append(f"The index is being written by {data['written_by']}.")
        return Reply(data, clean("\n".join(text)))


async def _tell(ctx: Any, progress: Progress | None, call: _Call) -> None:
    """A progress notification when there is something new: the number only ever grows."""
    if progress is None:
        return
    at = percent(progress)
    if at > call.told:
        call.told = at
        await ctx.session.report_progress(at, 100.0, describe(progress))


def percent(progress: Progress) -> float:
    """How far a run is, 0 to 100: each stage has its share."""
    first, last = STAGES.get(progress.stage, (0, 100))
    return round(first + (last - first) * (progress.done / progress.total if progress.total else 1.0), 2)


def describe(progress: Progress) -> str:
    rate = f", {progress.rate:,.1f}/s" if progress.rate else ""
    left = f", {progress.remaining_seconds:,.0f} s left" if progress.remaining_seconds else ""
    return f"{progress.stage}: {progress.done:,} of {progress.total:,}{rate}{left}"


def run_state(state: BackgroundState) -> dict[str, Any]:
    """The run as the tools give it."""
    progress, ended = state.progress, state.runs > 0
    if state.running:
        name, message = "running", f"Indexing, {describe(progress)}." if progress else "Indexing begins."
    elif state.cancelled:
        name, message = "cancelled", "The last run was stopped; what it had done is kept."
    elif state.error is not None:
        name, message = "failed", state.error.message
    else:
        name, message = ("done", "The last run is done.") if ended else ("idle", "No run since the server started.")
    since = datetime.fromisoformat(state.started) if state.started and state.running else None
    seconds = (datetime.now(UTC) - since).total_seconds() if since else state.report.seconds if state.report and name == "done" else 0.0
    return {
        "state": name,
        "stage": progress.stage if progress else "",
        "done": progress.done if progress else 0,
        "total": progress.total if progress else 0,
        "percent": percent(progress) if progress else 100.0 if name == "done" else 0.0,
        "seconds": round(max(seconds, 0.0), 1),
        "message": message,
    }
