"""Files put into the data folder through the page: only kinds that are read, only inside the folder, never over another file."""

from __future__ import annotations

import os
import secrets
import unicodedata
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.requests import ClientDisconnect, Request

from hybrid_rag.config import Config
from hybrid_rag.errors import InputError
from hybrid_rag.loading import supported_suffixes
from hybrid_rag.web.context import HttpError

LONGEST_PART = 200  # bytes of a file's or folder's name
MB = 1 << 20
_FORBIDDEN = set('<>:"|?*\\')  # not allowed in names on some systems


def target(config: Config, name: str) -> Path:
    """Where a file of that name goes. Raises InputError, HttpError(403) when uploads are off."""
    if not config.web.upload:
        raise HttpError(403, "Uploads are switched off.", "Set web.upload to true.")
    root = config.data.directory
    if not root.is_dir():
        raise InputError(f"The data folder {root} does not exist.", "Set data.directory.")
    parts = unicodedata.normalize("NFC", name).split("/")
    for part in parts:
        odd = _FORBIDDEN & set(part) or any(unicodedata.category(c)[0] == "C" for c in part)
        if (
            not part.strip(". ")
            or part.startswith(".")
            or odd
            or part != part.strip()
            or len(part.encode("utf-8", "replace")) > LONGEST_PART
        ):
            raise InputError(f"{name!r} is no name for a file here.", "Use letters, digits, spaces and signs such as - and _.")
    suffixes = supported_suffixes(config.loaders)
    if Path(parts[-1]).suffix.lower() not in suffixes:
        raise InputError(f"{name!r} is of a kind that is not read.", f"Kinds that are read: {', '.join(sorted(suffixes))}.")
    path = root.joinpath(*parts)
    there = next(p for p in path.parents if p.exists())
    if not there.resolve().is_relative_to(root.resolve()) or not there.is_dir():
        raise InputError(f"{name!r} lies outside the data folder.", "Choose another name.")
    return path


async def receive(config: Config, name: str, request: Request, run: Callable[..., Awaitable[Any]]) -> tuple[str, int]:
    """Write the request's body to its place: (source, bytes). A broken upload leaves nothing behind."""
    path = await run(target, config, name)
    most = int(config.web.max_upload_mb * MB)
    too_large = HttpError(
        413, f"{name!r} is larger than {config.web.max_upload_mb:g} MB.", "Raise web.max_upload_mb, or copy the file yourself."
    )
    if int(request.headers.get("content-length") or 0) > most:
        raise too_large
    part = path.with_name(f".upload-{secrets.token_hex(8)}.part")
    size = 0
    try:
        await run(path.parent.mkdir, parents=True, exist_ok=True)
        with await run(open, part, "xb") as file:
            async for data in request.stream():
                size += len(data)
                if size > most:
                    raise too_large
                await run(file.write, data)
        await run(_place, part, path, name)
    except ClientDisconnect as error:
        raise HttpError(400, f"The upload of {name!r} broke off.", "Try again.") from error
    except OSError as error:
        raise HttpError(409, f"{name!r} cannot be written: {error.strerror}.", "Check the data folder's permissions and space.") from error
    finally:
        await run(part.unlink, missing_ok=True)
    return path.relative_to(config.data.directory).as_posix(), size


def _place(part: Path, path: Path, name: str) -> None:
    """Move the finished file to its name; the name is taken first, so that no other file is ever replaced."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        raise HttpError(409, f"There is a file {name!r} already.", "Choose another name, or remove the old file first.") from None
    part.replace(path)
