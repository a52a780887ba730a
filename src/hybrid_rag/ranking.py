"""From a query to candidates in order: two legs a kind, fused, and the kinds given their places.

Nothing here knows of models, caches or records for people; candidates are chunk numbers with their scores by stage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from hybrid_rag.analysis import LexicalQuery, holds
from hybrid_rag.fusion import combine, evidence, fuse, fuse_classic, places
from hybrid_rag.index import Index
from hybrid_rag.records import KINDS, Kind, SearchMode
from hybrid_rag.vectors import Allowed

if TYPE_CHECKING:
    import numpy as np

PHRASE_HITS = 2000  # chunks looked at for holding the quoted words exactly
COSINE_SPAN = 0.1  # smaller differences than this are not stretched to the whole range: among few chunks they are noise
LARGE = 65_536  # chunks that pass; of more, both legs of a kind are searched at a time: shorter than that a thread is no gain
RECENCY_SHARE = 0.3  # of a hit's fused score, that age can take away
Scored = list[tuple[int, float]]
_beside = ThreadPoolExecutor(max_workers=4, thread_name_prefix="vectors")  # no thread starts before it is needed


@dataclass(frozen=True, slots=True)
class RetrievalOptions:
    """As the section `retrieval` of the configuration; ``separate`` is `document_processing.use_separate_retrievers`."""

    vector_search_k: int = 5
    keyword_search_k: int = 5
    csv_weight: float = 0.4
    text_weight: float = 0.6
    fusion: Literal["weighted", "rrf", "classic"] = "weighted"
    rrf_k: int = 10
    dense_weight: float = 0.4
    candidates: int = 100
    separate: bool = True
    rerank_top: int = 10
    recency_half_life_days: float | None = None
    cache_entries: int = 256
    remote_seconds: float = 5.0  # how long a search waits for the vector of its query from a server

    @property
    def wants_dense(self) -> bool:
        return self.vector_search_k > 0 and (self.dense_weight > 0 or self.fusion == "classic")

    @property
    def wants_keywords(self) -> bool:
        return self.keyword_search_k > 0 and (self.dense_weight < 1 or self.fusion == "classic")


@dataclass(slots=True)
class Candidate:
    """A chunk on its way through the stages. ``kind``: "table", "text", or "" when the kinds are searched together."""

    number: int
    kind: str
    scores: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)

    @property
    def fused(self) -> float:
        """The score by which it stands where it does, before any cross-encoder."""
        return next(self.scores[stage] for stage in ("recency", "weighted", "rrf") if stage in self.scores)


@dataclass(slots=True)
class Pool:
    """Candidates in their ``order``, each made when it is asked for: most never are. ``lexical`` and ``dense``: the legs' hits, best first."""

    kind: str
    lexical: Scored
    dense: Scored
    order: list[int] = field(default_factory=list)
    kinds: dict[int, str] = field(default_factory=dict)  # of candidates of another kind than ``kind``
    marks: dict[str, dict[int, tuple[int, float]]] = field(default_factory=dict)  # stage -> chunk number -> (place, score)

    def mark(self, stage: str, ranked: Scored) -> None:
        marks = {number: (place, score) for place, (number, score) in enumerate(ranked, start=1)}
        self.marks.setdefault(stage, {}).update(marks)

    def __iter__(self) -> Iterator[Candidate]:
        for number in self.order:
            found = {stage: marks[number] for stage, marks in self.marks.items() if number in marks}
            scores, ranks = {stage: score for stage, (_, score) in found.items()}, {stage: place for stage, (place, _) in found.items()}
            yield Candidate(number, self.kinds.get(number, self.kind), scores, ranks)


