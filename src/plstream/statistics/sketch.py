r"""The moments and a sketch of the rows: PLS from one pass, in memory for a few hundred rows.

The sketch stands for the sum of (x - mean)(x - mean)' as

.. math::
    X_c^T X_c \approx S^T S + \operatorname{diag}(\rho) ,

a few hundred rows S and one number a column. New rows are put under S. When there are too many, S is replaced by fewer
combinations of its rows, :math:`U^T S` with orthonormal U. Ordinary incremental SVD takes for U the leading left
singular vectors, and so throws away what has little variance, predictive or not. Here the first columns of U are the
scores T of a PLS fit to all that is known so far: because :math:`T = S R`, the product :math:`S^T S R` stays what it
was, so the present PLS solution outlives every compression. Leading singular vectors fill the other columns.

What a compression loses is added to :math:`\rho`, and taken out again of the directions that were kept, so that the sum
acts on them as before.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

import numpy as np
from scipy import linalg

from .._types import Float64Array, FloatArray
from ..parallel import single_threaded_blas
from ..sources.blocks import Block
from .gram import Gram
from .moments import ROUNDING, Moments, centred_rows
from .scores import pls_scores

# As close as all eigenvectors, but for flat spectra, where the third digit gains from more; one step is less so.
_SUBSPACE_STEPS = 2
# Share, at most, of a preserved direction's sum of squares that is explained by columns.
_LARGEST_RESIDUAL = 0.5
# Directions of y that a compression looks at: these are enough for the solution it preserves.
_DIRECTIONS_OF_Y_A_COMPONENT = 2
_MORE_DIRECTIONS_OF_Y = 16
# With fewer responses than this many times as much, to find the directions takes as long as it saves.
_MANY_MORE = 3
# With this share of the variance lost, the rounding errors of float32 do not count.
_SINGLE_PRECISION_LOSS = 0.01
# What is formed of a large array at a time.
_ROWS_AT_A_TIME = 32
_COLUMNS_AT_A_TIME = 1024
# Less than this share of the variance is a rounding error.
_NOTHING_LOST = 1e-13
# Rows are divided by a unit that follows the columns' root sums of squares, to within these factors.
_FAR_OFF = 2.0**20
_WIDEST_FOR_COMPRESSION = 1.1
# A unit that would soon be too small to divide by.
_SMALLEST_UNIT = 1e-100
# A column with less than some share of the squares it once had, before these were forgotten, counts as constant: the
# errors of the sketch, which are those of rounding or much larger, do not fade with it. But it is not held against a
# column for ever that it was once louder.
_LEAST_QUIET, _MOST_QUIET = 1e-2, 1e-20
_FADING_OF_THE_LOUDEST = 0.25


class Sketch(Moments):
    """Moments with a few rows that stand for all.

    Parameters
    ----------
    n_columns, n_targets : int
        Number of features and of responses.
    size : int
        Rows left after a compression. Data of no higher rank is represented exactly.
    n_components : int
        Components of the PLS solution that compressions preserve.
    scale : bool, default=False
        Whether that is the solution for columns scaled to unit variance.
    forgetting : float in (0, 1], default=1.0
        Factor by which the weight of everything seen before shrinks with every row.

    Attributes
    ----------
    pieces : tuple of ndarray
        The rows S, divided by ``unit``. Arrays in it are never written to, so copies of the state share them.
    unit : ndarray of shape (n_columns,)
        About the columns' root sums of squares, or for unscaled data one number for all columns.
    residual : ndarray of shape (n_columns,)
        The diagonal that is added to S'S.
    lost : ndarray of shape (n_columns,)
        Sums of squares that compressions have dropped from S.
    loudest : ndarray of shape (n_columns,)
        The largest sums of squares that there have been, forgotten more slowly.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.statistics import Sketch
    >>> X = np.random.default_rng(0).normal(size=(1000, 50))
    >>> state = Sketch(50, 1, size=10, n_components=2)
    >>> for start in range(0, 1000, 10):
    ...     state = state.update(X[start : start + 10], X[start : start + 10, :1])
    >>> state.n_held <= 31, bool(np.allclose(state.x_squares, X.var(axis=0) * 1000))
    (True, True)
    """

    compressed = False
    """Whether there has been a compression: until then S are the rows themselves."""

    def __init__(
        self,
        n_columns: int,
        n_targets: int,
        *,
        size: int,
        n_components: int,
        scale: bool = False,
        forgetting: float = 1.0,
    ) -> None:
        super().__init__(n_columns, n_targets, forgetting=forgetting)
        self.size = size
        self.n_components = n_components
        self.scale = scale
        self.pieces: tuple[FloatArray, ...] = ()
        self.unit = np.ones(n_columns)
        self.residual = np.zeros(n_columns)
        self.lost = np.zeros(n_columns)
        self.loudest = np.zeros(n_columns)
        self.quiet = np.zeros(n_columns, dtype=bool)
        self.dtype: Any = np.dtype(np.float64)
        # The sum of squares along the least of the directions held, as a multiple of all that is lost.
        self._least = 0.0

    @property
    def rounding(self) -> float:
        """Relative rounding error of a sum of products: after a compression, S is made from the products SS'."""
        return Gram.rounding if self.compressed else ROUNDING

    @property
    def variance_resolution(self) -> float:
        """Relative variance below which a direction cannot be told from rounding errors."""
        return Gram.variance_resolution if self.compressed else ROUNDING**2

    @property
    def n_held(self) -> int:
        """Number of rows held."""
        return sum(map(len, self.pieces))

    @property
    def nbytes(self) -> int:
        """Memory that the state takes."""
        return super().nbytes + sum(piece.nbytes for piece in self.pieces)

    @property
    def blur(self) -> float:
        """Sum of squares along the least direction held, relative to that of all columns; zero if S is exact."""
        return self._least * self._lost_share()

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        """Return Gv and v'Gv, where G = S'S + diag(residual)."""
        right, score_squares = self.unit * v, 0.0
        action = np.zeros(len(v))
        for piece in self.pieces:
            for start in range(0, len(piece), _ROWS_AT_A_TIME):
                rows = piece[start : start + _ROWS_AT_A_TIME].astype(np.float64, copy=False)
                score = rows @ right
                action += score @ rows
                score_squares += float(score @ score)
        by_column = self.residual * v
        return self.unit * action + by_column, score_squares + float(v @ by_column)

    def preserve(self, *, n_components: int, scale: bool) -> Self:
        """Let the compressions from now on preserve another solution."""
        self.n_components = n_components
        self.scale = scale
        return self

    def preserves(self, *, n_components: int, scale: bool) -> bool:
        """Return whether a solution is the one that compressions preserve."""
        return self.n_components == n_components and self.scale == scale

    def merge(self, other: Moments) -> Self:
        """Add the rows that another state has absorbed; the other one is left as it is."""
        if not isinstance(other, Sketch):
            raise TypeError(f"Only another Sketch can be merged, not {type(other).__name__}.")
        self._require_room(other)
        between = self._between_means(other)
        super().merge(other)
        self.residual += other.residual
        self.lost += other.lost
        self._least = max(self._least, other._least)
        self.loudest = np.maximum(self.loudest, other.loudest)
        self.compressed = self.compressed or other.compressed
        self._settle_unit(widest=_FAR_OFF)
        ratio = other.unit / self.unit
        self.pieces += tuple(piece * ratio for piece in other.pieces)
        self._settle_dtype()
        self._append(np.empty((0, len(between))), between)
        return self

    def _summarise(self, block: Block) -> tuple[Moments, Float64Array]:
        return centred_rows(block)

    def _add(self, summary: Moments, rows: Float64Array) -> None:
        between = self._between_means(summary)
        super()._add(summary, rows)
        self._settle_unit(widest=_FAR_OFF)
        if self.forgetting < 1.0:
            self._silence(rows, between)
        self._append(rows, between)

    def shrink(self, factor: float) -> None:
        """Let everything absorbed so far weigh less by a factor."""
        super().shrink(factor)
        self.residual *= factor
        self.lost *= factor
        self.loudest *= factor**_FADING_OF_THE_LOUDEST
        self.unit *= np.sqrt(factor)

    def _silence(self, rows: Float64Array, between: Float64Array) -> None:
        """Drop what is left of columns of which almost everything has been forgotten."""
        self.loudest = np.maximum(self.loudest, self.x_squares)
        quiet = self.x_squares < np.clip(self._lost_share() ** 2, _MOST_QUIET, _LEAST_QUIET) * self.loudest
        if quiet.any():
            for values in (rows.T, between, self.x_squares, self.cross, self.residual, self.lost):
                values[quiet] = 0.0
            if (quiet & ~self.quiet).any():
                self.pieces = tuple(np.where(quiet, 0, piece) for piece in self.pieces)
            self.unit[quiet] = 1.0
        self.quiet = quiet

    def _append(self, rows: Float64Array, between: Float64Array) -> None:
        """Put rows under S, and the one that stands for a difference of means unless there is none."""
        piece = np.empty((len(rows) + bool(between.any()), len(between)), self.dtype)
        factor = 1 / self.unit
        np.multiply(rows, factor, out=piece[: len(rows)], casting="same_kind")
        piece[len(rows) :] = between * factor
        self.pieces += (piece,)
        if self.n_held > 3 * self.size + 1:
            self._compress()

    def _settle_unit(self, *, widest: float) -> None:
        """Let the unit follow the data if it is far off, or if columns differ by more than a factor in how far."""
        squares = self.x_squares if self.scale else np.full_like(self.x_squares, self.x_squares.max())
        varies = squares > 0
        target = np.where(varies, np.sqrt(squares), 1.0)
        ratio = np.where(varies, self.unit / target, 0.0)
        low, high = ratio[varies].min(initial=_FAR_OFF), ratio[varies].max(initial=1 / _FAR_OFF)
        far_off = high > widest * low or low < 1 / _FAR_OFF or high > _FAR_OFF
        if far_off or self.unit[~varies].min(initial=1.0) < _SMALLEST_UNIT or not self.pieces:
            self.pieces = tuple((piece * ratio).astype(self.dtype, copy=False) for piece in self.pieces)
            self.unit = target

    def _compress(self) -> None:
        """Replace the rows by ``size`` combinations of them."""
        self.compressed = True
        self._settle_unit(widest=_WIDEST_FOR_COMPRESSION)
        C = self._cross_in_units()
        if C.shape[1] > C.shape[0]:  # A factor with as few columns as there are features has the same left vectors.
            C = linalg.qr(C.T, mode="r")[0].T[:, : len(C)]
        C = _leading_columns(C, _DIRECTIONS_OF_Y_A_COMPONENT * self.n_components + _MORE_DIRECTIONS_OF_Y)
        gram = _inner_products(self.pieces)
        SC = np.concatenate([piece @ C.astype(self.dtype) for piece in self.pieces]).astype(np.float64)
        size = min(self.size, len(C))
        with single_threaded_blas():  # Too little work for threads.
            T, a, b = pls_scores(gram, SC, C.T @ C, min(self.n_components, size - 1))
            U, variances = _leading_combinations(gram.astype(self.dtype), T.astype(self.dtype), size - T.shape[1])
        kept = _combine(np.hstack([U, T, b]), self.pieces)
        kept, within = kept[:size], kept[size:]
        leading, predictive = kept[: len(variances)], kept[len(variances) :]
        before = _column_squares(*self.pieces)
        lost = np.maximum(before - _column_squares(kept), 0.0)
        if lost.sum() > _NOTHING_LOST * before.sum():
            self.lost += lost * self.unit * self.unit
            self._least = float(variances[-1] / np.sum(self._in_units(self.lost)))
            rotations = a.T @ C.T - within
            lost *= _largest_factor(rotations, self._in_units(self.residual), lost)
            _take_out_of_predictive(predictive, rotations, lost)
            _take_out_of_leading(leading, variances, lost)
            self.residual += lost * self.unit * self.unit
        self.pieces = (kept,)
        self._settle_dtype()

    def _settle_dtype(self) -> None:
        """Keep rows in float32 if so much is lost that its rounding errors do not count."""
        self.dtype = np.dtype(np.float32 if self._lost_share() > _SINGLE_PRECISION_LOSS else np.float64)
        self.pieces = tuple(piece.astype(self.dtype, copy=False) for piece in self.pieces)

    def _cross_in_units(self) -> Float64Array:
        """Return the cross-covariance of the columns that compressions are made for."""
        squares = self.y_squares if self.scale else np.full_like(self.y_squares, self.y_squares.max(initial=0.0))
        y_unit = np.sqrt(np.where(squares > 0, squares, 1.0))
        cross: Float64Array = self.cross / self.unit[:, None] / y_unit
        return cross

    def _in_units(self, squares: Float64Array) -> Float64Array:
        # One after the other: the square of the unit may be too small a number.
        scaled: Float64Array = squares / self.unit / self.unit
        return scaled

    def _lost_share(self) -> float:
        """Return the share of the sum of squares that is lost, of scaled columns if these are what counts."""
        varies = self.x_squares > 0
        if not varies.any():
            return 0.0
        if self.scale:
            # Not in units: these follow the columns from compression to compression only.
            return float(np.mean(self.lost[varies] / self.x_squares[varies]))
        return float(np.sum(self._in_units(self.lost)) / np.sum(self._in_units(self.x_squares)))


