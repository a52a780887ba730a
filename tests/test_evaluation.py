"""Measuring: forms of questions, judging of places and answers, floors, comparisons, proposals; over a small collection with real parts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hybrid_rag.config import load
from hybrid_rag.errors import InputError
from hybrid_rag.evaluation import parse_floor, units
from hybrid_rag.evaluation_answers import judge, summarise
from hybrid_rag.evaluation_proposals import as_yaml, propose
from hybrid_rag.evaluation_questions import EvalQuestion, Place, corpus_files, read_set
from hybrid_rag.evaluation_runs import run_evaluation, variants
from hybrid_rag.records import Answer, Chunk, Citation, Hit, TableResult
from hybrid_rag.service import open_service
from tests.support.ollama import FakeOllama, running

QUESTIONS = """
- {id: a, type: text, question: "How many days may opened shoes be returned?", source: returns.md, heading: Opened goods, answer: 14 days}
- {id: b, type: identifier, question: "What is the colour of SH-003?", source: shoes.csv, rows: 3, answer: green}
- {id: c, type: table, question: "How many records are in shoes?", source: shoes.csv, answer: "4"}
- {id: d, type: unanswerable, question: "Who won the football world cup in 1998?"}
- {id: e, type: text, question: "Which carrier brings parcels to Switzerland?", source: nowhere.md, answer: Alpina Post}
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluation")
    (folder / "data").mkdir()
    returns = "# Returns\n\n## Opened goods\n\nOpened shoes may be returned within 14 days.\n\n## Unopened goods\n\nUnopened shoes may be returned within 30 days of delivery.\n"
    (folder / "data" / "returns.md").write_text(returns, encoding="utf-8")
    (folder / "data" / "shipping.txt").write_text(
        "Parcels to Switzerland are carried by Alpina Post and take three days.\n", encoding="utf-8"
    )
    rows = "article,colour,price\nSH-001,red,10.50\nSH-002,red,20.00\nSH-003,green,30.25\nSH-004,blue,40.00\n"
    (folder / "data" / "shoes.csv").write_text(rows, encoding="utf-8")
    (folder / "questions.yaml").write_text(QUESTIONS, encoding="utf-8")
    text = "data: {directory: data}\nvector_store: {persist_directory: index}\nembedding: {provider: bundled}\nllm: {provider: none}\n"
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    with open_service(folder / "config.yaml") as service:
        service.index()
    return folder


def command(place: Path, *arguments: str, code: int = 0) -> str:
    line = [sys.executable, "-m", "hybrid_rag", *arguments, "--config", str(place / "config.yaml")]
    run = subprocess.run(line, capture_output=True, encoding="utf-8", check=False, cwd=place)
    assert run.returncode == code, run.stdout + run.stderr
    assert "Traceback" not in run.stderr
    return run.stdout if code == 0 else run.stdout + run.stderr


# ---------------------------------------------------------------- the command


def test_a_collection_is_measured_the_same_way_twice(place: Path) -> None:
    first, second = (command(place, "eval", "questions.yaml") for _ in range(2))
    assert first == second
    for words in (
        "keyword",
        "dense",
        "hybrid",
        "rerank",
        "nDCG@10",
        "holds_gold",
        "abstention_recall",
        "95 % interval",
        "Missed by hybrid: 1 of 4",
    ):
        assert words in first
    assert "wanted: nowhere.md (not found)" in first
    assert "The questions name files that are not in the collection: nowhere.md." in first
    assert "came instead: shipping.txt" in first


def test_json_has_every_figure_and_floors_decide_the_exit_code(place: Path) -> None:
    arguments = ("eval", "questions.yaml", "--json", "--modes", "keyword,hybrid", "--floor", "keyword.hit@3=.75", "--floor")
    result = json.loads(command(place, *arguments, "answers.abstention_recall=1"))
    assert (result["count"], result["judged"]) == (5, 4)
    assert [(r["variant"], r["mode"]) for r in result["retrieval"]] == [("", "keyword"), ("", "hybrid")]
    scores = result["retrieval"][1]["scores"]
    assert scores["hit@3"] == {"value": 0.75, "low": 0.25, "high": 1.0, "n": 4}
    answers = result["answers"][""]["scores"]
    assert (answers["table_exact"]["value"], answers["abstention_recall"]["value"], answers["cited_place"]["n"]) == (1.0, 1.0, 4)
    assert [f["ok"] for f in result["floors"]] == [True, True]
    assert "NOT REACHED" in command(place, "eval", "questions.yaml", "--modes", "keyword", "--no-answers", "--floor", "hit@3=.9", code=1)
    assert "Measured were keyword.recall@1" in command(
        place, "eval", "questions.yaml", "--modes", "keyword", "--no-answers", "--floor", "x=1", code=2
    )


