"""The large set for benchmarks: ten tables with 43,328 records together and three Markdown files with 500 sections."""

from __future__ import annotations

import csv
import random
from pathlib import Path

from sample_data.tables import BRANDS, CATEGORIES, CITIES, LINES
from sample_data.words import FAULTS, comment

SEED = 7
RECORDS = 43_328
TABLES = (
    "claims_north",
    "claims_south",
    "orders_web",
    "orders_store",
    "orders_phone",
    "feedback_a",
    "feedback_b",
    "stock",
    "returns",
    "repairs",
)
SECTIONS = {"handbook.md": 200, "procedures.md": 200, "faq.md": 100}
TOPICS = ("returns", "shipping", "warranty", "charging", "pairing", "stock counting", "price changes", "training", "safety", "invoices")
HEADER = ("id", "date", "product", "brand", "city", "amount", "note")


def write(folder: Path, *, times: float = 1) -> None:
    """``times``: how many times as many records and sections."""
    rng = random.Random(SEED)
    share, rest = divmod(int(RECORDS * times), len(TABLES))
    for place, name in enumerate(TABLES):
        with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(HEADER)
            out.writerows(_record(rng, f"{name[:2].upper()}{place}-{i:06d}", name) for i in range(share + (place < rest)))
    for name, count in SECTIONS.items():
        (folder / name).write_text(_sections(rng, name, int(count * times)), encoding="utf-8", newline="\n")


def _record(rng: random.Random, identifier: str, table: str) -> tuple[str, ...]:
    brand, category = rng.choice(BRANDS), rng.choice(tuple(CATEGORIES))
    product = f"{brand} {rng.choice(LINES)} {category.removesuffix('s')} {rng.randrange(100, 900)}"
    day = f"2024-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"
    note = (
        rng.choice(FAULTS[category])
        if table in ("claims_north", "claims_south", "repairs")
        else comment(rng, category, rng.randrange(1, 6))
    )
    return identifier, day, product, brand, rng.choice(CITIES), f"{rng.randrange(5, 2500)}.{rng.randrange(100):02d}", note


def _sections(rng: random.Random, name: str, count: int) -> str:
    parts = [f"# {name.partition('.')[0].title()}"]
    for number in range(1, count + 1):
        topic = rng.choice(TOPICS)
        steps = " ".join(f"Step {n}: {_step(rng, topic)}" for n in range(1, rng.randrange(3, 7)))
        parts.append(f"## {topic.title()} {number}\n\n{steps}")
    return "\n\n".join(parts) + "\n"


def _step(rng: random.Random, topic: str) -> str:
    remark = comment(rng, rng.choice(tuple(CATEGORIES)), 4).partition(".")[0].lower()
    return f'the team in {rng.choice(CITIES)} files the remark "{remark}" under {topic} within {rng.randrange(1, 60)} days.'
