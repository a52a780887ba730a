"""The sample collection from end to end, with the bundled models: the command line, answers, batch, conversation."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from hybrid_rag.batch import run_batch
from hybrid_rag.conversation import Conversation
from hybrid_rag.errors import InputError
from hybrid_rag.evaluation import Evaluation, answer_all, evaluate, rank_all
from hybrid_rag.evaluation_questions import read_set
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.service import Service, open_service

ROOT = Path(__file__).parents[1]
QUESTIONS = yaml.safe_load((ROOT / "tests" / "eval" / "questions.yaml").read_text(encoding="utf-8"))
KINDS = {entry["id"]: entry["type"] for entry in QUESTIONS}
RIGHT = {"text": 0.86, "identifier": 1.0, "table": 1.0, "unanswerable": 1.0}  # share of the questions of a type
FLOORS = {
    "keyword.hit@3": 0.85, "keyword.nDCG@10": 0.82, "dense.hit@3": 0.76, "hybrid.hit@3": 0.95, "hybrid.MRR": 0.86, "hybrid.nDCG@10": 0.88,
    "answers.holds_gold": 0.93, "answers.f1": 0.15, "answers.cited_place": 0.95, "answers.cited_gold": 0.92, "answers.table_exact": 1.0,
    "answers.abstention_recall": 1.0, "answers.abstention_precision": 0.8,
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the data with an index, and a configuration beside them."""
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(ROOT / "data", folder / "data")
    text = "data: {directory: data}\nvector_store: {persist_directory: chroma_db}\nollama: {base_url: 'http://127.0.0.1:9', connect_seconds: 0.2}\n"
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def shop(place: Path):
    with open_service(place / "config.yaml") as service:
        report = service.index()
        assert report.counts["read"] == len(list((place / "data").iterdir()))
        yield service


def command(place: Path, *arguments: str, code: int = 0, given: str = "") -> str:
    line = [sys.executable, "-m", "hybrid_rag", *arguments, "--config", str(place / "config.yaml")]
    run = subprocess.run(line, capture_output=True, encoding="utf-8", check=False, cwd="/", input=given)
    assert run.returncode == code, run.stderr
    assert "Traceback" not in run.stderr
    return run.stdout if code == 0 else run.stderr


# ---------------------------------------------------------------- quality


@pytest.fixture(scope="module")
def measured(shop: Service) -> Evaluation:
    """Rankings and answers of all questions, as `hybrid-rag eval` gives them."""
    questions = read_set(ROOT / "tests" / "eval" / "questions.yaml").questions
    ranked, answers = rank_all(shop, questions, modes=("keyword", "dense", "hybrid")), answer_all(shop, questions)
    return evaluate("sample", questions, [ranked], {"": answers}, {}, floors=FLOORS)


def test_the_quality_of_the_sample_does_not_fall(measured: Evaluation) -> None:
    below = {f.name: (f.value, f.floor) for f in measured.floors if not f.ok}
    assert below == {}, [(one.id, one.answer[:80]) for one in measured.answers[""].wrong]
    assert not measured.notes


@pytest.mark.parametrize(("kind", "measure", "floor"), [("text", "hit@3", 0.95), ("text", "hit@1", 0.86), ("identifier", "hit@1", 1.0)])
def test_hybrid_search_finds_each_type_of_question(measured: Evaluation, kind: str, measure: str, floor: float) -> None:
    assert measured.by_type["hybrid"][kind][measure] >= floor


def test_questions_of_each_type_are_answered_right(measured: Evaluation) -> None:
    wrong = Counter(KINDS[one.id] for one in measured.answers[""].wrong)
    asked = Counter(KINDS.values())
    assert {kind: 1 - wrong[kind] / asked[kind] >= floor for kind, floor in RIGHT.items()} == dict.fromkeys(RIGHT, True), wrong


