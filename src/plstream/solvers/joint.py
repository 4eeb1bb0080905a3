r"""PLS of several sets of rows at once: the solver of :mod:`plstream.pls` with one more axis.

The training sets of cross-validation take the same steps with different numbers. Solved in lockstep, they need one Gram
action, so one read of the data serves all sets, and small data takes as many NumPy calls as a single fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from .._core.types import Float64Array
from ..pls import Factors, dominant_left_vector
from ..states.moments import Moments
from .solution import Scaling, Solution

# Maximum number of entries of solutions computed together: 1 GiB.
_NUMBERS_AT_A_TIME = 1 << 27


class JointGramAction(Protocol):
    """What the solver needs from X for several sets of rows."""

    @property
    def rounding(self) -> float:
        """Relative rounding error of a sum of products."""

    @property
    def variance_resolution(self) -> float:
        """Relative variance below which a direction cannot be distinguished from rounding errors."""

    def apply_jointly(self, V: Float64Array, sets: range) -> tuple[Float64Array, Float64Array]:
        """Return Sv and v'Sv for each set of rows, with v the corresponding row of V."""


def joint_solutions(
    training: Sequence[Moments], gram: JointGramAction, n_components: int, *, scale: bool
) -> Iterator[dict[int, Solution]]:
    """Yield the index and solution of each set of rows; as many are solved together as memory allows."""
    m, q = training[0].shape
    at_a_time = max(1, _NUMBERS_AT_A_TIME // (m * (5 * n_components + 3 * q + 6)))
    for first in range(0, len(training), at_a_time):
        sets = range(first, min(first + at_a_time, len(training)))
        moments = [training[k] for k in sets]
        scalings = [Scaling.of(one, scale=scale) for one in moments]
        found = solve_jointly(moments, gram, sets, scalings, n_components)
        yield dict(zip(sets, map(Solution.of_factors, found, moments, scalings), strict=True))


def solve_jointly(
    moments: Sequence[Moments],
    gram: JointGramAction,
    sets: range,
    scalings: Sequence[Scaling],
    n_components: int,
) -> list[Factors]:
    """Return the PLS factors of several sets of rows, centred and scaled.

    Parameters
    ----------
    moments : sequence of Moments
        The moments of each set.
    gram : JointGramAction
        The action of Xc'Xc of each set.
    sets : range
        Identifiers of the sets in the Gram action.
    scalings : sequence of Scaling
        The divisors of the columns of each set.
    n_components : int
        Number of components. Columns past the rank are zero.
    """
    factor = np.array([scaling.x_factor for scaling in scalings])
    y_factor = np.array([scaling.y_factor for scaling in scalings])
    x_units, y_units = np.array([(scaling.x_unit, scaling.y_unit) for scaling in scalings]).T[:, :, None]
    # One row per response.
    C = np.array([one.cross.T for one in moments]) * factor[:, None] * y_factor[:, :, None]
    x_squares = (np.array([scaling.x_squares for scaling in scalings]) / x_units / x_units).sum(axis=1)
    y_squares = (np.array([scaling.y_squares for scaling in scalings]) / y_units / y_units).sum(axis=1)
    n_sets, q, m = C.shape
    covariances = C.reshape(n_sets, -1)
    # As in solve_pls (see the comments there), with the sets as first axis.
    W, P, R = np.zeros((3, n_sets, n_components, m))
    Q, squares = np.zeros((n_sets, n_components, q)), np.zeros((n_sets, n_components))
    noise, least = gram.rounding * np.sqrt(x_squares * y_squares), gram.variance_resolution * x_squares
    found, each = np.zeros(n_sets, dtype=np.intp), np.arange(n_sets)
    for i in range(min(n_components, m)):
        exhausted = _norms(covariances) <= noise
        if exhausted.any():
            if exhausted.all():
                break
            # Sets without further components are zero from here on.
            C[exhausted] = 0.0
        w = _project_out(W[:, :i], W[:, :i], _dominant_left_vectors(C))
        lengths = np.copysign(_norms(w), w[each, np.abs(w).argmax(axis=1)])
        w = w / np.where(lengths, lengths, 1.0)[:, None]
        r = _project_out(R[:, :i], P[:, :i], _project_out(R[:, :i], P[:, :i], w))
        action, tau = gram.apply_jointly(factor * r, sets)
        action *= factor
        length = _norms(r)
        stands_out = tau > least * length**2
        action, share = _project_out(P[:, :i], R[:, :i], action), tau
        if not stands_out.all():
            if not stands_out.any():
                break
            for array in (C, w, r, action, tau):
                array[~stands_out] = 0.0
            share = np.where(stands_out, tau, 1.0)
        share = (1.0 / share)[:, None]
        W[:, i], P[:, i], R[:, i], squares[:, i] = w, action * share, r, tau
        products = C @ _transposed(R[:, : i + 1])
        Q[:, i] = products[:, :, i] * share
        C -= products @ P[:, : i + 1]
        noise += least * length * _norms(Q[:, i])
        found[stands_out] = i + 1
    solutions = []
    for k, scaling in enumerate(scalings):
        # Views, because most models of folds are used only once.
        y_loadings = Q[k].T * (scaling.y_unit / scaling.x_unit)
        score_squares = squares[k] * scaling.x_unit * scaling.x_unit
        solutions.append(Factors(W[k].T, P[k].T, R[k].T, y_loadings, score_squares, int(found[k])))
    return solutions


def _dominant_left_vectors(C: Float64Array) -> Float64Array:
    return C[:, 0] if C.shape[1] == 1 else np.array(list(map(dominant_left_vector, C)))


def _norms(vectors: Float64Array) -> Float64Array:
    """Return the length of each row."""
    norms: Float64Array = np.sqrt(dot_products(vectors, vectors))
    return norms


def dot_products(left: Float64Array, right: Float64Array) -> Float64Array:
    """Return the dot product of each row with the corresponding one; faster than ``einsum`` for few rows."""
    products: Float64Array = (left[:, None] @ right[:, :, None])[:, 0, 0]
    return products


def _transposed(matrices: Float64Array) -> Float64Array:
    return matrices.transpose(0, 2, 1)


def _project_out(basis: Float64Array, dual: Float64Array, vectors: Float64Array) -> Float64Array:
    """Return (I - basis' dual) v for each vector, where dual basis' = I."""
    if not basis.shape[1]:
        return vectors
    coordinates = dual @ vectors[:, :, None]
    return vectors - (_transposed(coordinates) @ basis)[:, 0]
