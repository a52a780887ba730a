"""Records for people: each function takes a record and a Rich console, and returns nothing.

Text of documents is printed as text, never as markup, and without control characters. On a terminal lines are
wrapped; elsewhere (a pipe, a file) a line stays whole, so that other programs can search it.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.style import Style
from rich.table import Table
from rich.text import Text

from hybrid_rag.records import rows_in_words
from hybrid_rag.render_text import cell, counted, file_link, grid, joined, ranges, safe, say, short, times

if TYPE_CHECKING:
    from pathlib import Path

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
    from hybrid_rag.starting import Starter

MODES = {"llm": "written by {model}", "table": "calculated from the table", "extractive": "quoted from your documents", "none": "no answer"}
SNIPPET = 300  # characters of a hit
QUOTE = 600
TABLE_ROWS = 15  # rows of a result shown with an answer


# ---------------------------------------------------------------- answers


def answer(result: Answer, console: Console, *, root: Path | None = None, streamed: bool = False) -> None:
    """The answer, what made it, its citations or the nearest passages, the proof of a calculation, notes and times.

    ``root``: the folder of the documents; on a terminal sources then lead to their files. ``streamed``: the answer's
    text stands there already.
    """
    if result.error:
        say(console, f"Failed: {safe(result.error)}", "red")
    if result.mode == "extractive" and _only_quotes(result):
        say(console, "Quoted from your documents:", "dim")
    else:
        if not streamed:
            say(console, joined(safe(result.answer)), "yellow" if result.abstained else "bold")
        say(console, f"({MODES[result.mode].format(model=result.model)})", "dim")
    for citation in result.citations:
        _citation(citation, console, root)
    if result.table is not None:
        _proof(result, console)
    if result.needs is not None:
        table_cards([result.needs], console)
    if result.abstained and result.hits and not result.citations:
        _nearest(result.hits, console)
    for note in (*result.notes, *result.checks):
        say(console, note, "dim italic")
    say(console, ". ".join(part for part in (times(result.milliseconds), _tokens(result.tokens)) if part), "dim")


def _only_quotes(result: Answer) -> bool:
    """Whether the answer says nothing but what its citations show."""
    rest = result.answer
    for citation in result.citations:
        if not citation.quote or len(citation.quote) > QUOTE or citation.quote not in rest:
            return False
        rest = rest.replace(citation.quote, "", 1)
    return bool(result.citations) and not re.sub(r"\[\d+\]|\s", "", rest)


def _tokens(tokens: dict[str, int]) -> str:
    """What was sent to the model, beside what sending the files whole would have cost."""
    named = {"prompt": "sent", "answer": "answer", "context": "passages", "whole_files": "whole files instead"}
    parts = [f"{label} {tokens[key]:,}" for key, label in named.items() if tokens.get(key)]
    if tokens.get("prompt") == 0:
        parts.insert(0, "none sent to a model")
    return f"Tokens: {', '.join(parts)}" if parts else ""


def _citation(citation: Citation, console: Console, root: Path | None) -> None:
    place = citation.place()
    head = Text(f"[{citation.n}] ", style="cyan")
    link = file_link(root, citation.source, citation.page)
    head.append(safe(citation.source), style=Style(color="cyan", underline=True, link=link))
    head.append(f", {safe(place)}" if place else "", style="cyan")
    if not citation.verified:
        head.append(" (not verified)", style="red")
    say(console, head)
    if citation.quote:
        quote = Text(joined(short(citation.quote, QUOTE)))
        for start, end in citation.marks:
            quote.stylize("bold yellow", start, end)
        say(console, quote, indent=4)


def _proof(result: Answer, console: Console) -> None:
    """The query and the records that a calculated answer stands on."""
    table = result.table
    assert table is not None
    if len(table.rows) > 1:
        _result_rows(table, console, TABLE_ROWS)
    if result.sql:
        say(console, f"SQL: {result.sql}", "green")
    rows = ranges(table.record_numbers)
    more = ", …" if (table.row_count or 0) > len(table.record_numbers) else ""
    if table.row_count:
        say(
            console,
            f"Stands on {counted(table.row_count, 'record')} of {', '.join(table.sources)} ({'row' if table.row_count == 1 else 'rows'} {rows}{more})",
            "dim",
        )
    elif table.row_count == 0:
        say(console, f"Stands on no record of {', '.join(table.sources)}", "dim")
    else:
        say(console, f"Read {', '.join(table.sources)}", "dim")
    for line in table.excluded:
        say(console, line, "yellow")


def _nearest(hits: Sequence[Hit], console: Console) -> None:
    say(console, "Nearest passages:", "dim")
    for hit in hits[:3]:
        say(console, f"{safe(hit.source)} {_place(hit)}: {short(' '.join(hit.chunk.text.split()), 120)}", "dim", indent=2)


def batch_summary(result: Any, console: Console) -> None:
    say(
        console,
        f"{result.answered} answered, {result.abstained} abstained, {result.failed} failed, {result.skipped} done before; "
        f"{result.seconds:.1f} s. Answers in {result.output}.",
    )
    if result.scored:
        say(console, f"{result.correct} of {counted(result.scored, 'expected answer')} found ({result.correct / result.scored:.0%}).")


# ---------------------------------------------------------------- search


def _place(hit: Hit) -> str:
    c = hit.chunk
    parts = [f"page {c.page}" if c.page else "", rows_in_words(c.rows) if c.rows else "", " > ".join(c.heading)]
    return safe(", ".join(p for p in parts if p))


def search_result(result: SearchResult, console: Console) -> None:
    if not result.hits:
        say(console, "Nothing found.", "yellow")
    for hit in result.hits:
        head = Text(f"{hit.rank}. ", style="bold")
        head.append(safe(hit.source), style="cyan")
        head.append(f"  {_place(hit)}", style="dim")
        say(console, head)
        text = Text(short(" ".join(hit.chunk.text.split()), SNIPPET))
        text.highlight_words([t for t in hit.terms if len(t) > 2], style="bold yellow", case_sensitive=False)
        say(console, text, indent=3)
        if hit.same_text:
            say(console, f"The same text: {safe(', '.join(hit.same_text))}", "dim", indent=3)
        if hit.explanation:
            say(console, hit.explanation, "dim italic", indent=3)
    share = "" if result.vector_share >= 1 else f", {result.vector_share:.0%} of the chunks have vectors"
    extra = (", reranked" if result.reranked else "") + (", from the cache" if result.cached else "")
    say(console, f"{result.mode.capitalize()} search{share}{extra}. {times(result.milliseconds)}", "dim")
    for note in result.notes:
        say(console, note, "yellow")


def passage(result: Passage, console: Console) -> None:
    say(console, safe(result.text))
    if result.note:
        say(console, result.note, "dim")


def related(result: Sequence[Any], console: Console) -> None:
    for item in result:
        say(console, f"{item.score:.3f}  {safe(item.document.source)}  {short(item.document.title, 60)}")


def timeline(result: Any, console: Console) -> None:
    for place, d in enumerate(result.documents):
        say(
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
    say(console, f"{counted(c.get('read', 0) + c.get('partly', 0), 'file')} indexed ({changes}) in {result.seconds:.1f} s.")
    first = f"; words were searchable after {result.first_searchable_seconds:.1f} s" if result.first_searchable_seconds else ""
    say(
        console,
        f"{counted(result.chunks_written, 'chunk')} written, {result.chunks_embedded:,} embedded, {counted(result.chunks_reused, 'vector')} reused{first}.",
    )
    for message in result.messages:
        say(console, message, "yellow")
    _unread(result, console)


def read_report(result: IndexReport | None, console: Console) -> None:
    """What the last run could not read, or only in part."""
    if result is None:
        say(console, "No run yet. Run `hybrid-rag index`.")
        return
    say(console, f"Last run {result.started}, {result.seconds:.1f} s, embedder {result.embedder or 'none'}.")
    if not _unread(result, console):
        say(console, "Every file was read.")
    for skipped in result.skipped:
        say(console, f"{'left out':<9}  {safe(skipped.path)}: {skipped.reason}", "dim")


def _unread(result: IndexReport, console: Console) -> bool:
    shown = [f for f in result.files if f.status != "read" and f.change != "deleted"]
    for file in shown:
        style = "red" if file.status == "not read" else "yellow"
        say(console, f"{file.status:<9}  {safe(file.source)}: {file.reason} {file.remedy}".rstrip(), style)
    if result.chunks_failed:
        say(
            console,
            f"{counted(result.chunks_failed, 'chunk')} without a vector: the embedder failed on them; the next run tries again.",
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
            short(d.title, 50),
            str(d.chunks),
            str(d.chunks_with_vectors),
            d.date or d.modified[:10],
            safe(", ".join(d.tags)),
        )
        table.add_row(*map(Text, cells))
    grid(console, table)
    say(console, counted(len(result), "document"), "dim")


def stats(result: Stats, console: Console) -> None:
    share = f"{result.vector_share:.0%} of the chunks have vectors ({result.embedder or 'no embedder yet'})"
    say(console, f"{counted(result.documents, 'document')}, {counted(result.chunks, 'chunk')}, {counted(result.tables, 'table')}; {share}.")
    for kind, counts in result.by_kind.items():
        say(
            console,
            f"  {kind}: {counted(counts['documents'], 'document')}, {counted(counts['chunks'], 'chunk')}, {counted(counts['vectors'], 'vector')}",
        )
    say(console, f"  files by kind: {', '.join(f'{n} {form}' for form, n in result.by_format.items())}")
    parts = ", ".join(f"{k} {v / 1e6:.1f}" for k, v in result.size_by_part.items())
    say(console, f"  {result.size_bytes / 1e6:.1f} MB in {result.persist_directory} ({parts})")
    if result.not_read or result.partly_read or result.failed_chunks:
        bad = f"{counted(result.not_read, 'file')} not read, {result.partly_read} partly, {counted(result.failed_chunks, 'chunk')} without vector"
        say(console, f"  {bad}: see `hybrid-rag report`", "yellow")


def verification(result: Any, console: Console) -> None:
    if result.ok:
        say(console, f"The index is whole: {', '.join(f'{v} {k}' for k, v in result.counts.items())}.", "green")
    for problem in result.problems:
        say(console, problem, "red")


def rebuilt(result: IndexReport | None, console: Console) -> None:
    if result is None:
        say(console, "Made again from the catalog.")
    else:
        index_report(result, console)


# ---------------------------------------------------------------- tables


def table_cards(result: Sequence[TableCard], console: Console) -> None:
    for card in result:
        say(console, Text(card.name, style="bold") + Text(f"  {safe(card.source)}, {counted(card.rows, 'row')}"))
        for column in card.columns:
            say(console, f"{column.name:<24} {_column(column)}", indent=2)
        for join in card.joins:
            say(console, f"{join.column} is found in {join.other_table}.{join.other_column} ({join.overlap:.0%})", "dim", indent=2)
        if card.total_rows:
            say(console, f"left out of calculations, for they add others up: rows {', '.join(map(str, card.total_rows))}", "dim", indent=2)


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
    return ", ".join(p for p in parts if p) + (f": {short(span, 80)}" if span else "")


def _result_rows(result: TableResult, console: Console, limit: int) -> None:
    shown = [i for i, name in enumerate(result.columns) if name != "_row"]
    table = Table(box=None, pad_edge=False)
    for i in shown:
        numeric = all(isinstance(row[i], (int, float)) for row in result.rows)
        table.add_column(Text(safe(result.columns[i])), overflow="fold", justify="right" if numeric else "left")
    for row in result.rows[:limit]:
        table.add_row(*(Text(cell(row[i])) for i in shown))
    grid(console, table)
    if len(result.rows) > limit:
        say(console, f"… and {counted(len(result.rows) - limit, 'more row')}", "dim")


def table_result(result: TableResult, console: Console) -> None:
    _result_rows(result, console, len(result.rows))
    cut = " (more were cut; raise tables.max_rows)" if result.truncated else ""
    say(console, f"{counted(len(result.rows), 'row')}{cut}, {result.milliseconds:.1f} ms", "dim")


def table_csv(result: TableResult, console: Console) -> None:
    """CSV to the console's file, values exact."""
    writer = csv.writer(console.file or sys.stdout, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(result.rows)


# ---------------------------------------------------------------- set-up


def starter(result: Starter, console: Console) -> None:
    say(console, f"{result.file} written: documents in {result.folder}, index in {result.index}.")
    if result.overridden_by:
        say(console, f"Commands run here read {result.overridden_by} unless the new file is named.", "yellow")
    say(console, f"Next: {result.next}", "bold")


def configuration(result: dict[str, Any], console: Console) -> None:
    say(console, f"# {result['file'] or 'no configuration file: built-in defaults'}", "dim")
    for row in result["values"]:
        say(console, Text(f"{row['key']} = {row['value']}") + Text(f"    # {row['origin']}", style="dim"))


def findings(result: Sequence[Any], console: Console) -> None:
    marks = {"ok": ("ok", "green"), "note": ("note", "yellow"), "error": ("ERROR", "bold red")}
    for finding in result:
        mark, style = marks[finding.level]
        say(console, Text(f"{mark:<6}", style=style) + Text(f"{finding.name}: {safe(finding.message)}"))
        if finding.remedy:
            say(console, finding.remedy, "bold", indent=7)
