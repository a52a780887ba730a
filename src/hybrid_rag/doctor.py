"""Examine the set-up: what is wrong, and the command that mends it. Changes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from hybrid_rag.errors import HybridRagError, IndexEmptyError, OllamaModelMissingError

if TYPE_CHECKING:
    from hybrid_rag.config import Loaded

FREE_SPACE_WANTED = 1 << 30  # bytes


@dataclass(frozen=True, slots=True)
class Finding:
    """One examined thing. ``level``: "ok", "note" (works, but could be better) or "error"."""

    name: str
    level: Literal["ok", "note", "error"]
    message: str
    remedy: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def examine(loaded: Loaded) -> list[Finding]:
    """Examine everything; a check that fails is a finding, the others go on."""
    checks: tuple[tuple[str, Callable[[Loaded], Iterator[Finding]]], ...] = (
        ("configuration", _configuration),
        ("documents", _documents),
        ("models", _models),
        ("index", _index),
        ("ollama", _ollama),
        ("ocr", _ocr),
        ("disk", _disk),
    )
    found: list[Finding] = []
    for name, check in checks:
        try:
            found.extend(check(loaded))
        except HybridRagError as error:
            found.append(Finding(name, "error", error.message, error.remedy))
    return found


def _configuration(loaded: Loaded) -> Iterator[Finding]:
    where = loaded.path or "built-in defaults (no configuration file found)"
    yield Finding("configuration", "ok", f"Read from {where}.")


def _documents(loaded: Loaded) -> Iterator[Finding]:
    from hybrid_rag.loading.scan import scan

    folder = loaded.config.data.directory
    found = scan(folder, exclude=loaded.config.data.exclude, loaders=loaded.config.loaders)
    if found.files:
        yield Finding("documents", "ok", f"{len(found.files)} files to index in {folder}.")
    else:
        yield Finding("documents", "error", f"No documents found in {folder}.", "Put files there, or set data.directory.")


def _models(loaded: Loaded) -> Iterator[Finding]:
    from hybrid_rag.models import bundled

    for name in ("bge_small_en", "reranker_en"):
        bundled(name)
        yield Finding("models", "ok", f"The bundled model {name} is present and unaltered.")


def _index(loaded: Loaded) -> Iterator[Finding]:
    from hybrid_rag.service import open_service

    with open_service(loaded) as service:
        if holder := service.lock_holder():
            yield Finding("index", "note", f"Another process is writing: {holder}.", "Searches go on; indexing has to wait for it.")
        try:
            stats = service.stats()
        except IndexEmptyError as error:
            yield Finding("index", "error", error.message, error.remedy)
            return
        yield Finding("index", "ok", f"{stats.documents} documents, {stats.chunks} chunks in {stats.persist_directory}.")
        check = service.verify()
        if not check.ok:
            for problem in check.problems:
                yield Finding("index", "error", problem, "Run `hybrid-rag rebuild`.")
        if stats.vector_share < 1:
            yield Finding("index", "note", f"{stats.vector_share:.0%} of the chunks have vectors.", "Run `hybrid-rag index`.")
        if stats.not_read or stats.partly_read:
            message = f"{stats.not_read} files could not be read, {stats.partly_read} only in part."
            yield Finding("index", "note", message, "Run `hybrid-rag report`.")


def _ollama(loaded: Loaded) -> Iterator[Finding]:
    from hybrid_rag.llm import OllamaChat

    config = loaded.config
    wanted: dict[str, bool] = {}  # model -> must be there
    if config.llm.provider != "none":
        wanted[config.ollama.llm_model] = config.llm.provider == "ollama"
    if config.embedding.provider in ("auto", "ollama"):
        wanted[config.ollama.embedding_model] = config.embedding.provider == "ollama"
    for model, required in wanted.items():
        chat = OllamaChat(base_url=config.ollama.base_url, model=model, connect_seconds=config.ollama.connect_seconds)
        try:
            chat.check()
        except OllamaModelMissingError as error:
            yield Finding("ollama", "error" if required else "note", error.message, error.remedy)
        except HybridRagError as error:
            yield Finding("ollama", "error" if required else "note", f"{error.message} {_without(config, required)}".strip(), error.remedy)
            return
        else:
            yield Finding("ollama", "ok", f"{config.ollama.base_url} has {model}.")


def _without(config: Any, required: bool) -> str:
    return "" if required else "Answers are quotes from the documents, and vectors come from the bundled model."


def _ocr(loaded: Loaded) -> Iterator[Finding]:
    if not loaded.config.document_processing.ocr:
        return
    tool = shutil.which("ocrmypdf") or shutil.which("tesseract")
    if tool:
        yield Finding("ocr", "ok", f"Pages without text are read with {tool}.")
    else:
        yield Finding("ocr", "error", "document_processing.ocr is on, but there is neither ocrmypdf nor tesseract.", "Install one of them.")


def _disk(loaded: Loaded) -> Iterator[Finding]:
    folder = loaded.config.vector_store.persist_directory
    existing = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(existing).free
    level: Literal["ok", "note"] = "ok" if free > FREE_SPACE_WANTED else "note"
    yield Finding("disk", level, f"{free / (1 << 30):.1f} GiB free for the index at {existing}.")
