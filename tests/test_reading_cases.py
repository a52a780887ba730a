"""Files as people really have them, from the folder to the hit: found, quoted as written, at the right place."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid_rag import Service, open_service
from hybrid_rag.loading.scan import scan
from hybrid_rag.records import FileReport, Hit, IndexReport
from hybrid_rag.workers import Failed, Finished, ReadOptions, read_one
from tests.support.files import pdf


def settings(data: Path) -> list[str]:
    return [f"data.directory={data}", f"vector_store.persist_directory={data.parent / 'index'}", "embedding.provider=none"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases") / "data"
    folder.mkdir()

    def write(name: str, content: str | bytes) -> None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    write("accounts.csv", "Account,Routing\n0010,021000021\n0011,021000022\n")
    write("prices.csv", "Produkt;Preis\nCafé;1.234,56\nTee;2,00\n".encode("cp1252"))
    write("NOTES.CSV", 'id,note,n\n1,"first line\nsecond line",1\n2,"a stray quote,2\n3,marmalade,3\n4,"quoted, cell",4\n')
    write("ragged.csv", "a,b\n1,2,threesome,4\n5\n")
    write("long.csv", f"key,text\nK-1,{'filler ' * 20_000}zanzibar\nK-2,short\0er\n")
    write("table.md", "\n".join(["# Parts", "", "| part | name |", "|---|---|", *(f"| P-{i:03} | name{i} |" for i in range(200))]))
    write("offline.md", "# Title\n\nA first paragraph.\n\nA second one about quicksilver.\n")
    write(unicodedata.normalize("NFD", "Übersicht.md"), unicodedata.normalize("NFD", "# Übersicht\n\nDas Café liegt in Zürich.\n"))
    write("emoji.txt", "🔥🔥🔥")
    write("blank.txt", "\n \n\t\n")
    write("empty.csv", "")
    write("script.md", "# Page\n\n<script>alert('periwinkle')</script>\n")
    pdf(folder / "pages.pdf", ["The first fact is alabaster.", "Nothing here to see.", "The last fact is obsidian."])
    pdf(folder / "breaks.pdf", ["The global cli-\nmate has changed, it is a price-\ndetermining factor for grain."])
    return folder


@pytest.fixture(scope="module")
def report(data: Path) -> IndexReport:
    with open_service(settings=settings(data)) as service:
        return service.index()


@pytest.fixture
def service(data: Path, report: IndexReport) -> Iterator[Service]:
    with open_service(settings=settings(data)) as opened:
        yield opened


def first(service: Service, query: str) -> Hit:
    return service.search(query, mode="keyword").hits[0]


def of(report: IndexReport, source: str) -> FileReport:
    return next(file for file in report.files if file.source == source)


def test_every_file_is_in_the_report_and_none_failed(report: IndexReport) -> None:
    assert len(report.files) == 14
    assert {file.status for file in report.files} == {"read"}
    assert "no text" in of(report, "blank.txt").notices[0].message
    assert "no records" in of(report, "empty.csv").notices[0].message


def test_identifiers_are_found_and_shown_as_written(service: Service) -> None:
    hit = first(service, "021000021")
    assert "Account: 0010\nRouting: 021000021" in hit.chunk.text
    passage = service.read("accounts.csv", rows=(1, 1))
    assert passage.records == (("0010", "021000021"),)


def test_a_european_export_has_its_columns_and_letters(service: Service, report: IndexReport) -> None:
    assert "Produkt: Café\nPreis: 1.234,56" in first(service, "Café Preis").chunk.text
    assert (of(report, "prices.csv").encoding, of(report, "prices.csv").dialect) == ("cp1252", 'delimiter semicolon, quote "')


def test_record_numbers_count_records_not_lines(service: Service) -> None:
    assert first(service, "marmalade").source == "NOTES.CSV"
    assert service.read("NOTES.CSV", rows=(3, 3)).records == (("3", "marmalade", "3"),)
    assert service.read("NOTES.CSV", rows=(1, 1)).records == (("1", "first line\nsecond line", "1"),)
    assert service.read("NOTES.CSV").row_count == 4


def test_ragged_records_keep_their_cells(service: Service, report: IndexReport) -> None:
    hit = first(service, "threesome")
    assert "None" not in hit.chunk.text
    assert "row 1" in of(report, "ragged.csv").notices[0].message


def test_a_cell_above_131072_characters_is_found_to_its_end(service: Service) -> None:
    assert first(service, "zanzibar").source == "long.csv"
    assert "shorter" in first(service, "shorter").chunk.text


def test_a_row_deep_in_a_table_comes_with_its_header(service: Service) -> None:
    hit = first(service, "name180")
    assert "| P-180 | name180 |" in hit.chunk.text
    assert "| part | name |" in hit.chunk.header
    assert hit.chunk.text.splitlines()[0].startswith("| P-")


@pytest.mark.parametrize(("word", "page"), [("alabaster", 1), ("obsidian", 3)])
def test_pages_are_counted_from_one(service: Service, word: str, page: int) -> None:
    hit = first(service, word)
    assert (hit.source, hit.chunk.page) == ("pages.pdf", page)


@pytest.mark.parametrize("word", ["climate", "price-determining"])
def test_both_kinds_of_line_breaks_are_found(service: Service, word: str) -> None:
    hit = first(service, word)
    assert hit.source == "breaks.pdf"
    assert word in hit.chunk.text


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_composed_and_decomposed_texts_and_names_meet(service: Service, form: str) -> None:
    hit = first(service, unicodedata.normalize(form, "Zürich Café"))
    assert hit.source == unicodedata.normalize("NFC", "Übersicht.md")
    assert unicodedata.normalize("NFC", hit.chunk.text) == hit.chunk.text


def test_reading_reaches_for_nothing_outside(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, where the guard of the tests fails whatever looks up a name or connects."""
    monkeypatch.setenv("NLTK_DATA", str(tmp_path))
    events = [event for file in scan(data).files for event in read_one(file, ReadOptions(tables_directory=tmp_path))]
    assert [event for event in events if isinstance(event, Failed)] == []
    assert len([event for event in events if isinstance(event, Finished)]) == 14


def test_a_file_from_the_future_that_changed_behind_its_stamp_is_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "a.txt"
    later = 4_000_000_000
    path.write_text("the word is aardvark", encoding="utf-8")
    os.utime(path, (later, later))
    with open_service(settings=settings(folder)) as service:
        service.index()
        path.write_text("the word is anteater", encoding="utf-8")
        os.utime(path, (later, later))
        assert service.index().counts["changed"] == 1
        assert first(service, "anteater").source == "a.txt"
        assert service.search("aardvark", mode="keyword").hits == ()
        assert service.index().counts["unchanged"] == 1
