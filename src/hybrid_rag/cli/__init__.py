"""The command ``hybrid-rag``: parse, call the service, render; nothing else.

Results go to stdout, progress and messages to stderr. Every command takes ``--config``, ``--set``,
``--debug`` and, where it prints results, ``--json``.
"""

from __future__ import annotations

import sys

from hybrid_rag.cli.app import app
from hybrid_rag.cli.common import fail

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; errors become a message, a remedy and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    import click

    from hybrid_rag.errors import HybridRagError

    try:
        code = app(standalone_mode=False)
    except HybridRagError as error:
        code = fail(error)
    except click.exceptions.Abort:
        print("Stopped.", file=sys.stderr)
        code = 130
    except KeyboardInterrupt:
        print("Stopped; what was done is kept.", file=sys.stderr)
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except BrokenPipeError:
        # The reader of a pipe (head, less) has gone: not an error of ours.
        sys.stderr.close()
        code = 0
    sys.exit(code or 0)
