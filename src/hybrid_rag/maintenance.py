"""Care of an index directory: verify, back up, restore, reset, rebuild."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sqlite3
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from hybrid_rag.catalog_file import BUSY_SECONDS, CatalogFile
from hybrid_rag.catalog_schema import SCHEMA_VERSION
from hybrid_rag.errors import HybridRagError, IndexDamagedError, IndexEmptyError, IndexVersionError
from hybrid_rag.index import CATALOG_FILE, INCOMING_FOLDER, LEXICAL_FOLDER, TABLE_FOLDER, VECTOR_FOLDER, Index
from hybrid_rag.lexical import TantivyIndex
from hybrid_rag.lock import write_lock
from hybrid_rag.records import KINDS
from hybrid_rag.storage import storage_error
from hybrid_rag.tantivy_files import damage
from hybrid_rag.vectors import VectorIndex
from hybrid_rag.vectors_chroma import wipe

Part = Literal["lexical", "vectors", "all"]
log = logging.getLogger(__name__)
JOURNALS = (CATALOG_FILE + "-wal", CATALOG_FILE + "-shm")
LEGS = (LEXICAL_FOLDER, VECTOR_FOLDER)
OWN = (
    CATALOG_FILE,
    *JOURNALS,
    *LEGS,
    *(f"{leg}.seal" for leg in LEGS),
    f"{LEXICAL_FOLDER}.new",
    f"{LEXICAL_FOLDER}.old",
    INCOMING_FOLDER,
    TABLE_FOLDER,
)
SAMPLE = 50  # vectors of a kind that are compared with the catalog's
SAME = 0.999  # cosine of a vector with itself, as stored
BACKUP_TRIES = 5  # a run that replaces tables meanwhile makes one fail


@dataclass(frozen=True, slots=True)
class Verification:
    """How the legs compare to the catalog; ``problems`` is empty when all is well."""

    ok: bool
    problems: tuple[str, ...]
    counts: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def verify(index: Index) -> Verification:
    """Hold keyword index, vectors and table files against the catalog. Changes nothing."""
    catalog = index.catalog
    problems: list[str] = []
    damage = catalog.value("PRAGMA quick_check")
    if damage != "ok":
        problems.append(f"The catalog is damaged: {damage}.")
    wanted = set(catalog.chunk_numbers().tolist())
    counts: dict[str, Any] = {"chunks": len(wanted)}
    found = _keywords(index, problems)
    counts["keyword"] = len(found)
    problems += _compare("keyword index", found, wanted)
    vectors = index.open_vectors(index.fingerprint) if index.fingerprint and index.options.vector_mode != "exact" else None
    try:
        problems += _vector_problems(index, vectors, counts)
    except IndexDamagedError as error:
        problems.append(error.message)
    for card, file in catalog.tables():
        if not (index.tables_directory / file).is_file():
            problems.append(f"The columnar file of {card.source} is missing.")
    return Verification(not problems, tuple(problems), counts)


def _keywords(index: Index, problems: list[str]) -> set[int]:
    """The chunk numbers in the keyword index; what is wrong with its files is added to the problems."""
    folder = index.directory / LEXICAL_FOLDER
    if index.options.lexical_engine != "tantivy":
        return index.lexical.numbers()
    if not folder.exists():
        return set()
    try:
        if problem := damage(folder):
            raise IndexDamagedError(f"The keyword index is damaged: {problem}.")
        opened = TantivyIndex(folder, index.analyzer, create=False)  # not the index's own, which would be mended
        found = opened.numbers()
        opened.close()
        return found
    except IndexDamagedError as error:
        problems.append(error.message)
        return set()


def _vector_problems(index: Index, vectors: VectorIndex | None, counts: dict[str, Any]) -> list[str]:
    """Compare numbers, and a sample of the vectors, with the catalog."""
    if vectors is None:
        return []
    problems = []
    for kind in KINDS:
        marked = index.catalog.chunk_numbers(kind, with_vectors=True)
        there = vectors.numbers(kind)
        counts[f"vectors_{kind}"] = len(there)
        problems += _compare(f"vector index ({kind})", there, set(marked.tolist()))
        looked_at = marked[:: max(1, len(marked) // SAMPLE)]
        wanted = dict(zip(*index.catalog.vectors(index.fingerprint, kind, numbers=looked_at), strict=True))
        held = vectors.sample(kind, looked_at.tolist())  # type: ignore[attr-defined]
        if wrong := sum(float(vector @ wanted[n]) < SAME for n, vector in held if n in wanted):
            problems.append(f"{wrong} of {len(held)} vectors that were looked at in the vector index ({kind}) are not the catalog's.")
    vectors.close()
    return problems


def _compare(name: str, found: set[int], wanted: set[int]) -> list[str]:
    out = []
    if missing := len(wanted - found):
        out.append(f"The {name} lacks {missing} chunks.")
    if surplus := len(found - wanted):
        out.append(f"The {name} holds {surplus} chunks that are not in the catalog.")
    return out


def rebuild(index: Index, part: Part) -> None:
    """Make legs again from the catalog; nothing is embedded again."""
    with index.writer() as writer:
        if part in ("lexical", "all"):
            writer.rebuild_lexical()
        if part in ("vectors", "all"):
            writer.rebuild_vectors()


def backup(index: Index, destination: Path) -> None:
    """Copy the index to a new folder while others read and write: the catalog by SQLite's own backup, tables beside it.

    The legs are not copied: they are made again from the catalog when the copy is opened. Raises HybridRagError and
    IndexStorageError; an unfinished copy is removed.
    """
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise HybridRagError(f"{destination} exists and is not an empty folder.", "Name a new folder.")
    try:
        for _ in range(BACKUP_TRIES):
            destination.mkdir(parents=True, exist_ok=True)
            if _copy(index, destination):
                return
            shutil.rmtree(destination)
    except (OSError, sqlite3.Error) as error:
        shutil.rmtree(destination, ignore_errors=True)
        problem = HybridRagError(f"The backup to {destination} failed: {error}.", "Name a folder that can be written, with space for it.")
        raise storage_error(error, str(destination)) or problem from error
    raise HybridRagError("The index changed again and again while it was copied.", "Run the backup when no other run is under way.")


def _copy(index: Index, destination: Path) -> bool:
    """One try; False when a table went away meanwhile."""
    target = sqlite3.connect(destination / CATALOG_FILE)
    try:
        index.catalog.connection().backup(target)
        target.execute("PRAGMA journal_mode=DELETE")  # one file, also for those who copy it further
        _mark_restored(target)
        files = [r[0] for r in target.execute("SELECT table_file FROM documents WHERE ready = 1 AND table_file IS NOT NULL")]
    finally:
        target.close()
    (destination / TABLE_FOLDER).mkdir(exist_ok=True)
    for file in files:
        try:
            shutil.copy2(index.tables_directory / file, destination / TABLE_FOLDER / file)
        except FileNotFoundError:
            return False
    return True


def _mark_restored(catalog: sqlite3.Connection) -> None:
    """Legs are to be held against it, and whoever has another index open must see that this is not the same one."""
    settings = [("dirty", "1"), ("incarnation", uuid.uuid4().hex)]
    catalog.executemany("INSERT INTO settings VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", settings)
    catalog.execute("DELETE FROM outbox")
    catalog.commit()


def restore(source: Path, directory: Path) -> None:
    """Replace the index in ``directory`` by a backup. The catalog is checked before anything is removed.

    The catalog changes in one transaction, so that a kill leaves the old or the new index, and open readers see the change.
    The legs follow when the index is next opened for writing.
    """
    if not (source / CATALOG_FILE).is_file():
        raise HybridRagError(f"{source} is no backup of an index.", "Name a folder made by `hybrid-rag backup`.")
    _check_backup(source)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with write_lock(directory):
            shutil.copytree(source / TABLE_FOLDER, directory / TABLE_FOLDER, dirs_exist_ok=True)
            incoming = directory / INCOMING_FOLDER
            shutil.rmtree(incoming, ignore_errors=True)
            incoming.mkdir()
            shutil.copyfile(source / CATALOG_FILE, incoming / CATALOG_FILE)
            CatalogFile(incoming / CATALOG_FILE).close()  # brings an older schema up to date
            _drop_legs(directory)
            _replace_catalog(incoming / CATALOG_FILE, directory / CATALOG_FILE)
            shutil.rmtree(incoming, ignore_errors=True)
    except OSError as error:
        raise storage_error(error, str(directory)) or HybridRagError(
            f"The restoring failed: {error}.", "The present index was left as it was."
        ) from error


def _drop_legs(directory: Path) -> None:
    """They hold numbers of another catalog's chunks."""
    for name in (LEXICAL_FOLDER, f"{LEXICAL_FOLDER}.seal", f"{VECTOR_FOLDER}.seal"):
        _remove(directory / name)
    wipe(directory / VECTOR_FOLDER)


