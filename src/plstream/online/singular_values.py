"""Singular value decompositions of a cross-covariance, updated by rows: exactly, or by projected gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .._core.compiled import compiled
from .._core.schema import Count, Numbers, stored
from .._core.types import Float64Array
from .gradients import RANK, ROWS_BETWEEN_ORTHONORMALISATIONS, GradientSteps, SingularTriplets, aligned, in_short_calls
from .loops import (
    NO_LENGTH,
    add_outer,
    is_finite,
    orthonormalise,
    outer_weight,
    scale_into,
    scale_rows,
    split_off,
    step_size,
    sum_of_squares,
    turn_covariance,
)
from .state import Recursion, Tile

# Features rotated at a time: those of all vectors stay in L1 cache.
_BLOCK_FEATURES = 256
# A smaller singular value, relative to the largest, is a rounding error.
_NO_VALUE = 1e-14


@stored(rules=RANK)
@dataclass
class IncrementalSVD(Recursion):
    """Largest singular values of the sum of xy', U'diag(s)V, with singular vectors as rows of U and V."""

    U: Annotated[Float64Array, Numbers("r", "m")]
    s: Annotated[Float64Array, Numbers("r", least=0)]
    V: Annotated[Float64Array, Numbers("r", "q")]

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        return int(incremental_svd(tile.U, tile.V, tile.n_before, self.U, self.s, self.V))

    def factors(self, n_rows: int) -> SingularTriplets:
        """Return the rows of U and V, and the covariances of their scores, the largest first."""
        rank = int(np.count_nonzero(self.s))
        return self.U[:rank], self.V[:rank], self.s[:rank] / max(1, n_rows - 1)


@stored(rules={**RANK, "there are no more components than rows": lambda its: its.n_components <= len(its.s)})
@dataclass
class MatrixGradient(GradientSteps):
    """The matrix U'diag(s)V, of spectral norm at most 1 and nuclear norm at most c, with the largest products with xy'.

    The rows of U and V are orthonormal.
    """

    U: Annotated[Float64Array, Numbers("r", "m")]
    s: Annotated[Float64Array, Numbers("r", least=0)]
    V: Annotated[Float64Array, Numbers("r", "q")]
    covariance: Annotated[Float64Array, Numbers("r", "r")]
    """Estimated covariances of Ux with Vy."""
    n_components: Annotated[int, Count(1)]
    """c."""

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        state = (self.U, self.s, self.V, self.covariance, self.previous_x, self.previous_y, self.totals)
        options = (self.eta0, self.n_steps, self.n_components)
        # A step takes a singular value decomposition.
        work = self.n_steps * 20 * len(self.s) ** 3
        return in_short_calls(tile, work, lambda X, Y, n: matrix_gradient(X, Y, n, *state, *options))

    def factors(self, n_rows: int) -> SingularTriplets:
        """Return the rows of U and V, and the covariances of their scores, the largest first."""
        rank = min(self.n_components, int(np.count_nonzero(self.s)))
        return aligned(self.U[:rank], self.V[:rank], self.covariance[:rank, :rank])


@compiled
def incremental_svd(
    X: Float64Array, Y: Float64Array, n_before: int, U: Float64Array, s: Float64Array, V: Float64Array
) -> int:
    """Add the outer products of the rows to U'diag(s)V, and keep its ``len(s)`` largest singular values."""
    for k in range(len(X)):
        n = n_before + k + 1
        rank = int(np.count_nonzero(s))
        x_parts, y_parts = split_off(X[k], U, rank), split_off(Y[k], V, rank)
        weight = outer_weight(n)
        lengths = weight * math.sqrt(sum_of_squares(x_parts)) * math.sqrt(sum_of_squares(y_parts))
        if not is_finite(lengths + s[0]):
            return 0
        if lengths < NO_LENGTH:
            continue
        inner = np.zeros((rank + 1, rank + 1))
        for i in range(rank):
            inner[i, i] = s[i]
        add_outer(inner, x_parts, y_parts, weight)
        A, B = _decompose(inner, s)
        kept = int(np.count_nonzero(s))
        _turn(U, X[k], A[:kept])
        _turn(V, Y[k], B[:kept])
        if n % ROWS_BETWEEN_ORTHONORMALISATIONS == 0:
            orthonormalise(U[:kept])
            orthonormalise(V[:kept])
    return -1


