"""Exact cross-validation of data that can be read again, by the fastest method for its shape.

The model that leaves out a fold is solved from Gram matrices of the folds, or from reads shared by all these models.
The errors come from one more read, in which each row is scored by the model that leaves out its fold.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.threads import ordered_map, single_threaded_blas
from .._core.types import Float64Array
from ..pls import warn_of_rank
from ..rows import TrainingRows
from ..solvers import FoldGrams, FoldReads
from ..solvers.completion import FactorModel
from ..solvers.joint import joint_solutions
from ..solvers.solution import Solution, require_resolution
from ..states import Folds, Gram, Moments
from ..states.moments import plain_moments
from .cv_accuracy import accuracies_of_scores, unit_rotations
from .cv_errors import ClassCrossValidation, ClassSums, CrossValidation, SquaredErrors, validation_of, y_units
from .cv_fitted import FittedFolds, FoldRemains
from .cv_folds import FoldAssignment
from .heads import ClassifierHead, Head
from .settings import Settings, buffered, grams_fit

# Gram matrices are not used if their rounding errors may change results by more than this.
_LARGEST_ROUNDING = 1e-9
# Time per multiplication relative to that of a Gram matrix, of rows in memory and others: of products of rows with one
# column per fold, and of merges of Gram matrices and their products with vectors, which memory limits.
_SLOWER_IN_READS = 2, 4
_SLOWER_IN_STATES = 12, 1
# Multiplications of all Gram matrices that take several times as long as starting a thread.
_WORK_WORTH_THREADS = 1 << 28
# Data up to this size is solved by one thread.
_SINGLE_THREADED_BYTES = 32 << 20
# Number of rows assigned to folds at a time.
_ROWS_AT_A_TIME = 1 << 20


def fit_exactly(
    rows: TrainingRows,
    head: Head,
    assignment: FoldAssignment,
    settings: Settings,
    rule: str,
    absorbed: Callable[[], Folds[Any]],
) -> FittedFolds:
    """Fit rows that can be read again; ``absorbed`` returns the streaming states of the folds, from one read."""
    assert rows.n_rows is not None
    assignment.require_length(rows.n_rows)
    used = _used_folds(assignment, rows.n_rows)
    if len(used) < 2:
        raise ValueError(in_one_fold(rows.n_rows))

    def folds_of(first: int, n_rows: int) -> NDArray[np.int64]:
        numbers = assignment.folds(first, first, n_rows)
        return numbers if len(used) == assignment.n_folds else np.searchsorted(used, numbers)

    # BLAS threads do not pay off for small products, and spin on the cores that the next read needs.
    small = 8 * rows.n_rows * rows.n_columns <= _SINGLE_THREADED_BYTES
    with single_threaded_blas() if small or (rows.compiled and not rows.in_memory) else nullcontext():
        fit = _Fit(rows, head, settings, folds_of, len(used))
        stream = fit.by_grams(absorbed, assignment.n_folds, used) if fit.grams_are_cheaper else None
        if stream is None:
            fit.by_reads()
        remains = None if stream is not None else fit.remains(assignment.n_folds, used)
    validation = fit.validation(assignment.n_folds, used)
    n_components = validation.choice(rule)
    solution = fit.total.first(min(n_components, fit.most))
    if solution.n_components < n_components:
        y_left = solution.y_total - float(solution.factors.y_explained.sum())
        warn_of_rank(
            solution.n_components, n_components, y_is_explained=y_left <= fit.reads.rounding * solution.y_total
        )
    return FittedFolds(
        head,
        "multipass" if stream is None else "gram",
        settings.n_components,
        settings.scale,
        stream,
        fit.reads.training[-1] if stream is None else None,
        solution,
        n_reads=max(1, fit.reads.n_reads),
        assigned_by=assignment.by,
        rule=rule,
        validation=validation,
        remains=remains,
        completing=FactorModel.of(fit.total) if settings.missing == "model" else None,
    )


def in_one_fold(n_rows: int) -> str:
    """Return the error message for rows that are all in one fold."""
    return (
        f"All rows (n_samples={n_rows}) are in one fold, but cross-validation requires at least two: pass more rows, "
        "or other groups."
    )


def _used_folds(assignment: FoldAssignment, n_rows: int) -> NDArray[np.int64]:
    """Return the folds that have rows."""
    n_rows_of = np.zeros(assignment.n_folds, dtype=np.int64)
    for first in range(0, n_rows, _ROWS_AT_A_TIME):
        folds = assignment.folds(first, first, min(_ROWS_AT_A_TIME, n_rows - first))
        n_rows_of += np.bincount(folds, minlength=assignment.n_folds)
    return np.flatnonzero(n_rows_of)


class _Fit:
    """An exact fit in progress: models and errors of all folds that have rows."""

    def __init__(
        self, rows: TrainingRows, head: Head, settings: Settings, folds_of: Callable[..., Any], n_folds: int
    ) -> None:
        assert rows.n_rows is not None
        self.rows = rows
        self.head = head
        self.settings = settings
        self.n_rows, self.n_folds = rows.n_rows, n_folds
        self.folds_of = folds_of
        self.most = min(settings.n_components, rows.n_columns, rows.n_rows)
        self.reads: FoldReads
        self.total: Solution
        self.models: dict[int, Solution] = {}
        self.errors: dict[int, Float64Array] = {}

    @property
    def grams_are_cheaper(self) -> bool:
        """Whether Gram matrices of the folds take less time than reads: see the table in how_it_works.md."""
        n, m, folds = self.n_rows, self.rows.n_columns, self.n_folds
        if not grams_fit(m, folds):
            return False
        others = not self.rows.in_memory
        by_grams = n * m**2 + _SLOWER_IN_STATES[others] * 4 * folds * m**2 * (log2(folds) + 1 + self.most)
        return by_grams < _SLOWER_IN_READS[others] * 4 * n * m * (folds + 1) * self.most

    def by_grams(self, absorbed: Callable[[], Folds[Any]], n_folds: int, used: NDArray[np.int64]) -> Folds[Any] | None:
        """Solve by Gram matrices and return their stream, or return None if rounding errors are too large."""
        if self.rows.in_memory:
            self.reads = self._new_reads(1)
            run = ordered_map if self.n_rows * self.rows.n_columns**2 > _WORK_WORTH_THREADS else map
            grams = list(run(lambda fold: Gram.of(self.reads.folds[fold], self.reads.held[fold]), range(self.n_folds)))
            states = dict(zip(used.tolist(), grams, strict=True))
            shape, of_labels = (self.rows.n_columns, self.rows.n_targets), isinstance(self.head, ClassifierHead)
            stream: Folds[Any] = Folds(
                buffered(states[fold] if fold in states else Gram(*shape), of_labels=of_labels)
                for fold in range(n_folds)
            )
        else:
            stream = absorbed().without_waiting()
            grams = [stream.streams[fold].state for fold in used]
            self.reads = self._new_reads(2, list(map(plain_moments, grams)))
        return stream if self._solve(FoldGrams(grams), _LARGEST_ROUNDING) else None

    def by_reads(self) -> None:
        """Solve by reading the rows again, once for each component of all models together."""
        if not hasattr(self, "reads"):
            self.reads = self._new_reads(self.most + 3)
        self._solve(self.reads, np.inf)

    def _new_reads(self, planned: int, folds: list[Any] | None = None) -> FoldReads:
        reads = FoldReads(self.rows, self.folds_of, self.n_folds, planned, folds)
        if folds is None:
            reads.read_folds()
        require_resolution(reads.training[-1])
        return reads

    def _solve(self, gram: FoldGrams | FoldReads, largest_rounding: float) -> bool:
        """Set the models and errors, and return whether rounding errors are small enough."""
        for solutions in joint_solutions(gram.training, gram, self.most, scale=self.settings.scale):
            if largest_rounding < np.inf and not all(
                solution.n_components == self.most
                and solution.factors.rounding_bound(Gram.rounding, solution.x_total, solution.y_total)
                <= largest_rounding
                for solution in solutions.values()
            ):
                return False
            if self.n_folds in solutions:
                self.total = solutions.pop(self.n_folds)
            if solutions:
                self._hold_out(solutions)
            if not self.rows.in_memory:
                self.models |= solutions
        return True

    def _hold_out(self, solutions: dict[int, Solution]) -> None:
        """Set the errors of some folds, given the models that leave them out."""
        folds, training = self.reads.folds, self.reads.training
        if isinstance(self.head, ClassifierHead):
            sums = self.reads.held_out(
                {fold: unit_rotations(solution) for fold, solution in solutions.items()},
                lambda _, scores, block: ClassSums.of(scores, block),
            )
            for fold, solution in solutions.items():
                self.errors[fold] = accuracies_of_scores(
                    solution, training[fold], folds[fold], sums[fold].sums, sums[fold].products
                )
            return
        unit = y_units(training[-1], scale=self.settings.scale)[1]
        projections = {fold: solution.projection(solution.n_components) for fold, solution in solutions.items()}
        summaries = {
            fold: SquaredErrors.of(solution, projections[fold], training[fold], folds[fold], unit)
            for fold, solution in solutions.items()
        }
        squares = self.reads.held_out(projections, lambda fold, scores, block: summaries[fold](scores, block))
        for fold, found in squares.items():
            rmse = np.sqrt(found.sums / folds[fold].weight) * unit
            # The first error is that of the model without components.
            self.errors[fold] = rmse[min(1, len(rmse) - 1) :]

    def validation(self, n_folds: int, used: NDArray[np.int64]) -> CrossValidation | ClassCrossValidation:
        """Return the errors of all folds and numbers of components."""
        weight = np.zeros(n_folds)
        weight[used] = [fold.weight for fold in self.reads.folds]
        errors = {int(used[fold]): found for fold, found in self.errors.items()}
        total, scale = self.reads.training[-1], self.settings.scale
        return validation_of(errors, weight, total, self.head, self.settings.n_components, scale=scale)

    def remains(self, n_folds: int, used: NDArray[np.int64]) -> FoldRemains:
        """Return what is kept of each fold after the fit, from which training can continue."""
        m, q = self.rows.n_columns, self.rows.n_targets
        kept, rotations, models = self.reads.held, None, []
        if not self.rows.in_memory:
            rotations = np.ascontiguousarray(unit_rotations(self.total))
            kept = [_rows_acting_as(action, rotations) for action in self.reads.fold_actions(rotations)]
            models = [self.models[at] for at in range(len(used))]

        def of_every_fold(of_used: list[Any], of_empty: Any) -> tuple[Any, ...]:
            values = dict(zip(used.tolist(), of_used, strict=True))
            return tuple(values.get(fold, of_empty) for fold in range(n_folds))

        return FoldRemains(
            of_every_fold(self.reads.folds, Moments(m, q)),
            of_every_fold(kept, np.empty((0, m))),
            rotations,
            of_every_fold(models, self.total) if models else (),
        )


def _rows_acting_as(action: Float64Array, R: Float64Array) -> Float64Array:
    """Return rows S with S'S R = G R for a Gram matrix G, given G R: S'S = G R (R'G R)^+ R'G."""
    squares, vectors = np.linalg.eigh(R.T @ action)
    held = squares > Gram.rounding * squares.max(initial=0.0)
    rows: Float64Array = (action @ (vectors[:, held] / np.sqrt(squares[held]))).T[::-1]
    return np.ascontiguousarray(rows)
