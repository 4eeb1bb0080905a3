"""Signals that ask the command to end: Ctrl-C, and what ``kill`` sends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import Any


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Let the signal that asks a process to end do what Ctrl-C does, so that no half of a file stays behind."""
    with _handled(signal.default_int_handler, signal.SIGTERM):
        yield


@contextmanager
def signals_to_stop() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C, and the signal that asks a process to end, be a question that a fit may answer after its block.

    The second time it is no question any more.
    """
    asked = Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.default_int_handler(number, frame)
        asked.set()

    with _handled(ask, signal.SIGINT, signal.SIGTERM):
        yield asked.is_set


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], Any], *numbers: int) -> Iterator[None]:
    """Handle signals, except those that are ignored: whoever starts a job in the background may have asked for that."""
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
