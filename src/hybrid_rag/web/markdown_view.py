"""Markdown as safe HTML with a passage marked: raw HTML is shown as text, links lead to the web or nowhere, no picture is loaded."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid_rag.loading import front_matter
from hybrid_rag.loading.markdown import readable_links

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LEAVES = frozenset(["paragraph_open", "heading_open", "fence", "code_block", "html_block", "tr_open"])
_WEB = ("http://", "https://", "mailto:")


@dataclass(frozen=True, slots=True)
class Rendered:
    """``html`` is safe to put into a page. ``front``: the front matter as written, "" when there is none."""

    html: str
    front: str


def render(source: str, text: str = "", start: int | None = None, end: int | None = None) -> Rendered:
    """A Markdown file as HTML. ``text``: the document's text in the index; its characters from ``start`` to ``end`` are marked."""
    source = source.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").removeprefix("\ufeff")
    source = unicodedata.normalize("NFC", source)
    head = front_matter.parse(source).length
    body = source[head:]
    parser = _parser()
    tokens = parser.parse(readable_links(body))
    if start is not None and end is not None and end > start:
        _mark(tokens, readable_links(body).split("\n"), text, start, end)
    front = source[:head].strip().strip("-+").strip()
    return Rendered(parser.renderer.render(_tamed(tokens), parser.options, {}), front)


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 100}).enable(["table", "strikethrough"])


def _tamed(tokens: Sequence[Token]) -> list[Token]:
    """Pictures become their text, links that do not lead to the web lose their target; headings go down by one level, below the page's."""
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + 2)}"
        if token.type in ("th_open", "td_open"):
            token.attrs = {}  # alignment is an inline style, which the page's policy forbids
        if token.children:
            token.children = list(_inline(token.children))
    return list(tokens)


def _inline(children: Sequence[Token]) -> Iterator[Token]:
    from markdown_it.token import Token

    for token in children:
        if token.type == "image":
            yield Token("text", "", 0, content=f"[picture: {token.content or 'without a description'}]")
            continue
        if token.type == "link_open":
            if str(token.attrGet("href") or "").lower().startswith(_WEB):
                token.attrs = {"href": token.attrGet("href") or "", "rel": "noopener noreferrer nofollow", "target": "_blank"}
            else:
                token.attrs = {}
        yield token


# ---------------------------------------------------------------- the passage


def _mark(tokens: Sequence[Token], lines: Sequence[str], text: str, start: int, end: int) -> None:
    """Put <mark> around what of the blocks lies in the passage. Blocks are found in the text one after the other."""
    at = 0
    for i, token in enumerate(tokens):
        if token.type not in _LEAVES or token.map is None:
            continue
        written = "\n".join(lines[token.map[0] : token.map[1]]).strip()
        if token.type == "heading_open":
            written = tokens[i + 1].content
        place = text.find(written, at)
        if place < 0:
            continue
        at = place + len(written)
        first, last = max(start, place), min(end, at)
        if first >= last:
            continue
        token.attrJoin("class", "passage")
        for inner in _inlines(tokens, i):
            _mark_inline(inner, text, place, at, first, last)


def _inlines(tokens: Sequence[Token], i: int) -> Iterator[Token]:
    """The inline tokens of the block that opens at ``i``."""
    if not tokens[i].nesting:
        return
    depth = tokens[i].level
    for token in tokens[i + 1 :]:
        if token.level <= depth:
            return
        if token.type == "inline":
            yield token


def _mark_inline(inline: Token, text: str, place: int, block_end: int, first: int, last: int) -> None:
    from markdown_it.token import Token

    out: list[Token] = []
    at = place
    for child in inline.children or ():
        found = text.find(child.content, at, block_end) if child.type in ("text", "code_inline") and child.content else -1
        if found < 0:
            out.append(child)
            continue
        at = found + len(child.content)
        low, high = max(first, found) - found, min(last, at) - found
        if low >= high:
            out.append(child)
        elif child.type == "code_inline":
            out += [Token("html_inline", "", 0, content="<mark>"), child, Token("html_inline", "", 0, content="</mark>")]
        else:
            parts = (child.content[:low], child.content[low:high], child.content[high:])
            out += [Token("text", "", 0, content=parts[0]), Token("html_inline", "", 0, content="<mark>"),
                    Token("text", "", 0, content=parts[1]), Token("html_inline", "", 0, content="</mark>"),
                    Token("text", "", 0, content=parts[2])]  # fmt: skip
    inline.children = out
