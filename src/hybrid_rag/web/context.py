"""What the routes share: the service, its threads, limits and measures, and how a request names its filters."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

from fastapi import Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from hybrid_rag.config_sections import Web
from hybrid_rag.errors import HybridRagError, IndexEmptyError
from hybrid_rag.filters import Filters
from hybrid_rag.records import DocumentInfo
from hybrid_rag.service import Service
from hybrid_rag.web.limits import RateLimit
from hybrid_rag.web.measures import Measures
from hybrid_rag.web.threads import Threads

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_NAME = 1000  # characters of a path or filter
LONGEST_QUERY = 10_000
QUICK, WAITING_QUICK = 8, 64  # searches and look-ups at once, and waiting
ANSWERS, WAITING_ANSWERS = 8, 24


@dataclass
class Context:
    """One server. ``quick`` runs searches and look-ups, ``answers`` runs questions and free SQL: the ones do not wait for the others."""

    service: Service
    settings: Web
    token: str | None
    measures: Measures = field(default_factory=Measures)
    quick: Threads = field(default_factory=lambda: Threads("web-quick", workers=QUICK, waiting=WAITING_QUICK))
    answers: Threads = field(default_factory=lambda: Threads("web-answers", workers=ANSWERS, waiting=WAITING_ANSWERS))

    def __post_init__(self) -> None:
        per_minute = self.settings.requests_per_minute
        self.ask_limit, self.index_limit, self.login_limit = RateLimit(per_minute), RateLimit(per_minute), RateLimit(20)
        self._lock = threading.Lock()
        self._documents: tuple[int, list[DocumentInfo]] = (-1, [])

    def documents(self) -> list[DocumentInfo]:
        """All documents, read again when the index has moved; none when there is no index."""
        try:
            generation = self.service.generation()
        except IndexEmptyError:
            return []
        with self._lock:
            if self._documents[0] != generation:
                self._documents = (generation, self.service.documents())
            return self._documents[1]

    def timed(self, kind: str, function: Callable[P, T]) -> Callable[P, T]:
        """The function, its duration measured when it succeeds."""

        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            started = time.perf_counter()
            result = function(*args, **kwargs)
            self.measures.took(kind, time.perf_counter() - started)
            return result

        return call

    def close(self) -> None:
        self.quick.close()
        self.answers.close()


def context(request: Request) -> Context:
    return request.app.state.context


def client(request: Request) -> str:
    """Whom a rate limit counts for."""
    return request.client.host if request.client else "unknown"


Here = Annotated[Context, Depends(context)]
Name = Annotated[str | None, Query(max_length=LONGEST_NAME)]


class FilterValues(BaseModel):
    """The filters of a request, named as the options of the command line."""

    model_config = ConfigDict(extra="forbid")

    folder: str | None = Field(None, max_length=LONGEST_NAME, description="Only documents below this folder.")
    glob: str | None = Field(None, max_length=LONGEST_NAME, description="Only documents whose path matches, such as `*.md`.")
    kind: Literal["table", "text"] | None = Field(None, description="Only tables or only text.")
    tag: list[str] = Field([], max_length=50, description="Tag expressions, all of which must hold: `policy and not draft`.")
    since: str | None = Field(None, max_length=40, description="Dated on or after (YYYY-MM-DD).")
    until: str | None = Field(None, max_length=40, description="Dated on or before (YYYY-MM-DD).")
    recent: str | None = Field(None, max_length=40, description="Of the last `90d`, `6w`, `3m`, `1y`.")

    def parsed(self) -> Filters | None:
        """None when none is given: then the configured ones apply. Raises InputError."""
        values: dict[str, Any] = {k: v for k, v in self.model_dump(exclude={"tag"}).items() if v}
        if expressions := [t for t in self.tag if t.strip()]:
            for expression in expressions:
                Filters.parse(tags=expression)  # each is one for itself: no bracket of one closes in another
            values["tags"] = " and ".join(f"({t})" for t in expressions) if len(expressions) > 1 else expressions[0]
        return Filters.parse(**values) if values else None


def filter_values(
    folder: Name = None,
    glob: Name = None,
    kind: Annotated[Literal["table", "text"] | None, Query()] = None,
    tag: Annotated[list[str] | None, Query(max_length=50)] = None,
    since: Annotated[str | None, Query(max_length=40)] = None,
    until: Annotated[str | None, Query(max_length=40)] = None,
    recent: Annotated[str | None, Query(max_length=40)] = None,
) -> Filters | None:
    return FilterValues(folder=folder, glob=glob, kind=kind, tag=tag or [], since=since, until=until, recent=recent).parsed()


FiltersGiven = Annotated[Filters | None, Depends(filter_values)]


class HttpError(HybridRagError):
    """An error with a status of its own."""

    def __init__(self, status: int, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.status = status

    def to_dict(self) -> dict[str, str]:
        return {"error": {404: "NotFound", 413: "TooLarge"}.get(self.status, "Refused"), "message": self.message, "remedy": self.remedy}
