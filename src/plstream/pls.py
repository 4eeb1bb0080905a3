r"""Improved-kernel PLS: all factors from the cross-covariance and the action of the Gram matrix.

With :math:`C = X_c^T Y_c` and :math:`S = X_c^T X_c`, each component is (Dayal and MacGregor, 1997)

.. math::
    w &= \text{dominant left singular vector of } C \\
    r &= w - \textstyle\sum_j r_j (p_j^T w) \\
    \tau &= r^T S r, \quad p = S r / \tau, \quad q = C^T r / \tau \\
    C &\leftarrow C - \tau p q^T

X enters only through S r, so one solver serves every state: a Gram matrix, a sketch, or the data read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Annotated, Protocol

import numpy as np
from scipy import linalg
from scipy.linalg import lapack

from ._core.errors import counted
from ._core.schema import Count, solved_numbers, stored
from ._core.signs import peak_sign
from ._core.types import Float64Array
from ._core.warnings import warn_user

# Order of a symmetric matrix from which LAPACK is faster with the workspace size that it requests.
_MANY = 64


class GramAction(Protocol):
    """What the solver needs from X."""

    @property
    def rounding(self) -> float:
        """Relative rounding error of a sum of products."""

    @property
    def variance_resolution(self) -> float:
        """Relative variance below which a direction cannot be distinguished from rounding errors."""

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        """Return Sv and v'Sv."""


class LossyGramAction(GramAction, Protocol):
    """The Gram action of a state that may be lossy; if not, ``lost`` and ``subspace_error`` are zero."""

    forgetting: float
    """Factor by which the weight of a row shrinks with every later row."""

    @property
    def lost(self) -> Float64Array | float:
        """Discarded sums of squares of the columns; 0.0 if the state is lossless."""

    @property
    def subspace_error(self) -> Float64Array:
        """Estimated sine of the angle to the exact solution, for each number of components examined."""


@stored(rules={"there are columns for all components": lambda its: its.n_components <= len(its.score_squares)})
@dataclass(frozen=True)
class Factors:
    """The PLS factors, one column per component; columns past ``n_components`` are zero.

    Scores are X R, with R = W (P'W)^-1, and coefficients R Q'.
    """

    x_weights: Annotated[Float64Array, solved_numbers("m", "s")]
    """W, of shape (m, c)."""
    x_loadings: Annotated[Float64Array, solved_numbers("m", "s")]
    """P, of shape (m, c)."""
    x_rotations: Annotated[Float64Array, solved_numbers("m", "s")]
    """R, of shape (m, c)."""
    y_loadings: Annotated[Float64Array, solved_numbers("q", "s")]
    """Q, of shape (q, c)."""
    score_squares: Annotated[Float64Array, solved_numbers("s")]
    """Sums of squares of the scores."""
    n_components: Annotated[int, Count(size="a?")]
    """Number of components found before the rank was reached."""

    def coefficients(self, n_components: int | None = None) -> Float64Array:
        """Return R Q' of shape (m, q), optionally from the first components only."""
        k = slice(n_components)
        return self.x_rotations[:, k] @ self.y_loadings[:, k].T

    def first(self, n_components: int) -> Factors:
        """Return the first components, which do not depend on later ones."""
        weights, loadings, rotations, y_loadings = (
            np.array(columns[:, :n_components], order="C")
            for columns in (self.x_weights, self.x_loadings, self.x_rotations, self.y_loadings)
        )
        squares, found = self.score_squares[:n_components].copy(), min(self.n_components, n_components)
        return Factors(weights, loadings, rotations, y_loadings, squares, found)

    def rounding_bound(self, resolution: float, x_squares: float, y_squares: float) -> float:
        r"""Return an estimate of the relative errors of weights and scores due to rounding of the Gram action.

        With the ``resolution`` :math:`\epsilon`, the action is known up to :math:`\epsilon \|X\|^2`. The covariance
        left for component i, of length :math:`\tau_i \|q_i\|`, is then known up to
        :math:`\epsilon \|X\|^2 \sum_{j<i} \|r_j\| \|q_j\|`, and the variance of its scores up to
        :math:`\epsilon \|X\|^2 \|r_i\|^2`.
        """
        c = self.n_components
        if not c:
            return 0.0
        # Relative to the lengths of X and y, so that nothing overflows.
        reach = np.sqrt(x_squares / self.score_squares[:c])
        loads = np.sqrt(np.square(self.y_lengths[:, :c] / sqrt(y_squares)).sum(axis=0))
        rotations = reach * np.sqrt(np.einsum("ij,ij->j", self.x_rotations, self.x_rotations))[:c]
        before = np.cumsum(rotations * loads) - rotations * loads
        return resolution * float(((1.0 + before) * reach / loads).max() + (rotations**2).max())

    @property
    def x_explained(self) -> Float64Array:
        """Sum of squares of X explained by each component."""
        return np.square(self.x_loadings * np.sqrt(self.score_squares)).sum(axis=0)

    @property
    def y_lengths(self) -> Float64Array:
        """Roots of the sums of squares of each column of Y explained by each component, (q, c), of any sign."""
        # Not squares: those of loadings could overflow where the product does not.
        return self.y_loadings * np.sqrt(self.score_squares)

    @property
    def y_explained(self) -> Float64Array:
        """Sum of squares of Y explained by each component."""
        return np.square(self.y_lengths).sum(axis=0)


