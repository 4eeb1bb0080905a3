"""Cross-validated errors of all numbers of components, from the states of the folds alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._types import Float64Array
from ..solvers import Scaling, held_out_errors, solve_scaled
from ..statistics import Gram, Sketch
from ..statistics.folds import all_but_one

# Errors that differ by less, as a share of the variance of y, are the same but for rounding.
_SAME = 1e-12


@dataclass(frozen=True)
class CrossValidation:
    """Errors on every fold of a model of the other folds.

    Attributes
    ----------
    rmse : ndarray of shape (F, c, q)
        Root mean squared errors of each fold, number of components and response; NaN where there is no fold, or no
        other one.
    weight : ndarray of shape (F,)
        Weights of the folds.
    y_deviation : ndarray of shape (q,)
        Standard deviations of the responses.
    y_unit : ndarray of shape (q,)
        What errors of the responses are divided by before they are added up.
    """

    rmse: Float64Array
    weight: Float64Array
    y_deviation: Float64Array
    y_unit: Float64Array

    @classmethod
    def of(cls, folds: Sequence[Gram | Sketch], total: Gram | Sketch, n_components: int, *, scale: bool) -> Self:
        """Solve for all rows but those of each fold, and apply that to the fold."""
        m, q = total.shape
        rmse = np.full((len(folds), n_components, q), np.nan)
        weight = np.array([fold.weight for fold in folds])
        used = np.flatnonzero(weight).tolist()
        if len(used) > 1:
            at_most = min(n_components, m, total.n_rows)
            states = [folds[i] for i in used]
            for i, held_out, training in zip(used, states, all_but_one(states), strict=True):
                scaling = Scaling.of(training, scale=scale)
                factors = solve_scaled(training, training, scaling, at_most, quiet=True)
                rmse[i, :at_most] = held_out_errors(factors, training, scaling, held_out, held_out)
                rmse[i, at_most:] = rmse[i, at_most - 1]
        deviation = np.sqrt(total.y_squares / total.weight)
        unit = deviation if scale else np.full(q, deviation.max())
        return cls(rmse, weight, deviation, np.where(unit > 0, unit, 1.0))

    @property
    def n_folds(self) -> int:
        """Folds that have rows."""
        return int(np.count_nonzero(self.weight))

    @property
    def split_errors(self) -> Float64Array:
        """Squared errors of each fold as a share of the variance of y, of shape (F, c)."""
        variance = np.sum((self.y_deviation / self.y_unit) ** 2) or 1.0
        errors: Float64Array = np.sum((self.rmse / self.y_unit) ** 2, axis=2) / variance
        return errors

    @property
    def errors(self) -> Float64Array:
        """The same of all rows, of shape (c,)."""
        return self._mean(self.split_errors)

    @property
    def standard_errors(self) -> Float64Array:
        """Standard errors of these, from how the folds differ, of shape (c,)."""
        if self.n_folds < 2:
            return np.full(self.rmse.shape[1], np.nan)
        errors: Float64Array = np.sqrt(self._mean((self.split_errors - self.errors) ** 2) / (self.n_folds - 1))
        return errors

    @property
    def mean_rmse(self) -> Float64Array:
        """Root mean squared errors of all rows, of shape (c, q)."""
        mean: Float64Array = np.sqrt(self._mean((self.rmse / self.y_unit) ** 2)) * self.y_unit
        return mean

    def choice(self, rule: str) -> int:
        """Return the least number of components that is as good as the best, or within a standard error of it."""
        if self.n_folds < 2:
            return 1
        errors = self.errors
        best = int(np.argmin(errors))
        allowed = self.standard_errors[best] if rule == "one-se" else 0.0
        return int(np.argmax(errors <= errors[best] + max(allowed, _SAME))) + 1

    def results(self, *, y_is_vector: bool) -> dict[str, Any]:
        """Return all of that in the manner of scikit-learn's searches."""

        def by_target(values: Float64Array) -> Float64Array:
            return values[..., 0] if y_is_vector else values

        mean_rmse, scores = self.mean_rmse, 1.0 - self.errors
        unexplained = np.divide(mean_rmse, self.y_deviation, out=np.zeros_like(mean_rmse), where=self.y_deviation > 0)
        table: dict[str, Any] = {"n_components": np.arange(1, len(scores) + 1)}
        for i, errors in enumerate(self.split_errors):
            table[f"split{i}_test_score"] = 1.0 - errors
            table[f"split{i}_test_rmse"] = by_target(self.rmse[i])
        return table | {
            "mean_test_score": scores,
            "se_test_score": self.standard_errors,
            "mean_test_rmse": by_target(mean_rmse),
            "q2": by_target(1.0 - unexplained**2),
        }

    def _mean(self, values: Float64Array) -> Float64Array:
        """Return the mean over the folds, each as its weight."""
        used = self.weight > 0
        mean: Float64Array = np.tensordot(self.weight[used] / self.weight.sum(), values[used], 1)
        return mean
