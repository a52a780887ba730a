"""Models whose results a benchmark keeps: a query's vector in memory, the cross-encoder's logits and a language model's replies on disk."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hybrid_rag.embedding import Embedded, Embedder
from hybrid_rag.models import MODEL_FILE, PINS
from hybrid_rag.reranking import bundled_reranker


class OnceEmbedder:
    """An embedder that computes each query once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name, self.fingerprint, self.dimensions = embedder.name, embedder.fingerprint, embedder.dimensions
        self._queries: dict[str, np.ndarray] = {}

    def embed_documents(self, texts: Sequence[str]) -> Embedded:
        return self._embedder.embed_documents(texts)

    def embed_query(self, text: str) -> np.ndarray:
        if text not in self._queries:
            self._queries[text] = self._embedder.embed_query(text)
        return self._queries[text]


class KeptReranker:
    """The bundled cross-encoder; a pair's logit depends on the pair alone, so it is computed once for all runs.

    ``milliseconds`` a pair, over what this run has computed; 0 when all was kept.
    """

    def __init__(self, path: Path) -> None:
        self._model = bundled_reranker()
        self.name = self._model.name
        self._database = sqlite3.connect(path, check_same_thread=False)
        self._database.execute("CREATE TABLE IF NOT EXISTS logits (pair TEXT PRIMARY KEY, logit REAL NOT NULL)")
        self.pairs, self.seconds = 0, 0.0

    @property
    def milliseconds(self) -> float:
        return 1000 * self.seconds / self.pairs if self.pairs else 0.0

    def score(self, query: str, texts: Sequence[str]) -> np.ndarray:
        keys = [self._key(query, text) for text in texts]
        marks = ",".join("?" * len(keys))
        known = dict(self._database.execute(f"SELECT pair, logit FROM logits WHERE pair IN ({marks})", keys).fetchall())
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            started = time.perf_counter()
            logits = self._model.score(query, list(missing.values()))
            self.seconds += time.perf_counter() - started
            self.pairs += len(missing)
            known.update(zip(missing, map(float, logits), strict=True))
            self._database.executemany("INSERT OR REPLACE INTO logits VALUES (?, ?)", [(key, known[key]) for key in missing])
            if self.pairs % 500 < len(missing):
                self.save()
        return np.array([known[key] for key in keys], np.float32)

    def save(self) -> None:
        self._database.commit()

    def _key(self, query: str, text: str) -> str:
        return hashlib.sha256("\0".join((PINS["reranker_en"][MODEL_FILE], query, text)).encode("utf-8", "replace")).hexdigest()


class KeptReplies:
    """A language model's replies to the tests' server, so that a run that was stopped goes on where it was. ``model``: names it in the file."""

    def __init__(self, path: Path, model: str, reply: Callable[[dict[str, Any]], Iterator[str | dict[str, Any]]]) -> None:
        self._model, self._reply = model, reply
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, check_same_thread=False)
        self._database.execute("CREATE TABLE IF NOT EXISTS replies (request TEXT PRIMARY KEY, pieces TEXT NOT NULL)")

    def __call__(self, body: dict[str, Any]) -> Iterator[str | dict[str, Any]]:
        asked = json.dumps([self._model, *(body.get(part) for part in ("messages", "format", "options"))], sort_keys=True)
        key = hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()
        with self._lock:
            row = self._database.execute("SELECT pieces FROM replies WHERE request = ?", (key,)).fetchone()
            if row is None:
                row = (json.dumps(list(self._reply(body))),)
                with self._database:
                    self._database.execute("INSERT INTO replies VALUES (?, ?)", (key, *row))
        yield from json.loads(row[0])
