"""The options of the store that a configuration asks for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hybrid_rag.chunking import ChunkOptions
from hybrid_rag.config import Config
from hybrid_rag.index import IndexOptions
from hybrid_rag.ingest import IngestOptions
from hybrid_rag.loading import Limits
from hybrid_rag.workers import ReadOptions

MB = 1 << 20


def ingest_options(config: Config, paths: Iterable[str | Path] | None, *, verify: bool) -> IngestOptions:
    """What a run looks at and how. ``paths`` None: all of the data folder."""
    return IngestOptions(
        root=config.data.directory,
        exclude=config.data.exclude,
        read=read_options(config),
        workers=config.document_processing.workers,
        verify=verify,
        paths=tuple(Path(p) for p in paths) if paths is not None else None,
        on_change=config.embedding.on_change,
    )


def index_options(config: Config, *, cold: bool) -> IndexOptions:
    """Where the index is and what it is made of."""
    v, r = config.vector_store, config.retrieval
    return IndexOptions(
        directory=v.persist_directory, lexical_engine=r.lexical_engine, language=r.language, vector_mode=v.mode, host=v.host,
        port=v.port, ssl=v.ssl, token=v.token, prefix=v.collection_prefix, cold=cold,
    )  # fmt: skip


def read_options(config: Config) -> ReadOptions:
    """How files are read and cut."""
    d = config.document_processing
    limits = Limits(
        max_bytes=int(d.max_file_mb * MB),
        max_pages=d.max_pages,
        max_unpacked_bytes=int(d.max_unpacked_mb * MB),
        max_seconds=d.max_seconds,
        max_memory_bytes=int(d.max_memory_mb * MB),
        ocr=d.ocr,
        ocr_languages=d.ocr_languages,
    )
    return ReadOptions(limits, ChunkOptions(d.text_chunk_size, d.text_chunk_overlap, d.csv_chunk_size), dict(config.loaders))
