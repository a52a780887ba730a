"""A model's query held against the cells: what it means is found, what it asks for runs, and what was changed is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_rag.errors import SqlRejectedError
from hybrid_rag.loading import Limits, tabular
from hybrid_rag.question_cells import meant, mentions
from hybrid_rag.question_mending import mended
from hybrid_rag.question_prompt import card_text, told
from hybrid_rag.question_tables import TableWords
from hybrid_rag.table_store import SqlLimits, TableStore
from hybrid_rag.tables import build

RACE = """Pos,Driver,Car,Country,Time,Date,Season,Day
1a,Jörg Müller,Ford Sierra RS500,Germany (FRG),9:58.4,4 May 1990,1990,4 May
2b,Ann O'Hara,Ford Sierra RS500[1],Ireland,10:01.2,4 May 1990,1990,4 May
10c,Bo Lind,BMW M3,Sweden,10:40.0,unknown,1991,5 May
9d,Cy Young,BMW M3,United States,10:20.9,7 June 1991,1991,7 June
3e,Di Rossini,Alfa 75,Italy,10:05.5,7 June 1991,1991,7 June
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory):
    folder: Path = tmp_path_factory.mktemp("tables")
    (folder / "race.csv").write_text(RACE, encoding="utf-8")
    card = build(tabular.read(folder / "race.csv", Limits()).rows, folder / "race.parquet", source="race.csv")
    store = TableStore(folder, lambda: [(card, "race.parquet")], lambda: 1, limits=SqlLimits(seconds=5))
    yield store, TableWords(store, {})
    store.close()


def first(parts, sql: str) -> list:
    store, words = parts
    return [row[0] for row in store.query(mended(sql, store.cards(), words.cells).sql).rows]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT car FROM race WHERE driver = 'jorg muller'", ["Ford Sierra RS500"]),  # case, accents
        ("SELECT driver FROM race WHERE car = 'Ford Sierra'", ["Jörg Müller", "Ann O'Hara"]),  # words inside cells
        ("SELECT driver FROM race WHERE car = 'ford sierra rs500'", ["Jörg Müller", "Ann O'Hara"]),  # a footnote
        ("SELECT driver FROM race WHERE lower(country) = lower('Germany')", ["Jörg Müller"]),  # a remark in brackets
        ("SELECT car FROM race WHERE driver = 'Di Rosini'", ["Alfa 75"]),  # a misspelling
        ("SELECT car FROM race WHERE country = 'Bo Lind'", ["BMW M3"]),  # the wrong column
        ("SELECT driver FROM race WHERE driver = 'Sweden'", ["Bo Lind"]),
        ("SELECT driver FROM race WHERE car LIKE '%bmw%'", ["Bo Lind", "Cy Young"]),
        ("SELECT driver FROM race WHERE car NOT LIKE 'ford%' AND car != 'alfa 75'", ["Bo Lind", "Cy Young"]),
        ("SELECT driver FROM race WHERE driver IN ('O''Hara', 'lind')", ["Ann O'Hara", "Bo Lind"]),
        ("SELECT driver FROM race WHERE date LIKE '%May%'", ["Jörg Müller", "Ann O'Hara"]),  # a typed column, as written
        ("SELECT driver FROM race WHERE date = 'unknown'", ["Bo Lind"]),
        ("SELECT driver FROM race WHERE date = '1991-06-07' ORDER BY driver", ["Cy Young", "Di Rossini"]),  # as it is
        ("SELECT driver FROM race ORDER BY pos DESC LIMIT 1", ["Bo Lind"]),  # 10c is behind 9d
        ("SELECT driver FROM race ORDER BY time LIMIT 1", ["Jörg Müller"]),  # 9:58 is shorter than 10:01
        ("SELECT max(pos) FROM race", ["10c"]),
        ("SELECT max(time) FROM race", ["10:40.0"]),
        ("SELECT driver FROM race WHERE pos = 2", ["Ann O'Hara"]),
        ("SELECT count(*) FROM race WHERE pos < 4", [3]),
        ("SELECT count(*) FROM race WHERE pos BETWEEN 2 AND 9", [3]),
        ("SELECT count(*) FROM race WHERE year(season) = 1991", [3]),
        ("SELECT drivers FROM race WHERE pos = '1a'", ["Jörg Müller"]),  # the column is called driver
        ("SELECT driver FROM race WHERE time = (SELECT min(time) FROM race)", ["Jörg Müller"]),
    ],
)
def test_a_query_finds_what_it_means(parts, sql: str, expected: list) -> None:
    assert first(parts, sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT driver FROM race WHERE car = 'BMW M3' AND season > 1990 ORDER BY season DESC LIMIT 1",
        "SELECT count(*) FROM race WHERE car = 'Lada Niva'",  # no cell is near: it stays, and finds nothing
        "SELECT country, count(*) FROM race GROUP BY country ORDER BY count(*) DESC",
        "SELECT car FROM elsewhere WHERE x = 'y'",
        "SELECT driver FROM race ORDER BY day DESC LIMIT 1",  # days of months are no numbers
    ],
)
def test_what_is_right_stays_as_it_is(parts, sql: str) -> None:
    store, words = parts
    found = mended(sql, store.cards(), words.cells)
    assert (found.sql, found.changes) == (sql, ())


