"""Which documents a search may look at: folder, glob, kind, tags, dates. Parsed once, then asked per document."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Protocol

from hybrid_rag.errors import InputError
from hybrid_rag.records import KINDS

_SPAN = re.compile(r"(\d{1,9})\s*(d|days?|w|weeks?|m|months?|y|years?)", re.IGNORECASE)
_DAYS = {"d": 1, "w": 7, "m": 30.44, "y": 365.25}
_LONGEST_SPAN = 182_500.0  # days; more reaches before the first date
_TAG_WORDS = re.compile(r'"[^"]*"|[()!&|,]|[^\s()!&|,"]+|"')
_MOST_TAG_WORDS = 200


class Filterable(Protocol):
    """What a filter asks of a document."""

    source: str
    kind: str
    tags: tuple[str, ...]
    date: str | None
    modified: str


@dataclass(frozen=True)
class Filters:
    """A conjunction of conditions; every unset one lets all pass. Build it with :meth:`parse`."""

    folder: str | None = None
    glob: str | None = None
    kind: str | None = None
    tags: str | None = None
    since: str | None = None  # ISO date, included
    until: str | None = None  # ISO date, included
    recent: str | None = None  # "90d", "6w", "3m", "1y"
    sources: tuple[str, ...] = ()

    @classmethod
    def parse(cls, **values: object) -> Filters:
        """Check the values and build the filters; unknown names and bad values raise InputError."""
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise InputError(f"Unknown filter {unknown[0]!r}.", f"Known filters: {', '.join(sorted(known))}.")
        given = {key: value for key, value in values.items() if value not in (None, "", ())}
        sources = given.pop("sources", ())
        named = (sources,) if isinstance(sources, str) else tuple(sources)  # type: ignore[arg-type]
        out = cls(**{key: _nfc(str(value)).strip() for key, value in given.items()}, sources=tuple(_nfc(str(s)) for s in named))
        out = replace(out, folder=out.folder.replace("\\", "/").removeprefix("./").strip("/") or None if out.folder else None)
        out._check()
        return out

    @property
    def empty(self) -> bool:
        return self == Filters()

    def matches(self, document: Filterable, *, now: datetime | None = None) -> bool:
        """True when the document meets every condition. Its date is its own (front matter), else the file's time."""
        if self.kind and document.kind != self.kind:
            return False
        if self.sources and document.source not in self.sources:
            return False
        if self.folder and self.folder != "." and not document.source.startswith(self.folder + "/"):
            return False
        if self.glob and not self._glob_matches(document.source):
            return False
        if self.tags and not self._tag_test(frozenset(t.casefold() for t in document.tags)):
            return False
        return self._date_matches(document, now or datetime.now(UTC))

    def describe(self) -> str:
        """The conditions in words, for explanations."""
        return ", ".join(f"{f.name} {getattr(self, f.name)}" for f in fields(self) if getattr(self, f.name))

    def _check(self) -> None:
        if self.kind and self.kind not in KINDS:
            raise InputError(f"Unknown kind {self.kind!r}.", "Kinds are 'table' and 'text'.")
        days = {name: _parse_day(value, name) for name in ("since", "until") if (value := getattr(self, name))}
        if len(days) == 2 and days["since"] > days["until"]:
            raise InputError(f"since {self.since} is after until {self.until}.", "No day lies between them; exchange the two.")
        if self.recent and not _SPAN.fullmatch(self.recent):
            raise InputError(f"{self.recent!r} is not a span of time.", "Write a number and d, w, m or y: 90d, 6w, 3m, 1y.")
        if self.tags:
            _ = self._tag_test

    def _glob_matches(self, source: str) -> bool:
        pattern = self.glob or ""
        parts = source.casefold().split("/")
        return _path_matches(parts if "/" in pattern else parts[-1:], pattern.casefold().removeprefix("./").split("/"))

    def _date_matches(self, document: Filterable, now: datetime) -> bool:
        if not (self.since or self.until or self.recent):
            return True
        day = document_day(document)
        if self.since and day < _parse_day(self.since, "since"):
            return False
        if self.until and day > _parse_day(self.until, "until"):
            return False
        if self.recent and (match := _SPAN.fullmatch(self.recent)):
            days = min(int(match[1]) * _DAYS[match[2][0].lower()], _LONGEST_SPAN)
            return day >= (now - timedelta(days=days)).date()
        return True

    @cached_property
    def _tag_test(self) -> Callable[[frozenset[str]], bool]:
        return _TagExpression(self.tags or "").test


def document_day(document: Filterable) -> date:
    """The document's own date, else the day of its file's last change."""
    text = document.date or document.modified
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return date.fromisoformat(document.modified[:10])


def _path_matches(parts: list[str], patterns: list[str]) -> bool:
    """Does a path match a glob, both in parts? ``*`` stays inside a part, ``**`` stands for any number of them."""
    reached = {0}  # how many parts the patterns so far can have used up
    for pattern in patterns:
        if pattern == "**":
            reached = set(range(min(reached), len(parts) + 1)) if reached else reached
        else:
            reached = {i + 1 for i in reached if i < len(parts) and fnmatchcase(parts[i], pattern)}
    return len(parts) in reached


class _TagExpression:
    """``a and (b or not c)``; words side by side are joined by ``and``. A tag of several words stands in quotation marks."""

    def __init__(self, text: str) -> None:
        self._words, self._at, self._text = _TAG_WORDS.findall(text), 0, text
        if len(self._words) > _MOST_TAG_WORDS:
            raise InputError(f"The tag expression has {len(self._words)} words; {_MOST_TAG_WORDS} are allowed.")
        self.test = self._either()
        if self._at < len(self._words):
            raise self._error()

    def _peek(self) -> str:
        return self._words[self._at].casefold() if self._at < len(self._words) else ""

    def _either(self) -> Callable[[frozenset[str]], bool]:
        parts = [self._both()]
        while self._peek() in ("or", "|", ","):
            self._at += 1
            parts.append(self._both())
        return lambda tags: any(part(tags) for part in parts)

    def _both(self) -> Callable[[frozenset[str]], bool]:
        parts = [self._single()]
        while self._peek() not in ("", "or", "|", ",", ")"):
            if self._peek() in ("and", "&"):
                self._at += 1
            parts.append(self._single())
        return lambda tags: all(part(tags) for part in parts)

    def _single(self) -> Callable[[frozenset[str]], bool]:
        word = self._peek()
        self._at += 1
        if word in ("not", "!"):
            inner = self._single()
            return lambda tags: not inner(tags)
        if word == "(":
            inner = self._either()
            if self._peek() != ")":
                raise self._error()
            self._at += 1
            return inner
        tag = word.strip('"').lstrip("#")
        if word in (")", "and", "or", "&", "|", ",") or not tag:
            raise self._error()
        return lambda tags: tag in tags

    def _error(self) -> InputError:
        return InputError(f"The tag expression {self._text!r} cannot be read.", "Write for instance: policy and not (draft or old).")


def _parse_day(value: str, name: str) -> date:
    try:
        return datetime.fromisoformat(value).date()
    except ValueError:
        raise InputError(f"{name} {value!r} is not a day.", "Write it as YYYY-MM-DD.") from None


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)
