"""What is shown of a fit: progress on a terminal, the error of a model before it learns, and a summary."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from .._core.metrics import Metrics, metrics_for
from .._core.progress import ProgressBar, Step, listening
from .._core.types import Array

# Seconds before a bar appears.
WAIT = 0.5


def is_shown() -> bool:
    """Return whether there is a terminal to show progress on."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def shown(note: Callable[[], str] | None = None) -> Iterator[None]:
    """Show a bar for the work done inside, and a note beside it, if standard error is a terminal."""
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
    """How well a model predicts each block before it learns it (test, then train)."""

    def __init__(self) -> None:
        self._metrics: Metrics | None = None

    def __call__(self, model: Any, X: Array, y: Array | None) -> None:
        """Take in a block that the model is about to learn."""
        if y is None or not hasattr(model, "predict") or not model.__sklearn_is_fitted__():
            return
        if self._metrics is None:
            self._metrics = metrics_for(model, y)
        with warnings.catch_warnings():
            # That the rows so far are few, or have no names, is nothing to be told in between.
            warnings.simplefilter("ignore")
            self._metrics.add(y, model.predict(X))

    def __str__(self) -> str:
        return "" if self._metrics is None else f"error {self._metrics.error():.1%}"


def summary(model: Any) -> str:
    """Return what a fitted model is, in one line. It is solved for that."""
    rows, features = model.n_samples_seen_, model.n_features_in_
    text = f"{type(model).__name__}, {model.n_components_} component(s) of {features:,} feature(s), {rows:,} row(s)"
    if hasattr(model, "solver_"):
        text += f", {model.solver_}"
    if hasattr(model, "classes_"):
        text += f", {len(model.classes_)} classes"
    if hasattr(model, "y_explained_variance_ratio_"):
        text += f", explains {model.y_explained_variance_ratio_.sum():.1%} of y"
    return text
