"""Compiled loops over vectors and rows of matrices, shared by several recursions."""

from __future__ import annotations

import math

import numpy as np

from .._core.compiled import compiled, compiled_inline
from .._core.types import Float64Array

# A smaller remainder of a row after projection, relative to its length, is a rounding error.
NOTHING_LEFT = 1e-13
# Products |x||y| below this count as zero, because entries may underflow.
NO_LENGTH = 1e-290
# Largest change of a vector by one row, relative to its length, so that bases cannot collapse.
_LARGEST_STEP = 0.5


@compiled_inline
def is_finite(number: float) -> bool:
    """Return whether a number is finite. math.isfinite forms x - x, which becomes zero if a sum x is reordered."""
    return abs(number) < math.inf


@compiled_inline
def square_and_product(a: Float64Array, b: Float64Array) -> tuple[float, float]:
    """Return a.a and a.b."""
    square, product = 0.0, 0.0
    for j in range(len(a)):
        square += a[j] * a[j]
        product += a[j] * b[j]
    return square, product


@compiled_inline
def scale_into(out: Float64Array, factor: float, a: Float64Array) -> None:
    """Set out to a times a factor."""
    for j in range(len(out)):
        out[j] = factor * a[j]


@compiled
def outer_weight(n: int) -> float:
    """Return the weight of xy' in the centred X'Y, for row n centred by means that include that row."""
    return n / max(1.0, n - 1.0)


@compiled
def step_size(
    x: Float64Array,
    y: Float64Array,
    n: int,
    previous_x: Float64Array,
    previous_y: Float64Array,
    totals: Float64Array,
    eta0: float,
) -> float:
    """Return eta0/sqrt(t) over the estimated norm of the cross-covariance; zero if x or y is zero.

    The square of that norm is the mean of (x.x')(y.y') for two independent rows: here, a row and the previous one. The
    estimate is at least its error, the mean of |x|^2 times that of |y|^2 over t. ``totals`` are the sums of |x|^2, of
    |y|^2 and of those products; they and the previous rows are updated.
    """
    weight = outer_weight(n)
    x_square, x_product = square_and_product(x, previous_x)
    y_square, y_product = square_and_product(y, previous_y)
    scale_into(previous_x, 1.0, x)
    scale_into(previous_y, 1.0, y)
    totals[0] += weight * x_square
    totals[1] += weight * y_square
    totals[2] += weight * weight * x_product * y_product
    if not is_finite(totals[0] + totals[1] + totals[2]):
        return math.nan
    lengths = weight * math.sqrt(x_square) * math.sqrt(y_square)
    if n == 1 or lengths < NO_LENGTH:
        return 0.0
    t = n - 1.0
    least_norm = math.sqrt(totals[0]) * math.sqrt(totals[1]) / math.sqrt(t) / t
    eta = eta0 / math.sqrt(t) / max(math.sqrt(max(totals[2], 0.0) / t), least_norm)
    return min(eta, _LARGEST_STEP / lengths)


@compiled
def split_off(x: Float64Array, U: Float64Array, rank: int) -> Float64Array:
    """Return the products of x with the first rows of U and the length of the remainder; x becomes its direction.

    The rows are orthonormal. A small remainder is projected once more, so that it is orthogonal to them.
    """
    parts = np.zeros(rank + 1)
    whole, product = square_and_product(x, U[0])
    square = whole
    for turn in range(2):
        if turn == 0 or square < 0.01 * whole:
            for i in range(rank):
                parts[i] += product
                product, square = _take_out(x, product, U[i], U[(i + 1) % rank])
    length = math.sqrt(square)
    if is_finite(whole) and length <= NOTHING_LEFT * math.sqrt(whole):
        scale_into(x, 0.0, x)
    else:
        parts[rank] = length
        scale_into(x, 1 / length, x)
    return parts


@compiled
def _take_out(x: Float64Array, part: float, u: Float64Array, following: Float64Array) -> tuple[float, float]:
    """Subtract part*u from x, and return x.following and x.x."""
    product, square = 0.0, 0.0
    for j in range(len(x)):
        xj = x[j] - part * u[j]
        x[j] = xj
        product += xj * following[j]
        square += xj * xj
    return product, square


@compiled
def orthonormalise(U: Float64Array) -> None:
    """Remove rounding errors from rows that are orthonormal or zero, by the Gram-Schmidt method."""
    for i in range(len(U)):
        square = sum_of_squares(U[i])
        if square > 0:
            scale_into(U[i], 1 / math.sqrt(square), U[i])
        for h in range(i + 1, len(U)):
            _, product = square_and_product(U[h], U[i])
            add_multiple(U[h], -product, U[i])


@compiled
def turn_covariance(old: Float64Array, A: Float64Array, B: Float64Array, n: int, out: Float64Array) -> None:
    """Set the first n rows and columns of ``out`` to those of A old B', and the others to zero."""
    scale_rows(out, 0.0)
    for i in range(n):
        row = np.zeros(len(old))
        for h in range(len(old)):
            add_multiple(row, A[i, h], old[h])
        for j in range(n):
            _, out[i, j] = square_and_product(row, B[j])


@compiled
def row_products(U: Float64Array, x: Float64Array) -> Float64Array:
    """Return the products of the rows of U with x."""
    products = np.empty(len(U))
    for i in range(len(U)):
        _, products[i] = square_and_product(x, U[i])
    return products


@compiled
def add_outer(out: Float64Array, a: Float64Array, b: Float64Array, factor: float) -> None:
    """Add factor*ab'."""
    for i in range(len(a)):
        add_multiple(out[i], factor * a[i], b)


@compiled
def scale_rows(A: Float64Array, factor: float) -> None:
    """Multiply all rows of A by a factor."""
    for i in range(len(A)):
        scale_into(A[i], factor, A[i])


@compiled
def sum_of_squares(a: Float64Array) -> float:
    """Return a.a."""
    square, _ = square_and_product(a, a)
    return square


@compiled
def add_multiple(out: Float64Array, factor: float, a: Float64Array) -> None:
    """Add a multiple of a to out."""
    for j in range(len(out)):
        out[j] += factor * a[j]


@compiled
def difference_from_mean_before(difference: float, n_before: int) -> float:
    """Return the difference of a row from the mean before it, given that from the mean that includes it.

    One factor of each product must be such a difference, so that sums of products are those of centred rows.
    """
    return difference * (n_before + 1) / max(1, n_before)
