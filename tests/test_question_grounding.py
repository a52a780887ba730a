"""Conditions of a model's query that no word of the question stands for."""

from __future__ import annotations

import pytest

from hybrid_rag.question_grounding import invented, said, without

SYNONYMS = {"DE": ["Germany"]}


@pytest.mark.parametrize(
    ("question", "condition"),
    [
        ("How many orders came from Bern?", "city = 'Bern'"),
        ("How many orders came from Bern?", "city ILIKE '%bern%'"),
        ("How many orders came from Zürich and Bern?", "city IN ('Zurich', 'BERN')"),
        ("How many Canadians won?", "nation = 'Canada' AND result = 'W'"),
        ("How many came from New York?", "state = 'NY'"),
        ("How many came from Autralia?", "nation = 'Australia'"),  # misspelt
        ("How many came from Germany?", "country = 'DE'"),  # a synonym of the configuration
        ("Orders before 25 June 2005?", "paid_on < DATE '2005-06-25'"),
        ("How many were paid in May?", "month(paid_on) = 5"),
        ("How many in the 1990s?", "year(paid_on) BETWEEN 1990 AND 1999"),
        ("More than three million?", "amount > 3000000"),
        ("Who came in second place?", "place = 2"),
        ("Which grew more than 5,000?", "grown > 5000"),
        ("Which are not closed?", "closed = '' OR closed = 'no' OR closed IS NULL"),
        ("How many are there without any?", "amount = 0"),
        ("Who is listed right after Ida Moe?", "_row = (SELECT _row FROM t WHERE name = 'Ida Moe') + 1"),
        ("Which did not come from Bern?", "city <> 'Bern'"),
        ("Which other orders came from Bern?", "city = 'Bern' AND NOT order_id = 'other'"),
        ("Which are unpaid?", "status NOT IN ('paid')"),
        ("Which doesn't pay 5?", "amount <> 5"),
        ("Which has a temperature of -7?", "low = -7"),
        ("Which are open?", "open = true AND closed <> NULL"),
    ],
)
def test_what_the_question_says_is_not_invented(question: str, condition: str) -> None:
    assert invented(f"SELECT count(*) FROM t WHERE {condition}", question, SYNONYMS) == ()


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("city = 'Linz'", {"Linz"}),
        ("city IN ('Bern', 'Graz')", {"Graz"}),
        ("city = 'Bern' AND paid_on > '2024-01-05'", {"2024-01-05"}),
        ("city LIKE '%Linz%' OR amount BETWEEN 20 AND 30", {"%Linz%", "20", "30"}),
        ("lower(city) = 'graz'", {"graz"}),
        ("NOT (amount <> 7)", {"7", "not"}),
        ("city NOT LIKE '%Bern%'", {"not"}),
        ("city <> 'Bern' AND city <> ''", {"not"}),
        ("_row IN (SELECT _row FROM t WHERE city = 'Graz')", {"Graz"}),
    ],
)
def test_what_it_does_not_say_is(condition: str, found: set[str]) -> None:
    assert set(invented(f"SELECT count(*) FROM t WHERE {condition}", "How many orders came from Bern?", {})) == found


def test_texts_that_are_only_put_out_are_no_conditions() -> None:
    sql = "SELECT CASE WHEN count(*) > 200 THEN 'more' ELSE 'less' END FROM t ORDER BY 1 LIMIT 3"
    assert invented(sql, "Were there more than 200?", {}) == ()


def test_what_is_no_select_holds_nothing() -> None:
    assert invented("DROP TABLE t", "How many?", {}) == ()


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("WHERE city = 'Bern' AND paid_on = '2024-01-05'", "WHERE (city = 'Bern')"),
        ("WHERE paid_on = '2024-01-05' AND city = 'Bern' AND amount > 0", "WHERE ((city = 'Bern') AND (amount > 0))"),
        ("WHERE paid_on = '2024-01-05'", ""),
        ("WHERE city IN ('Bern', 'Graz')", None),  # a part of a condition is not cut out
        ("WHERE city = 'Bern' OR city = 'Graz'", None),
    ],
)
def test_whole_conditions_can_be_left_out(condition: str, left: str | None) -> None:
    less = without(f"SELECT count(*) FROM t {condition}", "How many orders came from Bern?", {})
    assert less == (None if left is None else f"SELECT count_star() FROM t {left}".strip().replace("count_star()", "count(*)"))


def test_a_query_says_the_words_of_its_columns_and_constants() -> None:
    sql = "SELECT unit_price FROM t WHERE city LIKE '%Bern%' ORDER BY amount"
    assert said(sql, "Which units in Bern have the highest amounts of rain?") == {"unit", "bern", "amount"}
    assert said("no SELECT", "Which units?") == frozenset()
