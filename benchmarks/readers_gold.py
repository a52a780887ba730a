"""What the readers find against gold: Word's words, cells of polluted CSV files, headings of CommonMark; and a tally of odd files."""

from __future__ import annotations

import csv
import html
import importlib
import io
import json
import logging
import re
import resource
import sys
import time
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hybrid_rag.loading import Limits, read
from hybrid_rag.loading.scan import scan
from hybrid_rag.loading.tabular import make_header
from hybrid_rag.records import Document
from hybrid_rag.workers import Failed, Finished, ReadOptions, read_all

Rows = list[list[str]]
APART = re.compile(r"[^\W\d_]+|\d+")  # letters and digits apart: the gold splits "m²" where its format changes
TOGETHER = re.compile(r"\w+")
MOST_REASONS = 30
_EXAMPLE = re.compile(r"^`{32} example\n(.*?)^\.\n(.*?)^`{32}$", re.DOTALL | re.MULTILINE)
_PLACEHOLDER = re.compile(r"col_(\d+)")  # the gold's name for a column without one, counted from 0


class Missing(Exception):
    """The data of a part is not there."""


def ours(path: Path) -> Document:
    return read(path, source=path.name, limits=Limits())


def need(path: Path) -> Path:
    if not path.exists():
        raise Missing(f"the data is missing ({path}).")
    return path


# ---------------------------------------------------------------- Word


def docx(folder: Path) -> dict[str, Any]:
    """Words found (recall) and words that are in the gold (precision), over all files together."""
    gold = [json.loads(line) for line in need(folder / "pandoc" / "gold_words.jsonl").read_text(encoding="utf-8").splitlines()]
    files = [(folder / row["docx"], row["words"]) for row in gold if (folder / row["docx"]).exists()]
    peers: dict[str, Callable[[Path], str]] = {
        "hybrid-rag, without headers and footers": _body,
        "hybrid-rag, all text": lambda path: ours(path).text,
    }
    notes = [
        "Gold: the words of pandoc's own readings, which have no page headers and footers, no numbers of lists and headings, and merged "
        "cells once. Words are compared without case, as multisets; in the first two columns letters and digits are words of their own."
    ]
    for name, reader in (("mammoth", _mammoth), ("docx2txt", _docx2txt), ("python-docx", _python_docx)):
        try:
            importlib.import_module(name.replace("python-docx", "docx"))
        except ImportError:
            notes.append(f"{name}: not run, it is not installed.")
        else:
            peers[name] = reader
    rows = [[name, *_found(reader, files)] for name, reader in peers.items()]
    columns = ["reader", "recall", "precision", "recall, words whole", "precision, words whole", "files failed"]
    return {"title": f"Word: words of {len(files)} files", "columns": columns, "rows": rows, "notes": notes}


def _found(reader: Callable[[Path], str], files: list[tuple[Path, list[str]]]) -> list[Any]:
    sums: dict[re.Pattern[str], list[int]] = {APART: [0, 0, 0], TOGETHER: [0, 0, 0]}
    failed = 0
    for path, gold in files:
        try:
            text = reader(path)
        except Exception as error:  # peers raise many kinds; the file counts as without words
            print(f"{path.name}: {type(error).__name__}", file=sys.stderr)
            text, failed = "", failed + 1
        for pattern, total in sums.items():
            wanted, got = _words(pattern, gold), _words(pattern, [text])
            for i, n in enumerate((sum((wanted & got).values()), sum(wanted.values()), sum(got.values()))):
                total[i] += n
    figures = [share for hit, wanted, got in sums.values() for share in (hit / wanted, hit / max(1, got))]
    return [*(round(share, 4) for share in figures), failed]


def _words(pattern: re.Pattern[str], texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in pattern.findall(unicodedata.normalize("NFKC", text).casefold()))


def _body(path: Path) -> str:
    document = ours(path)
    return "\n".join(document.text[block.start : block.end] for block in document.blocks if block.role != "margin")


def _mammoth(path: Path) -> str:
    import mammoth

    with open(path, "rb") as file:
        return mammoth.extract_raw_text(file).value


def _docx2txt(path: Path) -> str:
    import docx2txt

    return docx2txt.process(str(path))


def _python_docx(path: Path) -> str:
    from docx import Document as WordDocument

    document = WordDocument(str(path))
    cells = (cell.text for table in document.tables for row in table.rows for cell in row.cells)
    return "\n".join([*(paragraph.text for paragraph in document.paragraphs), *cells])


# ---------------------------------------------------------------- CSV


def pollock(folder: Path) -> dict[str, Any]:
    """Files read exactly as the clean file beside them says."""
    rows = []
    for part in ("polluted_files", "survey_sample"):
        files = sorted(path for path in need(folder / part / "csv").iterdir() if (folder / part / "clean" / path.name).exists())
        for name, reader in (("hybrid-rag", _our_rows), ("clevercsv + csv", _clever_rows), ("csv.Sniffer + csv", _sniffed_rows)):
            whole = data = 0
            for path in files:
                wanted = _tidy(_clean_rows(folder / part / "clean" / path.name))
                try:
                    got = _tidy(reader(path))
                except Exception as error:  # peers raise many kinds; the file counts as not right
                    print(f"{name}: {path.name}: {type(error).__name__}", file=sys.stderr)
                    continue
                whole += _named(wanted) == _named(got)
                data += wanted[1:] == got[1:]
            rows.append([part, name, whole, data, len(files)])
    notes = ["White space at the ends of cells and empty cells at the ends of rows are not compared; names of columns by their meaning: "
             "made unique, and by position where there are none."]  # fmt: skip
    return {
        "title": "CSV: polluted files read exactly (pollock)",
        "columns": ["files", "reader", "all rows right", "data rows right", "of"],
        "rows": rows,
        "notes": notes,
    }


