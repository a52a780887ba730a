"""The one composition root: a configuration in, a service out. Interfaces call this and nothing below it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hybrid_rag import query_log
from hybrid_rag.answering import WITHOUT_MODEL, Answerer, AnswerOptions, Thresholds
from hybrid_rag.background import Background
from hybrid_rag.browsing import Related, Timeline, passage, recent, related, timeline, whole_tokens
from hybrid_rag.config import Config, Loaded, load
from hybrid_rag.errors import HybridRagError, IndexDamagedError, IndexVersionError, InputError
from hybrid_rag.files import Files
from hybrid_rag.filters import Filters
from hybrid_rag.index import Index
from hybrid_rag.ingest import IngestOptions, ingest
from hybrid_rag.lock import holder, is_locked
from hybrid_rag.maintenance import Part, Verification, backup, rebuild, reset, restore, sizes, verify
from hybrid_rag.parts import Parts
from hybrid_rag.questions import TableAnswerer
from hybrid_rag.records import (
    MB,
    Answer,
    Chunk,
    DocumentInfo,
    IndexReport,
    Passage,
    Progress,
    Rows,
    SearchMode,
    SearchResult,
    Stats,
    TableCard,
    TableResult,
)
from hybrid_rag.retrieval import RetrievalOptions, Retriever
from hybrid_rag.storing_options import index_options, ingest_options
from hybrid_rag.table_store import SqlLimits, TableStore

if TYPE_CHECKING:
    from hybrid_rag.embedding import Embedder


def open_service(config: str | Path | Loaded | None = None, *, settings: Iterable[str] = (), cold: bool = False) -> Service:
    """Open a service for a configuration (a path, a loaded one, or None for the usual places).

    ``settings`` are "section.key=value" texts. ``cold``: for a process that asks once; vectors are then searched
    without loading Chroma. Nothing is read before the first call. Raises ConfigError.
    """
    loaded = config if isinstance(config, Loaded) else load(config, settings=settings)
    return Service(loaded.config, cold=cold)


class Service:
    """Index, search and ask one collection. Thread-safe; a context manager."""

    def __init__(self, config: Config, *, cold: bool = False) -> None:
        self.config = config
        self.parts = Parts(config)
        self._cold = cold
        logs = config.logging
        self._log = (
            None if logs.query_log == "off" else query_log.QueryLog(self.query_log_path, logs.query_log, int(logs.query_log_mb * MB))
        )
        self._lock = threading.RLock()
        self._opened: tuple[Index, Retriever, Answerer, TableStore, TableAnswerer] | None = None
        self.background = Background(self.index, self._leave)
        self.files = Files(lambda: self._open()[0].catalog, config.data.directory)

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End a run in the background after its present batch, then let go of everything. The next call opens it again."""
        self.background.stop()
        with self._lock:
            if self._opened is not None:
                self._opened[3].close()
                self._opened[0].close()
                self._opened = None
        self.files.close()

    def _leave(self) -> None:
        """Close the calling thread's connection to the catalog."""
        with self._lock:
            if self._opened is not None:
                self._opened[0].catalog.leave()

    # ------------------------------------------------------------ composition

    def _open(self, *, create: bool = False) -> tuple[Index, Retriever, Answerer, TableStore, TableAnswerer]:
        with self._lock:
            if self._opened is None:
                c = self.config
                index = Index(index_options(self.config, cold=self._cold), create=create)
                retriever = Retriever(index, lambda: self._embedder(index), self.parts.reranker, self._retrieval_options())
                answerer = Answerer(retriever, self.parts.chat, self.parts.reranker, self._answer_options())
                limits = SqlLimits(c.tables.max_seconds, c.tables.max_memory_mb, c.tables.max_rows)
                store = TableStore(index.tables_directory, index.catalog.tables, lambda: index.catalog.version, limits=limits)
                tables = TableAnswerer(
                    store, retriever, self.parts.chat, synonyms=c.tables.synonyms, quote_on_failure=c.llm.provider == "auto"
                )
                self._opened = (index, retriever, answerer, store, tables)
            return self._opened

    def _retrieval_options(self) -> RetrievalOptions:
        r = self.config.retrieval
        return RetrievalOptions(
            vector_search_k=r.vector_search_k, keyword_search_k=r.keyword_search_k, csv_weight=r.csv_weight, text_weight=r.text_weight,
            fusion=r.fusion, rrf_k=r.rrf_k, dense_weight=r.dense_weight, candidates=r.candidates,
            separate=self.config.document_processing.use_separate_retrievers, rerank_top=r.rerank_top,
            recency_half_life_days=r.recency_half_life_days, cache_entries=r.cache_entries, remote_seconds=self.config.ollama.query_seconds,
        )  # fmt: skip

    def _answer_options(self) -> AnswerOptions:
        a = self.config.answers
        sure = Thresholds(a.abstain_below, a.support_below, a.coverage_from)
        return AnswerOptions(a.context_chunks, a.max_sentences, sure, a.quote_from, self.config.retrieval.neighbours,
                             quote_on_failure=self.config.llm.provider == "auto")  # fmt: skip

    def _embedder(self, index: Index) -> Embedder | None:
        """The embedder of the index's vectors, for queries: also while those of another, configured by now, are being made."""
        if self.config.embedding.provider == "none" or not index.embedder_name:
            return None
        provider = index.embedder_name.partition(":")[0]
        chosen = provider if self.config.embedding.provider == "auto" or provider == "bundled" else self.config.embedding.provider
        return self.parts.embedder_of(index.embedder_name, chosen)

    def _filters(self, filters: Filters | None) -> Filters:
        """The given filters, or the configured defaults."""
        return filters if filters is not None else Filters.parse(**self.config.retrieval.filters.model_dump())

    # ------------------------------------------------------------ index

    def index(
        self,
        paths: Iterable[str | Path] | None = None,
        *,
        verify: bool = False,
        progress: Callable[[Progress], None] | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> IndexReport:
        """Bring the index up to date with the data folder, or with parts of it.

        Raises DataError, IndexLockedError, EmbedderMismatchError, Cancelled. Files that cannot be read are in the report.
        """
        options = ingest_options(self.config, paths, verify=verify)
        self._check_folder(options)
        index = self._open(create=True)[0]
        index.create()
        provider, notes = self.parts.choose_provider(index.embedder_name)
        current = provider == "bundled" and self._is_bundled(index)
        return ingest(
            index,
            options,
            embedder=lambda: self.parts.embedder(provider) if provider else None,
            current=index.embedder_name if current else None,
            progress=progress,
            cancel=cancel,
            notes=notes,
        )

    def _is_bundled(self, index: Index) -> bool:
        """The index's vectors are those that the bundled model would make now; told without loading it."""
        from hybrid_rag.embedding_onnx import bundled_fingerprint

        return index.fingerprint == bundled_fingerprint(self.config.embedding.document_prefix)

    def _check_folder(self, options: IngestOptions) -> None:
        """A missing folder is an error before an index directory is made."""
        from hybrid_rag.loading.scan import scan

        scan(options.root, below=())

    def report(self) -> IndexReport | None:
        """The report of the last run, with every file that is not, or only partly, read."""
        body = self._open()[0].catalog.last_report()
        return IndexReport.from_dict(body) if body else None

    def stats(self) -> Stats:
        index = self._open()[0]
        index.refresh()
        counts = index.catalog.counts()
        documents = index.catalog.documents()
        by_format: dict[str, int] = {}
        for document in documents:
            by_format[document.format] = by_format.get(document.format, 0) + 1
        parts = sizes(index)
        last = index.catalog.last_report() or {}
        return Stats(
            documents=len(documents),
            chunks=sum(c["chunks"] for c in counts.values()),
            by_kind={kind: {k: v for k, v in c.items() if k != "failed"} for kind, c in counts.items()},
            by_format=dict(sorted(by_format.items())),
            vector_share=round(index.vector_share(), 4),
            generation=index.catalog.generation(),
            embedder=index.embedder_name or "",
            tables=len(index.catalog.tables()),
            size_bytes=sum(parts.values()),
            size_by_part=parts,
            persist_directory=str(index.directory),
            data_directory=str(self.config.data.directory),
            last_run=last.get("started"),
            not_read=len(index.catalog.unread()),
            partly_read=sum(d.status == "partly" for d in documents),
            failed_chunks=sum(c["failed"] for c in counts.values()),
        )

    def warm(self) -> None:
        """Open what the first search needs, so that it is as fast as the others; no model is loaded. Raises as a search does."""
        index = self._open()[0]
        index.catalog.document_table()
        _ = index.lexical
        if index.fingerprint and self.config.embedding.provider != "none":
            index.warm_vectors()
            if (index.embedder_name or "").startswith(("bundled:", "onnx:")):
                from hybrid_rag.onnx_model import libraries

                libraries()

    def lock_holder(self) -> str:
        """Who is writing now, "" when nobody is."""
        directory = self.config.vector_store.persist_directory
        return (holder(directory) or "another process") if is_locked(directory) else ""

    # ------------------------------------------------------------ search and answers

    def search(
        self,
        query: str,
        *,
        k: int | None = None,
        filters: Filters | None = None,
        mode: SearchMode = "hybrid",
        rerank: bool | None = None,
        explain: bool = False,
    ) -> SearchResult:
        """The best passages and table rows. ``rerank`` None: as configured ("auto" leaves plain searches as they are)."""
        r = self.config.retrieval
        wanted = r.rerank == "on" if rerank is None else rerank and r.rerank != "off"
        with self._logged("search", query) as done:
            result = self._open()[1].search(
                query, k=k or r.results, filters=self._filters(filters), mode=mode, rerank=wanted, explain=explain
            )
            done.update(mode=result.mode, hits=len(result.hits), cached=result.cached, milliseconds=result.milliseconds)
        return result

    def ask(
        self,
        question: str,
        *,
        filters: Filters | None = None,
        k: int | None = None,
        on_token: Callable[[str], None] | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> Answer:
        """An answer from a table query, a language model or quotation, or none; with citations that code has checked.

        ``cancel`` stops a model that is writing: then Cancelled is raised."""
        with self._logged("ask", question) as done:
            answer = self._ask(question, filters, k, on_token, cancel)
            done.update(mode=answer.mode, hits=len(answer.hits), abstained=answer.abstained, milliseconds=answer.milliseconds)
        return answer

    def _ask(
        self,
        question: str,
        filters: Filters | None,
        k: int | None,
        on_token: Callable[[str], None] | None,
        cancel: Callable[[], bool] | None,
    ) -> Answer:
        _, _, answerer, _, tables = self._open()
        chosen = self._filters(filters)
        self._open()[0].refresh()
        answer, told = tables.attempt(question, filters=chosen, cancel=cancel)
        if answer is None:
            answer = answerer.answer(question, filters=chosen, k=k, on_token=on_token, cancel=cancel)
            answer = tables.guard(replace(answer, notes=(*answer.notes, *told)), filters=chosen)
        if answer.mode == "table":
            return replace(answer, tokens=answerer.tokens(answer.table.sources if answer.table else ()) | answer.tokens)
        quoted = answer.mode in WITHOUT_MODEL and answer.model is None and answer.citations
        if quoted and (problem := self.parts.chat_note()):
            answer = replace(answer, notes=(*answer.notes, f"{WITHOUT_MODEL[answer.mode]}: {problem}"))
        return answer

    def ask_tables(self, question: str, *, filters: Filters | None = None) -> Answer | None:
        """An answer by one query over the tables; None when the question is none for them, or cannot be read surely."""
        return self._open()[4].answer(question, filters=self._filters(filters))

    # ------------------------------------------------------------ log of queries

    @property
    def query_log_path(self) -> Path:
        return self.config.logging.query_log_file or self.config.vector_store.persist_directory / query_log.FILE_NAME

    @contextmanager
    def _logged(self, call: Literal["search", "ask"], query: str) -> Iterator[dict[str, Any]]:
        """Log a call with what the block says of it, also when it fails; nothing while the log is off."""
        done: dict[str, Any] = {}
        started = time.perf_counter()
        try:
            yield done
        except HybridRagError as error:
            done["error"] = type(error).__name__
            raise
        finally:
            if self._log is not None:
                times = {**done.pop("milliseconds", {}), "total": (time.perf_counter() - started) * 1000}
                self._log.add(call, query, **done, milliseconds={stage: round(value, 2) for stage, value in times.items()})

    # ------------------------------------------------------------ documents and tables

    def documents(self, filters: Filters | None = None) -> list[DocumentInfo]:
        catalog = self._open()[0].catalog
        return [d for d in catalog.documents() if filters is None or filters.matches(d)]

    def chunks(self) -> Iterator[Chunk]:
        """Every indexed chunk, in the order of indexing."""
        return (stored.chunk for stored in self._open()[0].catalog.iterate_chunks())

    def read(
        self,
        source: str,
        *,
        page: int | None = None,
        rows: Rows | None = None,
        heading: str | None = None,
        chunk: str | None = None,
        window: int = 0,
        start: int | None = None,
        max_tokens: int | None = None,
    ) -> Passage:
        """A part of a document; see :func:`hybrid_rag.browsing.passage`."""
        index, _, _, store, _ = self._open()
        asked = {"page": page, "rows": rows, "heading": heading, "chunk": chunk, "start": start}
        return passage(index.catalog, store, source, **asked, window=window, max_tokens=max_tokens)

    def whole_tokens(self, sources: Iterable[str]) -> int:
        """What loading whole documents would cost, in tokens (estimate)."""
        return whole_tokens(self._open()[0].catalog, sources)

    def generation(self) -> int:
        """Grows with every change of the index."""
        return self._open()[0].catalog.generation()

    def related(self, source: str, k: int = 5) -> list[Related]:
        return related(self._open()[1], source, k)

    def recent(self, k: int = 10, filters: Filters | None = None) -> list[DocumentInfo]:
        return recent(self._open()[0].catalog, k, filters)

    def timeline(self, what: str, before: int = 3, after: int = 3, filters: Filters | None = None) -> Timeline:
        return timeline(self._open()[1], what, before, after, filters)

    def tables(self) -> list[TableCard]:
        return self._open()[3].cards()

    def sql(self, statement: str) -> TableResult:
        """One read-only SELECT over the tables. Raises SqlRejectedError, SqlLimitError, TableError."""
        return self._open()[3].query(statement)

    # ------------------------------------------------------------ care

    def verify(self) -> Verification:
        return verify(self._open()[0])

    def rebuild(self, part: Part = "all", **run: Any) -> IndexReport | None:
        """Make legs again from the catalog. ``all`` with a catalog that cannot be read, wherever the damage is: a new index
        from the documents."""
        try:
            index = self._open()[0]
            if part == "all":
                index.catalog.check()
            rebuild(index, part)
            return self.index(**run) if part == "all" else None
        except (IndexDamagedError, IndexVersionError):
            if part != "all":
                raise
        self.close()
        reset(self.config.vector_store.persist_directory)
        return self.index(**run)

    def backup(self, destination: str | Path) -> None:
        backup(self._open()[0], Path(destination))

    def restore(self, source: str | Path) -> None:
        self.close()
        restore(Path(source), self.config.vector_store.persist_directory)
        with self._open()[0].writer():
            pass  # opening for writing makes the legs again from the catalog

    def reset(self) -> None:
        """Delete the index, on a Chroma server too; the documents stay. Raises IndexEmptyError, IndexLockedError."""
        if self.config.vector_store.mode == "server":
            index = self._open()[0]
            if index.fingerprint:
                index.open_vectors(index.fingerprint).clear()
        self.close()
        reset(self.config.vector_store.persist_directory)


def parse_rows(text: str) -> Rows:
    """ "5" or "5-9" as (first, last). Raises InputError."""
    first, _, last = text.partition("-")
    try:
        return int(first), int(last or first)
    except ValueError:
        raise InputError(f"{text!r} are no rows.", "Write 5 or 5-9.") from None
