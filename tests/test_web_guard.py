"""Who may ask: names, origins, tokens, rate limits, headers, logs; and where the page may listen."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hybrid_rag.errors import HybridRagError
from hybrid_rag.service import Service
from hybrid_rag.web.app import create_app
from hybrid_rag.web.guard import COOKIE, cookie_of
from hybrid_rag.web.limits import RateLimit, TooMany
from hybrid_rag.web.server import listen
from tests.support.web import service_over, write_collection

TOKEN = "a-token-that-nobody-guesses"
HERE = "http://127.0.0.1:8080"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("guard")
    write_collection(folder)
    with service_over(folder) as service:
        yield service


def client(service: Service, token: str | None = None, address: str = HERE) -> TestClient:
    return TestClient(create_app(service, token=token), base_url=address, follow_redirects=False, raise_server_exceptions=False)


# ---------------------------------------------------------------- names and origins


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "LOCALHOST:9", "[::1]:8080"])
def test_this_machines_names_are_answered(service: Service, host: str) -> None:
    assert client(service).get("/api/health", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "app.localhost:80", "10.0.0.4", ""]
)
def test_a_name_that_a_site_points_here_is_not_answered(service: Service, host: str) -> None:
    assert client(service).get("/api/search?q=days", headers={"host": host}).status_code == 403


def test_what_changes_something_must_come_from_the_page(service: Service) -> None:
    api = client(service)
    body = {"question": "How many orders are from Berlin?"}
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://127.0.0.1:9999"}, {"sec-fetch-site": "cross-site"},
                    {"sec-fetch-site": "same-site"}, {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}):  # fmt: skip
        assert api.post("/api/ask", json=body, headers=headers).status_code == 403, headers
        assert api.post("/api/index", headers=headers).status_code == 403
    for headers in ({}, {"origin": HERE}, {"origin": HERE, "sec-fetch-site": "same-origin"}):
        assert api.post("/api/ask", json=body, headers=headers).status_code == 200, headers


def test_another_site_may_link_here_but_load_nothing(service: Service) -> None:
    api = client(service)
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "accept": "text/html"}
    assert api.get("/?q=days", headers=link).status_code == 200
    for path in ("/api/search?q=days", "/api/page?source=manual.pdf&page=1"):
        assert api.get(path, headers=link).status_code == 403
        assert api.get(path, headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}).status_code == 403


# ---------------------------------------------------------------- token


def test_with_a_token_nothing_is_told_without_it(service: Service) -> None:
    api = client(service, TOKEN, "http://search.example")
    paths = [
        "/api/search?q=days",
        "/api/documents",
        "/api/openapi.json",
        "/api/metrics",
        "/fragments/results?q=days",
        "/api/page?source=manual.pdf&page=1",
    ]
    for path in paths:
        for headers in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": f"Basic {TOKEN}"},
            {"authorization": TOKEN},
            {"cookie": f"{COOKIE}={TOKEN}"},
        ):
            answer = api.get(path, headers=headers)
            assert answer.status_code == 401 and "policies" not in answer.text, (path, headers)
        assert api.get(path, headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200, path
    assert api.get("/api/health").status_code == 200
    answer = api.get("/?q=days", headers={"accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")


def test_signing_in_gives_a_cookie_that_is_not_the_token(service: Service) -> None:
    api = client(service, TOKEN, "http://search.example")
    assert "Token" in api.get("/login").text
    wrong = api.post("/login", data={"token": "wrong"})
    assert wrong.status_code == 401 and "not the token" in wrong.text and "set-cookie" not in wrong.headers
    right = api.post("/login", data={"token": TOKEN})
    cookie = right.headers["set-cookie"]
    assert right.status_code == 303 and TOKEN not in cookie
    assert "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
    assert api.get("/", headers={"accept": "text/html"}).status_code == 200  # the client kept the cookie
    api.post("/logout")
    assert api.get("/api/documents").status_code == 401


def test_the_cookie_is_secure_behind_tls(service: Service) -> None:
    assert "secure" in client(service, TOKEN, "https://search.example").post("/login", data={"token": TOKEN}).headers["set-cookie"].lower()


def test_tokens_cannot_be_tried_without_end(service: Service) -> None:
    api = client(service, TOKEN)
    statuses = {api.post("/login", data={"token": f"guess {n}"}).status_code for n in range(30)}
    assert statuses == {401, 429}
    assert api.post("/login", data={"token": TOKEN}).status_code == 429


def test_cookies_of_two_tokens_differ() -> None:
    assert cookie_of("a") != cookie_of("b") and re.fullmatch(r"[0-9a-f]{64}", cookie_of("a"))


# ---------------------------------------------------------------- limits


def test_questions_and_runs_are_limited(tmp_path: Path) -> None:
    write_collection(tmp_path)
    with service_over(tmp_path, "web.requests_per_minute=3") as service:
        api = client(service)
        body = {"question": "How many orders are from Berlin?"}
        assert [api.post("/api/ask", json=body).status_code for _ in range(4)] == [200, 200, 200, 429]
        refused = api.post("/fragments/ask", json=body)
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
        assert [api.post("/api/index").status_code for _ in range(4)] == [202, 202, 202, 429]
        assert api.get("/api/search?q=days").status_code == 200  # looking is not limited


def test_a_bucket_fills_again() -> None:
    limit = RateLimit(2)
    limit.take("a", now=0)
    limit.take("a", now=0)
    with pytest.raises(TooMany) as refused:
        limit.take("a", now=0)
    assert refused.value.seconds == 30
    limit.take("b", now=0)  # another client
    limit.take("a", now=31)
    with pytest.raises(TooMany):
        limit.take("a", now=32)
    for n in range(10_000):
        limit.take(f"client {n}", now=40)
    assert len(limit._buckets) <= 5000  # memory is bounded


# ---------------------------------------------------------------- headers and logs


def test_every_answer_has_the_headers(service: Service) -> None:
    api = client(service)
    for path in ("/", "/api/search?q=days", "/api/nothing", "/static/app.js", "/static/nothing.js", "/documents", "/api/search"):
        headers = api.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy and "http" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "same-origin"
    assert api.get("/", headers={"host": "evil.example"}).headers["content-security-policy"]


def test_pages_hold_nothing_that_the_policy_forbids(service: Service) -> None:
    api = client(service)
    for path in ("/", "/?q=zebra", "/ask", "/documents", "/statistics", "/source?source=notes/hostile.md", "/source?source=notes/hostile.csv",
                 "/source?source=manual.pdf", "/source?source=policies/returns.md"):  # fmt: skip
        html = api.get(path, headers={"accept": "text/html"}).text
        assert not re.search(r"<[^>]*\s(?:style|on\w+)\s*=", html), path
        assert not re.search(r"<script(?![^>]*\ssrc=)", html), path
        assert not re.search(r"(?:src|href)=\"(?:https?:)?//", html), path
        assert not re.search(r"(?:src|href)=[\"']?\s*(?:javascript|data|vbscript):", html, re.IGNORECASE), path


def test_what_nothing_foresaw_is_an_answer_without_details(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(service, "search", broken)
    answer = client(service).get("/api/search?q=days")
    assert answer.status_code == 500 and answer.json()["error"] == "InternalError" and "secret" not in answer.text
    assert "content-security-policy" in answer.headers
    assert "secret detail" in caplog.text


def test_no_secret_and_no_query_is_logged(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    api = client(service, TOKEN)
    api.post("/login", data={"token": TOKEN})
    api.get("/api/search?q=mysecretquery", headers={"authorization": f"Bearer {TOKEN}"})
    ours = "\n".join(r.getMessage() for r in caplog.records if r.name.startswith("hybrid_rag"))
    assert "GET /api/search 200" in ours
    assert TOKEN not in ours and cookie_of(TOKEN) not in ours and "mysecretquery" not in ours


# ---------------------------------------------------------------- listening


def test_a_port_in_use_is_named() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(HybridRagError, match="in use") as error:
        listen("127.0.0.1", taken.getsockname()[1])
    assert "--port" in error.value.remedy
