"""Progress on a terminal."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from .._core.metrics import Metrics, added, with_values
from .._core.progress import ProgressBar, Step, listening
from .._core.types import Array

# Seconds before a bar appears.
WAIT = 0.5


def is_shown() -> bool:
    """Return whether progress can be shown on a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def shown(note: Callable[[], str] | None = None) -> Iterator[None]:
    """Show a progress bar with a note during the enclosed work, if standard error is a terminal."""
    if not is_shown():
        yield
        return
    bar = ProgressBar(sys.stderr, WAIT)

    def draw(step: Step) -> None:
        text = note() if note is not None else ""
        bar(replace(step, label=f"{step.label}, {text}") if text else step)

    try:
        with listening(draw):
            yield
    finally:
        bar.clear()


class RunningError:
    """Prequential error: each block is predicted before the model learns it."""

    def __init__(self) -> None:
        self._metrics: Metrics | None = None

    def __call__(self, model: Any, X: Array, y: Array | None) -> None:
        """Add a block that the model is about to learn."""
        if y is None or not hasattr(model, "predict") or not model.__sklearn_is_fitted__():
            return
        if model.missing != "error":
            known = with_values(y)
            X, y = X[known], y[known]
        if not len(y):
            return
        with warnings.catch_warnings():
            # Warnings about few rows or missing names do not apply to intermediate models.
            warnings.simplefilter("ignore")
            self._metrics = added(self._metrics, model, y, model.predict(X))

    def __str__(self) -> str:
        return "" if self._metrics is None else f"error {self._metrics.error():.1%}"
