"""Progress on a terminal, and facts about a fitted model."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._core.errors import counted
from .._core.metrics import Metrics, metrics_for, with_values
from .._core.progress import ProgressBar, Step, listening
from .._core.types import Array
from .._core.urls import shown as name_of

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
        if self._metrics is None:
            self._metrics = metrics_for(model, y)
        with warnings.catch_warnings():
            # Warnings about few rows or missing names do not apply to intermediate models.
            warnings.simplefilter("ignore")
            self._metrics.add(y, model.predict(X))

    def __str__(self) -> str:
        return "" if self._metrics is None else f"error {self._metrics.error():.1%}"


def facts(model: Any) -> dict[str, Any]:
    """Return the class, sizes and figures of merit of a fitted model."""
    found: dict[str, Any] = {
        "class": type(model).__name__,
        "n_components": int(model.n_components_),
        "n_features": int(model.n_features_in_),
        "n_rows": int(model.n_samples_seen_),
    }
    if hasattr(model, "solver_"):
        found["solver"] = model.solver_
    if getattr(model, "missing", "error") == "model":
        found["n_missing"] = int(model.n_missing_.sum())
    if hasattr(model, "classes_"):
        found["classes"] = model.classes_.tolist()
    if hasattr(model, "y_explained_variance_ratio_"):
        found["y_explained_variance"] = float(model.y_explained_variance_ratio_.sum())
    if hasattr(model, "cv_results_"):
        results = model.cv_results_
        found["cross_validation"] = {
            "rule": model.rule,
            "max_components": int(results["n_components"][-1]),
            "score": float(model.best_score_),
            "scores": results["mean_test_score"],
            "standard_errors": results["se_test_score"],
        }
    return found


def print_model(path: Path, model: Any, more: dict[str, Any], *, as_json: bool, note: str = "") -> None:
    """Print the facts about a fitted model in a file: in one line, or with more facts as JSON."""
    import typer

    from .output import print_json

    its = facts(model)
    if as_json:
        print_json({"model": name_of(path), **more, **its})
    else:
        typer.echo(f"{name_of(path)}: {format_facts(its)}{note}")


def format_facts(its: dict[str, Any]) -> str:
    """Return the facts about a fitted model in one line."""
    text = f"{its['class']}, {counted(its['n_components'], 'component')} of {counted(its['n_features'], 'feature')}"
    text += f", {counted(its['n_rows'], 'row')}"
    if its.get("n_missing"):
        text += f" with {counted(its['n_missing'], 'missing value')} completed"
    if "solver" in its:
        text += f", {its['solver']}"
    if "classes" in its:
        text += f", {counted(len(its['classes']), 'class', 'classes')}"
    if "y_explained_variance" in its:
        text += f", explains {its['y_explained_variance']:.1%} of y"
    validation = its.get("cross_validation")
    if validation is None:
        return text
    does = "classifies" if "classes" in its else "predicts"
    what = " of held-out rows correctly" if "classes" in its else " of y in held-out rows"
    text += f", {does} {validation['score']:.1%}{what}"
    if its["n_components"] == validation["max_components"] < its["n_features"]:
        text += f"; this is the largest number tried: try more with --max-components {2 * its['n_components']}"
    return text
