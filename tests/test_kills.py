"""Runs killed with SIGKILL at random moments: no committed document is lost, everything opens, the legs follow the catalog."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid_rag.errors import IndexEmptyError
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.maintenance import verify
from tests.support.world import World

LOOKED_AT_EVERY = 5  # rounds between two openings that mend and verify everything


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    if made.index is not None:
        made.index.close()


class Killer:
    def __init__(self, world: World) -> None:
        root = Path(__file__).parents[1]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
        command = [sys.executable, "-m", "tests.support.killing", str(world.directory), str(world.root)]
        self.errors = world.directory.with_name("errors.txt")
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8", env=environment
            )
        assert self.process.stdout.readline() == "ready\n"

    def run(self, seconds: float) -> str:
        self.process.stdin.write(f"run {seconds}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=30)


def kills(world: World, rounds: int, seed: int) -> dict[str, int]:
    """Kill so many runs, each with some files added, changed, renamed and removed before it; what happened, counted."""
    rng, killer = random.Random(seed), Killer(world)
    known: set[str] = set()
    seen = {"killed": 0, "done": 0, "grew": 0, "mended": 0}
    longest = 1.0
    try:
        while seen["killed"] < rounds:
            i = seen["killed"] + seen["done"]
            for j in range(4):
                world.write(f"{i}-{j}.txt", f"word{i}x{j} " + "filler " * 150)
            world.write("table.csv", "sku,name\n" + "".join(f"S-{i}-{n},thing\n" for n in range(30)))
            if i and i % 3 == 0 and (world.root / f"{i - 1}-0.txt").exists():
                (world.root / f"{i - 1}-0.txt").rename(world.root / f"{i - 1}-renamed.txt")
            outcome = killer.run(rng.uniform(0, longest))
            assert outcome in ("killed", "done"), f"{outcome}\n{killer.errors.read_text(encoding='utf-8')[-3000:]}"
            seen[outcome] += 1
            longest *= 1.15 if outcome == "killed" else 0.6  # so that one run of five comes to its end: kills hit every phase
            index = world.open()
            now = {d.source for d in index.catalog.documents()}
            lost = {source for source in known - now if (world.root / source).exists()}
            assert not lost, f"lost in round {i}: {lost}"
            seen["grew"] += len(now - known) > 0
            known = now
            if i % LOOKED_AT_EVERY == LOOKED_AT_EVERY - 1:
                with index.writer():
                    pass
                seen["mended"] += any("again" in m for m in index.messages)
                index.messages.clear()
                assert verify(index).problems == ()
                if known:
                    assert index.lexical.search(index.analyzer.query("filler"), k=3)
            index.close()
            world.index = None
    finally:
        killer.close()
    world.run()
    assert {d.source for d in world.index.catalog.documents()} == {p.name for p in world.root.iterdir()}
    assert world.index.vector_share() == 1
    world.check()
    before = len(world.embedder.texts)
    world.run()
    assert len(world.embedder.texts) == before
    return seen


def test_twenty_kills(world: World) -> None:
    assert kills(world, 20, seed=7)["killed"] == 20


@pytest.mark.slow
def test_two_hundred_kills(world: World) -> None:
    print(kills(world, 200, seed=11))


SLOW_RUN = """
import sys
from pathlib import Path
from hybrid_rag.index import Index, IndexOptions
from hybrid_rag.ingest import IngestOptions, ingest
from tests.support.embedders import HashEmbedder
index = Index(IndexOptions(Path(sys.argv[1])), create=True)
ingest(index, IngestOptions(Path(sys.argv[2]), workers=1), embedder=lambda: HashEmbedder(delay=0.5))
"""


def test_a_killed_run_goes_on_with_the_remainder_and_embeds_nothing_twice(world: World) -> None:
    for i in range(10):
        world.write(f"{i}.md", "\n\n".join(f"# Part {i} {j}\n\nbody {i} {j}" for j in range(100)))
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    command = [sys.executable, "-c", SLOW_RUN, str(world.directory), str(world.root)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        index, give_up = None, time.monotonic() + 120
        while time.monotonic() < give_up and process.poll() is None:
            with contextlib.suppress(IndexEmptyError):
                index = index or Index(IndexOptions(world.directory))
                if index.catalog.value("SELECT count(*) FROM vectors") >= 256:
                    break
            time.sleep(0.02)
        process.kill()
    held = index.catalog.value("SELECT count(*) FROM vectors")
    index.close()
    assert 256 <= held < 1000
    report = world.run()
    assert report.chunks_written == 0, "words were complete, no file is read again"
    assert len(world.embedder.texts) == 1000 - held
    assert world.index.vector_share() == 1
    world.check()