def test_a_text_that_no_cell_holds_is_told_with_cells(parts) -> None:
    store, words = parts
    found = mended("SELECT count(*) FROM race WHERE car LIKE '%Lada%'", store.cards(), words.cells)
    assert found.sql == "SELECT count(*) FROM race WHERE (car ILIKE '%Lada%')"
    assert found.unknown == ("No cell of car is like 'Lada'; its cells: 'Alfa 75', 'BMW M3', 'Ford Sierra RS500', 'Ford Sierra RS500[1]'.",)


def test_a_changed_function_keeps_its_name_in_the_result(parts) -> None:
    store, words = parts
    result = store.query(mended("SELECT max(time) FROM race", store.cards(), words.cells).sql)
    assert (result.columns, result.rows) == (("max(time)",), (("10:40.0",),))


def test_what_cannot_be_met_is_told(parts) -> None:
    store, words = parts
    both = "SELECT car FROM race WHERE driver = 'Bo Lind' AND driver = 'Cy Young'"
    assert mended(both, store.cards(), words.cells).unknown == (
        "No record has 'Bo Lind' and 'Cy Young' in driver at once: use OR, or a subquery for each.",
    )
    assert mended("SELECT car FROM race WHERE circuit = 'Spa'", store.cards(), words.cells).unknown == (
        "There is no column circuit; all records may be about it.",
    )


def test_changes_are_told(parts) -> None:
    store, words = parts
    changes = mended("SELECT car FROM race WHERE country = 'bo lind' ORDER BY pos", store.cards(), words.cells).changes
    assert changes == ("“bo lind” was read as Driver: “Bo Lind”.", "Pos was ordered by the numbers in it.")


def test_what_is_no_select_is_refused(parts) -> None:
    store, words = parts
    with pytest.raises(SqlRejectedError):
        mended("DROP TABLE race", store.cards(), words.cells)


def test_cells_that_a_text_means() -> None:
    cells = ["St. Mary's (London)", "St. Mary's Hospital", "Graz", "Grazing Fields"]
    assert meant("st mary's", cells).cells == ("St. Mary's (London)",)
    assert meant("hospital", cells).cells == ("St. Mary's Hospital",)
    assert meant("Gratz", ["Graz", "Linz"]) is None  # too short to tell
    assert meant("hospital", cells, whole=True) is None
    assert meant("Austria", ["Australia", "Italy"]) is None  # another country, no misspelling
    assert meant("Slovakia", ["Slovenia"]) is None
    assert meant("product 12", ["Product 13"]) is None
    assert meant("Hansen", ["Hanson", "Hansan"]) is None  # which one?
    assert meant("Amsterdma", ["Amsterdam"]).cells == ("Amsterdam",)
    assert meant("Barzelone", ["Barcelona"]).cells == ("Barcelona",)
    assert meant("Vienna", cells) is None
    assert meant("%", cells) is None


def test_the_prompt_names_the_cells_of_the_question_and_shows_their_records(parts) -> None:
    store, words = parts
    card = store.cards()[0]
    named = [(card, m) for m in mentions("what car did cy young or di rosini drive?", *words.of(card, True))]
    text = told("what car did cy young or di rosini drive?", [card], named, store, 5000)
    assert "Cells with words of the question: driver: 'Cy Young'; driver: 'Di Rossini'" in text
    assert "4 | 9d | Cy Young | BMW M3" in text
    assert text.endswith("Question: what car did cy young or di rosini drive?")
    assert "  season BIGINT, -- 1990 to 1991" in card_text(card, store)


