"""Search: filters first, two legs a kind, fused and placed, recency and cross-encoder after; every hit joined to the catalog."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from hybrid_rag.errors import EmbeddingError, InputError, OllamaError
from hybrid_rag.filters import Filters, document_day
from hybrid_rag.fusion import mix
from hybrid_rag.index import Index
from hybrid_rag.naming import named_first
from hybrid_rag.patience import Patience, TooLate
from hybrid_rag.ranking import Candidate, Query, RetrievalOptions, rank
from hybrid_rag.records import KINDS, Chunk, DocumentInfo, Hit, Kind, SearchMode, SearchResult
from hybrid_rag.search_cache import Recent
from hybrid_rag.vectors import Allowed

if TYPE_CHECKING:
    import numpy as np

    from hybrid_rag.analysis import Analyzer
    from hybrid_rag.catalog_schema import StoredChunk
    from hybrid_rag.embedding import Embedder
    from hybrid_rag.reranking import Reranker

__all__ = ["RetrievalOptions", "Retriever"]

LONGEST_QUERY = 10_000  # characters; more is no query
MOST_RESULTS = 1000
QUERY_VECTORS = 512  # query vectors kept
FILTERS_KEPT = 16  # sets of documents that passed a filter
REMOTE = ("ollama:",)  # embedders that answer over the network and may keep a search waiting
RERANK_SHARE = 0.5  # of the cross-encoder in a mixed score; docs/retrieval.md
SPARE = 10  # candidates read from the catalog beyond those wanted, for ids that are not there any more


@dataclass(frozen=True, slots=True)
class _Passing:
    """What passes some filters, by kind (None: both together): documents (None: all of them), how many chunks they have, and which
    these are once asked for.
    """

    documents: dict[Kind | None, frozenset[int] | None]
    chunks: dict[Kind | None, int]
    numbers: dict[Kind, Allowed]


class Retriever:
    """Searches one index. Thread-safe.

    ``embedder`` gives the embedder of the index's vectors, or None; ``reranker`` the cross-encoder, or None.
    """

    def __init__(
        self,
        index: Index,
        embedder: Callable[[], Embedder | None],
        reranker: Callable[[], Reranker | None],
        options: RetrievalOptions,
    ) -> None:
        self.index, self.options = index, options
        self._embedder, self._reranker = embedder, reranker
        self._results: Recent[SearchResult] = Recent(options.cache_entries)
        self._vectors: Recent[np.ndarray] = Recent(QUERY_VECTORS)
        self._passing: Recent[_Passing] = Recent(FILTERS_KEPT)
        self._shares: Recent[float] = Recent(1)
        self._patience = Patience(options.remote_seconds)

    # ------------------------------------------------------------ search

    def search(
        self,
        query: str,
        *,
        k: int,
        filters: Filters | None = None,
        mode: SearchMode = "hybrid",
        rerank: bool = False,
        vector: np.ndarray | None = None,
        explain: bool = False,
    ) -> SearchResult:
        """The k best chunks, never fewer when so many match. Raises InputError for an empty query, IndexError_ for an unusable index.

        ``vector``: the query's embedding, when the caller has it. What could not be used (no vectors yet, no embedder)
        is in the result's ``mode`` and ``notes``.
        """
        _check(query, k)
        started = time.perf_counter()
        filters = filters or Filters()
        self.index.refresh()
        state, today = self.index.state, datetime.now(UTC).date()
        key = (query, k, filters, mode, rerank, explain, today)
        if vector is None and (held := self._results.get(key, state=state)):
            return replace(held, cached=True, milliseconds={"search": (time.perf_counter() - started) * 1000})
        result, lasting = self._search(query, k, filters, mode, rerank, vector, explain, state)
        if vector is None and lasting:
            self._results.put(key, result, state=state)
        return result

    def _search(
        self,
        text: str,
        k: int,
        filters: Filters,
        mode: SearchMode,
        rerank: bool,
        vector: np.ndarray | None,
        explain: bool,
        state: Hashable,
    ) -> tuple[SearchResult, bool]:
        """The result, and whether the same search would give it again: not when the embedder failed this time."""
        started = time.perf_counter()
        passing = self._passing_filters(filters, state)
        query = Query(
            text,
            self.index.analyzer.query(text),
            k,
            mode,
            passing.documents.__getitem__,
            lambda kind: self._allowed_numbers(passing, kind),
            passing.chunks.__getitem__,
            self._youths if self.options.recency_half_life_days else None,
        )
        self._prepare_vector(query, vector)
        depth = max(k, self.options.rerank_top) if rerank else k
        ranked, stored = self._joined(rank(self.index, self.options, query), depth)
        if self.options.fusion != "classic" and mode != "dense":
            named_first(self.index.analyzer, query.terms, ranked, stored)
        reranked = rerank and self._rerank(query, ranked, stored)
        hits = self._hits(query, filters, ranked[:k], stored, explain)
        if not hits:
            query.notes.append(_why_nothing(query))
        query.took("search", started)
        share = self._vector_share(state)
        result = SearchResult(text, query.mode, hits, share, bool(reranked), False, query.milliseconds, tuple(query.notes))
        return result, not query.failed

    def _joined(self, candidates: Iterator[Candidate], depth: int) -> tuple[list[Candidate], dict[int, StoredChunk]]:
        """The first candidates that the catalog (still) holds, no fewer than ``depth`` when there are so many; and their chunks."""
        kept: list[Candidate] = []
        stored: dict[int, StoredChunk] = {}
        while len(kept) < depth and (page := list(islice(candidates, depth + SPARE))):
            stored |= self.index.catalog.chunks([c.number for c in page])
            kept += [c for c in page if c.number in stored]
        return kept, stored

    def _vector_share(self, state: Hashable) -> float:
        share = self._shares.get("share", state=state)
        if share is None:
            share = self.index.vector_share()
            self._shares.put("share", share, state=state)
        return share

    # ------------------------------------------------------------ the query's vector

    def _prepare_vector(self, query: Query, vector: np.ndarray | None) -> None:
        """The query's vector, when the dense leg can be used; else the mode becomes "keyword"."""
        if query.mode == "keyword" or (query.mode == "hybrid" and not self.options.wants_dense):
            query.mode = "keyword"
            return
        query.vector = vector if vector is not None else self._embed(query)
        if query.vector is None:
            query.mode = "keyword"

    def _embed(self, query: Query) -> np.ndarray | None:
        if not self.index.fingerprint:
            query.notes.append("No vectors yet: found by keywords.")
            return None
        started = time.perf_counter()
        remote = (self.index.embedder_name or "").startswith(REMOTE)
        try:
            found = self._patience.call(lambda: self._vector(query.text)) if remote else self._vector(query.text)
        except (OllamaError, EmbeddingError) as error:
            query.failed = True
            query.notes.append(f"Found by keywords: {error.message}")
            return None
        except TooLate:
            query.failed = True
            query.notes.append(f"Found by keywords: the embedder's server takes longer than {self._patience.seconds:g} s.")
            return None
        if found is None:
            query.notes.append(f"Found by keywords: the index's vectors are of {self.index.embedder_name}, which is not configured.")
            return None
        query.took("embed", started)
        query.fingerprint, vector = found
        return vector

    def _vector(self, text: str) -> tuple[str, np.ndarray] | None:
        """Fingerprint and the query's vector; None when the configured embedder is not the index's."""
        model = self._embedder()
        if model is None or model.fingerprint != self.index.fingerprint:
            return None
        return model.fingerprint, self._query_vector(model, text)

    def _query_vector(self, model: Embedder, text: str) -> np.ndarray:
        vector = self._vectors.get(text, state=model.fingerprint)
        if vector is None:
            vector = model.embed_query(text)
            self._vectors.put(text, vector, state=model.fingerprint)
        return vector

    # ------------------------------------------------------------ filters

    def _passing_filters(self, filters: Filters, state: Hashable) -> _Passing:
        now = datetime.now(UTC)
        passing = self._passing.get((filters, now.date()), state=state)
        if passing is None:
            table = self.index.catalog.document_table()
            documents = dict.fromkeys((*KINDS, None)) if filters.empty else _by_kind(table, lambda info: filters.matches(info, now=now))
            passing = _Passing(documents, {kind: _chunks(table, kind, chosen) for kind, chosen in documents.items()}, {})
            self._passing.put((filters, now.date()), passing, state=state)
        return passing

    def _allowed_numbers(self, passing: _Passing, kind: Kind) -> Allowed | None:
        """Chunks of the passing documents, None when all pass."""
        documents = passing.documents[kind]
        if documents is None:
            return None
        if kind not in passing.numbers:
            passing.numbers[kind] = Allowed(self.index.catalog.chunk_numbers(kind, documents=documents))
        return passing.numbers[kind]

    # ------------------------------------------------------------ after fusion

    def _youths(self, numbers: list[int]) -> list[float]:
        """1 for a chunk of a document dated today (or later), halved at each half-life."""
        half_life = self.options.recency_half_life_days or 1.0
        table, today = self.index.catalog.document_table(), datetime.now(UTC).date()
        days = [document_day(table[d]) if d in table else None for d in self.index.catalog.documents_of(numbers)]
        return [0.5 ** (max(0, (today - day).days) / half_life) if day else 0.0 for day in days]

    def _rerank(self, query: Query, ranked: list[Candidate], stored: dict[int, StoredChunk]) -> bool:
        """Mix the cross-encoder's view of the first hits into their scores; those behind stay where they are."""
        reranker = self._reranker()
        top = ranked[: self.options.rerank_top]
        if reranker is None or not top:
            return False
        started = time.perf_counter()
        logits = reranker.score(query.text, [stored[c.number].chunk.embedding_text for c in top]).tolist()
        for place, i in enumerate(sorted(range(len(top)), key=lambda i: (-logits[i], i)), start=1):
            top[i].scores["rerank"], top[i].ranks["rerank"] = logits[i], place
        fused = [c.fused * query.strengths.get(c.kind, 1.0) for c in top]
        for place, (i, score) in enumerate(mix(fused, logits, RERANK_SHARE)):
            top[i].scores["mixed"], top[i].ranks["mixed"] = score, place + 1
            ranked[place] = top[i]
        query.took("rerank", started)
        return True

    # ------------------------------------------------------------ hits

    def _hits(
        self, query: Query, filters: Filters, ranked: list[Candidate], stored: dict[int, StoredChunk], explain: bool
    ) -> tuple[Hit, ...]:
        sources: dict[str, list[str]] = {}
        for one in stored.values():
            sources.setdefault(one.chunk.text, []).append(one.chunk.source)
        hits, analyzer = [], self.index.analyzer
        for place, candidate in enumerate(ranked, start=1):
            one = stored[candidate.number]
            words = _words(analyzer, query, one) if explain or place <= SPARE else ()
            hits.append(
                Hit(
                    rank=place,
                    chunk_id=one.id,
                    chunk=one.chunk,
                    scores=candidate.scores,
                    ranks=candidate.ranks,
                    terms=words,
                    explanation=_explain(query, filters, candidate, words) if explain else "",
                    date=one.date,
                    tags=one.tags,
                    modified=one.modified,
                    same_text=tuple(dict.fromkeys(s for s in sources[one.chunk.text] if s != one.chunk.source)),
                )
            )
        return tuple(hits)

    def neighbours(self, chunk: Chunk, n: int) -> Chunk:
        """The chunk joined with up to n before and after it in its section; text that they share counts once."""
        if n < 1 or chunk.role == "card":
            return chunk
        around = [s.chunk for s in self.index.catalog.document_chunks(chunk.source, chunk.ordinal - n, chunk.ordinal + n)]
        if chunk.kind == "table":
            return chunk
        around = [c for c in around if c.heading == chunk.heading and c.page == chunk.page and c.role != "card"]
        if len(around) < 2:
            return chunk
        start, end = min(c.start for c in around), max(c.end for c in around)
        text = self.index.catalog.document_text(chunk.source)[start:end]
        return replace(chunk, text=text, start=start, end=end, ordinal=around[0].ordinal)

    def windows(self, chunks: Sequence[Chunk], n: int) -> list[Chunk]:
        """Each chunk joined with its neighbours; what another of them holds, or an earlier one was joined with, is not taken again."""
        taken = [(c.source, c.start, c.end) for c in chunks if c.kind == "text"]
        out = []
        for chunk in chunks:
            joined = self.neighbours(chunk, n)
            if joined is not chunk:
                others = [(s, e) for source, s, e in taken if source == chunk.source and (s, e) != (chunk.start, chunk.end)]
                start = max([joined.start, *(min(e, chunk.start) for s, e in others if s < chunk.start)])
                end = min([joined.end, *(max(s, chunk.end) for s, e in others if e > chunk.end)])
                joined = replace(joined, text=joined.text[start - joined.start : end - joined.start], start=start, end=end)
                taken.append((chunk.source, start, end))
            out.append(joined)
        return out


