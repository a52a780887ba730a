"""The wire and the checks with a real language model behind the test server. It is small and wrong often: no wisdom is tested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid_rag.errors import OllamaBusyError, OllamaModelMissingError, OllamaProtocolError
from hybrid_rag.llm import OllamaChat
from hybrid_rag.prompts import Passage, build, fit
from hybrid_rag.service import open_service
from tests.support.injections import FACT, INJECTIONS, QUESTION
from tests.support.llama import answering, loaded, model_file, why_not
from tests.support.ollama import FakeOllama, running

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
HELLO = [("human", "Say hello in one short sentence.")]
SHOWN = ("ignore the above", "closes the fence", "ChatML", "asks for an image")  # of the attacks; all of them: benchmarks/answers.py


@pytest.fixture(scope="module")
def model():
    path = model_file()
    assert path is not None
    with loaded(path, num_ctx=2048) as reply:
        yield reply


@pytest.fixture
def server(model):
    with running(answering(model)) as state:
        yield state


def chat(server: FakeOllama, **options) -> OllamaChat:
    return OllamaChat(
        base_url=server.url, model="llama3.1:latest", **{"num_ctx": 2048, "max_answer_tokens": 24, "answer_seconds": 600.0} | options
    )


def test_pieces_come_as_they_are_written_and_the_counts_are_the_models(server: FakeOllama) -> None:
    pieces: list[str] = []
    first = chat(server).generate(HELLO, on_token=pieces.append)
    assert len(pieces) > 2
    assert "".join(pieces) == first.text
    assert first.prompt_tokens > 8
    assert len(pieces) - 1 <= first.answer_tokens <= 25
    assert chat(server).generate(HELLO).text == first.text  # temperature 0, seeded


def test_a_real_answer_that_is_cut_off_says_so(server: FakeOllama) -> None:
    told = chat(server, max_answer_tokens=3).generate(HELLO)
    assert (told.done_reason, told.answer_tokens) == ("length", 3)


def test_a_schema_is_kept(server: FakeOllama) -> None:
    schema = {"type": "object", "properties": {"sql": {"type": "string", "maxLength": 12}}, "required": ["sql"]}
    text = chat(server, max_answer_tokens=60).generate([("human", "Write a query.")], schema=schema).text
    assert isinstance(json.loads(text)["sql"], str)


def test_a_busy_server_a_cut_body_and_a_missing_model(server: FakeOllama) -> None:
    server.busy = 1
    assert chat(server).generate(HELLO).text
    server.busy = 9
    with pytest.raises(OllamaBusyError):
        chat(server, retries=0).generate(HELLO)
    server.busy, server.cut = 0, True
    with pytest.raises(OllamaProtocolError):
        chat(server).generate(HELLO)
    server.cut, server.models = False, {"other:latest": "x"}
    with pytest.raises(OllamaModelMissingError, match="does not have the model"):
        chat(server).generate(HELLO)


def test_what_is_too_long_is_cut_to_what_the_models_own_tokenizer_counts(server: FakeOllama) -> None:
    texts = [
        f"Passage {n}: " + "Opened headphones can be returned within 14 days; WC-2024-00317 costs 58.50 EUR. " * 12 for n in range(1, 9)
    ]
    client = chat(server, num_ctx=900, max_answer_tokens=16)
    fitted = fit(QUESTION, [Passage(n, f"doc{n}.md", text) for n, text in enumerate(texts, start=1)], sentences=3, budget=client.budget)
    assert 0 < len(fitted.passages) < 8
    told = client.generate(build(QUESTION, fitted.passages, sentences=3))
    assert told.prompt_tokens <= fitted.tokens <= client.budget


def test_what_is_shown_stands_in_the_documents_whatever_the_model_writes(server: FakeOllama, tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    (root / "returns.md").write_text(f"# Return window\n\n{FACT}", encoding="utf-8")
    for place, name in enumerate(SHOWN):
        (root / f"note{place}.md").write_text(f"# Return window\n\nOpened headphones. {INJECTIONS[name][0]}", encoding="utf-8")
    settings = [f"data.directory={root}", f"vector_store.persist_directory={tmp_path / 'index'}", f"ollama.base_url={server.url}", "embedding.provider=none",
                "llm.provider=ollama", "ollama.num_ctx=2048", "ollama.max_answer_tokens=60", "ollama.answer_seconds=900"]  # fmt: skip
    with open_service(settings=settings) as shop:
        shop.index()
        answer = shop.ask(QUESTION)
    assert answer.model == "llama3.1:latest"
    assert answer.tokens["prompt"] > 100
    for name in SHOWN:
        assert INJECTIONS[name][1].casefold() not in answer.answer.casefold()
    for citation in answer.citations:
        assert citation.quote in (root / citation.source).read_text(encoding="utf-8")
