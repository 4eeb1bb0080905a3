r"""The moments that every state keeps: counts, means, cross-covariance and sums of squares, exact and mergeable.

Two sets of rows with weights n and n', whose means differ by :math:`\delta_x, \delta_y`, combine as (Chan, Golub and
LeVeque, 1983)

.. math::
    f = \frac{n n'}{n + n'}, \quad
    C \leftarrow C + C' + f \delta_x \delta_y^T, \quad
    d \leftarrow d + d' + f \delta_x^2, \quad
    \bar x \leftarrow \bar x + \frac{n'}{n + n'} \delta_x .

Medians of a few rows are subtracted from every block before anything is multiplied. Data far from zero, or with a few
such rows, thus loses no digits, and a constant column has a variance of exactly zero. All computations are in float64,
whatever the data type.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import blas

from .._core.compiled import compiled, readable
from .._core.schema import Count, Number, Numbers, stored
from .._core.tiles import require_finite
from .._core.types import Array, Float64Array, FloatArray, Rows
from ..rows import Block

# The sum of squares of a sparse column about its mean is derived from that about zero if it is at least this share.
_SAFE_SHARE = 1e-3
# Entries of sparse columns converted to dense at a time.
_DENSE_ENTRIES = 1 << 20

# Relative rounding error of a product with rows.
ROUNDING = 10 * float(np.finfo(np.float64).eps)
TOO_LARGE = "X, y or the weights are too large: weighted squares overflow float64. Divide them by a constant first."


@stored()
class Moments:
    """Weight, means, cross-covariance and sums of squares of the rows absorbed so far.

    With several responses, Y may be a single column of class indices, which represents one indicator response per
    class. Their cross-covariance is computed from sums of rows, at a cost independent of the number of classes.

    Parameters
    ----------
    n_columns, n_targets : int
        Number of features and of responses.
    forgetting : float in (0, 1], default=1.0
        Factor by which the weight of all earlier rows shrinks with every row.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.states import Moments
    >>> X, Y = np.array([[1.0], [2.0], [6.0]]), np.array([[0.0], [1.0], [2.0]])
    >>> state = Moments(1, 1).update(X[:1], Y[:1]).update(X[1:], Y[1:])
    >>> state.x_mean, state.x_squares, state.cross
    (array([3.]), array([14.]), array([[5.]]))
    """

    forgetting: Annotated[float, Number(0, 1)]
    n_rows: Annotated[int, Count()]
    """Number of rows absorbed."""
    weight: Annotated[float, Number(0)]
    """Sum of the current weights of the rows."""
    typical_weight: Annotated[float, Number(0)]
    """Weighted mean of these weights."""
    # Weighted means, as sums of two numbers: far from zero, one number would be too coarse for differences of means.
    x_origin: Annotated[Float64Array, Numbers("m")]
    x_offset: Annotated[Float64Array, Numbers("m")]
    y_origin: Annotated[Float64Array, Numbers("q?")]
    y_offset: Annotated[Float64Array, Numbers("q?")]
    cross: Annotated[Float64Array, Numbers("m", "q?", any_order=True)]
    """Sum of (x - mean)(y - mean)'."""
    x_squares: Annotated[Float64Array, Numbers("m", least=0)]
    """Sum of (x - mean)^2."""
    y_squares: Annotated[Float64Array, Numbers("q?", least=0)]
    """Sum of (y - mean)^2."""

    def __init__(self, n_columns: int, n_targets: int, *, forgetting: float = 1.0) -> None:
        self.forgetting = forgetting
        self.n_rows = 0
        self.weight = 0.0
        self.typical_weight = 0.0
        self.x_origin, self.x_offset = np.zeros(n_columns), np.zeros(n_columns)
        self.y_origin, self.y_offset = np.zeros(n_targets), np.zeros(n_targets)
        self.cross = np.zeros((n_columns, n_targets))
        self.x_squares = np.zeros(n_columns)
        self.y_squares = np.zeros(n_targets)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of features and of responses."""
        return self.cross.shape

    @property
    def effective_rows(self) -> float:
        """Effective number of rows (Kish)."""
        return self.weight / self.typical_weight if self.typical_weight > 0 else float(self.n_rows)

    @property
    def x_mean(self) -> Float64Array:
        """Weighted mean of X."""
        return self.x_origin + self.x_offset

    @property
    def y_mean(self) -> Float64Array:
        """Weighted mean of Y."""
        return self.y_origin + self.y_offset

    @property
    def nbytes(self) -> int:
        """Memory of the state."""
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def __sizeof__(self) -> int:
        # Dask uses it to track memory.
        return object.__sizeof__(self) + self.nbytes

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = type(self).__new__(type(self))
        for name, value in vars(self).items():
            setattr(twin, name, value.copy(order="K") if isinstance(value, np.ndarray) else value)
        return twin

    def update(self, X: Rows, Y: Float64Array, sample_weight: Float64Array | None = None) -> Self:
        """Absorb a block of rows; a failure leaves the state unchanged."""
        n_targets = self.shape[1]
        block = Block(X, Y, sample_weight, n_classes=n_targets if Y.shape[1] < n_targets else 0).present()
        if block.n_rows:
            self._absorb(block, self._summarise)
        return self

    def _absorb(self, block: Block, summarise: Callable[[Block], tuple[Moments, Any]]) -> None:
        """Add a block, summarised as its moments and the rows to add."""
        summary, rows = summarise(block.aged(self.forgetting))
        summary.n_rows = block.n_rows
        # Validate the block before changing anything.
        self.differences(summary)
        self.forget(block.n_rows)
        self._add(summary, rows)

    def settle(self) -> Self:
        """Finish what an update has left for later."""
        return self

    def forget(self, n_rows: int) -> Self:
        """Age all rows absorbed so far by a number of rows."""
        if self.forgetting < 1.0:
            self.shrink(self.forgetting**n_rows)
        return self

    def merge(self, other: Moments) -> Self:
        """Add the rows of another state, which is left unchanged."""
        dx, dy, f, x_squares, y_squares = self._combined(other)
        total = self.weight + other.weight
        if total > 0:
            share = other.weight / total
            if other.cross.flags.c_contiguous:
                self.cross += other.cross + np.outer(f * dx, dy)
            else:
                # Sums of classes are contiguous in memory. There may be many, so no temporary array is made.
                self.cross = np.asfortranarray(self.cross)
                self.cross += other.cross
                self.cross = blas.dger(1.0, f * dx, dy, a=self.cross, overwrite_a=True)
            self.x_squares, self.y_squares = x_squares, y_squares
            # Start from the mean of the larger part, which is closer.
            start, step = (self, share) if share <= 0.5 else (other, share - 1)
            self.x_origin, self.x_offset = two_sum(start.x_origin, start.x_offset + step * dx)
            self.y_origin, self.y_offset = two_sum(start.y_origin, start.y_offset + step * dy)
            self.typical_weight += (other.typical_weight - self.typical_weight) * share
            self.weight = total
        self.n_rows += other.n_rows
        return self

    def differences(self, other: Moments) -> tuple[Float64Array, Float64Array, float]:
        """Return the differences of the means and their weight f in the sums of squares.

        Raise ValueError if the combined sums of squares, which bound products, overflow.
        """
        return self._combined(other)[:3]

    def _combined(self, other: Moments) -> tuple[Float64Array, Float64Array, float, Float64Array, Float64Array]:
        """Return the same, and the combined sums of squares."""
        total = self.weight + other.weight
        f = self.weight * (other.weight / total) if total > 0 else 0.0
        dx, dy = self.mean_differences(other)
        with np.errstate(over="ignore", invalid="ignore"):
            x_squares = self.x_squares + (other.x_squares + f * dx**2)
            y_squares = self.y_squares + (other.y_squares + f * dy**2)
        if not (np.isfinite(x_squares).all() and np.isfinite(y_squares).all()):
            raise ValueError(TOO_LARGE)
        return dx, dy, f, x_squares, y_squares

    def mean_differences(self, other: Moments) -> tuple[Float64Array, Float64Array]:
        """Return the means of X and Y of another state, less those of this one."""
        dx = (other.x_origin - self.x_origin) + (other.x_offset - self.x_offset)
        dy = (other.y_origin - self.y_origin) + (other.y_offset - self.y_offset)
        return dx, dy

    def add_class(self, at: int) -> Self:
        """Insert a response for a new class, with zero sums, at a position among the others."""
        for name in ("y_origin", "y_offset", "y_squares"):
            setattr(self, name, np.insert(getattr(self, name), at, 0.0))
        self.cross = np.insert(self.cross.T, at, 0.0, axis=0).T
        return self

    def _summarise(self, block: Block) -> tuple[Moments, Float64Array]:
        """Return the moments of a block, and the rows to add."""
        return moments_of(block), np.empty((0, 0))

    def _add(self, summary: Moments, rows: Float64Array) -> None:
        """Add the summary of a block."""
        Moments.merge(self, summary)

    def shrink(self, factor: float) -> None:
        """Multiply the weights of all rows absorbed so far by a factor."""
        self.weight *= factor
        self.typical_weight *= factor
        self.cross *= factor
        self.x_squares *= factor
        self.y_squares *= factor

    def _between_means(self, other: Moments) -> Float64Array:
        """Return the row that represents the difference between the means of two states."""
        dx, _, f = self.differences(other)
        return np.sqrt(f) * dx


def plain_moments(state: Moments) -> Moments:
    """Return a copy of the moments of a state, without what it adds to them."""
    moments = Moments(0, 0)
    for name in vars(moments):
        setattr(moments, name, copy(getattr(state, name)))
    return moments


def moments_of(block: Block) -> Moments:
    """Return the moments of one block; raise ValueError if they are not finite."""
    set_x = _set_x_by_loops if block.compiled else _set_x_of_sparse if sparse.issparse(block.X) else _set_x
    return _summary(block, set_x)[0]


def centred_rows(block: Block, *, overwrite: bool = False) -> tuple[Moments, Float64Array]:
    """Return the moments of one block, and its rows, dense, centred, and multiplied by the roots of their weights.

    With ``overwrite``, the result may be stored in place of the rows.
    """
    return _summary(block, partial(_set_x, overwrite=overwrite))


def _summary(block: Block, set_x: Callable[[Moments, Block, Rows], Float64Array | None]) -> tuple[Moments, Any]:
    """Return the moments of a block, those of X as set by ``set_x``, and its other results."""
    state = Moments(block.X.shape[1], block.n_targets)
    if not block.n_rows:
        # No row of a block may have a response.
        return state, np.empty((0, block.X.shape[1]))
    state.n_rows = block.n_rows
    weight = block.weight
    state.weight = float(block.n_rows if weight is None else weight.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        state.typical_weight = 1.0 if weight is None else float(weight @ (weight / state.weight))
        if block.n_classes:
            y: Rows = _set_classes(state, block)
        else:
            state.y_origin, state.y_offset, y = _centre(block.Y, weight, state.weight)
            state.y_squares = np.einsum("ij,ij->j", y if weight is None else y * weight[:, None], y)
        rows = set_x(state, block, y)
    if block.n_classes:
        # If all rows are in one class, its sum is that of all centred rows: only rounding errors.
        state.cross[:, state.y_squares == 0] = 0.0
    if not (np.isfinite(state.x_squares).all() and np.isfinite(state.y_squares).all()):
        require_finite("X", block.X)
        require_finite("y", block.Y)
        raise ValueError(TOO_LARGE)
    return state, rows


def _set_classes(state: Moments, block: Block) -> Rows:
    """Set the moments of Y and return its sparse indicator matrix.

    It is not centred, but X is, so the cross-covariance is the same.
    """
    weights = np.bincount(block.classes, block.weight, block.n_classes).astype(np.float64)
    state.y_offset = weights / weights.sum()
    state.y_squares = weights * (1.0 - state.y_offset)
    shape = block.n_rows, block.n_classes
    return sparse.csr_array((np.ones(block.n_rows), block.classes, np.arange(block.n_rows + 1)), shape=shape)


def _set_x(state: Moments, block: Block, y: Rows, *, overwrite: bool = False) -> Float64Array:
    """Set the moments of X, and return its rows, dense, centred, and multiplied by the roots of their weights."""
    X = block.X.toarray() if sparse.issparse(block.X) else block.X
    state.x_origin, state.x_offset, rows = _centre(X, block.weight, state.weight, overwrite=overwrite)
    if block.weight is not None:
        root = np.sqrt(block.weight)[:, None]
        rows *= root
        y = _times(y, root)
    state.x_squares = np.einsum("ij,ij->j", rows, rows)
    state.cross = _cross(rows, y)
    return rows


def _times(y: Rows, factor: Float64Array) -> Rows:
    """Return rows times a column of factors."""
    return y.multiply(factor).tocsr() if sparse.issparse(y) else y * factor


def _cross(rows: Float64Array, y: Rows) -> Float64Array:
    """Return rows'y."""
    return (y.T @ rows).T if sparse.issparse(y) else np.dot(rows.T, y)


