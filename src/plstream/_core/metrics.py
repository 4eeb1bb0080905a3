"""Metrics of predictions, block by block: figures of merit for values, accuracy and confusion matrix for labels."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.utils import check_array, check_consistent_length

from .errors import counted
from .types import Array, Float64Array


def added(metrics: Metrics | None, model: Any, y: Array, predicted: Array) -> Metrics | None:
    """Return metrics with another block of a target and its predictions by a model; None before the first row."""
    if not len(y):
        return metrics
    if metrics is None:
        if hasattr(model, "classes_"):
            metrics = ClassificationMetrics()
        elif y.dtype.kind not in "biuf":
            raise ValueError(f"The model predicts numbers, but the target holds strings such as {str(y.flat[0])!r}.")
        else:
            metrics = RegressionMetrics(columns_of(y))
    metrics.add(y, predicted)
    return metrics


def with_values(y: Array) -> Array:
    """Return a mask of the rows of a target without missing values."""
    if y.dtype.kind != "f":
        return np.ones(len(y), bool)
    return np.logical_not(np.isnan(y.reshape(len(y), -1)).any(axis=1))


class ClassificationMetrics:
    """Accuracy and confusion matrix: the number of rows per pair of true and predicted labels."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.n_right = 0
        self.confusions: Counter[tuple[Any, Any]] = Counter()

    def add(self, y: Array, predicted: Array) -> None:
        """Add a block of true and predicted labels."""
        labels = np.asarray(y).reshape(-1)
        if len(labels) != len(predicted):
            raise ValueError("Labels must be in one column: name one target.")
        if (labels.dtype.kind in "US") != (predicted.dtype.kind in "US"):
            raise ValueError(
                "Either the labels of the model are strings and the target holds numbers, or the reverse: use the "
                "same type for both."
            )
        self.n_right += int(np.count_nonzero(labels == predicted))
        self.n_rows += len(labels)
        true, row = np.unique(labels, return_inverse=True)
        guessed, column = np.unique(predicted, return_inverse=True)
        pairs, counts = np.unique(row * len(guessed) + column, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            self.confusions[true[pair // len(guessed)].item(), guessed[pair % len(guessed)].item()] += count

    @property
    def totals(self) -> Counter[Any]:
        """Number of rows per true label, the most frequent first."""
        totals: Counter[Any] = Counter()
        for (true, _), count in self.confusions.items():
            totals[true] += count
        return Counter(dict(totals.most_common()))

    def error(self) -> float:
        """Return the error rate."""
        return 1.0 - self.n_right / self.n_rows

    def table(self, names: list[str]) -> list[dict[str, Any]]:
        """Return the accuracy."""
        return [{"target": names[0], "rows": self.n_rows, "accuracy": self.n_right / self.n_rows}]


class RegressionMetrics:
    """R2, RMSE, SEP, bias, slope and RPD per target, see :func:`figures_of_merit`.

    Sums of squares are about the mean of the rows so far, block by block (Chan, Golub and LeVeque), in units of the
    first block: a mean of 1e8 costs no digits, and units of 1e200 do not overflow.
    """

    def __init__(self, first: Float64Array) -> None:
        self.n_rows = 0
        # Powers of two: scaling is exact.
        _, exponents = np.frexp(np.abs(first).max(axis=0))
        self._unit: Float64Array = np.ldexp(1.0, exponents - 1)
        self._mean, self._total, self._residual, self._excess = np.zeros((4, first.shape[1]))
        # Centred errors: their squares, and their products with the target.
        self._error_squares, self._cross = np.zeros((2, first.shape[1]))

    def add(self, y: Array, predicted: Array) -> None:
        """Add a block of true and predicted values."""
        true, guess = columns_of(y) / self._unit, columns_of(predicted)
        if true.shape != guess.shape:
            raise ValueError(f"y has {counted(true.shape[1], 'target')}, but the model predicts {guess.shape[1]}.")
        n, n_before = len(true), self.n_rows
        self.n_rows += n
        errors = guess / self._unit - true
        move, error_move = true.mean(axis=0) - self._mean, errors.mean(axis=0) - self._excess / max(n_before, 1)
        centred, centred_errors = true - true.mean(axis=0), errors - errors.mean(axis=0)
        weight = n_before * n / self.n_rows
        self._total += np.square(centred).sum(axis=0) + move**2 * weight
        self._error_squares += np.square(centred_errors).sum(axis=0) + error_move**2 * weight
        self._cross += (centred * centred_errors).sum(axis=0) + move * error_move * weight
        self._mean += move * (n / self.n_rows)
        self._residual += np.square(errors).sum(axis=0)
        self._excess += errors.sum(axis=0)

    @property
    def rmse(self) -> Float64Array:
        """Root mean squared error."""
        return self._unit * np.sqrt(self._residual / self.n_rows)

    @property
    def bias(self) -> Float64Array:
        """Mean of predicted minus true values."""
        return self._unit * (self._excess / self.n_rows)

    @property
    def bias_without_noise(self) -> Float64Array:
        """The bias for display: zero if it is a rounding error."""
        smallest = np.maximum(self.resolution, 1e-10 * self.rmse_of_mean)
        return np.where(np.abs(self.bias) < smallest, 0.0, self.bias)

    @property
    def sep(self) -> Float64Array:
        """Standard error of prediction: the standard deviation of the errors, without their bias."""
        return self._unit * np.sqrt(self._error_squares / max(self.n_rows - 1, 1))

    @property
    def slope(self) -> Float64Array:
        """Slope of the line of predicted against true values; NaN if the latter are all equal."""
        nothing = np.full_like(self._total, np.nan)
        slope: Float64Array = 1.0 + np.divide(self._cross, self._total, out=nothing, where=self._total > 0)
        return slope

    @property
    def rpd(self) -> Float64Array:
        """Ratio of performance to deviation: the standard deviation of the target over SEP."""
        infinite = np.where(self._total > 0, np.inf, np.nan)
        deviations, errors = np.sqrt(self._total), np.sqrt(self._error_squares)
        rpd: Float64Array = np.divide(deviations, errors, out=infinite, where=errors > 0)
        return rpd

    @property
    def resolution(self) -> Float64Array:
        """Magnitude of rounding errors of values of this size, per target."""
        return 64 * np.finfo(np.float64).eps * self._unit

    @property
    def rmse_of_mean(self) -> Float64Array:
        """Root mean squared error of a model that predicts the mean of these rows."""
        return self._unit * np.sqrt(self._total / self.n_rows)

    @property
    def r2(self) -> Float64Array:
        """Explained variance, as in scikit-learn."""
        # A constant target is either predicted exactly or not.
        constant = np.where(self._residual > 0, 1.0, 0.0)
        r2: Float64Array = 1.0 - np.divide(self._residual, self._total, out=constant, where=self._total > 0)
        return r2

    def error(self) -> float:
        """Return the root of the mean share of unexplained variance."""
        return float(np.sqrt(np.mean(1.0 - self.r2)))

    def table(self, names: list[str]) -> list[dict[str, Any]]:
        """Return the figures of merit per target."""
        if self.n_rows < 2:
            raise ValueError("R2 requires at least two rows, but there is one.")
        figures = {name: getattr(self, name).tolist() for name in ("r2", "rmse", "sep", "bias", "slope", "rpd")}
        figures["bias"] = self.bias_without_noise.tolist()
        return [
            {"target": target, "rows": self.n_rows, **{name: values[k] for name, values in figures.items()}}
            for k, target in enumerate(names)
        ]


class FiguresOfMerit(NamedTuple):
    """Figures of merit of predictions: numbers, or arrays with one entry per response."""

    n_rows: int
    """Number of rows."""
    rmse: Any
    """Root mean squared error."""
    sep: Any
    """Standard error of prediction: the standard deviation of the errors, without their bias."""
    bias: Any
    """Mean of predicted minus measured values."""
    slope: Any
    """Slope of the line of predicted against measured values."""
    r2: Any
    """Explained variance."""
    rpd: Any
    """Ratio of performance to deviation: the standard deviation of the measured values over SEP."""


def figures_of_merit(y_true: Any, y_pred: Any) -> FiguresOfMerit:
    r"""Return the figures of merit of predictions used in chemometrics.

    With errors :math:`e_i = \hat y_i - y_i` of n rows,

    .. math::
        \mathrm{RMSE} = \sqrt{\tfrac1n \sum e_i^2}, \quad
        \mathrm{bias} = \bar e, \quad
        \mathrm{SEP} = \sqrt{\tfrac1{n - 1} \sum (e_i - \bar e)^2}, \quad
        \mathrm{RPD} = s_y / \mathrm{SEP},

    where :math:`s_y` is the standard deviation of the measured values (n - 1). The slope is that of the least squares
    line of predicted on measured values, and R2 is :func:`sklearn.metrics.r2_score`.

    RMSEC, RMSECV and RMSEP are the RMSE of different rows: training rows, rows held out in cross-validation
    (``predict_held_out`` of :class:`plstream.IncrementalPLSCV`), and new rows.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,) or (n_samples, n_targets)
        Measured and predicted values, of two rows or more.

    Returns
    -------
    figures : FiguresOfMerit
        ``n_rows``, ``rmse``, ``sep``, ``bias``, ``slope``, ``r2`` and ``rpd``: numbers, or arrays with one entry per
        response if y is two-dimensional.

    Examples
    --------
    >>> from plstream import figures_of_merit
    >>> figures = figures_of_merit([1.0, 2.0, 3.0, 4.0], [1.2, 2.0, 3.1, 4.3])
    >>> print(f"RMSEP {figures.rmse:.3f}, bias {figures.bias:.3f}, SEP {figures.sep:.3f}, RPD {figures.rpd:.1f}")
    RMSEP 0.187, bias 0.150, SEP 0.129, RPD 10.0
    """
    true, predicted = (
        check_array(values, ensure_2d=False, dtype=np.float64, ensure_min_samples=2, input_name=name)
        for name, values in (("y_true", y_true), ("y_pred", y_pred))
    )
    check_consistent_length(true, predicted)
    metrics = RegressionMetrics(columns_of(true))
    metrics.add(true, predicted)
    values = [getattr(metrics, name) for name in FiguresOfMerit._fields[1:]]
    return FiguresOfMerit(metrics.n_rows, *(float(value[0]) if true.ndim == 1 else value for value in values))


Metrics: TypeAlias = ClassificationMetrics | RegressionMetrics


def columns_of(y: Array) -> Float64Array:
    """Return values with one column per target."""
    values = np.asarray(y, dtype=np.float64)
    return values.reshape(len(values), -1)
