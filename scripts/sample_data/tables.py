"""The shop's tables: products, stock, orders, warranty claims, feedback. Everything refers to things that exist."""

from __future__ import annotations

import csv
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

SEED = 20250131
CATEGORIES: dict[str, tuple[str, tuple[int, int]]] = {
    "Headphones": ("HP", (39, 349)), "Laptops": ("LT", (549, 2199)), "Phones": ("PH", (199, 1299)), "Tablets": ("TB", (149, 999)),
    "Cameras": ("CM", (249, 1899)), "Speakers": ("SP", (29, 499)), "Monitors": ("MN", (129, 899)), "Wearables": ("WR", (49, 449)),
}  # fmt: skip
BRANDS = ("Auralis", "Brightwell", "Corvane", "Dynex", "Everlight", "Fennec")
LINES = ("Air", "Core", "Edge", "Flow", "Go", "Max", "Nova", "Pro", "Studio", "Zen")
WAREHOUSES = ("Rotterdam", "Leipzig", "Lyon")
CHANNELS = ("web", "store", "phone")
CITIES = ("Amsterdam", "Berlin", "Brussels", "Hamburg", "Lyon", "Munich", "Paris", "Utrecht", "Vienna", "Zurich")
FAULTS = ("battery drains fast", "does not power on", "cracked screen", "no sound on one side", "overheats", "loose hinge", "charging port fails", "dead pixels")
STATUSES = ("approved", "rejected", "pending")
PRAISE = ("Great value for the price", "Works as described", "Sound is better than expected", "Setup took two minutes", "Battery lasts all day")
BLAME = ("Stopped charging after a month", "Arrived late", "Too heavy for travel", "The manual is hard to follow", "Hinge feels loose")
PRODUCTS, ORDERS, CLAIMS, FEEDBACK = 120, 1500, 420, 720


@dataclass(frozen=True)
class Shop:
    """All tables as lists of records, the header first."""

    product_catalog: list[list[Any]]
    inventory: list[list[Any]]
    orders: list[list[Any]]
    warranty_claims: list[list[Any]]
    customer_feedback: list[list[Any]]


def make() -> Shop:
    rng = random.Random(SEED)
    products = _products(rng)
    orders = _orders(rng, products)
    return Shop(
        product_catalog=[["sku", "product_name", "category", "brand", "unit_price", "warranty_months", "launch_date"], *products],
        inventory=[["sku", "product_name", "warehouse", "stock_quantity", "reorder_level", "shelf", "last_counted"], *_inventory(rng, products)],
        orders=[["order_id", "order_date", "sku", "product_name", "quantity", "unit_price", "order_value", "channel", "city"], *orders],
        warranty_claims=[["claim_id", "claim_date", "order_id", "sku", "product_name", "fault", "status", "repair_cost"], *_claims(rng, orders)],
        customer_feedback=[["feedback_id", "feedback_date", "sku", "product_name", "rating", "comment"], *_feedback(rng, products)],
    )


def _products(rng: random.Random) -> list[list[Any]]:
    names = [(brand, line) for brand in BRANDS for line in LINES]
    out = []
    for i in range(PRODUCTS):
        category = tuple(CATEGORIES)[i % len(CATEGORIES)]
        code, (low, high) = CATEGORIES[category]
        brand, line = names[(i * 7) % len(names)]
        price = rng.randrange(low, high) + 0.99
        launched = date(2022, 1, 10) + timedelta(days=rng.randrange(0, 1000))
        out.append([f"{code}-{1000 + i * 13}", f"{brand} {line} {category.rstrip('s')} {100 + i}", category, brand, f"{price:.2f}", rng.choice((12, 24, 36)), launched])
    return out


def _inventory(rng: random.Random, products: Sequence[list[Any]]) -> list[list[Any]]:
    out = []
    for product in products:
        for warehouse in rng.sample(WAREHOUSES, rng.choice((1, 2, 2, 3))):
            shelf = f"{rng.choice('ABCDEF')}{rng.randrange(1, 40):02d}"
            out.append([product[0], product[1], warehouse, rng.randrange(0, 240), rng.choice((10, 20, 30)), shelf, date(2025, 1, rng.randrange(2, 30))])
    return out


def _orders(rng: random.Random, products: Sequence[list[Any]]) -> list[list[Any]]:
    out = []
    for i in range(ORDERS):
        product = products[int(len(products) * rng.random() ** 1.6)]
        quantity = rng.choice((1, 1, 1, 2, 2, 3, 5))
        day = date(2024, 1, 1) + timedelta(days=int(366 * i / ORDERS))
        value = float(product[4]) * quantity
        out.append([f"ORD-{240001 + i}", day, product[0], product[1], quantity, product[4], f"{value:.2f}", rng.choice(CHANNELS), rng.choice(CITIES)])
    return out


def _claims(rng: random.Random, orders: Sequence[list[Any]]) -> list[list[Any]]:
    chosen = sorted(rng.sample(range(len(orders)), CLAIMS))
    out = []
    for number, place in enumerate(chosen, start=317):
        order = orders[place]
        day = min(order[1] + timedelta(days=rng.randrange(5, 300)), date(2025, 1, 31))
        status = rng.choices(STATUSES, (60, 25, 15))[0]
        cost = f"{rng.randrange(15, 260)}.{rng.choice(('00', '50', '90'))}" if status == "approved" else ""
        out.append([f"WC-2024-{number:05d}", day, order[0], order[2], order[3], rng.choice(FAULTS), status, cost])
    return out


def _feedback(rng: random.Random, products: Sequence[list[Any]]) -> list[list[Any]]:
    out = []
    for i in range(FEEDBACK):
        product = rng.choice(products)
        rating = rng.choices((1, 2, 3, 4, 5), (8, 10, 18, 34, 30))[0]
        comment = rng.choice(PRAISE if rating > 3 else BLAME)
        out.append([f"FB-{5000 + i}", date(2024, 1, 3) + timedelta(days=rng.randrange(0, 390)), product[0], product[1], rating, comment])
    return out


def write(shop: Shop, folder: Path) -> None:
    for name in ("product_catalog", "inventory", "orders", "warranty_claims", "customer_feedback"):
        with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(getattr(shop, name))