@compiled
def matrix_gradient(
    X: Float64Array,
    Y: Float64Array,
    n_before: int,
    U: Float64Array,
    s: Float64Array,
    V: Float64Array,
    covariance: Float64Array,
    previous_x: Float64Array,
    previous_y: Float64Array,
    totals: Float64Array,
    eta0: float,
    n_steps: int,
    n_components: int,
) -> int:
    """Move U'diag(s)V along xy', with a projection after each step.

    ``covariance`` is the mean of Uxy'V', with the weight of a row proportional to its index. The previous rows and the
    totals are those of :func:`step_size`.
    """
    for k in range(len(X)):
        n = n_before + k + 1
        rank = int(np.count_nonzero(s))
        eta = step_size(X[k], Y[k], n, previous_x, previous_y, totals, eta0) / n_steps
        if not is_finite(eta):
            return 0
        share = 2.0 / max(2, n)
        scale_rows(covariance, 1 - share)
        if eta == 0:
            continue
        x_parts, y_parts, weight = split_off(X[k], U, rank), split_off(Y[k], V, rank), outer_weight(n)
        mean, inner = np.zeros((rank + 1, rank + 1)), np.zeros((rank + 1, rank + 1))
        for i in range(rank):
            scale_into(mean[i, :rank], 1.0, covariance[i])
            inner[i, i] = s[i]
        add_outer(mean, x_parts, y_parts, share * weight)
        for _ in range(n_steps):
            add_outer(inner, x_parts, y_parts, eta * weight)
            A, B = _decompose(inner, s)
            project_singular_values(s, n_components)
            kept = int(np.count_nonzero(s))
            scale_rows(inner, 0.0)
            for i in range(kept):
                add_outer(inner, A[i], B[i], s[i])
        turn_covariance(mean, A, B, kept, covariance)
        _turn(U, X[k], A[:kept])
        _turn(V, Y[k], B[:kept])
        if n % ROWS_BETWEEN_ORTHONORMALISATIONS == 0:
            orthonormalise(U[:kept])
            orthonormalise(V[:kept])
    return -1


@compiled
def project_singular_values(s: Float64Array, total: float) -> None:
    """Set s, in descending order, to the nearest numbers from 0 to 1 whose sum is at most ``total``.

    They are min(1, max(0, s - h)), with h = 0 if possible. Their sum is a piecewise linear function of h, with knots at
    s and s - 1.
    """
    h = 0.0
    low, high = 0.0, s[0]
    above, below = _clipped_sum(s, low), 0.0
    if above > total:
        for i in range(2 * len(s)):
            corner = s[i // 2] - i % 2
            if low < corner < high:
                at_corner = _clipped_sum(s, corner)
                if at_corner > total:
                    low, above = corner, at_corner
                else:
                    high, below = corner, at_corner
        h = low + (high - low) * (above - total) / (above - below)
    for i in range(len(s)):
        s[i] = min(1.0, max(0.0, s[i] - h))


@compiled
def _clipped_sum(s: Float64Array, h: float) -> float:
    total = 0.0
    for i in range(len(s)):
        total += min(1.0, max(0.0, s[i] - h))
    return total


@compiled
def _decompose(inner: Float64Array, s: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Set s to the ``len(s)`` largest singular values, with rounding errors as zeros; return the vectors as rows."""
    A, values, B = np.linalg.svd(inner)
    for i in range(len(s)):
        s[i] = values[i] if i < len(values) and values[i] > _NO_VALUE * values[0] else 0.0
    return np.ascontiguousarray(A.T), np.ascontiguousarray(B)


@compiled
def _turn(U: Float64Array, x: Float64Array, R: Float64Array) -> None:
    """Set the first rows of U to the product of R with the matrix of U and, as its last row, x."""
    n_new, n_old = len(R), R.shape[1] - 1
    old, new = np.zeros((n_old + 1, _BLOCK_FEATURES)), np.empty((n_new, _BLOCK_FEATURES))
    for start in range(0, len(x), _BLOCK_FEATURES):
        width = min(_BLOCK_FEATURES, len(x) - start)
        for i in range(n_old):
            scale_into(old[i, :width], 1.0, U[i, start:])
        scale_into(old[n_old, :width], 1.0, x[start:])
        np.dot(R, old, new)
        for i in range(n_new):
            scale_into(U[i, start : start + width], 1.0, new[i])