def _leading_columns(C: Float64Array, n: int) -> Float64Array:
    """Return n combinations of the columns of C, if it has many more, with about its leading left singular vectors."""
    if C.shape[1] <= _MANY_MORE * n:
        return C
    basis = _mixture(C.shape[1], n)
    for _ in range(_SUBSPACE_STEPS):
        basis = linalg.qr(C.T @ (C @ basis), mode="economic", check_finite=False)[0]
    leading: Float64Array = C @ basis
    return leading


def _inner_products(pieces: tuple[FloatArray, ...]) -> Float64Array:
    """Return SS' in float64."""
    ends = np.cumsum([0, *map(len, pieces)])
    gram = np.empty((ends[-1], ends[-1]))
    for i, left in enumerate(pieces):
        for j, right in enumerate(pieces[: i + 1]):
            rows, columns = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            gram[rows, columns] = left @ right.T
            gram[columns, rows] = gram[rows, columns].T
    return gram


def _combine(left: Float64Array, pieces: tuple[FloatArray, ...]) -> FloatArray:
    """Return left'S."""
    dtype, n_columns = pieces[0].dtype, pieces[0].shape[1]
    factors = np.split(left.T.astype(dtype), np.cumsum([len(piece) for piece in pieces[:-1]]), axis=1)
    total = np.empty((left.shape[1], n_columns), dtype)
    for start in range(0, n_columns, _COLUMNS_AT_A_TIME):
        columns = slice(start, start + _COLUMNS_AT_A_TIME)
        total[:, columns] = sum(factor @ piece[:, columns] for factor, piece in zip(factors, pieces, strict=True))
    return total