@dataclass(slots=True)
class Query:
    """One search with everything that the stages need, and what they note down."""

    text: str
    terms: LexicalQuery
    k: int
    mode: SearchMode
    documents: Callable[[Kind | None], frozenset[int] | None]  # of a kind (None: of both) that pass the filters; None: all
    numbers: Callable[[Kind], Allowed | None]  # chunks of those documents; None: all
    passing: Callable[[Kind | None], int]  # how many chunks those documents have
    youth: Callable[[list[int]], list[float]] | None = None  # of each chunk's document, 1 (today) to 0; None: age is no matter
    vector: np.ndarray | None = None
    fingerprint: str = ""  # of the embedder that made ``vector``; "" when that is not known
    failed: bool = False  # the embedder failed, or was too slow, this time
    notes: list[str] = field(default_factory=list)
    milliseconds: dict[str, float] = field(default_factory=dict)
    strengths: dict[str, float] = field(default_factory=dict)

    def took(self, stage: str, started: float) -> None:
        self.milliseconds[stage] = self.milliseconds.get(stage, 0.0) + (time.perf_counter() - started) * 1000


def rank(index: Index, options: RetrievalOptions, query: Query) -> Iterator[Candidate]:
    """All candidates, best first, placed as they are asked for. Notes ``strengths`` and the legs' times in the query."""
    kinds: tuple[Kind | None, ...] = KINDS if options.separate else (None,)
    if options.fusion == "classic":
        return iter(_rank_classic(index, options, query, kinds))
    pools = {kind or "": _pool(index, options, query, kind) for kind in kinds}
    if not options.separate:
        return iter(pools[""])
    query.strengths = strengths(pools, options.dense_weight)
    next_of = {kind: iter(pool) for kind, pool in pools.items()}
    order = places(query.strengths, _kind_weights(options), {kind: len(pool.order) for kind, pool in pools.items()})
    return (next(next_of[kind]) for kind in order)


def strengths(pools: dict[str, Pool], dense_weight: float) -> dict[str, float]:
    """How well the best of each kind matches, 0..1, by both legs on one scale for all kinds.

    BM25 is comparable, for both kinds share one index and its statistics; so is the cosine, for one embedder made both.
    """
    keyword = {kind: pool.lexical[0][1] if pool.lexical else 0.0 for kind, pool in pools.items()}
    dense = {kind: pool.dense[0][1] if pool.dense else -1.0 for kind, pool in pools.items()}
    lowest = [pool.dense[-1][1] for pool in pools.values() if pool.dense]
    weight = (dense_weight if any(keyword.values()) else 1.0) if lowest else 0.0
    by_words = evidence(keyword, max(keyword.values(), default=0.0))
    by_meaning = evidence(dense, max(dense.values()) if lowest else 0.0, min(lowest, default=0.0))
    return {kind: (1 - weight) * by_words[kind] + weight * by_meaning[kind] if pools[kind].order else 0.0 for kind in pools}


def _kind_weights(options: RetrievalOptions) -> dict[str, float]:
    return {"table": options.csv_weight, "text": options.text_weight, "": 1.0}


def _pool(index: Index, options: RetrievalOptions, query: Query, kind: Kind | None) -> Pool:
    """Candidates of one kind (or of both together), fused from the two legs."""
    depth = max(options.candidates, query.k)
    lexical, dense = _legs(index, options, query, kind, depth, depth)
    weight = {"hybrid": options.dense_weight, "dense": 1.0, "keyword": 0.0}[query.mode]
    if options.fusion == "rrf":
        stage, fused = "rrf", fuse([[n for n, _ in lexical], [n for n, _ in dense]], [1 - weight, weight], k=options.rrf_k)
    else:
        floors = [lexical[-1][1] if len(lexical) == depth else 0.0, min(dense[-1][1], dense[0][1] - COSINE_SPAN) if dense else 0.0]
        stage, fused = "weighted", combine([lexical, dense], [1 - weight, weight], floors)
    pool = Pool(kind or "", lexical, dense)
    pool.mark("bm25", lexical)
    pool.mark("cosine", dense)
    return _aged(query, pool, fused, stage)


