"""Care of an index directory: verify, back up, restore, reset, rebuild."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from hybrid_rag.errors import HybridRagError, IndexEmptyError
from hybrid_rag.index import CATALOG_FILE, LEXICAL_FOLDER, TABLE_FOLDER, VECTOR_FOLDER, Index
from hybrid_rag.lock import HOLDER_FILE, LOCK_FILE, write_lock
from hybrid_rag.records import KINDS

Part = Literal["lexical", "vectors", "all"]
OWN = (CATALOG_FILE, CATALOG_FILE + "-wal", CATALOG_FILE + "-shm", LEXICAL_FOLDER, VECTOR_FOLDER, TABLE_FOLDER)


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
    found = index.lexical.numbers()
    counts["keyword"] = len(found)
    problems += _compare("keyword index", found, wanted)
    vectors = index.open_vectors(index.fingerprint) if index.fingerprint and index.options.vector_mode != "exact" else None
    for kind in KINDS if vectors is not None else ():
        marked = set(catalog.chunk_numbers(kind, with_vectors=True).tolist())
        there = vectors.numbers(kind)  # type: ignore[union-attr]
        counts[f"vectors_{kind}"] = len(there)
        problems += _compare(f"vector index ({kind})", there, marked)
    if vectors is not None:
        vectors.close()
    for card, file in catalog.tables():
        if not (index.tables_directory / file).is_file():
            problems.append(f"The columnar file of {card.source} is missing.")
    return Verification(not problems, tuple(problems), counts)


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

    The legs are not copied: they are made again from the catalog when the copy is opened.
    """
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise HybridRagError(f"{destination} exists and is not an empty folder.", "Name a new folder.")
    destination.mkdir(parents=True, exist_ok=True)
    target = sqlite3.connect(destination / CATALOG_FILE)
    try:
        index.catalog.connection().backup(target)
        target.execute("INSERT INTO settings VALUES ('dirty', '1') ON CONFLICT (key) DO UPDATE SET value = '1'")
        target.execute("DELETE FROM outbox")
        target.commit()
        files = [r[0] for r in target.execute("SELECT table_file FROM documents WHERE ready = 1 AND table_file IS NOT NULL")]
    finally:
        target.close()
    (destination / TABLE_FOLDER).mkdir(exist_ok=True)
    for file in files:
        if not (index.tables_directory / file).exists():
            raise HybridRagError("The index changed while it was copied.", "Run the backup again.")
        shutil.copy2(index.tables_directory / file, destination / TABLE_FOLDER / file)


def restore(source: Path, directory: Path) -> None:
    """Replace the index in ``directory`` by a backup. The catalog is checked before anything is removed."""
    if not (source / CATALOG_FILE).is_file():
        raise HybridRagError(f"{source} is no backup of an index.", "Name a folder made by `hybrid-rag backup`.")
    check = sqlite3.connect(f"file:{source / CATALOG_FILE}?mode=ro", uri=True)
    try:
        damage = check.execute("PRAGMA quick_check").fetchone()[0]
    except sqlite3.DatabaseError as error:
        damage = str(error)
    finally:
        check.close()
    if damage != "ok":
        raise HybridRagError(f"The backup in {source} is damaged: {damage}.", "Use another one.")
    directory.mkdir(parents=True, exist_ok=True)
    with write_lock(directory):
        _clear(directory)
        shutil.copytree(source, directory, dirs_exist_ok=True, ignore=shutil.ignore_patterns(LOCK_FILE, HOLDER_FILE))


def reset(directory: Path) -> None:
    """Delete the index; nothing else in the directory is touched. Raises IndexEmptyError when there is none."""
    if not (directory / CATALOG_FILE).exists():
        raise IndexEmptyError(f"There is no index in {directory}.")
    with write_lock(directory):
        _clear(directory)


def _clear(directory: Path) -> None:
    for name in OWN:
        path = directory / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def sizes(index: Index) -> dict[str, int]:
    """Bytes on disk by part."""
    parts = {"catalog": [index.directory / n for n in OWN[:3]], "keyword": [index.directory / LEXICAL_FOLDER],
             "vectors": [index.directory / VECTOR_FOLDER], "tables": [index.tables_directory]}  # fmt: skip
    return {name: sum(_bytes(path) for path in paths) for name, paths in parts.items()}


def _bytes(path: Path) -> int:
    if path.is_dir():
        return sum(p.stat().st_size for p in path.rglob("*") if p.is_file())
    return path.stat().st_size if path.exists() else 0
