"""Records of the core as the templates want them: links to places, snippets, names for people. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from hybrid_rag.records import Answer, Citation, DocumentInfo, Hit, Rows, TableResult
from hybrid_rag.web.charts import Chart, chart, number
from hybrid_rag.web.snippets import Cell, Piece, pieces, record, snippet

MODES = {"llm": "Written by {model}", "table": "Calculated from the table", "extractive": "Quoted from your documents", "none": "No answer"}
FORMATS = {"md": "Markdown", "pdf": "PDF", "docx": "Word", "csv": "CSV", "tsv": "TSV", "txt": "Text"}
CELLS = 6  # of a record in a snippet; the marked ones first
_LINE_END = re.compile(r"[ \t]*\n[ \t]*(?![-*+•|]|\d+[.)])")
LISTED = 3  # groups that an answer's text still names when a table shows them
_REFERENCE = re.compile(r"\[(\d{1,3})\]")


@dataclass(frozen=True, slots=True)
class HitView:
    hit: Hit
    folder: str
    file: str
    place: str
    href: str
    snippet: tuple[Piece, ...]
    cells: tuple[Cell, ...]
    scores: tuple[tuple[str, str, str], ...]  # stage, score, rank


@dataclass(frozen=True, slots=True)
class CitationView:
    n: int
    citation: Citation
    folder: str
    file: str
    place: str
    href: str
    quote: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of an answer: text, or a reference to a citation."""

    text: str = ""
    n: int = 0
    href: str = ""


@dataclass(frozen=True, slots=True)
class AnswerView:
    answer: Answer
    mode: str
    paragraphs: tuple[tuple[Part, ...], ...]
    citations: tuple[CitationView, ...]
    nearest: tuple[HitView, ...]
    table: TableResult | None
    chart: Chart | None
    records: str
    seconds: float


def query(path: str, **values: Any) -> str:
    """A path with the values that are set."""
    given = [(k, v) for k, v in values.items() if v not in (None, "", [], ())]
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def source_href(source: str, *, page: int | None = None, rows: Rows | None = None, start: int | None = None, end: int | None = None) -> str:
    shown = f"{rows[0]}-{rows[1]}" if rows else None
    return query("/source", source=source, page=page, rows=shown, start=start, end=end)


def split_path(source: str) -> tuple[str, str]:
    folder, slash, file = source.rpartition("/")
    return folder + slash, file


def hit_view(hit: Hit) -> HitView:
    c = hit.chunk
    rows, cells = c.rows, ()
    if c.kind == "table" and c.rows:
        at, cells = record(c.text, hit.terms)
        if cells and c.role == "body" and c.rows[0] + at <= c.rows[1]:
            rows = (c.rows[0] + at, c.rows[0] + at)
    marked = sorted(range(len(cells)), key=lambda i: (not any(p.marked for p in cells[i].value), i))[:CELLS]
    place = Citation(0, c.source, c.kind, c.page, c.page_label, rows, c.heading).place()
    folder, file = split_path(c.source)
    span = {} if rows else {"start": c.start, "end": c.end}
    text = c.text.removeprefix(c.heading[-1]) if c.heading else c.text  # the heading stands above the snippet
    stages = sorted(hit.scores, key=lambda s: list(hit.scores).index(s))
    return HitView(
        hit, folder, file, place, source_href(c.source, page=c.page, rows=rows, **span), snippet(text if text.strip() else c.text, hit.terms),
        tuple(cells[i] for i in sorted(marked)),
        tuple((stage, f"{hit.scores[stage]:.3f}", str(hit.ranks.get(stage, ""))) for stage in stages),
    )  # fmt: skip


def citation_view(c: Citation) -> CitationView:
    folder, file = split_path(c.source)
    href = source_href(c.source, page=c.page, rows=c.rows, start=None if c.rows else c.start, end=None if c.rows else c.end)
    return CitationView(c.n, c, folder, file, c.place(), href, pieces(c.quote, c.marks))


def answer_view(answer: Answer) -> AnswerView:
    cited = tuple(map(citation_view, answer.citations))
    mode = MODES[answer.mode].format(model=answer.model)
    table = answer.table
    text = _without_list(answer)
    if answer.mode == "extractive" and len(cited) == 1 and "[" not in text:
        text = f"{text} [{cited[0].n}]"
    return AnswerView(
        answer,
        mode,
        tuple(_parts(_unwrapped(paragraph), cited) for paragraph in re.split(r"\n\s*\n", text) if paragraph.strip()),
        cited,
        tuple(map(hit_view, answer.hits[:5])) if answer.abstained else (),
        table,
        chart(table.columns, table.rows) if table else None,
        _records(table) if table else "",
        answer.milliseconds.get("total", sum(answer.milliseconds.values())) / 1000,
    )


def _without_list(answer: Answer) -> str:
    """The answer's text; a list of groups is left to the table below it."""
    text = answer.answer
    if answer.table is not None and len(answer.table.rows) > LISTED and text.count("; ") >= LISTED and ": " in text:
        return text.partition(": ")[0] + "."
    return text


def _unwrapped(paragraph: str) -> str:
    """The lines of a paragraph joined, for a quote is broken where its file is; items of lists keep their lines."""
    return _LINE_END.sub(" ", paragraph.strip())


def _parts(text: str, cited: Sequence[CitationView]) -> tuple[Part, ...]:
    hrefs = {c.n: c.href for c in cited}
    out, at = [], 0
    for match in _REFERENCE.finditer(text):
        if int(match[1]) in hrefs:
            out += [Part(text[at : match.start()]), Part(n=int(match[1]), href=hrefs[int(match[1])])]
            at = match.end()
    return (*out, Part(text[at:]))


def _records(table: TableResult) -> str:
    """ "Stands on 1,640 records of orders.csv" """
    sources = ", ".join(table.sources)
    count = table.row_count or 0
    return f"Stands on {count:,} record{'' if count == 1 else 's'} of {sources}" if count else f"Stands on no record of {sources}"


def cell(value: Any) -> str:
    """A value of a result for people."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else str(value)


def format_name(form: str) -> str:
    return FORMATS.get(form, form.upper())


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def documents_matching(documents: Sequence[DocumentInfo], words: str) -> list[DocumentInfo]:
    """Documents whose path or title holds all of the words."""
    wanted = words.casefold().split()
    return [d for d in documents if all(w in f"{d.source} {d.title} {' '.join(d.tags)}".casefold() for w in wanted)]


def without(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k not in names}
