"""Table files as people really have them: broken quotes, preambles, no header, other encodings."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid_rag.errors import ReadError
from hybrid_rag.loading import Limits, csv_records, read
from hybrid_rag.loading.csv_records import read_leniently
from hybrid_rag.loading.dialect import Dialect, find_dialect
from hybrid_rag.records import Document


def load(path: Path, content: bytes | str) -> Document:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read(path, source=path.name, limits=Limits())


def records(document: Document) -> list[list[str]]:
    assert document.rows is not None
    return [list(r) for r in document.rows.open()]


def said(document: Document) -> str:
    return " ".join(n.message for n in document.notices)


def test_a_stray_quote_costs_no_other_record(tmp_path: Path) -> None:
    content = 'id,note,n\n1,"multi\nline",1\n2,"stray,2\n3,ok,3\n4,"quoted, cell",4\n5,last,5\n'
    document = load(tmp_path / "a.csv", content)
    assert records(document) == [
        ["1", "multi\nline", "1"],
        ["2", '"stray', "2"],
        ["3", "ok", "3"],
        ["4", "quoted, cell", "4"],
        ["5", "last", "5"],
    ]
    assert "quote" in said(document)


def test_a_quote_that_is_never_closed_does_not_swallow_the_file(tmp_path: Path) -> None:
    rows = "".join(f"{i},x{i}\n" for i in range(60_000))
    document = load(tmp_path / "a.csv", f'n,v\n0,"open\n{rows}')
    assert len(records(document)) == 60_001
    assert records(document)[-1] == ["59999", "x59999"]


def test_quotes_inside_a_cell_of_several_lines_stay(tmp_path: Path) -> None:
    document = load(tmp_path / "a.csv", 'a,b,c\n1,"He said "hi" and\nleft",3\n4,5,6\n')
    assert records(document) == [["1", 'He said "hi" and\nleft', "3"], ["4", "5", "6"]]


def test_backslash_escapes_and_paths(tmp_path: Path) -> None:
    escaped = 'a,b\n"x \\"q\\" z","C:\\\\dir"\n"plain \\"w\\" y",it\\\'s\n'
    assert records(load(tmp_path / "a.csv", escaped)) == [['x "q" z', "C:\\dir"], ['plain "w" y', "it\\'s"]]
    assert records(load(tmp_path / "c.csv", 'a,b\n"x \\""y",1\n')) == [['x \\"y', "1"]]  # a backslash of the author, then a doubled quote
    assert records(load(tmp_path / "b.csv", 'a,b\n"C:\\new\\",2\n')) == [["C:\\new\\", "2"]]


def test_lines_above_the_header_are_kept_beside_it(tmp_path: Path) -> None:
    content = "Department for Work,,\nPeriod: 2013,,\nName,Trip,Cost\nAnn,Paris,10\nBob,Rome,20\nCy,Oslo,30\nDi,Bonn,40\n"
    document = load(tmp_path / "a.csv", content)
    assert document.rows.header == ("Name", "Trip", "Cost")
    assert records(document)[0] == ["Ann", "Paris", "10"]
    assert document.metadata["above"] == "Department for Work\nPeriod: 2013"
    assert "2 lines stand above the header" in said(document)


@pytest.mark.parametrize(
    ("content", "header"),
    [
        ("399.1989,74.37753\n401.1,73.21\n402.2,70.1\n", ("column_1", "column_2")),
        ("2024-01-01,5\n2024-01-02,6\n2024-01-03,7\n", ("column_1", "column_2")),
        ("2004,2005,2006\n1,2,3\n4,5,6\n", ("2004", "2005", "2006")),
        ("version,1.0,2.0\nspeed,fast,faster\nsize,5,6\n", ("version", "1.0", "2.0")),
    ],
)
def test_a_first_record_of_values_is_no_header(tmp_path: Path, content: str, header: tuple) -> None:
    document = load(tmp_path / "a.csv", content)
    assert document.rows.header == header
    assert len(records(document)) == len(content.splitlines()) - (header[0] != "column_1")


def test_an_empty_column_at_the_end_is_no_column(tmp_path: Path) -> None:
    document = load(tmp_path / "a.csv", "a,b,\n1,2,\n3,4,\n")
    assert document.rows.header == ("a", "b")
    assert records(document) == [["1", "2"], ["3", "4"]]
    assert not document.notices


def test_records_of_empty_cells_are_none(tmp_path: Path) -> None:
    assert records(load(tmp_path / "a.csv", "a,b\n1,2\n,\n\n3,4\n,,\n")) == [["1", "2"], ["3", "4"]]


def test_a_hundred_and_fifty_columns(tmp_path: Path) -> None:
    header = [f"c{i}" for i in range(150)]
    document = load(tmp_path / "a.csv", ",".join(header) + "\n" + ",".join(map(str, range(150))) + "\n")
    assert document.rows.header == tuple(header)
    assert records(document) == [[str(i) for i in range(150)]]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_line_ends_and_encodings(tmp_path: Path, newline: str, encoding: str) -> None:
    content = newline.join(["naïve,b", "Café,2", "Größe,4", ""]).encode(encoding)
    document = load(tmp_path / "a.csv", content)
    assert (document.rows.header, records(document)) == (("naïve", "b"), [["Café", "2"], ["Größe", "4"]])


def test_single_quotes_and_separators_inside_them(tmp_path: Path) -> None:
    assert records(load(tmp_path / "a.csv", "a,b\n'x, y','1'\n'z','2, 3'\n")) == [["x, y", "1"], ["z", "2, 3"]]


def test_text_with_commas_is_one_column_only_when_nothing_separates(tmp_path: Path) -> None:
    document = load(tmp_path / "a.csv", "name\nx\ny z\n")
    assert (document.rows.header, document.dialect) == (("name",), "one column")


def test_an_image_named_csv_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="image"):
        load(tmp_path / "a.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)


def test_binary_content_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="not text"):
        load(tmp_path / "a.csv", bytes(range(1, 32)) * 100)


def test_a_late_byte_of_another_encoding_is_seen(tmp_path: Path) -> None:
    content = b"a,b\n" + b"plain,text\n" * 40_000 + "Café,Größe\n".encode("cp1252") * 50
    document = load(tmp_path / "a.csv", content)
    assert document.encoding == "cp1252"
    assert records(document)[-1] == ["Café", "Größe"]


cells = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Co"], exclude_characters="\ufeff"), max_size=12).map(
    str.strip
)
rows = st.lists(st.lists(cells.filter(bool), min_size=3, max_size=3), min_size=3, max_size=12)


@settings(max_examples=150, deadline=None)
@given(rows, st.sampled_from([",", ";", "\t", "|"]))
def test_what_is_written_with_all_cells_quoted_comes_back(tmp_path_factory, table: list[list[str]], delimiter: str) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows([["first", "second", "third"], *table])
    document = load(tmp_path_factory.mktemp("csv") / "a.csv", out.getvalue())
    import unicodedata

    assert records(document) == [[unicodedata.normalize("NFC", cell) for cell in row] for row in table]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_crash_the_reader(tmp_path_factory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_bytes(content)
    try:
        document = read(path, source="a.csv", limits=Limits())
    except ReadError:
        return
    assert all(isinstance(cell, str) for row in document.rows.open() for cell in row)


def test_reading_leniently_takes_quotes_for_text_only_where_it_must() -> None:
    assert read_leniently('1,"a, b",2', ",", '"', 3) == ["1", "a, b", "2"]
    assert read_leniently('1,"a,2', ",", '"', 3) == ["1", '"a', "2"]
    assert read_leniently('1,"5"" pipe",2', ",", '"', 3) == ["1", '5" pipe', "2"]
    assert read_leniently("1,2", ",", '"', 3) is None


def test_the_cut_last_line_of_a_sample_does_not_mislead() -> None:
    assert find_dialect("a;b;c\n1;2;3\n4;5;6\n7", complete=False).delimiter == ";"


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text('ab,"\n\\é;', max_size=12), max_size=12), st.sampled_from([1, 7, 40]))
def test_how_much_is_parsed_together_makes_no_difference(tmp_path_factory, lines: list[str], size: int) -> None:
    path = tmp_path_factory.mktemp("blocks") / "a.csv"
    path.write_text("\n".join(["h,i,j", *lines]), encoding="utf-8")

    def found() -> list[list[str]]:
        return list(csv_records.records(path, "utf-8", Dialect(), width=3))

    together = found()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_records, "BLOCK", size)
        patch.setattr(csv_records, "BLOCK_LINES", size)
        assert found() == together


def test_bytes_that_are_not_of_the_encoding_are_counted(tmp_path: Path) -> None:
    rows = "".join(f"{i},Größe \ufffd and Übermaß\n" for i in range(200)).encode()
    document = load(tmp_path / "a.csv", b"a,b\n" + rows + b"201,broken \xff here\n")
    assert document.encoding == "utf-8"
    assert [(n.message, n.partial) for n in document.notices] == [("1 byte is not valid utf-8 and was replaced.", True)]
    assert load(tmp_path / "b.csv", b"a,b\n" + rows).notices == ()


ORDERS = "day,id,price,name,note\n" + "".join(f"{i:02}/03/2024,A-{i},${i}.50,Great boots {i},\n" for i in range(1, 15))


@pytest.mark.parametrize(
    "record",
    [
        ",20/03/2024,A-20,$20.50,Great boots 20,",
        "20/03/2024,,A-20,$20.50,Great boots 20,",
        "20/03/2024,A-20,,$20.50,Great boots 20,",
        "20/03/2024,A-20,,$20.50,Boots,",
    ],
)
def test_one_delimiter_too_many_shifts_no_cell(tmp_path: Path, record: str) -> None:
    document = load(tmp_path / "a.csv", ORDERS + record + "\n")
    assert records(document)[-1] == ["20/03/2024", "A-20", "$20.50", "Boots" if "Boots" in record else "Great boots 20", ""]
    assert "row 15" in said(document)


@pytest.mark.parametrize(
    "record",
    [
        "20/03/2024,A-20,$20.50,Great boots 20,,",
        "20/03/2024,A-20,$20.50,Great boots 20,,more",
        "20/03/2024,A-20,$20.50,Great boots 20,n,more",
        ",,,,,more",
    ],
)
def test_records_are_not_shifted_without_need(tmp_path: Path, record: str) -> None:
    document = load(tmp_path / "a.csv", ORDERS + record + "\n")
    wanted = record.split(",")
    assert records(document)[-1][: len(wanted)] == (wanted if wanted[-1] else wanted[:-1])
    assert "shifted" not in said(document)


def test_a_second_table_below_is_not_taken_for_slips(tmp_path: Path) -> None:
    below = "".join(f"{i:02}/03/2024,,A-{i},${i}.50,Great boots {i},\n" for i in range(1, 15))
    document = load(tmp_path / "a.csv", ORDERS + below)
    assert records(document)[-1] == ["14/03/2024", "", "A-14", "$14.50", "Great boots 14"]
    assert "shifted" not in said(document)


def test_quotes_behind_blanks_open_a_cell(tmp_path: Path) -> None:
    document = load(tmp_path / "a.csv", 'a, b, c\n1, "x, y", 3\n4, "z", 6\n')
    assert document.rows.header == ("a", "b", "c")
    assert records(document) == [["1", "x, y", "3"], ["4", "z", "6"]]
    assert records(load(tmp_path / "b.csv", 'a,b\n1, said "no" there\n')) == [["1", ' said "no" there']]


def test_a_few_control_codes_and_an_old_end_mark_are_no_reason_to_refuse(tmp_path: Path) -> None:
    assert records(load(tmp_path / "a.csv", "a,b\n1,2\x1a")) == [["1", "2"]]
    assert len(records(load(tmp_path / "b.csv", "a,b\n1,x\x0by\n"))) == 1


def test_the_line_that_names_the_separator_stands_above_the_header(tmp_path: Path) -> None:
    document = load(tmp_path / "a.csv", "sep=;\na;b\n1;2\n3;4\n")
    assert (document.rows.header, records(document)) == (("a", "b"), [["1", "2"], ["3", "4"]])
    assert "1 line stands above" in said(document)
