"""The shop's tables: products, stock, orders, warranty claims, feedback. Everything refers to things that exist."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from sample_data import words

SEED = 20250131
RECORDS = 3_000  # of all tables together; the feedback fills up what the others leave
PRODUCTS, ORDERS, CLAIMS = 120, 1_640, 285
CATEGORIES: dict[str, tuple[str, tuple[int, int]]] = {
    "Headphones": ("HP", (39, 349)), "Laptops": ("LT", (549, 2199)), "Phones": ("PH", (199, 1299)), "Tablets": ("TB", (149, 999)),
    "Cameras": ("CM", (249, 1899)), "Speakers": ("SP", (29, 499)), "Monitors": ("MN", (129, 899)), "Wearables": ("WR", (49, 449)),
}  # fmt: skip
BRANDS = ("Auralis", "Brightwell", "Corvane", "Dynex", "Everlight", "Fennec")
LINES = ("Air", "Core", "Edge", "Flow", "Go", "Max", "Nova", "Pro", "Studio", "Zen")
WAREHOUSES = ("Rotterdam", "Leipzig", "Lyon")
CHANNELS = ("web", "store", "phone")
CITIES = ("Amsterdam", "Berlin", "Brussels", "Hamburg", "Lyon", "Munich", "Paris", "Utrecht", "Vienna", "Zurich")
STATUSES = ("approved", "rejected", "pending")
LAST_DAY = date(2025, 1, 31)  # of claims and feedback
RECENT = date(2024, 12, 20)  # from this day on most claims are still pending
HEADERS = {
    "product_catalog": ["sku", "product_name", "category", "brand", "unit_price", "warranty_months", "launch_date"],
    "inventory": ["sku", "product_name", "warehouse", "stock_quantity", "reorder_level", "shelf", "last_counted"],
    "orders": ["order_id", "order_date", "sku", "product_name", "quantity", "unit_price", "order_value", "channel", "city"],
    "warranty_claims": ["claim_id", "claim_date", "order_id", "sku", "product_name", "fault", "status", "repair_cost"],
    "customer_feedback": ["feedback_id", "feedback_date", "sku", "product_name", "rating", "comment"],
}
Records = list[list[Any]]


@dataclass(frozen=True)
class Shop:
    """All tables as lists of records, without their headers."""

    product_catalog: Records
    inventory: Records
    orders: Records
    warranty_claims: Records
    customer_feedback: Records


def make() -> Shop:
    """The tables; every table has a stream of random numbers of its own, so that one can change alone."""
    products = _products(random.Random(SEED))
    inventory = _inventory(random.Random(SEED + 1), products)
    orders = _orders(random.Random(SEED + 2), products)
    claims = _claims(random.Random(SEED + 14), orders, {p[0]: p[2] for p in products})
    left = RECORDS - len(products) - len(inventory) - len(orders) - len(claims)
    return Shop(products, inventory, orders, claims, _feedback(random.Random(SEED + 4), products, left))


def _products(rng: random.Random) -> Records:
    names = [(brand, line) for brand in BRANDS for line in LINES]
    out = []
    for i in range(PRODUCTS):
        category = tuple(CATEGORIES)[i % len(CATEGORIES)]
        code, (low, high) = CATEGORIES[category]
        brand, line = names[(i * 7) % len(names)]
        price = f"{rng.randrange(low, high)}.99"
        launched = date(2022, 1, 10) + timedelta(days=rng.randrange(0, 720))
        name = f"{brand} {line} {category.removesuffix('s')} {100 + i}"
        out.append([f"{code}-{1000 + i * 13}", name, category, brand, price, rng.choice((12, 24, 24, 36)), launched])
    return out


def _inventory(rng: random.Random, products: Sequence[list[Any]]) -> Records:
    out = []
    for product in products:
        for warehouse in rng.sample(WAREHOUSES, rng.choice((1, 2, 2, 3))):
            shelf = f"{rng.choice('ABCDEF')}{rng.randrange(1, 40):02d}"
            counted = date(2025, 1, rng.randrange(2, 30))
            out.append([product[0], product[1], warehouse, rng.randrange(0, 240), rng.choice((10, 20, 30)), shelf, counted])
    return out


def _orders(rng: random.Random, products: Sequence[list[Any]]) -> Records:
    out = []
    for i in range(ORDERS):
        product = products[int(len(products) * rng.random() ** 1.6)]  # the first products sell best
        quantity = rng.choice((1, 1, 1, 2, 2, 3, 5))
        day = date(2024, 1, 1) + timedelta(days=366 * i // ORDERS)
        cents = int(product[4].replace(".", "")) * quantity
        value = f"{cents // 100}.{cents % 100:02d}"
        out.append(
            [f"ORD-{240001 + i}", day, product[0], product[1], quantity, product[4], value, rng.choice(CHANNELS), rng.choice(CITIES)]
        )
    return out


def _claims(rng: random.Random, orders: Sequence[list[Any]], category: dict[str, str]) -> Records:
    """Claims in order of their date. The numbers have gaps: claims for older orders take numbers too."""
    filed = []
    for place in rng.sample(range(ORDERS), CLAIMS):
        ordered = orders[place][1]
        filed.append((ordered + timedelta(days=rng.randrange(3, min(300, (LAST_DAY - ordered).days) + 1)), place))
    out, number, year = [], 57, 2024
    for day, place in sorted(filed):
        number = number + rng.choice((1, 1, 2, 4)) if day.year == year else 1
        year, order = day.year, orders[place]
        status = rng.choices(STATUSES, (25, 15, 60) if day >= RECENT else (70, 30, 0))[0]
        cost = f"{rng.randrange(15, 260)}.{rng.choice(('00', '50', '90'))}" if status == "approved" else ""
        fault = rng.choice(words.FAULTS[category[order[2]]])
        out.append([f"WC-{year}-{number:05d}", day, order[0], order[2], order[3], fault, status, cost])
    return out


def _feedback(rng: random.Random, products: Sequence[list[Any]], count: int) -> Records:
    days = sorted(date(2024, 1, 3) + timedelta(days=rng.randrange((LAST_DAY - date(2024, 1, 3)).days + 1)) for _ in range(count))
    out = []
    for i, day in enumerate(days):
        product = rng.choice(products)
        rating = rng.choices((1, 2, 3, 4, 5), (8, 10, 18, 34, 30))[0]
        out.append([f"FB-{5000 + i}", day, product[0], product[1], rating, words.comment(rng, product[2], rating)])
    return out


def write(shop: Shop, folder: Path) -> None:
    for name, header in HEADERS.items():
        with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(header)
            out.writerows(getattr(shop, name))
