"""Run every benchmark and write docs/benchmarks.md: `make bench`.

    python benchmarks/run.py [--quick | --full] [--minutes 25] [--only NAME ...] [--data DIR] [--json FILE] [--merge] [--page FILE]

Each is a script of its own with the options --quick, --json and --data; its tables go into the page. The subjects run with --quick,
unless --full asks for their larger sizes. One that is not there, fails, or takes longer than its share is named with its reason. The other
systems' environments are made first; what is left of the time goes to the comparison with them. stderr says what is done and how long it
took. `--only NAME --merge --json FILE` measures one again and keeps the others.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from machine import describe, load

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
CHART = HERE.parent / "docs" / "images" / "growth_small.png"
GROWTH, GROWTH_CHART = HERE.parent / "docs" / "growth.md", HERE.parent / "docs" / "images" / "growth.png"  # by peers.py --growth-page
# Seconds that a subject may take with --quick. On two cores each needs about half. Retrieval and answers, which keep their indexes, and
# latency need nearly all the first time.
SHARES = {
    "readers": 60.0, "store": 80.0, "retrieval": 130.0, "latency": 70.0, "embedding": 80.0, "answers": 130.0, "tables": 60.0,
    "mcp_server": 60.0, "web": 50.0,
}  # fmt: skip
SUBJECTS = tuple(SHARES)
PEERS, INSTALL = "peers", "peers --install"
FULL_SECONDS = 900.0  # of one subject with --full
INSTALL_SECONDS = 240.0  # for the environments of the other systems, when they are not there
LAST_SECONDS = 15.0  # kept for the page
BUSY = 1.5  # processes a core
PACKAGES = ("chromadb", "tantivy", "duckdb", "onnxruntime", "pypdfium2", "lxml", "numpy")
INTRODUCTION = """# Benchmarks

Written by `make bench`; do not edit. Measured on {machine}, at {load:.1f} processes a core; {packages}.

