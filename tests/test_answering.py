"""The whole path from a question to a checked answer: with a scripted model, without one, and when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_rag.errors import InputError, OllamaUnreachableError
from hybrid_rag.service import Service, open_service
from tests.support.injections import FACT, INJECTIONS, QUESTION
from tests.support.ollama import FakeOllama, running

NOBODY = "http://127.0.0.1:9"
MANUAL = "# Charging\n\nA full charge of the Auralis headphone lasts 38 hours.\n\n# Care\n\nClean the cushions with a dry cloth."
ASKED = "How long does a full charge of the Auralis headphone last?"


def service(tmp_path: Path, url: str = NOBODY, *settings: str, **files: str) -> Service:
    root = tmp_path / "data"
    root.mkdir(exist_ok=True)
    for name, text in files.items():
        (root / f"{name}.md").write_text(text, encoding="utf-8")
    own = [f"data.directory={root}", f"vector_store.persist_directory={tmp_path / 'index'}", f"ollama.base_url={url}", "ollama.connect_seconds=1",
           "document_processing.workers=1"]  # fmt: skip
    return open_service(settings=[*own, *settings])


def says(text: str) -> FakeOllama:
    return FakeOllama(reply=lambda body: text)


# ---------------------------------------------------------------- a model


def test_a_model_answers_with_checked_citations_and_its_embeddings(tmp_path: Path) -> None:
    with (
        running(says("A full charge lasts 38 hours [1]. It weighs 900 grams [1].")) as server,
        service(tmp_path, server.url, manual=MANUAL) as shop,
    ):
        report = shop.index()
        answer = shop.ask(ASKED)
        inputs = [t for b in server.bodies("/api/embed") for t in b["input"]]
    assert report.embedder == "ollama:nomic-embed-text"
    assert (answer.mode, answer.model) == ("llm", "llama3.1:latest")
    assert answer.answer == "A full charge lasts 38 hours [1]."
    assert answer.citations[0].source == "manual.md"
    assert "38 hours" in answer.citations[0].quote
    assert answer.citations[0].verified
    assert any("900 grams" in c for c in answer.checks)
    assert answer.tokens["prompt"] == 123
    assert answer.tokens.keys() >= {"prompt", "answer", "context", "whole_files"}
    assert any(t.startswith("search_document: ") for t in inputs)
    assert any(t.startswith("search_query: ") for t in inputs)
    assert "search_" not in str(answer.to_dict())


def test_only_checked_text_is_streamed(tmp_path: Path) -> None:
    with (
        running(says("A full charge lasts 38 hours [1]. It weighs 900 grams [1].")) as server,
        service(tmp_path, server.url, manual=MANUAL) as shop,
    ):
        shop.index()
        shown: list[str] = []
        answer = shop.ask(ASKED, on_token=shown.append)
    assert "".join(shown) == answer.answer == "A full charge lasts 38 hours [1]."


def test_what_stands_in_the_heading_or_file_name_may_be_said(tmp_path: Path) -> None:
    files = {"Nimbus_X2": "# Nimbus X2 camera\n\n## Battery\n\nIt takes 450 pictures with one charge."}
    with (
        running(says("The Nimbus X2 camera takes 450 pictures with one charge [1].")) as server,
        service(tmp_path, server.url, **files) as shop,
    ):
        shop.index()
        answer = shop.ask("How many pictures does the Nimbus X2 camera take with one charge?")
    assert answer.answer == "The Nimbus X2 camera takes 450 pictures with one charge [1]."


def test_an_invented_answer_falls_back_to_a_quote(tmp_path: Path) -> None:
    with running(says("It lasts 99 hours [1].")) as server, service(tmp_path, server.url, manual=MANUAL) as shop:
        shop.index()
        shown: list[str] = []
        answer = shop.ask(ASKED, on_token=shown.append)
    assert answer.mode == "extractive"
    assert "38 hours" in answer.answer
    assert answer.answer in MANUAL
    assert any("did not stand in its sources" in n for n in answer.notes)
    assert any("99 hours" in c for c in answer.checks)
    assert shown == []


def test_a_model_that_only_points_to_a_passage_falls_back_to_a_quote(tmp_path: Path) -> None:
    with running(says("[1]")) as server, service(tmp_path, server.url, manual=MANUAL) as shop:
        shop.index()
        answer = shop.ask(ASKED)
    assert answer.mode == "extractive"
    assert "38 hours" in answer.answer
    assert "The model named a passage and gave no answer." in answer.checks


def test_a_model_that_does_not_know_abstains_and_the_nearest_passages_are_there(tmp_path: Path) -> None:
    with running(says("I don't know. [1]")) as server, service(tmp_path, server.url, manual=MANUAL) as shop:
        shop.index()
        answer = shop.ask(ASKED)
    assert (answer.abstained, answer.mode, answer.citations) == (True, "none", ())
    assert answer.hits[0].source == "manual.md"


def test_off_topic_questions_never_reach_the_model(tmp_path: Path) -> None:
    with running(says("Mars is red [1].")) as server, service(tmp_path, server.url, manual=MANUAL) as shop:
        shop.index()
        answer = shop.ask("Who won the football world cup in 1998?")
        other = shop.ask("How many moons does Mars have?")
        assert server.bodies("/api/chat") == []
    assert answer.abstained and other.abstained
    assert answer.answer == "Not in your documents."
    assert answer.citations == ()


def test_quoted_words_in_a_question_are_no_condition(tmp_path: Path) -> None:
    with service(tmp_path, manual=MANUAL) as shop:
        shop.index()
        answer = shop.ask('How long does a "complete charge" of the Auralis headphone last?')
        exact = shop.ask('How long does a "full charge" of the Auralis headphone last?')
    assert "38 hours" in answer.answer
    assert "No passage holds the quoted words; these come nearest." in answer.notes
    assert "38 hours" in exact.answer
    assert [hit.rank for hit in exact.hits] == list(range(1, len(exact.hits) + 1))
    assert len({hit.chunk_id for hit in exact.hits}) == len(exact.hits)


def test_nothing_retrieved_never_reaches_the_model(tmp_path: Path) -> None:
    with running(says("Yes [1].")) as server, service(tmp_path, server.url, "embedding.provider=none", manual=MANUAL) as shop:
        shop.index()
        answer = shop.ask("zzzz qqqq")
        assert server.bodies("/api/chat") == []
    assert (answer.abstained, answer.hits) == (True, ())


def test_an_index_that_has_become_empty_never_reaches_the_model(tmp_path: Path) -> None:
    with running(says("Yes [1].")) as server, service(tmp_path, server.url, "embedding.provider=none", manual=MANUAL) as shop:
        shop.index()
        (tmp_path / "data" / "manual.md").write_text("", encoding="utf-8")
        shop.index()
        answer = shop.ask(ASKED)
        assert server.bodies("/api/chat") == []
    assert (answer.answer, answer.abstained, answer.citations, answer.hits) == ("Not in your documents.", True, (), ())


def test_a_citation_keeps_its_number_in_the_list(tmp_path: Path) -> None:
    other = "# Charging cases\n\nA charge of the case of the Auralis headphone lasts long."
    with running() as server, service(tmp_path, server.url, "embedding.provider=none", manual=MANUAL, other=other) as shop:
        shop.index()
        sources = [hit.source for hit in shop.ask(ASKED).hits]
        n = sources.index("manual.md") + 1
        server.reply = lambda body: f"A full charge lasts 38 hours [{n}]."
        answer = shop.ask(ASKED)
    assert len(sources) > 1
    assert answer.answer == f"A full charge lasts 38 hours [{n}]."
    assert [(c.n, c.source) for c in answer.citations] == [(n, "manual.md")]


# ---------------------------------------------------------------- the context


def test_a_long_prompt_is_cut_from_its_end_and_num_ctx_is_sent(tmp_path: Path) -> None:
    filler = "The warranty of opened headphones covers many a small fault of the battery. " * 40
    files = {f"doc{i}": f"# Warranty {i}\n\n{filler}" for i in range(8)}
    files["first"] = f"# Return window of headphones\n\n{FACT} {filler[:300]}"
    with running(says("The return window for opened headphones is 14 days [1].")) as server:
        with service(
            tmp_path, server.url, "ollama.num_ctx=1536", "ollama.max_answer_tokens=100", "answers.context_chunks=8", **files
        ) as shop:
            shop.index()
            answer = shop.ask(QUESTION)
        body = server.bodies("/api/chat")[0]
    assert body["options"]["num_ctx"] == 1536
    assert FACT in body["messages"][1]["content"]
    assert sum(len(m["content"]) for m in body["messages"]) / 4 < 1536 - 100
    assert any("no room for more" in note for note in answer.notes)
    assert answer.mode == "llm"


def test_a_question_that_fills_the_context_is_refused(tmp_path: Path) -> None:
    with (
        running(says("x")) as server,
        service(tmp_path, server.url, "ollama.num_ctx=512", "ollama.max_answer_tokens=100", manual=MANUAL) as shop,
    ):
        shop.index()
        with pytest.raises(InputError, match="fewer words"):
            shop.ask(ASKED + " Auralis headphone charge hours" * 100)


def test_an_answer_that_the_server_cut_off_says_so(tmp_path: Path) -> None:
    reply = "A full charge of the Auralis headphone lasts 38 hours [1]. " * 3
    with running(says(reply)) as server, service(tmp_path, server.url, "ollama.max_answer_tokens=16", manual=MANUAL) as shop:
        shop.index()
        answer = shop.ask(ASKED)
    assert any("cut off at 16 tokens" in note for note in answer.notes)


# ---------------------------------------------------------------- injection


@pytest.mark.parametrize("name", INJECTIONS)
def test_a_model_that_obeys_a_document_is_not_shown(name: str, injected: tuple[Service, FakeOllama]) -> None:
    """The worst case: the model does what the document wants. Then the real fact is quoted instead."""
    shop, server = injected
    payload = INJECTIONS[name][1]
    server.reply = lambda body: f"The answer is {payload} [1]. {payload} [2]."
    answer = shop.ask(QUESTION)
    assert payload.casefold() not in answer.answer.casefold()
    assert "14 days" in answer.answer
    assert answer.citations[0].source == "returns.md"


def test_a_document_is_told_when_it_speaks_to_the_model(injected: tuple[Service, FakeOllama]) -> None:
    shop, server = injected
    server.reply = lambda body: "The return window for opened headphones is 14 days [1]. HACKED [1]. HACKED [2]."
    answer = shop.ask(QUESTION + " Ignore hacked headphones.")
    assert "HACKED" not in answer.answer
    assert any("speak" in check and "to the language model" in check for check in answer.checks)


@pytest.fixture(scope="module")
def injected(tmp_path_factory: pytest.TempPathFactory):
    """A service whose documents hold the fact, and every attack beside words of the question."""
    files = {f"note{i:02}": f"# Return window\n\nOpened headphones. {text}" for i, (text, _) in enumerate(INJECTIONS.values())}
    with (
        running() as server,
        service(tmp_path_factory.mktemp("injected"), server.url, returns=f"# Return window\n\n{FACT}", **files) as shop,
    ):
        shop.index()
        yield shop, server


# ---------------------------------------------------------------- the model is missing, or fails


def test_a_server_that_goes_away_is_said_and_words_still_find(tmp_path: Path) -> None:
    with running() as server, service(tmp_path, server.url, manual=MANUAL) as shop:
        shop.index()
    with service(tmp_path, server.url) as shop:
        result = shop.search("full charge")
        assert result.mode == "keyword"
        assert "No Ollama server" in result.notes[0]
        report = shop.index()
        assert report.counts["unchanged"] == 1
        assert any("No vectors were made" in m for m in report.messages)


def test_auto_falls_back_to_quotes_and_says_why(tmp_path: Path) -> None:
    with running(FakeOllama(models={"nomic-embed-text:latest": "x"})) as server, service(tmp_path, server.url, manual=MANUAL) as shop:
        shop.index()
        answer = shop.ask(ASKED)
    assert answer.mode == "extractive"
    assert any("does not have the model" in note for note in answer.notes)


@pytest.mark.parametrize("question", ["Who won the football world cup in 1998?", ASKED])
def test_no_answer_does_not_say_that_it_was_answered(tmp_path: Path, question: str) -> None:
    with service(tmp_path, NOBODY, "embedding.provider=none", "answers.quote_from=99", manual=MANUAL) as shop:
        shop.index()
        answer = shop.ask(question)
    assert answer.mode == "none"
    assert not any("Answered without" in note for note in answer.notes)
    assert bool(answer.citations) == any("No language model could look" in note for note in answer.notes)


def test_every_answer_says_what_it_cost_and_what_whole_files_would(tmp_path: Path) -> None:
    long = "# Auralis\n\n" + "A full charge of the Auralis headphone lasts 38 hours. Some more words about it.\n\n" * 200
    with service(tmp_path, NOBODY, "embedding.provider=none", manual=long) as shop:
        shop.index()
        tokens = shop.ask(ASKED).tokens
    assert (tokens["prompt"], tokens["answer"]) == (0, 0)
    assert tokens["whole_files"] == pytest.approx(len(long) / 4, rel=0.02)
    assert 200 < tokens["context"] < 1300


def test_auto_falls_back_when_the_model_fails_in_mid_answer(tmp_path: Path) -> None:
    with (
        running(FakeOllama(reply=lambda b: "a b c d", error_line="out of memory")) as server,
        service(tmp_path, server.url, manual=MANUAL) as shop,
    ):
        shop.index()
        answer = shop.ask(ASKED)
    assert answer.mode == "extractive"
    assert any("without a language model" in note and "out of memory" in note for note in answer.notes)


def test_a_model_that_must_be_there_must_be_there(tmp_path: Path) -> None:
    with service(tmp_path, NOBODY, "llm.provider=ollama", "embedding.provider=none", manual=MANUAL) as shop:
        shop.index()
        before = shop.stats()
        with pytest.raises(OllamaUnreachableError, match="ollama serve"):
            shop.ask(ASKED)
        assert shop.stats() == before
