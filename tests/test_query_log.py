"""The log of queries: off by default, what a line holds, its bounds, several writers, and what the summary says."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hybrid_rag.errors import InputError
from hybrid_rag.query_log import QueryLog, key_file, older, read_log, summarise
from hybrid_rag.service import Service, open_service

CONFIG = "data: {directory: data}\nvector_store: {persist_directory: index}\nembedding: {provider: none}\nllm: {provider: none}\nretrieval: {rerank: off}\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "returns.md").write_text("# Returns\n\nOpened shoes may be returned within 14 days.\n", encoding="utf-8")
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    with open_service(tmp_path / "config.yaml") as service:
        service.index()
    return tmp_path


def opened(place: Path, *settings: str) -> Service:
    return open_service(place / "config.yaml", settings=settings)


def test_nothing_is_logged_unless_asked_for(place: Path) -> None:
    with opened(place) as service:
        service.search("shoes")
        assert not service.query_log_path.exists()


def test_a_line_says_what_was_done_and_nothing_of_the_documents(place: Path) -> None:
    with opened(place, "logging.query_log=text") as service:
        service.search("opened shoes")
        service.search("opened shoes")
        service.ask("Who won the football world cup?")
        with pytest.raises(InputError):
            service.search(" ")
        path = service.query_log_path
    records, damaged = read_log(path)
    assert (path, damaged, len(records)) == (place / "index" / "queries.jsonl", 0, 4)
    first, second, third, last = records
    assert (first["call"], first["query"], first["mode"], first["hits"], first["cached"]) == ("search", "opened shoes", "keyword", 1, False)
    assert {"search", "total"} <= set(first["milliseconds"])
    assert second["cached"]
    assert (third["call"], third["abstained"]) == ("ask", True)
    assert last["error"] == "InputError"
    assert "14 days" not in path.read_text(encoding="utf-8")


def test_hashes_are_equal_for_equal_queries_and_keyed(place: Path) -> None:
    for name in ("one", "two"):
        with opened(place, "logging.query_log=hash", f"logging.query_log_file={place / name}") as service:
            service.search("Opened  shoes")
            service.search("opened shoes")
            service.search("other")
    hashes = {name: [r["query_hash"] for r in read_log(place / name)[0]] for name in ("one", "two")}
    assert hashes["one"][0] == hashes["one"][1] != hashes["one"][2]
    assert hashes["one"] != hashes["two"]
    assert "shoes" not in (place / "one").read_text(encoding="utf-8")
    assert key_file(place / "one").stat().st_mode & 0o077 == 0


def test_a_full_log_is_put_aside(tmp_path: Path) -> None:
    log = QueryLog(tmp_path / "log", "text", 1000)
    for number in range(50):
        log.add("search", f"query {number}", milliseconds={"total": 1.0})
    assert (tmp_path / "log").stat().st_size <= 1000
    assert older(tmp_path / "log").stat().st_size <= 1000
    records, _ = read_log(tmp_path / "log")
    assert [r["query"] for r in records] == [f"query {n}" for n in range(50 - len(records), 50)]


def test_several_writers_lose_no_line(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\nfrom hybrid_rag.query_log import QueryLog\nlog = QueryLog(pathlib.Path(sys.argv[1]), 'text', 10**7)\n"
        "for n in range(100): log.add('search', sys.argv[2] + str(n), milliseconds={'total': 1})"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "log"), name]) for name in ("a", "b")]
    log = QueryLog(tmp_path / "log", "text", 10**7)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: log.add("ask", f"c{n}", milliseconds={"total": 1}), range(100)))
    assert [run.wait() for run in runs] == [0, 0]
    records, damaged = read_log(tmp_path / "log")
    assert damaged == 0
    assert {r["query"] for r in records} == {f"{name}{n}" for name in "abc" for n in range(100)}


def test_a_log_that_cannot_be_written_harms_no_query(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    (place / "file").write_text("", encoding="utf-8")
    with opened(place, "logging.query_log=text", f"logging.query_log_file={place / 'file' / 'log'}") as service:
        assert service.search("shoes").hits
        assert service.search("days").hits
    assert len([r for r in caplog.records if "cannot be written" in r.message]) == 1


def _record(minute: int, total: float, **fields: object) -> dict:
    return {
        "time": f"2026-01-01T00:{minute:02}:00.000+00:00",
        "call": "ask",
        "query": "q",
        "mode": "llm",
        "milliseconds": {"total": total},
    } | fields


def test_the_summary_is_worked_out_right(tmp_path: Path) -> None:
    records = [_record(n, float(n)) for n in range(1, 101 // 2)]
    records += [
        _record(50, 500.0, query="slow"),
        _record(51, 1.0, query="never", abstained=True),
        _record(52, 1.0, query="never", abstained=True),
    ]
    records += [_record(53, 1.0, query="once", abstained=True), _record(54, 1.0, error="OllamaError", mode=None)]
    path = tmp_path / "log"
    path.write_text("".join(json.dumps(r) + "\n" for r in records) + "broken {\n", encoding="utf-8")
    read, damaged = read_log(path)
    found = summarise(path, read, damaged=damaged, show=2)
    assert (found.count, found.abstained, found.failed, found.damaged_lines) == (len(records), 3, 1, 1)
    assert found.slowest[0]["query"] == "slow"
    assert [(u["query"], u["count"]) for u in found.unanswered] == [("never", 2), ("once", 1)]
    import numpy as np

    expected = np.percentile([r["milliseconds"]["total"] for r in records], [50, 95, 99])
    total = found.latency["ask"]["total"]
    assert (total.p50, total.p95, total.p99) == pytest.approx(tuple(expected), abs=0.051)
    assert len(read_log(path, "2026-01-01T00:50")[0]) == 5


def test_the_command_prints_what_was_not_answered(place: Path) -> None:
    def command(*arguments: str, code: int = 0) -> str:
        line = [sys.executable, "-m", "hybrid_rag", *arguments, "--config", str(place / "config.yaml")]
        run = subprocess.run(line, capture_output=True, encoding="utf-8", check=False)
        assert run.returncode == code, run.stderr
        return run.stdout if code == 0 else run.stderr

    assert "Set logging.query_log" in command("log", code=2)
    command("ask", "Who won the football world cup?", "--set", "logging.query_log=text")
    command("search", "opened shoes", "--set", "logging.query_log=text")
    text = command("log")
    assert "2 queries" in text and "p95" in text
    assert "1 ×" in text and "football" in text.partition("Not answered:")[2]
    assert json.loads(command("log", "--json"))["count"] == 2
    assert "is no day" in command("log", "--since", "yesterday", code=2)


def test_servers_log_what_is_asked_through_them(tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    from hybrid_rag.web.app import create_app
    from tests.support.mcp_client import over_stdio
    from tests.support.mcp_client import place as place_of_files
    from tests.support.web import service_over

    config = place_of_files(tmp_path, {"a.md": "Opened shoes may be returned within 14 days.\n"}, logging={"query_log": "text"})
    with open_service(config) as service:
        service.index()
        path = service.query_log_path
    with over_stdio(config) as talk:
        talk.call("search_documents", query="opened shoes")
    assert [(r["call"], r["query"]) for r in read_log(path)[0]] == [("search", "opened shoes")]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.md").write_text("Opened shoes may be returned within 14 days.\n", encoding="utf-8")
    with (
        service_over(tmp_path, "logging.query_log=text") as service,
        TestClient(create_app(service), base_url="http://127.0.0.1") as client,
    ):
        assert client.get("/api/search", params={"q": "returned shoes"}).status_code == 200
        assert [r["query"] for r in read_log(service.query_log_path)[0]] == ["returned shoes"]
