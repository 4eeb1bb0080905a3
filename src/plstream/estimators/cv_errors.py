"""Cross-validated errors for every number of components, from the states of the folds alone or from held-out scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self, TypeAlias

import numpy as np
from scipy import sparse

from .._core.schema import Boolean, Numbers, stored
from .._core.types import Float64Array
from ..rows import Block
from ..solvers import Scaling, held_out_errors, solve_scaled
from ..solvers.solution import Solution
from ..states import Gram, Moments, Sketch
from ..states.folds import all_but_one
from .cv_accuracy import expected_accuracies
from .heads import ClassifierHead, Head

# Errors that differ by less than this fraction (of the variance of y, or of the rows) are equal up to rounding.
_SAME = 1e-12
# Number of residuals computed together, which stay in cache.
_RESIDUALS_AT_A_TIME = 1 << 14

States: TypeAlias = Sequence[Gram | Sketch]


class FoldErrors(ABC):
    """Errors of each of F folds under the model of all other folds, and the number of components they select."""

    weight: Float64Array
    """Weights of the folds, of shape (F,)."""

    @property
    @abstractmethod
    def split_errors(self) -> Float64Array:
        """Errors of each fold, of shape (F, c); NaN for folds without rows."""

    @property
    def n_folds(self) -> int:
        """Number of folds that have rows."""
        return int(np.count_nonzero(self.weight))

    @property
    def errors(self) -> Float64Array:
        """Errors of all rows, of shape (c,)."""
        return self._mean(self.split_errors)

    @property
    def standard_errors(self) -> Float64Array:
        """Standard errors of ``errors``, from the differences between folds, of shape (c,)."""
        splits = self.split_errors
        if self.n_folds < 2:
            return np.full(splits.shape[1], np.nan)
        errors: Float64Array = np.sqrt(self._mean((splits - self._mean(splits)) ** 2) / (self.n_folds - 1))
        return errors

    def choice(self, rule: str) -> int:
        """Return the smallest number of components with the minimal error, or within a standard error of it."""
        if self.n_folds < 2:
            return 1
        errors = self.errors
        best = int(np.argmin(errors))
        allowed = self.standard_errors[best] if rule == "one-se" else 0.0
        return int(np.argmax(errors <= errors[best] + max(allowed, _SAME))) + 1

    def results(self) -> dict[str, Any]:
        """Return ``cv_results_``, in the form of scikit-learn's searches: the mean scores, and those of each fold."""
        errors = self.errors
        table: dict[str, Any] = {"n_components": np.arange(1, len(errors) + 1)}
        table |= {f"split{i}_test_score": 1.0 - split for i, split in enumerate(self.split_errors)}
        return table | {"mean_test_score": 1.0 - errors, "se_test_score": self.standard_errors}

    def _mean(self, values: Float64Array) -> Float64Array:
        """Return the weighted mean over the folds."""
        used = self.weight > 0
        shares = self.weight[used] / self.weight.sum()
        # Not a BLAS product: means of equal errors must be equal to the last bit.
        mean: Float64Array = np.einsum("f,f...->...", shares, values[used])
        return mean


@stored()
@dataclass(frozen=True)
class CrossValidation(FoldErrors):
    """Squared errors of responses."""

    rmse: Annotated[Float64Array, Numbers("f", "c", "q", nan=True)]
    """Root mean squared errors by fold, number of components and response; NaN for folds without rows."""
    weight: Annotated[Float64Array, Numbers("f", least=0)]
    y_deviation: Annotated[Float64Array, Numbers("q", least=0)]
    """Standard deviations of the responses."""
    y_unit: Annotated[Float64Array, Numbers("q", least=0)]
    """Units in which the errors of several responses are summed."""
    y_is_vector: Annotated[bool, Boolean()]

    @property
    def split_errors(self) -> Float64Array:
        """Squared errors of each fold as a share of the variance of y, of shape (F, c)."""
        variance = np.sum((self.y_deviation / self.y_unit) ** 2) or 1.0
        errors: Float64Array = np.sum((self.rmse / self.y_unit) ** 2, axis=2) / variance
        return errors

    @property
    def mean_rmse(self) -> Float64Array:
        """Root mean squared errors of all rows, of shape (c, q)."""
        mean: Float64Array = np.sqrt(self._mean((self.rmse / self.y_unit) ** 2)) * self.y_unit
        return mean

    def results(self) -> dict[str, Any]:
        """Return scores, and errors in the units of y."""

        def by_target(values: Float64Array) -> Float64Array:
            return values[..., 0] if self.y_is_vector else values

        mean_rmse = self.mean_rmse
        unexplained = np.divide(mean_rmse, self.y_deviation, out=np.zeros_like(mean_rmse), where=self.y_deviation > 0)
        return {
            **super().results(),
            **{f"split{i}_test_rmse": by_target(rmse) for i, rmse in enumerate(self.rmse)},
            "mean_test_rmse": by_target(mean_rmse),
            "q2": by_target(1.0 - unexplained**2),
        }


