"""Find the files of a folder: what to read, and what was left out and why. Links are never followed out."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid_rag.errors import DataError, InputError
from hybrid_rag.loading import supported_suffixes
from hybrid_rag.records import SkippedPath

IGNORE_FILE = ".hybridragignore"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file to read. ``source``: its path below the data folder, "/" separated, NFC."""

    source: str
    path: Path
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Scan:
    """Files in order of their source, what was skipped with the reason, and folders that could not be listed."""

    files: tuple[FoundFile, ...]
    skipped: tuple[SkippedPath, ...]
    unreadable: tuple[str, ...] = ()  # folders ("a/b/"): nothing is known of what is in them


def scan(root: Path, *, exclude: Sequence[str] = (), loaders: Mapping[str, str] | None = None, below: Iterable[Path] | None = None) -> Scan:
    """Walk ``root``, or only the parts ``below`` it. Raises DataError when the folder is missing or cannot be listed."""
    if not root.is_dir():
        raise DataError(f"The data folder {root} does not exist or is no folder.", "Set data.directory, or mount the drive it is on.")
    if not os.access(root, os.R_OK | os.X_OK):
        raise DataError(f"The data folder {root} cannot be read.", "Check its permissions.")
    return _Walk(root, exclude, supported_suffixes(loaders)).run(below)


def source_of(root: Path, path: Path) -> str:
    """The source name of a path below the data folder. Raises InputError when it lies outside."""
    absolute = path if path.is_absolute() else (root / path if (root / path).exists() or not path.exists() else path.absolute())
    try:
        relative = Path(os.path.normpath(absolute)).relative_to(root)
    except ValueError:
        raise InputError(f"{path} is not inside the data folder {root}.", "Give a path below it.") from None
    return unicodedata.normalize("NFC", _decodable(relative.as_posix()))


def file_below(root: Path, source: str) -> Path:
    """The file that a source names, the inverse of :func:`source_of`. Raises InputError when it is gone or lies outside ``root``."""
    for form in (source, unicodedata.normalize("NFD", source)):
        path = root / form
        if path.is_file() and path.resolve().is_relative_to(root.resolve()):
            return path
    raise InputError(f"The file {source} is not in the data folder any more.", "Run `hybrid-rag index`.")


def _decodable(name: str) -> str:
    """A name whose bytes are not UTF-8 (an old archive unpacked) read as Windows-1252."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return os.fsencode(name).decode("cp1252", "replace")
    return name


class _Walk:
    def __init__(self, root: Path, exclude: Sequence[str], suffixes: frozenset[str]) -> None:
        self._root, self._suffixes = root, suffixes
        self._files: dict[str, FoundFile] = {}
        self._skipped: list[SkippedPath] = []
        self._unreadable: list[str] = []
        self._excluded = _patterns(exclude)
        self._rules: dict[Path, Any] = {}  # folder -> patterns of its ignore file, or None

    def run(self, below: Iterable[Path] | None) -> Scan:
        if below is None:
            self._folder(self._root)
        for part in below or ():
            path = self._root / source_of(self._root, part)
            if path.is_dir() and not path.is_symlink():
                self._folder(path)
            elif path.exists() or path.is_symlink():
                self._entry(path)
        files = tuple(self._files[source] for source in sorted(self._files))
        return Scan(files, tuple(sorted(self._skipped, key=lambda s: s.path)), tuple(sorted(self._unreadable)))

    def _folder(self, folder: Path) -> None:
        stack = [folder]
        while stack:
            here = stack.pop()
            try:
                with os.scandir(here) as entries:
                    found = sorted(entries, key=lambda e: e.name)
            except OSError as error:
                self._skip(here, f"the folder cannot be listed: {error.strerror}")
                self._unreadable.append("" if here == self._root else source_of(self._root, here) + "/")
                continue
            for entry in found:
                path = Path(entry.path)
                if entry.is_dir(follow_symlinks=False) and not self._left_out(path, folder=True):
                    stack.append(path)
                elif not entry.is_dir(follow_symlinks=False):
                    self._entry(path)

    def _entry(self, path: Path) -> None:
        if self._left_out(path, folder=False):
            return
        try:
            if path.is_symlink():
                self._skip_link(path)
                return
            stat = path.stat()
        except OSError as error:
            self._skip(path, f"it cannot be reached: {error.strerror}")
            return
        if not path.is_file():
            self._skip(path, "it is no regular file")
        elif path.suffix.lower() not in self._suffixes:
            self._skip(path, f"files of the kind {path.suffix.lower() or '(no suffix)'} are not read")
        else:
            source = source_of(self._root, path)
            if source in self._files:
                self._skip(path, "another file has the same name in another Unicode form")
                return
            self._files[source] = FoundFile(source, path, stat.st_size, stat.st_mtime_ns)

    def _skip_link(self, path: Path) -> None:
        """Links are not followed: what they lead to inside the folder is read at its own place."""
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):
            self._skip(path, "it is a broken or circular link")
            return
        inside = target.is_relative_to(self._root.resolve())
        self._skip(path, "it is a link to another place of the folder" if inside else "it is a link out of the data folder")

    def _left_out(self, path: Path, *, folder: bool) -> bool:
        name = path.name
        if name == IGNORE_FILE:
            return True
        if name.startswith((".", "~$")):
            self._skip(path, "it is an Office lock file" if name.startswith("~$") else "it is hidden")
            return True
        if self._excluded is not None and _matches(self._excluded, self._root, path, folder):
            self._skip(path, "data.exclude leaves it out")
            return True
        if self._ignored(path, folder):
            self._skip(path, f"{IGNORE_FILE} leaves it out")
            return True
        return False

    def _ignored(self, path: Path, folder: bool) -> bool:
        """By the ignore files of the folders above the path; the nearest that says something decides."""
        for above in path.parents:
            if above not in self._rules:
                self._rules[above] = _patterns(_lines(above / IGNORE_FILE))
            verdict = _matches(self._rules[above], above, path, folder) if self._rules[above] is not None else None
            if verdict is not None:
                return verdict
            if above == self._root:
                return False
        return False

    def _skip(self, path: Path, reason: str) -> None:
        self._skipped.append(SkippedPath(source_of(self._root, path), reason))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError:
        return []


def _patterns(lines: Sequence[str]) -> Any:
    """Compiled gitignore patterns, or None when there are none."""
    lines = [unicodedata.normalize("NFC", line) for line in lines if line.strip() and not line.startswith("#")]
    if not lines:
        return None
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise InputError(f"A pattern of files to leave out is not valid: {error}", "Correct data.exclude or the ignore file.") from error


def _matches(patterns: Any, base: Path, path: Path, folder: bool) -> bool | None:
    """True: left out, False: taken back by a ``!`` pattern, None: no pattern speaks of it."""
    return patterns.check_file(source_of(base, path) + ("/" if folder else "")).include
