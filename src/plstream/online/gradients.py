"""Orthonormal bases of two spaces, updated for every row by a step along the gradient of the covariances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .._core.compiled import compiled, compiled_inline
from .._core.schema import Count, Number, Numbers, Rule, stored
from .._core.types import Array, Float64Array
from .loops import (
    NOTHING_LEFT,
    add_multiple,
    add_outer,
    is_finite,
    orthonormalise,
    outer_weight,
    row_products,
    scale_into,
    scale_rows,
    split_off,
    square_and_product,
    step_size,
    sum_of_squares,
    turn_covariance,
)
from .state import Recursion, Tile

SingularTriplets = tuple[Float64Array, Float64Array, Float64Array]
# Rows after which bases are orthonormalized again, to remove rounding errors.
ROWS_BETWEEN_ORTHONORMALISATIONS = 256
# Maximum number of steps per row; each takes as long as a row.
MOST_STEPS = 1000
# Operations per call of a compiled loop: a fraction of a second, so that interrupts are noticed.
_MOST_WORK = 1 << 27
# A basis is stored as a triangular factor times vectors until a diagonal entry of the factor is above this, or below
# its inverse, because it amplifies rounding errors.
_LARGEST_FACTOR = 100.0
# A rule of declarations.
RANK: dict[str, Rule] = {
    "there are no more vectors than features or responses": lambda its: (
        len(its.U) <= min(its.U.shape[1], its.V.shape[1])
    )
}


@dataclass
class GradientSteps(Recursion):
    """What :func:`step_size` needs."""

    previous_x: Annotated[Float64Array, Numbers("m")]
    """The last row of X."""
    previous_y: Annotated[Float64Array, Numbers("q")]
    """The last row of y."""
    totals: Annotated[Float64Array, Numbers(3)]
    """Sums of squares of x and of y, and of products of rows."""
    eta0: Annotated[float, Number(0)]
    """Size of steps."""
    n_steps: Annotated[int, Count(1, MOST_STEPS)]
    """Steps per row."""


@stored(
    # Compiled loops rely on it as the number of rows.
    rules={**RANK, "no more rows are in use than exist": lambda its: its.begun[0] <= len(its.U)},
)
@dataclass
class StochasticGradient(GradientSteps):
    """Orthonormal bases whose scores have maximal covariances: the rows of U_factor U and V_factor V."""

    U: Annotated[Float64Array, Numbers("c", "m")]
    U_factor: Annotated[Float64Array, Numbers("c", "c")]
    """A lower triangular matrix."""
    V: Annotated[Float64Array, Numbers("c", "q")]
    V_factor: Annotated[Float64Array, Numbers("c", "c")]
    """A lower triangular matrix."""
    begun: Annotated[Array, Numbers(1, dtypes=("int64",), least=0)]
    """Number of nonzero rows of U."""
    covariance: Annotated[Float64Array, Numbers("c", "c")]
    """Estimated covariances of the scores."""

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        bases = (self.U, self.U_factor, self.V, self.V_factor, self.begun, self.covariance)
        past = (self.previous_x, self.previous_y, self.totals)
        options = (self.eta0, self.n_steps)
        work = self.n_steps * 4 * len(self.U) ** 3
        return in_short_calls(tile, work, lambda X, Y, n: stochastic_gradient(X, Y, n, *bases, *past, *options))

    def factors(self, n_rows: int) -> SingularTriplets:
        """Return the rows of U and V and the covariances of their scores, in descending order."""
        rank = int(self.begun[0])
        U, V = self.U_factor @ self.U, self.V_factor @ self.V
        return aligned(U[:rank], V[:rank], self.covariance[:rank, :rank])


def in_short_calls(tile: Tile, work: int, learn: Callable[[Float64Array, Float64Array, int], int]) -> int:
    """Run a compiled loop on a few rows at a time, so that it returns often; ``work`` is the work per row."""
    step = max(1, _MOST_WORK // work)
    for start in range(0, len(tile.U), step):
        rows = slice(start, start + step)
        failed = int(learn(tile.U[rows], tile.V[rows], tile.n_before + start))
        if failed >= 0:
            return failed
    return -1


def aligned(U: Float64Array, V: Float64Array, covariance: Float64Array) -> SingularTriplets:
    """Return bases of the same spaces with covariances between paired scores only, and these covariances."""
    A, s, B = np.linalg.svd(covariance)
    return A.T @ U, B @ V, s


@compiled
def stochastic_gradient(
    X: Float64Array,
    Y: Float64Array,
    n_before: int,
    U: Float64Array,
    U_factor: Float64Array,
    V: Float64Array,
    V_factor: Float64Array,
    begun: Array,
    covariance: Float64Array,
    previous_x: Float64Array,
    previous_y: Float64Array,
    totals: Float64Array,
    eta0: float,
    n_steps: int,
) -> int:
    """Move the bases along x(y'V) and y(x'U), and orthonormalize them after each step.

    The bases are the rows of U_factor U and V_factor V. Orthonormalization thus changes only the small lower triangular
    factors, and a row costs two passes over U. Only the first begun[0] rows of U are in use, see :func:`_begin_pair`.
    ``covariance`` is as in :func:`matrix_gradient`, and is rotated with the bases.
    """
    c = len(U)
    left = np.empty(X.shape[1])
    for k in range(len(X)):
        x, y, n = X[k], Y[k], n_before + k + 1
        eta = step_size(x, y, n, previous_x, previous_y, totals, eta0) / n_steps
        if not is_finite(eta):
            return 0
        share = 2.0 / max(2, n)
        scale_rows(covariance, 1 - share)
        if eta == 0:
            continue
        if begun[0] < c and _has_part_outside(y, V, V_factor, begun[0]):
            _apply_factor(U_factor, U)
            _apply_factor(V_factor, V)
            scale_into(left, 1.0, x)
            begun[0] += _begin_pair(left, y, U, V, begun[0], math.sqrt(totals[0] / n), math.sqrt(totals[1] / n))
        x_square, y_square = sum_of_squares(x), sum_of_squares(y)
        x_parts, y_parts = row_products(U_factor, row_products(U, x)), row_products(V_factor, row_products(V, y))
        weight = outer_weight(n)
        gradient = _first_of(y_parts, begun[0], 1.0)
        add_outer(covariance, x_parts, gradient, share * weight)
        x_coefficients, y_coefficients = np.zeros(c), np.zeros(c)
        for _ in range(n_steps):
            gradient = _first_of(y_parts, begun[0], eta * weight)
            x_turn = _step(gradient, x_square, x_parts, x_coefficients, U_factor)
            gradient = _first_of(x_parts, begun[0], eta * weight)
            y_turn = _step(gradient, y_square, y_parts, y_coefficients, V_factor)
            turn_covariance(covariance.copy(), x_turn, y_turn, begun[0], covariance)
        for i in range(c):
            if not is_finite(x_parts[i] + y_parts[i]):
                return i
        _solve(U_factor, x_coefficients.reshape(c, 1))
        _solve(V_factor, y_coefficients.reshape(c, 1))
        add_outer(U, x_coefficients, x, 1.0)
        add_outer(V, y_coefficients, y, 1.0)
        is_due = n % ROWS_BETWEEN_ORTHONORMALISATIONS == 0
        if is_due or _has_outgrown(U_factor):
            _apply_factor(U_factor, U)
        if is_due or _has_outgrown(V_factor):
            _apply_factor(V_factor, V)
    return -1


@compiled
def _has_part_outside(y: Float64Array, V: Float64Array, V_factor: Float64Array, begun: int) -> bool:
    """Return whether y may have a part along the rows of V that have no partner; if not, x need not be examined."""
    parts = row_products(V_factor, row_products(V, y))[begun:]
    return sum_of_squares(parts) > (NOTHING_LEFT / 10) ** 2 * sum_of_squares(y)


@compiled
def _begin_pair(
    left: Float64Array, y: Float64Array, U: Float64Array, V: Float64Array, begun: int, x_size: float, y_size: float
) -> int:
    """Start a new row of U from the part ``left`` of x outside of U; return whether there is such a part.

    Its partner is the direction of y within the span of the rows of V that have no partner yet. So there are no more
    pairs than dimensions of x and y, and U is not random. The sizes are those of typical rows.
    """
    if split_off(left, U, begun)[begun] <= NOTHING_LEFT * x_size:
        return 0
    parts = row_products(V[begun:], y)
    length = math.sqrt(sum_of_squares(parts))
    if length <= NOTHING_LEFT * max(y_size, math.sqrt(sum_of_squares(y))):
        return 0
    # A reflection maps the parts to (length, 0, ..., 0) or its negative, whichever is farther away.
    sign = 1.0 if parts[0] > 0 else -1.0
    parts[0] += sign * length
    image = np.zeros(len(y))
    for i in range(len(parts)):
        add_multiple(image, 2 * parts[i] / sum_of_squares(parts), V[begun + i])
    for i in range(len(parts)):
        add_multiple(V[begun + i], -parts[i], image)
    scale_into(V[begun], -sign, V[begun])
    scale_into(U[begun], 1.0, left)
    return 1


@compiled_inline
def _step(
    gradient: Float64Array, square: float, parts: Float64Array, coefficients: Float64Array, factor: Float64Array
) -> Float64Array:
    """Add gradient*x' to the rows of an orthonormal basis and orthonormalize it, given its products with x and |x|^2.

    The basis is factor times vectors plus coefficients*x'. If LL' is the Gram matrix of its new rows, it is multiplied
    by the inverse of L, which is Gram-Schmidt orthogonalization. Return the rotation from the old basis to the new one:
    the products of the new rows with the old ones, orthonormalized.
    """
    c = len(parts)
    turn = np.eye(c)
    add_outer(turn, gradient, parts, 1.0)
    L = turn.copy()
    add_outer(L, parts, gradient, 1.0)
    add_outer(L, gradient, gradient, square)
    _cholesky(L)
    add_multiple(parts, square, gradient)
    add_multiple(coefficients, 1.0, gradient)
    _solve(L, parts.reshape(c, 1))
    _solve(L, coefficients.reshape(c, 1))
    _solve(L, factor)
    _solve(L, turn)
    for i in range(c):
        for h in range(c):
            _, L[i, h] = square_and_product(turn[i], turn[h])
    _cholesky(L)
    _solve(L, turn)
    return turn


@compiled
def _cholesky(A: Float64Array) -> None:
    """Replace the lower triangle of a positive definite A = LL' with L."""
    for i in range(len(A)):
        for h in range(i):
            _, known = square_and_product(A[i, :h], A[h, :h])
            A[i, h] = (A[i, h] - known) / A[h, h]
        A[i, i] = math.sqrt(A[i, i] - sum_of_squares(A[i, :i]))


