"""JSON Schema (2020-12) for arguments and results: a few words to build it, and the check of arguments against it."""

from __future__ import annotations

from functools import cache
from typing import Any

from hybrid_rag.errors import InputError

Schema = dict[str, Any]


def text(description: str = "", **more: Any) -> Schema:
    return _schema("string", description, more)


def integer(description: str = "", **more: Any) -> Schema:
    return _schema("integer", description, more)


def number(description: str = "", **more: Any) -> Schema:
    return _schema("number", description, more)


def boolean(description: str = "", **more: Any) -> Schema:
    return _schema("boolean", description, more)


def array(items: Schema, description: str = "", **more: Any) -> Schema:
    return _schema("array", description, {"items": items, **more})


def mapping(values: Schema, description: str = "") -> Schema:
    """An object with keys that are not known beforehand."""
    return _schema("object", description, {"additionalProperties": values})


def optional(schema: Schema) -> Schema:
    """The same, or null: as two branches, which every client's reading of JSON Schema knows."""
    about = {"description": schema["description"]} if "description" in schema else {}
    return {**about, "anyOf": [{key: value for key, value in schema.items() if key != "description"}, {"type": "null"}]}


def arguments(required: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """The arguments of a tool: those named in ``required`` must be given, others than these are an error."""
    out: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**out, "required": list(required)} if required else out


def result(description: str = "", /, **properties: Schema) -> Schema:
    """An object of a result: every field is always there."""
    return _schema("object", description, {"properties": properties, "required": list(properties), "additionalProperties": False})


def _schema(kind: str, description: str, more: Schema) -> Schema:
    out: Schema = {"type": kind}
    return {**out, "description": description, **more} if description else {**out, **more}


def check(name: str, schema: Schema, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments without nulls, whole numbers as integers and defaults filled in. Raises InputError that names the argument."""
    properties = schema["properties"]
    values = {key: _whole(value, properties.get(key, {})) for key, value in given.items() if value is not None}
    error = next(iter(sorted(_validator(name, schema).iter_errors(values), key=lambda e: [str(p) for p in e.absolute_path])), None)
    if error is not None:
        place = ".".join(str(part) for part in error.absolute_path)
        known = ", ".join(properties) or "none"
        message = f"{name}: {place}: {error.message}" if place else f"{name}: {error.message}"
        raise InputError(f"{message}.", f"Arguments of {name}: {known}.")
    return {**{key: p["default"] for key, p in properties.items() if "default" in p}, **values}


def _whole(value: Any, schema: Schema) -> Any:
    """5.0 as 5, where an integer is wanted."""
    return int(value) if schema.get("type") == "integer" and isinstance(value, float) and value.is_integer() else value


_validators: dict[str, Any] = {}


def _validator(name: str, schema: Schema) -> Any:
    if name not in _validators:
        _validators[name] = _draft()(schema)
    return _validators[name]


@cache
def _draft() -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator
