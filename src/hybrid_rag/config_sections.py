"""The sections of the configuration: every key with its type, range, default and meaning.

docs/configuration.md is made from them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

Weight = Annotated[float, Field(ge=0.0, le=1.0)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @model_validator(mode="before")
    @classmethod
    def _on_and_off_are_words(cls, values: Any) -> Any:
        """YAML reads a bare `on` or `off` as a truth value; where these words are choices they are meant."""
        if not isinstance(values, dict):
            return values
        choices = {name: get_args(info.annotation) for name, info in cls.model_fields.items()}
        words = {True: "on", False: "off"}
        return {
            key: words[value] if isinstance(value, bool) and words[value] in choices.get(key, ()) else value
            for key, value in values.items()
        }


class Data(Section):
    directory: Path = Field(Path("data"), description="The folder that is indexed, with its sub-folders.")
    exclude: tuple[str, ...] = Field((), description="Patterns (gitignore syntax) of files to leave out, beside `.hybridragignore`.")


class Ollama(Section):
    base_url: str = Field("http://localhost:11434", pattern=r"^https?://", description="Address of the Ollama server.")
    embedding_model: str = Field("nomic-embed-text", min_length=1, description="Embedding model, when Ollama embeds.")
    llm_model: str = Field("llama3.1:latest", min_length=1, description="Language model that writes answers.")
    num_ctx: int = Field(8192, ge=512, le=1_048_576, description="Context length sent to the server, in tokens.")
    max_answer_tokens: int = Field(400, ge=16, le=8192, description="Longest answer, in tokens.")
    temperature: float = Field(0.0, ge=0.0, le=2.0, description="0 gives the same answer for the same question.")
    seed: int = Field(42, description="Seed sent to the model.")
    keep_alive: str = Field("5m", description="How long the server keeps the model loaded.")
    connect_seconds: float = Field(2.0, gt=0, le=60, description="Time limit for reaching the server.")
    answer_seconds: float = Field(180.0, gt=0, le=3600, description="Time limit for an answer or a batch of embeddings.")
    query_seconds: float = Field(
        5.0, gt=0, le=3600, description="How long a search waits for the vector of its query; then it goes on by keywords."
    )
    retries: int = Field(3, ge=0, le=10, description="Further tries, with back-off, when the server is busy (503).")


class Embedding(Section):
    provider: Literal["auto", "bundled", "ollama", "onnx", "none"] = Field(
        "auto",
        description="`auto`: what the index was made with, else Ollama when it answers and has the model, else the bundled model; `none`: keyword search only.",
    )
    model_path: Path | None = Field(None, description="Folder with `model.onnx` and `tokenizer.json`, for `provider: onnx`.")
    query_prefix: str | None = Field(None, description="Put before queries; unset takes the model's own.")
    document_prefix: str | None = Field(None, description="Put before passages; unset takes the model's own.")
    threads: int = Field(0, ge=0, le=256, description="Texts that an ONNX model computes at the same time; 0 takes one a core.")
    on_change: Literal["rebuild", "refuse"] = Field(
        "rebuild", description="When the embedder differs from the index's: make new vectors beside the old and swap, or refuse."
    )


class Llm(Section):
    provider: Literal["auto", "ollama", "none"] = Field(
        "auto",
        description="`auto`: Ollama when it answers and has the model, else extractive answers; `ollama`: an error if not; `none`: always extractive.",
    )
    rewrite_followups: bool = Field(True, description="Let the model rewrite follow-up questions of a conversation.")


class VectorStore(Section):
    persist_directory: Path = Field(Path("chroma_db"), description="The index directory (catalog, keyword index, vectors, tables).")
    mode: Literal["embedded", "server", "exact"] = Field(
        "embedded", description="Chroma in this process, a Chroma server, or exact search without Chroma."
    )
    host: str = Field("localhost", description="Chroma server, for `mode: server`.")
    port: int = Field(8000, ge=1, le=65535, description="Port of the Chroma server.")
    ssl: bool = Field(False, description="Use TLS to reach the Chroma server.")
    token: str | None = Field(None, repr=False, description="Bearer token of the Chroma server.")
    collection_prefix: str = Field(
        "hybrid_rag", pattern=r"^[A-Za-z0-9_-]{3,40}$", description="Collections are named `<prefix>_text` and `<prefix>_table`."
    )


class DocumentProcessing(Section):
    use_separate_retrievers: bool = Field(
        True, description="One ensemble a kind (tables, text) with its weight; false: one ensemble over all."
    )
    text_chunk_size: int = Field(1000, ge=100, le=20_000, description="Longest text chunk, in characters.")
    text_chunk_overlap: int = Field(200, ge=0, le=10_000, description="Characters that neighbouring text chunks share at most.")
    csv_chunk_size: int = Field(10, ge=1, le=1000, description="Records in one table chunk.")
    max_file_mb: float = Field(512.0, gt=0, description="Larger files are reported, not read.")
    max_pages: int = Field(5000, ge=1, description="Pages read of one PDF; the rest is reported.")
    max_unpacked_mb: float = Field(512.0, gt=0, description="Unpacked size limit of a DOCX (guards against zip bombs).")
    max_seconds: float = Field(120.0, gt=0, description="Time limit for reading one file (tables: between two batches of rows).")
    max_memory_mb: float = Field(
        1024.0, ge=200, description="Memory that a reading process may take; a file that needs more is reported, not read."
    )
    workers: int = Field(0, ge=0, le=64, description="Processes that read files; 0 takes the number of cores.")
    ocr: bool = Field(False, description="Read PDF pages without text by OCR, when `tesseract` is installed (`ocrmypdf` brings it along).")
    ocr_languages: str = Field(
        "eng", pattern=r"^[A-Za-z_/-]+(\+[A-Za-z_/-]+)*$", description="Languages of scanned pages, as tesseract names them: `deu+eng`."
    )

    @model_validator(mode="after")
    def _overlap_below_size(self) -> DocumentProcessing:
        if self.text_chunk_overlap >= self.text_chunk_size:
            raise ValueError(f"text_chunk_overlap ({self.text_chunk_overlap}) must be less than text_chunk_size ({self.text_chunk_size})")
        return self


class FilterDefaults(Section):
    folder: str | None = Field(None, description="Only documents below this folder of the data folder.")
    glob: str | None = Field(None, description="Only documents whose path matches, for instance `*.md`.")
    kind: Literal["table", "text"] | None = Field(None, description="Only tables or only text.")
    tags: str | None = Field(None, description="Tag expression: `policy and not draft`.")
    since: str | None = Field(None, description="Only documents dated on or after this day (YYYY-MM-DD).")
    until: str | None = Field(None, description="Only documents dated on or before this day (YYYY-MM-DD).")
    recent: str | None = Field(None, description="Only documents of the last days, weeks, months or years: `90d`, `6w`, `3m`, `1y`.")


class Retrieval(Section):
    vector_search_k: int = Field(5, ge=0, le=1000, description="Hits wanted from the vector leg; 0 turns the leg off.")
    keyword_search_k: int = Field(5, ge=0, le=1000, description="Hits wanted from the keyword leg; 0 turns the leg off.")
    csv_weight: Weight = Field(0.4, description="Weight of tables.")
    text_weight: Weight = Field(0.6, description="Weight of text.")
    k: int | None = Field(None, ge=1, le=1000, description="Results of a search; unset: the larger of the two legs' k.")
    fusion: Literal["weighted", "rrf", "classic"] = Field(
        "weighted",
        description="How the legs are fused: `weighted` by scores, `rrf` by ranks, `classic` by ranks as in nested LangChain EnsembleRetrievers.",
    )
    rrf_k: int = Field(10, ge=1, le=1000, description="Rank constant of `rrf` (`classic` always takes 60).")
    dense_weight: Weight = Field(0.4, description="Weight of the vector leg inside a kind (`classic` always takes .5).")
    candidates: int = Field(100, ge=1, le=2000, description="Hits that each leg gives to the fusion.")
    lexical_engine: Literal["tantivy", "rank_bm25"] = Field("tantivy", description="Engine of the keyword leg.")
    language: str = Field(
        "auto", pattern=r"^(auto|none|[a-z]{2})$", description="Stemmer: `auto` by collection, `none`, or an ISO 639-1 code such as `de`."
    )
    rerank: Literal["auto", "on", "off"] = Field("auto", description="Cross-encoder over the first hits; `auto` uses it for answers.")
    rerank_top: int = Field(10, ge=1, le=100, description="Hits that the cross-encoder scores.")
    recency_half_life_days: float | None = Field(None, gt=0, description="Prefer newer documents: the age at which the preference halves.")
    neighbours: int = Field(1, ge=0, le=5, description="Chunks before and after a hit that are joined to it for an answer.")
    cache_entries: int = Field(256, ge=0, le=100_000, description="Searches kept in memory until the index changes.")
    filters: FilterDefaults = Field(FilterDefaults(), description="Filters of every search that gives none of its own.")

    @model_validator(mode="after")
    def _some_weight(self) -> Retrieval:
        if self.csv_weight + self.text_weight <= 0:
            raise ValueError("csv_weight and text_weight cannot both be 0")
        if not self.vector_search_k and not self.keyword_search_k:
            raise ValueError("vector_search_k and keyword_search_k cannot both be 0")
        return self

    @property
    def results(self) -> int:
        return self.k or max(self.vector_search_k, self.keyword_search_k)


class Answers(Section):
    context_chunks: int = Field(5, ge=1, le=50, description="Chunks given to the language model.")
    max_sentences: int = Field(3, ge=1, le=20, description="Longest answer, in sentences.")
    abstain_below: float = Field(-5.0, description="Cross-encoder logit of the best chunk below which nothing is answered.")
    support_below: float = Field(
        2.0, description="Below this logit the question's own names, numbers and words must stand in what was found."
    )
    coverage_from: float = Field(0.4, ge=0, le=1, description="Share of the question's words, weighted by how rare they are, that must.")
    quote_from: float = Field(2.0, description="Sentence logit from which an extractive answer is shown as one.")


class Tables(Section):
    synonyms: dict[str, tuple[str, ...]] = Field({}, description="Other words for columns and values: `{price: [cost, amount]}`.")
    max_seconds: float = Field(10.0, gt=0, le=600, description="Time limit of a query.")
    max_memory_mb: int = Field(512, ge=64, description="Memory limit of a query.")
    max_rows: int = Field(1000, ge=1, le=1_000_000, description="Rows of a result; more are cut and said.")


class Batch(Section):
    questions: Path | None = Field(None, description="Questions: TXT, CSV, JSONL or YAML.")
    output: Path | None = Field(None, description="Where the answers go.")
    format: Literal["jsonl", "csv", "markdown"] | None = Field(None, description="Form of the answers; unset: by the output's suffix.")
    concurrency: int = Field(1, ge=1, le=32, description="Questions asked at the same time.")
    filters: FilterDefaults = Field(FilterDefaults(), description="Filters of every question that gives none of its own.")
    on_error: Literal["continue", "stop"] = Field("continue", description="What a failing question does to the others.")


class Mcp(Section):
    max_result_tokens: int = Field(20_000, ge=500, le=1_000_000, description="Longest tool result; more is cut at whole items and said.")
    host: str = Field("127.0.0.1", description="Address of the HTTP transport.")
    port: int = Field(8765, ge=0, le=65535, description="Port of the HTTP transport.")
    token: str | None = Field(
        None, repr=False, description="Bearer token, of 16 characters at least; required when the host is not this machine."
    )
    allowed_hosts: tuple[str, ...] = Field((), description="Further names by which clients may call the HTTP transport (Host and Origin).")
    sync_on_start: bool = Field(False, description="Index what changed when the server starts.")
    log_file: Path | None = Field(
        None, description="Rotating log of the server; unset: `hybrid-rag/mcp.log` in the user's folder for logs."
    )


class Web(Section):
    host: str = Field("127.0.0.1", description="Address of the page.")
    port: int = Field(8080, ge=0, le=65535, description="Port of the page.")
    token: str | None = Field(
        None, repr=False, description="Access token, of 16 characters at least; required when the host is not this machine."
    )
    upload: bool = Field(False, description="Allow files to be uploaded into the data folder.")
    max_upload_mb: float = Field(50.0, gt=0, description="Largest upload.")
    requests_per_minute: int = Field(60, ge=1, description="Questions and index runs that one client may start in a minute.")
    sync_on_start: bool = Field(False, description="Index what changed when the server starts.")


class Logging(Section):
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("WARNING", description="What is written to stderr.")
    suppress_warnings: bool = Field(True, description="Hide warnings of the libraries.")
    query_log: Literal["off", "hash", "text"] = Field(
        "off", description="Keep a local log of queries: none, with a hash of the query, or with its text."
    )
    query_log_file: Path | None = Field(None, description="The log of queries; unset: `queries.jsonl` in the index directory.")
    query_log_mb: float = Field(
        10.0, gt=0, le=10_000, description="Size at which the log is put aside as `….1`, in the place of the one before."
    )


class Config(Section):
    """The whole configuration, checked. Build it with :func:`load`."""

    data: Data = Data()
    ollama: Ollama = Ollama()
    embedding: Embedding = Embedding()
    llm: Llm = Llm()
    vector_store: VectorStore = VectorStore()
    document_processing: DocumentProcessing = DocumentProcessing()
    loaders: dict[str, str] = Field({}, description="Further file kinds: suffix to a LangChain loader's `module:Class`.")
    retrieval: Retrieval = Retrieval()
    answers: Answers = Answers()
    tables: Tables = Tables()
    batch: Batch = Batch()
    mcp: Mcp = Mcp()
    web: Web = Web()
    logging: Logging = Logging()