def test_variants_are_compared_on_the_same_questions(place: Path) -> None:
    before = {p.name: p.stat().st_mtime_ns for p in (place / "index").iterdir() if p.is_file()}
    text = command(
        place, "eval", "questions.yaml", "--no-answers", "--modes", "keyword,hybrid", "--compare", "embedder=bundled,none", "--keep", "kept"
    )
    assert "embedder=bundled hybrid" in text
    assert "embedder=none hybrid is not measured" in text
    assert "embedder=none keyword against embedder=bundled keyword" in text
    assert "may be chance" in text
    assert {p.name: p.stat().st_mtime_ns for p in (place / "index").iterdir() if p.is_file()} == before
    assert sorted(p.name for p in (place / "kept").iterdir()) == ["embedder=bundled", "embedder=none"]


def test_errors_name_the_remedy(place: Path) -> None:
    assert "--make-questions" in command(place, "eval", code=2)
    assert "There are no questions" in command(place, "eval", "none.yaml", code=2)
    assert "Did you mean" in command(place, "eval", "questions.yaml", "--compare", "fusiom=a,b", code=2)
    assert "no way of searching" in command(place, "eval", "questions.yaml", "--modes", "magic", code=2)


# ---------------------------------------------------------------- forms of questions


def test_forms_of_questions_mean_the_same(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text(
        "id,question,type,source,page,heading,rows,answer\n"
        "1,Where?,text,a.md | b.md,,Here,,yes | no\n2,Which?,identifier,t.csv,,,4-5,x\n3,Page?,,p.pdf,7,,,\n4,Never?,unanswerable,,,,,\n",
        encoding="utf-8",
    )
    entries = [
        {"id": 1, "question": "Where?", "type": "text", "source": ["a.md", "b.md"], "heading": "Here", "answer": "yes", "accept": ["no"]},
        {"id": 2, "question": "Which?", "type": "identifier", "places": [{"source": "t.csv", "rows": [4, 5]}], "answer": "x"},
        {"id": 3, "question": "Page?", "source": "p.pdf", "page": 7},
        {"id": 4, "question": "Never?", "type": "unanswerable"},
    ]
    (tmp_path / "q.yaml").write_text(yaml.safe_dump({"questions": entries}), encoding="utf-8")
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    read = [read_set(tmp_path / name).questions for name in ("q.csv", "q.yaml", "q.jsonl")]
    assert read[0] == read[1] == read[2]
    assert read[0][0].places == (Place("a.md", heading="Here"), Place("b.md", heading="Here"))
    assert read[0][1].places == (Place("t.csv", rows=(4, 5)),)
    assert read[0][3].unanswerable


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "There are no questions"),
        ("- {id: 1}", "Entry 1"),
        ("- {question: a}", "Nothing says what is right"),
        ("- {question: a, type: unanswerable, answer: b}", "is unanswerable, but"),
        ("- {id: 1, question: a, answer: b}\n- {id: 1, question: c, answer: d}", "same id"),
        ("- {question: a, source: b, rows: many}", "cannot be read"),
        ("a: [", "cannot be read"),
    ],
)
def test_wrong_questions_are_said(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "q.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_set(tmp_path / "q.yaml")


def _corpus(folder: Path) -> Path:
    folder.mkdir()
    documents = [
        ("http://x/1", "Whales", "Whales are mammals of the sea."),
        ("d2", "Trains", "Trains run on rails of steel."),
        ("d3", "", "Bread is baked of flour."),
    ]
    (folder / "corpus.jsonl").write_text(
        "".join(json.dumps({"_id": i, "title": t, "text": x}) + "\n" for i, t, x in documents), encoding="utf-8"
    )
    queries = [
        ("q1", "Which animals of the sea are mammals?"),
        ("q2", "What do trains run on?"),
        ("q3", "Who baked?"),
        ("q4", "not judged"),
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in queries), encoding="utf-8")
    (folder / "qrels.tsv").write_text("query-id\tdoc-id\tscore\nq1\thttp://x/1\t2\nq1\td2\t0\nq2\td2\t1\n", encoding="utf-8")
    (folder / "answers.jsonl").write_text('{"id": "q2", "answer": "rails of steel"}\n{"id": "q3", "answer": null}\n', encoding="utf-8")
    return folder


