"""Resources: every document and every table card, by address, a page of the list at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import mcp_types as types

from hybrid_rag.errors import InputError
from hybrid_rag.mcp_server.results import Quoted, clean, quoted, shortened
from hybrid_rag.mcp_server.shapes import SCHEME, document_uri, table_uri
from hybrid_rag.mcp_server.shapes import card as shape
from hybrid_rag.records import DocumentInfo, TableCard

if TYPE_CHECKING:
    from hybrid_rag.service import Service

PAGE = 200  # resources of one answer
SUGGESTIONS = 50
MIME = {"md": "text/markdown", "csv": "text/csv", "tsv": "text/tab-separated-values"}

TEMPLATES = [
    types.ResourceTemplate(
        name="document", title="A document", uri_template=f"{SCHEME}://document/{{+source}}", description="The text of a document, as read; of a table its first records."
    ),
    types.ResourceTemplate(
        name="table", title="A table card", uri_template=f"{SCHEME}://table/{{name}}", description="Columns, types, ranges and joins of a table.", mime_type="text/plain"
    ),
]  # fmt: skip


def page(service: Service, cursor: str | None) -> types.ListResourcesResult:
    """The documents, then the tables, from a cursor on. Raises InputError for a cursor that is none."""
    start = 0
    if cursor is not None:
        if not cursor.isdecimal():
            raise InputError(f"{cursor!r} is no cursor of this list.", "Begin again without a cursor.")
        start = int(cursor)
    found = [*service.documents(), *service.tables()]
    listed = [_listed(item) for item in found[start : start + PAGE]]
    return types.ListResourcesResult(resources=listed, next_cursor=str(start + PAGE) if start + PAGE < len(found) else None)


def _listed(item: DocumentInfo | TableCard) -> types.Resource:
    if isinstance(item, TableCard):
        about = f"Columns and types of {item.source}, {item.rows} records"
        made = {"uri": table_uri(item.name), "name": f"table {item.name}", "title": f"Table {item.name}", "mime_type": "text/plain"}
        return types.Resource(**clean(made), description=clean(about))
    made = {"uri": document_uri(item.source), "name": item.source, "title": item.title or item.source}
    about = f"{item.format}, {(item.date or item.modified)[:10]}"
    return types.Resource(**clean(made), description=about, size=item.size, mime_type=MIME.get(item.format, "text/plain"))


def read(service: Service, uri: str, budget: int) -> types.ReadResourceResult:
    """A document's text between marks, or a table card, within the budget. Raises InputError for an unknown address."""
    kind, _, name = uri.removeprefix(f"{SCHEME}://").partition("/")
    name = unquote(name)
    if not uri.startswith(f"{SCHEME}://") or kind not in ("document", "table") or not name:
        raise InputError(f"There is no resource {uri!r}.", f"Addresses are {SCHEME}://document/PATH and {SCHEME}://table/NAME.")
    text = _table(service, name, budget) if kind == "table" else _document(service, name, budget)
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=clean(text))])


def _table(service: Service, name: str, budget: int) -> str:
    from hybrid_rag.mcp_server.handlers import card_text

    card = next((c for c in service.tables() if c.name == name), None)
    if card is None:
        raise InputError(f"There is no table {name!r}.", "describe_tables shows all.")
    return shortened(quoted([Quoted(f"table {name}", card_text(shape(card)))]), budget)


def _document(service: Service, source: str, budget: int) -> str:
    from hybrid_rag.mcp_server.arguments import inside

    found = service.read(inside(source, service.config.data.directory), max_tokens=int(budget * 0.9))
    rest = f"\n\n{found.note} The tool read_document reads on." if found.note else ""
    return (quoted([Quoted(found.source, found.text)]) or "There is no text.") + rest


def complete(service: Service, params: types.CompleteRequestParams) -> types.CompleteResult:
    """Documents and tables whose name holds what was typed."""
    typed, names = params.argument.value.casefold(), []
    if params.argument.name == "source":
        names = [d.source for d in service.documents()]
    elif params.argument.name == "folder":
        names = sorted({d.source.rpartition("/")[0] for d in service.documents()} - {""})
    elif params.argument.name == "name":
        names = [c.name for c in service.tables()]
    found = [clean(n) for n in names if typed in n.casefold()]
    return types.CompleteResult(
        completion=types.Completion(values=found[:SUGGESTIONS], total=len(found), has_more=len(found) > SUGGESTIONS)
    )
