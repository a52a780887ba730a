"""Typed tables and read-only SQL, and a suite of hostile statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid_rag.errors import HybridRagError, InputError, SqlLimitError, SqlRejectedError, TableError
from hybrid_rag.loading import Limits, tabular
from hybrid_rag.records import RowStream, TableCard
from hybrid_rag.table_database import TableDatabase
from hybrid_rag.table_store import SqlLimits, TableStore
from hybrid_rag.tables import build, sql_names

CELLS = """id,zip,amount,euro,when,us,paid,note,qty,gap
O-1,0010,"$1,200.50","1.234,56",2024-01-05,1/31/2024,yes,"a ""q""
b",1,
O-2,0200,$3.00,"2,50",2024-02-06,2/1/2024,no,x,two,5
O-3,3000,"($7.25)","10,00",2024-03-07,3/2/2024,yes,NULL,3,—
"""
ROWS = "".join(f'O-{i},{i:04d},$1.00,"1,00",2024-04-08,4/3/2024,no,n,4,6\n' for i in range(4, 60))


def card_of(tmp_path: Path, text: str, name: str = "orders.csv") -> TableCard:
    (tmp_path / name).write_text(text, encoding="utf-8")
    stream = tabular.read(tmp_path / name, Limits()).rows
    assert stream is not None
    return build(stream, tmp_path / f"{name}.parquet", source=name)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory):
    tmp_path = tmp_path_factory.mktemp("tables")
    cards = [
        (card_of(tmp_path, CELLS + ROWS), "orders.csv.parquet"),
        (card_of(tmp_path, "id,city\nO-1,Bern\nO-2,Graz\n", "places.csv"), "places.csv.parquet"),
    ]
    made = TableStore(tmp_path, lambda: cards, lambda: 1, limits=SqlLimits(seconds=0.5, rows=10, memory_mb=128, characters=1_000_000))
    yield made
    made.close()


def test_types_are_found_over_all_rows(store: TableStore) -> None:
    columns = {c.name: c for c in store.card("orders").columns}
    assert {name: c.type for name, c in columns.items()} == {
        "id": "text", "zip": "text", "amount": "decimal", "euro": "decimal", "when": "date", "us": "date",
        "paid": "boolean", "note": "text", "qty": "integer", "gap": "integer",
    }  # fmt: skip
    assert columns["id"].is_key
    assert not columns["zip"].is_key or columns["zip"].distinct == 59
    assert (columns["qty"].unreadable, columns["gap"].nulls) == (1, 2)
    assert (columns["when"].minimum, columns["amount"].minimum) == ("2024-01-05", -7.25)
    assert columns["paid"].values == ("False", "True")


def test_values_are_right_and_as_written(store: TableStore) -> None:
    result = store.query('SELECT amount, euro, "when", us, paid, zip, qty FROM orders ORDER BY _row LIMIT 2')
    assert result.rows[0] == (1200.5, 1234.56, "2024-01-05", "2024-01-31", True, "0010", 1)
    assert result.rows[1][-1] is None
    header, rows = store.rows("orders.csv", 1, 2)
    assert header[:3] == ("id", "zip", "amount")
    assert rows[0][2] == "$1,200.50"
    assert rows[0][7] == 'a "q"\nb'
    assert rows[1][8] == "two"


def test_likely_joins(store: TableStore) -> None:
    assert [(j.column, j.other_table) for j in store.card("places").joins] == []
    assert store.query("SELECT p.city, o.amount FROM orders o JOIN places p USING (id) ORDER BY 1").rows == (
        ("Bern", 1200.5),
        ("Graz", 3.0),
    )


def test_results_are_cut_and_say_so(store: TableStore) -> None:
    result = store.query("SELECT * FROM orders")
    assert (len(result.rows), result.truncated) == (10, True)
    assert result.sources == ("orders.csv",)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE orders", "DELETE FROM orders", "INSERT INTO orders VALUES (1)", "UPDATE orders SET id = 1", "CREATE TABLE x (a INT)",
        "COPY orders TO '/tmp/x.csv'", "EXPORT DATABASE '/tmp/x'", "ATTACH '/tmp/x.db'", "INSTALL httpfs", "LOAD httpfs", "PRAGMA version",
        "SET memory_limit='90GB'", "RESET memory_limit", "CALL pragma_version()", "SELECT 1; SELECT 2", "SELECT 1; DROP TABLE orders",
        "EXPLAIN SELECT 1", "BEGIN", "CHECKPOINT", "VACUUM", "/* x */ DROP TABLE orders", "", "-- nothing", "SELEC 1", "WITH x AS (SELECT 1) DELETE FROM orders",
        "SELECT 1 /* */; /* */ DROP TABLE orders --", "PREPARE p AS SELECT 1", "PIVOT orders ON paid USING count(*)", "SHOW TABLES", "DESCRIBE orders",
        "SUMMARIZE orders", "USE memory", "CREATE SECRET s (TYPE s3)", "SELECT " + "1," * 20_000 + "1", "SELECT " + "(" * 5000 + "1" + ")" * 5000,
        "SELECT 1; \0", "COPY (SELECT 1) TO '/tmp/x'", "SET VARIABLE a = 1", "COMMENT ON TABLE orders IS 'x'",
    ],
)  # fmt: skip
def test_only_one_select_is_allowed(store: TableStore, sql: str) -> None:
    with pytest.raises(SqlRejectedError):
        store.query(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM '/etc/passwd'", "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')", "SELECT * FROM read_parquet('*.parquet')", "SELECT * FROM read_json('/etc/hosts')", "SELECT getenv('HOME')",
        "SELECT * FROM read_blob('/etc/passwd')", "SELECT * FROM sniff_csv('/etc/passwd')", "SELECT (SELECT content FROM read_text('/etc/passwd'))",
        "WITH f AS (SELECT * FROM read_csv('http://127.0.0.1:9/x')) SELECT * FROM f", "SELECT * FROM nowhere", "SELECT nothing FROM orders",
        "SELECT * FROM duckdb_settings()", "SELECT * FROM information_schema.tables", "SELECT current_setting('home_directory')", "SELECT * FROM sqlite_master",
        "SELECT * FROM query('SELECT 1')", "SELECT * FROM query_table('orders')", "SELECT * FROM pragma_database_list", "SELECT * FROM system.main.orders",
        "SELECT * FROM orders, LATERAL (SELECT * FROM read_text('/etc/passwd'))", "SELECT * FROM pg_catalog.pg_class", "SELECT * FROM 'orders.csv'",
        "SELECT \"GetEnv\"('HOME')", "SELECT * FROM duckdb_secrets()", "SELECT parquet_metadata('x')", "SELECT * FROM parquet_metadata('/tmp/x.parquet')",
        "SELECT * FROM SqlLimits", "WITH orders AS (SELECT * FROM '/etc/passwd') SELECT * FROM orders", "SELECT * FROM seq_scan('orders')",
        "SELECT id FROM orders WHERE id IN (SELECT content FROM read_text('/etc/passwd'))", "SELECT * FROM read_csv_auto(['/etc/passwd'])",
    ],
)  # fmt: skip
def test_the_machine_is_out_of_reach(store: TableStore, sql: str) -> None:
    with pytest.raises(TableError) as caught:
        store.query(sql)
    assert "root:" not in str(caught.value)
    assert caught.value.remedy


def test_files_stay_out_of_reach_without_the_judge(tmp_path: Path) -> None:
    """The second wall: DuckDB itself reads nothing outside the tables' folder, and its configuration cannot be changed."""
    import duckdb

    (tmp_path / "inside").mkdir()
    (tmp_path / "secret.csv").write_text("a\n1\n", encoding="utf-8")
    database = TableDatabase(tmp_path / "inside", 64)
    for sql in (
        f"SELECT * FROM read_csv('{tmp_path}/secret.csv')", f"SELECT * FROM read_text('{tmp_path}/inside/../secret.csv')", "SELECT * FROM glob('/etc/*')",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'", f"ATTACH '{tmp_path}/x.db'", "SET enable_external_access=true", "SET memory_limit='9GB'", "INSTALL httpfs",
        "SET allowed_directories=['/']", "RESET lock_configuration", "SELECT * FROM tmp_path",
    ):  # fmt: skip
        with pytest.raises(duckdb.Error):
            database.cursor().execute(sql).fetchall()
    database.close()


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE t AS (SELECT 1 a UNION ALL SELECT a + 1 FROM t) SELECT count(*) FROM t",
        "SELECT count(*) FROM range(1000000) a, range(1000000) b",
        "SELECT string_agg(repeat('x', 1000), '') FROM range(10000000)",
        "SELECT repeat('x', 1000000000)",
        "SELECT length(repeat('x', 2000000000))",
        "SELECT range(1000000000)",
        "SELECT list(range) FROM range(1000000000)",
        "SELECT replace(replace(replace(repeat('x', 1000), 'x', repeat('y', 1000)), 'y', repeat('z', 1000)), 'z', 'aa')",
        "SELECT repeat('x', 1000000) FROM range(9)",
        "SELECT count(*) FROM orders a, orders b, orders c, orders d, orders e, orders f",
    ],
)
def test_limits(store: TableStore, sql: str) -> None:
    with pytest.raises(SqlLimitError) as caught:
        store.query(sql)
    assert caught.value.remedy
    assert store.query("SELECT count(*) FROM orders").rows == ((59,),)


