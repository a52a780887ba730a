"""Front matter of Markdown files: YAML between ``---`` marks or TOML between ``+++``; every value stays as written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

LONGEST = 64 * 1024  # characters; what is longer is no front matter
LONGEST_VALUE = 500  # characters of a value that is kept
_YAML = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(.*?)^\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DATE_KEYS = ("date", "updated", "last_updated", "last-updated", "last_modified", "modified", "effective_date", "effective", "published",
              "created")  # fmt: skip
_DATE_FORMS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y", "%Y%m%d")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """``length``: characters that it takes at the beginning of the text. ``error``: why it could not be understood."""

    length: int = 0
    values: dict[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    error: str = ""

    @property
    def title(self) -> str:
        return self.values.get("title", "")

    @property
    def date(self) -> str | None:
        """ISO date, from the first key that holds one."""
        return next((found for key in _DATE_KEYS if (found := iso_date(self.values.get(key, "")))), None)

    @property
    def language(self) -> str | None:
        value = self.values.get("lang") or self.values.get("language") or ""
        return value[:2].lower() if re.fullmatch(r"[A-Za-z]{2}(?:[-_].*)?", value) else None


def parse(text: str) -> FrontMatter:
    """The front matter that a text begins with; an empty one when there is none."""
    head = text[:LONGEST]
    if match := _YAML.match(head):
        return _understand(match, _from_yaml)
    if match := _TOML.match(head):
        return _understand(match, _from_toml)
    return FrontMatter()


def iso_date(value: str) -> str | None:
    """The day that a value names, as YYYY-MM-DD."""
    value = value.strip()
    for shown in (value, value[:10]):
        for form in _DATE_FORMS:
            try:
                return datetime.strptime(shown, form).date().isoformat()
            except ValueError:
                continue
    return None


def _understand(match: re.Match[str], read: Any) -> FrontMatter:
    try:
        tree = read(match[1])
    except ValueError as error:
        return FrontMatter(error=" ".join(str(error).split())[:200]) if ":" in match[1] or "=" in match[1] else FrontMatter()
    if tree is None and not match[1].strip():
        return FrontMatter(length=match.end())
    if not isinstance(tree, dict):
        return FrontMatter()  # two rules with text between them
    lower = {str(key).strip().lower(): value for key, value in tree.items()}
    values = {key: shown for key, value in lower.items() if key and (shown := _shown(value))}
    return FrontMatter(length=match.end(), values=values, tags=_tags(lower))


def _from_yaml(text: str) -> Any:
    import yaml

    try:
        return yaml.load(text, Loader=yaml.BaseLoader)  # strings only: a date or a version is as written
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _from_toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _shown(value: Any) -> str:
    """A value on one line; of nested ones the first level."""
    if isinstance(value, dict):
        parts = [f"{key}: {_plain(inner)}" for key, inner in list(value.items())[:50]]
        return "; ".join(parts)[:LONGEST_VALUE]
    if isinstance(value, (list, tuple)):
        return ", ".join(filter(None, map(_plain, value[:50])))[:LONGEST_VALUE]
    return _plain(value)


def _plain(value: Any) -> str:
    if value is None or isinstance(value, (dict, list, tuple)):
        return ""
    return " ".join(str(value).split())[:LONGEST_VALUE]


def _tags(values: dict[str, Any]) -> tuple[str, ...]:
    found = values.get("tags") or values.get("tag") or values.get("keywords") or ()
    if isinstance(found, str):
        found = found.split(",") if "," in found else found.split()
    if not isinstance(found, (list, tuple)):
        return ()
    return tuple(dict.fromkeys(tag for value in found[:200] if (tag := _plain(value).lstrip("#").strip())))
