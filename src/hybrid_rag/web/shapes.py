"""What the API gives back, for its description. Records whose JSON form has other fields than themselves are written out here."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from hybrid_rag.records import DocumentInfo, TableCard, TableResult

Rows = list[int] | None  # [first, last], both included
KindName = Literal["table", "text"]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")


class HitShape(_Shape):
    rank: int
    source: str
    kind: KindName
    page: int | None
    page_label: str | None
    rows: Rows
    heading: list[str]
    title: str
    text: str
    scores: dict[str, float]
    ranks: dict[str, int]
    terms: list[str]
    date: str | None
    tags: list[str]
    modified: str | None
    chunk_id: str
    start: int
    end: int
    same_text: list[str]
    explanation: str


class SearchShape(_Shape):
    query: str
    mode: Literal["hybrid", "keyword", "dense"]
    vector_share: float
    reranked: bool
    cached: bool
    hits: list[HitShape]
    milliseconds: dict[str, float]
    notes: list[str]


class CitationShape(_Shape):
    n: int
    source: str
    kind: KindName
    page: int | None
    page_label: str | None
    rows: Rows
    heading: list[str]
    quote: str
    verified: bool
    chunk_id: str
    start: int | None
    end: int | None
    marks: list[list[int]]


class RetrievalShape(_Shape):
    mode: str | None
    vector_share: float


class AnswerShape(_Shape):
    question: str
    answer: str
    mode: Literal["llm", "table", "extractive", "none"]
    abstained: bool
    citations: list[CitationShape]
    sql: str | None
    table: TableResult | None
    needs: TableCard | None
    rewritten_question: str | None
    retrieval: RetrievalShape
    model: str | None
    tokens: dict[str, int]
    milliseconds: dict[str, float]
    checks: list[str]
    notes: list[str]
    passages: list[HitShape]
    error: str | None


class TimelineShape(_Shape):
    at: int
    documents: list[DocumentInfo]


class ChoiceShape(_Shape):
    value: str
    name: str
    count: int
    depth: int


class FacetsShape(_Shape):
    documents: int
    total: int
    folders: list[ChoiceShape]
    kinds: list[ChoiceShape]
    tags: list[ChoiceShape]
    spans: list[ChoiceShape]
    years: list[ChoiceShape]


class SourceShape(_Shape):
    source: str
    form: Literal["page", "records", "markdown", "text"]
    page: int | None
    pages: int | None
    row_count: int | None
    rows: Rows
    header: list[str]
    records: list[list[str]]
    marked_rows: list[int]
    text: str
    marked_text: list[str]
    html: str
    page_marks: list[list[float]]
    note: str


class RunShape(_Shape):
    running: bool
    started: str | None
    waiting: bool
    progress: dict[str, Any] | None
    report: dict[str, Any] | None
    error: dict[str, Any] | None
    cancelled: bool
    runs: int


class UploadShape(_Shape):
    source: str
    size: int


class HealthShape(_Shape):
    status: str
    version: str


class RelatedShape(BaseModel):
    """A document with `score` and `stage`."""

    source: str
    score: float
    stage: Literal["cosine", "bm25"]


def gives(shape: Any, status: int = 200) -> dict[str, Any]:
    """Arguments of a route that gives records of this shape: described, not checked again at every answer."""
    return {"response_model": None, "responses": {status: {"model": shape}}}
