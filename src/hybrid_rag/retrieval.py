"""Search: two legs a kind, fused; kinds given their places; filters inside, before any cut; optional cross-encoder."""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from hybrid_rag.analysis import LexicalQuery
from hybrid_rag.errors import EmbeddingError, InputError, OllamaError
from hybrid_rag.filters import Filters, document_day
from hybrid_rag.fusion import evidence, fuse, fuse_classic, places
from hybrid_rag.index import Index
from hybrid_rag.records import KINDS, Chunk, Hit, Kind, SearchMode, SearchResult

if TYPE_CHECKING:
    import numpy as np

    from hybrid_rag.catalog_schema import StoredChunk
    from hybrid_rag.embedding import Embedder
    from hybrid_rag.reranking import Reranker

LONGEST_QUERY = 10_000  # characters; more is no query
RECENCY_SHARE = 0.5  # of the score that age can take away
QUERY_VECTORS = 512  # query vectors kept
OTHERS_EVIDENCE = 0.4  # of a kind that does not hold the identifier asked for, while the other does
_IDENTIFIER = re.compile(r"(?=.*\d)(?=.*[^\W\d_])[\w./:-]{4,}")
PHRASE_HITS = 10_000  # chunks looked at for holding a quoted phrase


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """As the section `retrieval` of the configuration."""

    vector_search_k: int = 5
    keyword_search_k: int = 5
    csv_weight: float = 0.4
    text_weight: float = 0.6
    fusion: Literal["weighted", "classic"] = "weighted"
    rrf_k: int = 10
    dense_weight: float = 0.3
    candidates: int = 50
    separate: bool = True
    rerank_top: int = 10
    recency_half_life_days: float | None = None
    cache_entries: int = 256


