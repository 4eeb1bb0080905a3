r"""Exact PLS in a few reads: an approximate Gram action, corrected by block reads until the solution converges.

Let :math:`S_0` be an approximation of :math:`S = X_c^T X_c` from the first read: a sketch or a Gram matrix. A read for
a block of vectors V gives :math:`A = S V`. With V transformed so that :math:`V^T A = I`, to orthonormal scores,

.. math::
    S_1 v = A a + (I - A V^T) S_0 (v - V a), \quad a = A^T v ,

is exact on V, and positive semidefinite. The data is read for the rotations of the solution with :math:`S_1`, which is
then solved again, and so on; convergence is superlinear. The weights of the first component need no Gram action, and
every read makes at least one more component exact, so all c components are exact after c + 1 reads.

The error of a solution is estimated from its distance to the next one. These distances decrease ever faster, so the
error of the last solution is at most about :math:`d^2 / d'`, with the distance d of the last two solutions and d' of
the two before.
"""

from __future__ import annotations

import numpy as np

from .._core.types import Float64Array
from ..pls import Factors, LossyGramAction, subspace_sines
from ..states.gram import Gram
from ..states.moments import ROUNDING
from ..states.sketch import Sketch
from .multipass import MultipassGram
from .solution import Scaling, solve_scaled

# Directions whose scores keep a smaller share of squares after orthogonalization are dropped: so small a difference
# has too few digits, in particular if vectors are long relative to their scores.
_LEAST_SHARE = 1e-12
_DIGITS = 100 * float(np.finfo(np.float64).eps)
# On the data of benchmarks/few_reads.py, errors are at most twice d^2 / d'.
_SAFETY = 3.0
# After two reads, d' is unknown, and this power of d replaces it: a sketch is closest to S on the first rotations.
_FIRST_POWER = 0.25


class CorrectedGram:
    """An approximate Gram action, made exact in the directions that were read.

    Parameters
    ----------
    state : Gram or Sketch
        :math:`S_0`, from the first read.
    x_scale : ndarray of shape (n_columns,)
        Divisors of the columns, which make lengths of vectors comparable.

    Attributes
    ----------
    directions, actions : ndarray of shape (k, n_columns)
        V and A = SV, one row per vector, with V'A = I.
    lost : ndarray or float
        Sums of squares of the columns that are not represented in the solution.
    subspace_error : ndarray of shape (n_components,)
        Estimated error of the solution, for each number of components.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.solvers import CorrectedGram
    >>> from plstream.states import Gram
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> wrong, right = Gram(3, 1).update(2 * X, X[:, :1]), Gram(3, 1).update(X, X[:, :1])
    >>> v = np.array([1.0, 0.0, 0.0])
    >>> action, square = right.apply(v)
    >>> corrected = CorrectedGram(wrong, np.ones(3))
    >>> corrected.correct(v[None], action[None], np.array([[square]]))
    >>> bool(np.allclose(corrected.apply(v)[0], action))
    True
    """

    def __init__(self, state: Gram | Sketch, x_scale: Float64Array) -> None:
        self.state = state
        self.x_scale = x_scale
        self.directions = self.actions = np.zeros((0, len(x_scale)))
        self.forgetting = state.forgetting
        self.lost: Float64Array | float = state.lost
        self.subspace_error = state.subspace_error

    @property
    def rounding(self) -> float:
        """Relative rounding error of a sum of products."""
        return ROUNDING if len(self.directions) else self.state.rounding

    @property
    def variance_resolution(self) -> float:
        """Relative variance below which a direction cannot be distinguished from rounding errors."""
        return self.state.variance_resolution

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        """Return S1 v and v'S1 v."""
        if not len(self.directions):
            return self.state.apply(v)
        a, off = np.zeros(len(self.directions)), v
        # Twice, so that only rounding errors remain of a vector that was read.
        for _ in range(2):
            along = self.actions @ off
            a, off = a + along, off - along @ self.directions
        action, square = self.state.apply(off)
        return action + (a - self.directions @ action) @ self.actions, square + float(a @ a)

    def correct(self, V: Float64Array, A: Float64Array, products: Float64Array) -> None:
        """Make the action exact on vectors V as well, given A = SV and V'SV, with one row per vector.

        These come first, and the earlier directions are orthogonalized to them. The results may be small differences,
        but what depends on their rounding errors is small as well, because the solution is then close to V.
        """
        V, A = _orthonormal(V, A, products, _LEAST_SHARE)
        before, actions = self.directions, self.actions
        for _ in range(2):
            along = before @ A.T
            before, actions = before - along @ V, actions - along @ A
        # The rounding errors of |V|'|S||V|, where S is at least AA'.
        noise = _DIGITS * (_longest(self.directions * self.x_scale) * _longest(A / self.x_scale)) ** 2
        before, actions = _orthonormal(before, actions, before @ actions.T, max(_LEAST_SHARE, noise))
        self.directions, self.actions = np.concatenate([V, before]), np.concatenate([A, actions])


