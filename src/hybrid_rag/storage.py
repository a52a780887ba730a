"""Is a library's error one of the disk? Engines written in other languages tell it in words only."""

from __future__ import annotations

import errno

from hybrid_rag.errors import IndexStorageError

FREE = "Free some space and run the command again. Nothing of what was indexed is lost."
RIGHTS = "Check the permissions of the folder and its files, and that the disk is not mounted read-only."
_FULL = (
    "no space left",
    "database or disk is full",
    "file too large",
    "storagefull",
    "disk i/o error",
    "os error 28",
    "os error 27",
    "quota",
)
_NO_RIGHT = ("permission denied", "read-only file system", "readonly database", "permissiondenied", "os error 13", "os error 30")


def storage_error(error: BaseException, what: str) -> IndexStorageError | None:
    """Our error when the disk is full or a right is missing, else None. ``what``: the file or folder, for the message."""
    number, said = getattr(error, "errno", None), str(error).lower()
    if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) or any(sign in said for sign in _FULL):
        return IndexStorageError(f"There is no space left for {what} ({error}).", FREE)
    if number in (errno.EACCES, errno.EPERM, errno.EROFS) or any(sign in said for sign in _NO_RIGHT):
        return IndexStorageError(f"There is no right to use {what} ({error}).", RIGHTS)
    return None
