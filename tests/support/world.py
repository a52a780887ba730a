"""A data folder with its index, as tests of the store need them."""

from __future__ import annotations

from pathlib import Path

from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.maintenance import verify
from hybrid_rag.records import IndexReport
from tests.support.embedders import HashEmbedder


class World:
    """A data folder, an index directory, and an embedder that counts."""

    def __init__(self, tmp_path: Path) -> None:
        self.root, self.directory = tmp_path / "data", tmp_path / "index"
        self.root.mkdir()
        self.embedder = HashEmbedder()
        self.index: Index | None = None

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def open(self, **options) -> Index:
        if self.index is not None:
            self.index.close()
        self.index = Index(IndexOptions(self.directory, **options), create=True)
        return self.index

    def run(self, *, paths=None, verify=False, on_change="rebuild", cancel=None, embedder=None, **options) -> IndexReport:
        index = self.open(**options)
        wanted = IngestOptions(self.root, workers=1, verify=verify, paths=paths, on_change=on_change)
        return ingest(index, wanted, embedder=lambda: embedder or self.embedder, cancel=cancel)

    def found(self, words: str) -> list[str]:
        index = self.index or self.open()
        index.refresh()
        hits = index.lexical.search(index.analyzer.query(words), k=10)
        stored = index.catalog.chunks([n for n, _ in hits])
        return [stored[n].chunk.source for n, _ in hits if n in stored]

    def check(self) -> None:
        assert self.index is not None
        assert verify(self.index).problems == ()
