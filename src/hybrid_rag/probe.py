"""Is a Chroma folder sound? Looked at in a process of its own, for damage there can abort a process.

``python -m hybrid_rag.probe DIRECTORY PREFIX FINGERPRINT DIMENSIONS`` prints what is wrong, or nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROBE_SECONDS = 120.0
SAMPLES = 10


def probe(directory: Path, *, prefix: str, fingerprint: str, dimensions: int) -> str:
    """What is wrong with the collections of a fingerprint, "" when nothing is: then readers may use them again."""
    from hybrid_rag.vectors_chroma import accept

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *[p for p in sys.path if p]])}
    command = [sys.executable, "-m", "hybrid_rag.probe", str(directory), prefix, fingerprint, str(dimensions)]
    try:
        run = subprocess.run(
            command, capture_output=True, timeout=PROBE_SECONDS, check=False, env=environment, encoding="utf-8", errors="replace"
        )
    except subprocess.TimeoutExpired:
        return f"it did not answer within {PROBE_SECONDS:g} seconds"
    if run.returncode < 0:
        return f"opening it ends the process with signal {-run.returncode}"
    if run.returncode:
        return (run.stderr.strip().splitlines() or ["unknown error"])[-1]
    if problem := run.stdout.strip():
        return problem
    accept(directory)
    return ""


def examine(directory: Path, prefix: str, fingerprint: str, dimensions: int) -> str:
    """The same in this process: counts can be read, and stored vectors find themselves."""
    from hybrid_rag.records import KINDS
    from hybrid_rag.vectors_chroma import ChromaVectors

    index = ChromaVectors(directory, prefix=prefix, fingerprint=fingerprint, dimensions=dimensions, exact_up_to=0, unchecked=True)
    for kind in KINDS:
        total, numbers = index.count(kind), sorted(index.numbers(kind))
        if total != len(numbers):
            return f"its {kind} collection counts {total} vectors and lists {len(numbers)}"
        looked_at = sorted(
            {*numbers[:: max(1, len(numbers) // SAMPLES)], *numbers[-SAMPLES:]}
        )  # the last ones are the likeliest to be lost
        for number, vector in index.sample(kind, looked_at):
            found = index.search(kind, vector, k=min(total, 5))
            if not found or found[0][1] < 0.999:
                return f"vector {number} of its {kind} collection does not find itself"
    index.close()
    return ""


if __name__ == "__main__":
    print(examine(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])))
