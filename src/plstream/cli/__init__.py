"""The command ``plstream``: one file per command, and heavy imports only when needed."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

__all__ = ["main"]

# The name of threads that read ahead.
READER = "plstream-reader"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default those of the process, and return its exit code."""
    try:
        from .app import run
    except ImportError as error:
        if error.name != "typer":
            raise
        sys.stderr.write("The command plstream requires extra packages: pip install 'plstream[cli]'.\n")
        return 2
    if arguments is not None:
        return run(list(arguments))
    code = run(sys.argv[1:])
    _end_if_still_reading(code)
    return code


def _end_if_still_reading(code: int) -> None:
    """Exit at once if a thread still waits for standard input, which Python could not close without aborting."""
    if any(thread.name == READER for thread in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