@compiled
def _solve(L: Float64Array, B: Float64Array) -> None:
    """Replace B with the solution X of LX = B, for a lower triangular L."""
    for i in range(len(L)):
        for h in range(i):
            add_multiple(B[i], -L[i, h], B[h])
        scale_into(B[i], 1 / L[i, i], B[i])


@compiled
def _apply_factor(factor: Float64Array, U: Float64Array) -> None:
    """Multiply U by the factor and orthonormalize it; the factor becomes the identity."""
    for i in range(len(U) - 1, -1, -1):
        scale_into(U[i], factor[i, i], U[i])
        for h in range(i):
            add_multiple(U[i], factor[i, h], U[h])
        for h in range(len(U)):
            factor[i, h] = i == h
    orthonormalise(U)


@compiled
def _has_outgrown(factor: Float64Array) -> bool:
    least, largest = math.inf, 0.0
    for i in range(len(factor)):
        least, largest = min(least, factor[i, i]), max(largest, factor[i, i])
    return least < 1 / _LARGEST_FACTOR or largest > _LARGEST_FACTOR


@compiled
def _first_of(a: Float64Array, n_first: int, factor: float) -> Float64Array:
    """Return factor*a, with zeros after the first entries."""
    out = np.zeros(len(a))
    scale_into(out[:n_first], factor, a)
    return out