def _tidy(rows: Rows) -> Rows:
    out = []
    for row in rows:
        cells = [" ".join(cell.split()) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            out.append(cells)
    return out


def _named(rows: Rows) -> Rows:
    if not rows:
        return rows
    head = [_PLACEHOLDER.sub(lambda match: f"column_{int(match[1]) + 1}", name) for name in rows[0]]
    return [list(make_header(head)[0]), *rows[1:]]


def _our_rows(path: Path) -> Rows:
    document = ours(path)
    assert document.rows is not None
    return [list(document.rows.header), *map(list, document.rows.open())]


def _clean_rows(path: Path) -> Rows:
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))


def _clever_rows(path: Path) -> Rows:
    import clevercsv

    text = path.read_text(encoding="utf-8", errors="replace")
    found = clevercsv.Sniffer().sniff(text, verbose=False)
    form = {"delimiter": found.delimiter or ",", "quotechar": found.quotechar or '"', "escapechar": found.escapechar or None}
    return list(csv.reader(io.StringIO(text, newline=""), **form))


def _sniffed_rows(path: Path) -> Rows:
    text = path.read_text(encoding="utf-8", errors="replace")
    return list(csv.reader(io.StringIO(text, newline=""), csv.Sniffer().sniff(text[:65536])))


def csv_spectrum(folder: Path) -> dict[str, Any]:
    """csv-spectrum: records as the JSON beside each file says."""
    rows = []
    for path in sorted(need(folder / "csv_spectrum").glob("*.csv")):
        wanted = json.loads((folder / "csv_spectrum_gold" / f"{path.stem}.json").read_text(encoding="utf-8"))
        head, *records = _our_rows(path)
        rows.append([path.name, "right" if [dict(zip(head, row, strict=True)) for row in records] == wanted else "wrong"])
    return {"title": "CSV: csv-spectrum", "columns": ["file", "records"], "rows": rows}


# ---------------------------------------------------------------- Markdown


def markdown(spec: Path) -> dict[str, Any]:
    """Headings of each example of the CommonMark specification, at the top level, against the HTML that it gives."""
    examples = _EXAMPLE.findall(need(spec).read_text(encoding="utf-8"))
    right = with_headings = right_with = 0
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "example.md"
        for source, rendered in examples:
            path.write_bytes(source.replace("→", "\t").encode())
            document = ours(path)
            got = [document.text[b.start : b.end] for b in document.blocks if b.role == "heading"]
            wanted = [" ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split()) for text in _top_headings(rendered)]
            wanted = [text for text in wanted if text]
            right += got == wanted
            with_headings += bool(wanted)
            right_with += bool(wanted) and got == wanted
    rows = [["all examples", right, len(examples)], ["examples with headings", right_with, with_headings]]
    return {"title": "Markdown: headings of the CommonMark specification", "columns": ["examples", "right", "of"], "rows": rows}


def _top_headings(rendered: str) -> list[str]:
    """Headings outside quotations and lists."""
    out, depth = [], 0
    for match in re.finditer(r"<(/?)(?:blockquote|ul|ol)\b[^>]*>|<h([1-6])>(.*?)</h\2>", rendered, re.DOTALL):
        if match[2] is None:
            depth += -1 if match[1] else 1
        elif not depth:
            out.append(match[3])
    return out


# ---------------------------------------------------------------- odd files


def tally(folder: Path) -> dict[str, Any]:
    """Every file of the folder through the reading processes: read, partly, not read, by kind and reason."""
    for noisy in ("pypdf", "pypdfium2"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    files = scan(need(folder)).files
    counts: Counter[tuple[str, str]] = Counter()
    reasons: Counter[tuple[str, str, str]] = Counter()
    started = time.perf_counter()
    for event in read_all(files, ReadOptions()):
        if isinstance(event, Finished):
            partial = [n.message for n in event.document.notices if n.partial]
            status, said = ("partly", partial[0]) if partial else ("read", "")
            form = event.document.format
        elif isinstance(event, Failed):
            status, said, form = "not read", event.error.message, Path(event.source).suffix.lower().lstrip(".")
        else:
            continue
        counts[form, status] += 1
        if said:
            reasons[form, status, _kind_of(said)] += 1
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    forms = sorted({form for form, _ in counts})
    rows: list[list[Any]] = [[form, *(counts[form, status] for status in ("read", "partly", "not read"))] for form in forms]
    rows.append(["together", *(sum(row[i] for row in rows) for i in (1, 2, 3))])
    notes = [f"{len(files):,} files in {seconds:.1f} s; the largest reading process took {peak:.0f} MB."]
    common = sorted(reasons.items(), key=lambda item: (item[0][:2], -item[1]))[:MOST_REASONS]
    notes += [
        "Why:\n\n| kind | status | reason | files |\n|---|---|---|---:|\n"
        + "\n".join(f"| {a} | {b} | {c} | {n} |" for (a, b, c), n in common)
    ]
    return {
        "title": "Odd and broken files",
        "columns": ["kind", "read", "partly", "not read"],
        "rows": rows,
        "notes": notes,
        "peak_mb": round(peak),
    }


def _kind_of(reason: str) -> str:
    """A reason without its numbers and quotations, so that the same ones count together."""
    head = reason.split(":")[0] if reason.startswith(("The PDF is damaged", "The DOCX is damaged", "The file is a damaged")) else reason
    plain = re.sub(r"\d+(?:, \d+)*(?: …)?", "n", re.sub(r"\(pages? [^)]*\)", "", head))
    return " ".join(plain.replace("|", "/").split()).replace(" .", ".").replace("n pages", "n page")[:110]
