"""The sample: made again it is the same, it agrees with itself, and every question's answer stands where it is said to stand."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import zipfile
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from hybrid_rag.loading import Limits, read
from hybrid_rag.records import Document

ROOT = Path(__file__).parents[1]
DATA = ROOT / "data"
SCRIPT = ROOT / "scripts" / "make_sample_data.py"
QUESTIONS: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests" / "eval" / "questions.yaml").read_text(encoding="utf-8"))
TABLES = ("product_catalog", "inventory", "orders", "warranty_claims", "customer_feedback")
WITH_LIBRARIES = pytest.mark.skipif(
    not (find_spec("docx") and find_spec("fpdf")), reason="needs the extra: pip install 'hybrid-rag[sample]'"
)


@cache
def table(name: str) -> list[dict[str, str]]:
    with open(DATA / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def document(name: str) -> Document:
    return read(DATA / name, source=name, limits=Limits(1 << 26, 100, 1 << 26, 60.0))


def plain(text: str) -> str:
    return " ".join(text.split())


def of_type(kind: str) -> list[dict[str, Any]]:
    return [q for q in QUESTIONS if q["type"] == kind]


# ---------------------------------------------------------------- made again


def make(folder: Path, *options: str) -> None:
    subprocess.run([sys.executable, str(SCRIPT), str(folder), *options], check=True, capture_output=True)


@WITH_LIBRARIES
def test_sample_made_again_is_the_same(tmp_path: Path) -> None:
    make(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in DATA.iterdir())
    for path in tmp_path.iterdir():
        assert _content(path) == _content(DATA / path.name), f"{path.name} differs: run `python scripts/make_sample_data.py data`"


def _content(path: Path) -> Any:
    if path.suffix != ".docx":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:  # the packed bytes differ between versions of zlib
        return [(entry.filename, entry.date_time, archive.read(entry)) for entry in archive.infolist()]


def test_large_set_has_its_size_and_is_the_same_each_time(tmp_path: Path) -> None:
    for run in ("first", "second"):
        make(tmp_path / run, "--scale", "large")
    files = {p.name: p.read_bytes() for p in sorted((tmp_path / "first").iterdir())}
    assert files == {p.name: p.read_bytes() for p in (tmp_path / "second").iterdir()}
    assert len(files) == 13
    assert sum(body.count(b"\n") - 1 for name, body in files.items() if name.endswith(".csv")) == 43_328
    assert sum(body.count(b"\n## ") for name, body in files.items() if name.endswith(".md")) == 500


# ---------------------------------------------------------------- agrees with itself


def test_files_and_records() -> None:
    kinds = Counter(p.suffix for p in DATA.iterdir())
    assert kinds == {".csv": 5, ".md": 4, ".docx": 2, ".pdf": 2, ".txt": 2}
    assert sum(len(table(name)) for name in TABLES) == 3_000


def test_every_record_refers_to_what_exists() -> None:
    catalog = {p["sku"]: p for p in table("product_catalog")}
    assert len(catalog) == len(table("product_catalog"))
    for name in ("inventory", "orders", "warranty_claims", "customer_feedback"):
        for record in table(name):
            assert record["product_name"] == catalog[record["sku"]]["product_name"], (name, record)
    for order in table("orders"):
        assert order["unit_price"] == catalog[order["sku"]]["unit_price"]
        assert Decimal(order["order_value"]) == int(order["quantity"]) * Decimal(order["unit_price"])
        assert order["order_date"] >= catalog[order["sku"]]["launch_date"]


def test_claims_follow_their_orders() -> None:
    orders = {o["order_id"]: o for o in table("orders")}
    claims = table("warranty_claims")
    assert len({c["claim_id"] for c in claims}) == len({c["order_id"] for c in claims}) == len(claims)
    for claim in claims:
        order = orders[claim["order_id"]]
        assert claim["sku"] == order["sku"]
        assert claim["claim_date"] > order["order_date"]
        assert claim["claim_id"][3:7] == claim["claim_date"][:4]
        assert bool(claim["repair_cost"]) == (claim["status"] == "approved")
    assert [c["claim_id"] for c in claims] == sorted(c["claim_id"] for c in claims)


def test_stock_is_counted_once_a_warehouse() -> None:
    places = [(r["sku"], r["warehouse"]) for r in table("inventory")]
    assert len(places) == len(set(places))


def test_figures_of_the_quality_report_are_those_of_the_tables() -> None:
    text = plain(document("quality_report_2024.md").text)
    claims, orders = table("warranty_claims"), table("orders")
    status = Counter(c["status"] for c in claims)
    cost = sum(Decimal(c["repair_cost"]) for c in claims if c["repair_cost"])
    (fault, faults), (product, products) = (Counter(c[k] for c in claims).most_common(1)[0] for k in ("fault", "product_name"))
    for figure in (
        f"{len(orders):,} order lines",
        f"{len(claims)} warranty claims",
        f"claim rate of {100 * len(claims) / len(orders):.1f} %",
        f"{status['approved']} claims were approved, {status['rejected']} were rejected and {status['pending']} are pending",
        f"{cost:,.2f} EUR in total",
        f'"{fault}" with {faults} claims',
        f"the {product} with {products} claims",
    ):
        assert figure in text
    category = {p["sku"]: p["category"] for p in table("product_catalog")}
    sold, claimed = Counter(category[o["sku"]] for o in orders), Counter(category[c["sku"]] for c in claims)
    for name in sold:
        assert re.search(rf"{name} \| {sold[name]} \| {claimed[name]} \| {100 * claimed[name] / sold[name]:.1f} %", text)


def test_documents_agree_with_each_other() -> None:
    manual, call, report = (
        plain(document(n).text) for n in ("headphone_manual.pdf", "support_call_SUP-88213.txt", "quality_report_2024.md")
    )
    for text in (manual, call, report):
        assert "irmware 4.2.1" in text
    assert "12 seconds" in manual and "12 seconds" in call
    names = {p["product_name"]: p["sku"] for p in table("product_catalog")}
    assert "Auralis Studio Headphone 204" in manual
    assert f"Auralis Studio Headphone 204 ({names['Auralis Studio Headphone 204']})" in call
    assert any(n.startswith("Brightwell") and "Monitor" in n for n in names) and any(
        n.startswith("Fennec") and "Wearable" in n for n in names
    )
    assert "until 31 January" in plain(document("return_policy.md").text)


def test_documents_have_what_readers_must_find() -> None:
    shipping, manual, agreement = document("shipping_policy.md"), document("headphone_manual.pdf"), document("supplier_agreement.docx")
    assert shipping.date == "2024-10-01" and shipping.tags == ("policy", "shipping")
    assert manual.pages == 6 and {b.page for b in manual.blocks} == set(range(1, 7))
    assert "gives Northwind the right to terminate within 30 days" in agreement.text  # the footnote
    assert any(b.role == "table" for b in agreement.blocks)
    assert not any(document(p.name).notices for p in DATA.iterdir())


# ---------------------------------------------------------------- questions


def test_fifty_questions_of_four_types() -> None:
    assert len({q["id"] for q in QUESTIONS}) == len({q["question"] for q in QUESTIONS}) == len(QUESTIONS) == 50
    assert Counter(q["type"] for q in QUESTIONS) == {"text": 22, "identifier": 10, "table": 10, "unanswerable": 8}
    assert {Path(q["source"]).suffix for q in of_type("text")} == {".md", ".docx", ".pdf", ".txt"}
    known = {"id", "type", "question", "source", "page", "heading", "rows", "answer", "accept", "absent"}
    assert set().union(*QUESTIONS) <= known


@pytest.mark.parametrize("question", of_type("text") + of_type("identifier"), ids=lambda q: q["id"])
def test_answer_stands_at_the_place(question: dict[str, Any]) -> None:
    forms = [question["answer"], *question.get("accept", ())]
    place = plain(_place(question))
    assert any(form in place for form in forms), f"{forms} not in {place!r}"
    assert question["answer"] not in question["question"]


def _place(question: dict[str, Any]) -> str:
    """The text of the place that a question names."""
    if "rows" in question:
        record = table(Path(question["source"]).stem)[question["rows"] - 1]
        identifier = next(iter(record.values()))
        assert identifier in question["question"]
        return " ".join(record.values())
    found = document(question["source"])
    blocks = found.blocks
    if "page" in question:
        blocks = tuple(b for b in blocks if b.page == question["page"])
    if "heading" in question:
        blocks = tuple(b for b in blocks if b.heading[-1:] == (question["heading"],))
    assert blocks, f"{question['source']} has no such place"
    return " ".join(found.text[b.start : b.end] for b in blocks)


def test_unanswerable_questions_have_no_answer() -> None:
    everything = " ".join(p.read_text(encoding="utf-8") for p in DATA.iterdir() if p.suffix in (".csv", ".md", ".txt"))
    everything += " ".join(document(p.name).text for p in DATA.iterdir() if p.suffix in (".docx", ".pdf"))
    for question in of_type("unanswerable"):
        assert "answer" not in question and "source" not in question
        for words in question["absent"]:
            assert words.casefold() not in everything.casefold(), f"{question['id']}: {words!r} stands in a document"


def extreme(values: Counter[str], sign: int) -> str:
    """The only most (sign 1) or least (sign -1) frequent value."""
    ranked = sorted(values.items(), key=lambda pair: -sign * pair[1])
    assert ranked[0][1] != ranked[1][1], "a tie has no single answer"
    return ranked[0][0]


def monthly(month: str) -> str:
    totals: defaultdict[str, Decimal] = defaultdict(Decimal)
    for order in table("orders"):
        totals[order["order_date"][:7]] += Decimal(order["order_value"])
    return f"{totals[month]:,.2f}"


COMPUTED: dict[str, Callable[[], str]] = {
    "c01": lambda: extreme(Counter(c["product_name"] for c in table("warranty_claims")), 1),
    "c02": lambda: str(sum(c["status"] == "rejected" for c in table("warranty_claims"))),
    "c03": lambda: monthly("2024-01"),
    "c04": lambda: str(len(table("product_catalog"))),
    "c05": lambda: f"{sum(int(f['rating']) for f in table('customer_feedback')) / len(table('customer_feedback')):.2f}",
    "c06": lambda: extreme(Counter(o["city"] for o in table("orders")), -1),
    "c07": lambda: f"{sum(Decimal(c['repair_cost'] or 0) for c in table('warranty_claims') if c['status'] == 'approved'):,.2f}",
    "c08": lambda: str(sum(o["city"] == "Berlin" and o["channel"] == "web" for o in table("orders"))),
    "c09": lambda: monthly("2024-03"),
    "c10": lambda: max(table("product_catalog"), key=lambda p: Decimal(p["unit_price"]))["product_name"],
}


@pytest.mark.parametrize("question", of_type("table"), ids=lambda q: q["id"])
def test_table_answers_are_what_python_computes(question: dict[str, Any]) -> None:
    assert question["answer"] == COMPUTED[question["id"]]()
