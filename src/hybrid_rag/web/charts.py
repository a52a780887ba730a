"""A small chart of a result: a line for a series in time, bars for categories. Geometry only; the template draws it as SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

WIDTH, HEIGHT = 640, 220
MOST_BARS, MOST_POINTS = 20, 400
BAR, GAP = 20, 8
LABEL_WIDTH, VALUE_WIDTH = 190, 90
MARGIN = 56  # left of a line chart, for the numbers
FOOT = 26  # below it, for the dates
TICKS = 4
_TIME = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2}(?:[T ]\d{2}:\d{2}.*)?)?|-?Q[1-4]|-?W\d{2})?")


@dataclass(frozen=True, slots=True)
class Mark:
    """A bar or a point: its place in the picture, and what it stands for."""

    x: float
    y: float
    width: float
    height: float
    label: str
    value: str


@dataclass(frozen=True, slots=True)
class Chart:
    """``kind``: "line" or "bars". ``ticks``: (place, number); along y of a line chart. ``names``: (place, label) along x."""

    kind: Literal["line", "bars"]
    title: str
    width: int
    height: int
    marks: tuple[Mark, ...]
    points: str = ""
    ticks: tuple[tuple[float, str], ...] = ()
    names: tuple[tuple[float, str], ...] = ()
    zero: float = 0.0  # where the bars begin


def chart(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Chart | None:
    """The chart of a result with a label and a number column; None when it is no series or set of categories."""
    shown = [i for i, name in enumerate(columns) if name != "_row"]
    numeric = [i for i in shown if rows and all(_number(row[i]) for row in rows)]
    labels = [i for i in shown if i not in numeric]
    if len(shown) == 2 and len(numeric) == 2 and _years([row[shown[0]] for row in rows]):
        labels, numeric = [shown[0]], [shown[1]]
    if len(rows) < 2 or len(labels) != 1 or not numeric:
        return None
    pairs = [(_text(row[labels[0]]), float(row[numeric[0]])) for row in rows]
    title = f"{columns[numeric[0]]} by {columns[labels[0]]}"
    if len({label for label, _ in pairs}) < len(pairs):
        return None
    if len(pairs) >= 3 and all(_TIME.fullmatch(label) for label, _ in pairs):
        return _line(title, sorted(pairs)) if len(pairs) <= MOST_POINTS else None
    return _bars(title, pairs) if len(pairs) <= MOST_BARS else None


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _years(values: Sequence[Any]) -> bool:
    return all(isinstance(v, int) and 1000 <= v <= 2999 for v in values)


def _text(value: Any) -> str:
    return "(empty)" if value is None or value == "" else str(value)


def number(value: float) -> str:
    """A number for people: thousands separated, no more digits than say something."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.4g}"


def _bars(title: str, pairs: Sequence[tuple[str, float]]) -> Chart:
    low, high = min(0.0, *(v for _, v in pairs)), max(0.0, *(v for _, v in pairs))
    room = WIDTH - LABEL_WIDTH - VALUE_WIDTH
    scale = room / ((high - low) or 1.0)
    zero = LABEL_WIDTH - low * scale
    marks = []
    for i, (label, value) in enumerate(pairs):
        left = zero + min(0.0, value) * scale
        marks.append(Mark(round(left, 1), GAP + i * (BAR + GAP), round(max(abs(value) * scale, 1.0), 1), BAR, label, number(value)))
    return Chart("bars", title, WIDTH, GAP + len(pairs) * (BAR + GAP), tuple(marks), zero=round(zero, 1))


def _line(title: str, pairs: Sequence[tuple[str, float]]) -> Chart:
    ticks = _ticks([v for _, v in pairs])
    low, high = ticks[0], ticks[-1]
    across, up = (WIDTH - MARGIN - 16) / (len(pairs) - 1), (HEIGHT - FOOT - 16) / (high - low)

    def y(value: float) -> float:
        return round(HEIGHT - FOOT - (value - low) * up, 1)

    marks = [Mark(round(MARGIN + i * across, 1), y(v), 0, 0, label, number(v)) for i, (label, v) in enumerate(pairs)]
    step = max(1, math.ceil(len(pairs) / 8))
    return Chart(
        "line", title, WIDTH, HEIGHT, tuple(marks),
        points=" ".join(f"{m.x},{m.y}" for m in marks),
        ticks=tuple((y(t), _short(t)) for t in ticks),
        names=tuple((m.x, m.label) for m in marks[::step]),
    )  # fmt: skip


def _ticks(values: Sequence[float]) -> list[float]:
    """Round numbers that span the values and zero when it is near."""
    low, high = min(values), max(values)
    if 0 < low < (high - low) * 2 or low == high > 0:
        low = 0.0
    if low == high:
        high = low + 1
    raw = (high - low) / TICKS
    power = 10 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
    first = math.floor(low / step) * step
    out = [first]
    while out[-1] < high - step * 1e-9:
        out.append(first + len(out) * step)
    return out


def _short(value: float) -> str:
    for size, sign in ((1e9, "bn"), (1e6, "m"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {sign}"
    return f"{value:.4g}"
