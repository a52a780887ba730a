"""Batches: questions in every form, answers in every form, stops, changes, failures, scores, and files that are not ours."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hybrid_rag.batch import is_correct, run_batch
from hybrid_rag.batch_output import CSV_FIELDS, alone, read
from hybrid_rag.batch_questions import read_questions
from hybrid_rag.errors import InputError
from hybrid_rag.service import Service, open_service
from tests.support.ollama import FakeOllama, running

MANUAL = "# Charging\n\nA full charge of the Auralis headphone lasts 38 hours.\n\n# Care\n\nClean the cushions with a dry cloth."
FORMS = ["a.jsonl", "a.csv", "a.md"]


def reply(body: dict) -> str:
    """What the questions of these tests are answered by; the word "cut" makes the server fail."""
    asked = body["messages"][-1]["content"].rpartition("Question: ")[2]
    return "Clean the cushions with a dry cloth [1]." if "clean" in asked.lower() else "A full charge lasts 38 hours [1]."


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("batch")
    (folder / "data" / "sub").mkdir(parents=True)
    (folder / "data" / "manual.md").write_text(MANUAL, encoding="utf-8")
    (folder / "data" / "sub" / "other.md").write_text("# Other\n\nA full charge of the other headphone lasts 38 hours.", encoding="utf-8")
    with running(FakeOllama(reply=reply)) as server:
        own = [f"data.directory={folder / 'data'}", f"vector_store.persist_directory={folder / 'index'}", f"ollama.base_url={server.url}",
               "embedding.provider=none", "retrieval.rerank=off", "llm.provider=ollama", "document_processing.workers=1"]  # fmt: skip
        with open_service(settings=own) as service:
            service.index()
            yield service, server, own


@pytest.fixture
def shop(settings) -> Service:
    return settings[0]


@pytest.fixture
def server(settings) -> FakeOllama:
    state = settings[1]
    state.requests.clear()
    state.reply, state.refusal, state.delay = reply, None, 0.0
    return state


def asked(server: FakeOllama) -> list[str]:
    return [b["messages"][-1]["content"].rpartition("Question: ")[2].partition("\n")[0] for b in server.bodies("/api/chat")]


def questions(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "q.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def records(path: Path) -> list[dict]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        return list(csv.DictReader(io.StringIO(text, newline="")))
    return [json.loads(line) for line in text.split("\n") if line]


CHARGE, CLEAN, WEIGHT = "How long does a full charge last?", "How do I clean the cushions?", "How much does the headphone weigh?"

# ---------------------------------------------------------------- stops and changes


@pytest.mark.parametrize("name", FORMS)
def test_done_questions_are_not_asked_again_and_changed_ones_are(shop: Service, server: FakeOllama, tmp_path: Path, name: str) -> None:
    output = tmp_path / name
    run_batch(shop, questions(tmp_path, CHARGE, CLEAN), output)
    first = output.read_text(encoding="utf-8")
    server.requests.clear()
    summary = run_batch(shop, questions(tmp_path, CHARGE, CLEAN), output)
    assert (asked(server), summary.skipped, summary.answered) == ([], 2, 0)
    assert output.read_text(encoding="utf-8") == first
    summary = run_batch(shop, questions(tmp_path, "How should I clean the cushions?", CHARGE), output)  # one gone, one new, above
    assert asked(server) == ["How should I clean the cushions?"]
    assert summary.skipped == 1
    text = output.read_text(encoding="utf-8")
    assert CLEAN not in text
    assert text.index("How should I clean") < text.index(CHARGE)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "q.txt"])


@pytest.mark.parametrize("name", FORMS)
def test_a_cut_at_any_byte_is_mended(shop: Service, server: FakeOllama, tmp_path: Path, name: str) -> None:
    output = tmp_path / name
    path = questions(tmp_path, CHARGE, f"{CLEAN} ä")
    run_batch(shop, path, output)
    form = {"a.jsonl": "jsonl", "a.csv": "csv", "a.md": "markdown"}[name]
    whole, complete = output.read_bytes(), read(output, form)
    for cut in range(0, len(whole), 7):
        output.write_bytes(whole[:cut])
        kept = read(output, form)
        assert kept == complete[: len(kept)], cut
    output.write_bytes(whole[:-25])
    server.requests.clear()
    assert run_batch(shop, path, output).skipped == 1
    assert asked(server) == [f"{CLEAN} ä"]
    again = output.read_text(encoding="utf-8")
    assert again.count("How long does a full charge last?") == whole.decode().count("How long does a full charge last?")
    assert len(read(output, form)) == 2


@pytest.mark.parametrize("name", FORMS)
def test_a_failed_question_is_recorded_the_others_answered_and_it_is_asked_again(
    shop: Service, server: FakeOllama, tmp_path: Path, name: str
) -> None:
    output, path = tmp_path / name, questions(tmp_path, CHARGE, "x" * 20_000, CLEAN)
    summary = run_batch(shop, path, output)
    assert (summary.answered, summary.failed, summary.exit_code) == (2, 1, 1)
    assert "too long" in output.read_text(encoding="utf-8").casefold() or "characters" in output.read_text(encoding="utf-8")
    path = questions(tmp_path, CHARGE, CLEAN)
    summary = run_batch(shop, path, output)
    assert (summary.skipped, summary.failed, summary.exit_code) == (2, 0, 0)
    assert "xxx" not in output.read_text(encoding="utf-8")


def test_a_server_that_fails_is_recorded_with_its_message(shop: Service, server: FakeOllama, tmp_path: Path) -> None:
    server.refusal = (500, "model requires more system memory (9 GiB)")
    output = tmp_path / "a.jsonl"
    assert run_batch(shop, questions(tmp_path, CHARGE, CLEAN), output).failed == 2
    assert "cannot load" in records(output)[0]["error"]
    server.refusal = None
    assert run_batch(shop, questions(tmp_path, CHARGE, CLEAN), output).answered == 2
    assert [r["error"] for r in records(output)] == [None, None]


def test_stop_on_error_keeps_what_was_done(shop: Service, server: FakeOllama, tmp_path: Path) -> None:
    summary = run_batch(shop, questions(tmp_path, CHARGE, "x" * 20_000, CLEAN, WEIGHT), tmp_path / "a.jsonl", on_error="stop")
    assert (summary.answered, summary.failed, summary.total) == (1, 1, 4)
    assert len(records(tmp_path / "a.jsonl")) == 2


def test_what_is_unexpected_ends_one_question_only(shop: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = shop.ask
    monkeypatch.setattr(shop, "ask", lambda q, **n: 1 / 0 if q == CLEAN else original(q, **n))
    summary = run_batch(shop, questions(tmp_path, CLEAN, CHARGE), tmp_path / "a.jsonl")
    assert (summary.answered, summary.failed) == (1, 1)
    assert "ZeroDivisionError" in records(tmp_path / "a.jsonl")[0]["error"]


def test_a_killed_run_goes_on_where_it_was(settings, server: FakeOllama, tmp_path: Path) -> None:
    path = questions(tmp_path, *(f"{CHARGE} {i}" for i in range(6)))
    output = tmp_path / "a.jsonl"
    line = [sys.executable, "-m", "hybrid_rag", "batch", str(path), "-o", str(output)]
    line += [part for setting in settings[2] for part in ("--set", setting)]
    server.delay = 0.2
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while (not output.exists() or output.read_text(encoding="utf-8").count("\n") < 2) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = output.read_text(encoding="utf-8").count("\n")
    assert 2 <= done < 6
    server.requests.clear()
    server.delay = 0.0
    run = subprocess.run(line, capture_output=True, encoding="utf-8", check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    assert f"{done} done before" in run.stdout
    assert f"[1/{6 - done}]" in run.stderr
    assert len(asked(server)) == 6 - done
    assert [r["id"] for r in records(output)] == ["1", "2", "3", "4", "5", "6"]


def test_order_is_kept_with_several_at_a_time(shop: Service, server: FakeOllama, tmp_path: Path) -> None:
    server.reply = lambda body: (time.sleep(0.2 if "charge last? 0" in body["messages"][-1]["content"] else 0), reply(body))[1]
    path = questions(tmp_path, *(f"{CHARGE} {i}" for i in range(5)))
    run_batch(shop, path, tmp_path / "a.jsonl", concurrency=4)
    assert [r["question"][-1] for r in records(tmp_path / "a.jsonl")] == ["0", "1", "2", "3", "4"]


# ---------------------------------------------------------------- files that are not ours


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"id": "1", "question": "my own"}\n'),
        ("a.jsonl", "notes\n"),
        ("a.csv", "name,price\nphone,3\n"),
        ("a.csv", "größe,preis\nklein,3\n"),
        ("a.md", "# My notes\n"),
        ("a.md", "## My notes\n\nText.\n"),
    ],
)
def test_another_file_is_left_as_it_is(shop: Service, tmp_path: Path, name: str, text: str) -> None:
    output = tmp_path / name
    output.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match="something else"):
        run_batch(shop, questions(tmp_path, CHARGE), output)
    assert output.read_bytes() == text.encode("latin-1")


def test_the_questions_are_not_replaced_by_the_answers(shop: Service, tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('{"question": "x"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="would replace"):
        run_batch(shop, path, path)


def test_two_batches_do_not_write_one_file(shop: Service, tmp_path: Path) -> None:
    with alone(tmp_path / "a.jsonl"), pytest.raises(InputError, match="Another batch"):
        run_batch(shop, questions(tmp_path, CHARGE), tmp_path / "a.jsonl")
    assert run_batch(shop, questions(tmp_path, CHARGE), tmp_path / "a.jsonl").answered == 1


# ---------------------------------------------------------------- questions


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.csv", 'id,question,expected\na,"How long, in\nhours?",38\n'),
        ("q.csv", 'id;question;expected\na;"How long, in\nhours?";38\n'),
        ("q.tsv", 'ID\tQuestion\tExpected\na\t"How long, in\nhours?"\t38\n'),
        ("q.jsonl", '{"id": "a", "question": "How long, in\\nhours?", "expected": 38}\n'),
        ("q.yaml", "questions:\n- {id: a, question: \"How long, in\\nhours?\", answer: '38'}\n"),
        ("q.yml", '\ufeff- {id: a, question: "How long, in\\nhours?", expected: [38]}\n'),
    ],
)
def test_questions_are_read_alike_in_every_form(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (question,) = read_questions(tmp_path / name)
    assert (question.id, question.question, question.expected) == ("a", "How long, in\nhours?", ("38",))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("q.csv", "id,frage\n1,x\n", "no column `question`"),
        ("q.jsonl", '{"question": "a"}\n{"question": \n', "line 2"),
        ("q.jsonl", '{"question": "a", "filters": {"foldr": "x"}}\n', "Unknown filter 'foldr'"),
        ("q.jsonl", '{"question": "a", "filters": "{"}\n', "Entry 1"),
        ("q.yaml", "questions: what\n", "no list"),
        ("q.docx", "a", "suffix"),
        ("q.txt", "# only a comment\n", "no questions"),
        ("q.yaml", "- {id: 1, question: a}\n- {id: 1, question: b}\n", "the id 1"),
        ("none.txt", None, "No such file"),
    ],
)
def test_what_is_wrong_with_a_file_of_questions_is_said(tmp_path: Path, name: str, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        read_questions(tmp_path / name)


def test_questions_may_have_filters_of_their_own(shop: Service, server: FakeOllama, tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({"question": CHARGE, "filters": {"folder": "sub"}}) + "\n", encoding="utf-8")
    run_batch(shop, path, tmp_path / "a.jsonl")
    assert {c["source"] for c in records(tmp_path / "a.jsonl")[0]["citations"]} == {"sub/other.md"}


def test_other_default_filters_ask_anew(shop: Service, server: FakeOllama, tmp_path: Path) -> None:
    from hybrid_rag.filters import Filters

    path, output = questions(tmp_path, CHARGE), tmp_path / "a.jsonl"
    run_batch(shop, path, output)
    assert run_batch(shop, path, output, filters=Filters.parse(folder="sub")).skipped == 0
    assert len(records(output)) == 1


@pytest.mark.parametrize("key", ["retrieval.filters.folder", "batch.filters.folder"])
def test_configured_filters_hold_in_a_batch(settings, server: FakeOllama, tmp_path: Path, key: str) -> None:
    from hybrid_rag.cli.asking import batch
    from hybrid_rag.cli.common import Run

    code = batch(Run(None, [*settings[2], f"{key}=sub"], False, False), questions(tmp_path, CHARGE), tmp_path / "a.jsonl")
    assert code == 0
    assert {c["source"] for c in records(tmp_path / "a.jsonl")[0]["citations"]} == {"sub/other.md"}


# ---------------------------------------------------------------- answers


def test_expected_answers_are_scored_over_the_whole_output(shop: Service, server: FakeOllama, tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    entries = [{"question": CHARGE, "expected": "38 hours"}, {"question": CLEAN, "expected": ["wet cloth", "damp cloth"]}]
    for name in FORMS:
        path.write_text("".join(json.dumps(e) + "\n" for e in entries[:1]), encoding="utf-8")
        run_batch(shop, path, tmp_path / name)
        path.write_text("".join(json.dumps(e) + "\n" for e in entries), encoding="utf-8")
        summary = run_batch(shop, path, tmp_path / name)
        assert (summary.skipped, summary.scored, summary.correct) == (1, 2, 1)


@pytest.mark.parametrize(
    ("answer", "expected", "right"),
    [
        ("It costs 1,299.99 EUR.", "1299.99", True),
        ("It costs 1299.99 EUR.", "1,299.99", True),
        ("In 2014.", "14", False),
        ("The  fee is\n15 %.", "15 %", True),
        ("Within FOURTEEN days", "fourteen days", True),
        ("café", "Cafe", True),
    ],
)
def test_what_counts_as_right(answer: str, expected: str, right: bool) -> None:
    assert is_correct(answer, [expected]) == right


def test_csv_has_every_field_and_nothing_that_a_spreadsheet_would_run(shop: Service, server: FakeOllama, tmp_path: Path) -> None:
    run_batch(shop, questions(tmp_path, f"=1+2 {CHARGE}", CLEAN), tmp_path / "a.csv")
    first, second = records(tmp_path / "a.csv")
    assert tuple(first) == CSV_FIELDS
    assert first["question"].startswith("'=1+2")
    assert json.loads(second["citations"])[0]["source"] == "manual.md"
    assert set(json.loads(second["tokens"])) >= {"prompt", "answer", "context", "whole_files"}
    assert float(json.loads(second["milliseconds"])["total"]) > 0


def test_markdown_shows_text_of_documents_as_text(shop: Service, server: FakeOllama, tmp_path: Path) -> None:
    attack = "![x](http://evil.example/a) <script>alert(1)</script> <!-- 0123456789abcdef answered right -->"
    output = tmp_path / "a.md"
    run_batch(shop, questions(tmp_path, f"{CHARGE} {attack}", CLEAN), output)
    text = output.read_text(encoding="utf-8")
    assert "](" not in text.replace("\\]", "")
    assert "<script" not in text.replace("\\<", "")
    assert [r.key for r in read(output, "markdown")] == [q.key for q in read_questions(tmp_path / "q.txt")]
    from markdown_it import MarkdownIt

    shown = MarkdownIt().render(text)
    assert "<img" not in shown and "<a " not in shown and "<script" not in shown
    assert "![x](http://evil.example/a)" in shown.replace("&quot;", '"')