def solve_pls(
    cross: Float64Array,
    gram: GramAction,
    n_components: int,
    *,
    x_squares: float,
    y_squares: float,
    x_factor: Float64Array | float = 1.0,
    quiet: bool = False,
) -> Factors:
    """Return the PLS factors of data with the given cross-covariance and Gram action.

    Parameters
    ----------
    cross : ndarray of shape (m, q)
        Xc'Yc. Not modified.
    gram : GramAction
        The action of Xc'Xc, for columns not yet multiplied by ``x_factor``.
    n_components : int
        Number of components. If the data has fewer, one warning is issued, and columns past the rank are zero.
    x_squares, y_squares : float
        Total sums of squares, to distinguish small numbers from rounding errors.
    x_factor : ndarray of shape (m,) or float, default=1.0
        Factors of the columns of X, already applied to ``cross`` and ``x_squares``.
    quiet : bool, default=False
        Whether to suppress the warning about missing components.
    """
    m, q = cross.shape
    # For speed on small data: one row per component and response, a single response as a vector, `dot` instead of `@`.
    W, P, R = np.zeros((3, n_components, m))
    Q, squares = np.zeros((n_components, q)), np.zeros(n_components)
    C = cross[:, 0] if q == 1 else np.ascontiguousarray(cross.T)
    # The covariance left must stand out from the rounding errors of the sums and of the deflations so far.
    noise, least = gram.rounding * sqrt(x_squares * y_squares), gram.variance_resolution * x_squares
    found = 0
    # There are no more directions than features, whatever rounding errors remain.
    for i in range(min(n_components, m)):
        left = _norm(C)
        if left <= noise:
            break
        Wi, Pi, Ri = W[:i], P[:i], R[:i]
        w = _project_out(Wi, Wi, dominant_left_vector(C / left))
        w_length = _norm(w)
        # Zero only if the action does not fit the cross-covariance, for example in a damaged state: nothing was
        # deflated.
        if not w_length > 0:
            break
        w = w * (peak_sign(w) / w_length)
        # Twice, because w itself may have large components along the earlier directions.
        r = _project_out(Ri, Pi, _project_out(Ri, Pi, w))
        action, tau = gram.apply(x_factor * r)
        length = _norm(r)
        if not tau > least * length**2:
            break
        # Remove from S r rounding errors along the earlier directions, relative to the largest of them.
        action = _project_out(Pi, Ri, x_factor * action)
        found = i + 1
        W[i], P[i], R[i], squares[i] = w, action / tau, r, tau
        # One product removes this direction from C, and the rounding errors left by earlier ones.
        products = C.dot(R[:found].T)
        Q[i] = products[..., i] / tau
        C = C - products.dot(P[:found])
        noise += least * length * _norm(Q[i])
    if found < n_components and not quiet:
        y_left = y_squares - np.square(Q.T * np.sqrt(squares)).sum()
        warn_of_rank(found, n_components, y_is_explained=y_left <= gram.rounding * y_squares)
    weights, loadings, rotations, y_loadings = map(np.ascontiguousarray, (W.T, P.T, R.T, Q.T))
    return Factors(weights, loadings, rotations, y_loadings, squares, found)


def warn_of_rank(found: int, n_components: int, *, y_is_explained: bool) -> None:
    """Warn that the data has fewer components than requested."""
    # The same words as in scikit-learn, for code that matches them.
    why = f"y residual is constant at iteration {found}, and " if y_is_explained else ""
    warn_user(
        f"X and y have only {counted(found, 'component')} in common, fewer than the n_components="
        f"{n_components} requested: {why}the rest are zero."
    )


def _norm(array: Float64Array) -> float:
    """Return the root of the sum of squares, with less overhead than NumPy's function."""
    vector = array.ravel()
    return sqrt(vector.dot(vector))


def largest_sine(W: Float64Array, other: Float64Array) -> float:
    """Return the sine of the largest angle between the column spaces of two orthonormal matrices."""
    return min(1.0, float(np.linalg.norm(W - other @ (other.T @ W), ord=2)))


def subspace_sines(W: Float64Array, other: Float64Array) -> Float64Array:
    """Return the sine of the largest angle between the spans of the first k columns, for every k.

    Both matrices have orthonormal columns.
    """
    inside = other.T @ W
    outside = np.linalg.qr(W - other @ inside, mode="r")
    coordinates = np.concatenate([inside, outside])
    sines = [np.linalg.norm(coordinates[k:, :k], ord=2) for k in range(1, W.shape[1] + 1)]
    return np.minimum(sines, 1.0)


def _project_out(basis: Float64Array, dual: Float64Array, vectors: Float64Array) -> Float64Array:
    """Return (I - basis' dual) vectors, where dual basis' = I."""
    return vectors - basis.T.dot(dual.dot(vectors)) if len(basis) else vectors


def dominant_left_vector(C: Float64Array) -> Float64Array:
    """Return the first left singular vector of the covariance with the rows C, of any length.

    It is computed from the smaller of C C' and C'C.
    """
    if C.ndim == 1 or len(C) == 1:
        return C.reshape(-1)
    q, m = C.shape
    return _dominant_eigenvector(C.dot(C.T)).dot(C) if q <= m else _dominant_eigenvector(C.T.dot(C))


def _dominant_eigenvector(A: Float64Array) -> Float64Array:
    """Return the eigenvector of the largest eigenvalue."""
    n = len(A)
    if n < _MANY:
        # The same LAPACK routine, without SciPy's overhead, which takes longer.
        _, vectors, _, _, info = lapack.dsyevr(A, range="I", il=n, iu=n)
        if info == 0:
            vector: Float64Array = vectors[:, 0]
            return vector
    largest: Float64Array = linalg.eigh(A, subset_by_index=(n - 1, n - 1))[1]
    return largest[:, 0]
