"""The second phase of a run: every chunk that has no vector gets one, text before tables, each batch durable.

Vectors are cached by (embedder, text): nothing is embedded twice, also after a kill, a rename or a rebuild. Another
embedder's vectors are made beside the present ones, which are searched until the new ones are complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybrid_rag.errors import Cancelled, EmbedderMismatchError, OllamaError
from hybrid_rag.records import Kind, Progress

if TYPE_CHECKING:
    from hybrid_rag.embedding import Embedder
    from hybrid_rag.writer import Writer

BATCH = 128  # chunks embedded between two commits
PHASES: tuple[tuple[Kind, str], ...] = (("text", "embed text"), ("table", "embed tables"))


@dataclass
class Outcome:
    """What the phase did, in chunks."""

    embedded: int = 0
    reused: int = 0
    failed: int = 0
    embedder: str = ""
    messages: list[str] = field(default_factory=list)


def embed_missing(
    writer: Writer,
    embedder: Callable[[], Embedder | None],
    *,
    current: str | None = None,
    on_change: str,
    show: Callable[[Progress], None],
    stop: Callable[[], bool],
) -> Outcome:
    """Embed what has no vector. Raises Cancelled and EmbedderMismatchError; a server that is gone is a message."""
    out = Outcome()
    catalog = writer.catalog
    catalog.rows("UPDATE chunks SET vector = 0 WHERE vector = 2")
    if current and not catalog.value(
        "SELECT 1 FROM chunks c JOIN documents d ON d.number = c.document WHERE d.ready = 1 AND c.vector = 0 LIMIT 1"
    ):
        out.embedder = current
        return out
    try:
        model = embedder()
    except OllamaError as error:
        out.messages.append(f"No vectors were made: {error.message} Keyword search works. {error.remedy}")
        return out
    if model is None:
        out.messages.append("No vectors were made: embedding.provider is none.")
        return out
    out.embedder = model.name
    active = catalog.setting("fingerprint")
    has_vectors = bool(catalog.value("SELECT 1 FROM chunks WHERE vector = 1 LIMIT 1"))
    if active and active != model.fingerprint and has_vectors:
        if on_change == "refuse":
            raise EmbedderMismatchError(
                f"The index holds vectors of {catalog.setting('embedder')}, the configuration asks for {model.name} (or another version of it).",
                "Set embedding.on_change to rebuild to make new vectors, or set embedding.provider back.",
            )
        _Phase(writer, model, out, show, stop).switch()
        return out
    if active != model.fingerprint:
        writer.activate(model.fingerprint, model.name, model.dimensions)
    _Phase(writer, model, out, show, stop).fill()
    return out


class _Phase:
    def __init__(self, writer: Writer, model: Embedder, out: Outcome, show: Callable[[Progress], None], stop: Callable[[], bool]) -> None:
        self._writer, self._model, self._out, self._show, self._stop = writer, model, out, show, stop
        self._catalog = writer.catalog

    def fill(self) -> None:
        """Vectors for all chunks that have none."""
        if self._catalog.setting("beside"):  # another embedder was tried and given up
            self._drop_others()
        self._out.reused += self._writer.fill_from_cache(self._model.fingerprint)
        for kind, stage in PHASES:
            self._each(kind, stage, "c.vector = 0", self._store)

    def switch(self) -> None:
        """All vectors anew, beside the old ones, which are searched until the new ones take their place in one step.

        A stopped switch goes on where it was: what is embedded is in the cache, what is in the new collection stays there.
        """
        new, writer = self._model.fingerprint, self._writer
        self._out.messages.append(
            f"The embedder changed from {self._catalog.setting('embedder')} to {self._model.name}: new vectors are made beside the old."
        )
        self._catalog.set_setting("beside", new)
        missing = "NOT EXISTS (SELECT 1 FROM vectors v WHERE v.fingerprint = '" + new + "' AND v.hash = c.hash)"
        for kind, stage in PHASES:
            self._each(kind, stage, missing, self._cache)
        writer.prepare(new)
        writer.swap(new, self._model.name, self._model.dimensions)
        self._out.reused += int(self._catalog.value("SELECT count(*) FROM chunks WHERE vector = 1")) - self._out.embedded
        self._drop_others()

    def _drop_others(self) -> None:
        self._writer.drop_others()
        self._catalog.set_setting("beside", "")

    def _each(self, kind: Kind, stage: str, condition: str, keep: Callable[[Sequence[tuple[int, str]], Sequence[str], Kind], None]) -> None:
        """Walk the chunks of a kind that meet a condition, batch by batch."""
        base = f"FROM chunks c JOIN documents d ON d.number = c.document WHERE d.ready = 1 AND {condition} AND c.kind = ?"
        total = int(self._catalog.value(f"SELECT count(*) {base}", (kind,)))
        done, last, started = 0, 0, time.monotonic()
        while rows := self._catalog.rows(f"SELECT c.number, c.hash {base} AND c.number > ? ORDER BY c.number LIMIT ?", (kind, last, BATCH)):
            if self._stop():
                raise Cancelled("Indexing was stopped; keyword search is complete, the remaining vectors follow with the next run.")
            last = rows[-1][0]
            stored = self._catalog.chunks([n for n, _ in rows])
            rows = [(n, h) for n, h in rows if n in stored]
            keep(rows, [stored[n].chunk.embedding_text for n, _ in rows], kind)
            done += len(rows)
            rate = done / max(time.monotonic() - started, 1e-6)
            self._show(Progress(stage, done, total, "", rate, (total - done) / rate))

    def _embed(self, rows: Sequence[tuple[int, str]], texts: Sequence[str]) -> tuple[list[int], dict[int, str]]:
        """Positions embedded, and reasons of those that failed; vectors are left in ``self._vectors``."""
        cached = self._catalog.cached_vectors(self._model.fingerprint, [h for _, h in rows])
        fresh = [i for i, (_, h) in enumerate(rows) if h not in cached]
        embedded = self._model.embed_documents([texts[i] for i in fresh])
        self._vectors = embedded.vectors
        self._fresh = fresh
        failures = {fresh[i]: reason for i, reason in embedded.failures.items()}
        return [i for i in fresh if i not in failures], failures

    def _store(self, rows: Sequence[tuple[int, str]], texts: Sequence[str], kind: Kind) -> None:
        good, failures = self._embed(rows, texts)
        places = [self._fresh.index(i) for i in good]
        self._writer.store([(rows[i][0], rows[i][1], kind) for i in good], self._vectors[places], self._model.fingerprint)
        if failures:
            self._writer.mark_failed([(rows[i][0], rows[i][1], reason) for i, reason in failures.items()])
        self._out.embedded += len(good)
        self._out.failed += len(failures)
        if len(good) + len(failures) < len(rows):
            self._out.reused += self._writer.fill_from_cache(self._model.fingerprint)

    def _cache(self, rows: Sequence[tuple[int, str]], texts: Sequence[str], kind: Kind) -> None:
        good, failures = self._embed(rows, texts)
        self._writer.cache([(rows[i][1], self._vectors[self._fresh.index(i)].tobytes()) for i in good], self._model.fingerprint)
        self._writer.note_failures([(rows[i][1], reason) for i, reason in failures.items()])
        self._out.embedded += len(good)
        self._out.failed += len(failures)
