"""The JSON API: the records of the command line, errors with a status, events, uploads, metrics."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

from hybrid_rag.service import Service
from hybrid_rag.web.app import create_app
from tests.support.ollama import FakeOllama, running
from tests.support.web import HOSTILE, served, service_over, write_collection


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("web")
    write_collection(folder)
    with service_over(folder) as service:
        yield service


@pytest.fixture(scope="module")
def api(service: Service) -> Iterator[TestClient]:
    with TestClient(create_app(service), base_url="http://127.0.0.1") as client:
        yield client


def same(found: object, record: object) -> bool:
    """Equal but for times of the measurement."""

    def clean(value: object) -> str:
        text = json.dumps(value, default=str, sort_keys=True)
        return re.sub(r'"(?:cached|milliseconds)": (?:\{[^}]*\}|true|false|[\d.]+)', "", text)

    return clean(found) == clean(record)


# ---------------------------------------------------------------- the same records as the command line


def test_search_gives_the_record_of_the_command_line(api: TestClient, service: Service) -> None:
    found = api.get("/api/search", params={"q": "opened headphones", "k": 3, "kind": "text", "explain": True}).json()
    from hybrid_rag.filters import Filters

    assert found["hits"] and found["hits"][0]["source"] == "policies/returns.md"
    assert same(found, service.search("opened headphones", k=3, filters=Filters.parse(kind="text"), explain=True).to_dict())


def test_every_reading_route_gives_the_record_of_the_service(api: TestClient, service: Service) -> None:
    assert same(api.get("/api/documents").json(), [d.to_dict() for d in service.documents()])
    assert same(api.get("/api/tables").json(), [t.to_dict() for t in service.tables()])
    assert same(api.get("/api/stats").json(), service.stats().to_dict())
    report = service.report()
    assert report and same(api.get("/api/report").json(), report.to_dict())
    assert same(api.get("/api/recent", params={"k": 2}).json(), [d.to_dict() for d in service.recent(2)])
    assert same(api.get("/api/related", params={"source": "manual.pdf"}).json(), [x.to_dict() for x in service.related("manual.pdf")])
    assert same(api.get("/api/timeline", params={"q": "parcels"}).json(), service.timeline("parcels").to_dict())
    passage = api.get("/api/document", params={"source": "sales/2024/orders.csv", "rows": "5-6"}).json()
    assert same(passage, service.read("sales/2024/orders.csv", rows=(5, 6)).to_dict())
    assert [r[0] for r in passage["records"]] == ["ORD-0005", "ORD-0006"]
    statement = "SELECT city, count(*) AS n FROM orders GROUP BY 1 ORDER BY 1"
    assert api.post("/api/sql", json={"sql": statement}).json()["rows"] == [["Berlin", 40], ["Oslo", 40], ["Porto", 40]]


def test_the_described_shapes_have_the_fields_of_the_records() -> None:
    from hybrid_rag import records
    from hybrid_rag.web import shapes

    chunk = records.Chunk("a.md", "text", 0, "t", 0, 1)
    assert set(shapes.AnswerShape.model_fields) == set(records.Answer("q", "a", "none", True).to_dict())
    assert set(shapes.HitShape.model_fields) == set(records.Hit(1, "i", chunk).to_dict())
    assert set(shapes.CitationShape.model_fields) == set(records.Citation(1, "a.md", "text").to_dict())
    assert set(shapes.SearchShape.model_fields) == set(records.SearchResult("q", "hybrid", ()).to_dict())


def test_a_question_that_no_query_could_be_made_for_shows_the_table(api: TestClient) -> None:
    from hybrid_rag.records import Answer, TableCard, TableColumn
    from hybrid_rag.web.pages import templates
    from hybrid_rag.web.presenting import answer_view

    columns = (TableColumn("n", "N <b>", "integer", minimum=1, maximum=9), TableColumn("c", "City", "text", values=("Oslo", "<i>")))
    answer = Answer("q", "This needs a calculation.", "none", True, needs=TableCard("orders", "o.csv", 1200, columns))
    html = templates.get_template("answer.html").render(view=answer_view(answer))
    assert (
        "This needs a calculation." in html
        and "1,200 rows" in html
        and "1 to 9" in html
        and "Oslo, &lt;i&gt;" in html
        and "N &lt;b&gt;" in html
    )


def test_ask_gives_the_record_of_the_command_line(api: TestClient) -> None:
    answer = api.post("/api/ask", json={"question": "How many orders are from Berlin?"}).json()
    assert answer["mode"] == "table" and answer["table"]["rows"] == [[40]] and "count(*)" in answer["sql"]
    answer = api.post("/api/ask", json={"question": "How many orders are from Oslo?", "filters": {"kind": "text"}}).json()
    assert answer["mode"] != "table"


def test_a_follow_up_is_understood_from_the_turns_that_the_client_sends(api: TestClient) -> None:
    turns = [{"question": "What does the Kestrel manual say on charging?", "answer": "…", "sources": ["manual.pdf"]}]
    answer = api.post("/api/ask", json={"question": "and how long does it last?", "turns": turns}).json()
    assert "Kestrel" in answer["rewritten_question"] and answer["question"] == "and how long does it last?"


def test_filters_leave_k_results_when_so_many_match(api: TestClient) -> None:
    for extra in ({}, {"folder": "notes"}, {"glob": "gadget*"}, {"kind": "text"}):
        assert len(api.get("/api/search", params={"q": "gadget", "k": 10, **extra}).json()["hits"]) == 10
    tagged = api.get("/api/search", params={"q": "days", "tag": ["policy", "not returns"]}).json()["hits"]
    assert {h["source"] for h in tagged} == {"policies/shipping.md"}


def test_facets_count_what_each_choice_would_leave(api: TestClient) -> None:
    found = api.get("/api/facets", params={"folder": "policies"}).json()
    assert (found["documents"], found["total"]) == (2, 20)
    assert {c["value"]: c["count"] for c in found["folders"]} == {"notes": 15, "policies": 2, "sales": 1, "sales/2024": 1}
    assert {c["value"]: c["count"] for c in found["tags"]} == {"policy": 2, "returns": 1}
    assert {c["value"]: c["count"] for c in found["kinds"]} == {"text": 2}


# ---------------------------------------------------------------- sources


def test_a_source_is_shown_at_its_place(api: TestClient) -> None:
    hit = api.get("/api/search", params={"q": "noise cancelling charge"}).json()["hits"][0]
    assert (hit["source"], hit["page"]) == ("manual.pdf", 2)
    found = api.get("/api/source", params={"source": "manual.pdf", "page": 2, "start": hit["start"], "end": hit["end"]}).json()
    assert found["form"] == "page" and "38 hours" in found["marked_text"][0] and found["page_marks"]
    found = api.get("/api/source", params={"source": "sales/2024/orders.csv", "rows": "50-51"}).json()
    assert found["marked_rows"] == [50, 51] and found["rows"][0] == 45 and found["row_count"] == 120
    text = api.get("/api/document", params={"source": "policies/returns.md"}).json()["text"]
    at = text.index("Opened **headphones**")
    found = api.get(
        "/api/source", params={"source": "policies/returns.md", "start": at, "end": at + len("Opened **headphones** can")}
    ).json()
    assert "<mark>Opened </mark><strong><mark>headphones</mark></strong><mark> can</mark> be returned" in found["html"]
    found = api.get("/api/source", params={"source": "guide.docx"}).json()
    assert found["form"] == "text" and "badge from Olga on Monday & sign" in found["text"]


def test_a_markdown_file_that_changed_is_shown_as_it_was_indexed(api: TestClient, service: Service) -> None:
    path = service.config.data.directory / "policies" / "shipping.md"
    old = path.read_bytes()
    try:
        path.write_text("# Other\n\nAltogether new.\n", encoding="utf-8")
        found = api.get("/api/source", params={"source": "policies/shipping.md"}).json()
        assert found["form"] == "text" and "Parcels to Norway" in found["text"]
    finally:
        path.write_bytes(old)


def test_a_page_is_a_picture(api: TestClient) -> None:
    answer = api.get("/api/page", params={"source": "manual.pdf", "page": 2, "width": 300})
    assert answer.headers["content-type"] == "image/png" and answer.content.startswith(b"\x89PNG")
    assert api.get("/api/page", params={"source": "manual.pdf", "page": 9}).status_code == 422
    assert api.get("/api/page", params={"source": "guide.docx", "page": 1}).status_code == 400


def test_hostile_markdown_becomes_text(api: TestClient) -> None:
    html = api.get("/api/source", params={"source": "notes/hostile.md"}).json()["html"]
    assert "&lt;script&gt;" in html and "&lt;svg onload=" in html
    assert not re.search(r"<(?:script|svg|img|b)\b", html)
    assert "href" not in html  # a javascript: or data: link leads nowhere
    assert "track.png" not in html  # no picture is loaded
    assert HOSTILE.count("zebra") == html.count("zebra")


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/api/search", 422, "q: Field required"),
        ("/api/search?q=x&kind=picture", 422, "kind"),
        ("/api/search?q=x&tag=(", 400, "tag expression"),
        ("/api/search?q=x&since=yesterday", 400, "is not a day"),
        ("/api/document?source=nothing.md", 404, "no document"),
        ("/api/document?source=../../etc/passwd", 404, "no document"),
        ("/api/document?source=sales/2024/orders.csv&rows=9-x", 400, "no rows"),
        ("/api/source?source=manual.pdf&page=9", 400, "3 pages"),
        ("/api/nothing", 404, "Not Found"),
    ],
)
def test_errors_have_a_status_a_message_and_a_remedy(api: TestClient, path: str, status: int, words: str) -> None:
    answer = api.get(path)
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "message", "remedy"}
    assert words in answer.json()["message"]


def test_only_a_select_is_run(api: TestClient) -> None:
    for statement in ("DROP TABLE orders", "SELECT 1; SELECT 2", "SELECT * FROM read_csv('/etc/passwd')", "COPY orders TO '/tmp/x'"):
        assert api.post("/api/sql", json={"sql": statement}).status_code == 400
    assert api.post("/api/sql", json={"sql": "SELECT 1", "more": 1}).status_code == 422


def test_a_request_that_is_too_large_is_refused(api: TestClient) -> None:
    assert api.post("/api/ask", content=b"x" * (2 << 20), headers={"content-type": "application/json"}).status_code == 413


def test_without_an_index_it_says_what_to_do(tmp_path: Path) -> None:
    write_collection(tmp_path)
    with service_over(tmp_path, index=False) as service, TestClient(create_app(service), base_url="http://127.0.0.1") as api:
        answer = api.get("/api/search", params={"q": "x"})
        assert answer.status_code == 409 and "hybrid-rag index" in answer.json()["remedy"]
        for page in ("/", "/?q=x", "/documents", "/statistics"):
            assert "Nothing is indexed yet" in api.get(page, headers={"accept": "text/html"}).text
        assert "index_open 0" in api.get("/api/metrics").text
        assert not (tmp_path / "index").exists()


# ---------------------------------------------------------------- streaming


def stream(url: str, body: dict) -> list[tuple[str, dict]]:
    found = []
    with httpx.stream("POST", f"{url}/api/ask/stream", json=body, timeout=60) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                found.append((name, json.loads(line[6:])))
    return found


REPLY = "Opened headphones can be returned within 14 days [1]. Unopened products can be returned within 30 days [1]."


def test_an_answer_streams_in_checked_sentences(tmp_path: Path) -> None:
    write_collection(tmp_path)
    with running(FakeOllama(reply=lambda body: REPLY, pause=0.01)) as ollama:
        settings = ("llm.provider=ollama", f"ollama.base_url={ollama.url}", "retrieval.rerank=off")
        with service_over(tmp_path, *settings) as service, served(service) as url:
            events = stream(url, {"question": "Within how many days can opened headphones be returned?"})
    tokens = [data["text"] for name, data in events if name == "token"]
    assert len(tokens) >= 2 and "".join(tokens).strip() == REPLY
    assert events[-1][0] == "answer" and events[-1][1]["mode"] == "llm"
    assert events[-1][1]["citations"][0]["source"] == "policies/returns.md"


def test_a_client_that_leaves_stops_its_answer(tmp_path: Path) -> None:
    written: list[int] = []

    def endless(body: dict) -> Iterator[str]:
        for n in range(100_000):
            written.append(n)
            yield f"word{n} "

    write_collection(tmp_path)
    with running(FakeOllama(reply=endless, pause=0.01)) as ollama:
        settings = (
            "llm.provider=ollama",
            f"ollama.base_url={ollama.url}",
            "retrieval.rerank=off",
            "ollama.max_answer_tokens=8000",
            "ollama.num_ctx=64000",
        )
        with service_over(tmp_path, *settings) as service, served(service) as url:
            with httpx.stream("POST", f"{url}/api/ask/stream", json={"question": "Are headphones returned?"}, timeout=60):
                wait(lambda: len(written) > 5)
            wait(lambda: still(written))
            wait(lambda: "hybrid_rag_answers 0" in httpx.get(f"{url}/api/metrics").text)
            before = len(written)
            with pytest.raises(httpx.ReadTimeout):  # the same without events
                httpx.post(f"{url}/api/ask", json={"question": "Are headphones returned?"}, timeout=httpx.Timeout(30, read=3))
            wait(lambda: still(written))
            assert before < len(written) < 8000
            wait(lambda: "hybrid_rag_answers 0" in httpx.get(f"{url}/api/metrics").text)


def wait(true, seconds: float = 30) -> None:
    for _ in range(int(seconds * 20)):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to pass")


def still(items: list[int]) -> bool:
    before = len(items)
    time.sleep(0.3)
    return len(items) == before


def test_an_error_in_a_stream_is_an_event(tmp_path: Path) -> None:
    write_collection(tmp_path)
    settings = ("llm.provider=ollama", "ollama.base_url=http://127.0.0.1:9", "retrieval.rerank=off")
    with service_over(tmp_path, *settings) as service, served(service) as url:
        events = stream(url, {"question": "Within how many days can opened headphones be returned?"})
    assert [name for name, _ in events] == ["error"] and events[0][1]["error"] == "OllamaUnreachableError"


# ---------------------------------------------------------------- never blocked


def test_searches_go_on_while_answers_are_written(tmp_path: Path) -> None:
    go = threading.Event()

    def slow(body: dict) -> str:
        go.wait(30)
        return REPLY

    write_collection(tmp_path)
    with running(FakeOllama(reply=slow)) as ollama:
        settings = ("llm.provider=ollama", f"ollama.base_url={ollama.url}", "retrieval.rerank=off", "ollama.answer_seconds=60")
        with service_over(tmp_path, *settings) as service, served(service) as url:
            question = {"question": "Within how many days can opened headphones be returned?"}
            asking = [
                threading.Thread(target=httpx.post, args=(f"{url}/api/ask",), kwargs={"json": question, "timeout": 60}) for _ in range(8)
            ]
            for thread in asking:
                thread.start()
            wait(lambda: len(ollama.bodies("/api/chat")) == 8)  # eight at once, all waiting for the model
            assert httpx.get(f"{url}/api/search", params={"q": "parcels"}, timeout=30).json()["hits"]
            go.set()
            for thread in asking:
                thread.join(timeout=60)
                assert not thread.is_alive()


# ---------------------------------------------------------------- index and upload


def test_a_run_is_started_followed_and_reported(tmp_path: Path) -> None:
    data = write_collection(tmp_path)
    with service_over(tmp_path) as service, served(service) as url:
        (data / "new.txt").write_text("A quokka was seen.", encoding="utf-8")
        assert httpx.post(f"{url}/api/index", json={"paths": ["new.txt"]}).status_code == 202
        states = []
        with httpx.stream("GET", f"{url}/api/index/events", timeout=60) as answer:
            states = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
        assert states[-1]["running"] is False and states[-1]["report"]["counts"]["added"] == 1
        assert httpx.get(f"{url}/api/search", params={"q": "quokka"}).json()["hits"][0]["source"] == "new.txt"
        assert httpx.get(f"{url}/api/index").json()["runs"] == 1
        assert httpx.delete(f"{url}/api/index").status_code == 200
        assert httpx.post(f"{url}/api/index", json={"paths": ["../outside.txt"]}).status_code == 400


def put(api: TestClient, name: str, data: bytes = b"hello"):
    return api.put("/api/upload", params={"name": name}, content=data)


def test_files_are_taken_into_the_data_folder_only(tmp_path: Path) -> None:
    data = write_collection(tmp_path)
    (tmp_path / "outside").mkdir()
    (data / "way-out").symlink_to(tmp_path / "outside")
    settings = ("web.upload=true", "web.max_upload_mb=0.001")
    with service_over(tmp_path, *settings, index=False) as service, TestClient(create_app(service), base_url="http://127.0.0.1") as api:
        assert put(api, "new/Ünïcode name.md", b"# Hello").json() == {"source": "new/Ünïcode name.md", "size": 7}
        assert (data / "new" / "Ünïcode name.md").read_bytes() == b"# Hello"
        before = sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*"))
        assert put(api, "new/Ünïcode name.md").status_code == 409  # never over another file
        assert put(api, "policies/returns.md").status_code == 409
        assert put(api, "big.md", b"x" * 2000).status_code == 413
        names = ["../up.md", "/etc/x.md", "a/../../x.md", ".hidden.md", "a/.git/x.md", "x.exe", "x", "a\\b.md", "C:x.md", "a//b.md", "way-out/x.md", " x.md", "x\n.md",
                 "x" * 300 + ".md", "."]  # fmt: skip
        for name in names:
            assert put(api, name).status_code == 400, name
        assert (data / "policies" / "returns.md").read_text(encoding="utf-8").startswith("---\ntitle: Return Policy")
        assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")) == before  # and no half of a file is left


def test_uploads_are_off_by_default(api: TestClient, service: Service) -> None:
    assert put(api, "x.md").status_code == 403
    assert not (service.config.data.directory / "x.md").exists()
    assert "Add files" not in api.get("/documents", headers={"accept": "text/html"}).text


# ---------------------------------------------------------------- health and metrics


def test_metrics_are_prometheus_text(api: TestClient) -> None:
    api.get("/api/search", params={"q": "days"})
    text = api.get("/api/metrics").text
    sample = re.compile(r'[a-z_]+(?:\{[a-z]+="[^"\n]*"(?:,[a-z]+="[^"\n]*")*\})? -?[\d.e+-]+')
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines and all(sample.fullmatch(line) for line in lines)
    assert 'hybrid_rag_requests_total{method="GET",route="/api/search",status="200"}' in text
    assert "hybrid_rag_documents 20" in text and 'hybrid_rag_duration_seconds_bucket{kind="search",le="+Inf"}' in text
    assert api.get("/api/health").json()["status"] == "ok"
    assert api.get("/api/latency").json()["search"]["count"] >= 1
