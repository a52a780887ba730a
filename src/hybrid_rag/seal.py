"""Was a folder touched since its writer left it? A seal beside the folder holds names, sizes and times of its files.

A folder with an unbroken seal is not looked at further; a broken one is a reason to look, not yet a damage.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

Counts = Callable[[Path], bool]


def all_files(path: Path) -> bool:
    return True


def manifest(folder: Path, counts: Counts = all_files) -> str:
    """A hash of names, sizes and times of all files that count, lock files left out: equal as long as nobody has touched them."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()) if folder.exists() else ():
        if path.suffix != ".lock" and counts(path):
            stat = path.stat()
            digest.update(f"{path.relative_to(folder)}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def seal(folder: Path, counts: Counts = all_files) -> None:
    """Note the present state of a folder. Raises OSError."""
    target = seal_path(folder)
    fresh = target.with_name(f"{target.name}.{os.getpid()}-{threading.get_ident()}")
    fresh.write_text(manifest(folder, counts), encoding="utf-8")
    os.replace(fresh, target)


def sealed(folder: Path, counts: Counts = all_files) -> bool:
    """True when nobody has touched the folder since it was sealed."""
    with contextlib.suppress(OSError):
        return seal_path(folder).read_text(encoding="utf-8") == manifest(folder, counts)
    return False  # no seal, or a file that went away meanwhile


def seal_path(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.seal")
