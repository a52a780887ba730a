"""The comparison as Markdown: tables with ratios, what could not be measured and why, and figures of several runs together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from systems import OURS

Results = dict[str, dict[str, Any]]  # system -> figures
Columns = Mapping[str, tuple[str, str]]  # header -> (dotted key, format)

LOADING: Columns = {"seconds": ("load_s", "{:.2f}"), "CPU, s": ("load_cpu_s", "{:.2f}"), "chunks": ("chunks", "{:,.0f}")}
BUILDING: Columns = {
    "chunks": ("chunks", "{:,.0f}"), "read, chunk, index, s": ("total_s", "{:.1f}"), "CPU, s": ("cpu_s", "{:.1f}"),
    "memory, MB": ("rss_build_mb", "{:,.0f}"), "disk, MB": ("disk_mb", "{:.1f}"),
}  # fmt: skip
RANKING: Columns = {
    "chunks": ("chunks", "{:,.0f}"), "hit@1": ("hit@1", "{:.3f}"), "hit@5": ("hit@5", "{:.3f}"), "MRR": ("MRR", "{:.3f}"),
    "nDCG@10": ("nDCG@10", "{:.3f}"),
}  # fmt: skip
MAKING: Columns = {
    "read, chunk, index, s": ("total_s", "{:.1f}"), "CPU, s": ("cpu_s", "{:.1f}"), "first result from start, s": ("first_s", "{:.1f}"),
    "memory, MB": ("rss_build_mb", "{:,.0f}"), "disk, MB": ("disk_mb", "{:,.0f}"), "cold start, s": ("cold_s", "{:.1f}"),
    "changed file found, s": ("found_s", "{:.1f}"), "whole update, s": ("update_s", "{:.1f}"),
}  # fmt: skip
ASKING: Columns = {
    "p50, ms": ("one/p50", "{:.1f}"), "p95": ("one/p95", "{:.1f}"), "p99": ("one/p99", "{:.1f}"), "CPU, ms": ("one/cpu", "{:.1f}"),
    "8 clients p50, ms": ("eight/p50", "{:.1f}"), "p95 of 8": ("eight/p95", "{:.1f}"), "p99 of 8": ("eight/p99", "{:.1f}"),
    "queries/s of 8": ("eight/per_second", "{:.1f}"), "memory, MB": ("rss_query_mb", "{:,.0f}"), "found in five": ("found", "{:.2f}"),
}  # fmt: skip
QUALITY = {"hit@1", "hit@5", "MRR", "nDCG@10", "found"}  # no ratios of these
LEGEND = """Seconds of making are from the files to a closed index, CPU seconds those of the whole process with what it started. "First result" counts
from the start of the process; hybrid-rag finds by words before it has vectors. "Cold start" is a new process until its first answer. "Changed
file found": one file gets a sentence, and is searched for until it comes. Queries ask for five chunks, keyword and vector search fused."""


def table(title: str, results: Results, columns: Columns, order: Sequence[str]) -> Iterator[str]:
    """A Markdown table. Behind a peer's figure: how many times ours it is."""
    yield f"### {title}"
    yield ""
    yield "| | " + " | ".join(columns) + " |"
    yield "|---|" + "---:|" * len(columns)
    for name in (n for n in order if n in results):
        cells = []
        for key, form in columns.values():
            value, base = _get(results[name], key), _get(results.get(OURS, {}), key)
            text = "–" if value is None else form.format(value)
            ratio = f" ({times(value / base)}×)" if name != OURS and value is not None and base and key not in QUALITY else ""
            cells.append(text + ratio)
        label = f"**{name}**" if name == OURS else name
        yield f"| {label} | " + " | ".join(cells) + " |"
    yield ""


def times(ratio: float) -> str:
    """Three digits, large ones whole."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _get(figures: Mapping[str, Any], key: str) -> float | None:
    value: Any = figures
    for part in key.split("/"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def versions(found: Mapping[str, Any]) -> str:
    return "; ".join(f"{name} ({', '.join(f'{p} {v}' for p, v in held.items())})" for name, held in found["versions"].items())


def report(found: Mapping[str, Any], order: Sequence[str]) -> Iterator[str]:
    """All tables of one run, from the heading on."""
    yield "## Beside other systems"
    yield ""
    yield "Each system in a process and an environment of its own, one after the other, on the same files with the same embedder; in brackets"
    yield f"how many times our figure. Versions: {versions(found)}."
    yield ""
    if found["growth"]:
        yield from (LEGEND, "")
    for name, why in found["missing"].items():
        yield from (f"{name}: not run, {why}.", "")
    for what, results in found["loading"].items():
        yield from table(f"Reading and chunking: {what}", results, LOADING, order)
    for what, results in found["quality"].items():
        timed = {name: held for name, held in results.items() if "total_s" in held}
        if timed:
            yield from table(f"Making an index with the bundled model: {what}", timed, BUILDING, order)
        ranked = {name: held for name, held in results.items() if "nDCG@10" in held}
        if ranked:
            yield from table(f"Retrieval: {what}", ranked, RANKING, order)
    yield from growth_tables(found, order)
    yield from failures(found)


def growth_tables(found: Mapping[str, Any], order: Sequence[str]) -> Iterator[str]:
    for size, results in sorted(found["growth"].items(), key=lambda item: int(item[0])):
        yield from table(f"{int(size):,} chunks, free embedder: making and changing", results, MAKING, order)
        if any("one" in held for held in results.values()):
            yield from table(f"{int(size):,} chunks: asking", results, ASKING, order)


def failures(found: Mapping[str, Any]) -> Iterator[str]:
    """A line for each reason, with all that it concerns."""
    reasons: dict[str, list[str]] = {}
    for failure in [*found["failures"], *found["sets_missing"]]:
        what, _, why = failure.partition(": ")
        reasons.setdefault(why, []).append(what)
    for why, whats in reasons.items():
        yield from (f"Not measured: {'; '.join(whats)}: {why}.", "")


def growth_page(found: Mapping[str, Any], order: Sequence[str], command: str, chart: str, notes: str) -> str:
    """A page on the growth alone: how it was made, the chart, the tables."""
    sizes = [int(size) for size in found["growth"]]
    head = f"""# Growth

Written by `{command}`; do not edit. Measured on {found["machine"]}{notes}.

Collections from {min(sizes):,} to {max(sizes):,} chunks of made-up Markdown, indexed by each system in a process and an environment of its own,
with an embedder that costs nearly nothing, so that the rest is what is measured; in brackets how many times our figure.
Versions: {versions(found)}.

{LEGEND}

![Growth of every system with the number of chunks]({chart})
"""
    missing = [line for name, why in found["missing"].items() for line in (f"{name}: not run, {why}.", "")]
    return "\n".join([head, *missing, *growth_tables(found, order), *failures(found)]).rstrip() + "\n"


def merged(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The present figures, with the earlier ones of what was not measured now."""
    out = {**before, **now}
    for part in ("loading", "quality", "growth"):
        held = {str(what): results for what, results in now[part].items()}
        names = [*before[part], *(what for what in held if what not in before[part])]
        out[part] = {what: before[part].get(what, {}) | held.get(what, {}) for what in names}
    for part in ("versions", "missing"):
        out[part] = before[part] | now[part]
    kept = [failure for failure in before["failures"] if not failure.startswith(tuple(now["measured"]))]
    return out | {"failures": list(dict.fromkeys([*kept, *now["failures"]]))}
