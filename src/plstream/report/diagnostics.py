"""Checks of a model and of its results on data, with plain-language findings.

A check is a function that yields diagnostics, listed in `diagnose`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from .._core.errors import counted
from .._core.metrics import ClassificationMetrics, RegressionMetrics
from .evaluation import EvaluationResult
from .html import Verdict
from .model_summary import ModelSummary

# A verdict, a few words, and a sentence.
Diagnostic: TypeAlias = tuple[Verdict, str, str]

# Thresholds for few rows, in total or per component.
_FEW_ROWS = 30
_FEW_ROWS_PER_COMPONENT = 5
# Estimated sine of the angle to the exact solution, as in IncrementalPLS.
_LARGE_SUBSPACE_ERROR = 0.3
# In standard errors: exceeded by chance once in hundreds of thousands, because there are many features.
_BEYOND_CHANCE = 5.0
# In standard deviations.
_MOVED = 0.5
_N_NAMED = 3
# Measured data is not normal: this many times as many rows exceed the two limits as with normal data.
_OFTEN_BEYOND = 5.0
# Limits from fewer rows are too narrow, particularly with many features.
_FEW_ROWS_FOR_LIMITS = 100
# Minimum number of rows to compare errors, and the ratio above which errors are much larger.
_COMPARABLE_ROWS = 5
_MUCH_LARGER = 2.0


def diagnose(summary: ModelSummary, result: EvaluationResult | None, responses: list[str]) -> list[Diagnostic]:
    """Return all diagnostics: problems first, then warnings, then checks that passed."""
    found = [*_rows(summary), *_rank(summary), *_validation(summary), *_sketch(summary), *_unused(summary)]
    if result is not None:
        found += [*_predictions(result, responses), *_labels(summary, result)]
        found += [*_alarms(summary, result, responses), *_drift(summary, result), *_constant(summary, result)]
    order = {"no": 0, "partly": 1, "open": 2, "yes": 3}
    return sorted(found, key=lambda diagnostic: order[diagnostic[0]])


def _rows(summary: ModelSummary) -> Iterator[Diagnostic]:
    n, c = summary.n_rows, summary.n_components
    if n is not None and c is not None and n < max(_FEW_ROWS, _FEW_ROWS_PER_COMPONENT * c):
        text = f"The model was fitted to only {counted(n, 'row')}: other rows may give different weights and limits."
        yield "partly", "Few rows.", text


def _rank(summary: ModelSummary) -> Iterator[Diagnostic]:
    n, asked = summary.n_components, summary.n_requested
    if n is None or asked is None:
        return
    if n < asked:
        text = f"{asked} components were requested, but the rows have only {n}: the others are zero."
        yield "partly", "Fewer components.", text
    elif not summary.is_selector:
        yield "yes", "Components.", f"All {n} requested components were found."


def _validation(summary: ModelSummary) -> Iterator[Diagnostic]:
    results = getattr(summary.model, "cv_results_", None)
    if results is None or len(results["n_components"]) < 2:
        return
    if summary.n_components == max(results["n_components"]) < len(summary.feature_names):
        text = f"Cross-validation chose {summary.n_components} components, the largest number tried: try more."
        yield "partly", "Largest number of components.", text


def _sketch(summary: ModelSummary) -> Iterator[Diagnostic]:
    retained = getattr(summary.model, "retained_variance_", None)
    if retained is None or getattr(summary.model, "solver_", "") != "sketch":
        return
    error = np.asarray(summary.model.subspace_error_)
    is_large = error > _LARGE_SUBSPACE_ERROR
    text = f"The sketch has kept {retained:.1%} of the variance of X."
    if is_large.any():
        text += (
            f" Only the first {np.argmax(is_large)} of {len(error)} components are likely to be close to those of an "
            "exact fit: use a larger sketch_size, or fewer components."
        )
        yield "no", "Sketch.", text
    else:
        angle = f"{error.max(initial=0.0):.2g}"
        yield "yes", "Sketch.", f"{text} Its components are close to exact ones (sine of the angle about {angle})."


def _unused(summary: ModelSummary) -> Iterator[Diagnostic]:
    if summary.is_used is None or not summary.n_components:
        return
    n_unused = np.count_nonzero(~summary.is_used)
    if n_unused:
        text = (
            f"{n_unused:,} of {len(summary.feature_names):,} features have weights of zero: in the training rows, "
            "they were constant or uncorrelated with the target."
        )
        yield "partly", "Unused features.", text


def _predictions(result: EvaluationResult, responses: list[str]) -> Iterator[Diagnostic]:
    metrics = result.metrics
    if isinstance(metrics, ClassificationMetrics):
        ((common, n),) = metrics.totals.most_common(1)
        if metrics.n_right <= n and len(metrics.totals) > 1:
            text = (
                f"Predicting {common} for every row is correct for {n / metrics.n_rows:.1%} of them, the model for "
                f"{metrics.n_right / metrics.n_rows:.1%}."
            )
            yield "no", "No better than guessing.", text
    if isinstance(metrics, RegressionMetrics) and metrics.n_rows > 1:
        for name, r2, bias, rmse in zip(responses, metrics.r2, metrics.bias, metrics.rmse, strict=False):
            if not r2 > 0:
                yield "no", "No better than the mean.", f"Predictions of {name} have an R2 of {r2:.3g} on this data."
            spread = np.sqrt(max(rmse**2 - bias**2, 0.0) / (metrics.n_rows - 1))
            if abs(bias) > _BEYOND_CHANCE * spread and abs(bias) > 1e-6 * rmse:
                side = "high" if bias > 0 else "low"
                text = f"Predictions of {name} are too {side} by {abs(bias):.3g} on average, more than chance explains."
                yield "partly", "Bias.", text


def _labels(summary: ModelSummary, result: EvaluationResult) -> Iterator[Diagnostic]:
    if summary.classes is None or not isinstance(result.metrics, ClassificationMetrics):
        return
    known = set(summary.classes.tolist())
    new = sorted({str(true) for true in result.metrics.totals if true not in known})
    if new:
        more = f" and {len(new) - _N_NAMED:,} more" if len(new) > _N_NAMED else ""
        names = ", ".join(new[:_N_NAMED])
        yield "no", "New labels.", f"The data contains labels unknown to the model: {names}{more}."


def _alarms(summary: ModelSummary, result: EvaluationResult, responses: list[str]) -> Iterator[Diagnostic]:
    title = "Unusual rows."
    if result.monitor is None:
        if result.no_monitor:
            yield "open", title, result.no_monitor
        return
    n, expected = result.n_rows, 1 - result.monitor.level
    share = result.n_alarms / n
    text = (
        f"{result.n_alarms:,} of {n:,} rows ({share:.1%}) are beyond a limit of T2 ({result.n_t2_alarms:,}) "
        f"or of Q ({result.n_q_alarms:,}); of normal rows, {expected:.0%} are beyond each."
    )
    if result.monitor.n_reference_rows_:
        yield "open", title, f"{text} The limits are computed from these rows, because the model has none of its own."
        return
    if share <= 2 * expected + 3 * np.sqrt(expected / n):
        yield "yes", title, text
        return
    if summary.n_rows is not None and summary.n_rows < _FEW_ROWS_FOR_LIMITS:
        few = counted(summary.n_rows, "row")
        text += f" Limits from only {few} are too narrow, and more rows are beyond by chance."
    often = 2 * expected * _OFTEN_BEYOND
    if share <= often + 3 * np.sqrt(often / n):
        yield "yes", title, f"{text} This is common for measured data."
        return
    larger, errors = _errors_beyond(result, responses)
    if larger is None:
        yield "no", title, f"{text} Do not trust their predictions."
    elif larger:
        yield "no", title, f"{text} Their predictions are worse: {errors}."
    else:
        yield "partly", title, f"{text} Their predictions are not much worse: {errors}."


def _errors_beyond(result: EvaluationResult, responses: list[str]) -> tuple[bool | None, str]:
    """Return whether errors of rows beyond a limit are much larger than others (None if unknown), and a sentence."""
    beyond, within = result.metrics_beyond, result.metrics_within
    if beyond is None or within is None or min(beyond.n_rows, within.n_rows) < _COMPARABLE_ROWS:
        return None, ""
    if isinstance(beyond, RegressionMetrics) and isinstance(within, RegressionMetrics):
        ratios = beyond.rmse / np.maximum(within.rmse, np.finfo(float).tiny)
        worst = int(np.argmax(ratios))
        name = f" of {responses[worst]}" if worst < len(responses) else ""
        errors = f"the RMSE{name} is {beyond.rmse[worst]:.3g}, compared with {within.rmse[worst]:.3g} for the others"
        return bool(ratios[worst] > _MUCH_LARGER), errors
    larger = beyond.error() > _MUCH_LARGER * max(within.error(), 1 / within.n_rows)
    return (
        larger,
        f"{1 - beyond.error():.1%} of their labels are correct, compared with {1 - within.error():.1%} of the others",
    )


def _drift(summary: ModelSummary, result: EvaluationResult) -> Iterator[Diagnostic]:
    """Compare the means of features with those in the model."""
    mean, n = getattr(summary.model, "x_mean_", None), result.n_rows
    if mean is None or n < 2 or not summary.n_rows:
        return
    deviation = np.sqrt(result.features.x_squares / (n - 1))
    if getattr(summary.model, "scale", False) and summary.scale is not None and summary.is_used is not None:
        # Of the training rows, not of this data. A feature with zero weights was constant.
        deviation = np.where(summary.is_used, summary.scale, 0.0)
    moves = np.zeros(len(mean))
    np.divide(result.features.x_mean - mean, deviation, out=moves, where=deviation > 0)
    limit = max(_MOVED, _BEYOND_CHANCE * np.sqrt(1 / n + 1 / summary.n_rows))
    moved = np.flatnonzero(np.abs(moves) > limit)
    if not len(moved):
        text = f"No feature's mean differs by {limit:.2g} standard deviations or more from that in the training rows."
        yield "yes", "Drift.", text
        return
    most = moved[np.argsort(-np.abs(moves[moved]), kind="stable")[:_N_NAMED]]
    names = ", ".join(f"{summary.feature_names[k]} ({moves[k]:+.2g})" for k in most)
    # With a known target, the effect on predictions is reported as well.
    is_unseen = result.metrics is None and len(moved) > 0.1 * len(mean)
    text = (
        f"{len(moved):,} of {len(mean):,} features have a mean that is more than {limit:.2g} standard deviations from "
        f"that in the training rows, most of all {names}."
    )
    yield "no" if is_unseen else "partly", "Drift.", text


def _constant(summary: ModelSummary, result: EvaluationResult) -> Iterator[Diagnostic]:
    if result.n_rows < 2:
        yield "partly", "One row.", "The data has a single row: R2 and the spread cannot be computed."
    elif summary.is_used is not None:
        constant = np.flatnonzero((result.features.x_squares == 0) & summary.is_used)
        if len(constant):
            names = ", ".join(summary.feature_names[k] for k in constant[:_N_NAMED])
            others = " and others" if len(constant) > _N_NAMED else ""
            text = (
                f"{counted(len(constant), 'feature')} that the model uses never changed in this data, for example "
                f"because of a stuck sensor: {names}{others}."
            )
            yield "partly", "Constant features.", text
