"""JSON: questions. An answer at once, or as server-sent events while a model writes; a client that leaves stops its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from hybrid_rag.conversation import Conversation
from hybrid_rag.records import Answer, Turn
from hybrid_rag.web import sse
from hybrid_rag.web.context import LONGEST_QUERY, Context, FilterValues, Here, client
from hybrid_rag.web.shapes import AnswerShape, gives

router = APIRouter(prefix="/api", tags=["ask"])

LONGEST_ANSWER = 20_000  # characters of a turn that a client sends back
MOST_TURNS = 20


class TurnBody(BaseModel):
    """A turn of the conversation so far, as the client got it."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(max_length=LONGEST_QUERY)
    rewritten: str | None = Field(None, max_length=LONGEST_QUERY)
    answer: str = Field(max_length=LONGEST_ANSWER)
    sources: list[str] = Field([], max_length=100)


class Question(BaseModel):
    """A question; with ``turns`` it is understood from the conversation. The server keeps no conversation."""

    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=LONGEST_QUERY)
    k: int | None = Field(None, ge=1, le=50, description="Passages to answer from.")
    filters: FilterValues = FilterValues()  # type: ignore[call-arg]
    turns: list[TurnBody] = Field([], max_length=MOST_TURNS)


def answer(
    here: Context, body: Question, *, on_token: Callable[[str], None] | None = None, cancel: Callable[[], bool] | None = None
) -> Answer:
    """Raises what :meth:`Service.ask` raises, and InputError for filters that cannot be read."""
    conversation = Conversation(here.service, filters=body.filters.parsed())
    conversation.turns = [Turn(t.question, t.rewritten, t.answer, tuple(t.sources)) for t in body.turns]
    return here.timed("ask", conversation.ask)(body.question, k=body.k, on_token=on_token, cancel=cancel)


@router.post("/ask", summary="Answer a question", **gives(AnswerShape))
async def ask(here: Here, request: Request, body: Question) -> dict[str, Any]:
    """As `hybrid-rag ask --json`."""
    here.ask_limit.take(client(request))
    return (await sse.while_there(request, here.answers, lambda gone: answer(here, body, cancel=gone))).to_dict()


@router.post(
    "/ask/stream",
    summary="Answer a question, as it is written",
    response_class=StreamingResponse,
    responses=sse.EVENTS,
)
async def ask_stream(here: Here, request: Request, body: Question) -> StreamingResponse:
    """Events: `token` (`{"text"}`: sentences that have passed the check), then `answer` (as of `/api/ask`) or `error`."""
    here.ask_limit.take(client(request))

    def work(tell: sse.Tell, gone: Callable[[], bool]) -> None:
        found = answer(here, body, on_token=lambda text: tell("token", {"text": text}), cancel=gone)
        tell("answer", found.to_dict())

    return sse.response(sse.stream(request, here.answers, work))
