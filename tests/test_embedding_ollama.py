"""The Ollama embedder against a server that answers, and fails, as Ollama does."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import numpy as np
import pytest

from hybrid_rag import embedding_ollama, ollama_server
from hybrid_rag.embedding_ollama import OllamaEmbedder
from hybrid_rag.errors import (
    EmbeddingError,
    OllamaBusyError,
    OllamaError,
    OllamaModelMissingError,
    OllamaProtocolError,
    OllamaUnreachableError,
)
from tests.support import ollama
from tests.support.ollama import FakeOllama

CONTEXT = 400  # characters that the model takes
MODELS = {"nomic-embed-text:latest": "d1", "other": "d2"}


@pytest.fixture
def server() -> Iterator[FakeOllama]:
    with ollama.running(FakeOllama(models=dict(MODELS), context=CONTEXT, nan_text="notanumber")) as running:
        yield running


def sent(server: FakeOllama) -> list[list[str]]:
    """The texts of each request."""
    return [body["input"] for body in server.bodies("/api/embed")]


def vector(text: str) -> np.ndarray:
    return np.array(ollama.vector(text, 16))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ollama_server, "FIRST_PAUSE", 0.001)


def made(server: FakeOllama, model: str = "nomic-embed-text", **options) -> OllamaEmbedder:
    embedder = OllamaEmbedder(base_url=server.url, model=model, **options)
    server.requests.clear()
    return embedder


def unit(row: np.ndarray) -> np.ndarray:
    return row / np.linalg.norm(row)


def test_texts_get_unit_vectors_in_order_with_the_models_prefixes(server: FakeOllama) -> None:
    embedder = made(server)
    embedded = embedder.embed_documents(["red phone", "blue lamp"])
    assert embedder.dimensions == 16 and embedded.failures == {} and embedded.vectors.dtype == np.float32
    np.testing.assert_allclose(embedded.vectors[1], vector("search_document: blue lamp"), atol=1e-5)
    np.testing.assert_allclose(embedder.embed_query("phone?"), vector("search_query: phone?"), atol=1e-5)
    assert sent(server) == [["search_document: red phone", "search_document: blue lamp"], ["search_query: phone?"]]
    assert all(body["truncate"] is False for body in server.bodies("/api/embed"))


def test_other_models_get_no_prefix_and_given_prefixes_win(server: FakeOllama) -> None:
    made(server, "other").embed_documents(["x"])
    assert sent(server) == [["x"]]
    made(server, query_prefix="q> ", document_prefix="").embed_documents(["x"])
    assert sent(server) == [["x"]]


def test_batches_are_bounded_and_no_text_is_sent_twice(server: FakeOllama, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = made(server, "other")
    texts = [f"text {i % 50}" for i in range(120)]
    embedded = embedder.embed_documents(texts)
    assert [len(batch) for batch in sent(server)] == [32, 18]
    np.testing.assert_array_equal(embedded.vectors[3], embedded.vectors[53])
    server.requests.clear()
    monkeypatch.setattr(embedding_ollama, "BATCH_CHARACTERS", 100)
    embedder.embed_documents(["a" * 60, "b" * 60, "c" * 30, "d" * 300])
    assert [len(batch) for batch in sent(server)] == [1, 2, 1]


def test_a_text_over_the_context_is_split_and_averaged_and_the_others_are_not_touched(server: FakeOllama) -> None:
    embedder = made(server)
    long = " ".join(f"word{i}" for i in range(130))
    embedded = embedder.embed_documents(["red phone", long, "blue lamp"])
    assert embedded.failures == {}
    np.testing.assert_allclose(embedded.vectors[0], vector("search_document: red phone"), atol=1e-5)
    pieces = [text.removeprefix("search_document: ") for batch in sent(server) for text in batch if len(batch) == 1]
    leaves = [p for p in pieces if len(p) + len("search_document: ") <= CONTEXT and p in long]
    assert "".join(leaves) == long, "every part of the text is embedded once"
    assert all(text.startswith("search_document: ") for batch in sent(server) for text in batch)
    assert float(embedded.vectors[1] @ unit(sum(vector("search_document: " + p) for p in leaves))) > 0.9
    np.testing.assert_allclose(np.linalg.norm(embedded.vectors, axis=1), 1, atol=1e-5)


def test_a_dense_text_without_spaces_is_split_too(server: FakeOllama) -> None:
    embedded = made(server, "other").embed_documents(["${{ }}:=".replace(" ", "") * 1_100])
    assert embedded.failures == {} and np.linalg.norm(embedded.vectors[0]) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("status", [400, 500])
def test_a_text_without_a_finite_vector_fails_alone(server: FakeOllama, status: int) -> None:
    server.nan_status = status
    embedded = made(server).embed_documents(["a", "b", "notanumber here", "c", "notanumber here"])
    assert set(embedded.failures) == {2, 4} and "NaN" in embedded.failures[2]
    assert np.linalg.norm(embedded.vectors, axis=1).round(4).tolist() == [1, 1, 0, 1, 0]


def test_a_query_that_fails_says_so(server: FakeOllama) -> None:
    with pytest.raises(EmbeddingError, match="NaN"):
        made(server).embed_query("notanumber")


def test_a_server_that_embeds_nothing_raises_rather_than_mark_every_text(server: FakeOllama) -> None:
    embedder = made(server)
    server.broken = "model runner has unexpectedly stopped"
    with pytest.raises(OllamaError, match="unexpectedly stopped"):
        embedder.embed_documents(["a", "b", "c"])


def test_a_reply_that_is_too_short_is_noticed(server: FakeOllama) -> None:
    embedder = made(server)
    server.short = 1
    with pytest.raises(OllamaProtocolError, match="vectors"):
        embedder.embed_documents(["a", "b", "c"])


def test_a_busy_server_is_waited_for(server: FakeOllama) -> None:
    embedder = made(server, retries=2)
    server.busy = 2
    assert embedder.embed_documents(["a"]).failures == {}
    server.busy = 5
    with pytest.raises(OllamaBusyError, match="busy"):
        embedder.embed_documents(["a"])


def test_a_reply_that_is_cut_off_is_told(server: FakeOllama) -> None:
    embedder = made(server)
    server.cut = True
    with pytest.raises(OllamaProtocolError):
        embedder.embed_documents(["a"])


def test_no_server_and_no_model_are_two_different_errors(server: FakeOllama) -> None:
    with pytest.raises(OllamaModelMissingError) as missing:
        OllamaEmbedder(base_url=server.url, model="mxbai-embed-large")
    assert missing.value.remedy == "Run `ollama pull mxbai-embed-large`."
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(OllamaUnreachableError) as unreachable:
        OllamaEmbedder(base_url=address, model="nomic-embed-text")
    assert address in unreachable.value.message and "ollama serve" in unreachable.value.remedy


def test_a_model_that_is_removed_in_mid_run_is_told(server: FakeOllama) -> None:
    embedder = made(server)
    del server.models["nomic-embed-text:latest"]
    with pytest.raises(OllamaModelMissingError):
        embedder.embed_documents(["a"])


def test_the_fingerprint_knows_digest_and_prefix_but_not_the_tag_latest(server: FakeOllama) -> None:
    first = made(server).fingerprint
    assert made(server, "nomic-embed-text:latest").fingerprint == first
    assert made(server, query_prefix="q: ").fingerprint == first
    assert made(server, document_prefix="").fingerprint != first
    server.models["nomic-embed-text:latest"] = "d9"
    assert made(server).fingerprint != first


def test_any_text_is_sent(server: FakeOllama) -> None:
    embedded = made(server).embed_documents(["lone \udc80 surrogate", "", "🔥", "\0"])
    assert embedded.failures == {}
