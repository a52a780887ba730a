"""The keyword leg: BM25 over terms, by tantivy (on disk) or rank_bm25 (in memory), behind one small contract."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hybrid_rag.analysis import Analyzer, LexicalQuery, is_identifier, normalise
from hybrid_rag.errors import IndexDamagedError
from hybrid_rag.records import KINDS, Kind
from hybrid_rag.storage import storage_error
from hybrid_rag.tantivy_files import META, view

if TYPE_CHECKING:
    import tantivy

CONTEXT_WEIGHT = 0.5  # of title and heading path against the text itself
WRITER_HEAP = 64_000_000  # bytes
LOOKED_AT = 5  # times k and the margin are looked at, so that equal scores are ordered by number at the cut too
TIE_MARGIN = 16
_FIRST_CELL = re.compile(r"(?:\A|\n\n)[^\n:]+: ([^\n]+)")
REBUILD = "Run `hybrid-rag rebuild lexical`."
MOST_TIES = 4096  # hits looked at when all are equal; in larger groups equal scores at the cut keep the engine's order
FEW_DOCUMENTS = 64  # so many are cheap to ask the engine for


@dataclass(frozen=True, slots=True)
class LexicalEntry:
    """One chunk as the keyword leg needs it; ``number`` identifies it, ``document`` its document."""

    number: int
    document: int
    kind: Kind
    text: str
    context: str
    keys: str = ""  # identifiers of the records of a table chunk


def record_keys(text: str) -> str:
    """The identifiers that stand first in the records of a table chunk ("sku: HP-1000").

    A row whose key is asked for then comes before rows that only mention it.
    """
    keys = dict.fromkeys(normalise(key.strip()) for key in _FIRST_CELL.findall(text))
    return " ".join(key for key in keys if is_identifier(key))


class LexicalIndex(Protocol):
    """BM25 search over chunks. Scores are positive, higher is better; a chunk without any query term is no hit."""

    def add(self, entries: Iterable[LexicalEntry]) -> None:
        """Add chunks, replacing those of the same number. Visible after :meth:`commit` and :meth:`reload`."""

    def delete(self, numbers: Iterable[int]) -> None: ...

    def commit(self) -> None: ...

    def reload(self) -> None:
        """See what was last committed, by whichever process."""

    def count(self) -> int: ...

    def numbers(self) -> set[int]: ...

    def search(
        self, query: LexicalQuery, *, k: int, kind: Kind | None = None, documents: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        """(chunk number, score), best first, ties by number; at most k. ``documents`` restricts before the cut."""
        ...

    def document_frequency(self, term: str) -> int:
        """In how many chunks the term occurs (an estimate while deletions are not merged)."""
        ...

    def release(self) -> None:
        """Let other processes write: give back the engine's own write lock. What was not committed is dropped."""
        ...

    def close(self) -> None: ...


