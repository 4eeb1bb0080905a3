"""Variants as in the CIPLS paper and its released code, including mistakes, to reproduce results.

The docstrings of the methods describe these mistakes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._core.compiled import compiled
from .._core.schema import Boolean, Count, Number, Numbers, solved_numbers, stored
from .._core.signs import peak_signs
from .._core.types import Float64Array
from ..solvers import Factors
from .gradients import MOST_STEPS
from .loops import add_multiple, difference_from_mean_before, is_finite, scale_into, square_and_product
from .state import Recursion, Tile, for_each_column

# A smaller remainder of an orthogonalized vector, relative to the largest variance, is a rounding error.
VANISHED = 1e-13
# The released code adds it to lengths to avoid division by zero.
_EPSILON = float(np.finfo(np.float64).eps)


@stored(
    {"U": Numbers("c", "m"), "V": Numbers("c", "q"), "eta0": Number(0), "n_steps": Count(1, MOST_STEPS)},
)
@dataclass
class UnprojectedGradient(Recursion):
    """Matrices that follow the gradient and are never orthonormalized, as in the released code.

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
        """Learn from the rows."""
        tile.U[:] = tile.X
        # A copy of y always has the same type; for others, Numba would compile the loop again.
        failed = int(unprojected_gradient(tile.U, tile.Y.copy(), self.U, self.V, self.eta0, self.n_steps))
        if failed < 0:
            # The last step may have overflowed.
            bad = ~(np.isfinite(self.U).all(axis=1) & np.isfinite(self.V).all(axis=1))
            failed = int(bad.argmax()) if bad.any() else -1
        return failed


@compiled
def unprojected_gradient(
    X: Float64Array, Y: Float64Array, U: Float64Array, V: Float64Array, eta: float, n_steps: int
) -> int:
    """Add eta*x(y'V) to U and simultaneously eta*y(x'U) to V, for every row."""
    for k in range(len(X)):
        for _ in range(n_steps):
            for i in range(len(U)):
                _, y_part = square_and_product(Y[k], V[i])
                x_part = _product_and_add(U[i], eta * y_part, X[k])
                if not is_finite(x_part + y_part):
                    return i
                add_multiple(V[i], eta * x_part, Y[k])
    return -1


@compiled
def _product_and_add(u: Float64Array, factor: float, x: Float64Array) -> float:
    """Return u.x, and add factor*x to u."""
    product = 0.0
    for j in range(len(u)):
        product += u[j] * x[j]
        u[j] += factor * x[j]
    return product


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
    """The bases on which the released code projects rows, without centring."""

    x_mean: Float64Array
    y_mean: Float64Array
    x_weights: Float64Array
    y_weights: Float64Array
    n_components: int

    @property
    def singular_values(self) -> Float64Array:
        """Not available: raises AttributeError."""
        raise AttributeError("variant='released' does not estimate singular values: use variant='corrected'.")

    @property
    def projection(self) -> Float64Array:
        """The weights of X."""
        return self.x_weights


def released_bases(gradient: UnprojectedGradient, n_components: int) -> ReleasedBases:
    """Return the directions of the released code: orthonormal ones of X, and those of y with length one."""
    c, n_features = gradient.U.shape
    # In units that avoid overflow of squares: powers of two are exact.
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


@stored(
    {
        "W": Numbers("q", "c", "m"),
        "P": Numbers("q", "c", "m"),
        "Q": Numbers("q", "c"),
        "squares": Numbers("q", "c", least=0, finite=False),
        "released": Boolean(),
    }
)
@dataclass
class PaperRecursion(Recursion):
    """The recursions of the paper and of its authors' code, whose loadings are unnormalized sums.

    Attributes
    ----------
    W, P : ndarray of shape (q, c, m)
        Directions and loadings of X.
    Q : ndarray of shape (q, c)
        Loadings of y.
    squares : ndarray of shape (q, c)
        Sums of squares of the scores used for the loadings.
    released : bool
        Whether to follow the code instead of the paper.
    """

    W: Float64Array
    P: Float64Array
    Q: Float64Array
    squares: Float64Array
    released: bool

    @property
    def advice(self) -> str:
        """What to do when numbers are no longer finite."""
        return super().advice + ", or variant='normalized'"

    @classmethod
    def of(cls, n_components: int, n_features: int, n_columns: int, *, released: bool) -> PaperRecursion:
        """Return the state before the first row."""
        shape = n_columns, n_components
        W, P = np.zeros((*shape, n_features)), np.zeros((*shape, n_features))
        return cls(W, P, np.zeros(shape), np.zeros(shape), released)

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


