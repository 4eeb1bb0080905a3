"""Discriminants without a matrix of all features, from a regression of class indicators."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import linalg

from .._core.compiled import compiled
from .._core.schema import Number, Numbers, stored
from .._core.types import Float64Array
from .loops import is_finite
from .scatter import LEAST_VARIANCE, SolvedClasses
from .state import OnlineState, Recursion, Tile

# Number of classes up to which their products are formed even if there are fewer features.
_LARGEST_PRODUCT = 1024


@stored()
@dataclass
class IndicatorRegression(Recursion):
    """Regression of q class indicators on the standardized features, by averaged least mean squares."""

    B: Annotated[Float64Array, Numbers("q", "m")]
    """Coefficients after the last step."""
    A: Annotated[Float64Array, Numbers("q", "m")]
    """Their averages, with more weight on later ones."""
    C: Annotated[Float64Array, Numbers("q", "m")]
    """Sums of products of the centred columns and features."""
    squares: Annotated[Float64Array, Numbers("m", least=0)]
    """Sums of squares of the centred features."""
    length: Annotated[Float64Array, Numbers(1, least=0)]
    """Sum of squares of all standardized rows."""
    eta: Annotated[float, Number(0, 1)]
    """The step."""

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        arrays = self.B, self.A, self.C, self.squares, self.length
        failed = int(averaged_regression(tile.U, tile.V, *arrays, tile.n_before, self.eta))
        # A feature divided by an infinite deviation is zero.
        return failed if np.isfinite(self.squares).all() else max(failed, 0)


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
    """Move the rows of B towards the coefficients of V on standardized U, and update their averages A.

    Products of U and V are added to C, squares of U to ``squares``, and those of standardized U to ``length``.
    """
    q, m = B.shape
    z, nothing = np.empty(m), np.zeros(m)
    for k in range(len(U)):
        n = n_before + k + 1
        if n == 1:
            continue
        # As in Welford's method: a row is centred by the mean that includes it, so it is shorter by (n - 1)/n.
        growth = n / (n - 1)
        square, product = _standardise(U[k], squares, growth, n, z, B[0])
        length[0] += square
        for i in range(q):
            if not (is_finite(square) and is_finite(product)):
                return i
            # No step goes beyond an exact fit of the row.
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
    """Move b along z and its average a towards b, add y u to c, and return z.b of the next b."""
    product = 0.0
    for j in range(len(u)):
        bj = b[j] + step * z[j]
        b[j] = bj
        a[j] += share * (bj - a[j])
        c[j] += y * u[j]
        product += z[j] * following[j]
    return product


def _svd_of_product(left: Float64Array, right: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the singular value decomposition of a product, without forming it if it is large and of low rank."""
    n, rank = left.shape
    if n <= max(rank, _LARGEST_PRODUCT):
        U, s, V = linalg.svd(left @ right)
        return U, s, V
    (Q1, R1), (Q2, R2) = linalg.qr(left, mode="economic"), linalg.qr(right.T, mode="economic")
    U, s, V = linalg.svd(R1 @ R2.T)
    return Q1 @ U, s, V @ Q2.T


def solve_regression(state: OnlineState) -> SolvedClasses:
    """Return the discriminants from the regression of class indicators on X.

    With D = (m_k - mean) sqrt(prior_k), one column per class, and the covariance T of all rows, the coefficients are
    G sqrt(prior), G = T^-1 D. An eigenvector v of D'G with eigenvalue r gives the discriminant g = Gv, with g'Tg = r
    and g'DD'g = r^2, hence g'(T - DD')g = r (1 - r). Before the regression has converged, D'G is not symmetric; with
    its singular values and right singular vectors, g'DD'g = r^2 still holds.
    """
    regression: IndicatorRegression = state.recursion
    n_rows = max(1, state.n_rows)
    # Columns of -1 and +1, divided by their unit, are twice the indicators of the classes.
    halves = np.array([[-0.5], [0.5]]) if len(regression.A) == 1 else 0.5
    to_indicators = halves / (state.y.unit or 1.0)
    deviations = np.sqrt(regression.squares / n_rows)
    coefficients = np.divide(regression.A, deviations, out=np.zeros_like(regression.A), where=deviations > 0)
    coefficients = coefficients * to_indicators
    covariances = regression.C / n_rows * to_indicators
    shares = 2 * halves * state.y.mean[:, None]
    priors = np.rint((1 + shares[:, 0]) / 2 * n_rows) / n_rows
    roots = np.sqrt(priors)[:, None]
    weights = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    directions, between = (coefficients * weights).T, (covariances * weights).T
    _, r, V = _svd_of_product(between.T, directions)
    there_is = r > 1e-10
    r = np.where(there_is, np.minimum(r, 1 - LEAST_VARIANCE), 0.5)
    solved = directions @ (V.T / np.sqrt(r * (1 - r))) * there_is, r / (1 - r) * there_is
    offsets = state.x.offset + (between * weights.T).T
    return SolvedClasses(state.x.origin, state.x.unit or 1.0, offsets, priors, *solved)