def _words(analyzer: Analyzer, query: Query, stored: StoredChunk) -> tuple[str, ...]:
    """The query's terms that stand in a chunk or its heading."""
    terms = set(analyzer.terms(f"{stored.chunk.context}\n{stored.chunk.text}"))
    return tuple(term for term, _ in query.terms.terms if term in terms)


def _check(query: str, k: int) -> None:
    if not query.strip():
        raise InputError("The query is empty.", "Type some words.")
    if len(query) > LONGEST_QUERY:
        raise InputError(f"The query has {len(query):,} characters; {LONGEST_QUERY:,} are allowed.", "Ask with fewer words.")
    if not 1 <= k <= MOST_RESULTS:
        raise InputError(f"{k:,} results are asked for.", f"Ask for 1 to {MOST_RESULTS:,}.")


def _by_kind(table: Mapping[int, DocumentInfo], passes: Callable[[DocumentInfo], bool]) -> dict[Kind | None, frozenset[int] | None]:
    """The documents that pass, by kind and (None) of both; None instead of all of them."""
    passing = {number for number, info in table.items() if passes(info)}
    out: dict[Kind | None, frozenset[int] | None] = {}
    for kind in (*KINDS, None):
        every = {number for number, info in table.items() if kind in (None, info.kind)}
        out[kind] = None if every and every <= passing else frozenset(every & passing)
    return out


def _chunks(table: Mapping[int, DocumentInfo], kind: Kind | None, documents: frozenset[int] | None) -> int:
    """How many chunks some documents of a kind have; None: all of them."""
    chosen = table.values() if documents is None else (table[number] for number in documents)
    return sum(info.chunks for info in chosen if kind in (None, info.kind))


def _why_nothing(query: Query) -> str:
    if query.documents(None) == frozenset():
        return "No document passes the filters."
    if query.terms.phrases:
        return "No passage holds the quoted words."
    if query.mode == "keyword" and not query.terms:
        return "The query has no words to look for."
    return "No passage matches."


def _explain(query: Query, filters: Filters, candidate: Candidate, words: tuple[str, ...]) -> str:
    parts = [f"mode {query.mode}"]
    if words:
        parts.append(f"words {', '.join(words)}")
    for stage, score in candidate.scores.items():
        place = f" (place {candidate.ranks[stage]})" if stage in candidate.ranks else ""
        parts.append(f"{stage} {score:.4f}{place}")
    if query.strengths:
        parts.append("evidence " + ", ".join(f"{kind} {value:.2f}" for kind, value in query.strengths.items()))
    if not filters.empty:
        parts.append(f"filters {filters.describe()}")
    return "; ".join(parts)