@dataclass(slots=True)
class _Candidate:
    """A chunk on its way through the stages."""

    number: int
    kind: str
    scores: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Query:
    """One search with everything that the stages need."""

    text: str
    terms: LexicalQuery
    k: int
    mode: SearchMode
    documents: set[int] | None
    vector: np.ndarray | None = None
    notes: list[str] = field(default_factory=list)
    milliseconds: dict[str, float] = field(default_factory=dict)
    evidence: dict[str, float] = field(default_factory=dict)
    exact: dict[str, list[int]] = field(default_factory=dict)  # by kind: chunks that hold every identifier of the query


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
        self._lock = threading.Lock()
        self._cache: OrderedDict[Any, SearchResult] = OrderedDict()
        self._query_vectors: OrderedDict[tuple[str, str], np.ndarray] = OrderedDict()
        self._allowed: tuple[Any, set[int]] = (None, set())

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
        """The k best chunks. Raises InputError for an empty query, IndexError_ for an unusable index.

        ``vector``: the query's embedding, when the caller has it. What could not be used (no vectors yet, no embedder)
        is in the result's ``mode`` and ``notes``.
        """
        if not query.strip():
            raise InputError("The query is empty.", "Type some words.")
        if len(query) > LONGEST_QUERY:
            raise InputError(f"The query has {len(query):,} characters; {LONGEST_QUERY:,} are allowed.", "Ask with fewer words.")
        self.index.refresh()
        key = (query, k, filters, mode, rerank, explain, self.index.catalog.generation()) if vector is None else None
        if key is not None and (held := self._cached(key)):
            return replace(held, cached=True)
        result = self._search(query, k, filters or Filters(), mode, rerank, vector, explain)
        if key is not None:
            self._keep(key, result)
        return result

    def _search(
        self, text: str, k: int, filters: Filters, mode: SearchMode, rerank: bool, vector: np.ndarray | None, explain: bool
    ) -> SearchResult:
        started = time.perf_counter()
        query = _Query(text, self.index.analyzer.query(text), k, mode, self._documents(filters))
        share = self.index.vector_share()
        self._prepare_vector(query, vector)
        ranked = self._rank(query)
        if self.options.recency_half_life_days:
            self._prefer_recent(ranked, self.options.recency_half_life_days)
        depth = max(k, self.options.rerank_top) if rerank else k
        stored = self.index.catalog.chunks([c.number for c in ranked[: 2 * depth + 10]])
        ranked = [c for c in ranked if c.number in stored]
        reranked = rerank and self._rerank(query, ranked, stored)
        hits = tuple(self._hit(query, filters, c, stored[c.number], rank, explain) for rank, c in enumerate(ranked[:k], start=1))
        query.milliseconds["search"] = (time.perf_counter() - started) * 1000
        return SearchResult(text, query.mode, hits, share, bool(reranked), False, query.milliseconds, tuple(query.notes))

    def _prepare_vector(self, query: _Query, vector: np.ndarray | None) -> None:
        """The query's vector, when the dense leg can be used; else the mode becomes "keyword"."""
        if query.mode == "keyword" or (query.mode == "hybrid" and not self._wants_dense):
            query.mode = "keyword"
            return
        query.vector = vector if vector is not None else self._embed(query)
        if query.vector is None:
            query.mode = "keyword"

    @property
    def _wants_dense(self) -> bool:
        return self.options.vector_search_k > 0 and (self.options.dense_weight > 0 or self.options.fusion == "classic")

    def _embed(self, query: _Query) -> np.ndarray | None:
        if not self.index.fingerprint:
            query.notes.append("No vectors yet: found by keywords.")
            return None
        started = time.perf_counter()
        try:
            model = self._embedder()
            if model is None or model.fingerprint != self.index.fingerprint:
                query.notes.append(f"Found by keywords: the index's vectors are of {self.index.embedder_name}, which is not configured.")
                return None
            vector = self._query_vector(model, query.text)
        except (OllamaError, EmbeddingError) as error:
            query.notes.append(f"Found by keywords: {error.message}")
            return None
        query.milliseconds["embed"] = (time.perf_counter() - started) * 1000
        return vector

    def _query_vector(self, model: Embedder, text: str) -> np.ndarray:
        key = (model.fingerprint, text)
        with self._lock:
            if key in self._query_vectors:
                self._query_vectors.move_to_end(key)
                return self._query_vectors[key]
        vector = model.embed_query(text)
        with self._lock:
            self._query_vectors[key] = vector
            while len(self._query_vectors) > QUERY_VECTORS:
                self._query_vectors.popitem(last=False)
        return vector

    # ------------------------------------------------------------ filters

    def _documents(self, filters: Filters) -> set[int] | None:
        """Numbers of the documents that pass, None when all do."""
        if filters.empty:
            return None
        now = datetime.now(UTC)
        key = (self.index.catalog.generation(), filters, now.date())
        if self._allowed[0] != key:
            table = self.index.catalog.document_table()
            self._allowed = (key, {number for number, info in table.items() if filters.matches(info, now=now)})
        return self._allowed[1]

    def _allowed_numbers(self, query: _Query, kind: Kind | None) -> np.ndarray | None:
        if query.documents is None:
            return None
        return self.index.catalog.chunk_numbers(kind, documents=query.documents)

    # ------------------------------------------------------------ legs and fusion

    def _rank(self, query: _Query) -> list[_Candidate]:
        if self.options.fusion == "classic":
            return self._rank_classic(query)
        kinds: tuple[Kind | None, ...] = KINDS if self.options.separate else (None,)
        pools = {kind or "all": self._pool(query, kind) for kind in kinds}
        if not self.options.separate:
            return pools["all"]
        strengths = self._strengths(pools)
        if query.exact:
            strengths = {kind: 1.0 if kind in query.exact else OTHERS_EVIDENCE * s for kind, s in strengths.items()}
        query.evidence = strengths
        weights = {"table": self.options.csv_weight, "text": self.options.text_weight}
        order = places(strengths, weights, {kind: len(pool) for kind, pool in pools.items()}, sum(map(len, pools.values())))
        taken = dict.fromkeys(pools, 0)
        out: list[_Candidate] = []
        for kind in order:
            out.append(pools[kind][taken[kind]])
            taken[kind] += 1
        return out

    def _pool(self, query: _Query, kind: Kind | None) -> list[_Candidate]:
        """Candidates of one kind (or of both), fused from the two legs."""
        lexical, dense = self._legs(query, kind, self.options.candidates, self.options.candidates)
        if query.mode == "dense":
            lexical = []
        found = self._collect(kind, lexical, dense)
        weight = self.options.dense_weight if query.mode == "hybrid" else 1.0 if query.mode == "dense" else 0.0
        fused = fuse([[n for n, _ in lexical], [n for n, _ in dense]], [1.0 - weight, weight], k=self.options.rrf_k)
        if query.mode == "hybrid" and (exact := self._exact(query, kind)):
            query.exact[kind or "all"] = exact
            fused.sort(key=lambda item: item[0] not in exact)  # stable: an exact identifier first
        for rank, (number, score) in enumerate(fused, start=1):
            found[number].scores["rrf"], found[number].ranks["rrf"] = score, rank
        return [found[number] for number, _ in fused]

    def _exact(self, query: _Query, kind: Kind | None) -> list[int]:
        """Chunks that hold every identifier of the query (WC-2024-00318), when they are few."""
        wanted = [term for term, _ in query.terms.terms if _IDENTIFIER.fullmatch(term)]
        if not wanted:
            return []
        must = LexicalQuery(tuple((term, 1.0) for term in wanted), tuple((term,) for term in wanted))
        found = self.index.lexical.search(must, k=self.options.candidates, kind=kind, documents=query.documents)
        return [number for number, _ in found] if len(found) < self.options.candidates else []

    def _legs(self, query: _Query, kind: Kind | None, keyword_k: int, dense_k: int) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
        started = time.perf_counter()
        lexical: list[tuple[int, float]] = []
        if self.options.keyword_search_k and (query.mode != "dense" or query.terms.phrases):
            lexical = self.index.lexical.search(query.terms, k=max(keyword_k, query.k), kind=kind, documents=query.documents)
        then = time.perf_counter()
        dense = self._dense(query, kind, max(dense_k, query.k)) if query.vector is not None else []
        _add(query.milliseconds, "keyword", then - started)
        _add(query.milliseconds, "dense", time.perf_counter() - then)
        return lexical, dense

    def _dense(self, query: _Query, kind: Kind | None, k: int) -> list[tuple[int, float]]:
        vectors = self.index.vectors
        if vectors is None or query.vector is None:
            return []
        hits: list[tuple[int, float]] = []
        for one in (kind,) if kind else KINDS:
            hits += vectors.search(one, query.vector, k=k, numbers=self._allowed_numbers(query, one))
        if query.terms.phrases:
            holding = {n for n, _ in self.index.lexical.search(query.terms, k=PHRASE_HITS, kind=kind, documents=query.documents)}
            hits = [hit for hit in hits if hit[0] in holding]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]

    def _collect(self, kind: Kind | None, lexical: list[tuple[int, float]], dense: list[tuple[int, float]]) -> dict[int, _Candidate]:
        found: dict[int, _Candidate] = {}
        for stage, hits in (("bm25", lexical), ("cosine", dense)):
            for rank, (number, score) in enumerate(hits, start=1):
                candidate = found.setdefault(number, _Candidate(number, kind or ""))
                candidate.scores[stage], candidate.ranks[stage] = score, rank
        return found

    def _strengths(self, pools: dict[str, list[_Candidate]]) -> dict[str, float]:
        """How well each kind's best hits match, 0..1: BM25 and cosine as shares of the best of both kinds."""
        weight = self.options.dense_weight if any("cosine" in c.scores for pool in pools.values() for c in pool) else 0.0
        keyword = {kind: max((c.scores.get("bm25", 0.0) for c in pool), default=0.0) for kind, pool in pools.items()}
        if not any(keyword.values()):
            weight = 1.0
        cosines = [c.scores["cosine"] for pool in pools.values() for c in pool if "cosine" in c.scores]
        dense = {kind: max((c.scores.get("cosine", -1.0) for c in pool), default=-1.0) for kind, pool in pools.items()}
        lexical_share = evidence(keyword, max(keyword.values(), default=0.0))
        dense_share = evidence(dense, max(cosines, default=0.0), min(cosines, default=0.0))
        return {kind: (1 - weight) * lexical_share[kind] + weight * dense_share[kind] if pools[kind] else 0.0 for kind in pools}

    def _rank_classic(self, query: _Query) -> list[_Candidate]:
        """Nested ensembles: .5/.5 inside a kind, the kinds' weights outside, k = 60 in both, legs cut to their k."""
        kinds: tuple[Kind | None, ...] = KINDS if self.options.separate else (None,)
        found: dict[int, _Candidate] = {}
        rankings, weights = [], []
        for kind in kinds:
            lexical, dense = self._legs(query, kind, self.options.keyword_search_k, self.options.vector_search_k)
            lexical, dense = lexical[: self.options.keyword_search_k], dense[: self.options.vector_search_k]
            found.update(self._collect(kind, lexical, dense))
            rankings.append([n for n, _ in fuse_classic([[n for n, _ in lexical], [n for n, _ in dense]], [0.5, 0.5])])
            weights.append(1.0 if kind is None else self.options.csv_weight if kind == "table" else self.options.text_weight)
        for rank, (number, score) in enumerate(fused := fuse_classic(rankings, weights), start=1):
            found[number].scores["rrf"], found[number].ranks["rrf"] = score, rank
        return [found[number] for number, _ in fused]

    # ------------------------------------------------------------ after fusion

    def _prefer_recent(self, ranked: list[_Candidate], half_life: float) -> None:
        """Age takes away up to a share of a hit's reciprocal rank: half of it at each half-life."""
        table = self.index.catalog.document_table()
        stored = dict(zip((c.number for c in ranked), self.index.catalog.documents_of([c.number for c in ranked]), strict=True))
        today = datetime.now(UTC).date()
        for rank, candidate in enumerate(ranked, start=1):
            info = table.get(stored[candidate.number])
            age = max(0, (today - document_day(info)).days) if info else 0
            youth = 0.5 ** (age / half_life)
            candidate.scores["recency"] = (1 - RECENCY_SHARE + RECENCY_SHARE * youth) / (self.options.rrf_k + rank)
        ranked.sort(key=lambda c: (-c.scores["recency"], c.number))

    def _rerank(self, query: _Query, ranked: list[_Candidate], stored: dict[int, StoredChunk]) -> bool:
        """Fuse the cross-encoder's order of the first hits with their present order."""
        reranker = self._reranker()
        top = ranked[: self.options.rerank_top]
        if reranker is None or not top:
            return False
        started = time.perf_counter()
        logits = reranker.score(query.text, [stored[c.number].chunk.embedding_text for c in top])
        for candidate, logit in zip(top, logits, strict=True):
            candidate.scores["rerank"] = float(logit)
        by_logit = sorted(top, key=lambda c: (-c.scores["rerank"], c.number))
        for rank, candidate in enumerate(by_logit, start=1):
            candidate.ranks["rerank"] = rank
        held = {c.number: c for c in top}
        order = fuse([[c.number for c in top], [c.number for c in by_logit]], [0.5, 0.5], k=self.options.rrf_k)
        ranked[: len(top)] = [held[number] for number, _ in order]
        query.milliseconds["rerank"] = (time.perf_counter() - started) * 1000
        return True

    def _hit(self, query: _Query, filters: Filters, candidate: _Candidate, stored: StoredChunk, rank: int, explain: bool) -> Hit:
        words = self._words(query, stored) if explain or rank <= 10 else ()
        return Hit(
            rank=rank,
            chunk_id=stored.id,
            chunk=stored.chunk,
            scores=candidate.scores,
            ranks=candidate.ranks,
            terms=words,
            explanation=_explain(query, filters, candidate, words) if explain else "",
            date=stored.date,
            tags=stored.tags,
            modified=stored.modified,
        )

    def _words(self, query: _Query, stored: StoredChunk) -> tuple[str, ...]:
        terms = set(self.index.analyzer.terms(f"{stored.chunk.context}\n{stored.chunk.text}"))
        return tuple(term for term, _ in query.terms.terms if term in terms)

    # ------------------------------------------------------------ cache, neighbours

    def _cached(self, key: Any) -> SearchResult | None:
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
            return self._cache.get(key)

    def _keep(self, key: Any, result: SearchResult) -> None:
        with self._lock:
            if self._cache and next(reversed(self._cache))[-1] != key[-1]:
                self._cache.clear()  # the index has changed
            self._cache[key] = result
            while len(self._cache) > self.options.cache_entries:
                self._cache.popitem(last=False)

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


def _add(milliseconds: dict[str, float], stage: str, seconds: float) -> None:
    milliseconds[stage] = milliseconds.get(stage, 0.0) + seconds * 1000


def _explain(query: _Query, filters: Filters, candidate: _Candidate, words: tuple[str, ...]) -> str:
    parts = [f"mode {query.mode}"]
    if words:
        parts.append(f"words {', '.join(words)}")
    for stage, score in candidate.scores.items():
        place = f" (place {candidate.ranks[stage]})" if stage in candidate.ranks else ""
        parts.append(f"{stage} {score:.4f}{place}")
    if query.evidence:
        parts.append("evidence " + ", ".join(f"{kind} {value:.2f}" for kind, value in query.evidence.items()))
    if not filters.empty:
        parts.append(f"filters {filters.describe()}")
    return "; ".join(parts)
