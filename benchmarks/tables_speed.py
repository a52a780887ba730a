"""Counting and joining 43,328 records beside pandas, and a table of a million rows: time and memory."""

from __future__ import annotations

import csv
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDS = 43_328
PRODUCTS = 400
MILLION = 1_000_000
REPEATS = 7
QUESTIONS = {
    "count": "How many sales were made through the web channel?",
    "top ten by join": "Which ten products have the highest total amount?",
}
SQL = {  # the same as SQL
    "count": "SELECT count(*) FROM sales WHERE channel = 'web'",
    "top ten by join": (
        "SELECT product_name, sum(amount) FROM sales JOIN products USING (sku) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10"
    ),
}  # fmt: skip


def write_sales(folder: Path, rows: int) -> None:
    """Seeded sales and products, as two CSV files."""
    rng = random.Random(11)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "products.csv", "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["sku", "product_name", "category"])
        out.writerows([f"SK-{i:04}", f"Product {i}", f"Category {i % 20}"] for i in range(PRODUCTS))
    with open(folder / "sales.csv", "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["sale_id", "sale_date", "sku", "quantity", "amount", "channel"])
        for i in range(rows):
            day = f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
            sku = f"SK-{int(rng.random() ** 2 * PRODUCTS):04}"
            out.writerow([f"S-{i:07}", day, sku, rng.randint(1, 9), f"{rng.uniform(5, 900):.2f}", rng.choice(("web", "store", "phone"))])


def median_ms(call: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """(median time in milliseconds, what the last call gave); the first call is not counted."""
    value = call()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        value = call()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times), value


def with_pandas(folder: Path) -> dict[str, Any] | str:
    """The same figures from pandas, which reads the CSV each time, or from frames in memory; or why not."""
    try:
        import pandas
    except ImportError:
        return "pandas is not installed"

    def frames() -> tuple[Any, Any]:
        return pandas.read_csv(folder / "sales.csv"), pandas.read_csv(folder / "products.csv")

    def count(sales: Any, _: Any) -> Any:
        return int((sales["channel"] == "web").sum())

    def top(sales: Any, products: Any) -> Any:
        joined = sales.merge(products, on="sku").groupby("product_name", as_index=False)["amount"].sum()
        found = joined.sort_values(["amount", "product_name"], ascending=[False, True]).head(10)
        return [(row.product_name, round(row.amount, 2)) for row in found.itertuples()]

    loaded = frames()
    out: dict[str, Any] = {"version": pandas.__version__}
    for name, call in (("count", count), ("top ten by join", top)):
        cold, value = median_ms(lambda call=call: call(*frames()), 3)
        warm, _ = median_ms(lambda call=call: call(*loaded))
        out[name] = {"from CSV": cold, "in memory": warm, "value": value}
    return out


def million(rows: int) -> dict[str, Any]:
    """Import and count a table of ``rows`` records in a process of its own, for its peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        write_sales(Path(folder), rows)
        done = subprocess.run([sys.executable, __file__, folder], capture_output=True, encoding="utf-8", check=True)
    return {"rows": rows, **json.loads(done.stdout)}


def peak_memory() -> float:
    """The most memory that this program has held, in MB (the system's own count begins with its parent's)."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(next(line.split()[1] for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _child(folder: Path) -> dict[str, Any]:
    from hybrid_rag.loading import Limits, tabular
    from hybrid_rag.table_store import SqlLimits, TableStore
    from hybrid_rag.tables import build

    source = folder / "sales.csv"
    before = peak_memory()
    started, used = time.perf_counter(), time.process_time()
    card = build(tabular.read(source, Limits()).rows, folder / "sales.parquet", source="sales.csv")
    imported, used = time.perf_counter() - started, time.process_time() - used
    peak = peak_memory()
    store = TableStore(folder, lambda: [(card, "sales.parquet")], lambda: 1, limits=SqlLimits())
    counted, value = median_ms(lambda: store.query(SQL["count"]).rows)
    store.close()
    sizes = {"csv_mb": source.stat().st_size / 1e6, "file_mb": (folder / "sales.parquet").stat().st_size / 1e6}
    return {
        "import_seconds": imported,
        "import_cpu_seconds": used,
        "count_ms": counted,
        "before_mb": before,
        "peak_mb": peak,
        "count": value[0][0],
        **sizes,
    }


if __name__ == "__main__":
    print(json.dumps(_child(Path(sys.argv[1]))))
