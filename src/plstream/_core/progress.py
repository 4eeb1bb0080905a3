"""Progress of long computations: silent by default, a bar on a terminal or in a notebook on request.

Long computations wrap their loop in :func:`track`. Nothing is shown unless there is a listener: :func:`show_progress`
draws a bar, :func:`listening` passes every step to a function.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TextIO, TypeVar

Item = TypeVar("Item")

# Seconds between updates in a notebook.
_CELL_SECONDS = 0.2
_BAR_WIDTH = 24
# Logs a line per fit, and at level DEBUG one per read of the data.
logger = logging.getLogger("plstream")


@dataclass(frozen=True)
class Step:
    """The progress of a computation."""

    label: str
    done: int
    total: int | None
    seconds: float
    unit: str = "rows"

    @property
    def finished(self) -> bool:
        """Whether a known total is complete."""
        return self.total is not None and self.done >= self.total


Listener = Callable[[Step], None]

_listener: ContextVar[Listener | None] = ContextVar("plstream_progress", default=None)
_waiting: ContextVar[Callable[[], None] | None] = ContextVar("plstream_waiting", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Send every step of the work done inside to ``listener``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def also_listening(listener: Listener) -> Iterator[None]:
    """Also send every step of the work done inside to ``listener``, after existing listeners."""
    first = _listener.get()

    def both(step: Step) -> None:
        if first is not None:
            first(step)
        listener(step)

    with listening(both):
        yield


def track(
    items: Iterable[Item], label: str, total: int | None, size: Callable[[Item], int], unit: str = "rows"
) -> Generator[Item, None, None]:
    """Yield the items, and report after each the number of units done (``size`` of each item)."""
    if _listener.get() is None and not logger.isEnabledFor(logging.DEBUG):
        yield from items
        return
    tell = counting(label, total, unit)
    iterator, start, done = iter(items), time.monotonic(), 0
    try:
        while True:
            token = _waiting.set(tell)
            try:
                item = next(iterator)
            except StopIteration:
                logger.debug("%s: %s %s in %.2f s", label, f"{done:,}", unit, time.monotonic() - start)
                return
            finally:
                _waiting.reset(token)
            yield item
            more = size(item)
            done += more
            del item
            if tell is not None:
                tell(more)
    finally:
        if isinstance(iterator, Generator):
            iterator.close()


def log_fit(model: Any, start: float) -> None:
    """Log that a model has been fitted; ``start`` is the ``time.monotonic`` at which it began."""
    if logger.isEnabledFor(logging.INFO):
        shape = f"{model.n_samples_seen_:,} x {model.n_features_in_:,}"
        reads, seconds = model.n_reads_, time.monotonic() - start
        logger.info("%s: fit of %s, reads: %d, %.2f s", type(model).__name__, shape, reads, seconds)


def counting(label: str, total: int | None, unit: str) -> Callable[..., None] | None:
    """Return a function that reports further units, or None if there is no listener."""
    listener = _listener.get()
    if listener is None:
        return None
    start = time.monotonic()
    done = 0

    def tell(more: int = 0) -> None:
        nonlocal done
        done += more
        listener(Step(label, done, total, time.monotonic() - start, unit))

    return tell


def still_waiting() -> None:
    """Report that the next item of this iterator has not arrived yet."""
    tell = _waiting.get()
    if tell is not None:
        tell()


class ProgressBar:
    """Draws steps in one line, which is overwritten, after ``wait`` seconds, so that short work shows nothing.

    The line goes to a terminal, or in a notebook to ``cell``, the result of IPython's ``display``.
    """

    def __init__(self, stream: TextIO, wait: float, cell: Any = None) -> None:
        self.stream = stream
        self.wait = wait
        self._cell = cell
        self._start = self._last = time.monotonic()
        self._drawn = 0

    def __call__(self, step: Step) -> None:
        """Draw the step, or nothing while the bar is younger than ``wait`` seconds."""
        if time.monotonic() - self._start < self.wait:
            return
        self._draw(self._line(step), step)
        if step.finished:
            self.clear()

    def clear(self) -> None:
        """Clear the line."""
        if self._drawn:
            if self._cell is None:
                self.stream.write("\r" + " " * self._drawn + "\r")
                self.stream.flush()
            else:
                self._cell.update({"text/plain": ""}, raw=True)
            self._drawn = 0

    def _draw(self, line: str, step: Step) -> None:
        if self._cell is None:
            self.stream.write("\r" + line.ljust(self._drawn))
            self.stream.flush()
        elif self._drawn and not step.finished and time.monotonic() - self._last < _CELL_SECONDS:
            # Every update is a message to the browser.
            return
        else:
            self._cell.update({"text/plain": line}, raw=True)
            self._last = time.monotonic()
        self._drawn = len(line)

    def _line(self, step: Step) -> str:
        rate = step.done / step.seconds if step.seconds > 0 else 0.0
        line = f"{step.label}: {step.done:,} {step.unit}, {rate:,.0f}/s"
        if not step.total:
            return line
        share = min(1.0, step.done / step.total)
        filled = round(share * _BAR_WIDTH)
        left = (step.total - step.done) / rate if rate > 0 else 0.0
        return f"{line} [{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {share:4.0%}, {left:.0f} s left"


@contextmanager
def show_progress(stream: TextIO | None = None, *, wait: float = 0.5) -> Iterator[None]:
    """Show a progress bar for the work done inside, on standard error if it is a terminal, or in a notebook.

    Parameters
    ----------
    stream : text file, default=None
        Where to draw. Default: standard error, or the cell output in a notebook.
    wait : float, default=0.5
        Seconds before a bar appears, so that short work shows none.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS, show_progress
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> with show_progress():
    ...     model = IncrementalPLS(n_components=2).fit(X, X[:, 0])
    """
    cell = _notebook_cell() if stream is None else None
    stream = sys.stderr if stream is None else stream
    # A program without a console has no standard error.
    if stream is None or (cell is None and not stream.isatty()):
        yield
        return
    bar = ProgressBar(stream, wait, cell=cell)
    try:
        with listening(bar):
            yield
    finally:
        bar.clear()


def _notebook_cell() -> Any:
    """Return an output area of a notebook cell, or None outside of a notebook."""
    # A notebook has imported it already.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display  # type: ignore[import-not-found]

    return display({"text/plain": ""}, raw=True, display_id=True)
