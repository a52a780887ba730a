"""Markdown by CommonMark: real headings, front matter, code verbatim, tables whole, wiki links readable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid_rag.loading.body import Body, BodyBuilder
from hybrid_rag.loading.encoding import decode

if TYPE_CHECKING:
    from markdown_it.token import Token

    from hybrid_rag.loading import Limits

_WIKI = re.compile(r"!?\[\[([^\]\[|\n]+)(?:\|([^\]\[\n]+))?\]\]")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_DATE_KEYS = ("date", "updated", "last_updated", "modified", "created", "published")
_ROLES = {"paragraph_open": "paragraph", "bullet_list_open": "list", "ordered_list_open": "list", "blockquote_open": "paragraph",
          "table_open": "table", "fence": "code", "code_block": "code", "html_block": "paragraph", "hr": ""}  # fmt: skip


def read(path: Path, limits: Limits) -> Body:
    """Read a Markdown file. Blocks hold the source lines as written, so that quotes can be found again."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.front_matter import front_matter_plugin

    text, encoding = decode(path.read_bytes())
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    tokens = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table").use(front_matter_plugin).parse(text)
    lines = text.split("\n")
    builder = BodyBuilder()
    meta: dict[str, Any] = {}
    title = ""
    for i, token in enumerate(tokens):
        if token.level or token.map is None:
            continue
        if token.type == "front_matter":
            meta = _front_matter(token.content, builder)
        elif token.type == "heading_open":
            level = int(token.tag[1])
            heading = _plain(tokens[i + 1])
            title = title or (heading if level == 1 else "")
            builder.heading(heading, level)
        elif role := _ROLES.get(token.type):
            _add_block(builder, token, lines, role)
    return builder.body(
        title=str(meta.get("title") or title),
        encoding=encoding,
        date=_date(meta),
        tags=_tags(meta),
        language=str(meta["lang"])[:2].lower() if meta.get("lang") else None,
        metadata={str(k): str(v)[:500] for k, v in meta.items() if v is not None and str(k) not in ("title", "tags")},
    )


def _add_block(builder: BodyBuilder, token: Token, lines: list[str], role: str) -> None:
    start, end = token.map or (0, 0)
    text = "\n".join(lines[start:end]).rstrip()
    if role == "code":
        builder.add(text, role="code")
        return
    text = readable_links(text)
    if token.type == "html_block":
        text = _COMMENT.sub("", text)
    if role == "table":
        header = "\n".join(text.split("\n")[:2]) + "\n"
        builder.add(text, role="table", header=header)
        return
    builder.add(text, role=role)


def readable_links(text: str) -> str:
    """``[[page|shown]]`` -> shown, ``[[page#part]]`` -> page > part."""
    return _WIKI.sub(lambda m: m[2] or m[1].replace("#", " > ").strip(), text)


def _plain(inline: Token) -> str:
    """The text of a heading without its markup."""
    parts = [child.content if child.type in ("text", "code_inline") else " " if child.type in ("softbreak", "hardbreak") else ""
             for child in inline.children or []]  # fmt: skip
    return readable_links("".join(parts)).strip() or inline.content.strip()


def _front_matter(text: str, builder: BodyBuilder) -> dict[str, Any]:
    import yaml

    try:
        meta = yaml.load(text, Loader=yaml.BaseLoader)  # everything stays a string: a date is as written
    except yaml.YAMLError:
        builder.notice("The front matter is not valid YAML and was left out.", "Correct the lines between the --- marks.", partial=True)
        return {}
    return {str(k).lower(): v for k, v in meta.items()} if isinstance(meta, dict) else {}


def _date(meta: dict[str, Any]) -> str | None:
    from datetime import date

    for key in _DATE_KEYS:
        value = str(meta.get(key) or "")[:10]
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            continue
    return None


def _tags(meta: dict[str, Any]) -> tuple[str, ...]:
    value = meta.get("tags") or meta.get("tag") or meta.get("keywords") or ()
    if isinstance(value, str):
        value = re.split(r"[,\s]+", value) if "," not in value else value.split(",")
    return tuple(dict.fromkeys(str(v).strip().lstrip("#") for v in value if v and str(v).strip()))
