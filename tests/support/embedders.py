"""A free, deterministic embedder that counts its calls: vectors of hashed words, so that texts with common words are near."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Sequence

import numpy as np

from hybrid_rag.embedding import Embedded
from hybrid_rag.errors import EmbeddingError


class HashEmbedder:
    """``fails``: texts that hold one of these words fail. ``delay``: seconds a call."""

    def __init__(self, name: str = "bundled:hash", dimensions: int = 64, *, fails: Sequence[str] = (), delay: float = 0.0) -> None:
        self.name, self.dimensions, self.fails, self.delay = name, dimensions, tuple(fails), delay
        self.fingerprint = hashlib.sha256(f"{name}{dimensions}".encode()).hexdigest()[:32]
        self.texts: list[str] = []

    def _vector(self, text: str) -> np.ndarray:
        out = np.zeros(self.dimensions, np.float32)
        out[0] = 0.1
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.blake2b((self.name + word).encode(), digest_size=4).digest()
            out[int.from_bytes(digest[:2], "big") % self.dimensions] += 1.0 if digest[2] & 1 else -1.0
        return out / np.linalg.norm(out)

    def embed_documents(self, texts: Sequence[str]) -> Embedded:
        time.sleep(self.delay)
        self.texts.extend(texts)
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        failures = {}
        for i, text in enumerate(texts):
            if any(word in text for word in self.fails):
                failures[i] = "the test says so"
            else:
                vectors[i] = self._vector(text)
        return Embedded(vectors, failures)

    def embed_query(self, text: str) -> np.ndarray:
        if any(word in text for word in self.fails):
            raise EmbeddingError("the test says so")
        return self._vector(text)
