"""Which table an identifier is asked of: its key stands in several, and the question's other words name one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hybrid_rag.analysis import IDENTIFIER_BOOST, Analyzer, LexicalQuery, is_identifier
from hybrid_rag.lexical import record_keys

if TYPE_CHECKING:
    from hybrid_rag.catalog_schema import StoredChunk
    from hybrid_rag.ranking import Candidate


def named_first(analyzer: Analyzer, query: LexicalQuery, ranked: list[Candidate], stored: Mapping[int, StoredChunk]) -> None:
    """Let the rows whose key is the query's identifier, and whose table's name has words of the query, exchange places.

    "Which product has the SKU HP-2352?": the key stands in ``inventory`` and in ``product catalog``; the latter comes first. Only
    such rows change places, among themselves; the most words first, else in the order that they had. Their number of words is
    noted under the stage "named" when that changes anything.
    """
    identifiers = {term for term, boost in query.terms if boost >= IDENTIFIER_BOOST and is_identifier(term)}
    if not identifiers:
        return
    words = {term for term, _ in query.terms} - {part for identifier in identifiers for part in analyzer.terms(identifier)}
    matched: dict[int, int] = {}
    for place, candidate in enumerate(ranked):
        chunk = stored[candidate.number].chunk
        if chunk.kind == "table" and chunk.role == "body" and identifiers <= set(record_keys(chunk.text).split()):
            matched[place] = len(words & set(analyzer.terms(chunk.context)))
    order = sorted(matched, key=lambda place: (-matched[place], place))
    if order == list(matched):
        return
    for rank, (place, candidate) in enumerate(zip(matched, [ranked[place] for place in order], strict=True), start=1):
        candidate.scores["named"], candidate.ranks["named"] = float(matched[order[rank - 1]]), rank
        ranked[place] = candidate
