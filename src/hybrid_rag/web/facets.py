"""The filters of the page with their counts: how many documents each choice would leave, the other choices staying as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from hybrid_rag.filters import Filters, document_day
from hybrid_rag.records import KINDS, DocumentInfo

SPANS = (("30d", "Past month"), ("90d", "Past 3 months"), ("1y", "Past year"))
MOST_TAGS = 60
MOST_FOLDERS = 500
MOST_YEARS = 15


@dataclass(frozen=True, slots=True)
class Choice:
    """A value of a filter, its name for people, and the documents that it would leave. ``depth``: of a folder, from 0."""

    value: str
    name: str
    count: int
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Facets:
    documents: int  # that pass all filters
    total: int
    folders: tuple[Choice, ...]  # parents before children
    kinds: tuple[Choice, ...]
    tags: tuple[Choice, ...]  # most frequent first
    spans: tuple[Choice, ...]
    years: tuple[Choice, ...]  # latest first

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def facets(documents: Sequence[DocumentInfo], filters: Filters, *, now: datetime | None = None) -> Facets:
    """Counts over documents of what each choice would leave."""
    now = now or datetime.now(UTC)

    def left(**without: Any) -> list[DocumentInfo]:
        changed = replace(filters, **without)
        return [d for d in documents if changed.matches(d, now=now)]

    in_time = left(since=None, until=None, recent=None)
    kinds = Counter(d.kind for d in left(kind=None))
    return Facets(
        documents=len(left()),
        total=len(documents),
        folders=_folders(left(folder=None)),
        kinds=tuple(Choice(kind, {"table": "Tables", "text": "Text"}[kind], kinds[kind]) for kind in KINDS if kinds[kind]),
        tags=tuple(Choice(t, t, n) for t, n in sorted(_tags(left()).items(), key=lambda i: (-i[1], i[0].casefold()))[:MOST_TAGS]),
        spans=tuple(Choice(span, name, sum(Filters(recent=span).matches(d, now=now) for d in in_time)) for span, name in SPANS),
        years=_years(in_time),
    )


def _tags(documents: Sequence[DocumentInfo]) -> Counter[str]:
    return Counter(tag for d in documents for tag in dict.fromkeys(d.tags))


def _folders(documents: Sequence[DocumentInfo]) -> tuple[Choice, ...]:
    counts: Counter[str] = Counter()
    for d in documents:
        parts = d.source.split("/")[:-1]
        counts.update("/".join(parts[: i + 1]) for i in range(len(parts)))
    ordered = sorted(counts, key=lambda path: [part.casefold() for part in path.split("/")])[:MOST_FOLDERS]
    return tuple(Choice(path, path.rpartition("/")[2], counts[path], path.count("/")) for path in ordered)


def _years(documents: Sequence[DocumentInfo]) -> tuple[Choice, ...]:
    counts = Counter(document_day(d).year for d in documents)
    return tuple(Choice(str(year), str(year), counts[year]) for year in sorted(counts, reverse=True)[:MOST_YEARS])
