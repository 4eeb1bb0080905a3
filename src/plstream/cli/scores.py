"""How good predictions are, from blocks of them: R2 and RMSE of values, accuracy of labels."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._types import Array, Float64Array


class Score(Protocol):
    """What is known of predictions so far."""

    n_rows: int

    def add(self, y: Array, predicted: Array) -> None:
        """Take in a block of what is true and what was predicted."""

    def error(self) -> float:
        """Return one number for all: the share of wrong labels, or the error relative to that of the mean."""

    def table(self, names: list[str]) -> list[dict[str, Any]]:
        """Return what to print for targets of these names."""


def score_for(model: Any, y: Array) -> Score:
    """Return the score of a model that predicts labels or values."""
    if not hasattr(model, "predict"):
        raise ValueError(f"{type(model).__name__} has no predictions, only scores: use plstream transform.")
    if hasattr(model, "classes_"):
        return Accuracy()
    if y.dtype.kind not in "biuf":
        raise ValueError(f"The model predicts numbers, and the target holds text such as {str(y.flat[0])!r}.")
    return Regression(columns_of(y))


class Accuracy:
    """The share of labels that are right."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.n_right = 0

    def add(self, y: Array, predicted: Array) -> None:
        """Take in a block."""
        labels = np.asarray(y).reshape(-1)
        if len(labels) != len(predicted):
            raise ValueError("Labels must be in one column: name one target.")
        if (labels.dtype.kind in "US") != (predicted.dtype.kind in "US"):
            raise ValueError(
                "The target holds numbers where the model has text as labels, or text where it has numbers."
            )
        self.n_right += int(np.count_nonzero(labels == predicted))
        self.n_rows += len(labels)

    def error(self) -> float:
        """Return the share of wrong labels."""
        return 1.0 - self.n_right / self.n_rows

    def table(self, names: list[str]) -> list[dict[str, Any]]:
        """Return the accuracy."""
        return [{"target": names[0], "rows": self.n_rows, "accuracy": self.n_right / self.n_rows}]


class Regression:
    """R2 and RMSE of each target.

    Sums of squares are about the mean of the rows so far, block by block (Chan, Golub and LeVeque), in units of the
    first block: a mean of 1e8 costs no digits, and units of 1e200 do not overflow.
    """

    def __init__(self, first: Float64Array) -> None:
        self.n_rows = 0
        peaks = np.abs(first).max(axis=0)
        self._unit = np.where(peaks > 0, peaks, 1.0)
        self._mean, self._total, self._residual = np.zeros((3, first.shape[1]))

    def add(self, y: Array, predicted: Array) -> None:
        """Take in a block."""
        true, guess = columns_of(y) / self._unit, columns_of(predicted)
        if true.shape != guess.shape:
            raise ValueError(f"There are {true.shape[1]} target(s), but the model predicts {guess.shape[1]}.")
        n, n_before = len(true), self.n_rows
        self.n_rows += n
        move = true.mean(axis=0) - self._mean
        self._total += np.square(true - true.mean(axis=0)).sum(axis=0) + move**2 * (n_before * n / self.n_rows)
        self._mean += move * (n / self.n_rows)
        self._residual += np.square(true - guess / self._unit).sum(axis=0)

    def error(self) -> float:
        """Return the root of the mean share of the variance that is not predicted."""
        return float(np.sqrt(np.mean(1.0 - self._r2())))

    def table(self, names: list[str]) -> list[dict[str, Any]]:
        """Return R2 and RMSE of each target."""
        if self.n_rows < 2:
            raise ValueError("R2 needs two rows or more, and there is one.")
        rmse = self._unit * np.sqrt(self._residual / self.n_rows)
        return [
            {"target": name, "rows": self.n_rows, "r2": float(r2), "rmse": float(error)}
            for name, r2, error in zip(names, self._r2(), rmse, strict=True)
        ]

    def _r2(self) -> Float64Array:
        # As in scikit-learn: a constant is predicted or it is not.
        constant = np.where(self._residual > 0, 1.0, 0.0)
        r2: Float64Array = 1.0 - np.divide(self._residual, self._total, out=constant, where=self._total > 0)
        return r2


def columns_of(y: Array) -> Float64Array:
    """Return values with one column a target."""
    return np.asarray(y, dtype=np.float64).reshape(len(y), -1)
