"""Records of batches of a stream, measured with a model."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_array, check_consistent_length

from .._core.metrics import columns_of
from .._core.schema import LARGEST_COUNT, Choice, Count, Each, Number, Object, OrNone, Text, stored
from .._core.types import Float64Array
from .._core.validation import as_numpy, validate_rows
from ..solvers.completion import FactorModel
from ..solvers.solution import Solution
from ..states import Moments
from .limits import divisor_of, residuals_of
from .pipelines import feature_names, last_step

WATCHED = ("error", "outside", "shift")


@stored()
class Measured(NamedTuple):
    """Statistics of a batch, given a model."""

    error: Annotated[float, Number(nan=True)]
    """Root mean squared error of predictions, in standard deviations of y; for a classifier the error rate."""
    outside: Annotated[float, Number(nan=True)]
    """Mean of Q, the part of the rows that the model does not represent, relative to that of its training rows."""
    shift: Annotated[float, Number(nan=True)]
    """Largest difference of a feature's mean from that of the training rows, in standard deviations of the feature."""
    shifted_feature: Annotated[str, Text(LARGEST_COUNT)]
    """The feature with this difference."""


@stored()
class Batch(NamedTuple):
    """The record of a batch, measured before the model learns the batch."""

    n_rows: Annotated[int, Count()]
    """Number of rows in the batch."""
    n_seen: Annotated[int, Count()]
    """Number of rows before it."""
    error: Annotated[float, Number(nan=True)]
    """Root mean squared error of predictions, in standard deviations of y; for a classifier the error rate."""
    outside: Annotated[float, Number(nan=True)]
    """Mean of Q, the part of the rows that the model does not represent, relative to that of earlier rows."""
    shift: Annotated[float, Number(nan=True)]
    """Largest difference of a feature's mean from that of all earlier rows, in standard deviations of the feature."""
    shifted_feature: Annotated[str, Text(LARGEST_COUNT)]
    """The feature with this difference."""
    angle: Annotated[float, Number(nan=True)]
    """Largest angle, in degrees, between the subspace of the components and that after ten batches."""
    retained_variance: Annotated[float, Number(nan=True)]
    """Share of the variance of X that the state of the model retains."""
    reference: Annotated[Measured | None, OrNone(Object(Measured))]
    """Error, outside, shift and shifted feature measured with the reference, if there is one."""
    alarms: Annotated[tuple[str, ...], Each(Choice(*WATCHED))]
    """Which of error, outside and shift have risen."""
    reasons: Annotated[tuple[str, ...], Each(Text(LARGEST_COUNT))]
    """A sentence for each alarm: what has risen, by how much and since when."""


@stored()
class Snapshot(NamedTuple):
    """A solved model, and the moments of its training samples."""

    solution: Annotated[Solution, Object(Solution, m="m")]
    moments: Annotated[Moments, Object(Moments, m="m", q="v?")]
    n_batches: Annotated[int, Count()]
    """Number of batches before."""


def measured(pipeline: Any, known: Snapshot, X: Any, y: Any) -> Measured:
    """Return the statistics of a batch for a snapshot of a model, or of the last step of a pipeline.

    X are the rows as passed to this step.
    """
    model, (solution, moments, _) = copy(last_step(pipeline)), known
    completes = model.missing == "model"
    completing = FactorModel.of(solution, model._fitted.missing) if completes else None
    model._fitted = replace(model._fitted, solution=solution, completing=completing)
    prediction = model.predict(X)
    checks: dict[str, Any] = {"ensure_2d": False, "dtype": None, "ensure_all_finite": not completes}
    truth = check_array(as_numpy(y, "y"), input_name="y", **checks)
    check_consistent_length(prediction, truth)
    rows = validate_rows(model, X, reset=False)
    if completing is not None:
        rows = completing.completed(rows)
    if is_classifier(model):
        error = float(np.mean(prediction != truth))
    else:
        # Not the scales of y in the model, which are ones if it does not scale.
        deviations = _deviations(moments.y_squares, moments)
        errors = (columns_of(truth) - columns_of(prediction)) / np.where(deviations > 0, deviations, 1.0)
        error = float(np.sqrt(np.nanmean(errors**2) if completes else np.mean(errors**2)))
    q = sum(float(np.einsum("ij,ij->", e, e)) for _, e in residuals_of(solution, rows)) / rows.shape[0]
    # A constant column has no standard deviation: if it starts to vary, this counts as outside of the model.
    deviations = _deviations(moments.x_squares, moments)
    total = float(np.sum(np.square(deviations / solution.x_scale))) or 1.0
    # Not relative to the total: poorly determined components rotate, and represent more or less of X.
    left = max(1 - float(np.sum(solution.x_explained_variance_ratio)), 1e-12) * total
    means = np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()
    shifts = np.abs(means - moments.x_mean) / np.where(deviations > 0, deviations, np.inf)
    at = int(np.argmax(shifts))
    return Measured(error, q / left, float(shifts[at]), str(feature_names(pipeline)[at]))


def _deviations(squares: Float64Array, moments: Moments) -> Float64Array:
    deviations: Float64Array = np.sqrt(squares / divisor_of(moments))
    return deviations