def _rank_classic(index: Index, options: RetrievalOptions, query: Query, kinds: tuple[Kind | None, ...]) -> Pool:
    """Nested ensembles: .5/.5 inside a kind, the kinds' weights outside, k = 60 in both, legs cut to their k (or the search's)."""
    pool = Pool("", [], [])
    keyword_k, dense_k = (max(k, query.k) if k else 0 for k in (options.keyword_search_k, options.vector_search_k))
    rankings, weights = [], []
    for kind in kinds:
        lexical, dense = _legs(index, options, query, kind, keyword_k, dense_k)
        pool.mark("bm25", lexical)
        pool.mark("cosine", dense)
        pool.kinds.update((number, kind or "") for number, _ in (*lexical, *dense))
        rankings.append([n for n, _ in fuse_classic([[n for n, _ in lexical], [n for n, _ in dense]], [0.5, 0.5])])
        weights.append(_kind_weights(options)[kind or ""])
    return _aged(query, pool, fuse_classic(rankings, weights), "rrf")


def _aged(query: Query, pool: Pool, fused: Scored, stage: str) -> Pool:
    """The pool in the fused order, or in that order mixed with its candidates' age."""
    pool.mark(stage, fused)
    if query.youth is not None:
        youths = query.youth([number for number, _ in fused])
        aged = [(number, score * (1 - RECENCY_SHARE * (1 - youth))) for (number, score), youth in zip(fused, youths, strict=True)]
        fused = sorted(aged, key=lambda hit: -hit[1])
        pool.mark("recency", fused)
    pool.order = [number for number, _ in fused]
    return pool


def _legs(index: Index, options: RetrievalOptions, query: Query, kind: Kind | None, keyword_k: int, dense_k: int) -> tuple[Scored, Scored]:
    """(keyword hits, dense hits) of one kind. Quoted words must occur in the hits of both."""
    documents = query.documents(kind)
    if documents is not None and not documents:
        return [], []
    searched_beside: Future[tuple[Scored, float]] | None = None
    if query.vector is not None and not query.terms.phrases and query.mode != "dense" and query.passing(kind) > LARGE:
        searched_beside = _beside.submit(_timed, lambda: _dense(index, query, kind, dense_k, None))
    started = time.perf_counter()
    kind_of_words = kind if documents is None else None  # those documents are of no other kind
    holding: Scored | None = _holding(index, query, kind_of_words, documents) if query.terms.phrases else None
    lexical: Scored = []
    if query.mode != "dense" and options.wants_keywords:
        lexical = (
            holding if holding is not None else index.lexical.search(query.terms, k=keyword_k, kind=kind_of_words, documents=documents)
        )
    query.took("keyword", started)
    dense, seconds = searched_beside.result() if searched_beside else _timed(lambda: _dense(index, query, kind, dense_k, holding))
    query.took("dense", time.perf_counter() - seconds)
    return lexical[:keyword_k], dense


def _timed(search: Callable[[], Scored]) -> tuple[Scored, float]:
    """Hits, and the seconds that it took."""
    started = time.perf_counter()
    return search(), time.perf_counter() - started


def _holding(index: Index, query: Query, kind: Kind | None, documents: frozenset[int] | None) -> Scored:
    """Keyword hits that hold the quoted words exactly (the index alone knows stems), best first."""
    hits = index.lexical.search(query.terms, k=PHRASE_HITS, kind=kind, documents=documents)
    stored = index.catalog.chunks([n for n, _ in hits])
    return [
        (number, score)
        for number, score in hits
        if number in stored and holds(f"{stored[number].chunk.context}\n\n{stored[number].chunk.text}", query.terms.quoted)
    ]


def _dense(index: Index, query: Query, kind: Kind | None, k: int, holding: Scored | None) -> Scored:
    import numpy as np

    if query.vector is None or k < 1:
        return []
    held = Allowed(np.array(sorted(n for n, _ in holding), np.int64)) if holding is not None else None
    hits: Scored = []
    for one in (kind,) if kind else KINDS:
        allowed = held if held is not None else query.numbers(one)
        hits += index.search_vectors(one, query.vector, k=k, numbers=allowed, fingerprint=query.fingerprint)
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]