def _column_squares(*pieces: FloatArray) -> Float64Array:
    squares = np.zeros(pieces[0].shape[1])
    for piece in pieces:
        squares += np.einsum("ij,ij->j", piece, piece)
    return squares


def _leading_combinations(gram: FloatArray, T: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return about the leading eigenvectors of the part of SS' orthogonal to T, and their eigenvalues.

    This is subspace iteration, with QR in every step so that data of low rank stays exact. It starts from the first
    rows: after a compression, these are what was leading before. All others are mixed in, lest a new direction be
    missed.
    """
    basis = np.concatenate([np.eye(n, dtype=gram.dtype), _mixture(len(gram) - n, n).astype(gram.dtype)])
    for _ in range(_SUBSPACE_STEPS):
        basis = linalg.qr(np.hstack([T, gram @ basis]), mode="economic", check_finite=False)[0][:, T.shape[1] :]
    variances, rotation = np.linalg.eigh(basis.T @ gram @ basis)
    return _with_signs_fixed(basis @ rotation[:, ::-1]), np.maximum(variances[::-1], 0.0)


def _with_signs_fixed(vectors: FloatArray) -> FloatArray:
    """Make the largest entry of each column positive: where the next iteration starts must not depend on rounding."""
    largest = np.abs(vectors).argmax(axis=0) if vectors.size else np.empty(0, dtype=int)
    signs = np.where(vectors[largest, np.arange(len(largest))] < 0, -1, 1)
    return vectors * signs.astype(vectors.dtype)


@lru_cache(maxsize=8)
def _mixture(n_rows: int, n_columns: int) -> Float64Array:
    mixture: Float64Array = np.random.default_rng(0).standard_normal((n_rows, n_columns)) / np.sqrt(n_rows)
    return mixture


def _largest_factor(rotations: Float64Array, residual: Float64Array, lost: Float64Array) -> float:
    """Return how much of what was lost, at most one, can be added to the residual.

    Along a direction of less variance than the columns have on average, too large a residual would ask for rows of
    negative squares.
    """
    present = np.einsum("ij,j,ij->i", rotations, residual, rotations)
    added = np.einsum("ij,j,ij->i", rotations, lost, rotations)
    room = np.maximum(_LARGEST_RESIDUAL * (1 + present) - present, 0.0)
    largest = np.linalg.eigvalsh((rotations * lost) @ rotations.T).max(initial=0.0)
    by_direction = np.divide(room, added, out=np.ones(len(added)), where=added > room)
    return float(min(by_direction.min(initial=1.0), _LARGEST_RESIDUAL / max(largest, _LARGEST_RESIDUAL)))


def _take_out_of_predictive(rows: FloatArray, rotations: Float64Array, lost: Float64Array) -> None:
    """Change the rows P = T'S so that P'P + diag(lost) acts on the rotations as P'P did."""
    shares, basis = np.linalg.eigh((rotations * lost) @ rotations.T)
    basis = _with_signs_fixed(basis)
    rows[:] = (basis.T @ (rows - rotations * lost)) / np.sqrt(1 - shares)[:, None]


def _take_out_of_leading(rows: FloatArray, variances: FloatArray, lost: Float64Array) -> None:
    """Shrink orthogonal rows by what was lost in their directions."""
    along = np.array([row * row @ lost for row in rows])
    shares = np.divide(along, variances**2, out=np.ones(len(rows)), where=variances**2 > 0)
    rows *= np.sqrt(np.maximum(1 - shares, 0.0))[:, None].astype(rows.dtype)
