"""CIPLS as in its paper and in its released code, including their mistakes, to reproduce results."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .._core.compiled import compiled
from .._core.schema import Boolean, Numbers, stored
from .._core.signs import peak_signs
from .._core.types import Float64Array
from ..solvers import Factors
from .loops import add_multiple, difference_from_mean_before, is_finite
from .state import Recursion, Tile, for_each_column


@stored()
@dataclass
class PaperRecursion(Recursion):
    """The recursions of the paper and of its authors' code, whose loadings are unnormalized sums."""

    W: Annotated[Float64Array, Numbers("q", "c", "m")]
    """Directions, for q columns of y."""
    P: Annotated[Float64Array, Numbers("q", "c", "m")]
    """Loadings of X."""
    Q: Annotated[Float64Array, Numbers("q", "c")]
    """Loadings of y."""
    squares: Annotated[Float64Array, Numbers("q", "c", least=0, finite=False)]
    """Sums of squares of the scores used for the loadings."""
    released: Annotated[bool, Boolean()]
    """Whether to follow the code instead of the paper."""

    @property
    def advice(self) -> str:
        """What to do when numbers are no longer finite."""
        return super().advice + ", or variant='normalized'"

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        y, v = np.array(tile.Y, order="F"), np.asfortranarray(tile.V)

        def run(U: Float64Array, k: int) -> int:
            state = self.W[k], self.P[k], self.Q[k], self.squares[k]
            if self.released:
                return cipls_released(U, y[:, k], v[:, k], *state, tile.n_before)
            return cipls_paper(U, y[:, k], *state)

        return for_each_column(run, tile, *self.Q.shape)

    def factors(self, k: int) -> Factors:
        """Return unit directions, which are also the rotations, and averaged loadings, for one column of y."""
        # Divide by the largest entry first, because its square may overflow.
        W = self.W[k] / np.maximum(np.abs(self.W[k]).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        lengths = np.linalg.norm(W, axis=1, keepdims=True)
        signs = peak_signs(W.T)
        unit = (W * signs[:, None] / np.where(lengths > 0, lengths, 1.0)).T
        counts = np.where(self.squares[k] > 0, self.squares[k], 1.0) * signs
        return Factors(
            x_weights=unit,
            x_loadings=(self.P[k] / counts[:, None]).T,
            x_rotations=unit,
            y_loadings=(self.Q[k] / counts)[None],
            score_squares=self.squares[k],
            n_components=int(np.count_nonzero(lengths)),
        )


@compiled
def cipls_paper(
    U: Float64Array, y: Float64Array, W: Float64Array, P: Float64Array, q: Float64Array, squares: Float64Array
) -> int:
    """Algorithm 1 of the paper: scores are signs, and loadings are sums. U is deflated in place."""
    c = len(W)
    for k in range(len(U)):
        u, v = U[k], y[k]
        product, _ = _add_direction(W[0], u, v)
        for i in range(c):
            if not is_finite(product + v):
                return i
            t = math.copysign(1.0, product) if product != 0 else 0.0
            q[i] += t * v
            v -= t * q[i]
            squares[i] += t * t
            if i + 1 < c:
                product = _add_loading_and_direction(P[i], W[i + 1], u, t, v)
            else:
                add_multiple(P[i], t, u)
    return -1


@compiled
def _add_direction(w: Float64Array, u: Float64Array, v: float) -> tuple[float, float]:
    """Add v u to w; return u.w and w.w."""
    product, square = 0.0, 0.0
    for j in range(len(u)):
        wj = w[j] + v * u[j]
        w[j] = wj
        product += u[j] * wj
        square += wj * wj
    return product, square


@compiled
def _add_loading_and_direction(p: Float64Array, w: Float64Array, u: Float64Array, t: float, v: float) -> float:
    """Add t u to p, subtract t p from u, add v u to w, and return u.w."""
    product = 0.0
    for j in range(len(u)):
        pj = p[j] + t * u[j]
        uj = u[j] - t * pj
        wj = w[j] + v * uj
        p[j], u[j], w[j] = pj, uj, wj
        product += uj * wj
    return product


@compiled
def cipls_released(
    U: Float64Array,
    y: Float64Array,
    v: Float64Array,
    W: Float64Array,
    P: Float64Array,
    q: Float64Array,
    squares: Float64Array,
    n_before: int,
) -> int:
    """The recursion of the authors' released code; U is deflated in place.

    ``v`` is y minus its running mean, so the first direction is exactly X'y. The very first row only initializes the
    means.
    """
    c = len(W)
    for k in range(1 if n_before == 0 else 0, len(U)):
        u, left = U[k], y[k]
        product, square = _add_direction(W[0], u, difference_from_mean_before(v[k], n_before + k))
        t = product / math.sqrt(square) if square > 0 else 0.0
        q[0] += t * left
        squares[0] += t * t
        add_multiple(P[0], t, u)
        for i in range(1, c):
            left -= t * q[i - 1]
            product, square = _deflate_and_add(P[i - 1], P[i], W[i], u, t, left)
            if not is_finite(product + square + left):
                return i
            # As released: the loading uses the score of the previous component.
            q[i] += t * left
            squares[i] += t * t
            t = product / math.sqrt(square) if square > 0 else 0.0
        if not is_finite(t):
            return c - 1
    return -1


@compiled
def _deflate_and_add(
    p_before: Float64Array, p: Float64Array, w: Float64Array, u: Float64Array, t: float, v: float
) -> tuple[float, float]:
    """Subtract t p_before from u, add v u to w and t u to p, and return u.w and w.w."""
    product, square = 0.0, 0.0
    for j in range(len(u)):
        uj = u[j] - t * p_before[j]
        wj = w[j] + v * uj
        u[j], w[j] = uj, wj
        p[j] += t * uj
        product += uj * wj
        square += wj * wj
    return product, square
