"""WikiTableQuestions: its questions, each with its file, and its evaluator's comparison of answers.

The comparison follows the set's own evaluator (Pasupat and Liang, ACL 2015): texts without accents, footnotes and details in
brackets, numbers within 1e-6, dates by their parts, lists as sets of the same length.
"""

from __future__ import annotations

import csv
import random
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

SEED = 20160804  # of the split into tables that rules are tuned on and a quarter that is only measured
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()


@dataclass(frozen=True, slots=True)
class TableQuestion:
    id: str
    text: str
    source: str  # of its table, below the set's folder csv/
    gold: tuple[str, ...]  # canonical answers
    held_out: bool


def load(folder: Path) -> list[TableQuestion]:
    """The questions of the set in ``folder``; no table is in both parts."""
    with open(folder / "questions.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    tables = sorted({row["csv"] for row in rows})
    random.Random(SEED).shuffle(tables)
    held = set(tables[len(tables) * 3 // 4 :])
    return [
        TableQuestion(r["id"], r["question"], r["csv"].removeprefix("csv/"), tuple(r["answer_canonical"].split("|")), r["csv"] in held)
        for r in rows
    ]


def elsewhere(asked: Sequence[TableQuestion], tables: int) -> list[TableQuestion]:
    """Each question with ``tables`` other tables than its own, seeded: whatever is answered there was not asked."""
    sources = sorted({q.source for q in asked})
    rng = random.Random(SEED)
    return [replace(q, source=other, gold=()) for q in asked for other in rng.sample([s for s in sources if s != q.source], tables)]


def is_right(predicted: Iterable[Any], gold: Sequence[str]) -> bool:
    """Do the predicted values denote the gold answer?"""
    found = {value(p): p for p in predicted}
    wanted = {value(g): g for g in gold}
    if len(found) != len(wanted):
        return False
    return all(any(_same(w, f) or _plain(wt) == _plain(ft) for f, ft in found.items()) for w, wt in wanted.items())


def value(item: Any) -> tuple[str, Any]:
    """("number", x), ("date", (year, month, day)) with None for parts not given, or ("text", normalised).

    As in the set's evaluator a date of nothing but a year is a number; a truth value is what answers say of it, yes or no.
    """
    text = str(item).strip() if not isinstance(item, bool) else "yes" if item else "no"
    bare = text.replace(",", "")
    if (isinstance(item, (int, float)) and not isinstance(item, bool)) or re.fullmatch(r"[-+−]?\d+(?:\.\d+)?%?", bare):
        return "number", round(float(bare.replace("−", "-").rstrip("%")), 6)
    if match := re.fullmatch(r"(\d{4}|xxxx)-(\d{1,2}|xx)-(\d{1,2}|xx)", text.casefold()):
        year, month, day = (None if "x" in part else int(part) for part in match.groups())
        return ("number", float(year)) if year is not None and month is None and day is None else ("date", (year, month, day))
    match = re.fullmatch(r"(?:(\d{1,2}) )?([A-Za-z]{3,9})\.?(?: (\d{1,2}))?(?:,? ?(\d{4}))?", text)
    if match and (month := match.group(2)[:3].casefold()) in MONTHS:
        day = match.group(1) or match.group(3)
        return "date", (int(match.group(4)) if match.group(4) else None, MONTHS.index(month) + 1, int(day) if day else None)
    return "text", _plain(text)


def _same(a: tuple[str, Any], b: tuple[str, Any]) -> bool:
    if a[0] == b[0] == "number":
        return abs(a[1] - b[1]) < 1e-6
    return a == b


def _plain(item: Any) -> str:
    text = "".join(c for c in unicodedata.normalize("NFKD", str(item)) if not unicodedata.combining(c))
    text = re.sub(r"[‘’´`]", "'", text)
    text = re.sub(r"[“”]", '"', text)
    text = re.sub(r"[‐‑‒–—−]", "-", text)
    while True:
        before = text
        text = re.sub(r"((?<!^)\[[^\]]*\]|\[\d+\]|[•♦†‡*#+])*$", "", text.strip())
        text = re.sub(r"(?<!^)( \([^)]*\))*$", "", text.strip())
        text = re.sub(r'^"([^"]*)"$', r"\1", text.strip())
        if text == before:
            break
    return re.sub(r"\s+", " ", text.removesuffix(".")).casefold().strip()