@stored({"V": Numbers("L?", "m"), "amnesic": Number(0)})
@dataclass
class ReleasedDirections(Recursion):
    """The principal components of the released code: each is nearly a multiple of the last row.

    Attributes
    ----------
    V : ndarray of shape (L, m)
        The vectors.
    amnesic : float
        l.
    """

    V: Float64Array
    amnesic: float

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        if tile.n_before == 0:
            # The very first row is not centred.
            tile.U[0] = tile.X[0]
        return int(ccipca_released(tile.U, self.V, tile.n_before, self.amnesic))

    def sorted(self) -> tuple[Float64Array, Float64Array]:
        """Return unit directions, one per row, and lengths, in descending order."""
        lengths = np.linalg.norm(self.V, axis=1)
        order = np.argsort(-lengths, kind="stable")
        return self.V[order] / or_one(lengths[order, None]), lengths[order]


@compiled
def ccipca_released(U: Float64Array, V: Float64Array, n_before: int, amnesic: float) -> int:
    """Update V as in the released code, where the weights of old and new rows are swapped; U is deflated in place."""
    for k in range(len(U)):
        u, n = U[k], n_before + k + 1
        for i in range(min(n, len(V))):
            if i + 1 == n:
                scale_into(V[i], 1.0, u)
                continue
            square, product = square_and_product(V[i], u)
            weight = (n - 1 - amnesic) / n
            square, product = _mix(V[i], 1 - weight, u, weight * product / (math.sqrt(square) + _EPSILON))
            if not is_finite(square + product):
                return i
            if square > 0:
                add_multiple(u, -product / square, V[i])
    return -1


@compiled
def _mix(v: Float64Array, old: float, u: Float64Array, new: float) -> tuple[float, float]:
    """Set v to old*v + new*u, and return v.v and v.u."""
    square, product = 0.0, 0.0
    for j in range(len(v)):
        vj = old * v[j] + new * u[j]
        v[j] = vj
        square += vj * vj
        product += vj * u[j]
    return square, product


def released_weights(
    starts: Float64Array, directions: Float64Array, lengths: Float64Array, n_components: int
) -> Float64Array:
    """Return weights like :func:`pls_weights`, from powers of S with one pass of Gram-Schmidt.

    This is what the released code does. Powers of S become nearly parallel, so weights are not quite orthogonal. Where
    a vector vanishes up to rounding errors, the released code returns these errors, and this function zeros.
    """
    W = np.zeros((n_components, *starts.shape))
    shares = lengths / (lengths.max(initial=0.0) or 1.0)
    power = left = starts / or_one(np.abs(starts).max(axis=1, keepdims=True))
    for i in range(n_components):
        lengths_left = np.linalg.norm(left, axis=1, keepdims=True)
        left = np.where(lengths_left > VANISHED, left / or_one(lengths_left), 0.0)
        if not left.any():
            break
        W[i] = left
        # Responses without further weights stay zero.
        power = np.where(left.any(axis=1, keepdims=True), power, 0.0)
        power = (power @ directions.T * shares) @ directions
        power /= or_one(np.linalg.norm(power, axis=1, keepdims=True))
        left = power.copy()
        for w in W[: i + 1]:
            left -= np.einsum("ij,ij->i", w, left)[:, None] * w
    return W.swapaxes(0, 1)


def or_one(numbers: Float64Array) -> Float64Array:
    """Return the numbers with zeros replaced by ones, to divide by them."""
    return np.where(numbers > 0, numbers, 1.0)
