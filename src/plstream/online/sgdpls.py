"""SGDPLS: partial least squares as the singular value decomposition of a cross-covariance, by stochastic gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from .._core.compiled import compiled
from .._core.schema import (
    Choice,
    Count,
    Entries,
    Kind,
    Number,
    Numbers,
    Object,
    OrNone,
    Rule,
    is_in_proportion,
    solved_numbers,
    stored,
)
from .._core.signs import peak_signs
from .._core.types import Array, Float64Array
from ..data import Source
from ._base import (
    ENCODING,
    TARGET,
    OnlineMethod,
    OnlineState,
    Recursion,
    Solved,
    Tile,
    is_finite,
    scale_into,
    square_and_product,
    state_of,
)

SingularTriplets = tuple[Float64Array, Float64Array, Float64Array]

# Rank beyond the number of components that "msg" and "incremental" keep: what is small so far may turn out to be large.
# With none, the last of 5 components of 10 classes of images was 81 degrees off; with 4, the rank of 10 classes, none.
_EXTRA_RANK = 10
# Steps that did well on simulated data, digits, faces and images of 10 and of 200 classes.
_ETA0 = {"sgd": 0.3, "msg": 0.05, "incremental": 0.0}
# Those of the released code, and how often it reads the data.
_RELEASED_ETA0 = 0.001
_RELEASED_EPOCHS = 100
# Rows after which bases are made orthonormal again, up to a rounding error.
_ROWS_BETWEEN_ORTHONORMALISATIONS = 256
# Features that are turned at a time: those of all vectors stay in the innermost cache.
_BLOCK_FEATURES = 256
# What is left of a row by the vectors that it is made of, and a singular value that is zero, but for rounding errors.
_NOTHING_LEFT = 1e-13
_NO_VALUE = 1e-14
# Products |x||y| below this count as zero: some of their entries could be.
_NO_LENGTH = 1e-290
# Most that one row may change a vector by, as a share of its length: bases cannot collapse.
_LARGEST_STEP = 0.5
# Steps per row, which take as long as so many rows.
MOST_STEPS = 1000
# Operations of compiled loops in one call: a fraction of a second, after which an interrupt is noticed.
_MOST_WORK = 1 << 27
# A basis is kept as a triangular factor times vectors, until an entry of the factor's diagonal is above this, or below
# one over it: it multiplies rounding errors.
_LARGEST_FACTOR = 100.0


def _has_that_rank(its: Any) -> bool:
    """Return whether there are no more vectors than the cross-covariance can have."""
    return bool(len(its.U) <= min(its.U.shape[1], its.V.shape[1]))


# What declarations have in common.
_RANK: dict[str, Rule] = {"there are no more vectors than features or responses": _has_that_rank}


@stored({"U": Numbers("r", "m"), "s": Numbers("r", least=0), "V": Numbers("r", "q")}, _RANK)
@dataclass
class IncrementalSVD(Recursion):
    """Largest singular values of the sum of xy', U'diag(s)V, with their vectors in the rows of U and V."""

    U: Float64Array
    s: Float64Array
    V: Float64Array

    @classmethod
    def of(cls, rank: int, n_features: int, n_columns: int) -> IncrementalSVD:
        """Return the decomposition of zero."""
        return cls(np.zeros((rank, n_features)), np.zeros(rank), np.zeros((rank, n_columns)))

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        return int(incremental_svd(tile.U, tile.V, tile.n_before, self.U, self.s, self.V))

    def factors(self, n_rows: int) -> SingularTriplets:
        """Return the rows of U and V, and the covariances of their scores, the largest first."""
        rank = int(np.count_nonzero(self.s))
        return self.U[:rank], self.V[:rank], self.s[:rank] / max(1, n_rows - 1)


_LAST_ROW: dict[str, Kind] = {
    "previous_x": Numbers("m"),
    "previous_y": Numbers("q"),
    "totals": Numbers(3),
    "eta0": Number(0),
    "n_steps": Count(1, MOST_STEPS),
}


@stored(
    {
        "U": Numbers("r", "m"),
        "s": Numbers("r", least=0),
        "V": Numbers("r", "q"),
        "covariance": Numbers("r", "r"),
        "n_components": Count(1),
        **_LAST_ROW,
    },
    {**_RANK, "there are no more components than rows": lambda its: its.n_components <= len(its.s)},
)
@dataclass
class MatrixGradient(Recursion):
    """The matrix U'diag(s)V, of spectral norm 1 and nuclear norm c at most, that has the largest products with xy'.

    Attributes
    ----------
    U, V : ndarrays of shape (rank, m) and (rank, q)
        Orthonormal rows.
    s : ndarray of shape (rank,)
        Singular values.
    covariance : ndarray of shape (rank, rank)
        Estimated covariances of Ux with Vy.
    previous_x, previous_y : ndarrays of shape (m,) and (q,)
        The last row.
    totals : ndarray of shape (3,)
        Sums of squares of x and of y, and of products of rows.
    n_components : int
        c.
    eta0, n_steps : float and int
        Size of steps, and steps per row.
    """

    U: Float64Array
    s: Float64Array
    V: Float64Array
    covariance: Float64Array
    previous_x: Float64Array
    previous_y: Float64Array
    totals: Float64Array
    n_components: int
    eta0: float
    n_steps: int

    @classmethod
    def of(
        cls, n_components: int, rank: int, n_features: int, n_columns: int, eta0: float, n_steps: int
    ) -> MatrixGradient:
        """Return the matrix zero."""
        return cls(
            U=np.zeros((rank, n_features)),
            s=np.zeros(rank),
            V=np.zeros((rank, n_columns)),
            covariance=np.zeros((rank, rank)),
            previous_x=np.zeros(n_features),
            previous_y=np.zeros(n_columns),
            totals=np.zeros(3),
            n_components=n_components,
            eta0=eta0,
            n_steps=n_steps,
        )

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        state = (self.U, self.s, self.V, self.covariance, self.previous_x, self.previous_y, self.totals)
        options = (self.eta0, self.n_steps, self.n_components)
        # A step takes a singular value decomposition.
        work = self.n_steps * 20 * len(self.s) ** 3
        return _in_short_calls(tile, work, lambda X, Y, n: matrix_gradient(X, Y, n, *state, *options))

    def factors(self, n_rows: int) -> SingularTriplets:
        """Return the rows of U and V, and the covariances of their scores, the largest first."""
        rank = min(self.n_components, int(np.count_nonzero(self.s)))
        return _aligned(self.U[:rank], self.V[:rank], self.covariance[:rank, :rank])


@stored(
    {
        "U": Numbers("c", "m"),
        "U_factor": Numbers("c", "c"),
        "V": Numbers("c", "q"),
        "V_factor": Numbers("c", "c"),
        "begun": Numbers(1, dtypes=("int64",), least=0),
        "covariance": Numbers("c", "c"),
        **_LAST_ROW,
    },
    # Compiled loops take it for the number of rows that there are.
    {**_RANK, "no more rows have begun than there are": lambda its: its.begun[0] <= len(its.U)},
)
@dataclass
class StochasticGradient(Recursion):
    """Orthonormal bases whose scores have the largest covariances: the rows of U_factor U and of V_factor V.

    Attributes
    ----------
    U, V : ndarrays of shape (c, m) and (c, q)
        Vectors.
    U_factor, V_factor : ndarrays of shape (c, c)
        Lower triangular matrices.
    begun : ndarray of shape (1,)
        Rows of U that are not zero.
    covariance : ndarray of shape (c, c)
        Estimated covariances of the scores.
    previous_x, previous_y : ndarrays of shape (m,) and (q,)
        The last row.
    totals : ndarray of shape (3,)
        Sums of squares of x and of y, and of products of rows.
    eta0, n_steps : float and int
        Size of steps, and steps per row.
    """

    U: Float64Array
    U_factor: Float64Array
    V: Float64Array
    V_factor: Float64Array
    begun: Array
    covariance: Float64Array
    previous_x: Float64Array
    previous_y: Float64Array
    totals: Float64Array
    eta0: float
    n_steps: int

    @classmethod
    def of(cls, V: Float64Array, n_features: int, eta0: float, n_steps: int) -> StochasticGradient:
        """Return bases that have seen no rows, given that for y."""
        c, n_columns = V.shape
        return cls(
            U=np.zeros((c, n_features)),
            U_factor=np.eye(c),
            V=V,
            V_factor=np.eye(c),
            begun=np.zeros(1, dtype=np.int64),
            covariance=np.zeros((c, c)),
            previous_x=np.zeros(n_features),
            previous_y=np.zeros(n_columns),
            totals=np.zeros(3),
            eta0=eta0,
            n_steps=n_steps,
        )

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        bases = (self.U, self.U_factor, self.V, self.V_factor, self.begun, self.covariance)
        past = (self.previous_x, self.previous_y, self.totals)
        work = self.n_steps * 4 * len(self.U) ** 3

        def learn(X: Float64Array, Y: Float64Array, n_before: int) -> int:
            return stochastic_gradient(X, Y, n_before, *bases, *past, self.eta0, self.n_steps)

        return _in_short_calls(tile, work, learn)

    def factors(self, n_rows: int) -> SingularTriplets:
        """Return the rows of U and V, and the covariances of their scores, the largest first."""
        rank = int(self.begun[0])
        U, V = self.U_factor @ self.U, self.V_factor @ self.V
        return _aligned(U[:rank], V[:rank], self.covariance[:rank, :rank])


@stored(
    {"U": Numbers("c", "m"), "V": Numbers("c", "q"), "eta0": Number(0), "n_steps": Count(1, MOST_STEPS)},
)
@dataclass
class UnprojectedGradient(Recursion):
    """Matrices that take steps along the gradient and are never made orthonormal, as in the released code.

    Attributes
    ----------
    U, V : ndarrays of shape (c, m) and (c, q)
        The matrices, by rows.
    eta0, n_steps : float and int
        Size of steps, and steps per row.
    """

    U: Float64Array
    V: Float64Array
    eta0: float
    n_steps: int

    @property
    def advice(self) -> str:
        """What to do when numbers are no longer finite."""
        return "center and scale the features, use a smaller eta0 or fewer epochs, or variant='corrected'"

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        tile.U[:] = tile.X
        failed = int(unprojected_gradient(tile.U, tile.Y, self.U, self.V, self.eta0, self.n_steps))
        if failed < 0:
            # The last step may have been one too far.
            bad = ~(np.isfinite(self.U).all(axis=1) & np.isfinite(self.V).all(axis=1))
            failed = int(bad.argmax()) if bad.any() else -1
        return failed


def _in_short_calls(tile: Tile, work: int, learn: Callable[[Float64Array, Float64Array, int], int]) -> int:
    """Let a compiled loop learn from so many rows at a time that it returns now and then; ``work`` is that of a row."""
    step = max(1, _MOST_WORK // work)
    for start in range(0, len(tile.U), step):
        rows = slice(start, start + step)
        failed = int(learn(tile.U[rows], tile.V[rows], tile.n_before + start))
        if failed >= 0:
            return failed
    return -1


def _aligned(U: Float64Array, V: Float64Array, covariance: Float64Array) -> SingularTriplets:
    """Return bases of the same spaces whose scores have no covariances but those of pairs, and these."""
    A, s, B = np.linalg.svd(covariance)
    return A.T @ U, B @ V, s


@compiled
def incremental_svd(
    X: Float64Array, Y: Float64Array, n_before: int, U: Float64Array, s: Float64Array, V: Float64Array
) -> int:
    """Add the outer products of the rows to U'diag(s)V, and keep its largest singular values, as many as there are."""
    for k in range(len(X)):
        n = n_before + k + 1
        rank = int(np.count_nonzero(s))
        x_parts, y_parts = _split(X[k], U, rank), _split(Y[k], V, rank)
        weight = _outer_weight(n)
        lengths = weight * math.sqrt(_square(x_parts)) * math.sqrt(_square(y_parts))
        if not is_finite(lengths + s[0]):
            return 0
        if lengths < _NO_LENGTH:
            continue
        inner = np.zeros((rank + 1, rank + 1))
        for i in range(rank):
            inner[i, i] = s[i]
        _add_outer(inner, x_parts, y_parts, weight)
        A, B = _decompose(inner, s)
        kept = int(np.count_nonzero(s))
        _turn(U, X[k], A[:kept])
        _turn(V, Y[k], B[:kept])
        if n % _ROWS_BETWEEN_ORTHONORMALISATIONS == 0:
            _orthonormalise(U[:kept])
            _orthonormalise(V[:kept])
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
    """Take steps of U'diag(s)V along xy', with a projection after each.

    ``covariance`` is the mean of Uxy'V', in which a row counts in proportion to its number. The previous rows and the
    totals are those of :func:`_step_size`.
    """
    for k in range(len(X)):
        n = n_before + k + 1
        rank = int(np.count_nonzero(s))
        eta = _step_size(X[k], Y[k], n, previous_x, previous_y, totals, eta0) / n_steps
        if not is_finite(eta):
            return 0
        share = 2.0 / max(2, n)
        _scale_rows(covariance, 1 - share)
        if eta == 0:
            continue
        x_parts, y_parts, weight = _split(X[k], U, rank), _split(Y[k], V, rank), _outer_weight(n)
        mean, inner = np.zeros((rank + 1, rank + 1)), np.zeros((rank + 1, rank + 1))
        for i in range(rank):
            scale_into(mean[i, :rank], 1.0, covariance[i])
            inner[i, i] = s[i]
        _add_outer(mean, x_parts, y_parts, share * weight)
        for _ in range(n_steps):
            _add_outer(inner, x_parts, y_parts, eta * weight)
            A, B = _decompose(inner, s)
            project_singular_values(s, n_components)
            kept = int(np.count_nonzero(s))
            _scale_rows(inner, 0.0)
            for i in range(kept):
                _add_outer(inner, A[i], B[i], s[i])
        _turn_covariance(mean, A, B, kept, covariance)
        _turn(U, X[k], A[:kept])
        _turn(V, Y[k], B[:kept])
        if n % _ROWS_BETWEEN_ORTHONORMALISATIONS == 0:
            _orthonormalise(U[:kept])
            _orthonormalise(V[:kept])
    return -1


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
    """Take steps of the bases along x(y'V) and y(x'U), and make them orthonormal after each.

    The bases are the rows of U_factor U and of V_factor V. So to orthonormalise is to change small factors, which are
    lower triangular, and a row costs two passes over U. Only the first begun[0] rows of U are there, see
    :func:`_begin_pair`. ``covariance`` is as in :func:`matrix_gradient`, and is turned with the bases.
    """
    c = len(U)
    left = np.empty(X.shape[1])
    for k in range(len(X)):
        x, y, n = X[k], Y[k], n_before + k + 1
        eta = _step_size(x, y, n, previous_x, previous_y, totals, eta0) / n_steps
        if not is_finite(eta):
            return 0
        share = 2.0 / max(2, n)
        _scale_rows(covariance, 1 - share)
        if eta == 0:
            continue
        if begun[0] < c and _has_part_outside(y, V, V_factor, begun[0]):
            _apply_factor(U_factor, U)
            _apply_factor(V_factor, V)
            scale_into(left, 1.0, x)
            begun[0] += _begin_pair(left, y, U, V, begun[0], math.sqrt(totals[0] / n), math.sqrt(totals[1] / n))
        x_square, y_square = _square(x), _square(y)
        x_parts, y_parts = _product(U_factor, _product(U, x)), _product(V_factor, _product(V, y))
        weight = _outer_weight(n)
        gradient = _first_of(y_parts, begun[0], 1.0)
        _add_outer(covariance, x_parts, gradient, share * weight)
        x_coefficients, y_coefficients = np.zeros(c), np.zeros(c)
        for _ in range(n_steps):
            gradient = _first_of(y_parts, begun[0], eta * weight)
            x_turn = _step(gradient, x_square, x_parts, x_coefficients, U_factor)
            gradient = _first_of(x_parts, begun[0], eta * weight)
            y_turn = _step(gradient, y_square, y_parts, y_coefficients, V_factor)
            _turn_covariance(covariance.copy(), x_turn, y_turn, begun[0], covariance)
        for i in range(c):
            if not is_finite(x_parts[i] + y_parts[i]):
                return i
        _solve(U_factor, x_coefficients.reshape(c, 1))
        _solve(V_factor, y_coefficients.reshape(c, 1))
        _add_outer(U, x_coefficients, x, 1.0)
        _add_outer(V, y_coefficients, y, 1.0)
        is_due = n % _ROWS_BETWEEN_ORTHONORMALISATIONS == 0
        if is_due or _has_outgrown(U_factor):
            _apply_factor(U_factor, U)
        if is_due or _has_outgrown(V_factor):
            _apply_factor(V_factor, V)
    return -1


