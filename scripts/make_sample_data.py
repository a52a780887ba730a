#!/usr/bin/env python3
"""Make the sample collection: an electronics retailer's tables and documents, consistent with each other.

    python scripts/make_sample_data.py data                     the sample in data/ (needs the extra "sample")
    python scripts/make_sample_data.py FOLDER --scale large     13 files, 43,328 records and 500 text sections, for benchmarks

The same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from sample_data import documents, large, tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", choices=["sample", "large"], default="sample")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.scale == "large":
        large.write(given.folder)
    else:
        shop = tables.make()
        tables.write(shop, given.folder)
        documents.write(shop, given.folder)
    files = sorted(p for p in given.folder.iterdir() if p.is_file() and not p.name.startswith("."))
    print(f"{len(files)} files in {given.folder}", file=sys.stderr)


if __name__ == "__main__":
    main()