def test_a_folder_with_corpus_queries_and_judgements(tmp_path: Path, place: Path) -> None:
    chosen = read_set(_corpus(tmp_path / "set"))
    assert [(q.id, q.places, q.answers, q.unanswerable) for q in chosen.questions] == [
        ("q1", (Place("x-1.md", gain=2.0),), (), False),
        ("q2", (Place("d2.md"),), ("rails of steel",), False),
        ("q3", (), (), True),
    ]
    result = run_evaluation(lambda settings: load(place / "config.yaml", settings=settings), chosen, modes=("keyword", "dense"))
    assert result.index[""]["documents"] == 3
    assert {r.mode: r.scores["nDCG@10"].value for r in result.retrieval} == {"keyword": 1.0, "dense": 1.0}
    assert result.answers[""].scores["exact_match"].n == 1
    with open_service(place / "config.yaml") as service:
        assert "d2.md" not in [d.source for d in service.documents()]


def test_records_get_file_names_of_their_own(tmp_path: Path) -> None:
    ids = ["https://a.b/c#d", "a.b-c-d", "A.B/c-d", "../../etc/passwd", ".hidden", "日本", "x" * 300, "x" * 301]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps({"id": i, "text": i}) + "\n" for i in ids), encoding="utf-8")
    names = corpus_files(tmp_path / "corpus.jsonl")
    assert list(names) == ids
    assert len({n.casefold() for n in names.values()}) == len(ids)
    assert names["https://a.b/c#d"] == "a.b-c-d.md"
    assert names["../../etc/passwd"] == "etc-passwd.md"
    assert all("/" not in n and not n.startswith(".") and len(n) < 120 for n in names.values())


def test_a_folder_without_its_parts_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no queries\.jsonl and no qrels\.tsv"):
        read_set(tmp_path)
    folder = _corpus(tmp_path / "set")
    shutil.copytree(folder, tmp_path / "beir" / "set")
    (tmp_path / "beir" / "set" / "qrels").mkdir()
    (tmp_path / "beir" / "set" / "qrels.tsv").rename(tmp_path / "beir" / "set" / "qrels" / "test.tsv")
    assert read_set(tmp_path / "beir" / "set").questions == read_set(folder).questions


# ---------------------------------------------------------------- judging


def _hit(rank: int, source: str, **fields: object) -> Hit:
    return Hit(rank, f"{source}{rank}", Chunk(source, "text", rank, f"text {rank}", 0, 6, **fields))  # type: ignore[arg-type]


def test_a_ranking_counts_files_or_places_once() -> None:
    hits = [_hit(1, "a.md"), _hit(2, "a.md"), _hit(3, "b.md", heading=("B", "Fees")), _hit(4, "b.md", page=3)]
    assert units(hits, EvalQuestion("1", "q", places=(Place("b.md"),))) == ["a.md", "b.md"]
    by_heading = EvalQuestion("1", "q", places=(Place("b.md", heading="fees"), Place("b.md", page=3)))
    assert units(hits, by_heading) == ["a.md1", "a.md2", *(p.unit for p in by_heading.places)]


def test_places_cover_what_they_name() -> None:
    assert Place("t.csv", rows=(5, 5)).covers("t.csv", None, (), (1, 10))
    assert not Place("t.csv", rows=(11, 12)).covers("t.csv", None, (), (1, 10))
    assert not Place("t.csv", rows=(1, 1)).covers("t.csv", None, (), None)
    assert Place("a.md", heading="A > Fees").covers("a.md", None, ("A", "Fees"), None)
    assert not Place("a.md", heading="Fees").covers("a.md", None, ("A", "Fees of others"), None)
    assert not Place("a.pdf", page=2).covers("a.pdf", 3, (), None)
    assert not Place("a.pdf").covers("b.pdf", None, (), None)


