"""Metrics of predictions, block by block: R2, RMSE and bias of values, accuracy and confusions of labels."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeAlias

import numpy as np

from .types import Array, Float64Array


def metrics_for(model: Any, y: Array) -> Metrics:
    """Return empty metrics for a model that predicts labels or values; y is the first block of the target."""
    if hasattr(model, "classes_"):
        return ClassificationMetrics()
    if y.dtype.kind not in "biuf":
        raise ValueError(f"The model predicts numbers, and the target holds text such as {str(y.flat[0])!r}.")
    return RegressionMetrics(columns_of(y))


class ClassificationMetrics:
    """Accuracy and confusions of labels.

    Attributes
    ----------
    n_rows, n_right : int
        Number of rows, and of those whose label is predicted correctly.
    confusions : Counter
        Number of rows per pair of a true and a predicted label.
    """

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
                "The target holds numbers where the model has text as labels, or text where it has numbers."
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
        """Number of rows per true label, the most frequent label first."""
        totals: Counter[Any] = Counter()
        for (true, _), count in self.confusions.items():
            totals[true] += count
        return Counter(dict(totals.most_common()))

    def error(self) -> float:
        """Return the share of wrong labels."""
        return 1.0 - self.n_right / self.n_rows

    def table(self, names: list[str]) -> list[dict[str, Any]]:
        """Return the accuracy."""
        return [{"target": names[0], "rows": self.n_rows, "accuracy": self.n_right / self.n_rows}]


class RegressionMetrics:
    """R2, RMSE and bias per target.

    Sums of squares are about the mean of the rows so far, block by block (Chan, Golub and LeVeque), in units of the
    first block: a mean of 1e8 costs no digits, and units of 1e200 do not overflow.

    Parameters
    ----------
    first : ndarray of shape (n_samples, n_targets)
        The first block of the target, which sets the units.
    """

    def __init__(self, first: Float64Array) -> None:
        self.n_rows = 0
        # Powers of two: scaling rounds nothing.
        _, exponents = np.frexp(np.abs(first).max(axis=0))
        self._unit: Float64Array = np.ldexp(1.0, exponents - 1)
        self._mean, self._total, self._residual, self._excess = np.zeros((4, first.shape[1]))

    def add(self, y: Array, predicted: Array) -> None:
        """Add a block of true and predicted values."""
        true, guess = columns_of(y) / self._unit, columns_of(predicted)
        if true.shape != guess.shape:
            raise ValueError(f"There are {true.shape[1]} target(s), but the model predicts {guess.shape[1]}.")
        n, n_before = len(true), self.n_rows
        self.n_rows += n
        move = true.mean(axis=0) - self._mean
        self._total += np.square(true - true.mean(axis=0)).sum(axis=0) + move**2 * (n_before * n / self.n_rows)
        self._mean += move * (n / self.n_rows)
        self._residual += np.square(true - guess / self._unit).sum(axis=0)
        self._excess += (guess / self._unit - true).sum(axis=0)

    @property
    def rmse(self) -> Float64Array:
        """Root mean squared error."""
        return self._unit * np.sqrt(self._residual / self.n_rows)

    @property
    def bias(self) -> Float64Array:
        """Mean of predicted minus true values."""
        return self._unit * (self._excess / self.n_rows)

    @property
    def resolution(self) -> Float64Array:
        """Differences that are smaller are rounding errors of values of this size, per target."""
        return 64 * np.finfo(np.float64).eps * self._unit

    @property
    def rmse_of_mean(self) -> Float64Array:
        """Root mean squared error of a model that predicts the mean of these rows."""
        return self._unit * np.sqrt(self._total / self.n_rows)

    @property
    def r2(self) -> Float64Array:
        """Share of the variance that is predicted, as in scikit-learn."""
        # As in scikit-learn: a constant is predicted or it is not.
        constant = np.where(self._residual > 0, 1.0, 0.0)
        r2: Float64Array = 1.0 - np.divide(self._residual, self._total, out=constant, where=self._total > 0)
        return r2

    def error(self) -> float:
        """Return the root of the mean share of the variance that is not predicted."""
        return float(np.sqrt(np.mean(1.0 - self.r2)))

    def table(self, names: list[str]) -> list[dict[str, Any]]:
        """Return R2 and RMSE per target."""
        if self.n_rows < 2:
            raise ValueError("R2 needs two rows or more, and there is one.")
        return [
            {"target": name, "rows": self.n_rows, "r2": float(r2), "rmse": float(error)}
            for name, r2, error in zip(names, self.r2, self.rmse, strict=True)
        ]


Metrics: TypeAlias = ClassificationMetrics | RegressionMetrics


def columns_of(y: Array) -> Float64Array:
    """Return values with one column per target."""
    return np.asarray(y, dtype=np.float64).reshape(len(y), -1)