def test_both_kinds_stand_in_the_first_five_where_both_match(shop: Service, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from sample_questions import matching_kinds

    asked = [entry["question"] for entry in QUESTIONS if entry["type"] != "unanswerable"]
    index = Index(IndexOptions(place / "chroma_db", vector_mode="exact"))
    both = [question for question in asked if len(matching_kinds(index, question)) == 2]
    index.close()
    assert len(both) >= 5
    kinds = {question: {hit.chunk.kind for hit in shop.search(question, k=5).hits} for question in both}
    assert [question for question in both if len(kinds[question]) < 2] == []


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize("entry", [e for e in QUESTIONS if e["type"] == "text"][:8], ids=lambda e: e["id"])
def test_a_quote_is_a_part_of_the_document(shop: Service, entry: dict) -> None:
    answer = shop.ask(entry["question"])
    for citation in answer.citations:
        text = shop.read(citation.source).text
        assert text[citation.start : citation.end] == citation.quote
        assert answer.abstained or answer.answer in text


def test_an_unknown_identifier_is_not_answered_by_its_neighbour(shop: Service) -> None:
    answer = shop.ask("What is the status of claim WC-2024-99999?")
    assert answer.abstained


def test_identifiers_come_first_in_a_search(shop: Service) -> None:
    for entry in (e for e in QUESTIONS if e["type"] == "identifier" and e["source"].endswith(".csv")):
        word = next(w.strip("?") for w in entry["question"].split() if any(c.isdigit() for c in w))
        hit = shop.search(word, k=5).hits[0]
        assert word in hit.chunk.text


# ---------------------------------------------------------------- reading on


def test_parts_of_documents(shop: Service) -> None:
    assert "2" in shop.read("headphone_manual.pdf", page=3).text
    assert shop.read("orders.csv", rows=(2, 3)).rows == (2, 3)
    assert shop.read("return_policy.md", heading="Return window").heading[-1] == "Return window"
    hit = shop.search("Voltana", k=1).hits[0]
    assert hit.chunk.text in shop.read(hit.source, chunk=hit.chunk_id).text
    short = shop.read("store_handbook.md", max_tokens=50)
    assert short.truncated
    assert short.tokens <= 50
    with pytest.raises(InputError, match="Did you mean"):
        shop.read("return_polici.md")
    with pytest.raises(InputError, match="no page 99"):
        shop.read("headphone_manual.pdf", page=99)


def test_related_recent_and_timeline(shop: Service) -> None:
    assert "return_policy.md" not in [r.document.source for r in shop.related("return_policy.md", 3)]
    assert len(shop.recent(4)) == 4
    line = shop.timeline("shipping_policy.md", 1, 1)
    assert line.documents[line.at].source == "shipping_policy.md"


# ---------------------------------------------------------------- conversation and batch


def test_a_follow_up_is_understood(shop: Service) -> None:
    talk = Conversation(shop)
    talk.ask("What is the unit price of HP-1000?")
    answer = talk.ask("And its category?")
    assert answer.question == "And its category?"
    assert "HP-1000" in answer.rewritten_question
    assert "2." in talk.command("/sources")
    talk.command("/reset")
    assert talk.turns == []


def test_a_conversation_is_exported(shop: Service, tmp_path: Path) -> None:
    talk = Conversation(shop)
    talk.ask("Who prepared the quality report?")
    talk.command(f"/export {tmp_path / 'talk.md'}")
    assert "Who prepared the quality report?" in (tmp_path / "talk.md").read_text(encoding="utf-8")


def test_a_batch_is_resumed_and_scored(shop: Service, tmp_path: Path) -> None:
    questions, output = tmp_path / "q.yaml", tmp_path / "a.jsonl"
    entries = [{"id": e["id"], "question": e["question"], "expected": str(e["answer"])} for e in QUESTIONS if e["type"] == "table"][:4]
    entries.append({"id": "bad", "question": " ", "filters": {}} | {"question": "x" * 20_000})
    questions.write_text(yaml.safe_dump(entries), encoding="utf-8")
    first = run_batch(shop, questions, output)
    assert (first.answered, first.failed, first.correct, first.exit_code) == (4, 1, 4, 1)
    lines = output.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [e["id"] for e in entries]
    output.write_text("\n".join(lines[:2]) + '\n{"id": "half', encoding="utf-8")
    again = run_batch(shop, questions, output, concurrency=3)
    assert (again.skipped, again.answered, again.failed) == (2, 2, 1)
    entries[0]["question"] += " "
    entries[0]["question"] = "How many products are in the catalog?"
    questions.write_text(yaml.safe_dump(entries), encoding="utf-8")
    assert run_batch(shop, questions, output).skipped == 3


@pytest.mark.parametrize("name", ["q.txt", "q.csv", "q.jsonl"])
@pytest.mark.parametrize("form", ["a.jsonl", "a.csv", "a.md"])
def test_forms_of_batches(shop: Service, tmp_path: Path, name: str, form: str) -> None:
    text = {"q.txt": "# a comment\nHow many products are in the catalog?\n", "q.csv": "id,question\n1,How many products are in the catalog?\n",
            "q.jsonl": '{"question": "How many products are in the catalog?"}\n'}[name]  # fmt: skip
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert run_batch(shop, tmp_path / name, tmp_path / form).answered == 1
    assert run_batch(shop, tmp_path / name, tmp_path / form).skipped == 1
    assert "120" in (tmp_path / form).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "text"),
    [("q.txt", "\n"), ("q.jsonl", "{"), ("q.csv", "id\n1\n"), ("q.yaml", "- {id: 1, question: a}\n- {id: 1, question: b}\n")],
)
def test_wrong_batches_are_said(shop: Service, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError):
        run_batch(shop, tmp_path / name, tmp_path / "a.jsonl")


