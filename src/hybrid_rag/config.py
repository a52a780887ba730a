"""The configuration: read, checked, and where each value came from.

Layers, later ones win: built-in defaults, the YAML file, environment variables
(``HYBRID_RAG__RETRIEVAL__CSV_WEIGHT=0.5``), then ``section.key=value`` settings of a command.
Paths in the file are relative to the file; paths in variables and settings to the working directory.
Nothing here opens the index or reaches a server.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from hybrid_rag.config_sections import Config
from hybrid_rag.errors import ConfigError

ENVIRONMENT_PREFIX = "HYBRID_RAG__"
DEFAULT_LOCATIONS = ("config/config.yaml", "hybrid-rag.yaml", "config.yaml")


@dataclass(frozen=True)
class Loaded:
    """A configuration with the origin of each value: "default", a file's path, "$NAME", or "--set"."""

    config: Config
    origins: Mapping[str, str]
    path: Path | None

    def rows(self) -> Iterator[tuple[str, Any, str]]:
        """(dotted key, effective value, origin) for every key, in order; tokens are masked."""
        for key, value in _flatten(self.config.model_dump(mode="json")):
            shown = "***" if key.endswith(".token") and value else value
            yield key, shown, self.origins.get(key, "default")


def load(
    path: str | Path | None = None,
    *,
    settings: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """Read and check the configuration.

    ``path`` None takes the first of DEFAULT_LOCATIONS that exists below the working directory, else the
    defaults. ``settings`` are "section.key=value" texts (values as YAML). Raises ConfigError.
    """
    environ = os.environ if environ is None else environ
    file = _find(path)
    layers: list[tuple[str, Path, dict[str, Any]]] = []
    if file is not None:
        layers.append((str(file), file.parent, _read_yaml(file)))
    for name in sorted(n for n in environ if n.startswith(ENVIRONMENT_PREFIX)):
        keys = name[len(ENVIRONMENT_PREFIX) :].lower().split("__")
        layers.append((f"${name}", Path.cwd(), _nest(keys, _yaml_value(environ[name], name))))
    for setting in settings:
        key, sign, value = setting.partition("=")
        if not sign or not key.strip():
            raise ConfigError(f"--set {setting!r} is not of the form section.key=value")
        layers.append(("--set", Path.cwd(), _nest(key.strip().split("."), _yaml_value(value, key))))
    if not any("directory" in (tree.get("data") or {}) for _, _, tree in layers) and file is None:
        layers.insert(0, ("default", Path.cwd(), {"data": {"directory": "data"}}))
    merged: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, base, tree in layers:
        tree = _resolve_paths(tree, base)
        _merge(merged, tree)
        origins.update((key, origin) for key, _ in _flatten(tree))
    config = _validate(merged, origins)
    base = file.parent if file else Path.cwd()
    config = _validate(_resolve_paths(config.model_dump(), base), origins)
    return Loaded(config=config, origins=origins, path=file)


def known_keys() -> dict[str, tuple[str, Any]]:
    """Dotted key -> (description, default), for documentation."""
    return {key: (info.description or "", info.default) for key, info in _fields(Config)}


def _find(path: str | Path | None) -> Path | None:
    if path is not None:
        file = Path(path).expanduser().absolute()
        if not file.is_file():
            raise ConfigError(f"There is no configuration file {file}.", "Check the path given with --config.")
        return file
    for candidate in DEFAULT_LOCATIONS:
        if (file := Path.cwd() / candidate).is_file():
            return file
    return None


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(file.read_text(encoding="utf-8-sig"))
    except yaml.YAMLError as error:
        raise ConfigError(f"{file} is not valid YAML: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{file} must hold sections such as `data:` and `retrieval:`, not a {type(tree).__name__}.")
    empty = {key: {} if value is None and key in Config.model_fields else value for key, value in tree.items()}
    return {str(key): value for key, value in empty.items()}


def _yaml_value(text: str, name: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"The value of {name} is not valid YAML: {text!r}") from error


def _nest(keys: list[str], value: Any) -> dict[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    return value


def _merge(into: dict[str, Any], tree: dict[str, Any]) -> None:
    for key, value in tree.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _flatten(tree: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(tree, dict) and (tree or not prefix):
        for key, value in tree.items():
            yield from _flatten(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, tree


def _fields(section: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, info in section.model_fields.items():
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _fields(inner, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", info


_PATH_KEYS = frozenset(key for key, info in _fields(Config) if info.annotation in (Path, Path | None))


def _resolve_paths(tree: dict[str, Any], base: Path, prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in tree.items():
        dotted = f"{prefix}{key}"
        if isinstance(value, dict):
            out[key] = _resolve_paths(value, base, f"{dotted}.")
        elif dotted in _PATH_KEYS and isinstance(value, (str, Path)) and str(value).strip():
            out[key] = Path(os.path.normpath(base / Path(value).expanduser()))
        else:
            out[key] = value
    return out


def _validate(tree: dict[str, Any], origins: Mapping[str, str]) -> Config:
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        lines = [_describe(problem, origins) for problem in error.errors()]
        raise ConfigError("\n".join(lines), "`hybrid-rag config` prints every key with its value.") from None


def _describe(problem: Any, origins: Mapping[str, str]) -> str:
    dotted = ".".join(str(part) for part in problem["loc"])
    origin = origins.get(dotted) or next((o for k, o in origins.items() if k.startswith(dotted)), "")
    where = f" ({origin})" if origin else ""
    if problem["type"] == "extra_forbidden":
        return f"Unknown key `{dotted}`{where}.{_nearest(dotted)}"
    message = problem["msg"].removeprefix("Value error, ")
    if isinstance(problem.get("input"), (str, int, float, bool)):
        return f"`{dotted}` is {problem['input']!r}{where}: {message}."
    return f"`{dotted or 'configuration'}`{where}: {message}."


def _nearest(dotted: str) -> str:
    known = [key for key, _ in _fields(Config)] + list(Config.model_fields)
    leaf = dotted.rpartition(".")[2]
    by_leaf = {key.rpartition(".")[2]: key for key in reversed(known)}
    found = difflib.get_close_matches(dotted, known, n=1, cutoff=0.6)
    found = found or [by_leaf[name] for name in difflib.get_close_matches(leaf, list(by_leaf), n=1, cutoff=0.6)]
    return f" Did you mean `{found[0]}`?" if found else ""
