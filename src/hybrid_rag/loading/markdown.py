"""Markdown by CommonMark: real headings, front matter, code verbatim, tables whole, wiki links readable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.loading import front_matter
from hybrid_rag.loading.body import Body, BodyBuilder
from hybrid_rag.loading.encoding import decode
from hybrid_rag.loading.plain import note_replaced, refuse_binary

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    from hybrid_rag.loading import Limits

# A code span or fence, which stays as it is, or a wiki link.
_WIKI = re.compile(r"(?P<code>(`+)(?!`).*?(?<!`)\2(?!`))|!?\[\[(?P<page>[^\]\[|\n]+)(?:\|(?P<shown>[^\]\[\n]+))?\]\]", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ANCHOR = re.compile(r"\s*\{#[\w.:-]+\}\s*$")
_ROLES = {"bullet_list_open": "list", "ordered_list_open": "list", "table_open": "table", "fence": "code", "code_block": "code"}
_TITLE_KEY = "title"


def read(path: Path, limits: Limits) -> Body:
    """Read a Markdown file. Blocks hold the source lines as written, so that quotes can be found again."""
    decoded = decode(path.read_bytes())
    refuse_binary(decoded)
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "").removeprefix("\ufeff")
    builder = BodyBuilder()
    note_replaced(decoded, builder)
    meta = front_matter.parse(text)
    if meta.error:
        builder.notice(f"The front matter is not understood and was read as text: {meta.error}.", "Correct the lines between its marks.")
    builder.add("\n".join(f"{key}: {value}" for key, value in meta.values.items() if key != _TITLE_KEY), role="note")
    title = _Walk(builder, text[meta.length :]).run()
    return builder.body(
        title=meta.title or title,
        encoding=decoded.encoding,
        date=meta.date,
        tags=meta.tags,
        language=meta.language,
        metadata={key: value for key, value in meta.values.items() if key not in (_TITLE_KEY, "tags")},
    )


class _Walk:
    """The top-level blocks of a text, with the lines between them that are no block of their own (link definitions)."""

    def __init__(self, builder: BodyBuilder, text: str) -> None:
        self._builder, self._text = builder, text
        self._lines = text.split("\n")
        self._env: dict[str, Any] = {}
        self._parser = _parser()

    def run(self) -> str:
        """Add everything to the builder; returns the first heading of the first level."""
        title, at = "", 0
        tokens = self._parser.parse(self._text, self._env)
        for i, token in enumerate(tokens):
            if token.level or token.map is None or token.nesting < 0:
                continue
            start, end = token.map
            self._add("\n".join(self._lines[at:start]), "paragraph")
            at = max(at, end)
            if token.type == "heading_open":
                level = int(token.tag[1])
                heading = self._heading(tokens[i + 1].content)
                title = title or (heading if level == 1 else "")
                self._builder.heading(heading, level)
            elif token.type != "hr":
                self._block(token, "\n".join(self._lines[start:end]).rstrip())
        self._add("\n".join(self._lines[at:]), "paragraph")
        return title

    def _block(self, token: Token, text: str) -> None:
        role = _ROLES.get(token.type, "paragraph")
        if token.type == "html_block":
            text = _COMMENT.sub("", text)
        if role == "code":
            self._builder.add(text, role="code")
        elif role == "table":
            text = readable_links(text)
            self._builder.add(text, role="table", header="\n".join(text.split("\n")[:2]) + "\n")
        else:
            self._add(text, role)

    def _add(self, text: str, role: str) -> None:
        self._builder.add(readable_links(text), role=role)

    def _heading(self, content: str) -> str:
        """The text of a heading without its markup."""
        inline: list[Token] = []
        self._parser.inline.parse(readable_links(_ANCHOR.sub("", content)), self._parser, self._env, inline)
        return " ".join("".join(map(_inline_text, inline)).split()) or content.strip()


def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table")
    parser.core.ruler.disable("inline")  # the structure is wanted; headings are looked into one by one
    return parser


def _inline_text(token: Token) -> str:
    if token.type in ("text", "code_inline", "text_special", "image"):
        return token.content
    return " " if token.type in ("softbreak", "hardbreak") else ""


def readable_links(text: str) -> str:
    """``[[page|shown]]`` -> shown, ``[[page#part]]`` -> page > part; not inside code."""
    if "[[" not in text:
        return text
    return _WIKI.sub(lambda m: m[0] if m["code"] else m["shown"] or m["page"].replace("#", " > ").strip(), text)