# ---------------------------------------------------------------- command line


def test_commands_print_what_they_should(shop: Service, place: Path) -> None:
    assert "0 new" in command(place, "index")
    assert "return_policy.md" in command(place, "search", "opened headphones", "--kind", "text")
    assert "from your documents" in command(place, "ask", "Within how many days can opened headphones be returned?")
    assert "warranty_claims" in command(place, "tables")
    assert command(place, "sql", "SELECT count(*) AS n FROM product_catalog", "--format", "csv") == "n\n120\n"
    assert "Every file was read" in command(place, "report")
    assert "retrieval.csv_weight = 0.4" in command(place, "config")
    assert "The index is whole" in command(place, "verify")
    assert "bundled model" in command(place, "doctor")
    assert "Understood as" not in command(place, "chat", given="Who prepared the quality report?\n\n")


def test_json_has_the_documented_fields(shop: Service, place: Path) -> None:
    answer = json.loads(command(place, "ask", "How many products are in the catalog?", "--json"))
    assert (answer["mode"], answer["table"]["rows"], answer["abstained"]) == ("table", [[120]], False)
    hits = json.loads(command(place, "search", "Voltana", "-k", "2", "--json"))["hits"]
    assert [h["rank"] for h in hits] == [1, 2]
    report = json.loads(command(place, "index", "--json"))
    assert {"source", "status", "reason", "chunks"} <= set(report["files"][0])
    assert json.loads(command(place, "stats", "--json"))["vector_share"] == 1.0
    assert len(json.loads(command(place, "list", "--json", "--kind", "table"))) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("search", ""), 2, "The query is empty"),
        (("search", "a", "b"), 2, "unexpected extra argument"),
        (("search", "a", "--kind", "x"), 2, "Kinds are"),
        (("sql", "DROP TABLE orders"), 2, "Only SELECT"),
        (("read", "none.md"), 2, "There is no document"),
        (("index", "--set", "data.directory=/nowhere"), 1, "does not exist"),
        (("stats", "--set", "vector_store.persist_directory=/nowhere/x"), 1, "Nothing is indexed yet"),
        (("config", "--set", "retrieval.kk=1"), 2, "Did you mean"),
        (("batch",), 2, "needs a file of questions"),
        (("reset",), 1, ""),
    ],
)
def test_errors_are_messages_with_a_remedy(shop: Service, place: Path, arguments: tuple[str, ...], code: int, words: str) -> None:
    assert words in command(place, *arguments, code=code)


def test_every_command_has_help_with_an_example() -> None:
    from typer.main import get_command

    from hybrid_rag.cli import app

    for name, each in get_command(app).commands.items():
        assert each.help, name
        assert "Example:" in each.help, name


def test_backup_and_restore(shop: Service, place: Path, tmp_path: Path) -> None:
    command(place, "backup", str(tmp_path / "copy"))
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(place / "config.yaml", other)
    (other / "data").symlink_to(place / "data")
    command(other, "restore", str(tmp_path / "copy"), "--yes")
    assert "return_policy.md" in command(other, "search", "opened headphones")
    command(other, "reset", "--yes")
    assert "Nothing is indexed" in command(other, "stats", code=1)


def test_the_demonstration(shop: Service, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from hybrid_rag.demo import main

    monkeypatch.chdir(place)
    assert main(["Which products have the most warranty claims?", "Who won the football world cup in 1998?"]) == 0
    shown = capsys.readouterr().out
    assert "calculated from the table" in shown
    assert "Not in your documents" in shown
