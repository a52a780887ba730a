"""The content hash of a file: what tells a changed document, a renamed one and an altered model."""

from __future__ import annotations

import hashlib
from pathlib import Path


def file_digest(path: Path) -> str:
    """SHA-256 of a file, hex; the file is never held in memory as a whole. Raises OSError."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
