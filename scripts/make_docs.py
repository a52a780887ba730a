#!/usr/bin/env python3
"""Write docs/configuration.md from the configuration itself: `python scripts/make_docs.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hybrid_rag.config import DEFAULT_LOCATIONS, ENVIRONMENT_PREFIX, Config, known_keys

PAGE = Path(__file__).resolve().parents[1] / "docs" / "configuration.md"
INTRODUCTION = f"""# Configuration

Made by `scripts/make_docs.py` from the code; do not edit.

Values come from four layers; later ones win:

1. the defaults below,
2. a YAML file: the one given with `--config`, else the first of {", ".join(f"`{name}`" for name in DEFAULT_LOCATIONS)} in the working directory,
3. environment variables: `{ENVIRONMENT_PREFIX}RETRIEVAL__CSV_WEIGHT=0.5` sets `retrieval.csv_weight`,
4. settings of a command: `--set retrieval.csv_weight=0.5`, which can be repeated.

Values of variables and settings are written as YAML (`--set data.exclude='["*.tmp"]'`). Paths in a file are relative to that
file; paths in variables and settings are relative to the working directory. Every value is checked; an unknown key is an error
that names the nearest known one. `hybrid-rag config` prints the effective value of every key and where it comes from; tokens are
masked.
"""


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8", newline="\n")


def page() -> str:
    """The whole page: a table of keys for each section."""
    schema = Config.model_json_schema()
    sections: dict[str, list[str]] = {}
    for key, (description, default) in known_keys().items():
        section = key.rpartition(".")[0] or key
        rule = _allowed(_property(schema, key.split(".")), schema)
        sections.setdefault(section, []).append(f"| `{key}` | {_default(default)} | {rule} | {_cell(description)} |")
    parts = [INTRODUCTION]
    for section, rows in sections.items():
        parts.append("\n".join([f"## {section}", "", "| key | default | allowed | meaning |", "|---|---|---|---|", *rows, ""]))
    return "\n".join(parts)


def _property(schema: dict[str, Any], path: list[str]) -> dict[str, Any]:
    """The part of the JSON schema that describes one key."""
    node = schema
    for name in path:
        node = _resolved(node, schema)["properties"][name]
    return node


def _resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    return schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def _allowed(node: dict[str, Any], schema: dict[str, Any]) -> str:
    """What a value may be, in words: a list of words, or a type with its bounds."""
    if "anyOf" in node:
        return " or ".join("unset" if n.get("type") == "null" else _allowed(n, schema) for n in node["anyOf"])
    if "enum" in node:
        return ", ".join(f"`{word}`" for word in node["enum"])
    if "const" in node:
        return f"`{node['const']}`"
    kind = {
        "string": "text",
        "integer": "whole number",
        "number": "number",
        "boolean": "`true`, `false`",
        "array": "list",
        "object": "mapping",
    }[node["type"]]
    if node.get("format") == "path":
        kind = "path"
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return " ".join([kind, ", ".join(f"{sign} {node[name]:,}" for name, sign in bounds.items() if name in node)]).strip()


def _default(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, (tuple, list)):
        return "`[]`" if not value else f"`{list(value)}`"
    return f"`{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    main()
