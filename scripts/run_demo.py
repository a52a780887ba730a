#!/usr/bin/env python3
"""Index the documents and answer questions: `python scripts/run_demo.py ["question" …]`."""

import os
import sys
from pathlib import Path

from hybrid_rag.demo import main

if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parents[1])
    try:
        sys.exit(main(sys.argv[1:]))
    except (KeyboardInterrupt, EOFError):
        sys.exit(130)
