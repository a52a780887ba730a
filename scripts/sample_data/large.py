"""The large set for benchmarks: ten tables with 43,328 records together and three Markdown files with 500 sections."""

from __future__ import annotations

import csv
import random
from pathlib import Path

from sample_data.tables import BLAME, BRANDS, CITIES, FAULTS, LINES, PRAISE

SEED = 7
RECORDS = 43_328
TABLES = ("claims_north", "claims_south", "orders_web", "orders_store", "orders_phone", "feedback_a", "feedback_b", "stock", "returns", "repairs")
SECTIONS = {"handbook.md": 200, "procedures.md": 200, "faq.md": 100}
TOPICS = ("returns", "shipping", "warranty", "charging", "pairing", "stock counting", "price changes", "training", "safety", "invoices")


def write(folder: Path) -> None:
    rng = random.Random(SEED)
    share, rest = divmod(RECORDS, len(TABLES))
    for place, name in enumerate(TABLES):
        with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(["id", "date", "product", "brand", "city", "amount", "note"])
            for i in range(share + (place < rest)):
                brand = rng.choice(BRANDS)
                note = rng.choice((*FAULTS, *PRAISE, *BLAME))
                day = f"2024-{rng.randrange(1, 13):02d}-{rng.randrange(1, 29):02d}"
                out.writerow([f"{name[:2].upper()}{place}-{i:06d}", day, f"{brand} {rng.choice(LINES)} {rng.randrange(100, 900)}", brand, rng.choice(CITIES), f"{rng.randrange(5, 2500)}.{rng.randrange(100):02d}", note])
    for name, count in SECTIONS.items():
        (folder / name).write_text(_sections(rng, name, count), encoding="utf-8", newline="\n")


def _sections(rng: random.Random, name: str, count: int) -> str:
    parts = [f"# {name.partition('.')[0].title()}"]
    for i in range(count):
        topic = rng.choice(TOPICS)
        lines = [f"Step {n}: {rng.choice(PRAISE + BLAME).lower()} is noted for {topic} by the team in {rng.choice(CITIES)} within {rng.randrange(1, 60)} days." for n in range(1, rng.randrange(3, 7))]
        parts.append(f"## {topic.title()} {i + 1}\n\n" + " ".join(lines))
    return "\n\n".join(parts) + "\n"