def _set_x_by_loops(state: Moments, block: Block, y: Rows) -> None:
    """Set the moments of X from one read of it."""
    shift = _reference(block.X, block.weight)
    squares = np.zeros(len(shift))
    if block.n_classes:
        weight = block.weights
        sums = np.zeros((block.n_classes, len(shift)))
        for rows, X in readable(block.X):
            add_class_moments(X, shift, block.classes[rows], weight[rows], squares, sums)
        offset = sums.sum(axis=0) / state.weight
        sums -= np.outer(state.y_offset * state.weight, offset)
        state.cross = sums.T
    else:
        # The weighted rows of [1, y], padded with a column of zeros if the number of columns is odd.
        q = y.shape[1]
        left = np.zeros((block.n_rows, (q + 2) // 2 * 2))
        left[:, 0] = 1.0
        left[:, 1 : 1 + q] = y
        if block.weight is not None:
            left *= block.weight[:, None]
        sums = np.zeros((left.shape[1], len(shift)))
        for rows, X in readable(block.X):
            add_moments(X, shift, left[rows], squares, sums)
        offset = sums[0] / state.weight
        state.cross = sums[1 : 1 + q].T.copy()
    state.x_origin, state.x_offset = shift, offset
    state.x_squares = np.maximum(squares - state.weight * offset**2, 0.0)


def _set_x_of_sparse(state: Moments, block: Block, y: Rows) -> None:
    """Set the moments of sparse X from sums about zero, which use only stored entries."""
    X = block.X.astype(np.float64)
    weight = block.weights
    weighted = _times(y, weight[:, None])
    state.x_offset = (X.T @ weight) / state.weight
    if block.n_classes:
        sums = (weighted.T @ X).toarray()
        state.cross = (sums - np.outer(state.y_offset * state.weight, state.x_offset)).T
    else:
        state.cross = X.T @ weighted
    about_zero = X.multiply(X).T @ weight
    state.x_squares = np.maximum(about_zero - state.weight * state.x_offset**2, 0.0)
    # Columns with a large mean relative to their deviation lose digits in that difference.
    columns = np.flatnonzero(~(state.x_squares >= _SAFE_SHARE * about_zero))
    by_column = X.tocsc() if len(columns) else X
    step = max(1, _DENSE_ENTRIES // block.n_rows)
    for start in range(0, len(columns), step):
        chosen = columns[start : start + step]
        dense = by_column[:, chosen].toarray()
        state.x_origin[chosen], state.x_offset[chosen], x = _centre(dense, weight, state.weight)
        state.x_squares[chosen] = np.einsum("ij,ij->j", x * weight[:, None], x)
        state.cross[chosen] = _cross(x, weighted)


def _reference(rows: Array, weight: Float64Array | None) -> Float64Array:
    """Return reference values of the columns: their medians in three rows at equal quantiles of weight.

    Differences from them are exact where it matters, and exactly zero for a constant column. The square of the
    remaining mean is less than 20 times the variance with a probability of about 99 %, by Chebyshev's inequality for
    two of three rows, so products lose few digits. A single row could be an outlier, with a square as large as the sum
    of all others, times their number.
    """
    n = len(rows)
    i, j, k = n // 6, n // 2, 5 * n // 6
    if weight is not None:
        total = np.cumsum(weight)
        shares = np.array([1, 3, 5]) / 6
        i, j, k = np.minimum(np.searchsorted(total, shares * total[-1]), n - 1).tolist()
    a, b, c = rows[i].astype(np.float64), rows[j].astype(np.float64), rows[k].astype(np.float64)
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def relative_means(origins: Float64Array, offsets: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the origin and offset of a robust reference, and several means relative to it, given as such sums.

    The reference is the median of three of them, per column. If one has an outlier, the others keep their digits.
    """
    n, n_columns = origins.shape
    three = [0, n // 2, n - 1]
    a, b, c = (origins + offsets)[three]
    a_below_b = a < b
    middle = np.where(a_below_b == (b < c), three[1], np.where(a_below_b == (c < a), three[0], three[2]))
    chosen = middle, np.arange(n_columns)
    origin, offset = origins[chosen], offsets[chosen]
    return origin, offset, (origins - origin) + (offsets - offset)


def two_sum(a: Float64Array, b: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the sum, rounded to float64, and the rounding error (Knuth)."""
    total = a + b
    there = total - a
    return total, (a - (total - there)) + (b - there)


def _centre(
    rows: Array, weight: Float64Array | None, total: float, *, overwrite: bool = False
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return a reference, the mean relative to it, and the centred rows in a C-ordered array."""
    reference = _reference(rows, weight)
    out = rows if overwrite and rows.dtype == np.float64 and rows.flags.c_contiguous else None
    shifted = np.subtract(rows, reference, dtype=np.float64, order="C", out=out)
    # A product is several times faster than column means.
    offset = np.dot(np.ones(len(rows)) if weight is None else weight, shifted) / total
    shifted -= offset
    return reference, offset, shifted


@compiled
def add_moments(
    X: FloatArray, shift: Float64Array, left: Float64Array, squares: Float64Array, sums: Float64Array
) -> None:
    """Add to ``squares`` the sums of w (x - shift)^2, and to ``sums`` left'(X - shift).

    ``left`` has an even number of columns, the first of which is w.
    """
    n, m = X.shape
    n_columns = left.shape[1]
    whole = n - n % 4
    for i in range(0, whole, 4):
        w0, w1, w2, w3 = left[i, 0], left[i + 1, 0], left[i + 2, 0], left[i + 3, 0]
        y0, y1, y2, y3 = left[i, 1], left[i + 1, 1], left[i + 2, 1], left[i + 3, 1]
        for j in range(m):
            s = shift[j]
            a, b, c, d = X[i, j] - s, X[i + 1, j] - s, X[i + 2, j] - s, X[i + 3, j] - s
            squares[j] += (w0 * a * a + w1 * b * b) + (w2 * c * c + w3 * d * d)
            sums[0, j] += (w0 * a + w1 * b) + (w2 * c + w3 * d)
            sums[1, j] += (y0 * a + y1 * b) + (y2 * c + y3 * d)
        for k in range(2, n_columns, 2):
            f0, f1, f2, f3 = left[i, k], left[i + 1, k], left[i + 2, k], left[i + 3, k]
            g0, g1, g2, g3 = left[i, k + 1], left[i + 1, k + 1], left[i + 2, k + 1], left[i + 3, k + 1]
            for j in range(m):
                s = shift[j]
                a, b, c, d = X[i, j] - s, X[i + 1, j] - s, X[i + 2, j] - s, X[i + 3, j] - s
                sums[k, j] += (f0 * a + f1 * b) + (f2 * c + f3 * d)
                sums[k + 1, j] += (g0 * a + g1 * b) + (g2 * c + g3 * d)
    for i in range(whole, n):
        for j in range(m):
            squares[j] += left[i, 0] * (X[i, j] - shift[j]) ** 2
        for k in range(n_columns):
            for j in range(m):
                sums[k, j] += left[i, k] * (X[i, j] - shift[j])


@compiled
def add_class_moments(
    X: FloatArray,
    shift: Float64Array,
    classes: NDArray[np.intp],
    weight: Float64Array,
    squares: Float64Array,
    sums: Float64Array,
) -> None:
    """Add to ``squares`` the sums of weight (x - shift)^2, and to each row of ``sums`` those of its class."""
    n, m = X.shape
    for i in range(n):
        w, total = weight[i], sums[classes[i]]
        for j in range(m):
            a = X[i, j] - shift[j]
            squares[j] += w * a * a
            total[j] += w * a
