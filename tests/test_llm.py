"""Ollama's chat over the wire: what is sent, what comes back, and each fault with its own message and remedy."""

from __future__ import annotations

import threading
import time

import pytest

from hybrid_rag.errors import Cancelled, OllamaBusyError, OllamaError, OllamaModelMissingError, OllamaProtocolError, OllamaUnreachableError
from hybrid_rag.llm import OllamaChat
from tests.support.ollama import FakeOllama, running

HELLO = [("human", "h")]
NOBODY = "http://127.0.0.1:9"


def chat(url: str, **options) -> OllamaChat:
    return OllamaChat(**{"base_url": url, "model": "llama3.1:latest", "connect_seconds": 1, "answer_seconds": 60, **options})


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid_rag.ollama_server.FIRST_PAUSE", 0.001)


def test_what_is_sent_and_what_comes_back() -> None:
    with running(FakeOllama(reply=lambda body: "It is 5 EUR [1].")) as server:
        pieces: list[str] = []
        result = chat(server.url, num_ctx=4096, seed=7, max_answer_tokens=50).generate(
            [("system", "s"), ("human", "h")], on_token=pieces.append
        )
        body = server.bodies("/api/chat")[0]
    assert result.text == "It is 5 EUR [1]." == "".join(pieces)
    assert len(pieces) == 5
    assert (result.prompt_tokens, result.answer_tokens, result.done_reason) == (123, 5, "stop")
    assert body["model"] == "llama3.1:latest"
    assert [(m["role"], m["content"]) for m in body["messages"]] == [("system", "s"), ("user", "h")]
    assert body["options"] | {"num_ctx": 4096, "temperature": 0.0, "seed": 7, "num_predict": 50} == body["options"]
    assert body["keep_alive"] == "5m"
    assert body["stream"] is True
    assert body["think"] is False


def test_a_schema_is_sent_as_the_format() -> None:
    schema = {"type": "object", "properties": {"sql": {"type": "string"}}, "required": ["sql"]}
    with running(FakeOllama(reply=lambda body: '{"sql": "SELECT 1"}')) as server:
        assert chat(server.url).generate(HELLO, schema=schema).text == '{"sql": "SELECT 1"}'
        assert server.bodies("/api/chat")[0]["format"] == schema


def test_the_budget_leaves_room_for_the_answer() -> None:
    assert chat(NOBODY, num_ctx=4096, max_answer_tokens=400).budget <= 4096 - 400


@pytest.mark.parametrize(("own", "sent"), [(2048, 2048), (131072, 4096), (None, 4096)])
def test_a_model_with_a_short_context_gets_no_longer_prompt(own: int | None, sent: int) -> None:
    with running(FakeOllama(context_length=own)) as server:
        client = chat(server.url, num_ctx=4096, max_answer_tokens=400)
        client.check()
        client.check()
        client.generate(HELLO)
        assert server.bodies("/api/chat")[0]["options"]["num_ctx"] == sent
        assert len(server.bodies("/api/show")) == 1
    assert client.budget <= sent - 400


def test_what_a_model_thinks_aloud_is_no_part_of_its_answer() -> None:
    with running(FakeOllama(reply=lambda body: "<think>\nHm, 40?\n</think>\n\nIt is 38.")) as server:
        assert chat(server.url).generate(HELLO).text == "It is 38."
    with running(FakeOllama(reply=lambda body: "<think>\nnever ends")) as server:
        assert chat(server.url).generate(HELLO).text == ""


def test_an_answer_that_is_cut_off_says_so() -> None:
    with running(FakeOllama(reply=lambda body: "one two three four")) as server:
        result = chat(server.url, max_answer_tokens=16).generate(HELLO)
        assert result.done_reason == "stop"
        server.reply = lambda body: "word " * 40
        result = chat(server.url, max_answer_tokens=16).generate(HELLO)
    assert (result.done_reason, result.answer_tokens) == ("length", 16)


@pytest.mark.parametrize(
    ("state", "error", "words", "remedy"),
    [
        (FakeOllama(models={}), OllamaModelMissingError, "does not have the model llama3.1:latest", "`ollama pull llama3.1:latest`"),
        (FakeOllama(busy=99), OllamaBusyError, "busy", "OLLAMA_MAX_QUEUE"),
        (FakeOllama(reply=lambda b: "a b c d", cut=True), OllamaProtocolError, "broke off", "server's log"),
        (FakeOllama(reply=lambda b: "a b c d", error_line="an internal fault"), OllamaProtocolError, "an internal fault", "server's log"),
        (FakeOllama(only_load=True), OllamaProtocolError, "loaded llama3.1:latest but wrote nothing", "Try again"),
        (FakeOllama(refusal=(400, "invalid options: num_ctx")), OllamaError, "status 400: invalid options", "server's log"),
        (
            FakeOllama(refusal=(500, "model requires more system memory (9 GiB) than is available")),
            OllamaError,
            "cannot load",
            "smaller model",
        ),
        (
            FakeOllama(reply=lambda b: (time.sleep(1) or w for w in ("a ", "b"))),
            OllamaError,
            "took longer than allowed",
            "ollama.answer_seconds",
        ),
        (
            FakeOllama(reply=lambda b: (time.sleep(0.1) or "a " for _ in range(40))),
            OllamaError,
            "took longer than allowed",
            "smaller model",
        ),
    ],
    ids=["missing", "busy", "cut", "error line", "only load", "status 400", "memory", "silent", "endless"],
)
def test_each_fault_has_its_own_message(state: FakeOllama, error: type[OllamaError], words: str, remedy: str) -> None:
    limit = 0.4 if "longer" in words else 60
    with running(state) as server, pytest.raises(error) as caught:
        chat(server.url, answer_seconds=limit).generate(HELLO)
    assert words in caught.value.message
    assert remedy in caught.value.remedy
    assert caught.value.exit_code == 5


