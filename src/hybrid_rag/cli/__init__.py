"""The command ``hybrid-rag``: parse, call the service, render; nothing else.

Results go to stdout, progress and messages to stderr. Every command takes ``--config``, ``--set``,
``--debug`` and, where it prints results, ``--json``.
"""

from __future__ import annotations

import os
import sys

from hybrid_rag.cli.app import app
from hybrid_rag.cli.common import fail

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; errors become a message, a remedy and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    from hybrid_rag.errors import HybridRagError

    try:
        app()
    except HybridRagError as error:
        sys.exit(fail(error))
    except KeyboardInterrupt:
        print("Stopped; what was done is kept.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of a pipe (head, less) has gone
