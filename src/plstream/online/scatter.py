"""Exact discriminants from the matrix of the scatter within classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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
    """All discriminants of some classes, relative to an origin and in units.

    Attributes
    ----------
    origin, unit : ndarray of shape (m,) and float
        Origin and scale of all other attributes.
    offsets : ndarray of shape (K, m)
        Means of the classes.
    shares : ndarray of shape (K,)
        Shares of the classes in the rows.
    directions, ratios : ndarrays of shape (m, number) and (number,)
        Discriminants and their ratios of variances.
    """

    origin: Float64Array
    unit: float
    offsets: Float64Array
    shares: Float64Array
    directions: Float64Array
    ratios: Float64Array


@stored(
    {
        "origin": Numbers("m"),
        "unit": Number(0),
        "counts": Numbers("k", least=0, most=2.0**53),
        "offsets": Numbers("k", "m"),
        "lower": Numbers("m", "m", any_order=True),
        "waiting": Numbers("w?", "m"),
        "waiting_classes": Numbers("w?", dtypes=("int64",), least=0),
    },
    {
        "fewer rows are buffered than a block has": lambda its: len(its.waiting) < BLOCK_ROWS,
        "buffered rows are of known classes": lambda its: its.waiting_classes.max(initial=0) < len(its.counts),
    },
)
@dataclass
class WithinScatter:
    """Counts and means of classes, and the scatter of rows about the mean of their class.

    Rows are added in blocks cut by the row count since the start, so sums do not depend on the chunks of rows. Rows are
    buffered until a block is complete.

    Attributes
    ----------
    origin : ndarray of shape (m,)
        The first row, to which means are relative.
    unit : float
        Factor of differences from it, as in RunningMean.
    counts : ndarray of shape (K,)
        Number of rows of each class.
    offsets : ndarray of shape (K, m)
        Means of the classes, minus the origin, in units.
    lower : ndarray of shape (m, m)
        The lower triangle of the scatter, in units.
    waiting : ndarray of shape (n_waiting, m)
        Buffered rows, minus the origin, in units.
    waiting_classes : ndarray of shape (n_waiting,)
        Their class indices.
    """

    origin: Float64Array
    unit: float
    counts: Float64Array
    offsets: Float64Array
    lower: Float64Array
    waiting: Float64Array
    waiting_classes: Array

    @classmethod
    def of(cls, n_classes: int, n_features: int) -> WithinScatter:
        """Return the scatter of no rows."""
        return cls(
            origin=np.zeros(n_features),
            unit=0.0,
            counts=np.zeros(n_classes),
            offsets=np.zeros((n_classes, n_features)),
            lower=np.zeros((n_features, n_features)),
            waiting=np.empty((0, n_features)),
            waiting_classes=np.empty(0, np.int64),
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum()) + len(self.waiting)

    def learn(self, X: Rows, numbers: Float64Array, encoding: TargetEncoding | None) -> None:
        """Learn from rows and their class indices; raise ValueError if numbers are no longer finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            self._learn(X, numbers)

    def _learn(self, X: Rows, numbers: Float64Array) -> None:
        start = 0
        while start < X.shape[0]:
            rows = slice(start, start + BLOCK_ROWS - len(self.waiting))
            part = X[rows].toarray() if sparse.issparse(X) else X[rows]
            if not self.n_rows:
                self.origin[:] = part[0]
            differences = np.subtract(part, self.origin, order="C")
            self.unit = self.unit or unit_of(differences)
            differences *= self.unit
            self._take_in(differences, numbers[rows, 0].astype(np.int64))
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

    def _take_in(self, rows: Float64Array, labels: Array) -> None:
        """Buffer rows until there is a block."""
        if len(self.waiting):
            rows, labels = np.concatenate([self.waiting, rows]), np.concatenate([self.waiting_classes, labels])
        self.waiting, self.waiting_classes = rows, labels
        if len(rows) == BLOCK_ROWS:
            self._add_waiting()

    def _add_waiting(self) -> None:
        self._add(self.waiting, self.waiting_classes)
        self.waiting, self.waiting_classes = self.waiting[:0].copy(), self.waiting_classes[:0].copy()

    def _add(self, rows: Float64Array, labels: Array) -> None:
        """Add rows: their scatter about their own means, and that of these means (Chan, Golub and LeVeque)."""
        order = np.argsort(labels, kind="stable")
        present, starts, n_new = np.unique(labels[order], return_index=True, return_counts=True)
        rows = rows[order]
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
