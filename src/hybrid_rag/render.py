"""Records for people: each function takes a record and a Rich console. Document text is printed as text, never as markup."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console

    from hybrid_rag.records import Answer, Citation, DocumentInfo, IndexReport, Passage, SearchResult, Stats, TableCard, TableResult

MODES = {"llm": "written by {model}", "table": "calculated from the table", "extractive": "quoted from your documents", "none": "no answer"}
SNIPPET = 300  # characters of a hit
QUOTE = 400


def _safe(text: str) -> str:
    """Text without terminal control characters."""
    return "".join(c if c in "\n\t" or (c.isprintable()) else "�" for c in text)


def _short(text: str, limit: int) -> str:
    text = _safe(text)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def answer(result: Answer, console: Console) -> None:
    """The answer, where it comes from, its citations or the nearest passages, and the times."""
    console.print(Text(_safe(result.answer), style="bold" if not result.abstained else "yellow"))
    console.print(Text(f"({MODES[result.mode].format(model=result.model)})", style="dim"))
    for citation in result.citations:
        _citation(citation, console)
    if result.table is not None:
        _proof(result, console)
    if result.abstained and result.hits:
        console.print(Text("Nearest passages:", style="dim"))
        for hit in result.hits[:3]:
            console.print(Text(f"  {hit.source} {_place(hit)}: {_short(' '.join(hit.chunk.text.split()), 120)}", style="dim"))
    for note in (*result.notes, *result.checks):
        console.print(Text(note, style="dim italic"))
    console.print(Text(_times(result.milliseconds), style="dim"))


def _citation(citation: Citation, console: Console) -> None:
    place = citation.place()
    head = Text(f"[{citation.n}] ", style="cyan")
    head.append(citation.source, style="cyan underline")
    head.append(f", {place}" if place else "", style="cyan")
    if not citation.verified:
        head.append(" (not verified)", style="red")
    console.print(head)
    if citation.quote:
        quote = Text("    " + _short(citation.quote, QUOTE).replace("\n", "\n    "))
        console.print(quote)


def _proof(result: Answer, console: Console) -> None:
    assert result.table is not None
    table = result.table
    console.print(Text(f"SQL: {result.sql}", style="green"))
    rows = ", ".join(map(str, table.record_numbers))
    more = " …" if (table.row_count or 0) > len(table.record_numbers) else ""
    console.print(Text(f"Stands on {table.row_count:,} records of {', '.join(table.sources)} (rows {rows}{more})" if rows else "Stands on no record", style="dim"))
    for line in table.excluded:
        console.print(Text(line, style="yellow"))


def _times(milliseconds: dict[str, float]) -> str:
    return "Time: " + ", ".join(f"{stage} {value:,.0f} ms" for stage, value in milliseconds.items()) if milliseconds else ""


def _place(hit: Any) -> str:
    c = hit.chunk
    parts = [f"p. {c.page}" if c.page else "", f"rows {c.rows[0]}-{c.rows[1]}" if c.rows else "", " > ".join(c.heading)]
    return ", ".join(p for p in parts if p)


def search_result(result: SearchResult, console: Console) -> None:
    if not result.hits:
        console.print(Text("Nothing found.", style="yellow"))
    for hit in result.hits:
        head = Text(f"{hit.rank}. ", style="bold")
        head.append(hit.source, style="cyan")
        head.append(f"  {_place(hit)}", style="dim")
        console.print(head)
        text = Text("   " + _short(" ".join(hit.chunk.text.split()), SNIPPET))
        if hit.terms:
            text.highlight_words([t for t in hit.terms if len(t) > 2], style="bold yellow", case_sensitive=False)
        console.print(text)
        if hit.explanation:
            console.print(Text(f"   {hit.explanation}", style="dim italic"))
    share = "" if result.vector_share >= 1 else f", {result.vector_share:.0%} of the chunks have vectors"
    extra = (", reranked" if result.reranked else "") + (", from the cache" if result.cached else "")
    console.print(Text(f"{result.mode}{share}{extra}. {_times(result.milliseconds)}", style="dim"))
    for note in result.notes:
        console.print(Text(note, style="yellow"))


def index_report(result: IndexReport, console: Console) -> None:
    c = result.counts
    console.print(
        Text(f"{c['read'] + c['partly']} files indexed ({c['added']} new, {c['changed']} changed, {c['renamed']} renamed, {c['unchanged']} unchanged, {c['deleted']} deleted) in {result.seconds:.1f} s.")
    )
    first = f"; words were searchable after {result.first_searchable_seconds:.1f} s" if result.first_searchable_seconds else ""
    console.print(Text(f"{result.chunks_written:,} chunks written, {result.chunks_embedded:,} embedded, {result.chunks_reused:,} vectors reused{first}."))
    for message in result.messages:
        console.print(Text(message, style="yellow"))
    _unread(result, console)


def read_report(result: IndexReport | None, console: Console) -> None:
    if result is None:
        console.print("No run yet. Run `hybrid-rag index`.", markup=False)
        return
    console.print(Text(f"Last run {result.started}, {result.seconds:.1f} s, embedder {result.embedder or 'none'}."))
    if not _unread(result, console):
        console.print("Every file was read.", markup=False)
    for skipped in result.skipped:
        console.print(Text(f"left out   {skipped.path}: {skipped.reason}", style="dim"))


def _unread(result: IndexReport, console: Console) -> bool:
    shown = [f for f in result.files if f.status != "read" and f.change != "deleted"]
    for file in shown:
        style = "red" if file.status == "not read" else "yellow"
        console.print(Text(f"{file.status:<9}  {file.source}: {file.reason} {file.remedy}".rstrip(), style=style))
    if result.chunks_failed:
        console.print(Text(f"{result.chunks_failed} chunks have no vector: the embedder failed on them; the next run tries again.", style="yellow"))
    return bool(shown)


def documents(result: Sequence[DocumentInfo], console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("Document", "Kind", "Title", "Chunks", "Vectors", "Date", "Tags"):
        table.add_column(name, justify="right" if name in ("Chunks", "Vectors") else "left", overflow="fold")
    for d in result:
        table.add_row(*map(Text, (_safe(d.source), d.format, _short(d.title, 50), str(d.chunks), str(d.chunks_with_vectors), d.date or d.modified[:10], ", ".join(d.tags))))
    console.print(table)
    console.print(Text(f"{len(result)} documents", style="dim"))


def related(result: Sequence[Any], console: Console) -> None:
    for item in result:
        console.print(Text(f"{item.score:.3f}  {item.document.source}  {_short(item.document.title, 60)}"))


def timeline(result: Any, console: Console) -> None:
    for place, d in enumerate(result.documents):
        console.print(Text(f"{'>' if place == result.at else ' '} {(d.date or d.modified)[:10]}  {d.source}", style="bold" if place == result.at else ""))


def passage(result: Passage, console: Console) -> None:
    console.print(Text(_safe(result.text)))
    if result.note:
        console.print(Text(result.note, style="dim"))


def stats(result: Stats, console: Console) -> None:
    console.print(Text(f"{result.documents} documents, {result.chunks:,} chunks, {result.tables} tables; {result.vector_share:.0%} of the chunks have vectors ({result.embedder or 'no embedder yet'})."))
    for kind, counts in result.by_kind.items():
        console.print(Text(f"  {kind}: {counts['documents']} documents, {counts['chunks']:,} chunks, {counts['vectors']:,} vectors"))
    console.print(Text(f"  {', '.join(f'{n} {form}' for form, n in result.by_format.items())}"))
    console.print(Text(f"  {result.size_bytes / 1e6:.1f} MB in {result.persist_directory} ({', '.join(f'{k} {v / 1e6:.1f}' for k, v in result.size_by_part.items())})"))
    if result.not_read or result.partly_read or result.failed_chunks:
        console.print(Text(f"  {result.not_read} files not read, {result.partly_read} partly, {result.failed_chunks} chunks without vector: see `hybrid-rag report`", style="yellow"))


def table_cards(result: Sequence[TableCard], console: Console) -> None:
    for card in result:
        console.print(Text(f"{card.name}", style="bold") + Text(f"  {card.source}, {card.rows:,} rows"))
        for c in card.columns:
            span = f"{c.minimum} to {c.maximum}" if c.type != "text" and c.minimum is not None else ", ".join(c.values[:6]) + (" …" if len(c.values) > 6 else "")
            marks = " key" if c.is_key else ""
            gaps = f", {c.nulls} empty" if c.nulls else ""
            bad = f", {c.unreadable} not readable as {c.type}" if c.unreadable else ""
            console.print(Text(f"  {c.name:<24} {c.type}{marks}{gaps}{bad}  {_short(span, 80)}"))
        for join in card.joins:
            console.print(Text(f"  {join.column} is found in {join.other_table}.{join.other_column} ({join.overlap:.0%})", style="dim"))


def table_result(result: TableResult, console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for name in result.columns:
        table.add_column(Text(name), overflow="fold")
    for row in result.rows:
        table.add_row(*(Text("" if v is None else _safe(str(v))) for v in row))
    console.print(table)
    cut = " (more were cut; raise tables.max_rows)" if result.truncated else ""
    console.print(Text(f"{len(result.rows)} rows{cut}, {result.milliseconds:.1f} ms", style="dim"))


def table_csv(result: TableResult, console: Console) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(result.rows)


def configuration(result: dict[str, Any], console: Console) -> None:
    console.print(Text(f"# {result['file'] or 'no configuration file: built-in defaults'}", style="dim"))
    for row in result["values"]:
        console.print(Text(f"{row['key']} = {row['value']}") + Text(f"    # {row['origin']}", style="dim"))


def findings(result: Sequence[Any], console: Console) -> None:
    marks = {"ok": ("ok", "green"), "note": ("note", "yellow"), "error": ("ERROR", "bold red")}
    for finding in result:
        mark, style = marks[finding.level]
        console.print(Text(f"{mark:<6}", style=style) + Text(f"{finding.name}: {finding.message}"))
        if finding.remedy:
            console.print(Text(f"       {finding.remedy}", style="bold"))


def verification(result: Any, console: Console) -> None:
    if result.ok:
        console.print(Text(f"The index is whole: {', '.join(f'{k} {v}' for k, v in result.counts.items())}.", style="green"))
    for problem in result.problems:
        console.print(Text(problem, style="red"))


def rebuilt(result: IndexReport | None, console: Console) -> None:
    console.print("Made again from the catalog.", markup=False)
    if result is not None:
        index_report(result, console)


def batch_summary(result: Any, console: Console) -> None:
    console.print(Text(f"{result.answered} answered, {result.abstained} abstained, {result.failed} failed, {result.skipped} done before; {result.seconds:.1f} s. Answers in {result.output}."))
    if result.scored:
        console.print(Text(f"{result.correct} of {result.scored} expected answers found ({result.correct / result.scored:.0%})."))
