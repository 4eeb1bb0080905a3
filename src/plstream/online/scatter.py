"""Exact discriminants from the matrix of the scatter within classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import blas, lapack

from .._core.compiled import copied
from .._core.labels import TargetEncoding
from .._core.schema import Number, Numbers, stored
from .._core.types import Array, Float64Array, Rows
from .state import unit_of

# Rows per product: enough that adding to the scatter is comparatively cheap.
BLOCK_ROWS = 512
# Minimum variance within classes, relative to the largest, for features scaled by their deviation within classes.
LEAST_VARIANCE = 1e-9


class SolvedClasses(NamedTuple):
    """All discriminants of some classes, relative to an origin and in units."""

    origin: Float64Array
    unit: float
    offsets: Float64Array
    """Means of the classes, one per row."""
    shares: Float64Array
    """Shares of the classes in the rows."""
    directions: Float64Array
    """Discriminants, as columns."""
    ratios: Float64Array
    """Their ratios of variances."""


@stored(
    rules={
        "fewer rows are buffered than a block has": lambda its: len(its.waiting) < BLOCK_ROWS,
        "buffered rows are of known classes": lambda its: its.waiting_classes.max(initial=0) < len(its.counts),
    },
)
@dataclass
class WithinScatter:
    """Counts and means of K classes, and the scatter of rows about the mean of their class.

    Rows are added in blocks cut by the row count since the start, so sums do not depend on the chunks of rows. Rows are
    buffered until a block is complete.
    """

    origin: Annotated[Float64Array, Numbers("m")]
    """The first row, to which means are relative."""
    unit: Annotated[float, Number(0)]
    """Factor of differences from it, as in RunningMean."""
    counts: Annotated[Float64Array, Numbers("k", least=0, most=2.0**53)]
    """Number of rows of each class."""
    offsets: Annotated[Float64Array, Numbers("k", "m")]
    """Means of the classes, minus the origin, in units."""
    lower: Annotated[Float64Array, Numbers("m", "m", any_order=True)]
    """The lower triangle of the scatter, in units."""
    waiting: Annotated[Float64Array, Numbers("w?", "m")]
    """Buffered rows, minus the origin, in units."""
    waiting_classes: Annotated[Array, Numbers("w?", dtypes=("int64",), least=0)]
    """Their class indices."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum()) + len(self.waiting)

    def learn(self, X: Rows, numbers: Float64Array, encoding: TargetEncoding | None) -> None:
        """Learn from rows and their class indices; raise ValueError if numbers are no longer finite."""
        start = 0
        with np.errstate(over="ignore", invalid="ignore"):
            while start < X.shape[0]:
                rows = slice(start, start + BLOCK_ROWS - len(self.waiting))
                part = X[rows].toarray() if sparse.issparse(X) else X[rows]
                if not self.n_rows:
                    self.origin[:] = part[0]
                differences = np.subtract(part, self.origin, order="C")
                self.unit = self.unit or unit_of(differences)
                differences *= self.unit
                self.waiting = np.concatenate([self.waiting, differences]) if len(self.waiting) else differences
                self.waiting_classes = np.concatenate([self.waiting_classes, numbers[rows, 0].astype(np.int64)])
                if len(self.waiting) == BLOCK_ROWS:
                    self._add_waiting()
                start = rows.stop
            squares = self.lower.diagonal() + np.square(self.waiting).sum(axis=0)
        if not (np.isfinite(squares).all() and np.isfinite(self.offsets).all()):
            raise ValueError("The scatter is no longer finite: scale the features to unit variance.")

    def settled(self) -> WithinScatter:
        """Return the scatter with all buffered rows added; this object is unchanged."""
        if not len(self.waiting):
            return self
        state = copied(self)
        state._add_waiting()
        return state

    def _add_waiting(self) -> None:
        """Add buffered rows: their scatter about their own means, and that of these means (Chan, Golub and LeVeque)."""
        order = np.argsort(self.waiting_classes, kind="stable")
        present, starts, n_new = np.unique(self.waiting_classes[order], return_index=True, return_counts=True)
        rows = self.waiting[order]
        self.waiting, self.waiting_classes = self.waiting[:0].copy(), self.waiting_classes[:0].copy()
        means = np.add.reduceat(rows, starts, axis=0) / n_new[:, None]
        rows -= np.repeat(means, n_new, axis=0)
        share = n_new / (self.counts[present] + n_new)
        moves = means - self.offsets[present]
        between = np.sqrt(self.counts[present] * share)[:, None] * moves
        # BLAS is column-major, so the lower triangle is its upper one.
        both = np.concatenate([rows, between])
        self.lower = blas.dsyrk(1.0, both.T, beta=1.0, c=self.lower.T, overwrite_c=True).T
        self.offsets[present] += share[:, None] * moves
        self.counts[present] += n_new


def solve_scatter(state: WithinScatter, shrinkage: float) -> SolvedClasses:
    """Return the discriminants of a settled scatter."""
    n_rows, n_features = max(1, state.n_rows), len(state.origin)
    priors = state.counts / n_rows
    lower = state.lower / n_rows
    covariance = np.tril(lower) + np.tril(lower, -1).T
    if shrinkage:
        sphere = shrinkage * float(np.trace(covariance)) / n_features
        covariance *= 1 - shrinkage
        covariance.flat[:: n_features + 1] += sphere
    between = np.sqrt(priors)[:, None] * (state.offsets - priors @ state.offsets)
    solved = _discriminants(covariance, between.T)
    return SolvedClasses(state.origin, state.unit or 1.0, state.offsets, priors, *solved)


def _discriminants(within: Float64Array, between: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Solve bb' g = ratio within g, with g'within g = 1, for directions g and ratios; b has one column per class.

    ``within`` is overwritten. There is one direction per column of b; those without a ratio are zero.
    """
    deviations = np.sqrt(within.diagonal())
    totals = np.sqrt(within.diagonal() + np.square(between).sum(axis=1))
    # Smaller deviations within classes are rounding errors.
    scale = np.where(deviations > 1e-12 * totals, deviations, totals)
    scale[scale == 0] = 1.0
    within /= scale[:, None] * scale
    between = between / scale[:, None]
    factor, is_singular = lapack.dpotrf(within, lower=1)
    if not is_singular:
        reciprocal_condition, _ = lapack.dpocon(factor, np.abs(within).sum(axis=0).max(), uplo="L")
        is_singular = reciprocal_condition < LEAST_VARIANCE
    if is_singular:
        variances, axes = linalg.eigh(within)
        axes = axes / np.sqrt(np.maximum(variances, LEAST_VARIANCE * (variances[-1] or 1.0)))
        whitened = axes.T @ between
    else:
        whitened = linalg.solve_triangular(factor, between, lower=True)
    U, s, _ = linalg.svd(whitened, full_matrices=False)
    directions = axes @ U if is_singular else linalg.solve_triangular(factor, U, lower=True, trans="T")
    there_is = s > max(1e-12, 1e-10 * s[0])
    return directions / scale[:, None] * there_is, np.square(s) * there_is
