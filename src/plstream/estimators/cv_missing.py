"""Cross-validation with missing values: one fit per fold, whose model completes the held-out rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Annotated, Any

import numpy as np

from .._core.errors import counted
from .._core.projection import centred_product
from .._core.schema import Object, stored
from .._core.types import Float64Array
from .._core.warnings import warn_user
from ..rows import Block, TrainingRows
from ..solvers.completion import FactorModel
from ..solvers.solution import Solution
from ..states import Folds, Moments
from ..states.moments import moments_of
from .cv_accuracy import accuracies_of_scores, unit_rotations
from .cv_errors import ClassSums, validation_of, y_units
from .cv_folds import FoldAssignment
from .fitted import Fitted
from .heads import ClassifierHead, Head
from .settings import Settings
from .training import fit_completed_rows


@stored()
@dataclass(frozen=True)
class FoldModel:
    """The model of all rows outside a fold, and the factor model that completes the fold."""

    solution: Annotated[Solution, Object(Solution, m="m", q="q")]
    completing: Annotated[FactorModel, Object(FactorModel, m="m", q="q")]

    def first(self, n_components: int) -> Solution:
        """Return the solution with the first components, or with all if there are fewer."""
        return self.solution.first(min(n_components, self.solution.x_weights.shape[1]))


class RowsOfFolds(TrainingRows):
    """The rows of one fold if ``held_out``, else of all others. Rows without any response are left out."""

    def __init__(
        self, rows: TrainingRows, assignment: FoldAssignment, fold: int, n_rows: int, *, held_out: bool
    ) -> None:
        self.rows, self.assignment, self.fold, self.held_out = rows, assignment, fold, held_out
        self.n_rows, self.allow_missing = n_rows, rows.allow_missing
        self.n_columns, self.n_targets, self.n_classes = rows.n_columns, rows.n_targets, rows.n_classes
        self.compiled, self.in_memory, self._under_way = rows.compiled, rows.in_memory, rows._under_way

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Read the rows from the beginning."""
        assert start == 0
        for block, folds in self.assignment.blocks(self.rows.blocks(), labelled=True):
            chosen = np.flatnonzero((folds == self.fold) == self.held_out)
            if len(chosen):
                yield block.part(chosen)

    def require_finite(self) -> None:
        """Raise ValueError for infinity, which is not a missing value."""
        self.rows.require_finite()


def fit_completed(
    rows: TrainingRows,
    head: Head,
    assignment: FoldAssignment,
    settings: Settings,
    model: Any,
    stream: Folds[Any],
) -> dict[str, Any]:
    """Fit rows with missing values that can be read again, once per fold and once for all rows.

    ``stream`` holds the streaming states of the folds, with which ``partial_fit`` continues. The result is a dict of
    the other attributes of a FittedFolds.
    """
    counts = np.array([one.n_rows for one in stream.streams])
    own = replace(settings, parameter="n_components", solver="auto")
    errors: dict[int, Float64Array] = {}
    models: dict[int, FoldModel] = {}
    weight = np.zeros(len(counts))
    total = fit_completed_rows(rows, head, _at_most(own, rows, int(counts.sum())), model)
    unit = y_units(total.current(), scale=settings.scale)[1]
    for fold in np.flatnonzero(counts).tolist():
        training = RowsOfFolds(rows, assignment, fold, int(counts.sum() - counts[fold]), held_out=False)
        where = f"outside fold {fold}"
        fitted = fit_completed_rows(training, head, _at_most(own, rows, training.n_rows or 0), model, where=where)
        held_out = RowsOfFolds(rows, assignment, fold, int(counts[fold]), held_out=True)
        models[fold] = FoldModel(fitted.solved(), fitted.factor_model())
        find = _accuracies if isinstance(head, ClassifierHead) else _errors
        errors[fold], weight[fold] = find(fitted, held_out, unit)
    validation = validation_of(errors, weight, total.current(), head, settings.n_components, scale=settings.scale)
    n_components = validation.choice(model.rule)
    whole = FoldModel(total.solved(), total.factor_model())
    solution = whole.first(n_components)
    if solution.n_components < n_components:
        in_common = counted(solution.n_components, "component")
        warn_user(f"X and y have only {in_common} in common, fewer than the number chosen.")
    return {
        "solution": solution,
        "validation": validation,
        "completing": whole.completing,
        # The model that leaves out an empty fold is the model of all rows.
        "fold_models": tuple(models.get(fold, whole) for fold in range(len(counts))),
        "n_reads": total.n_reads,
    }


def _at_most(settings: Settings, rows: TrainingRows, n_rows: int) -> Settings:
    """Return settings with no more components than the data has."""
    return replace(settings, n_components=min(settings.n_components, rows.n_columns, n_rows))


def _errors(fitted: Fitted, held_out: TrainingRows, unit: Float64Array) -> tuple[Float64Array, float]:
    """Return the root mean squared errors over known responses for 1, 2, ... components, and the weight."""
    solution, completing = fitted.solved(), fitted.factor_model()
    c, q = max(1, solution.n_components), held_out.n_targets
    squares, weights, total = np.zeros((c, q)), np.zeros(q), 0.0
    loads = solution.y_loadings[:, :c] * (solution.y_scale / unit)[:, None]
    for block in held_out.blocks():
        weight = block.weights
        known = ~np.isnan(block.Y)
        residual = np.where(known, (block.Y - solution.y_mean) / unit, 0.0)
        scores: Any = centred_product(completing.completed(block.X), solution.x_mean, solution.projection(c))
        for k in range(c):
            residual -= known * np.outer(scores[:, k], loads[:, k])
            squares[k] += weight @ residual**2
        weights += weight @ known
        total += float(weight.sum())
    return np.sqrt(squares / np.where(weights > 0, weights, 1.0)) * unit, total


def _accuracies(fitted: Fitted, held_out: TrainingRows, _unit: Float64Array) -> tuple[Float64Array, float]:
    """Return the expected accuracies for 1, 2, ... components, and the weight."""
    solution, completing = fitted.solved(), fitted.factor_model()

    def blocks() -> Iterator[Block]:
        return (block._replace(X=completing.completed(block.X)) for block in held_out.blocks())

    moments: Moments = reduce(lambda total, one: total.merge(one), map(moments_of, blocks()))
    rotations = unit_rotations(solution)
    shape = rotations.shape[1], held_out.n_classes
    sums = ClassSums(np.zeros(shape), np.zeros((shape[0], shape[0])))
    for block in blocks():
        scores: Any = centred_product(block.X, moments.x_mean, rotations)
        sums.merge(ClassSums.of(scores, block))
    accuracies = accuracies_of_scores(solution, fitted.current(), moments, sums.sums, sums.products)
    return accuracies, moments.weight
