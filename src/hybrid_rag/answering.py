"""One question, one checked answer from text: retrieve, decide whether to answer, write or quote, hold against the source."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hybrid_rag import citations
from hybrid_rag.abstention import CHUNKS_LOOKED_AT, Thresholds, coverage, identifiers, unanswerable, weights
from hybrid_rag.analysis import normalise, unquoted
from hybrid_rag.errors import OllamaError
from hybrid_rag.extraction import Extract, extract
from hybrid_rag.filters import Filters
from hybrid_rag.prompts import CHARACTERS_A_TOKEN, rough_tokens
from hybrid_rag.records import Answer, Citation, Hit, SearchResult
from hybrid_rag.retrieval import Retriever
from hybrid_rag.writing import LONGEST_QUOTE, write

if TYPE_CHECKING:
    from hybrid_rag.llm import OllamaChat
    from hybrid_rag.reranking import Reranker

NOT_FOUND = "Not in your documents."
CLOSEST = "No passage answers this clearly. The closest ones:"
NEAREST_SHOWN = 3
WITHOUT_MODEL = {"extractive": "Answered without a language model", "none": "No language model could look at the passages"}


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """As the section `answers` of the configuration; ``neighbours`` from `retrieval`.

    ``quote_on_failure``: quote when the language model fails in the middle, rather than raise.
    """

    context_chunks: int = 5
    max_sentences: int = 3
    thresholds: Thresholds = field(default_factory=Thresholds)
    quote_from: float = 2.0
    neighbours: int = 1
    quote_on_failure: bool = False


class Answerer:
    """Answers from text passages. Thread-safe.

    ``chat`` gives the language model or None (then answers are quotes); ``reranker`` the cross-encoder or None.
    """

    def __init__(
        self, retriever: Retriever, chat: Callable[[], OllamaChat | None], reranker: Callable[[], Reranker | None], options: AnswerOptions
    ) -> None:
        self._retriever, self._chat, self._reranker, self._options = retriever, chat, reranker, options

    def answer(
        self,
        question: str,
        *,
        filters: Filters | None = None,
        k: int | None = None,
        on_token: Callable[[str], None] | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> Answer:
        """Answer a question. Raises InputError, IndexError_, Cancelled, and OllamaError when a model that must be there fails.

        ``on_token`` gets pieces of the answer that have passed the check, while a model writes it; ``cancel`` stops the model."""
        started = time.perf_counter()
        wanted = k or self._options.context_chunks
        result = self._search(question, max(wanted, NEAREST_SHOWN), filters)
        answer = self._from_result(question, result, wanted, on_token, cancel)
        times = {**result.milliseconds, **answer.milliseconds, "total": (time.perf_counter() - started) * 1000}
        return replace(
            answer,
            retrieval_mode=result.mode,
            vector_share=result.vector_share,
            milliseconds=times,
            notes=(*result.notes, *answer.notes),
            tokens=self.tokens({hit.source for hit in result.hits}, result.hits[:wanted]) | answer.tokens,
        )

    def _search(self, question: str, k: int, filters: Filters | None) -> SearchResult:
        """The passages. Quoted words in a question are meant as a title or with a distance, seldom as a condition: where fewer
        than ``k`` passages hold them, others follow."""
        rerank = self._reranker() is not None
        result = self._retriever.search(question, k=k, filters=filters, rerank=rerank)
        plain = unquoted(question)
        if len(result.hits) >= k or plain == question:
            return result
        held = {hit.chunk_id for hit in result.hits}
        more = self._retriever.search(plain, k=k, filters=filters, rerank=rerank)
        others = [hit for hit in more.hits if hit.chunk_id not in held][: k - len(held)]
        if not others:
            return result
        hits = tuple(replace(hit, rank=place) for place, hit in enumerate([*result.hits, *others], start=1))
        note = (
            "Few passages hold the quoted words; others follow them." if held else "No passage holds the quoted words; these come nearest."
        )
        return replace(more, query=question, hits=hits, notes=(*more.notes, note))

    def _from_result(
        self, question: str, result: SearchResult, k: int, on_token: Callable[[str], None] | None, cancel: Callable[[], bool] | None
    ) -> Answer:
        hits = result.hits
        if not hits:
            return Answer(question, NOT_FOUND, "none", True)
        if self._abstains(question, hits):
            return Answer(question, NOT_FOUND, "none", True, hits=hits[:NEAREST_SHOWN])
        chat = self._chat()
        if chat is None:
            return self._quote(question, hits)
        return self._write(question, hits[:k], chat, on_token, cancel)

    def _abstains(self, question: str, hits: Sequence[Hit]) -> bool:
        if any(not any(i in normalise(_whole(hit)) for hit in hits) for i in identifiers(question)):
            return True  # another claim, order or product than the one asked for answers nothing
        logits = [hit.scores["rerank"] for hit in hits[:CHUNKS_LOOKED_AT] if "rerank" in hit.scores]
        if not logits:
            return False
        looked_at = hits[: len(logits)]
        best = max(looked_at, key=lambda hit: hit.scores.get("rerank", float("-inf")))
        index = self._retriever.index
        wanted = weights(question, index.analyzer, index.lexical.document_frequency, index.lexical.count())
        covered = max(coverage(wanted, frozenset(index.analyzer.terms(_read(hit)))) for hit in looked_at)
        return unanswerable(question, logits, _read(best), covered, self._options.thresholds)

    # ------------------------------------------------------------ quotes

    def _quote(self, question: str, hits: Sequence[Hit]) -> Answer:
        started = time.perf_counter()
        found = self._extracts(question, hits)
        spent = {"extract": (time.perf_counter() - started) * 1000}
        if found and found[0].score is not None and found[0].score >= self._options.quote_from:
            citation = found[0].citation(1, f"{question} {found[0].unit.text}")
            return Answer(question, citation.quote, "extractive", False, (citation,), tuple(hits), milliseconds=spent)
        cited = tuple(_nearest(n, hit, question) for n, hit in enumerate(hits[:NEAREST_SHOWN], start=1))
        return Answer(question, CLOSEST, "none", True, cited, tuple(hits), milliseconds=spent,
                      notes=("No answer is claimed: no sentence scored high enough.",))  # fmt: skip

    def _extracts(self, question: str, hits: Sequence[Hit]) -> list[Extract]:
        index = self._retriever.index
        return extract(
            question,
            hits,
            analyzer=index.analyzer,
            frequency=index.lexical.document_frequency,
            total=index.lexical.count(),
            reranker=self._reranker(),
            sure_from=self._options.quote_from,
        )

    # ------------------------------------------------------------ language model

    def _write(
        self,
        question: str,
        hits: Sequence[Hit],
        chat: OllamaChat,
        on_token: Callable[[str], None] | None,
        cancel: Callable[[], bool] | None,
    ) -> Answer:
        """The model's answer; a quote when nothing of it stands in its sources, or when the model fails and may be done without."""
        o = self._options
        chunks = dict(enumerate(self._retriever.windows([hit.chunk for hit in hits], o.neighbours), start=1))
        try:
            written = write(question, hits, chunks, chat, sentences=o.max_sentences, on_token=on_token, cancel=cancel)
        except OllamaError as error:
            if not o.quote_on_failure:
                raise
            quoted = self._quote(question, hits)
            return replace(quoted, notes=(*quoted.notes, f"{WITHOUT_MODEL[quoted.mode]}: {error.message}"))
        if written.abstained:
            return replace(written, answer=NOT_FOUND, mode="none")
        if written.citations:
            return written
        quoted = self._quote(question, hits)
        note = "The model's answer did not stand in its sources; this is quoted instead."
        return replace(quoted, model=chat.model, tokens=written.tokens, milliseconds={**written.milliseconds, **quoted.milliseconds},
                       checks=written.checks, notes=(*written.notes, note, *quoted.notes))  # fmt: skip

    def tokens(self, sources: Iterable[str], hits: Sequence[Hit] = ()) -> dict[str, int]:
        """The costs of an answer for which no model was asked: nothing sent, what the passages hold, and what sending the whole
        documents would have cost. Estimates, a token for each four characters."""
        catalog = self._retriever.index.catalog
        sql = ("SELECT CASE d.kind WHEN 'table' THEN d.size ELSE max(c.\"end\") END FROM chunks c JOIN documents d ON d.number = c.document "
               "WHERE d.ready = 1 AND d.source = ?")  # fmt: skip
        whole = sum(int(catalog.value(sql, (source,)) or 0) for source in sources)
        return {
            "prompt": 0,
            "answer": 0,
            "context": rough_tokens(hit.chunk.text for hit in hits),
            "whole_files": whole // CHARACTERS_A_TOKEN,
        }


def _read(hit: Hit) -> str:
    """What the cross-encoder sees of a hit."""
    return f"{hit.chunk.context}\n{hit.chunk.text}"


def _whole(hit: Hit) -> str:
    return f"{hit.source}\n{_read(hit)}"


def _nearest(n: int, hit: Hit, question: str) -> Citation:
    """A hit as a citation that claims nothing beyond being close."""
    chunk = hit.chunk
    quote = chunk.text[:LONGEST_QUOTE]
    return Citation(n, chunk.source, chunk.kind, chunk.page, chunk.page_label, chunk.rows, chunk.heading, quote, True, hit.chunk_id,
                    chunk.start, chunk.start + len(quote), citations.spans_of_support(quote, question))  # fmt: skip