@compiled
def unprojected_gradient(
    X: Float64Array, Y: Float64Array, U: Float64Array, V: Float64Array, eta: float, n_steps: int
) -> int:
    """Add eta*x(y'V) to U and eta*y(x'U) to V, both at the same time, for every row."""
    for k in range(len(X)):
        for _ in range(n_steps):
            for i in range(len(U)):
                _, y_part = square_and_product(Y[k], V[i])
                x_part = _product_and_add(U[i], eta * y_part, X[k])
                if not is_finite(x_part + y_part):
                    return i
                _add_multiple(V[i], eta * x_part, Y[k])
    return -1


@compiled
def _product_and_add(u: Float64Array, factor: float, x: Float64Array) -> float:
    """Return u.x, and add factor*x to u."""
    product = 0.0
    for j in range(len(u)):
        product += u[j] * x[j]
        u[j] += factor * x[j]
    return product


@compiled
def project_singular_values(s: Float64Array, total: float) -> None:
    """Set s, in descending order, to the nearest numbers from 0 to 1 whose sum is at most ``total``.

    They are min(1, max(0, s - h)), with h = 0 if that will do. Their sum is a function of h made of straight pieces,
    which meet where h is an s or an s - 1.
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
def _outer_weight(n: int) -> float:
    """Return the weight of xy' in the centred X'Y, if the means that x and y of row n are minus include that row."""
    return n / max(1.0, n - 1.0)


@compiled
def _step_size(
    x: Float64Array,
    y: Float64Array,
    n: int,
    previous_x: Float64Array,
    previous_y: Float64Array,
    totals: Float64Array,
    eta0: float,
) -> float:
    """Return eta0/sqrt(t) over the norm of the cross-covariance, as estimated; zero if x or y is zero.

    The square of that norm is the mean of (x.x')(y.y') for two independent rows: here, a row and the previous one. It
    is at least a t-th of the mean of |x|^2 times that of |y|^2, which is how far the estimate is off. ``totals`` are
    the sums of |x|^2, of |y|^2 and of those products, and are updated, as are the previous rows.
    """
    weight = _outer_weight(n)
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
    if n == 1 or lengths < _NO_LENGTH:
        return 0.0
    t = n - 1.0
    least_norm = math.sqrt(totals[0]) * math.sqrt(totals[1]) / math.sqrt(t) / t
    eta = eta0 / math.sqrt(t) / max(math.sqrt(max(totals[2], 0.0) / t), least_norm)
    return min(eta, _LARGEST_STEP / lengths)


@compiled
def _split(x: Float64Array, U: Float64Array, rank: int) -> Float64Array:
    """Return the products of x with the first rows of U, and the length of what is left, whose direction x becomes.

    The rows are orthonormal. If little is left, they are taken out of that once more, so that it is orthogonal to them.
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
    if is_finite(whole) and length <= _NOTHING_LEFT * math.sqrt(whole):
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
def _decompose(inner: Float64Array, s: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Set s to as many singular values as it holds, rounding errors to zero; return the vectors, as rows."""
    A, values, B = np.linalg.svd(inner)
    for i in range(len(s)):
        s[i] = values[i] if i < len(values) and values[i] > _NO_VALUE * values[0] else 0.0
    return np.ascontiguousarray(A.T), np.ascontiguousarray(B)


@compiled
def _turn(U: Float64Array, x: Float64Array, R: Float64Array) -> None:
    """Set the first rows of U to the product of R with the matrix of the rows of U and, as the last one, x."""
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


@compiled
def _orthonormalise(U: Float64Array) -> None:
    """Correct rows that are orthonormal or zero but for rounding errors, by the method of Gram and Schmidt."""
    for i in range(len(U)):
        square = _square(U[i])
        if square > 0:
            scale_into(U[i], 1 / math.sqrt(square), U[i])
        for h in range(i + 1, len(U)):
            _, product = square_and_product(U[h], U[i])
            _add_multiple(U[h], -product, U[i])


@compiled
def _has_part_outside(y: Float64Array, V: Float64Array, V_factor: Float64Array, begun: int) -> bool:
    """Return whether y may have a part in rows of V without a partner: if not, there is no need to look at x."""
    parts = _product(V_factor, _product(V, y))[begun:]
    return _square(parts) > (_NOTHING_LEFT / 10) ** 2 * _square(y)


@compiled
def _begin_pair(
    left: Float64Array, y: Float64Array, U: Float64Array, V: Float64Array, begun: int, x_size: float, y_size: float
) -> int:
    """Begin another row of U with the part of x, ``left``, that is outside it; return whether there is such a part.

    Its partner is the direction, among the rows of V without one, that y has a part in. So there are no more pairs than
    x and y have dimensions, and nothing of U is random. The sizes are those of usual rows.
    """
    if _split(left, U, begun)[begun] <= _NOTHING_LEFT * x_size:
        return 0
    parts = _product(V[begun:], y)
    length = math.sqrt(_square(parts))
    if length <= _NOTHING_LEFT * max(y_size, math.sqrt(_square(y))):
        return 0
    # A reflection takes the parts to (length, 0, ..., 0) or its negative, whichever is further off.
    sign = 1.0 if parts[0] > 0 else -1.0
    parts[0] += sign * length
    image = np.zeros(len(y))
    for i in range(len(parts)):
        _add_multiple(image, 2 * parts[i] / _square(parts), V[begun + i])
    for i in range(len(parts)):
        _add_multiple(V[begun + i], -parts[i], image)
    scale_into(V[begun], -sign, V[begun])
    scale_into(U[begun], 1.0, left)
    return 1


@compiled
def _step(
    gradient: Float64Array, square: float, parts: Float64Array, coefficients: Float64Array, factor: Float64Array
) -> Float64Array:
    """Add gradient*x' to the rows of an orthonormal basis and orthonormalise it, given its parts of x and |x|^2.

    The basis is factor times vectors plus coefficients*x'. If LL' are the products of its new rows with one another, it
    is multiplied by the inverse of L, which is the method of Gram and Schmidt. Return how the old basis turned into the
    new one: the products of the new rows with the old ones, made orthonormal.
    """
    c = len(parts)
    turn = np.eye(c)
    _add_outer(turn, gradient, parts, 1.0)
    L = turn.copy()
    _add_outer(L, parts, gradient, 1.0)
    _add_outer(L, gradient, gradient, square)
    _cholesky(L)
    _add_multiple(parts, square, gradient)
    _add_multiple(coefficients, 1.0, gradient)
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
    """Set the lower triangle of a positive definite A to that of L, of which A = LL'."""
    for i in range(len(A)):
        for h in range(i):
            _, known = square_and_product(A[i, :h], A[h, :h])
            A[i, h] = (A[i, h] - known) / A[h, h]
        A[i, i] = math.sqrt(A[i, i] - _square(A[i, :i]))


@compiled
def _solve(L: Float64Array, B: Float64Array) -> None:
    """Set B to the X of LX = B, for a lower triangular L."""
    for i in range(len(L)):
        for h in range(i):
            _add_multiple(B[i], -L[i, h], B[h])
        scale_into(B[i], 1 / L[i, i], B[i])


@compiled
def _apply_factor(factor: Float64Array, U: Float64Array) -> None:
    """Multiply U by the factor and orthonormalise it; the factor becomes one."""
    for i in range(len(U) - 1, -1, -1):
        scale_into(U[i], factor[i, i], U[i])
        for h in range(i):
            _add_multiple(U[i], factor[i, h], U[h])
        for h in range(len(U)):
            factor[i, h] = i == h
    _orthonormalise(U)


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


@compiled
def _turn_covariance(old: Float64Array, A: Float64Array, B: Float64Array, n: int, out: Float64Array) -> None:
    """Set the first n rows and columns of ``out`` to those of A old B', and the others to zero."""
    _scale_rows(out, 0.0)
    for i in range(n):
        row = np.zeros(len(old))
        for h in range(len(old)):
            _add_multiple(row, A[i, h], old[h])
        for j in range(n):
            _, out[i, j] = square_and_product(row, B[j])


@compiled
def _product(U: Float64Array, x: Float64Array) -> Float64Array:
    """Return the products of the rows of U with x."""
    products = np.empty(len(U))
    for i in range(len(U)):
        _, products[i] = square_and_product(x, U[i])
    return products


@compiled
def _add_outer(out: Float64Array, a: Float64Array, b: Float64Array, factor: float) -> None:
    """Add factor*ab'."""
    for i in range(len(a)):
        _add_multiple(out[i], factor * a[i], b)


@compiled
def _scale_rows(A: Float64Array, factor: float) -> None:
    for i in range(len(A)):
        scale_into(A[i], factor, A[i])


@compiled
def _square(a: Float64Array) -> float:
    """Return a.a."""
    square, _ = square_and_product(a, a)
    return square


@compiled
def _add_multiple(out: Float64Array, factor: float, a: Float64Array) -> None:
    for j in range(len(out)):
        out[j] += factor * a[j]


@stored(
    {
        "x_mean": Numbers("m"),
        "y_mean": Numbers("q"),
        "x_weights": solved_numbers("m", "s"),
        "y_weights": solved_numbers("q", "s"),
        "singular_values": solved_numbers("s", least=0),
        "n_components": Count(),
    }
)
@dataclass(frozen=True)
class CrossCovarianceSVD:
    """Pairs of directions in the order of their covariances, largest entries of those of X positive."""

    x_mean: Float64Array
    y_mean: Float64Array
    x_weights: Float64Array
    y_weights: Float64Array
    singular_values: Float64Array
    n_components: int

    @property
    def projection(self) -> Float64Array:
        """The weights of X."""
        return self.x_weights


@stored(
    {
        "x_mean": Numbers("m"),
        "y_mean": Numbers("q"),
        "x_weights": solved_numbers("m", "s"),
        "y_weights": solved_numbers("q", "s"),
        "n_components": Count(),
    }
)
@dataclass(frozen=True)
class ReleasedBases:
    """What the released code projects rows to, without centring them."""

    x_mean: Float64Array
    y_mean: Float64Array
    x_weights: Float64Array
    y_weights: Float64Array
    n_components: int

    @property
    def singular_values(self) -> Float64Array:
        """Not known."""
        raise AttributeError("variant='released' does not estimate singular values: use variant='corrected'.")

    @property
    def projection(self) -> Float64Array:
        """The weights of X."""
        return self.x_weights


@stored(
    {
        "_begun_with": Entries(
            n_components=Count(1, size="s"),
            algorithm=Choice("sgd", "msg", "incremental"),
            eta0=OrNone(Number(0)),
            n_steps=Count(1, MOST_STEPS),
            variant=Choice("corrected", "released"),
            target=TARGET,
        ),
        "_encoding": ENCODING,
        "_state": state_of(IncrementalSVD, MatrixGradient, StochasticGradient, UnprojectedGradient),
        "_solved": OrNone(Object(CrossCovarianceSVD, ReleasedBases, m="m", q="q", s="s")),
    },
    {
        "components are in proportion to its arrays": lambda its: is_in_proportion(
            its._begun_with["n_components"] * (its.sizes["m"] + its.sizes["q"]), its
        ),
        "there are as many steps as it began with": lambda its: (
            getattr(its._state.recursion, "n_steps", its._begun_with["n_steps"]) == its._begun_with["n_steps"]
        ),
    },
)
class SGDPLS(OnlineMethod):
    """Partial least squares as a singular value decomposition of the cross-covariance of X and y, by gradients.

    The components are the pairs of directions in X and y whose scores have the largest covariances, as in
    scikit-learn's PLSSVD. They are not deflated as in PLS regression, with which they share the first one. Rows are
    taken in one by one, and memory is that of a few vectors.

    Parameters
    ----------
    n_components : int, default=2
        Number of components. There are no more than y has dimensions: one for two classes or one response, k - 1 for k
        classes, q for q responses. Further ones are zero.
    algorithm : {"sgd", "msg", "incremental"}, default="sgd"
        How the directions are found.

        - "sgd": steps of both bases along the gradient, x(y'V) and y(x'U). The fastest, and the least accurate.
        - "msg": steps of a matrix along xy', each followed by a projection to singular values from 0 to 1 with a sum of
          at most ``n_components``.
        - "incremental": a singular value decomposition of the sum of all xy', of which only the largest values are
          kept after each row, 10 more than components. Exact if there are no others, in particular for 12 classes or
          fewer, and the most accurate in general. It has no steps.
    eta0 : float, default=None
        Size of steps: that of row t is eta0/sqrt(t), divided by an estimate of the norm of the cross-covariance, so
        that units do not matter, and no row changes a direction by more than half its length. By default 0.3 for "sgd"
        and 0.05 for "msg". As released, the step itself, the same for all rows, by default 0.001.
    n_steps : int, default=1
        Steps with every row, each an ``n_steps``-th of its size, at most 1,000. As released, each of full size.
    n_epochs : int, default=None
        Passes over the rows in ``fit``, which reads a source as often; ``partial_fit`` makes one pass, as in
        scikit-learn's methods of stochastic gradients. By default 1, and as released 100.
    variant : {"corrected", "released"}, default="corrected"
        Whether gradients are those of centred rows, with bases that are kept orthonormal, or as in the code released
        with the CIPLS paper, in order to reproduce its results: see the notes. Only for "sgd".
    random_state : int, RandomState instance or None, default=None
        Where the directions in y begin with "sgd". The other algorithms have nothing random.
    target : {"auto", "labels", "values"}, default="auto"
        What y is. By default floats are values unless classes are given, and all else is labels. Two classes are one
        column of -1 and +1, and more are one such column for each class.
    missing : {"error", "mean"}, default="error"
        What to do with NaN in X. "mean" replaces it by the mean of the values of the feature up to its row (before its
        first value, by that, which must be in the same call), in ``transform`` and the like by the mean of the model.

    Attributes
    ----------
    x_weights_ : ndarray of shape (n_features, n_components)
        Directions in X: orthonormal columns, largest entries positive, in the order of their covariances. As released,
        in no order.
    y_weights_ : ndarray of shape (n_columns, n_components)
        The same in the columns that y is turned into. As released, of unit length, but not orthogonal.
    singular_values_ : ndarray of shape (n_components,)
        Covariances of the scores of X with those of y, as estimated. As released there are none.
    x_mean_ : ndarray of shape (n_features,)
        Means of the features. As released zero, because rows are not centred.
    y_mean_ : ndarray of shape (n_columns,)
        Means of the columns that y is turned into. As released zero.
    classes_ : ndarray of shape (n_classes,)
        The labels, if y holds labels.
    n_components_ : int
        Components that the rows so far have; further ones are zero.
    n_samples_seen_ : int
        Number of training samples, with those of every pass.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has any that are all strings.

    See Also
    --------
    sklearn.cross_decomposition.PLSSVD : The same decomposition of data in memory.
    plstream.IncrementalPLS : PLS regression, exact.

    Notes
    -----
    The code released with the CIPLS paper neither centres X and y nor keeps its matrices from growing, so they overflow
    after some thousand rows, and of the components past the dimensions of y it returns what it began with, which was
    random. Here rows are minus the running means, in a way that makes the sum of all xy' exactly the centred X'Y; bases
    are orthonormal after every step; and a component begins with the first row that has a part outside the ones before.

    ``variant="released"`` computes what that code does: U += eta0 x(y'V) and V += eta0 y(x'U), with the U before the
    step, from a random U of orthonormal columns and a random V; the bases that rows are projected to, without centring,
    are the Q of U = QR. With a ``RandomState`` of the same seed both begin as that code does. The matrices grow as
    exp(eta0 T n s), where s is the largest singular value of the mean of xy', not centred: numbers overflow where the
    exponent reaches 700, after which an error says so. That code makes its T passes in every call; ``n_epochs`` passes
    in ``fit`` are the same as one such call with all rows, and ``n_steps`` steps in ``partial_fit`` as a call with each
    row.

    Gradients take many rows to settle, most of all where singular values are close to each other. The paper has 100
    passes or more over the data: set ``n_epochs``, or pass rows to ``partial_fit`` again. For scikit-learn's digits,
    1,797 rows, the space of 3 components is 8 to 10 degrees off with "sgd" and 6 with "msg" after one pass, and 2 and 1
    after ten (medians of the largest angle). That depends on the order of the rows: in 6 to 8 of 100 orders "sgd" had
    lost a component after one pass, "msg" in none. Within that space, directions come from a running estimate of the
    covariances of the scores.

    References
    ----------
    R. Arora, A. Cotter, K. Livescu and N. Srebro, "Stochastic optimization for PCA and PLS", Allerton Conference on
    Communication, Control, and Computing, 2012.

    R. Arora, P. Mianjy and T. Marinov, "Stochastic optimization for multiview representation learning using partial
    least squares", International Conference on Machine Learning, 2016.

    M. Brand, "Fast low-rank modifications of the thin singular value decomposition", Linear Algebra and its
    Applications 415, 2006.

    Examples
    --------
    >>> from plstream import SGDPLS
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SGDPLS(n_components=2, algorithm="incremental").fit(X, y)
    >>> model.x_weights_.round(2)
    array([[ 0.33,  0.33],
           [-0.11,  0.89],
           [ 0.86, -0.13],
           [ 0.37,  0.29]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OnlineMethod._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "algorithm": [StrOptions({"sgd", "msg", "incremental"})],
        "eta0": [Interval(Real, 0, None, closed="neither"), None],
        "n_steps": [Interval(Integral, 1, MOST_STEPS, closed="both")],
        "n_epochs": [Interval(Integral, 1, None, closed="left"), None],
        "variant": [StrOptions({"corrected", "released"})],
        "random_state": ["random_state"],
    }

    # One is for the first row alone, the other for fit.
    _free_parameters = frozenset({"random_state", "n_epochs"})

    x_weights_ = Solved("Directions in X.")
    y_weights_ = Solved("Directions in y.")
    singular_values_ = Solved("Covariances of the scores of X with those of y.")
    x_mean_ = Solved("Means of the features.")
    y_mean_ = Solved("Means of the columns that stand for y.")
    n_components_ = Solved("Components that the rows so far have.")

    def __init__(
        self,
        n_components: int = 2,
        *,
        algorithm: str = "sgd",
        eta0: float | None = None,
        n_steps: int = 1,
        n_epochs: int | None = None,
        variant: str = "corrected",
        random_state: Any = None,
        target: str = "auto",
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.eta0 = eta0
        self.n_steps = n_steps
        self.n_epochs = n_epochs
        self.variant = variant
        self.random_state = random_state
        self.target = target
        self.missing = missing

    def _n_passes(self, X: Any) -> int:
        n_epochs = self.n_epochs or (_RELEASED_EPOCHS if self.variant == "released" else 1)
        if n_epochs > 1 and isinstance(X, Source) and not X.rereadable:
            raise ValueError(
                f"{X.name} can be read only once, but fit is to read it {n_epochs} times: set n_epochs=1, or copy the "
                "data to a file."
            )
        return n_epochs

    def _begin(self, n_features: int, n_columns: int) -> OnlineState:
        if self.variant == "released":
            return self._begin_released(n_features, n_columns)
        # Columns of more than two classes, centred, add up to zero.
        of_classes = self._encoding is not None and self._encoding.labels is not None and n_columns > 1
        largest_rank = min(n_features, n_columns - of_classes)
        c, eta0 = min(self.n_components, largest_rank), float(self.eta0 or _ETA0[self.algorithm])
        rank = min(c + _EXTRA_RANK, largest_rank)
        recursion: Recursion
        if self.algorithm == "incremental":
            recursion = IncrementalSVD.of(rank, n_features, n_columns)
        elif self.algorithm == "msg":
            recursion = MatrixGradient.of(c, rank, n_features, n_columns, eta0, self.n_steps)
        else:
            random = check_random_state(self.random_state)
            V = np.linalg.qr(random.standard_normal((n_columns, c)))[0].T.copy()
            recursion = StochasticGradient.of(V, n_features, eta0, self.n_steps)
        return OnlineState.of(recursion, n_features, n_columns)

    def _begin_released(self, n_features: int, n_columns: int) -> OnlineState:
        if self.algorithm != "sgd":
            raise ValueError(f"variant='released' is for algorithm='sgd', not {self.algorithm!r}: set one of the two.")
        c, random = min(self.n_components, n_features), check_random_state(self.random_state)
        U = np.linalg.qr(random.standard_normal((n_features, c)))[0].T.copy()
        V = random.standard_normal((n_columns, c)).T.copy()
        recursion = UnprojectedGradient(U, V, float(self.eta0 or _RELEASED_ETA0), self.n_steps)
        # Its results depend on the units.
        return OnlineState.of(recursion, n_features, n_columns, fixed_unit=True)

    def _solve(self, state: OnlineState) -> CrossCovarianceSVD | ReleasedBases:
        n_components = self._begun_with["n_components"]
        if isinstance(state.recursion, UnprojectedGradient):
            return _released_bases(state.recursion, n_components)
        U, V, s = (factor[:n_components] for factor in state.recursion.factors(state.n_rows))
        missing = (0, n_components - len(s))
        x_weights, y_weights = (np.pad(vectors, (missing, (0, 0))).T for vectors in (U, V))
        signs = peak_signs(x_weights)
        with np.errstate(over="ignore", under="ignore"):
            singular_values = np.pad(s, missing) / (state.x.unit or 1.0) / (state.y.unit or 1.0)
        return CrossCovarianceSVD(
            x_mean=state.x.mean,
            y_mean=state.y.mean,
            x_weights=x_weights * signs,
            y_weights=y_weights * signs,
            singular_values=singular_values,
            n_components=len(s),
        )


def _released_bases(gradient: UnprojectedGradient, n_components: int) -> ReleasedBases:
    c, n_features = gradient.U.shape
    # In units in which squares do not overflow: powers of two change no digit.
    largest = np.abs(gradient.U).max(axis=1, keepdims=True)
    Q = np.linalg.qr((gradient.U * np.ldexp(1.0, -np.frexp(largest)[1])).T)[0]
    signs = peak_signs(Q)
    V = gradient.V / np.abs(gradient.V).max(axis=1, keepdims=True)
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    missing = ((0, 0), (0, n_components - c))
    return ReleasedBases(
        x_mean=np.zeros(n_features),
        y_mean=np.zeros(V.shape[1]),
        x_weights=np.pad(Q * signs, missing),
        y_weights=np.pad(V.T * signs, missing),
        n_components=c,
    )
