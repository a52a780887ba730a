"""The ONNX embedder: unit vectors that depend on the text alone, in the order of the texts."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid_rag.embedding import BGE_PREFIXES, NOMIC_PREFIXES, fingerprint, prefixes_for
from hybrid_rag.embedding_onnx import OnnxEmbedder, bundled_embedder, pooling_of
from hybrid_rag.errors import ModelError
from hybrid_rag.models import bundled

TEXTS = [
    "You may return a defective phone within 30 days with the receipt.",
    "Bananas are yellow and grow in warm countries.",
    "short",
    "The warranty covers batteries for one year. " * 12,
    "",
    "   \n\n ",
    "🔥🔥🔥",
    "東京は日本の首都です。",
    "lone \udc80 surrogate",
]


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return bundled_embedder()


def test_vectors_are_unit_rows_in_order(embedder: OnnxEmbedder) -> None:
    embedded = embedder.embed_documents(TEXTS)
    assert embedded.vectors.shape == (len(TEXTS), 384) == (len(TEXTS), embedder.dimensions)
    assert embedded.vectors.dtype == np.float32 and embedded.failures == {}
    np.testing.assert_allclose(np.linalg.norm(embedded.vectors, axis=1), 1, atol=1e-5)
    for i in (0, 3):
        np.testing.assert_array_equal(embedder.embed_documents([TEXTS[i]]).vectors[0], embedded.vectors[i])


def test_no_texts_give_no_vectors(embedder: OnnxEmbedder) -> None:
    assert embedder.embed_documents([]).vectors.shape == (0, 384)


def test_a_query_is_nearest_to_its_answer(embedder: OnnxEmbedder) -> None:
    query = embedder.embed_query("How long do I have to bring back a broken mobile?")
    assert query.shape == (384,) and query.dtype == np.float32
    assert int(np.argmax(embedder.embed_documents(TEXTS[:4]).vectors @ query)) == 0


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(order=st.permutations(range(len(TEXTS))), taken=st.integers(1, len(TEXTS)), again=st.integers(0, 2))
def test_a_vector_depends_on_its_text_alone(embedder: OnnxEmbedder, order: list[int], taken: int, again: int) -> None:
    """Whatever stands beside a text, and however often, its vector is the same to the last bit."""
    wanted = embedder.embed_documents(TEXTS).vectors
    chosen = list(order)[:taken] * (1 + again)
    np.testing.assert_array_equal(embedder.embed_documents([TEXTS[i] for i in chosen]).vectors, wanted[chosen])


def test_the_number_of_threads_changes_no_bit_and_no_fingerprint(embedder: OnnxEmbedder) -> None:
    alone = bundled_embedder(threads=1)
    np.testing.assert_array_equal(alone.embed_documents(TEXTS).vectors, embedder.embed_documents(TEXTS).vectors)
    assert alone.fingerprint == embedder.fingerprint


def test_no_text_is_computed_twice(embedder: OnnxEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    original = embedder._model._run_one
    monkeypatch.setattr(embedder._model, "_run_one", lambda row: runs.append(1) or original(row))
    embedder.embed_documents(["a b", "c d", "a b", "a b"])
    assert len(runs) == 2


def test_a_long_text_is_cut_at_the_models_length(embedder: OnnxEmbedder) -> None:
    words = " ".join(f"word{i}" for i in range(2_000))
    vectors = embedder.embed_documents([words, words + " and much more"]).vectors
    np.testing.assert_array_equal(vectors[0], vectors[1])


def test_the_fingerprint_knows_what_changes_a_stored_vector(embedder: OnnxEmbedder) -> None:
    assert bundled_embedder(query_prefix="other: ").fingerprint == embedder.fingerprint
    assert bundled_embedder(document_prefix="passage: ").fingerprint != embedder.fingerprint
    base = {"name": "a", "digest": "d", "dimensions": 8, "document_prefix": "", "max_tokens": 512}
    prints = {fingerprint(**base)} | {
        fingerprint(**base | {key: value})
        for key, value in {"name": "b", "digest": "e", "dimensions": 9, "document_prefix": "x", "max_tokens": 256}.items()
    }
    assert len(prints) == 6 and all(len(p) == 32 for p in prints)


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("nomic-embed-text", NOMIC_PREFIXES),
        ("nomic-embed-text:v1.5", NOMIC_PREFIXES),
        ("bge-small-en-v1.5", BGE_PREFIXES),
        ("bundled:bge_small_en", BGE_PREFIXES),
        ("bge-m3", ("", "")),
        ("mxbai-embed-large", BGE_PREFIXES),
        ("multilingual-e5-small", ("query: ", "passage: ")),
        ("all-minilm", ("", "")),
    ],
)
def test_prefixes_are_the_models_own(model: str, wanted: tuple[str, str]) -> None:
    assert prefixes_for(model) == wanted


def test_pooling_is_read_from_the_models_file_else_from_its_name(tmp_path: Path) -> None:
    assert pooling_of(tmp_path, "onnx:bge-base") == "cls" and pooling_of(tmp_path, "onnx:all-MiniLM-L6") == "mean"
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}', encoding="utf-8"
    )
    assert pooling_of(tmp_path, "onnx:bge-base") == "mean"


def test_any_folder_with_a_model_will_do(tmp_path: Path, embedder: OnnxEmbedder) -> None:
    for file in ("model.onnx", "tokenizer.json"):
        shutil.copy(bundled("bge_small_en") / file, tmp_path / file)
    own = OnnxEmbedder(tmp_path, name="onnx:mine", pooling="cls", query_prefix=BGE_PREFIXES[0])
    np.testing.assert_array_equal(own.embed_query("where?"), embedder.embed_query("where?"))
    assert own.fingerprint != embedder.fingerprint


def test_a_folder_without_a_model_and_a_broken_model_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no model\.onnx"):
        OnnxEmbedder(tmp_path, name="x")
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        OnnxEmbedder(tmp_path, name="x")
    assert str(tmp_path) in caught.value.message and caught.value.remedy
