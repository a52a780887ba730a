"""Our embedders as LangChain's, and LangChain's as ours."""

from __future__ import annotations

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from hybrid_rag.embedding import Embedded
from hybrid_rag.embedding_onnx import bundled_embedder
from hybrid_rag.errors import ConfigError, EmbeddingError
from hybrid_rag.langchain_parts.embeddings import HybridRagEmbeddings, LangChainEmbedder, load_embedder


class Broken(Embeddings):
    """Gives nothing finite for texts that say so."""

    model = "broken-1"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[float("nan"), 1.0] if "nan" in text else [0.0, 0.0] if "zero" in text else [3.0, 4.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_a_langchain_vector_store_searches_with_the_bundled_model() -> None:
    store = InMemoryVectorStore(HybridRagEmbeddings(bundled_embedder()))
    store.add_texts(["Bananas are yellow.", "Phones have a warranty of two years.", "The shop opens at nine."])
    assert store.similarity_search("How long is a phone guaranteed?", k=1)[0].page_content.startswith("Phones")


def test_a_failed_text_is_an_error_for_langchain() -> None:
    class Failing:
        name, fingerprint, dimensions = "failing", "f", 2

        def embed_documents(self, texts):
            return Embedded(np.zeros((len(texts), 2), np.float32), {1: "too long"})

        def embed_query(self, text):
            return np.ones(2, np.float32)

    with pytest.raises(EmbeddingError, match=r"1 of 2 texts.*number 2: too long"):
        HybridRagEmbeddings(Failing()).embed_documents(["a", "b"])


def test_langchain_embeddings_give_unit_rows() -> None:
    embedder = load_embedder("langchain_core.embeddings:DeterministicFakeEmbedding", size=12)
    embedded = embedder.embed_documents(["a", "b", "a"])
    assert embedder.name == "langchain:DeterministicFakeEmbedding" and embedder.dimensions == 12
    np.testing.assert_allclose(np.linalg.norm(embedded.vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(embedded.vectors[0], embedded.vectors[2])
    np.testing.assert_allclose(embedder.embed_query("a"), embedded.vectors[0], atol=1e-6)
    assert embedder.embed_documents([]).vectors.shape == (0, 12)
    assert LangChainEmbedder(DeterministicFakeEmbedding(size=8)).fingerprint != embedder.fingerprint


def test_a_text_without_a_vector_fails_alone() -> None:
    embedder = LangChainEmbedder(Broken())
    embedded = embedder.embed_documents(["good", "nan", "zero", "good"])
    assert sorted(embedded.failures) == [1, 2]
    np.testing.assert_allclose(embedded.vectors, [[0.6, 0.8], [0, 0], [0, 0], [0.6, 0.8]], atol=1e-6)
    with pytest.raises(EmbeddingError, match="broken-1"):
        embedder.embed_query("nan")


@pytest.mark.parametrize("path", ["no_such_module:X", "langchain_core.embeddings:Nothing", "json:JSONDecoder", "nonsense", ""])
def test_a_wrong_path_is_told(path: str) -> None:
    with pytest.raises(ConfigError, match=r"Embeddings|embeddings"):
        load_embedder(path)
