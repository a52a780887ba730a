"""What each tool does: arguments that were checked in, a call of the service, a reply within the budget out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hybrid_rag.browsing import DEFAULT_ROWS
from hybrid_rag.errors import InputError
from hybrid_rag.mcp_server import shapes
from hybrid_rag.mcp_server.arguments import Call, filters, inside
from hybrid_rag.mcp_server.results import (
    DATA_NOTICE,
    RESERVE,
    Quoted,
    Reply,
    clean,
    counted,
    left_out,
    lines,
    quoted,
    shortened,
    tokens,
    whole_items,
)
from hybrid_rag.prompts import estimate_tokens, neutral
from hybrid_rag.records import DocumentInfo, Passage
from hybrid_rag.service import parse_rows

Arguments = dict[str, Any]
HOW = {
    "llm": "Written by the language model {model} from the passages cited.",
    "table": "Calculated by a query over the table.",
    "extractive": "Quoted from the documents.",
    "none": "The documents do not answer this.",
}
NEAREST = 3  # passages shown when there is no answer
NEAREST_TEXT = 400  # characters of each


# ---------------------------------------------------------------- find and answer


def search_documents(call: Call, a: Arguments) -> Reply:
    k, offset = a.get("k") or call.service.config.retrieval.results, a["offset"]
    chosen = filters(a, call.root)
    found = call.service.search(a["query"], k=offset + k, filters=chosen, mode=a["mode"], rerank=a.get("rerank"))
    hits = [shapes.hit(h, a["snippet_chars"]) for h in found.hits[offset:]]
    shown = whole_items(hits, lambda h: tokens(h) + tokens(h["text"]) + tokens(shapes.place(h)) + 30, call.budget - RESERVE)
    cut = left_out(shown, len(hits), "hits", f"Go on with offset={offset + shown}, or ask for shorter snippets (snippet_chars).")
    hits = hits[:shown]
    if len(hits) == 1 and (tokens(hits[0]) + tokens(hits[0]["text"])) > call.budget - RESERVE:
        hits[0] |= {"text": shortened(hits[0]["text"], (call.budget - RESERVE) // 3), "shortened": True}
    spent = sum(estimate_tokens(h["text"]) for h in hits)
    whole = call.service.whole_tokens(h["source"] for h in hits)
    data = {
        "query": found.query, "mode": found.mode, "vector_share": round(found.vector_share, 4), "reranked": found.reranked, "hits": hits,
        "tokens": {"snippets": spent, "whole_documents": whole}, "notes": list(found.notes), "data_notice": DATA_NOTICE, "cut": cut,
    }  # fmt: skip
    if not hits:
        head = f"Nothing found for {found.query!r}" + (f" from hit {offset + 1} on" if offset else "") + "."
        head += " Try other words, fewer filters, or list_documents to see what there is." if not offset else ""
    else:
        head = f"{counted(len(hits), 'hit')} ({found.mode} search), best first. About {spent:,} tokens instead of {whole:,} for the whole documents."
    body = quoted([Quoted(shapes.place(h), h["text"]) for h in hits])
    return Reply(clean(data), lines(head, body, *found.notes, cut))


def query_documents(call: Call, a: Arguments) -> Reply:
    answer = call.service.ask(a["query"], filters=filters(a, call.root), k=a.get("k"), cancel=call.stopped)
    said = shortened(answer.answer, call.budget // 6)
    cited = [shapes.citation(c) for c in answer.citations] if not answer.abstained else []
    room = call.budget - RESERVE - 2 * tokens(said)
    table, table_cut = None, ""
    if answer.table is not None:
        table, table_cut = _table_result(
            answer.table.to_dict(), max(room // 2, 100), "Ask query_tables with this sql and LIMIT and OFFSET."
        )
        room -= 2 * tokens(table["rows"]) + 200
    shown = whole_items(cited, _citation_cost, room)
    if shown == 1 and _citation_cost(cited[0]) > room:
        cited[0]["quote"] = shortened(cited[0]["quote"], max(room - 200, 100) // 3)
    cut = left_out(shown, len(cited), "citations", "read_document shows the other places.")
    nearest = []
    if answer.abstained:
        hits = [shapes.hit(h, NEAREST_TEXT) for h in answer.hits[:NEAREST]]
        nearest = [{"source": h["source"], "place": shapes.place(h), "text": shortened(h["text"], room // 8)} for h in hits]
    how = HOW[answer.mode].format(model=answer.model)
    data = {
        "question": answer.question, "answer": said, "mode": answer.mode, "how": how,
        "abstained": answer.abstained, "citations": cited[:shown], "sql": answer.sql, "table": table, "model": answer.model,
        "needs": answer.needs.name if answer.needs else None,
        "nearest": nearest, "tokens": dict(answer.tokens), "checks": list(answer.checks), "notes": list(answer.notes),
        "data_notice": DATA_NOTICE, "cut": lines(cut, table_cut),
    }  # fmt: skip
    labels = [f"[{c['n']}] {shapes.place(c)}" + ("" if c["verified"] else " (not verified)") for c in cited[:shown]]
    quotes = quoted([Quoted(label, c["quote"]) for label, c in zip(labels, cited) if c["quote"]])
    places = "; ".join(label for label, c in zip(labels, cited) if not c["quote"])
    proof = f"SQL: {answer.sql}" if answer.sql else ""
    rows = _rows_text(table) if table and len(table["rows"]) > 1 else ""
    near = (
        lines("Closest passages, which do not answer the question:", quoted([Quoted(n["place"], n["text"]) for n in nearest]))
        if nearest
        else ""
    )
    return Reply(
        clean(data),
        lines(said, how, quotes, f"Cited: {places}" if places else "", proof, rows, near, *answer.notes, _cost(answer.tokens), data["cut"]),
    )


def _cost(spent: dict[str, int]) -> str:
    """What a model was sent, beside what the whole files would have been."""
    sent = f"{spent['prompt']:,} tokens were sent to the model" if spent.get("prompt") else "No tokens were sent to a model"
    return f"{sent}; the whole files have about {spent['whole_files']:,}." if spent.get("whole_files") else ""


def _citation_cost(body: dict[str, Any]) -> int:
    return tokens(body) + tokens(body["quote"]) + 40


def read_document(call: Call, a: Arguments) -> Reply:
    parts = [name for name in ("page", "rows", "heading", "chunk", "start") if a.get(name) is not None]
    if len(parts) > 1:
        raise InputError(f"Give one of {' and '.join(parts)}, not several.", "Each of them chooses a part of the document.")
    rows = parse_rows(a["rows"]) if "rows" in a else None
    chosen = {name: a[name] for name in ("page", "heading", "chunk", "start") if name in a}
    room = min(a.get("max_tokens") or call.budget, call.budget - RESERVE)
    found = call.service.read(inside(a["source"], call.root), rows=rows, **chosen, window=a["window"], max_tokens=max(room // 3, 50))
    body = found.to_dict() | {"records": [], "data_notice": DATA_NOTICE, "cut": ""}
    text = found.text
    if found.kind == "table":
        text = _records(body, found, room)
    elif found.truncated:
        body["cut"] = f"{found.note} To read on: start={found.end}."
    label = shapes.place({"source": found.source, "page": found.page, "page_label": None, "rows": body["rows"], "heading": found.heading})
    return Reply(clean(body), lines(quoted([Quoted(label, text)]) if text else "There is no text.", body["cut"] or found.note))


def _records(body: dict[str, Any], found: Passage, room: int) -> str:
    """Put as many whole records as fit into the body of a passage; the same as text."""
    header = found.header

    def cost(record: Sequence[str]) -> int:
        return tokens(list(record)) + tokens(_record_text(0, header, record))

    shown = whole_items(found.records, cost, room - tokens(list(header)))
    longest = room if shown > 1 else max(room // (3 * max(len(header), 1)), 10)
    records = [[shortened(cell, longest) for cell in record] for record in found.records[:shown]]
    first = found.rows[0] if found.rows else 1
    last, total = first + shown - 1, found.row_count or 0
    body |= {"text": "", "records": records, "rows": [first, last] if shown else None}
    if shown < len(found.records) or found.truncated:
        how = f"Shown are records {first} to {last} of {total}: go on with rows={last + 1}-{min(last + DEFAULT_ROWS, total)}."
        body |= {"truncated": True, "cut": how}
    return "\n\n".join(_record_text(n, header, record) for n, record in enumerate(records, start=first))


def _record_text(number: int, header: Sequence[str], record: Sequence[str]) -> str:
    return f"record {number}\n" + "\n".join(f"{name}: {cell}" for name, cell in zip(header, record) if cell)


# ---------------------------------------------------------------- what there is


def list_documents(call: Call, a: Arguments) -> Reply:
    found = call.service.documents(filters(a, call.root))
    size, page = a["page_size"], a["page"]
    pages = max(1, -(-len(found) // size))
    if page > pages:
        raise InputError(f"There is no page {page}.", f"There are {pages} pages of {size} documents.")
    documents, cut = _documents(
        found[(page - 1) * size : page * size], call.budget, f"Ask for pages with fewer documents (page_size below {size})."
    )
    data = {"documents": documents, "total": len(found), "page": page, "pages": pages, "cut": cut}
    head = f"{counted(len(found), 'document')}, page {page} of {pages}." if found else "No documents match."
    return Reply(data, lines(head, _document_lines(documents), f"Next: page={page + 1}." if page < pages and not cut else "", cut))


def related_documents(call: Call, a: Arguments) -> Reply:
    source = inside(a["source"], call.root)
    found = call.service.related(source, a["k"])
    documents, cut = _documents([r.document for r in found], call.budget, "Ask for fewer (k).")
    for body, near in zip(documents, found):
        body |= {"score": round(near.score, 6), "stage": near.stage}
    return Reply({"source": source, "documents": documents, "cut": cut}, lines(f"Nearest to {source}:", _document_lines(documents), cut))


def recent_documents(call: Call, a: Arguments) -> Reply:
    documents, cut = _documents(
        call.service.recent(a["k"], filters(a, call.root)), call.budget, "Ask for fewer (k), or narrow with filters."
    )
    return Reply(
        {"documents": documents, "cut": cut},
        lines("Latest first:" if documents else "No documents match.", _document_lines(documents), cut),
    )


def timeline(call: Call, a: Arguments) -> Reply:
    found = call.service.timeline(a["what"], a["before"], a["after"], filters(a, call.root))
    documents, cut = _documents(found.documents, call.budget, "Ask for fewer (before, after).")
    head = f"In time order; the one asked for is number {found.at + 1}." if documents else "Nothing found."
    return Reply({"documents": documents, "at": found.at, "cut": cut}, lines(head, _document_lines(documents), cut))


def _documents(found: Sequence[DocumentInfo], budget: int, how: str) -> tuple[list[dict[str, Any]], str]:
    bodies = [shapes.document(d) for d in found]
    shown = whole_items(bodies, lambda d: tokens(d) + tokens(_document_line(d)) + 15, budget - RESERVE)
    return bodies[:shown], left_out(shown, len(bodies), "documents", how)


def _document_lines(documents: Sequence[dict[str, Any]]) -> str:
    return "\n".join(f"{n}. {_document_line(d)}" for n, d in enumerate(documents, start=1))


def _document_line(body: dict[str, Any]) -> str:
    size = (
        f"{body['rows']} records" if body["rows"] is not None else f"{body['pages']} pages" if body["pages"] else f"{body['size']:,} bytes"
    )
    parts = [body["source"], body["title"], size, (body["date"] or body["modified"])[:10], ", ".join(body["tags"])]
    return " · ".join(" ".join(neutral(part).split()) for part in parts if part)


def get_report(call: Call, a: Arguments) -> Reply:
    data = fitted_report(shapes.report(call.service.report()), call.budget)
    return Reply(data, report_text(data))


def fitted_report(data: dict[str, Any], budget: int) -> dict[str, Any]:
    """The report with as many files, then left-out paths, as the budget allows."""
    room = budget - RESERVE - tokens(data["messages"]) * 2
    files = whole_items(data["files"], lambda f: tokens(f) * 2, room)
    room -= sum(tokens(f) * 2 for f in data["files"][:files])
    skipped = whole_items(data["skipped"], lambda s: tokens(s) * 2, max(room, 0))
    cut = [left_out(files, len(data["files"]), "files", "`hybrid-rag report` on the command line shows all.")]
    cut.append(left_out(skipped, len(data["skipped"]), "paths left out on purpose", "`hybrid-rag report` on the command line shows all."))
    return data | {"files": data["files"][:files], "skipped": data["skipped"][:skipped], "cut": " ".join(c for c in cut if c)}


def report_text(data: dict[str, Any]) -> str:
    if data["started"] is None:
        return "Nothing was indexed yet. Call update_documents."
    counts = ", ".join(f"{n} {what}" for what, n in data["counts"].items() if n)
    head = f"Run of {data['started']}, {data['seconds']} s: {counts or 'no files'}; {data['chunks_written']} passages written, {data['chunks_embedded']} embedded."
    files = (
        "\n".join(f"{f['source']}: {f['status']}. {f['reason']} {f['remedy']}".rstrip() for f in data["files"]) or "Every file was read."
    )
    skipped = "\n".join(f"{s['path']}: left out: {s['reason']}" for s in data["skipped"])
    return lines(head, files, skipped, *data["messages"], data["cut"])


# ---------------------------------------------------------------- tables


def describe_tables(call: Call, a: Arguments) -> Reply:
    cards = [shapes.card(card) for card in call.service.tables()]
    names = [card["name"] for card in cards]
    wanted = a.get("tables")
    if wanted and (unknown := [w for w in wanted if w not in names and w not in [c["source"] for c in cards]]):
        raise InputError(f"There is no table {unknown[0]!r}.", f"Known tables: {shortened(', '.join(names), 500) or 'none'}.")
    chosen = [c for c in cards if not wanted or c["name"] in wanted or c["source"] in wanted]
    for card in chosen:
        card["columns"] = card["columns"][a["from_column"] :]
    room = call.budget - RESERVE - tokens(names) * 2
    shown = whole_items(chosen, _card_cost, room)
    cut = left_out(shown, len(chosen), "tables", "Ask for others by name (tables); their names are in `names`.")
    if shown == 1 and _card_cost(chosen[0]) > room:
        cut = lines(_cut_columns(chosen[0], room, a["from_column"]), cut)
    data = {"tables": chosen[:shown], "total": len(cards), "names": names, "cut": cut}
    head = (
        f"{counted(len(cards), 'table')}: {shortened(', '.join(names), room // 8)}"
        if cards
        else "There are no tables: no CSV or TSV file is indexed."
    )
    cards_text = quoted([Quoted(f"table {c['name']}", card_text(c)) for c in chosen[:shown]])
    return Reply(data, lines(head, cards_text, cut))


def _card_cost(card: dict[str, Any]) -> int:
    return tokens(card) + tokens(card_text(card)) + 40


def _cut_columns(card: dict[str, Any], room: int, first: int) -> str:
    """Leave out the last columns of a card that is too long by itself; what was left out, in words."""
    columns, card["columns"] = card["columns"], []
    room -= _card_cost(card)
    shown = whole_items(columns, lambda c: tokens(c) + tokens(_column_line(c)), room)
    card["columns"] = columns[:shown]
    return left_out(
        shown, len(columns), f"columns of {card['name']}", f"Go on with tables=[{card['name']!r}] and from_column={first + shown}."
    )


def card_text(card: dict[str, Any]) -> str:
    """A table card in words: a line a column, with type, range and values."""
    out = [f"table {card['name']} ({card['source']}, {card['rows']} records)"]
    out += map(_column_line, card["columns"])
    out += [f"  {j['column']} is found in {j['other_table']}.{j['other_column']} ({j['overlap']:.0%})" for j in card["joins"]]
    return "\n".join(out)


def _column_line(column: dict[str, Any]) -> str:
    ranged = column["type"] != "text" and column["minimum"] is not None
    span = f"{column['minimum']} to {column['maximum']}" if ranged else ", ".join(column["values"])
    extra = [column["type"], "key" if column["is_key"] else "", f"{column['nulls']} empty" if column["nulls"] else "", column["unit"]]
    return f"  {column['name']}: {', '.join(e for e in extra if e)}" + (f": {shortened(span, 120)}" if span else "")


def query_tables(call: Call, a: Arguments) -> Reply:
    found = call.service.sql(a["sql"]).to_dict()
    data, cut = _table_result(
        found, call.budget - RESERVE - 2 * tokens(found["sql"]), "Use LIMIT and OFFSET, fewer columns, or an aggregate."
    )
    if found["truncated"]:
        cut = lines(cut, f"The query has more than {len(found['rows'])} rows (tables.max_rows): use an aggregate, or LIMIT and OFFSET.")
    data |= {"data_notice": DATA_NOTICE, "cut": cut}
    head = f"{counted(len(data['rows']), 'row')} from {', '.join(data['sources']) or 'no table'}."
    stands = f"Stands on {counted(data['row_count'], 'record')}." if data["row_count"] is not None else ""
    return Reply(data, lines(head, _rows_text(data), stands, *data["excluded"], cut))


def _table_result(body: dict[str, Any], budget: int, how: str) -> tuple[dict[str, Any], str]:
    """A result cut at whole rows; at whole columns when one row alone is too long."""
    body = clean(body)
    columns, rows, cut = body["columns"], body["rows"], ""
    if rows and 2 * (tokens(columns) + tokens(rows[0])) > budget:
        cell = max(budget // (4 * len(columns)), 20)
        rows = [[shortened(v, cell) if isinstance(v, str) else v for v in row] for row in rows]
        kept = whole_items(range(len(columns)), lambda i: 2 * (tokens(columns[i]) + tokens(rows[0][i])), budget)
        cut = left_out(kept, len(columns), "columns", "Name the columns you want.") or "Long values are shown in part."
        columns, rows = columns[:kept], [row[:kept] for row in rows]
    shown = whole_items(rows, lambda r: 2 * tokens(r), budget - tokens(columns) * 2)
    return body | {"columns": columns, "rows": rows[:shown]}, lines(cut, left_out(shown, len(body["rows"]), "rows", how))


def _rows_text(body: dict[str, Any]) -> str:
    table = [body["columns"], *body["rows"]]
    text = "\n".join(" | ".join("" if v is None else " ".join(str(v).split()) for v in row) for row in table)
    return quoted([Quoted("result of the query", text)])