def test_a_word_inside_cells_of_several_columns_names_none(tmp_path: Path) -> None:
    text = "Team,Car,Laps\nNissan Motorsport,Nissan Skyline,90\nAlfa Corse,Skoda 130,91\nGarage Two,Alfa 75,80\n"
    (tmp_path / "cars.csv").write_text(text, encoding="utf-8")
    card = build(tabular.read(tmp_path / "cars.csv", Limits()).rows, tmp_path / "cars.parquet", source="cars.csv")
    store = TableStore(tmp_path, lambda: [(card, "cars.parquet")], lambda: 1, limits=SqlLimits(seconds=5))
    parts = TableWords(store, {}).of(card, True)
    assert list(mentions("how many cars were in the nissan race?", *parts)) == []
    assert [m.cells for m in mentions("how many laps did the skoda make?", *parts)] == [("Skoda 130",)]
    assert [m.cells for m in mentions("how many laps did nissan skyline make?", *parts)] == [("Nissan Skyline",)]
    store.close()


def test_records_that_add_others_up_are_left_out_unless_they_are_asked_for(tmp_path: Path) -> None:
    text = "Team,Points,Won\nAlianza,15,3\nPenarol,20,6\nNacional,30,9\nColo-Colo,10,2\nTotal,75,20\n"
    (tmp_path / "league.csv").write_text(text, encoding="utf-8")
    card = build(tabular.read(tmp_path / "league.csv", Limits()).rows, tmp_path / "league.parquet", source="league.csv")
    store = TableStore(tmp_path, lambda: [(card, "league.parquet")], lambda: 1, limits=SqlLimits(seconds=5))
    words = TableWords(store, {})
    for sql, expected in (
        ("SELECT sum(points) FROM league", 75),
        ("SELECT count(*) FROM league WHERE points > 12", 3),
        ("SELECT team FROM league ORDER BY points DESC LIMIT 1", "Nacional"),
        ("SELECT team FROM league WHERE points = (SELECT max(points) FROM league)", "Nacional"),
        ("SELECT sum(points) FROM league WHERE team = 'total'", 75),
        ("SELECT points FROM league WHERE team = 'Penarol'", 20),
        ("SELECT count(*) FROM league WHERE _row < 3", 2),
    ):
        assert store.query(mended(sql, [card], words.cells).sql).rows == ((expected,),), sql
    told = mended("SELECT sum(points) FROM league", [card], words.cells).changes
    assert told == ("The record that adds others up was left out.",)
    store.close()


def test_an_empty_text_counts_as_a_missing_one(tmp_path: Path) -> None:
    (tmp_path / "parishes.csv").write_text("parish,closed,until\nAnn,1990s,1990\nBede,,\nCuthbert,\n", encoding="utf-8")
    card = build(tabular.read(tmp_path / "parishes.csv", Limits()).rows, tmp_path / "parishes.parquet", source="parishes.csv")
    store = TableStore(tmp_path, lambda: [(card, "parishes.parquet")], lambda: 1, limits=SqlLimits(seconds=5))
    both = store, TableWords(store, {})
    assert first(both, "SELECT parish FROM parishes WHERE closed IS NULL") == ["Bede", "Cuthbert"]
    assert first(both, "SELECT parish FROM parishes WHERE closed IS NOT NULL") == ["Ann"]
    assert first(both, "SELECT parish FROM parishes WHERE until IS NULL") == ["Bede", "Cuthbert"]
    store.close()


def test_a_difference_of_a_column_and_itself_goes_back(parts) -> None:
    store, words = parts
    found = mended("SELECT season - season FROM race WHERE driver = 'Bo Lind' OR driver = 'Cy Young'", store.cards(), words.cells)
    assert found.unknown == ("season - season is always 0: use a subquery for each record.",)
    assert mended("SELECT season - 1990 FROM race", store.cards(), words.cells).unknown == ()


def test_a_whole_table_is_no_answer(parts) -> None:
    store, words = parts
    with pytest.raises(SqlRejectedError, match="lists the whole table"):
        mended("SELECT * FROM race ORDER BY pos", store.cards(), words.cells)
    assert first(parts, "SELECT * FROM race WHERE car = 'Alfa 75'") == [5]
    assert first(parts, "SELECT * FROM race ORDER BY _row DESC LIMIT 1") == [5]
