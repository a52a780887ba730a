"""update_documents: in the background, with progress, stopped when its caller says so; several clients at once."""

from __future__ import annotations

import time
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import CallToolResult

from hybrid_rag.service import open_service
from tests.support import ollama
from tests.support.mcp_client import Talk, data_folder, over_http, over_stdio, place
from tests.support.mcp_servers import http_server

SLOW = 0.2  # seconds an embedding request takes


class Update:
    """A call of update_documents under way, with the progress it has told."""

    def __init__(self, talk: Talk, **arguments: Any) -> None:
        self.told: list[tuple[float, float | None, str | None]] = []
        self._scope: anyio.CancelScope | None = None
        self._talk = talk
        self.future: Future[CallToolResult | None] = talk.portal.start_task_soon(self._call, arguments)

    async def _call(self, arguments: dict[str, Any]) -> CallToolResult | None:
        with anyio.CancelScope() as self._scope:
            return await self._talk.client.call_tool("update_documents", arguments, progress_callback=self._tell)
        return None

    async def _tell(self, progress: float, total: float | None, message: str | None) -> None:
        self.told.append((progress, total, message))

    def cancel(self) -> None:
        self._talk.portal.call(self._scope.cancel)

    def wait_for(self, what: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not any(what in (message or "") for _, _, message in self.told):
            assert time.monotonic() < end and not self.future.done(), self.told
            time.sleep(0.05)


def notes(number: int, paragraphs: int = 1) -> dict[str, str | bytes]:
    """So many short documents, each about a word of its own."""
    return {
        f"n{n % 7}/note{n:04}.md": f"# Note {n}\n\n" + "\n\n".join(f"## Part {p}\n\nword{n} in part {p}" for p in range(paragraphs))
        for n in range(number)
    }


def slow_place(folder: Path, server: ollama.FakeOllama, files: dict[str, str | bytes]) -> Path:
    return place(folder, files, embedding={"provider": "ollama"}, ollama={"base_url": server.url, "query_seconds": 1.0})


def state_after(talk: Talk, seconds: float = 60) -> dict[str, Any]:
    """The run's state once it is over."""
    end = time.monotonic() + seconds
    while (stats := talk.call("get_stats"))["indexing"]["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.1)
    return stats


def goes_on(talk: Talk, update: Update) -> dict[str, float]:
    """Search and ping while an update runs; the longest time that each took, in seconds."""
    longest = {"search": 0.0, "ping": 0.0, "get_stats": 0.0}
    while not update.future.done():
        for name, call in (
            ("search", lambda: talk.call("search_documents", query="word7 part", k=3)),
            ("ping", lambda: talk.run(talk.client.send_ping)),
            ("get_stats", lambda: talk.call("get_stats")),
        ):
            started = time.monotonic()
            call()
            longest[name] = max(longest[name], time.monotonic() - started)
    return longest


def index_beside_searches(folder: Path, files: dict[str, str | bytes]) -> None:
    with ollama.running(ollama.FakeOllama(delay=SLOW)) as server:
        config = slow_place(folder, server, files)
        with over_stdio(config) as talk:
            update = Update(talk)
            update.wait_for("embed text")
            hit = talk.call("search_documents", query="word7", k=1, mode="keyword")["hits"][0]
            assert hit["title"] == "Note 7"  # by words while vectors are still made
            longest = goes_on(talk, update)
            done = update.future.result().structured_content
            print(f"{len(files)} files: {done['report']['seconds']:.1f} s, longest waits {longest}")
            assert (done["indexing"]["state"], done["report"]["counts"]["added"]) == ("done", len(files))
            progress = [p for p, _, _ in update.told]
            assert progress == sorted(set(progress)) and progress[0] >= 0 and progress[-1] <= 100
            assert {total for _, total, _ in update.told} == {100.0}
            stats = talk.call("get_stats")
            assert (stats["documents"], stats["vector_share"]) == (len(files), 1.0)
            assert talk.call("search_documents", query="word7 part", k=1)["mode"] == "hybrid"


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_search_and_ping_go_on_while_documents_are_indexed(tmp_path: Path) -> None:
    index_beside_searches(tmp_path, notes(60, 4))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_a_thousand_files(tmp_path: Path) -> None:
    index_beside_searches(tmp_path, notes(1000, 3))


def test_a_cancelled_update_stops_and_leaves_a_usable_index(tmp_path: Path) -> None:
    with ollama.running(ollama.FakeOllama(delay=1.0)) as server:
        config = slow_place(tmp_path, server, notes(120, 4))
        with over_stdio(config) as talk:
            update = Update(talk)
            update.wait_for("embed text")
            update.cancel()
            stats = state_after(talk)
            assert stats["indexing"]["state"] == "cancelled"
            assert stats["documents"] == 120 and stats["vector_share"] < 1
            assert talk.call("search_documents", query="word77", k=1)["hits"][0]["title"] == "Note 77"
            server.delay = 0.0
            done = talk.call("update_documents")
            assert (done["indexing"]["state"], done["report"]["counts"]["unchanged"]) == ("done", 120)
            assert talk.call("get_stats")["vector_share"] == 1.0
    with open_service(config) as service:
        assert service.verify().ok


def test_a_client_that_only_lost_patience_does_not_stop_the_run(tmp_path: Path) -> None:
    with ollama.running(ollama.FakeOllama(delay=0.3)) as server, over_stdio(slow_place(tmp_path, server, notes(60, 4))) as talk:
        update = Update(talk)
        update.wait_for("embed text")
        # As the TypeScript SDK cancels after its time-out; the request of our client is the only one that is under way.
        talk.run(talk.client.session.send_notification, _cancelled(talk, "McpError: MCP error -32001: Request timed out"))
        time.sleep(1.0)
        assert talk.call("get_stats")["indexing"]["state"] == "running"
        assert state_after(talk)["indexing"]["state"] == "done"
        update.cancel()


def _cancelled(talk: Talk, reason: str) -> Any:
    from mcp_types import CancelledNotification, CancelledNotificationParams

    dispatcher = talk.client.session._dispatcher
    (number,) = dispatcher._pending
    return CancelledNotification(params=CancelledNotificationParams(request_id=number, reason=reason))


def test_an_update_goes_on_in_the_background_and_can_be_joined(tmp_path: Path) -> None:
    with ollama.running(ollama.FakeOllama(delay=0.3)) as server, over_stdio(slow_place(tmp_path, server, notes(60, 4))) as talk:
        begun = talk.call("update_documents", wait_seconds=0)
        assert (begun["indexing"]["state"], begun["report"]) == ("running", None)
        joined = talk.result("update_documents")
        assert "under way already" in joined.content[0].text
        assert joined.structured_content["report"]["counts"]["added"] == 60
        assert talk.call("get_stats")["indexing"]["state"] == "done"


def test_parts_of_the_folder_are_updated_alone(tmp_path: Path) -> None:
    config = place(tmp_path, {"a/1.md": "# One\n\nfirst", "b/2.md": "# Two\n\nsecond"})
    with over_stdio(config) as talk:
        assert talk.call("update_documents", paths=["b", "nowhere.md"])["report"]["counts"]["added"] == 1
        assert [d["source"] for d in talk.call("list_documents")["documents"]] == ["b/2.md"]
        (data_folder(config) / "b" / "bad.pdf").write_bytes(b"no pdf")
        report = talk.call("update_documents")["report"]
        assert (report["counts"]["added"], [f["source"] for f in report["files"]]) == (1, ["b/bad.pdf"])
        assert talk.call("get_report")["files"][0]["reason"]


def test_the_index_is_brought_up_to_date_when_the_server_starts(tmp_path: Path) -> None:
    config = place(tmp_path, {"a.md": "# A\n\nsome words"}, mcp={"sync_on_start": True})
    with over_stdio(config) as talk:
        talk.run(talk.client.list_tools)
        end = time.monotonic() + 60
        while talk.result("search_documents", query="words").is_error:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert state_after(talk)["documents"] == 1


def test_a_hanging_server_of_models_does_not_keep_a_search_waiting(tmp_path: Path) -> None:
    with ollama.running() as server:
        config = slow_place(tmp_path, server, notes(3))
        with open_service(config) as service:
            service.index()
        server.delay = 60.0
        with over_stdio(config) as talk:
            started = time.monotonic()
            for query in ("word1", "word2", "part"):
                found = talk.call("search_documents", query=query)
                assert found["hits"] and found["mode"] == "keyword" and "takes longer" in found["notes"][0]
            print(f"three searches with a server that hangs: {time.monotonic() - started:.1f} s")


def several_clients(config: Path, seconds: float, clients: int = 8) -> int:
    """So many clients over HTTP, half of them by the newest protocol, at work at once; how many calls were answered."""
    calls = 0
    with http_server(config) as url, ExitStack() as stack:
        talks = [stack.enter_context(over_http(url, mode="legacy" if n % 2 else "auto")) for n in range(clients)]
        update = Update(talks[0])

        async def work(talk: Talk, number: int) -> int:
            done, end = 0, time.monotonic() + seconds
            while time.monotonic() < end:
                word = f"word{(number * 31 + done) % 40}"
                for name, arguments in (
                    ("search_documents", {"query": word, "k": 2}),
                    ("read_document", {"source": f"n{number % 7}/note{number:04}.md"}),
                    ("list_documents", {"page_size": 5}),
                    ("query_documents", {"query": f"What is in part 1 of {word}?"}),
                ):
                    result = await talk.client.call_tool(name, arguments)
                    assert not result.is_error, result.content[0].text
                    done += 1
            return done

        futures = [talk.portal.start_task_soon(work, talk, n) for n, talk in enumerate(talks)]
        calls = sum(future.result(timeout=seconds + 120) for future in futures)
        assert not update.future.result(timeout=60).is_error
    return calls


def indexed(folder: Path) -> Path:
    config = place(folder, notes(40, 2))
    with open_service(config) as service:
        service.index()
    return config


def test_several_clients_at_once(tmp_path: Path) -> None:
    assert several_clients(indexed(tmp_path), 3, clients=4) >= 16


@pytest.mark.slow
def test_eight_clients_for_two_minutes(tmp_path: Path) -> None:
    print(f"{several_clients(indexed(tmp_path), 120)} calls by 8 clients in 120 s")