def test_answers_are_judged_by_what_is_right_for_the_question() -> None:
    hits = (Hit(1, "c1", Chunk("a.md", "text", 0, "The fee is 15 %. It is paid once.", 0, 33)),)
    cited = (Citation(1, "a.md", "text", quote="The fee is", chunk_id="c1"),)
    question = EvalQuestion("1", "q", places=(Place("a.md"),), answers=("15%",))
    right = judge(question, Answer("q", "The fee is 15 % [1].", "llm", False, cited, hits))
    assert right.measures == {"exact_match": 0.0, "f1": pytest.approx(0.5), "holds_gold": 1.0, "cited_place": 1.0, "cited_gold": 1.0}
    assert not right.wrong
    elsewhere = judge(question, Answer("q", "12 %", "llm", False, (Citation(1, "b.md", "text", quote="12 %"),)))
    assert (elsewhere.measures["cited_place"], elsewhere.measures["cited_gold"], elsewhere.wrong) == (0.0, 0.0, True)
    silent = judge(question, Answer("q", "Not in your documents.", "none", True))
    assert (silent.measures["f1"], silent.measures["abstention_precision"], silent.wrong) == (0.0, 0.0, True)
    none = EvalQuestion("2", "q", unanswerable=True)
    said, unsaid = judge(none, Answer("q", "yes", "llm", False)), judge(none, Answer("q", "no", "none", True))
    assert (said.wrong, unsaid.wrong) == (True, False)
    scores = summarise([right, silent, said, unsaid]).scores
    assert (scores["abstention_recall"].value, scores["abstention_recall"].n) == (0.5, 2)
    assert (scores["abstention_precision"].value, scores["abstention_precision"].n) == (0.5, 2)


def test_a_table_answer_is_exact_only_when_it_was_calculated() -> None:
    question = EvalQuestion("1", "q", "table", answers=("1,704.99",))
    table = TableResult("SELECT 1", ("n",), ((1704.9900001,),))
    assert judge(question, Answer("q", "x", "table", False, table=table)).measures["table_exact"] == 1.0
    assert judge(question, Answer("q", "1,704.99", "extractive", False)).measures["table_exact"] == 0.0


def test_floors_and_variants_are_parsed() -> None:
    assert parse_floor("hit@3=.95") == ("hit@3", 0.95)
    with pytest.raises(InputError, match="is no floor"):
        parse_floor("hit@3")
    assert [v.settings for v in variants(["fusion=rrf,classic"])] == [("retrieval.fusion=rrf",), ("retrieval.fusion=classic",)]
    both = variants(["fusion=rrf,classic", "document_processing.text_chunk_size=500,900"])
    assert [v.own_index for v in both] == [True] * 4
    assert [v.copied for v in variants(["embedder=bundled,ollama:mxbai"])] == [True, True]
    for wrong in ("fusion", "fusion=rrf", "port=1,2", "embedder=magic,none"):
        with pytest.raises(InputError):
            variants([wrong])


# ---------------------------------------------------------------- proposals


def test_proposed_questions_can_be_measured_at_once(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "proposed.yaml"
    command(place, "eval", "--make-questions", "8", "-o", str(file))
    assert "is there already" in command(place, "eval", "--make-questions", "8", "-o", str(file), code=2)
    assert command(place, "eval", "--make-questions", "8") == file.read_text(encoding="utf-8")
    chosen = read_set(file)
    assert {q.type for q in chosen.questions} == {"text", "identifier", "table", "unanswerable"}
    with open_service(place / "config.yaml") as service:
        for question in chosen.questions:
            for where in question.places:
                held = service.read(where.source, rows=where.rows, heading=where.heading)
                if question.type in ("text", "identifier"):
                    assert question.answers[0] in f"{held.text} {held.records}"
        assert as_yaml(propose(service, 8, seed=1)) != as_yaml(propose(service, 8, seed=2))
        assert len(propose(service, 3)) == 3


def test_a_language_model_proposes_questions_whose_answers_stand_in_the_passage(place: Path) -> None:
    written = iter([
        '{"question": "How long may opened shoes be returned?", "answer": "14 days"}',
        '{"question": "How long may shoes be returned on the moon?", "answer": "99 years"}',
        "no JSON at all",
    ])  # fmt: skip
    with running(FakeOllama(reply=lambda body: next(written))) as server:
        settings = ["llm.provider=ollama", f"ollama.base_url={server.url}"]
        with open_service(place / "config.yaml", settings=settings) as service:
            entries = [e for e in propose(service, 12) if e["type"] == "text"]
    assert len(entries) == 3
    assert [e["question"] for e in entries if e["answer"] == "14 days"] == ["How long may opened shoes be returned?"]
    assert "99 years" not in [e["answer"] for e in entries]
    assert sum(e["question"].startswith("What does “") for e in entries) == 2