@pytest.mark.parametrize("sql", ["SELECT * FROM range(100000000000)", "SELECT repeat('x', 10000) FROM range(1000) a, orders"])
def test_long_results_are_cut(store: TableStore, sql: str) -> None:
    result = store.query(sql)
    assert (len(result.rows), result.truncated) == (10, True)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("WITH a AS (SELECT id FROM orders WHERE qty = 1) SELECT count(*) FROM a", ((1,),)),
        ("WITH orders AS (SELECT * FROM orders WHERE qty = 3) SELECT count(*) FROM orders", ((1,),)),
        ("SELECT count(*) FROM Orders o WHERE EXISTS (SELECT 1 FROM places p WHERE p.id = o.id);", ((2,),)),
        ("SELECT amount / 0, 'nan'::double, date '2024-01-02' FROM orders LIMIT 1", ((None, None, "2024-01-02"),)),
        ("VALUES (1, 'a')", ((1, "a"),)),
    ],
)
def test_what_is_allowed(store: TableStore, sql: str, rows: tuple) -> None:
    assert store.query(sql).rows == rows


def test_unknown_tables_are_said(store: TableStore) -> None:
    with pytest.raises(InputError, match="orders, places"):
        store.rows("none.csv", 1, 2)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["A B", "a-b", "2024", "#", "_row", ""], ["a_b", "a_b_2", "c_2024", "number", "row", "column_6"]),
        (["Größe", "年"], ["grösse", "年"]),
    ],
)
def test_names_for_sql(labels: list[str], names: list[str]) -> None:
    assert sql_names(labels) == names


