"""One evaluation from end to end: which variants of the configuration, over which index, and what is measured of each."""

from __future__ import annotations

import difflib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.config import known_keys
from hybrid_rag.errors import InputError
from hybrid_rag.evaluation import MODES, Evaluation, Mode, answer_all, evaluate, rank_all
from hybrid_rag.evaluation_questions import QuestionSet, write_corpus
from hybrid_rag.service import Service, open_service

if TYPE_CHECKING:
    from hybrid_rag.config import Loaded
    from hybrid_rag.records import Progress

EMBEDDER = "embedder"  # a short name for embedding.provider and the model that goes with it
PROVIDERS = ("auto", "bundled", "ollama", "onnx", "none")
# Keys whose change makes other vectors (measured on a copy of the index) or another index altogether.
_OF_THE_VECTORS = ("embedding.", "ollama.embedding_model")
_OF_THE_INDEX = ("document_processing.", "data.", "loaders", "retrieval.language", "vector_store.")
QUIET = ("logging.query_log=off",)  # measuring is no use of the collection


@dataclass(frozen=True, slots=True)
class Variant:
    """A name ("" for the configuration as it is) and the settings that make it."""

    name: str = ""
    settings: tuple[str, ...] = ()

    @property
    def own_index(self) -> bool:
        return any(setting.startswith(_OF_THE_INDEX + _OF_THE_VECTORS) for setting in self.settings)

    @property
    def copied(self) -> bool:
        """Only the vectors differ."""
        return not any(setting.startswith(_OF_THE_INDEX) for setting in self.settings)


def variants(comparisons: Sequence[str]) -> list[Variant]:
    """ "fusion=weighted,rrf" as variants; several comparisons give every combination. Raises InputError."""
    out = [Variant()]
    for comparison in comparisons:
        key, sign, values = comparison.partition("=")
        held = [value.strip() for value in values.split(",") if value.strip()]
        if not sign or len(held) < 2:
            raise InputError(
                f"--compare {comparison!r} names no two values.",
                "Write for instance --compare fusion=weighted,rrf or embedder=bundled,none.",
            )
        out = [
            Variant(f"{before.name} {key.strip()}={value}".strip(), (*before.settings, *_settings(key.strip(), value)))
            for before in out
            for value in held
        ]
    return out


def _settings(key: str, value: str) -> tuple[str, ...]:
    if key == EMBEDDER:
        return _embedder(value)
    keys = list(known_keys())
    found = [key] if key in keys else [k for k in keys if k.rpartition(".")[2] == key]
    if len(found) != 1:
        near = found or difflib.get_close_matches(key, keys + [k.rpartition(".")[2] for k in keys], n=3)
        raise InputError(
            f"{key} is {'the end of several keys' if found else 'no key'} of the configuration.",
            f"Did you mean {' or '.join(near)}?" if near else "`hybrid-rag config` prints every key.",
        )
    return (f"{found[0]}={value}",)


def _embedder(value: str) -> tuple[str, ...]:
    """ "bundled", "ollama", "ollama:MODEL", "none", or the folder of an ONNX model."""
    provider, _, model = value.partition(":")
    if provider == "ollama" and model:
        return ("embedding.provider=ollama", f"ollama.embedding_model={json.dumps(model)}")
    if value in PROVIDERS:
        return (f"embedding.provider={value}",)
    if Path(value).expanduser().is_dir():
        return ("embedding.provider=onnx", f"embedding.model_path={json.dumps(str(Path(value).expanduser().absolute()))}")
    raise InputError(f"{value} is no embedder.", "Name bundled, ollama, ollama:MODEL, none, or the folder of an ONNX model.")


def run_evaluation(
    load: Callable[[Sequence[str]], Loaded],
    chosen: QuestionSet,
    *,
    comparisons: Sequence[str] = (),
    modes: Sequence[Mode] = MODES,
    answers: bool = True,
    floors: Mapping[str, float] | None = None,
    keep: Path | None = None,
    seed: int = 0,
    progress: Callable[[str, int, int], None] | None = None,
    indexing: Callable[[Progress], None] | None = None,
) -> Evaluation:
    """Measure the set on every variant. ``load`` gives the configuration with further settings.

    A set with documents of its own is indexed into a temporary index, or into ``keep``, where the next run finds it.
    """
    ranked, answered, index = [], {}, {}
    for variant in variants(comparisons):
        with opened(load, chosen, variant, keep, indexing) as service:
            stats = service.stats()
            index[variant.name] = {
                "documents": stats.documents,
                "chunks": stats.chunks,
                "embedder": stats.embedder,
                "vector_share": stats.vector_share,
                "fusion": service.config.retrieval.fusion,
            }
            options: dict[str, Any] = {"variant": variant.name, "own_filters": chosen.own_documents, "progress": progress}
            ranked.append(rank_all(service, chosen.questions, modes=modes, **options))
            if answers and any(q.answers or q.unanswerable for q in chosen.questions):
                answered[variant.name] = answer_all(service, chosen.questions, seed=seed, **options)
    return evaluate(chosen.name, chosen.questions, ranked, answered, index, seed=seed, floors=floors)


@contextmanager
def opened(
    load: Callable[[Sequence[str]], Loaded],
    chosen: QuestionSet,
    variant: Variant,
    keep: Path | None = None,
    indexing: Callable[[Progress], None] | None = None,
) -> Iterator[Service]:
    """The service of a variant: over the present index, or over one of its own that is gone afterwards."""
    with ExitStack() as stack:
        settings = [*variant.settings, *QUIET]
        if chosen.own_documents or variant.own_index:
            folder = (
                keep / _folder_name(variant) if keep else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hybrid-rag-eval-")))
            )
            settings += _apart(load, chosen, folder, copied=variant.copied)
            service = stack.enter_context(open_service(load(settings), cold=True))
            service.index(progress=indexing)
        else:
            service = stack.enter_context(open_service(load(settings), cold=True))
        yield service


def _folder_name(variant: Variant) -> str:
    return "".join(c if c.isalnum() or c in "=._-" else "_" for c in variant.name) or "default"


def _apart(load: Callable[[Sequence[str]], Loaded], chosen: QuestionSet, folder: Path, *, copied: bool) -> list[str]:
    """Settings of an index in ``folder``: of the set's documents, or of the collection, begun as a copy of the present index if so wanted."""
    index = folder / "index"
    out = [f"vector_store.persist_directory={json.dumps(str(index.absolute()))}", "vector_store.mode=exact", "embedding.on_change=rebuild"]
    if chosen.own_documents:
        documents = chosen.files
        if documents is None:
            documents = folder / "documents"
            assert chosen.corpus is not None
            write_corpus(chosen.corpus, documents)
        return [*out, f"data.directory={json.dumps(str(documents.absolute()))}", "data.exclude=[]"]
    if copied and not index.exists():
        with open_service(load(QUIET), cold=True) as service:
            service.backup(index)  # with the vectors it has, so that only what differs is computed
    return out
