"""Arguments as the service takes them: filters, and paths that stay inside the data folder."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.errors import InputError
from hybrid_rag.filters import Filters

if TYPE_CHECKING:
    from hybrid_rag.service import Service

FILTERS = {"folder": "folder", "glob": "glob", "kind": "kind", "tag": "tags", "since": "since", "until": "until", "recent": "recent"}


@dataclass(frozen=True, slots=True)
class Call:
    """What a tool works with beside its arguments. ``budget``: tokens of the result; ``stopped``: the client has cancelled."""

    service: Service
    budget: int
    stopped: Callable[[], bool] = lambda: False

    @property
    def root(self) -> Path:
        return self.service.config.data.directory


def filters(given: dict[str, Any], root: Path) -> Filters | None:
    """The filters among the arguments; None when there are none, so that the configuration's apply. Raises InputError."""
    values = {name: given[key] for key, name in FILTERS.items() if given.get(key)}
    if "folder" in values:
        values["folder"] = inside(values["folder"], root)
    return Filters.parse(**values) if values else None


def inside(path: str, root: Path) -> str:
    """A path as documents are named: relative to the data folder, "/" between its parts. Raises InputError when it leads out."""
    if "\0" in path:
        raise InputError("A path cannot hold a NUL character.", "list_documents shows the paths.")
    plain = unicodedata.normalize("NFC", path.strip().replace("\\", "/") if os.sep == "\\" else path.strip())
    root_path = unicodedata.normalize("NFC", str(root))
    whole = os.path.normpath(plain if os.path.isabs(plain) else os.path.join(root_path, plain))
    if whole != root_path and not whole.startswith(os.path.join(root_path, "")):
        raise InputError(f"{path!r} is outside of the data folder.", f"Give a path below {root}, as list_documents shows it.")
    return os.path.relpath(whole, root_path).replace(os.sep, "/")


def real(path: str, root: Path) -> Path:
    """A file or folder of the data folder, links followed. Raises InputError when it leads out, or is not there and never was."""
    found = root / inside(path, root)
    try:
        target, base = found.resolve(), root.resolve()
    except (OSError, RuntimeError) as error:
        raise InputError(f"{path!r} cannot be followed: {error}.", "Give another path.") from error
    if target != base and base not in target.parents:
        raise InputError(f"{path!r} leads out of the data folder through a link.", f"Give a path below {root}.")
    return found
