"""The command ``plstream``: one file a command, and nothing heavy loaded before it is needed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process, and return its exit code."""
    try:
        from .app import run
    except ImportError as error:
        if error.name != "typer":
            raise
        sys.stderr.write("The command plstream needs a few packages more: pip install 'plstream[cli]'.\n")
        return 2
    return run(sys.argv[1:] if arguments is None else list(arguments))