Times depend on the machine and on what else it does: trust the ratios, which come from the same run. `python benchmarks/NAME.py` runs one
subject, [evaluation.md](evaluation.md) says how quality is measured, and `hybrid-rag eval` measures your own folder.
"""


@dataclass(frozen=True)
class Outcome:
    """What one script printed and measured, how long it took, where and when, and why it gave not all ("" when it did)."""

    name: str
    text: str
    figures: Any
    seconds: float
    cpu: float
    machine: str = ""
    why: str = ""


def run(name: str, arguments: Sequence[str], seconds: float) -> Outcome:
    script = HERE / f"{name}.py"
    if not script.exists():
        return Outcome(name, "", None, 0.0, 0.0, describe(), f"there is no {script.relative_to(HERE.parent)}")
    say(f"{name}: begins, at most {seconds:.0f} s")
    begin, before = time.monotonic(), _cpu()
    with tempfile.TemporaryDirectory() as folder:
        file, printed = Path(folder) / "figures.json", Path(folder) / "printed.md"
        line = [sys.executable, str(script), "--json", str(file), *arguments]
        with printed.open("w", encoding="utf-8") as out:
            process = subprocess.Popen(line, stdout=out, start_new_session=True)
            try:
                code = process.wait(max(seconds, 1.0))
                why = "" if code == 0 else f"it ended with exit code {code}"
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                why = f"it was stopped after {seconds:.0f} s"
        figures = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
        text = printed.read_text(encoding="utf-8")
    outcome = Outcome(name, text, figures, round(time.monotonic() - begin, 1), round(_cpu() - before, 1), describe(), why)
    say(f"{name}: {why or 'done'}; {outcome.seconds:.0f} s, {outcome.cpu:.0f} CPU s")
    return outcome


def install(data: Sequence[str], seconds: float) -> Outcome:
    """The environments of the other systems; those that are there cost nothing. What fails is said by the comparison itself."""
    say("environments of the other systems: looked for, and made where there is none")
    begin, before = time.monotonic(), _cpu()
    process = subprocess.Popen([sys.executable, str(HERE / f"{PEERS}.py"), "--install", *data], start_new_session=True)
    try:
        process.wait(max(seconds, 1.0))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        say(f"environments: stopped after {seconds:.0f} s, the comparison goes on with them")
    return Outcome(INSTALL, "", None, round(time.monotonic() - begin, 1), round(_cpu() - before, 1), describe())


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def page(outcomes: Sequence[Outcome], chart: bool, started_load: float) -> str:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    parts = [INTRODUCTION.format(machine=describe(), load=started_load, packages=packages)]
    if started_load > BUSY:
        parts.append("The machine was busy with other work: seconds are far too long, CPU seconds and shares hold.\n")
    for outcome in outcomes:
        if outcome.text.strip():
            parts.append(_tables(outcome.text))
        if outcome.why:
            parts.append(f"## {outcome.name.capitalize()}\n\n{'Not complete' if outcome.text.strip() else 'Not run'}: {outcome.why}.\n")
        if outcome.name == PEERS and chart:
            parts.append(f"![Growth of every system with the number of chunks](images/{CHART.name})\n")
    if GROWTH.exists():
        parts.append(f"## Growth\n\nTo far more chunks, measured apart: [{GROWTH.name}]({GROWTH.name}).\n")
        parts.append(f"![Growth to far more chunks](images/{GROWTH_CHART.name})\n")
    rows = [f"| `benchmarks/{_command(o.name)}` | {o.seconds:.0f} | {o.cpu:.0f} |" for o in outcomes if not o.why or o.seconds]
    total = f"| all | {sum(o.seconds for o in outcomes):.0f} | {sum(o.cpu for o in outcomes):.0f} |"
    parts.append("## Time taken\n\n| script | seconds | CPU seconds |\n|---|---:|---:|\n" + "\n".join([*rows, total]) + "\n")
    return "\n".join(parts)


def _command(name: str) -> str:
    script, *arguments = name.split()
    return " ".join([f"{script}.py", *arguments])


def _tables(text: str) -> str:
    """What a script prints from its first heading on; before it stands the line on the machine."""
    lines = text.splitlines()
    first = next((n for n, line in enumerate(lines) if line.startswith("#")), 0)
    return "\n".join(lines[first:]).strip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small sizes of the comparison too; no page unless --page names one")
    size.add_argument("--full", action="store_true", help="the larger sizes of every subject; wants --minutes 90")
    parser.add_argument("--minutes", type=float, default=25.0, help="for all; a script that needs longer is stopped and named")
    parser.add_argument("--only", nargs="*", default=[*SUBJECTS, PEERS])
    parser.add_argument("--data", type=Path, help="the public question sets; unset: ../shared/eval beside the project")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--merge", action="store_true", help="keep what the JSON file has and is not measured now")
    parser.add_argument("--page", type=Path)
    a = parser.parse_args()
    shown = a.page or (None if a.quick or set(a.only) != {*SUBJECTS, PEERS} else PAGE)
    begin = time.monotonic()
    end = begin + 60 * a.minutes - LAST_SECONDS
    data = ["--data", str(a.data)] if a.data else []
    busy, outcomes = load() / (os.cpu_count() or 1), []
    if PEERS in a.only and not a.quick:
        outcomes.append(install(data, min(INSTALL_SECONDS, end - time.monotonic())))
    for name in a.only:
        left = end - time.monotonic()
        say(f"{left:,.0f} s left")
        if name == PEERS:
            size = ["--quick"] if a.quick else ["--shrink", *(["--chart", str(CHART)] if shown else [])]
            outcomes.append(run(name, [*size, *data, "--minutes", f"{max(left - 2 * LAST_SECONDS, 60) / 60:.2f}"], max(left, 60)))
        else:
            outcomes.append(
                run(name, [*([] if a.full else ["--quick"]), *data], min(FULL_SECONDS if a.full else SHARES.get(name, 60.0), left))
            )
    if a.merge and a.json and a.json.exists():
        held = {o["name"]: Outcome(**o) for o in json.loads(a.json.read_text(encoding="utf-8"))["benchmarks"]}
        held |= {o.name: o for o in outcomes}
        outcomes = [held[name] for name in (INSTALL, *SUBJECTS, PEERS) if name in held]
    if a.json:
        a.json.write_text(json.dumps({"machine": describe(), "benchmarks": [asdict(o) for o in outcomes]}, indent=1), encoding="utf-8")
    text = page(outcomes, CHART.exists(), busy)
    if shown:
        shown.parent.mkdir(parents=True, exist_ok=True)
        shown.write_text(text, encoding="utf-8", newline="\n")
        say(f"written: {shown}, after {time.monotonic() - begin:,.0f} s")
    else:
        print(text)
    return 1 if any(o.why for o in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
