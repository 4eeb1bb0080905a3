"""Fits that end well when they are asked to end: with a last checkpoint."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

from ..persistence import Stopped, fit_source

__all__ = ["Stopped", "fit_source", "signals_to_stop"]


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

    numbers = (signal.SIGINT, signal.SIGTERM)
    try:
        before = [signal.signal(number, ask) for number in numbers]
    except ValueError:
        # Only the main thread may do so.
        yield asked.is_set
        return
    try:
        yield asked.is_set
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
