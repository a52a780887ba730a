"""Records for people: each function takes a record and a Rich console, and returns nothing.

Text of documents is printed as text, never as markup, and without control characters. On a terminal lines are
wrapped; elsewhere (a pipe, a file) a line stays whole, so that other programs can search it.
"""

from __future__ import annotations

import csv
import sys
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from hybrid_rag.records import (
        Answer,
        Citation,
        DocumentInfo,
        Hit,
        IndexReport,
        Passage,
        SearchResult,
        Stats,
        TableCard,
        TableColumn,
        TableResult,
    )

MODES = {"llm": "written by {model}", "table": "calculated from the table", "extractive": "quoted from your documents", "none": "no answer"}
SNIPPET = 300  # characters of a hit
QUOTE = 600
WRAPPED_FROM = 60  # a line of a document at least this long that ends in mid-sentence was broken by its layout
TABLE_ROWS = 15  # rows of a result shown with an answer
PIPE_WIDTH = 200  # columns of a table that does not go to a terminal
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


# ---------------------------------------------------------------- helpers


def safe(text: str) -> str:
    """The text, of the same length, without what a terminal would obey: control characters, direction overrides, half characters."""
    return "".join("�" if c in _BIDI or (c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs")) else c for c in text)


def _short(text: str, limit: int) -> str:
    text = safe(text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _joined(text: str) -> str:
    """The text, of the same length, with lines joined that only the page's width has broken."""
    lines = text.split("\n")
    out = lines[0]
    for before, line in zip(lines, lines[1:]):
        broken = len(before) >= WRAPPED_FROM and before[-1] not in ".:;!?|" and " | " not in before and line[:1].isalnum()
        out += (" " if broken else "\n") + line
    return out


def _n(count: int, noun: str) -> str:
    """ "1 file", "1,200 files"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _say(console: Console, text: str | Text, style: str = "", indent: int = 0) -> None:
    shown = Text(text, style=style) if isinstance(text, str) else text
    if console.is_terminal:
        console.print(Padding(shown, (0, 0, 0, indent)) if indent else shown)
        return
    for line in shown.split("\n", allow_blank=True) if indent else (shown,):
        console.print(Text(" " * indent) + line if line.plain else line, soft_wrap=True)


def _grid(console: Console, table: Table) -> None:
    console.print(table, width=None if console.is_terminal else PIPE_WIDTH, crop=console.is_terminal)


def _ranges(numbers: Sequence[int]) -> str:
    """ "1-20, 25" for sorted numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _times(milliseconds: dict[str, float]) -> str:
    return "Time: " + ", ".join(f"{stage} {value:,.0f} ms" for stage, value in milliseconds.items()) if milliseconds else ""


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:,.2f}" if isinstance(value, float) else safe(str(value))


# ---------------------------------------------------------------- answers


def answer(result: Answer, console: Console) -> None:
    """The answer, what made it, its citations or the nearest passages, the proof of a calculation, notes and times."""
    if result.error:
        _say(console, f"Failed: {safe(result.error)}", "red")
    _say(console, _joined(safe(result.answer)), "yellow" if result.abstained else "bold")
    _say(console, f"({MODES[result.mode].format(model=result.model)})", "dim")
    for citation in result.citations:
        _citation(citation, console)
    if result.table is not None:
        _proof(result, console)
    if result.abstained and result.hits:
        _nearest(result.hits, console)
    for note in (*result.notes, *result.checks):
        _say(console, note, "dim italic")
    _say(console, ". ".join(part for part in (_times(result.milliseconds), _tokens(result.tokens)) if part), "dim")


def _tokens(tokens: dict[str, int]) -> str:
    """What was sent to the model, beside what sending the files whole would have cost."""
    named = {"prompt": "prompt", "answer": "answer", "context": "passages", "whole_files": "whole files instead"}
    parts = [f"{label} {tokens[key]:,}" for key, label in named.items() if tokens.get(key)]
    return f"Tokens: {', '.join(parts)}" if parts else ""


def _citation(citation: Citation, console: Console) -> None:
    place = citation.place()
    head = Text(f"[{citation.n}] ", style="cyan")
    head.append(safe(citation.source), style="cyan underline")
    head.append(f", {safe(place)}" if place else "", style="cyan")
    if not citation.verified:
        head.append(" (not verified)", style="red")
    _say(console, head)
    if citation.quote:
        quote = Text(_joined(_short(citation.quote, QUOTE)))
        for start, end in citation.marks:
            quote.stylize("bold yellow", start, end)
        _say(console, quote, indent=4)


def _proof(result: Answer, console: Console) -> None:
    """The query and the records that a calculated answer stands on."""
    table = result.table
    assert table is not None
    if len(table.rows) > 1:
        _result_rows(table, console, TABLE_ROWS)
    if result.sql:
        _say(console, f"SQL: {result.sql}", "green")
    rows = _ranges(table.record_numbers)
    more = ", …" if (table.row_count or 0) > len(table.record_numbers) else ""
    if table.row_count:
        _say(console, f"Stands on {_n(table.row_count, 'record')} of {', '.join(table.sources)} (rows {rows}{more})", "dim")
    else:
        _say(console, f"Stands on no record of {', '.join(table.sources)}", "dim")
    for line in table.excluded:
        _say(console, line, "yellow")


def _nearest(hits: Sequence[Hit], console: Console) -> None:
    _say(console, "Nearest passages:", "dim")
    for hit in hits[:3]:
        _say(console, f"{safe(hit.source)} {_place(hit)}: {_short(' '.join(hit.chunk.text.split()), 120)}", "dim", indent=2)


def batch_summary(result: Any, console: Console) -> None:
    _say(
        console,
        f"{result.answered} answered, {result.abstained} abstained, {result.failed} failed, {result.skipped} done before; "
        f"{result.seconds:.1f} s. Answers in {result.output}.",
    )
    if result.scored:
        _say(console, f"{result.correct} of {_n(result.scored, 'expected answer')} found ({result.correct / result.scored:.0%}).")


# ---------------------------------------------------------------- search


def _place(hit: Hit) -> str:
    c = hit.chunk
    parts = [f"page {c.page}" if c.page else "", f"rows {c.rows[0]}-{c.rows[1]}" if c.rows else "", " > ".join(c.heading)]
    return safe(", ".join(p for p in parts if p))


def search_result(result: SearchResult, console: Console) -> None:
    if not result.hits:
        _say(console, "Nothing found.", "yellow")
    for hit in result.hits:
        head = Text(f"{hit.rank}. ", style="bold")
        head.append(safe(hit.source), style="cyan")
        head.append(f"  {_place(hit)}", style="dim")
        _say(console, head)
        text = Text(_short(" ".join(hit.chunk.text.split()), SNIPPET))
        text.highlight_words([t for t in hit.terms if len(t) > 2], style="bold yellow", case_sensitive=False)
        _say(console, text, indent=3)
        if hit.same_text:
            _say(console, f"The same text: {safe(', '.join(hit.same_text))}", "dim", indent=3)
        if hit.explanation:
            _say(console, hit.explanation, "dim italic", indent=3)
    share = "" if result.vector_share >= 1 else f", {result.vector_share:.0%} of the chunks have vectors"
    extra = (", reranked" if result.reranked else "") + (", from the cache" if result.cached else "")
    _say(console, f"{result.mode.capitalize()} search{share}{extra}. {_times(result.milliseconds)}", "dim")
    for note in result.notes:
        _say(console, note, "yellow")


def passage(result: Passage, console: Console) -> None:
    _say(console, safe(result.text))
    if result.note:
        _say(console, result.note, "dim")


def related(result: Sequence[Any], console: Console) -> None:
    for item in result:
        _say(console, f"{item.score:.3f}  {safe(item.document.source)}  {_short(item.document.title, 60)}")


def timeline(result: Any, console: Console) -> None:
    for place, d in enumerate(result.documents):
        _say(
            console,
            f"{'>' if place == result.at else ' '} {(d.date or d.modified)[:10]}  {safe(d.source)}",
            "bold" if place == result.at else "",
        )


# ---------------------------------------------------------------- index


def index_report(result: IndexReport, console: Console) -> None:
    c = result.counts
    changes = ", ".join(
        f"{c.get(k, 0)} {word}"
        for k, word in (
            ("added", "new"),
            ("changed", "changed"),
            ("renamed", "renamed"),
            ("unchanged", "unchanged"),
            ("deleted", "deleted"),
        )
    )
    _say(console, f"{_n(c.get('read', 0) + c.get('partly', 0), 'file')} indexed ({changes}) in {result.seconds:.1f} s.")
    first = f"; words were searchable after {result.first_searchable_seconds:.1f} s" if result.first_searchable_seconds else ""
    _say(
        console,
        f"{_n(result.chunks_written, 'chunk')} written, {result.chunks_embedded:,} embedded, {_n(result.chunks_reused, 'vector')} reused{first}.",
    )
    for message in result.messages:
        _say(console, message, "yellow")
    _unread(result, console)


def read_report(result: IndexReport | None, console: Console) -> None:
    """What the last run could not read, or only in part."""
    if result is None:
        _say(console, "No run yet. Run `hybrid-rag index`.")
        return
    _say(console, f"Last run {result.started}, {result.seconds:.1f} s, embedder {result.embedder or 'none'}.")
    if not _unread(result, console):
        _say(console, "Every file was read.")
    for skipped in result.skipped:
        _say(console, f"{'left out':<9}  {safe(skipped.path)}: {skipped.reason}", "dim")


def _unread(result: IndexReport, console: Console) -> bool:
    shown = [f for f in result.files if f.status != "read" and f.change != "deleted"]
    for file in shown:
        style = "red" if file.status == "not read" else "yellow"
        _say(console, f"{file.status:<9}  {safe(file.source)}: {file.reason} {file.remedy}".rstrip(), style)
    if result.chunks_failed:
        _say(
            console,
            f"{_n(result.chunks_failed, 'chunk')} without a vector: the embedder failed on them; the next run tries again.",
            "yellow",
        )
    return bool(shown)


def documents(result: Sequence[DocumentInfo], console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("Document", "Kind", "Title", "Chunks", "Vectors", "Date", "Tags"):
        table.add_column(name, justify="right" if name in ("Chunks", "Vectors") else "left", overflow="fold")
    for d in result:
        cells = (
            safe(d.source),
            d.format,
            _short(d.title, 50),
            str(d.chunks),
            str(d.chunks_with_vectors),
            d.date or d.modified[:10],
            safe(", ".join(d.tags)),
        )
        table.add_row(*map(Text, cells))
    _grid(console, table)
    _say(console, _n(len(result), "document"), "dim")


def stats(result: Stats, console: Console) -> None:
    share = f"{result.vector_share:.0%} of the chunks have vectors ({result.embedder or 'no embedder yet'})"
    _say(console, f"{_n(result.documents, 'document')}, {_n(result.chunks, 'chunk')}, {_n(result.tables, 'table')}; {share}.")
    for kind, counts in result.by_kind.items():
        _say(
            console, f"  {kind}: {_n(counts['documents'], 'document')}, {_n(counts['chunks'], 'chunk')}, {_n(counts['vectors'], 'vector')}"
        )
    _say(console, f"  {', '.join(f'{n} {form}' for form, n in result.by_format.items())}")
    parts = ", ".join(f"{k} {v / 1e6:.1f}" for k, v in result.size_by_part.items())
    _say(console, f"  {result.size_bytes / 1e6:.1f} MB in {result.persist_directory} ({parts})")
    if result.not_read or result.partly_read or result.failed_chunks:
        bad = f"{_n(result.not_read, 'file')} not read, {result.partly_read} partly, {_n(result.failed_chunks, 'chunk')} without vector"
        _say(console, f"  {bad}: see `hybrid-rag report`", "yellow")


def verification(result: Any, console: Console) -> None:
    if result.ok:
        _say(console, f"The index is whole: {', '.join(f'{v} {k}' for k, v in result.counts.items())}.", "green")
    for problem in result.problems:
        _say(console, problem, "red")


def rebuilt(result: IndexReport | None, console: Console) -> None:
    if result is None:
        _say(console, "Made again from the catalog.")
    else:
        index_report(result, console)


# ---------------------------------------------------------------- tables


def table_cards(result: Sequence[TableCard], console: Console) -> None:
    for card in result:
        _say(console, Text(card.name, style="bold") + Text(f"  {safe(card.source)}, {_n(card.rows, 'row')}"))
        for column in card.columns:
            _say(console, f"{column.name:<24} {_column(column)}", indent=2)
        for join in card.joins:
            _say(console, f"{join.column} is found in {join.other_table}.{join.other_column} ({join.overlap:.0%})", "dim", indent=2)


def _column(column: TableColumn) -> str:
    if column.type != "text" and column.minimum is not None:
        span = f"{column.minimum} to {column.maximum}"
    else:
        span = ", ".join(column.values[:6]) + (" …" if len(column.values) > 6 else "")
    parts = [column.type, "key" if column.is_key else ""]
    parts += [
        f"{column.nulls:,} empty" if column.nulls else "",
        f"{column.unreadable:,} not readable as {column.type}" if column.unreadable else "",
    ]
    return ", ".join(p for p in parts if p) + (f": {_short(span, 80)}" if span else "")


def _result_rows(result: TableResult, console: Console, limit: int) -> None:
    shown = [i for i, name in enumerate(result.columns) if name != "_row"]
    table = Table(box=None, pad_edge=False)
    for i in shown:
        numeric = all(isinstance(row[i], (int, float)) for row in result.rows)
        table.add_column(Text(safe(result.columns[i])), overflow="fold", justify="right" if numeric else "left")
    for row in result.rows[:limit]:
        table.add_row(*(Text(_cell(row[i])) for i in shown))
    _grid(console, table)
    if len(result.rows) > limit:
        _say(console, f"… and {_n(len(result.rows) - limit, 'more row')}", "dim")


def table_result(result: TableResult, console: Console) -> None:
    _result_rows(result, console, len(result.rows))
    cut = " (more were cut; raise tables.max_rows)" if result.truncated else ""
    _say(console, f"{_n(len(result.rows), 'row')}{cut}, {result.milliseconds:.1f} ms", "dim")


def table_csv(result: TableResult, console: Console) -> None:
    """CSV to the console's file, values exact."""
    writer = csv.writer(console.file or sys.stdout, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(result.rows)


# ---------------------------------------------------------------- set-up


def configuration(result: dict[str, Any], console: Console) -> None:
    _say(console, f"# {result['file'] or 'no configuration file: built-in defaults'}", "dim")
    for row in result["values"]:
        _say(console, Text(f"{row['key']} = {row['value']}") + Text(f"    # {row['origin']}", style="dim"))


def findings(result: Sequence[Any], console: Console) -> None:
    marks = {"ok": ("ok", "green"), "note": ("note", "yellow"), "error": ("ERROR", "bold red")}
    for finding in result:
        mark, style = marks[finding.level]
        _say(console, Text(f"{mark:<6}", style=style) + Text(f"{finding.name}: {safe(finding.message)}"))
        if finding.remedy:
            _say(console, finding.remedy, "bold", indent=7)