def test_an_embedding_model_cannot_chat() -> None:
    with running() as server, pytest.raises(OllamaError, match="does not support chat") as caught:
        chat(server.url, model="nomic-embed-text").generate(HELLO)
    assert "ollama.llm_model" in caught.value.remedy


@pytest.mark.parametrize("call", [lambda c: c.check(), lambda c: c.generate(HELLO)], ids=["check", "generate"])
def test_no_server_is_not_a_missing_model(call) -> None:
    with pytest.raises(OllamaUnreachableError, match="ollama serve") as caught:
        call(chat(NOBODY))
    assert "pull" not in str(caught.value)
    assert not chat(NOBODY).available()


def test_another_program_at_the_address_is_not_a_missing_model() -> None:
    with running(FakeOllama(html=True)) as server, pytest.raises(OllamaProtocolError, match="another program"):
        chat(server.url).check()
    with running() as server, pytest.raises(OllamaProtocolError, match="Is it an Ollama server"):
        chat(f"{server.url}/elsewhere").generate(HELLO)


def test_a_missing_model_is_found_before_anything_is_asked() -> None:
    with running(FakeOllama(models={"other:latest": "x"})) as server:
        with pytest.raises(OllamaModelMissingError, match=r"ollama pull llama3.1:latest"):
            chat(server.url).check()
        assert server.bodies("/api/chat") == []
        chat(server.url, model="other").check()  # a name without its tag is the latest


@pytest.mark.parametrize(("busy", "retries"), [(2, 3), (1, 1), (0, 0)])
def test_a_busy_server_is_asked_again(busy: int, retries: int) -> None:
    with running(FakeOllama(busy=busy, reply=lambda b: "yes")) as server:
        assert chat(server.url, retries=retries).generate(HELLO).text == "yes"
        assert len(server.bodies("/api/chat")) == busy + 1


def test_a_server_that_stays_busy_is_asked_so_often_and_no_more() -> None:
    with running(FakeOllama(busy=99)) as server:
        with pytest.raises(OllamaBusyError):
            chat(server.url, retries=2).generate(HELLO)
        assert len(server.bodies("/api/chat")) == 3


def test_several_threads_ask_one_client() -> None:
    with running(FakeOllama(reply=lambda b: b["messages"][0]["content"] * 2)) as server:
        client, out = chat(server.url), {}
        threads = [threading.Thread(target=lambda i=i: out.update({i: client.generate([("human", f"q{i}")]).text})) for i in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert out == {i: f"q{i}q{i}" for i in range(8)}


# ---------------------------------------------------------------- an asker who leaves


def test_an_answer_can_be_stopped_before_its_first_word() -> None:
    seen = threading.Event()
    with running(FakeOllama(delay=20, reply=lambda body: "Late.")) as server:
        threading.Timer(0.3, seen.set).start()
        started = time.monotonic()
        with pytest.raises(Cancelled):
            chat(server.url, answer_seconds=60).generate(HELLO, cancel=seen.is_set)
        assert time.monotonic() - started < 10


def test_a_server_that_is_writing_is_hung_up_on() -> None:
    written: list[int] = []

    def endless(body):
        for n in range(10_000):
            written.append(n)
            yield f"word{n} "

    heard: list[str] = []
    with running(FakeOllama(pause=0.01, reply=endless)) as server:
        with pytest.raises(Cancelled):
            chat(server.url).generate(HELLO, on_token=heard.append, cancel=lambda: len(heard) > 5)
        wait_until_still(written)
    assert 5 < len(written) < 10_000


def wait_until_still(items: list[int]) -> None:
    """Until the server has noticed that nobody listens."""
    for _ in range(100):
        before = len(items)
        time.sleep(0.1)
        if len(items) == before:
            return
    raise AssertionError("the server goes on writing")


def test_an_answer_that_nobody_stops_comes_whole() -> None:
    with running(FakeOllama(reply=lambda body: "It is 5 EUR [1].")) as server:
        pieces: list[str] = []
        result = chat(server.url).generate(HELLO, on_token=pieces.append, cancel=lambda: False)
    assert (result.text, result.done_reason, len(pieces)) == ("It is 5 EUR [1].", "stop", 5)
    with running(FakeOllama(cut=True, reply=lambda body: "It is 5 EUR [1].")) as server, pytest.raises(OllamaProtocolError):
        chat(server.url).generate(HELLO, cancel=lambda: False)
    with pytest.raises(OllamaUnreachableError):
        chat(NOBODY).generate(HELLO, cancel=lambda: False)


def test_an_error_of_the_listener_is_not_taken_for_one_of_the_server() -> None:
    def listener(_: str) -> None:
        raise Cancelled("enough")

    with running(FakeOllama(reply=lambda body: "a b c")) as server, pytest.raises(Cancelled, match="enough"):
        chat(server.url).generate(HELLO, on_token=listener)