class TantivyIndex:
    """The default engine. One writer at a time (the index directory's lock sees to it); any number of readers."""

    def __init__(self, directory: Path, analyzer: Analyzer, *, create: bool = True) -> None:
        """Raises IndexDamagedError, also when there is none and ``create`` is off; IndexStorageError."""
        import tantivy

        self._tantivy, self._analyzer, self._directory = tantivy, analyzer, directory
        self._view: Path | None = None  # links to the files of a folder that cannot be written
        if create:
            directory.mkdir(parents=True, exist_ok=True)
        elif not (directory / META).exists():
            raise IndexDamagedError(f"The keyword index in {directory} is missing.", REBUILD)
        schema = tantivy.SchemaBuilder()
        for name in ("number", "document", "kind"):
            schema.add_integer_field(name, indexed=True, fast=True)
        schema.add_text_field("body", tokenizer_name="whitespace", index_option="position")
        schema.add_text_field("context", tokenizer_name="whitespace", index_option="position")
        schema.add_text_field("keys", tokenizer_name="whitespace", index_option="freq")
        self._schema = schema.build()
        with self._explained():
            if not os.access(directory, os.W_OK):
                self._view = view(directory)
            self._index = tantivy.Index(self._schema, path=str(self._view or directory))
            self._index.config_reader(reload_policy="manual", num_warmers=0)
            self._index.reload()
        self._writer: tantivy.IndexWriter | None = None
        self._tables: tuple[int, int] | None = None  # chunks at the last count, and how many of them are of tables

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """tantivy's errors as ours: a full disk is no damage."""
        try:
            yield
        except (ValueError, OSError) as error:
            damaged = IndexDamagedError(f"The keyword index in {self._directory} cannot be used: {error}", REBUILD)
            raise storage_error(error, f"the keyword index in {self._directory}") or damaged from error

    def add(self, entries: Iterable[LexicalEntry]) -> None:
        writer = self._open_writer()
        for entry in entries:
            self._put(writer, entry)

    def _put(self, writer: tantivy.IndexWriter, entry: LexicalEntry) -> None:
        with self._explained():
            writer.delete_documents_by_term("number", entry.number)
            document = self._tantivy.Document()
            document.add_integer("number", entry.number)
            document.add_integer("document", entry.document)
            document.add_integer("kind", KINDS.index(entry.kind))
            document.add_text("body", " ".join(self._analyzer.terms(entry.text)))
            for name, text in (("context", entry.context), ("keys", entry.keys)):
                if text:
                    document.add_text(name, " ".join(self._analyzer.terms(text)))
            writer.add_document(document)

    def delete(self, numbers: Iterable[int]) -> None:
        writer = self._open_writer()
        with self._explained():
            for number in numbers:
                writer.delete_documents_by_term("number", number)

    def commit(self) -> None:
        with self._explained():
            if self._writer is not None:
                self._writer.commit()
            self._index.reload()

    def reload(self) -> None:
        with self._explained():
            if self._view is not None:
                view(self._directory, self._view)
            self._index.reload()

    def count(self) -> int:
        return self._index.searcher().num_docs

    def numbers(self) -> set[int]:
        searcher = self._index.searcher()
        found = searcher.search(self._tantivy.Query.all_query(), limit=max(1, searcher.num_docs), count=False)
        return set(searcher.fast_field_values("number", [address for _, address in found.hits]))

    def search(
        self, query: LexicalQuery, *, k: int, kind: Kind | None = None, documents: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        documents = None if documents is None else frozenset(documents)
        if not query or k < 1 or (documents is not None and not documents):
            return []
        searcher = self._index.searcher()
        ahead = self._look_ahead(searcher, query, k, kind, documents)
        if ahead is not None:
            return ahead
        built, limit = self._build(query, kind, documents), _limit(k)
        found = searcher.search(built, limit=limit, count=False).hits
        if len(found) == limit < MOST_TIES and _all_equal(found):
            found = searcher.search(built, limit=MOST_TIES, count=False).hits
        return _ranked(zip(self._values(searcher, "number", found), (score for score, _ in found), strict=True), k)

    def _look_ahead(
        self, searcher: Any, query: LexicalQuery, k: int, kind: Kind | None, documents: Collection[int] | None
    ) -> list[tuple[int, float]] | None:
        """The same hits from the first ones of a wider search, when those hold enough of them; None when they do not.

        Worth trying for the kind that most chunks are of, and for many documents: a union of words without conditions is
        several times as fast, and naming thousands of documents to the engine costs milliseconds.
        """
        wide = kind is not None and not self._is_usual(searcher, kind)  # this condition stays
        many = documents is not None and len(documents) > FEW_DOCUMENTS
        if query.phrases or (documents is not None and not many) or (kind is None and not many) or (wide and not many):
            return None
        limit, built = _limit(k), self._build(query, kind if wide else None, None)
        found = searcher.search(built, limit=limit, count=False).hits
        if len(found) == limit < MOST_TIES and _all_equal(found):
            limit, found = MOST_TIES, searcher.search(built, limit=MOST_TIES, count=False).hits
        kinds = self._values(searcher, "kind", found) if kind is not None else []
        owners = self._values(searcher, "document", found) if documents is not None else []
        rows = [
            (number, score)
            for i, (number, (score, _)) in enumerate(zip(self._values(searcher, "number", found), found, strict=True))
            if (kind is None or kinds[i] == KINDS.index(kind)) and (documents is None or owners[i] in documents)
        ]
        if len(found) == limit and len(rows) < k:
            return None
        return _ranked(rows, k)

    def _is_usual(self, searcher: Any, kind: Kind) -> bool:
        """Are most chunks of this kind?"""
        if self._tables is None or self._tables[0] != searcher.num_docs:
            of_tables = self._tantivy.Query.term_query(self._schema, "kind", KINDS.index("table"), "basic")
            self._tables = searcher.num_docs, searcher.search(of_tables, limit=1, count=True).count
        tables = self._tables[1]
        return 2 * (tables if kind == "table" else searcher.num_docs - tables) > searcher.num_docs

    def _values(self, searcher: Any, field: str, found: Any) -> list[int]:
        return searcher.fast_field_values(field, [address for _, address in found])

    def document_frequency(self, term: str) -> int:
        searcher = self._index.searcher()
        return max(searcher.doc_freq(field, term) for field in ("body", "context"))

    def release(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            with contextlib.suppress(ValueError):  # a merge that failed on a full disk; what was committed stands
                writer.wait_merging_threads()

    def close(self) -> None:
        self.release()
        if self._view is not None:
            shutil.rmtree(self._view, ignore_errors=True)
            self._view = None

    def _open_writer(self) -> tantivy.IndexWriter:
        if self._writer is None:
            with self._explained():
                self._writer = self._index.writer(heap_size=WRITER_HEAP, num_threads=1)
        return self._writer

    def _build(self, query: LexicalQuery, kind: Kind | None, documents: Collection[int] | None) -> Any:
        q, must, should = self._tantivy.Query, self._tantivy.Occur.Must, self._tantivy.Occur.Should
        words = []
        for term, boost in query.terms:
            fields = (("body", 1.0), ("context", CONTEXT_WEIGHT), ("keys", CONTEXT_WEIGHT))
            for field, weight in fields if is_identifier(term) else fields[:2]:
                words.append((should, q.boost_query(q.term_query(self._schema, field, term, "freq"), boost * weight)))
        parts = [(must, q.boolean_query(words))]
        parts += [(must, q.const_score_query(self._phrase(phrase), 0.0)) for phrase in query.phrases]
        if kind is not None:
            parts.append((must, q.const_score_query(q.term_query(self._schema, "kind", KINDS.index(kind), "basic"), 0.0)))
        if documents is not None:
            parts.append((must, q.const_score_query(q.term_set_query(self._schema, "document", list(documents)), 0.0)))
        return q.boolean_query(parts) if len(parts) > 1 else q.boolean_query(words)

    def _phrase(self, phrase: tuple[str, ...]) -> Any:
        q, should = self._tantivy.Query, self._tantivy.Occur.Should
        fields = []
        for field in ("body", "context"):
            if len(phrase) == 1:  # tantivy panics on a phrase of one word
                fields.append((should, q.term_query(self._schema, field, phrase[0], "basic")))
            else:
                fields.append((should, q.phrase_query(self._schema, field, list(phrase))))
        return q.boolean_query(fields)


class RankBm25Index:
    """rank_bm25 in memory, built from the catalog whenever it is reloaded. For small collections and comparisons."""

    def __init__(self, source: Callable[[], Iterable[LexicalEntry]], analyzer: Analyzer) -> None:
        self._source, self._analyzer = source, analyzer
        self.reload()

    def add(self, entries: Iterable[LexicalEntry]) -> None:
        """Nothing to do: the catalog is the source."""

    def delete(self, numbers: Iterable[int]) -> None:
        """Nothing to do: the catalog is the source."""

    def commit(self) -> None:
        self.reload()

    def reload(self) -> None:
        corpus = [
            (entry, self._analyzer.terms(entry.text), self._analyzer.terms(f"{entry.context}\n\n{entry.keys}"))
            for entry in sorted(self._source(), key=lambda e: e.number)
        ]
        self._legs = {kind: _Leg([row for row in corpus if row[0].kind == kind]) for kind in KINDS}
        self._all = _Leg(corpus)

    def count(self) -> int:
        return len(self._all.entries)

    def numbers(self) -> set[int]:
        return {entry.number for entry in self._all.entries}

    def search(
        self, query: LexicalQuery, *, k: int, kind: Kind | None = None, documents: Collection[int] | None = None
    ) -> list[tuple[int, float]]:
        if not query or k < 1:
            return []
        leg = self._all if kind is None else self._legs[kind]
        allowed = None if documents is None else set(documents)
        scores = leg.scores(query)
        hits = [
            (entry.number, float(score))
            for entry, texts, score in zip(leg.entries, leg.texts, scores, strict=True)
            if score > 0 and (allowed is None or entry.document in allowed) and all(any(_holds(t, p) for t in texts) for p in query.phrases)
        ]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]

    def document_frequency(self, term: str) -> int:
        return sum(any(term in words for words in texts) for texts in self._all.texts)

    def release(self) -> None:
        """Nothing to do: no lock is held."""

    def close(self) -> None:
        self._all = _Leg([])
        self._legs = dict.fromkeys(KINDS, self._all)


class _Leg:
    """BM25 over one list of entries. Lucene's idf, log(1 + (N - n + .5)/(n + .5)), is never negative or zero."""

    def __init__(self, rows: list[tuple[LexicalEntry, list[str], list[str]]]) -> None:
        self.entries = [entry for entry, _, _ in rows]
        self.texts = [(body, context) for _, body, context in rows]
        self._model = lucene_bm25([body + context or [""] for body, context in self.texts]) if rows else None

    def scores(self, query: LexicalQuery) -> Iterable[float]:
        if self._model is None:
            return []
        return self._model.get_scores([term for term, boost in query.terms for _ in range(int(boost))])


def lucene_bm25(corpus: list[list[str]]) -> Any:
    """A rank_bm25 model over terms, with an idf that is positive for every term: log(1 + (N - n + .5) / (n + .5))."""
    import math

    from rank_bm25 import BM25Okapi

    class LuceneBM25(BM25Okapi):
        def _calc_idf(self, nd: dict[str, int]) -> None:
            self.idf = {term: math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5)) for term, n in nd.items()}

    return LuceneBM25(corpus)


def _ranked(rows: Iterable[tuple[int, float]], k: int) -> list[tuple[int, float]]:
    """The first k of hits by falling score, ties by number; none that scores zero."""
    out: list[tuple[int, float]] = []
    for number, exact in rows:
        score = _rounded(exact)
        if score <= 0 or (len(out) >= k and score != out[k - 1][1]):
            break
        out.append((number, score))
    return sorted(out, key=lambda hit: (-hit[1], hit[0]))[:k]


def _limit(k: int) -> int:
    """How many hits the engine is asked for."""
    return LOOKED_AT * k + TIE_MARGIN


def _all_equal(found: list[tuple[float, Any]]) -> bool:
    return _rounded(found[0][0]) == _rounded(found[-1][0])


def _rounded(score: float) -> float:
    """To five digits: the engine adds up a hit's words in any order, in single precision, and equal texts are to tie."""
    return float(f"{score:.5g}")


def _holds(words: list[str], phrase: tuple[str, ...]) -> bool:
    n = len(phrase)
    return any(tuple(words[i : i + n]) == phrase for i in range(len(words) - n + 1) if words[i] == phrase[0])