def _orthonormal(
    V: Float64Array, A: Float64Array, products: Float64Array, least: float
) -> tuple[Float64Array, Float64Array]:
    """Return combinations with V'A = I, without directions of smaller squares."""
    # Normalize scores to length one.
    lengths = np.sqrt(np.maximum(np.diag(products), 1.0))
    squares, basis = np.linalg.eigh((products + products.T) / 2 / lengths / lengths[:, None])
    held = squares > least
    turn = basis[:, held] / np.sqrt(squares[held]) / lengths[:, None]
    return turn.T @ V, turn.T @ A


def _longest(rows: Float64Array) -> float:
    return float(np.linalg.norm(rows, axis=1).max(initial=0.0))


def read_few_times(
    reads: MultipassGram, state: Gram | Sketch, n_components: int, *, scale: bool, tolerance: float, most: int
) -> LossyGramAction:
    """Read rows until the estimated error of their PLS solution is within a tolerance, and return the Gram action.

    Parameters
    ----------
    reads : MultipassGram
        The rows, after the first read.
    state : Gram or Sketch
        The state from this read.
    n_components : int
        Number of components.
    scale : bool
        Whether columns are scaled to unit variance.
    tolerance : float
        Estimated error at which to stop.
    most : int
        Maximum number of reads.
    """
    scaling = Scaling.of(state, scale=scale)
    gram = CorrectedGram(state, scaling.x_scale)
    factors = solve_scaled(state, gram, scaling, n_components, quiet=True)
    if factors.n_components < n_components < most:
        # Further components have less variance than the state resolves, so the rows must be read.
        return reads
    gram.subspace_error = _error_of_state(state, factors, float(scaling.x_squares.sum()))
    distance: Float64Array | None = None
    while gram.subspace_error.max() > tolerance and reads.n_reads < min(most, n_components + 1):
        found = factors.n_components
        lengths = np.sqrt(factors.score_squares[:found])
        V = np.ascontiguousarray((factors.x_rotations[:, :found] / lengths / scaling.x_scale[:, None]).T)
        gram.correct(V, *reads.apply_block(V))
        before, factors = factors, solve_scaled(state, gram, scaling, n_components, quiet=True)
        change = _changes(before, factors)
        before_that = change**_FIRST_POWER if distance is None else distance
        estimate = _SAFETY * change * change / np.maximum(np.maximum(before_that, change), ROUNDING)
        gram.subspace_error = np.where(change > 0, np.clip(estimate, ROUNDING, 1.0), 0.0)
        # The first weights are always exact, and every read makes one more exact.
        gram.subspace_error[: reads.n_reads - 1] = 0.0
        gram.lost, distance = 0.0, change
    return gram


def _error_of_state(state: Gram | Sketch, factors: Factors, x_squares: float) -> Float64Array:
    """Return the estimated error of the solution of a state, for each number of components."""
    c, found = len(factors.score_squares), factors.n_components
    error = np.zeros(c)
    # Without an estimate, the error due to the discarded part is unknown.
    error[:found] = float(np.any(state.lost))
    known = state.subspace_error[:found]
    if len(known) > 1:
        # The first weights are exact, but not the rest of the first component.
        error[: len(known)] = np.maximum(known, known[1])
    condition = x_squares * np.square(factors.x_rotations[:, :found]).sum(axis=0) / factors.score_squares[:found]
    rounding = np.maximum(state.variance_resolution * condition, ROUNDING * np.sqrt(condition))
    error[:found] = np.maximum(error[:found], np.maximum.accumulate(rounding))
    return np.minimum(error, 1.0)


def _changes(before: Factors, after: Factors) -> Float64Array:
    """Return the distance between two solutions, in weights or coefficients, for each number of components."""
    changes = np.zeros(len(after.score_squares))
    found = sorted([before.n_components, after.n_components])
    changes[found[0] : found[1]] = 1.0
    sines = subspace_sines(after.x_weights[:, : found[0]], before.x_weights[:, : found[0]])
    total, difference = np.zeros((2, len(after.x_weights), len(after.y_loadings)))
    for k in range(found[0]):
        part = np.outer(after.x_rotations[:, k], after.y_loadings[:, k])
        total += part
        difference += part - np.outer(before.x_rotations[:, k], before.y_loadings[:, k])
        changes[k] = max(sines[k], float(np.linalg.norm(difference)) / (float(np.linalg.norm(total)) or 1.0))
    return changes