def _check_backup(source: Path) -> None:
    """Raises HybridRagError for a damaged backup, IndexVersionError for one of another schema."""
    check = sqlite3.connect(f"{(source / CATALOG_FILE).absolute().as_uri()}?immutable=1", uri=True)
    try:
        damaged, version = check.execute("PRAGMA quick_check").fetchone()[0], check.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        damaged, version = str(error), 0
    finally:
        check.close()
    if damaged != "ok":
        raise HybridRagError(f"The backup in {source} is damaged: {damaged}.", "Use another one.")
    if version > SCHEMA_VERSION:
        raise IndexVersionError(
            f"The backup in {source} has schema version {version}; this program writes {SCHEMA_VERSION}.", "Use the newer program."
        )


def _replace_catalog(incoming: Path, target: Path) -> None:
    fresh = sqlite3.connect(incoming)
    try:
        _mark_restored(fresh)
        present = sqlite3.connect(target, timeout=BUSY_SECONDS)
        try:
            fresh.backup(present)
            present.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.DatabaseError:
            log.info("the present catalog cannot be written over; its file is replaced")
        finally:
            present.close()
    finally:
        fresh.close()
    for name in JOURNALS:
        (target.parent / name).unlink(missing_ok=True)
    os.replace(incoming, target)
    with contextlib.closing(sqlite3.connect(target)) as placed:
        placed.execute("PRAGMA journal_mode=WAL")


def reset(directory: Path) -> None:
    """Delete the index; nothing else in the directory is touched. Raises IndexEmptyError when there is none."""
    if not (directory / CATALOG_FILE).exists():
        raise IndexEmptyError(f"There is no index in {directory}.")
    with write_lock(directory):
        _clear(directory)


def _clear(directory: Path) -> None:
    for name in OWN:
        _remove(directory / name)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sizes(index: Index) -> dict[str, int]:
    """Bytes on disk by part."""
    parts = {"catalog": [index.directory / n for n in (CATALOG_FILE, *JOURNALS)], "keyword": [index.directory / LEXICAL_FOLDER],
             "vectors": [index.directory / VECTOR_FOLDER], "tables": [index.tables_directory]}  # fmt: skip
    return {name: sum(_bytes(path) for path in paths) for name, paths in parts.items()}


def _bytes(path: Path) -> int:
    if path.is_dir():
        return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    return path.stat().st_size if path.exists() else 0
