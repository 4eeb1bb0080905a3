"""Regression of classes, for IncrementalLDA without a covariance matrix."""

from __future__ import annotations

import math

import numpy as np

from ..._core.compiled import compiled
from ..._core.types import Float64Array
from .common import is_finite


@compiled
def averaged_regression(
    U: Float64Array,
    V: Float64Array,
    B: Float64Array,
    A: Float64Array,
    C: Float64Array,
    squares: Float64Array,
    length: Float64Array,
    n_before: int,
    eta: float,
) -> int:
    """Move the rows of B towards coefficients of the columns of V on standardised U, and their averages A along.

    Sums are added to: products of U and V to C, squares of U to ``squares``, and those of standardised U to ``length``.
    """
    q, m = B.shape
    z, nothing = np.empty(m), np.zeros(m)
    for k in range(len(U)):
        n = n_before + k + 1
        if n == 1:
            continue
        # A row minus the mean that includes it is shorter than minus the mean before it: so counts a step of Welford's.
        growth = n / (n - 1)
        square, product = _standardise(U[k], squares, growth, n, z, B[0])
        length[0] += square
        for i in range(q):
            if not (is_finite(square) and is_finite(product)):
                return i
            # No row counts for more than to be fitted.
            most = max(length[0] / (n - 1), eta * square)
            step = eta * (V[k, i] - product) / most if most > 0 else 0.0
            following = B[i + 1] if i + 1 < q else nothing
            product = _regress(B[i], A[i], C[i], U[k], z, step, 2.0 / n, growth * V[k, i], following)
    return -1


@compiled
def _standardise(
    u: Float64Array, squares: Float64Array, growth: float, n: float, z: Float64Array, b: Float64Array
) -> tuple[float, float]:
    """Add to the squares, set z to u divided by deviations, and return z.z and z.b."""
    square, product = 0.0, 0.0
    for j in range(len(u)):
        total = squares[j] + growth * u[j] * u[j]
        squares[j] = total
        zj = u[j] * math.sqrt(n / total) if total > 0 else 0.0
        z[j] = zj
        square += zj * zj
        product += zj * b[j]
    return square, product


@compiled
def _regress(
    b: Float64Array,
    a: Float64Array,
    c: Float64Array,
    u: Float64Array,
    z: Float64Array,
    step: float,
    share: float,
    y: float,
    following: Float64Array,
) -> float:
    """Move b along z, its average a towards b, add y u to c, and return z.b of the following b."""
    product = 0.0
    for j in range(len(u)):
        bj = b[j] + step * z[j]
        b[j] = bj
        a[j] += share * (bj - a[j])
        c[j] += y * u[j]
        product += z[j] * following[j]
    return product
