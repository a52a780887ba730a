"""The demonstration answers its own questions right: figures as Python computes them, places as the documents have them."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from hybrid_rag import demo

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(ROOT / "data", folder / "data")
    return folder


def run(place: Path, *questions: str) -> subprocess.CompletedProcess[str]:
    """The script, by keywords only, with an index in ``place``."""
    environment = os.environ | {
        "HYBRID_RAG__DATA__DIRECTORY": str(place / "data"),
        "HYBRID_RAG__VECTOR_STORE__PERSIST_DIRECTORY": str(place / "index"),
        "HYBRID_RAG__EMBEDDING__PROVIDER": "none",
        "HYBRID_RAG__OLLAMA__BASE_URL": "http://127.0.0.1:9",
    }
    line = [sys.executable, str(ROOT / "scripts" / "run_demo.py"), *questions]
    return subprocess.run(line, cwd=place, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=300)


def table(name: str) -> list[dict[str, str]]:
    with open(ROOT / "data" / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_own_questions(place: Path) -> None:
    done = run(place)
    assert done.returncode == 0, done.stderr
    opening, *answers = re.split(r"^\? ", done.stdout, flags=re.MULTILINE)
    assert "15 files indexed (15 new" in opening and "5 csv, 2 docx, 4 md, 2 pdf, 2 txt" in opening and " chunks" in opening
    shown = {text.partition("\n")[0]: text for text in answers}
    assert tuple(shown) == demo.QUESTIONS
    claims, months = table("warranty_claims"), Counter()
    for order in table("orders"):
        months[order["order_date"][:7]] += Decimal(order["order_value"])
    product, count = Counter(c["product_name"] for c in claims).most_common(1)[0]
    expected = (
        ["headphone_manual.pdf, page 3", "30 hours"],
        ["onboarding_guide.docx", "27 days"],
        ["return_policy.md, Return Policy > Return window", "14 days"],
        ["product_catalog.csv, row 105", "Auralis Studio Headphone 204"],
        [f"{product}: {count}", "SQL: SELECT", f"Stands on {len(claims)} records"],
        [f"{sum(c['status'] == 'rejected' for c in claims)} records", "SQL: SELECT"],
        [f"{month}: {total:,.2f}" for month, total in months.items()],
        ["Not in your documents."],
    )
    for question, parts in zip(demo.QUESTIONS, expected, strict=True):
        for part in parts:
            assert part in shown[question], shown[question]
        assert "Time: " in shown[question]
    assert done.stdout.count("Answered without a language model") == 1


def test_given_questions_with_an_index_in_place(place: Path) -> None:
    run(place, "x")
    done = run(place, "What is [bold]AU-CUSH-07[/bold]?")
    assert done.returncode == 0, done.stderr
    assert "0 new" in done.stdout and "? What is [bold]AU-CUSH-07[/bold]?" in done.stdout


def test_a_missing_folder_is_said_with_its_remedy(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 1
    assert "Error: " in done.stderr and "What to do: " in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "index").exists()
