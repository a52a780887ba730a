"""Collections of any size, made from a seed: words of a Zipf distribution, paragraphs that are one chunk each, queries with a known file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

WORDS, VOCABULARY, A_FILE = 55, 50_000, 200  # words a paragraph, different words, paragraphs a file
SIZE = 400  # characters; a paragraph has 300 to 400
NEW_WORD = "zyxquorvlat"
NOTES = [f"note-{n}.md" for n in range(10)]  # short files, one of which is changed
_SYLLABLES = [a + b for a in "bcdfghjklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "os")]


def vocabulary(chance: np.random.Generator) -> np.ndarray:
    """Different made-up words, the frequent ones short as in a language."""
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        length = 1 + int(len(words) > 100) + int(len(words) > 8000)
        words["".join(chance.choice(_SYLLABLES, length + int(chance.integers(0, 2))))] = None
    return np.array(list(words))


def make(folder: Path, chunks: int, queries: int = 400, seed: int = 0) -> dict[str, Any]:
    """Write the files, and ``queries.json`` beside the folder; returns the paths. What is there already is kept."""
    place = {"folder": folder, "queries": folder.parent / "queries.json"}
    if place["queries"].exists():
        return place
    folder.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(seed)
    words = vocabulary(chance)
    weights = 1 / np.arange(1, VOCABULARY + 1)
    bounds = np.cumsum(weights / weights.sum())
    asked = {int(n): place for place, n in enumerate(sorted(chance.choice(chunks, min(queries, chunks), replace=False)))}
    out = []
    for first in range(0, chunks, A_FILE):
        name = f"f{first // A_FILE:06}.md"
        paragraphs = []
        for number in range(first, min(first + A_FILE, chunks)):
            ranks = np.searchsorted(bounds, chance.random(WORDS))
            held = words[np.minimum(ranks, VOCABULARY - 1)]
            code = f"REF-{number:07}"
            text, used = _paragraph(code, held.tolist())
            paragraphs.append(text)
            if number in asked:
                rare = held[:used][np.argsort(-ranks[:used])[:12]]
                text = code if asked[number] % 4 == 0 else " ".join(rare[[1, 3, 5, 7, 9]].tolist())
                out.append({"id": code, "text": text, "file": name})
        (folder / name).write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
    for name in NOTES:
        (folder / name).write_text(f"A short note, to be changed: {name}.\n", encoding="utf-8")
    order = chance.permutation(len(out))
    place["queries"].write_text(json.dumps([out[i] for i in order]), encoding="utf-8")
    return place


def _paragraph(code: str, words: list[str]) -> tuple[str, int]:
    """300 to 400 characters in sentences, and how many of the words are in them."""
    text, used = f"{code}.", 0
    for start in range(0, len(words), 11):
        sentence = " ".join(words[start : start + 11]).capitalize()
        if len(text) + len(sentence) + 2 > SIZE:
            break
        text += f" {sentence}."
        used = min(start + 11, len(words))
    return text + " " + "x" * (299 - len(text)) if len(text) < 300 else text, used


def make_table(path: Path, rows: int, seed: int = 0) -> None:
    """A CSV of records: number, day, article, city, amount, remark."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    chance = np.random.default_rng(seed)
    words = vocabulary(chance)[:2000]
    lines = ["order_id,day,article,city,amount,remark"]
    for n in range(rows):
        a, b, *rest = chance.choice(words, 8)
        lines.append(f"ORD-{n:07},2024-{1 + n % 12:02}-{1 + n % 28:02},{a},{b},{chance.integers(100, 99999) / 100},{' '.join(rest)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
