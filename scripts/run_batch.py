#!/usr/bin/env python3
"""Answer the batch that config/config.yaml names under `batch`: `python scripts/run_batch.py [CONFIG]`."""

import sys
from pathlib import Path

from hybrid_rag.cli import main

if __name__ == "__main__":
    config = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).resolve().parents[1] / "config" / "config.yaml")
    sys.argv = ["hybrid-rag", "batch", "--config", config]
    main()
