"""What an embedder is. The implementations stand beside this file: embedding_onnx, embedding_ollama."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np

NOMIC_PREFIXES = ("search_query: ", "search_document: ")
BGE_PREFIXES = ("Represent this sentence for searching relevant passages: ", "")


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors of texts, in their order: float32 (n, dim), unit rows. A failed text's row is zero, its reason in ``failures``."""

    vectors: np.ndarray
    failures: dict[int, str] = field(default_factory=dict)


class Embedder(Protocol):
    """Turns texts into unit vectors. ``fingerprint`` changes with anything that changes a vector."""

    name: str  # "<provider>:<model>"
    fingerprint: str
    dimensions: int

    def embed_documents(self, texts: Sequence[str]) -> Embedded:
        """Embed passages. One text's failure does not harm the others; a failing server raises."""
        ...

    def embed_query(self, text: str) -> np.ndarray:
        """Embed a query: float32 (dim,), unit length. Raises EmbeddingError."""
        ...


def fingerprint(*, name: str, digest: str, dimensions: int, document_prefix: str, max_tokens: int) -> str:
    """Hex identity of an embedder: equal fingerprints mean interchangeable stored vectors.

    The query prefix is no part of it: it changes no stored vector.
    """
    text = "\0".join((name, digest, str(dimensions), document_prefix, str(max_tokens)))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


def prefixes_for(model: str) -> tuple[str, str]:
    """(query prefix, document prefix) that a model was trained with, by its name; empty when it has none."""
    plain = model.lower()
    if "nomic-embed" in plain:
        return NOMIC_PREFIXES
    if "bge-m3" in plain:
        return "", ""
    if "bge-" in plain or "bge_" in plain:
        return BGE_PREFIXES
    if plain.startswith("e5") or "-e5" in plain or "/e5" in plain:
        return "query: ", "passage: "
    if "mxbai-embed" in plain:
        return BGE_PREFIXES
    return "", ""
