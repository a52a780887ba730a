"""What all commands share: the common options, opening the service, printing JSON, showing errors."""

from __future__ import annotations

import functools
import inspect
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hybrid_rag.errors import HybridRagError

if TYPE_CHECKING:
    from rich.console import Console

    from hybrid_rag.config import Loaded
    from hybrid_rag.filters import Filters
    from hybrid_rag.service import Service

_shown = {"debug": False, "json": False}

COMMON = {
    "config": Annotated[Path | None, typer.Option("--config", "-c", metavar="FILE", help="Configuration file.")],
    "settings": Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a configuration value; repeatable.")],
    "debug": Annotated[bool, typer.Option("--debug", help="Show tracebacks and debug messages.")],
}
JSON = {"as_json": Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]}
FILTERS = {
    "folder": Annotated[str | None, typer.Option(help="Only documents below this folder.")],
    "glob": Annotated[str | None, typer.Option(help="Only documents whose path matches, such as '*.md'.")],
    "kind": Annotated[str | None, typer.Option(help="Only 'table' or only 'text'.")],
    "tags": Annotated[str | None, typer.Option("--tag", help="Tag expression: 'policy and not draft'.")],
    "since": Annotated[str | None, typer.Option(help="Dated on or after (YYYY-MM-DD).")],
    "until": Annotated[str | None, typer.Option(help="Dated on or before (YYYY-MM-DD).")],
    "recent": Annotated[str | None, typer.Option(help="Of the last 90d, 6w, 3m, 1y …")],
}


class Run:
    """One run of a command: its configuration, whether it speaks JSON, and where it prints."""

    def __init__(self, config: Path | None, settings: list[str] | None, as_json: bool, debug: bool) -> None:
        self._config, self._settings = config, settings or []
        self.as_json, self.debug = as_json, debug

    @functools.cached_property
    def loaded(self) -> Loaded:
        return self.load(())

    def load(self, settings: Iterable[str]) -> Loaded:
        """The configuration with further settings; they win."""
        from hybrid_rag.config import load

        return load(self._config, settings=[*self._settings, *settings])

    @functools.cached_property
    def console(self) -> Console:
        """For results."""
        from rich.console import Console

        return Console(file=sys.stdout, highlight=False)

    @functools.cached_property
    def messages(self) -> Console:
        """For progress and messages."""
        from rich.console import Console

        return Console(file=sys.stderr, highlight=False)

    @contextmanager
    def service(self, *, cold: bool = True) -> Iterator[Service]:
        """``cold`` False: for a command that goes on, whose searches use Chroma."""
        from hybrid_rag.service import open_service

        set_up_logging(self.loaded.config.logging.level, self.loaded.config.logging.suppress_warnings, self.debug)
        with open_service(self.loaded, cold=cold) as service:
            yield service

    def show(self, result: Any, render: Callable[[Any, Console], None]) -> None:
        """Print a record: as JSON when asked for, else rendered for people."""
        if self.as_json:
            print_json(result)
        else:
            render(result, self.console)

    def note(self, *lines: str) -> None:
        for line in lines:
            self.messages.print(line, markup=False, style="dim")


def command(app: typer.Typer, name: str, *, filters: bool = False, json_output: bool = True, **options: Any):
    """Register a function as a command with the common options.

    The function gets a :class:`Run` first and, with ``filters``, a ``filters`` keyword. The docstring is the
    help text; a line that starts with "Example:" is shown as an example that runs.
    """

    def register(function: Callable[..., int | None]) -> Callable[..., int | None]:
        added = {**(FILTERS if filters else {}), **(JSON if json_output else {}), **COMMON}

        @functools.wraps(function)
        def call(**given: Any) -> None:
            common = {key: given.pop(key, None) for key in added}
            _shown.update(debug=bool(common["debug"]), json=bool(common.get("as_json")))
            run = Run(common["config"], common["settings"], bool(common.get("as_json")), bool(common["debug"]))
            if filters:
                given["filters"] = parse_filters(common)
            if code := function(run, **given):
                raise typer.Exit(code)

        call.__signature__ = _signature(function, added, filters)  # type: ignore[attr-defined]
        app.command(name, **options)(call)
        return function

    return register


def _signature(function: Callable[..., Any], added: dict[str, Any], filters: bool) -> inspect.Signature:
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own if not (filters and p.name == "filters")]
    extra = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=False if hint.__args__[0] is bool else None)
        for key, hint in added.items()
    ]
    return inspect.Signature([*own, *extra])


def parse_filters(given: dict[str, Any]) -> Filters | None:
    """The filters of the command line, or None when none was given (then the configuration's apply)."""
    values = {key: given[key] for key in FILTERS if given.get(key) is not None}
    if not values:
        return None
    from hybrid_rag.filters import Filters

    return Filters.parse(**values)


def to_json(result: Any) -> Any:
    if hasattr(result, "to_dict"):
        return result.to_dict()
    if isinstance(result, dict):
        return {key: to_json(value) for key, value in result.items()}
    if isinstance(result, (list, tuple)):
        return [to_json(item) for item in result]
    return result


def print_json(result: Any) -> None:
    text = json.dumps(to_json(result), ensure_ascii=False, indent=2, default=str)
    print(text.encode("utf-8", "replace").decode("utf-8"))


def set_up_logging(level: str, suppress_warnings: bool, debug: bool) -> None:
    """Log to stderr only; hide the libraries' warnings when wanted."""
    logging.basicConfig(
        level=logging.DEBUG if debug else level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s", force=True
    )
    for name in ("httpx", "httpcore", "chromadb", "urllib3", "asyncio", "markdown_it", "pypdf", "watchfiles"):
        logging.getLogger(name).setLevel(logging.ERROR if suppress_warnings and not debug else logging.WARNING)
    if suppress_warnings and not debug:
        warnings.simplefilter("ignore")


def fail(error: HybridRagError) -> int:
    """Show an error and return its exit code; with --debug the traceback comes first."""
    if _shown["debug"]:
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    if _shown["json"]:
        print(json.dumps(error.to_dict(), ensure_ascii=False), file=sys.stderr)
        return error.exit_code
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stderr, highlight=False, soft_wrap=True)
    console.print(Text("Error: ", style="bold red") + Text(error.message))
    if error.remedy:
        console.print(Text("What to do: ", style="bold") + Text(error.remedy))
    return error.exit_code
