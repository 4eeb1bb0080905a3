"""Errors as one line with an exit code, and signals."""

from __future__ import annotations

import ast
import errno
import math
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread
from types import FrameType
from typing import Any

from .._core.urls import redacted

FAILED = 1
WRONG = 2
ALARMED = 3
# Exit code of a process ended by the signal.
TERMINATED = 128 + signal.SIGTERM
# Seconds after which the process is ended: compiled loops and products of large matrices do not notice a signal before
# they return.
GRACE = 5.0

# Errors of arguments and data. Any other system error means that the work failed.
_WRONG_ERRORS = (
    FileExistsError,
    FileNotFoundError,
    ImportError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
    TypeError,
    ValueError,
)
_WRONG_NUMBERS = {None, errno.EINVAL, errno.ELOOP, errno.ENAMETOOLONG, errno.EROFS}
# A parameter in a message of the library, such as "pass format=." and "format='x' is not one of ...".
_PARAMETER = re.compile(r"\b([a-z_]+)=(?:(?=[\s.,:]|$)|(?P<value>(?=['\"])))")
# A list of columns, such as "leave them out by exclude=['id', 'day']".
_LIST = re.compile(r"\b([a-z_]+)=(\['[^\]\\]*'\])")
# Phrases of messages that apply only to programs.
_PROGRAMMING = {
    " in the first call of partial_fit": "",
    " in the first call": "",
    " of the first call": "",
    ", or call add_class with it": "",
    "use IncrementalPLSClassifier": "use incremental-pls-classifier",
}


def tell(line: str) -> None:
    """Write a line to standard error, without passwords of URLs."""
    # Programs without a console have none.
    if sys.stderr is not None:
        sys.stderr.write(redacted(line) + "\n")
        sys.stderr.flush()


def as_options(message: str, options: Mapping[str, str]) -> str:
    """Return a message of the library in one line, with command-line options instead of parameters."""
    # It imports typer, without which errors must be reported as well.
    from .options import as_option

    def columns(match: re.Match[str]) -> str:
        names = map(str, ast.literal_eval(match[2]))
        return f"{options.get(match[1], match[1])} {as_option(names)}"

    def option(match: re.Match[str]) -> str:
        name = options.get(match[1])
        return match[0] if name is None else f"{name} " if match["value"] is not None else name

    plain = _PARAMETER.sub(option, _LIST.sub(columns, message))
    for words, others in _PROGRAMMING.items():
        plain = plain.replace(words, others)
    return " ".join("".join(character if character.isprintable() else " " for character in plain).split())


def sentence(error: Exception, options: Mapping[str, str]) -> str:
    """Return the error message, in terms of the command line."""
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        hint = f" See {context.command_path} --help." if context is not None else ""
        message = as_options(str(error.format_message()), options).rstrip(".")
        return message + ("" if message.endswith("?") else ".") + hint
    if isinstance(error, OSError) and error.errno is not None:
        name = f"{error.filename}: " if error.filename is not None else ""
        return as_options(f"{name}{error.strerror}.", options)
    if isinstance(error, MemoryError) and not str(error):
        return "There is not enough memory: see --memory, or use less data."
    known = isinstance(error, (*_WRONG_ERRORS, OSError, MemoryError))
    return as_options(str(error) if known else f"{type(error).__name__}: {error}", options)


def exit_code(error: Exception) -> int:
    """Return 2 for wrong arguments or data, else 1."""
    if isinstance(error, _WRONG_ERRORS) or hasattr(error, "format_message"):
        return WRONG
    return WRONG if isinstance(error, OSError) and error.errno in _WRONG_NUMBERS else FAILED


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that no partial file is left behind.

    If that takes longer than ``GRACE``, the process is ended anyway.
    """
    with _ended_after_grace(), _handled(signal.default_int_handler, signal.SIGTERM):
        yield


# Number of signals until the process ends: the first may only be a request.
_n_requests = 1


@contextmanager
def _ended_after_grace() -> Iterator[None]:
    """End the process after a grace period if it has not ended by itself, whatever it is doing.

    Python's handlers run only after compiled code returns. But signal numbers are written to a pipe at once, and a
    thread that reads it runs concurrently with loops and products, which release the interpreter.
    """
    if os.name == "nt":
        # Windows would require a socket.
        yield
        return
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    try:
        before = signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    except ValueError:
        # Only the main thread may do so.
        os.close(receiver)
        os.close(sender)
        yield
        return
    Thread(target=_end_after_grace, args=(receiver,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        # This ends the thread.
        os.close(sender)


def _end_after_grace(receiver: int) -> None:
    """Read signals from a pipe until it is closed; end the process when the grace period after a request is over."""
    n_requested, deadline = 0, math.inf
    with os.fdopen(receiver, "rb", buffering=0) as pipe:
        while True:
            left = None if deadline == math.inf else max(0.0, deadline - time.monotonic())
            if not select.select([pipe], [], [], left)[0]:
                from ..files.files import remove_unfinished

                remove_unfinished()
                os._exit(TERMINATED)
            number = pipe.read(1)
            if not number:
                return
            n_requested += number[0] == signal.SIGTERM
            if n_requested >= _n_requests:
                deadline = min(deadline, time.monotonic() + GRACE)


@contextmanager
def signals_to_stop() -> Iterator[Callable[[], bool]]:
    """Treat Ctrl-C and SIGTERM as requests to stop, which a fit may answer after the current block.

    A second signal ends the process.
    """
    global _n_requests  # noqa: PLW0603
    asked = Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()

    with _handled(ask, signal.SIGINT, signal.SIGTERM):
        _n_requests = 2
        try:
            yield asked.is_set
        finally:
            _n_requests = 1


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], Any], *numbers: int) -> Iterator[None]:
    """Handle signals, except those that are ignored, as under nohup."""
    before = {number: signal.getsignal(number) for number in numbers}
    numbers = tuple(number for number in numbers if before[number] is not signal.SIG_IGN)
    try:
        for number in numbers:
            signal.signal(number, handler)
    except ValueError:
        # Only the main thread may do so.
        yield
        return
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, before[number])