@pytest.mark.parametrize(
    ("text", "rows"), [("a\n", 0), ("a,b\n,\n,\n", 0), ("a\n" + "x" * 200_000 + "\n", 1)], ids=["header", "blank", "long"]
)
def test_odd_tables_are_built(tmp_path: Path, text: str, rows: int) -> None:
    assert card_of(tmp_path, text).rows == rows


def test_errors_have_a_message(store: TableStore) -> None:
    with pytest.raises(HybridRagError) as caught:
        store.query("SELECT nothing FROM orders")
    assert "orders" in caught.value.remedy


def test_a_table_does_not_depend_on_the_one_before(tmp_path: Path) -> None:
    """One database makes table after table; what went wrong in one leaves nothing for the next."""
    first = card_of(tmp_path, CELLS + ROWS, "a.csv")

    def broken():
        yield ["1", "x"]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        build(RowStream(("a", "b"), broken), tmp_path / "broken.parquet", source="broken.csv")
    assert not (tmp_path / "broken.parquet").exists()
    again = card_of(tmp_path, CELLS + ROWS, "b.csv")
    assert (again.columns, again.rows) == (first.columns, first.rows)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "a.csv.parquet", "b.csv", "b.csv.parquet"]


TOTALS = "region,year,sales\nNorth,2020,10\nSouth,2020,20\nEast,2021,30\nWest,2021,40\n{}\n"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("Total,,100", (5,)),
        ("TOTALS:,,", (5,)),
        ("Grand total,,100", (5,)),
        ("Centre,2021,100", ()),  # one column proves nothing
        ("Total Energies,2022,7", ()),
        ("Summer,2022,7", ()),
    ],
)
def test_records_that_add_others_up(tmp_path: Path, row: str, expected: tuple[int, ...]) -> None:
    assert card_of(tmp_path, TOTALS.format(row)).total_rows == expected


def test_the_last_record_without_a_place_adds_the_others_up(tmp_path: Path) -> None:
    rows = "#,district,people\n1,Micoud,10\n2,Dennery,20\n3,Castries,30\n4,Choiseul,5\n,Whole island,65\n"
    assert card_of(tmp_path, rows).total_rows == (5,)


def test_kinds_of_records_called_total_are_no_summaries(tmp_path: Path) -> None:
    rows = "kind,city,n\n" + "".join(f"{'total' if i % 2 else 'part'},c{i},{i}\n" for i in range(1, 12))
    assert card_of(tmp_path, rows).total_rows == ()