@stored()
@dataclass(frozen=True)
class ClassCrossValidation(FoldErrors):
    """Expected accuracies of labels."""

    accuracy: Annotated[Float64Array, Numbers("f", "c", nan=True)]
    """Expected accuracies by fold and number of components; NaN for folds without rows."""
    weight: Annotated[Float64Array, Numbers("f", least=0)]

    @property
    def split_errors(self) -> Float64Array:
        """Expected misclassification rates of each fold, of shape (F, c)."""
        errors: Float64Array = 1.0 - self.accuracy
        return errors


def validate_states(
    folds: States, total: Gram | Sketch, head: Head, n_components: int, *, scale: bool
) -> CrossValidation | ClassCrossValidation:
    """Return the errors of each fold under the model of all other folds, from the states alone."""
    at_most = min(n_components, total.shape[0], total.n_rows)
    weight = np.array([fold.weight for fold in folds])
    used = np.flatnonzero(weight).tolist()
    held_out = [folds[i] for i in used]
    errors: dict[int, Float64Array] = {}
    for i, state, training in zip(used, held_out, all_but_one(held_out), strict=True) if len(used) > 1 else ():
        if isinstance(head, ClassifierHead):
            solution = Solution.of(training, training, at_most, scale=scale, quiet=True)
            errors[i] = expected_accuracies(solution, training, state)
        else:
            scaling = Scaling.of(training, scale=scale)
            factors = solve_scaled(training, training, scaling, at_most, quiet=True)
            errors[i] = held_out_errors(factors, training, scaling, state, state)
    return validation_of(errors, weight, total, head, n_components, scale=scale)


def validation_of(
    errors: Mapping[int, Float64Array],
    weight: Float64Array,
    total: Moments,
    head: Head,
    n_components: int,
    *,
    scale: bool,
) -> CrossValidation | ClassCrossValidation:
    """Return the errors or accuracies of all folds. Past the last component of a model, its last value is repeated."""
    of_labels = isinstance(head, ClassifierHead)
    found = np.full((len(weight), n_components, *(() if of_labels else (head.n_targets,))), np.nan)
    for fold, values in errors.items():
        found[fold] = values[np.arange(n_components).clip(max=len(values) - 1)]
    if isinstance(head, ClassifierHead):
        return ClassCrossValidation(found, weight)
    return CrossValidation(found, weight, *y_units(total, scale=scale), head.is_vector)


def y_units(total: Moments, *, scale: bool) -> tuple[Float64Array, Float64Array]:
    """Return the standard deviations of the responses, and the units in which their errors are summed."""
    deviation: Float64Array = np.sqrt(total.y_squares / total.weight)
    unit = deviation if scale else np.full_like(deviation, deviation.max())
    return deviation, np.where(unit > 0, unit, 1.0)


@dataclass
class SquaredErrors:
    """Sums of squared errors of some held-out rows, for 0, 1, 2, ... components, of shape (c + 1, q)."""

    sums: Float64Array

    @classmethod
    def of(
        cls, solution: Solution, projection: Float64Array, training: Moments, held_out: Moments, unit: Float64Array
    ) -> Callable[[Float64Array, Block], SquaredErrors]:
        """Return a function that computes the sums from the scores of a block, centred on the mean of its fold."""
        c = solution.n_components
        loads = solution.y_loadings[:, :c] * (solution.y_scale / unit)[:, None]
        offset = training.mean_differences(held_out)[0] @ projection
        step = max(1, _RESIDUALS_AT_A_TIME // ((c + 1) * len(unit)))

        def summarise(scores: Float64Array, block: Block) -> SquaredErrors:
            centred, weight = ((block.Y - training.y_origin) - training.y_offset) / unit, block.weights
            sums = np.zeros((c + 1, len(unit)))
            for first in range(0, block.n_rows, step):
                rows = slice(first, first + step)
                residuals = np.concatenate(
                    [centred[None, rows], (scores[rows] + offset).T[:, :, None] * loads.T[:, None]]
                )
                np.subtract.accumulate(residuals, axis=0, out=residuals)
                sums += weight[rows] @ np.square(residuals, out=residuals)
            return cls(sums)

        return summarise

    def merge(self, other: Self) -> None:
        """Add the sums of other rows."""
        self.sums += other.sums


@dataclass
class ClassSums:
    """Sums of the scores of some held-out rows by class, of shape (c, n_classes), and sums of their products."""

    sums: Float64Array
    products: Float64Array

    @classmethod
    def of(cls, scores: Float64Array, block: Block) -> Self:
        """Return the sums of a block, given its scores by :func:`unit_rotations`, centred on the mean of the fold."""
        weighted = scores if block.weight is None else scores * block.weight[:, None]
        shape = block.n_rows, block.n_classes
        members = sparse.csr_array((np.ones(block.n_rows), block.classes, np.arange(block.n_rows + 1)), shape=shape)
        return cls((members.T @ weighted).T, weighted.T @ scores)

    def merge(self, other: Self) -> None:
        """Add the sums of other rows."""
        self.sums += other.sums
        self.products += other.products
