"""An answer written by the language model: prompt within the context, generation, and every sentence held against its passage."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from hybrid_rag import citations
from hybrid_rag.errors import InputError
from hybrid_rag.instructions import without_instructions
from hybrid_rag.prompts import Passage, build, fit, rough_tokens
from hybrid_rag.records import Answer, Chunk, Citation, Hit
from hybrid_rag.sentences import split

if TYPE_CHECKING:
    from hybrid_rag.llm import Generation, OllamaChat

LONGEST_QUOTE = 500  # characters quoted for a sentence of the model's
_ASKS_FOR_LINK = re.compile(
    r"\b(?:links?|urls?|web ?sites?|web ?pages?|web address|addresses|address|download|endpoint|online|repository)\b", re.IGNORECASE
)


def write(
    question: str,
    hits: Sequence[Hit],
    chunks: Mapping[int, Chunk],
    chat: OllamaChat,
    *,
    sentences: int,
    on_token: Callable[[str], None] | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Answer:
    """Let the model answer from the chunks, [n] -> chunk, and keep what they bear out. Raises OllamaError, InputError, Cancelled.

    ``on_token`` gets the sentences that have passed the check, while the rest is written. When none passes, the answer
    is empty and, unless the model said that it does not know, not marked as abstained.
    """
    fitted = fit(question, [Passage(n, label(chunk), shown(chunk)) for n, chunk in chunks.items()], sentences=sentences, budget=chat.budget)
    if not fitted.passages:
        raise InputError(
            f"The question leaves no room for passages in the model's context of {chat.num_ctx:,} tokens.",
            "Ask with fewer words, or raise ollama.num_ctx.",
        )
    evidence, warnings = _evidence(fitted.passages, chunks)
    keep_links = _ASKS_FOR_LINK.search(question) is not None
    stream = citations.CheckedStream(evidence, on_token, keep_links=keep_links) if on_token else None
    generation = chat.generate(
        build(question, fitted.passages, sentences=sentences), on_token=stream.add if stream else None, cancel=cancel
    )
    checked = citations.check(generation.text, evidence, keep_links=keep_links)
    if stream:
        stream.finish(checked.text)
    return Answer(
        question,
        checked.text,
        "llm",
        checked.abstained,
        citations=_cite(checked, {p.n: chunks[p.n] for p in fitted.passages}, hits),
        hits=tuple(hits),
        model=chat.model,
        tokens=_tokens(generation, fitted.tokens, fitted.passages),
        milliseconds={"generate": generation.milliseconds},
        checks=(*warnings, *checked.notes),
        notes=(*fitted.notes, *_cut(generation, chat)),
    )


def _evidence(passages: Sequence[Passage], chunks: Mapping[int, Chunk]) -> tuple[list[tuple[int, str]], list[str]]:
    """(n, text) that statements are held against, and notes on sentences that support nothing, for they speak to the model."""
    out, notes = [], []
    for passage in passages:
        text, found = without_instructions(passage.text)
        if found:
            notes.append(f"{'A sentence' if found == 1 else f'{found} sentences'} of passage {passage.n} ({chunks[passage.n].source}) "
                         f"{'speaks' if found == 1 else 'speak'} to the language model, not to a reader; no answer stands on that.")  # fmt: skip
        out.append((passage.n, f"{_context(chunks[passage.n])}\n{text}"))
    return out, notes


def label(chunk: Chunk) -> str:
    """File and place, as the model sees it."""
    place = Citation(0, chunk.source, chunk.kind, chunk.page, chunk.page_label, chunk.rows, chunk.heading).place()
    return f"{chunk.source}, {place}" if place else chunk.source


def shown(chunk: Chunk) -> str:
    return f"{chunk.header}\n{chunk.text}" if chunk.header else chunk.text


def _context(chunk: Chunk) -> str:
    """What stands around the passage and may be said from it: file name, title, headings."""
    return f"{chunk.source}\n{chunk.context}"


def _cite(checked: citations.Checked, chunks: Mapping[int, Chunk], hits: Sequence[Hit]) -> tuple[Citation, ...]:
    """One citation for each number of the answer, quoting the sentences of the passage that support best."""
    support: dict[int, list[str]] = {}
    for sentence, numbers in checked.sentences:
        for n in numbers:
            support.setdefault(n, []).append(sentence)
    return tuple(_citation(n, chunks[n], hits[n - 1], lines) for n, lines in sorted(support.items()))


def _citation(n: int, chunk: Chunk, hit: Hit, claims: Sequence[str]) -> Citation:
    start, end = _best_span(chunk, claims)
    quote = chunk.text[start:end]
    marks = citations.spans_of_support(quote, " ".join(claims))
    rows = _record(chunk, start, end) or chunk.rows
    return Citation(n, chunk.source, chunk.kind, _page(chunk, hit, start), chunk.page_label, rows, chunk.heading, quote, True,
                    hit.chunk_id, chunk.start + start, chunk.start + end, marks)  # fmt: skip


def _best_span(chunk: Chunk, claims: Sequence[str]) -> tuple[int, int]:
    """From the sentence that supports the first claim best to the one that supports the last, when that is not too long."""
    spans = _units(chunk)
    chosen = [max(spans, key=lambda span: (_weight(chunk.text[span[0] : span[1]], claim), -span[0])) for claim in claims]
    start, end = min(s for s, _ in chosen), max(e for _, e in chosen)
    if end - start > LONGEST_QUOTE:
        start, end = chosen[0]
    return start, min(end, start + LONGEST_QUOTE)


def _units(chunk: Chunk) -> list[tuple[int, int]]:
    """Sentences, or the records of a table chunk."""
    if chunk.kind == "table" and chunk.rows:
        spans = [m.span() for m in re.finditer(r"(?:.+\n?)+", chunk.text)]
        return [(start, start + len(chunk.text[start:end].rstrip())) for start, end in spans] or [(0, len(chunk.text))]
    return split(chunk.text) or [(0, len(chunk.text))]


def _record(chunk: Chunk, start: int, end: int) -> tuple[int, int] | None:
    """The records of a table chunk that a quote covers, when its blocks are its records."""
    spans = _units(chunk)
    if chunk.kind != "table" or not chunk.rows or len(spans) != chunk.rows[1] - chunk.rows[0] + 1:
        return None
    covered = [i for i, span in enumerate(spans) if span[0] < end and span[1] > start]
    return chunk.rows[0] + covered[0], chunk.rows[0] + covered[-1]


def _page(chunk: Chunk, hit: Hit, start: int) -> int | None:
    """The hit's own page, unless the quote stands before the hit's text."""
    return hit.chunk.page if chunk.start + start >= hit.chunk.start else chunk.page


def _weight(text: str, claim: str) -> float:
    """Supported words, those of a short sentence counting a little more."""
    spans = citations.spans_of_support(text, claim)
    return len({text[s:e].casefold() for s, e in spans}) + len(spans) / (len(text) + 1)


def _tokens(generation: Generation, estimate: int, kept: Sequence[Passage]) -> dict[str, int]:
    return {
        "prompt": generation.prompt_tokens or estimate,
        "answer": generation.answer_tokens,
        "context": rough_tokens(p.text for p in kept),
    }


def _cut(generation: Generation, chat: OllamaChat) -> tuple[str, ...]:
    notes = []
    if generation.done_reason == "length":
        notes.append(f"The answer was cut off at {chat.max_answer_tokens} tokens (ollama.max_answer_tokens).")
    if generation.prompt_tokens + generation.answer_tokens > chat.num_ctx:
        notes.append(
            f"The server counted more tokens than the context of {chat.num_ctx:,} holds: parts of the passages may be lost to the model."
        )
    return tuple(notes)
