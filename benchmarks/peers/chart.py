"""The growth of every system as a picture: times and CPU times of indexing and of a query, memory and disk against the number of chunks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

PANELS = {
    "index, seconds": ("total_s",),
    "query p50, ms": ("one", "p50"),
    "disk, MB": ("disk_mb",),
    "index, CPU seconds": ("cpu_s",),
    "query, CPU ms": ("one", "cpu"),
    "memory of queries, MB": ("rss_query_mb",),
}


def draw(growth: Mapping[int, Mapping[str, Mapping[str, Any]]], file: Path) -> None:
    """Six panels, both axes logarithmic; a system without a figure at a size has no point there."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullLocator

    names = list(dict.fromkeys(name for results in growth.values() for name in results))
    figure, axes = plt.subplots(2, 3, figsize=(13, 7), layout="constrained")
    for panel, (title, path) in zip(axes.flat, PANELS.items(), strict=True):
        for name in names:
            found = ((int(size), _get(results.get(name, {}), path)) for size, results in growth.items())
            points = sorted((size, value) for size, value in found if value is not None)
            if points:
                panel.plot(*zip(*points, strict=True), marker="o", linewidth=2.5 if name == "hybrid-rag" else 1.2, label=name)
        panel.set(xscale="log", yscale="log", title=title, xlabel="chunks")
        panel.grid(visible=True, which="major", alpha=0.3)
        panel.set_xticks(sorted(map(int, growth)), labels=[f"{size:,}" for size in sorted(map(int, growth))])
        panel.xaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        panel.yaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_major_formatter("{x:,g}")
        panel.tick_params(labelsize="small", which="both")
    axes[0, 0].legend(fontsize="small")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _get(figures: Mapping[str, Any], path: tuple[str, ...]) -> float | None:
    value: Any = figures
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
