from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_rag.config import Config, known_keys, load
from hybrid_rag.errors import ConfigError

CLASSIC = """
data: {directory: docs}
ollama: {base_url: "http://localhost:11434", embedding_model: nomic-embed-text, llm_model: "llama3.1:latest"}
vector_store: {persist_directory: chroma_db}
document_processing: {use_separate_retrievers: true, text_chunk_size: 1000, text_chunk_overlap: 200, csv_chunk_size: 10}
retrieval: {vector_search_k: 5, keyword_search_k: 5, csv_weight: 0.4, text_weight: 0.6}
logging: {level: INFO, suppress_warnings: true}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_classic_form_works_as_written(tmp_path: Path) -> None:
    config = load(write(tmp_path, CLASSIC), environ={}).config
    assert config.data.directory == tmp_path / "docs"
    assert config.vector_store.persist_directory == tmp_path / "chroma_db"
    assert (config.retrieval.csv_weight, config.retrieval.text_weight, config.retrieval.results) == (0.4, 0.6, 5)


def test_the_shipped_file_is_valid() -> None:
    root = Path(__file__).parents[1]
    assert load(root / "config" / "config.yaml", environ={}).config.data.directory == root / "data"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("retrieval: {csv_wieght: 1}", ["retrieval.csv_wieght", "retrieval.csv_weight"]),
        ("retreival: {}", ["retreival", "`retrieval`"]),
        ("retrieval: {csv_weight: 3}", ["retrieval.csv_weight", "3", "less than or equal to 1"]),
        ("document_processing: {text_chunk_overlap: 1000}", ["text_chunk_overlap (1000)", "text_chunk_size (1000)"]),
        ("retrieval: {fusion: best}", ["retrieval.fusion", "'best'"]),
        ("data: [1, 2", ["YAML"]),
        ("- a", ["must hold sections"]),
        ("ollama: {base_url: localhost}", ["ollama.base_url"]),
    ],
)
def test_a_wrong_file_says_what_and_where(tmp_path: Path, text: str, words: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, text), environ={})
    assert all(word in str(caught.value) for word in words)


def test_variables_and_settings_override_in_this_order(tmp_path: Path) -> None:
    path = write(tmp_path, CLASSIC)
    loaded = load(
        path,
        environ={"HYBRID_RAG__RETRIEVAL__CSV_WEIGHT": "0.5", "HYBRID_RAG__RETRIEVAL__TEXT_WEIGHT": "0.5"},
        settings=["retrieval.text_weight=0.7"],
    )
    assert (loaded.config.retrieval.csv_weight, loaded.config.retrieval.text_weight) == (0.5, 0.7)
    origins = {key: origin for key, _, origin in loaded.rows()}
    assert origins["retrieval.csv_weight"] == "$HYBRID_RAG__RETRIEVAL__CSV_WEIGHT"
    assert origins["retrieval.text_weight"] == "--set"
    assert origins["data.directory"] == str(path)
    assert origins["retrieval.rrf_k"] == "default"


def test_a_path_given_on_the_command_line_is_relative_to_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    config = load(write(tmp_path, CLASSIC), environ={}, settings=["data.directory=here"]).config
    assert config.data.directory == tmp_path / "elsewhere" / "here"


def test_tokens_are_masked(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, "mcp: {token: secret}"), environ={})
    assert "secret" not in repr(loaded.config)
    assert "secret" not in str(list(loaded.rows()))


def test_every_key_is_described() -> None:
    assert [key for key, (description, _) in known_keys().items() if not description] == []
    assert len(known_keys()) > 60


def test_an_empty_section_takes_the_defaults(tmp_path: Path) -> None:
    assert load(write(tmp_path, "data:\nretrieval:\n"), environ={}).config.retrieval == Config().retrieval


@pytest.mark.parametrize(("text", "value"), [("off", "off"), ("on", "on"), ("'off'", "off"), ("auto", "auto")])
def test_bare_on_and_off_are_the_choices_of_that_name(tmp_path: Path, text: str, value: str) -> None:
    (tmp_path / "c.yaml").write_text(f"retrieval: {{rerank: {text}}}\n", encoding="utf-8")
    assert load(tmp_path / "c.yaml").config.retrieval.rerank == value
    assert load(settings=[f"retrieval.rerank={text}"]).config.retrieval.rerank == value
