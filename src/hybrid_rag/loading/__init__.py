"""Read a file into a :class:`~hybrid_rag.records.Document`: one reader a kind, chosen by what the file really is.

Everything is untrusted: sizes are limited here, time by the worker process that calls :func:`read`.
"""

from __future__ import annotations

import importlib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hybrid_rag.digest import file_digest
from hybrid_rag.errors import HybridRagError, ReadError
from hybrid_rag.loading.body import Body
from hybrid_rag.loading.sniff import sniff
from hybrid_rag.records import MB, Document, Notice, megabytes

FORMATS: dict[str, str] = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv",
    ".md": "md", ".markdown": "md", ".mdown": "md", ".mkd": "md",
    ".pdf": "pdf", ".docx": "docx",
    ".txt": "txt", ".text": "txt", ".log": "txt",
}  # fmt: skip
SHORTEST_JUDGED = 200  # characters from which the language of a text is named


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may cost. Seconds and memory are enforced by the process that reads (see workers)."""

    max_bytes: int = 512 * MB
    max_pages: int = 5000
    max_unpacked_bytes: int = 512 * MB
    max_seconds: float = 120.0
    ocr: bool = False
    max_memory_bytes: int = 1024 * MB
    ocr_languages: str = "eng"  # as tesseract names them, joined by "+"


def supported_suffixes(loaders: Mapping[str, str] | None = None) -> frozenset[str]:
    """Lower-case suffixes, with dot, that can be read; ``loaders`` adds plug-ins."""
    return frozenset(FORMATS) | {suffix.lower() for suffix in loaders or {}}


def read(path: Path, *, source: str, limits: Limits, loaders: Mapping[str, str] | None = None) -> Document:
    """Read one file. Raises ReadError with reason and remedy; warnings are in ``Document.notices``."""
    suffix = path.suffix.lower()
    try:
        stat = path.stat()
        if stat.st_size > limits.max_bytes:
            raise ReadError(
                f"The file has {megabytes(stat.st_size)} MB, more than the limit of {megabytes(limits.max_bytes)} MB.",
                "Raise document_processing.max_file_mb, or split the file.",
            )
        sha256 = file_digest(path)
        plugin = {key.lower(): value for key, value in (loaders or {}).items()}.get(suffix)
        form = suffix[1:] if plugin else FORMATS.get(suffix)
        if form is None:
            raise ReadError(f"Files of the kind {suffix or '(no suffix)'} are not read.", "Add a loader for it under `loaders`.")
        body, form, notices = _plugin(path, plugin, form) if plugin else _content(path, form, limits)
    except OSError as error:
        raise ReadError(f"The file cannot be opened: {error.strerror or error}.", "Check its permissions.") from error
    title = body.title or path.stem.replace("_", " ").replace("-", " ").strip()
    return Document(
        source=source,
        kind="table" if body.rows is not None else "text",
        format=form,
        title=unicodedata.normalize("NFC", title)[:300],
        size=stat.st_size,
        sha256=sha256,
        modified=datetime.fromtimestamp(max(0.0, min(stat.st_mtime, 253_402_000_000)), UTC),
        text=body.text,
        blocks=body.blocks,
        rows=body.rows,
        encoding=body.encoding,
        dialect=body.dialect,
        language=body.language or _language(body.text),
        date=body.date,
        tags=body.tags,
        pages=body.pages,
        metadata=body.metadata,
        notices=notices,
    )


def _language(text: str) -> str | None:
    """The language of a text, judged by its beginning; None when that is too short to say."""
    if len(text) < SHORTEST_JUDGED:
        return None
    from hybrid_rag.analysis import detect_language

    return detect_language(text[:4000])


def _content(path: Path, form: str, limits: Limits) -> tuple[Body, str, tuple[Notice, ...]]:
    """What the reader of the real format makes of the file, that format, and all notices."""
    form, notice = sniff(path, form)
    body = _reader(form)(path, limits)
    notices = ((notice,) if notice else ()) + body.notices
    if body.rows is None and not body.text and not any(n.partial for n in notices):
        notices += (Notice("The file holds no text."),)
    return body, form, notices


def _reader(form: str) -> Callable[[Path, Limits], Body]:
    """The reader of a format, imported only now."""
    module = {"csv": "tabular", "tsv": "tabular", "md": "markdown", "pdf": "pdf", "docx": "docx", "txt": "plain"}[form]
    return importlib.import_module(f"hybrid_rag.loading.{module}").read


def load_class(dotted: str) -> Any:
    """The class that ``module:Class`` names. Raises ReadError."""
    module, sign, name = dotted.partition(":")
    if not sign:
        raise ReadError(f"The loader {dotted!r} is not of the form module:Class.", "Correct it under `loaders`.")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ReadError(
            f"The loader {dotted!r} cannot be imported: {error}.", f"Run `pip install {module.split('.')[0].replace('_', '-')}`."
        ) from error


def _plugin(path: Path, dotted: str, form: str) -> tuple[Body, str, tuple[Notice, ...]]:
    """Read through a LangChain loader; every document it yields becomes a block."""
    from hybrid_rag.loading.body import BodyBuilder

    loader = load_class(dotted)(str(path))
    builder = BodyBuilder()
    try:
        for part in loader.lazy_load():
            page = part.metadata.get("page")
            builder.add(str(part.page_content), page=int(page) + 1 if isinstance(page, int) else None)
    except HybridRagError:
        raise
    except Exception as error:  # a plug-in may raise anything; the file is reported with its words
        raise ReadError(f"The loader {dotted} failed: {type(error).__name__}: {error}") from error
    body = builder.body()
    return body, form, body.notices
