"""Readers and chunks: what they find against gold, and how fast, beside the libraries that people use, in the same run.

    python benchmarks/readers.py [--quick] [--data FOLDER] [--json FILE]

The public files (tricky_files, papers_pdf) are looked for in FOLDER, else where eval_sets.py says; what is missing is said to be.
Prints Markdown tables; progress goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import eval_sets
import machine
import readers_gold
import readers_speed

Table = dict[str, Any]  # title, columns, rows, notes; or title and "not_run"


def sections(data: Path, scratch: Path, quick: bool) -> dict[str, Callable[[], Table]]:
    """The parts of the benchmark by name, in the order of printing."""
    tricky = data / "tricky_files"
    rows = 100_000 if quick else 1_000_000
    return {
        "tricky": lambda: readers_gold.tally(tricky),  # first: it asks for the peak of all processes ended so far
        "docx": lambda: readers_gold.docx(tricky),
        "pollock": lambda: readers_gold.pollock(tricky / "pollock"),
        "csv_spectrum": lambda: readers_gold.csv_spectrum(tricky),
        "markdown": lambda: readers_gold.markdown(tricky / "commonmark_spec" / "spec.txt"),
        "pdf": lambda: readers_speed.pdf(data / "papers_pdf" / "pdf", rounds=1 if quick else 3),
        "large": lambda: readers_speed.large(scratch / "large", rounds=1 if quick else 5),
        "million": lambda: readers_speed.million(scratch, rows),
    }


def show(table: Table) -> None:
    """One table as Markdown."""
    print(f"\n## {table['title']}\n")
    if "not_run" in table:
        print(f"Not run: {table['not_run']}")
        return
    print(f"| {' | '.join(table['columns'])} |")
    print(f"|{'|'.join('---' if i == 0 else '---:' for i in range(len(table['columns'])))}|")
    for row in table["rows"]:
        print(f"| {' | '.join(shown(cell) for cell in row)} |")
    for note in table.get("notes", ()):
        print(f"\n{note}")


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes and single rounds: under a minute")
    parser.add_argument("--data", type=Path, default=eval_sets.DATA, help="folder with the public files")
    parser.add_argument("--json", type=Path, help="write all figures there")
    parser.add_argument("--only", nargs="*", help="names of the parts to run")
    given = parser.parse_args()
    print(machine.describe())
    out = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, run in sections(given.data, Path(scratch), given.quick).items():
            if given.only and name not in given.only:
                continue
            print(f"{name} …", file=sys.stderr, flush=True)
            try:
                out[name] = run()
            except readers_gold.Missing as missing:
                out[name] = {"title": name, "not_run": str(missing)}
            show(out[name])
    if given.json:
        given.json.write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
