"""What a writer does first: remove what killed runs have left, and mend legs that are not what the catalog says."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from hybrid_rag.errors import IndexDamagedError, IndexStorageError
from hybrid_rag.index import INCOMING_FOLDER, VECTOR_FOLDER, IndexOptions
from hybrid_rag.probe import probe
from hybrid_rag.records import KINDS
from hybrid_rag.seal import sealed
from hybrid_rag.storage import storage_error
from hybrid_rag.tantivy_files import damage
from hybrid_rag.vectors_chroma import untouched

if TYPE_CHECKING:
    from pathlib import Path

    from hybrid_rag.writer import Writer


def mend(writer: Writer) -> None:
    """Bring both legs to what the catalog says, when there is a reason to think that they differ.

    Reasons: the last writer did not end cleanly, files were touched since, or the configuration names another engine or place.
    """
    _sweep(writer)
    options, unclean = writer.index.options, writer.catalog.setting("dirty") == "1"
    if options.lexical_engine == "tantivy" and (unclean or _moved(writer, "lexical_engine", "tantivy") or not sealed(writer.words)):
        _mend_lexical(writer)
    if (
        writer.index.fingerprint
        and options.vector_mode != "exact"
        and (unclean or _moved(writer, "vector_place", place(options)) or _unsealed(writer))
    ):
        with writer.without_server("vector_place", ""):
            _mend_vectors(writer)
    writer.catalog.set_setting("lexical_engine", options.lexical_engine)
    if not writer.server_gone:
        writer.catalog.set_setting("vector_place", place(options))


def place(options: IndexOptions) -> str:
    """Where the vector index is; when the configuration names another place, that one is brought up to the catalog."""
    return f"{options.vector_mode} {options.prefix}" + (f" {options.host}:{options.port}" if options.vector_mode == "server" else "")


def _embedded(writer: Writer) -> bool:
    return writer.index.options.vector_mode == "embedded"


def _sweep(writer: Writer) -> None:
    """Remove what killed runs have begun, and what replaced documents have left: table files, half-made folders."""
    with writer.catalog.transaction() as db:
        db.execute("DELETE FROM chunks WHERE document IN (SELECT number FROM documents WHERE ready = 0)")
        db.execute("DELETE FROM documents WHERE ready = 0")
    folder = writer.index.tables_directory
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(error, str(folder)) or error from error
    kept = {file for _, file in writer.catalog.tables()}
    for path in folder.iterdir():
        if path.is_dir():  # in which a killed reader was building a table
            shutil.rmtree(path, ignore_errors=True)
        elif path.name not in kept:
            path.unlink(missing_ok=True)
    for half in (writer.half("new"), writer.half("old"), writer.index.directory / INCOMING_FOLDER):
        shutil.rmtree(half, ignore_errors=True)


def _moved(writer: Writer, key: str, now: str) -> bool:
    return writer.catalog.setting(key, now) != now


def _unsealed(writer: Writer) -> bool:
    return _embedded(writer) and not untouched(writer.index.directory / VECTOR_FOLDER)


def _mend_lexical(writer: Writer) -> None:
    wanted = set(writer.catalog.chunk_numbers().tolist())
    if not wanted and not writer.words.exists():
        return
    problem = damage(writer.words) if writer.words.exists() else "its folder is missing"
    if not problem:
        problem = _differs(writer, wanted)
    if problem:
        writer.say(f"The keyword index was damaged ({problem[:120]}) and is made again from the catalog.")
        writer.rebuild_lexical()


def _differs(writer: Writer, wanted: set[int]) -> str:
    pending = {r[0] for r in writer.catalog.rows("SELECT number FROM outbox WHERE leg = 'lexical'")}
    try:
        found = writer.lexical.numbers()
    except IndexStorageError:
        raise
    except BaseException as error:  # tantivy panics on some damage, which is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return str(error)
    return "" if found - pending == wanted - pending else "it did not match the catalog"


def _mend_vectors(writer: Writer) -> None:
    fingerprint = writer.index.fingerprint
    folder = writer.index.directory / VECTOR_FOLDER
    problem = ""
    if _embedded(writer):
        writer.index.close_legs()
        writer.forget_lexical()
        wanted = writer.catalog.value("SELECT 1 FROM chunks WHERE vector = 1 LIMIT 1")
        if folder.exists():
            problem = _probe(writer, folder, fingerprint)
        elif wanted:
            problem = "its folder is missing"
    try:
        if not problem:
            _align_vectors(writer, fingerprint)
    except IndexDamagedError as error:
        problem = error.message
    if problem:
        writer.say(f"The vector index was damaged ({problem[:120]}) and is made again from the catalog; nothing is embedded again.")
        writer.rebuild_vectors()


def _probe(writer: Writer, folder: Path, fingerprint: str) -> str:
    return probe(folder, prefix=writer.index.options.prefix, fingerprint=fingerprint, dimensions=writer.catalog.dimensions(fingerprint))


def _align_vectors(writer: Writer, fingerprint: str) -> None:
    """Make the collections hold exactly the chunks that the catalog says have vectors."""
    vectors = writer.vectors(fingerprint)
    for kind in KINDS:
        there = vectors.numbers(kind)
        marked = set(writer.catalog.chunk_numbers(kind, with_vectors=True).tolist())
        if surplus := sorted(there - marked):
            vectors.delete(kind, surplus)
        if missing := sorted(marked - there):
            writer.say(f"{len(missing)} vectors were missing from the vector index and are put back from the catalog.")
            writer.mark(missing, 0)
            writer.fill_from_cache(fingerprint)
