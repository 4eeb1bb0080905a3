"""The rows that a sketch holds, in several pieces, with the residual that they do not represent, and their products."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from .._core.schema import Choice, Each, Numbers, Object, stored
from .._core.signs import peak_signs
from .._core.threads import single_threaded_blas
from .._core.types import Array, Float64Array, FloatArray, Rows
from ..rows import Block
from .moments import Moments

# With these steps it is as accurate as a full eigendecomposition, except for flat spectra, where more steps would
# improve the third digit.
_SUBSPACE_STEPS = 2
# With fewer responses than this multiple of the directions, finding these costs as much as it saves.
_MANY_MORE = 3
# Largest mean of a column of sparse rows, in standard deviations, for centred products.
_LARGEST_SPARSE_MEAN = 1e2
# The residual of a column is increased by the part that the held directions remove, by at most the inverse of this.
_LEAST_FREE_SHARE = 0.5
# Number of rows of a large array processed at a time.
_ROWS_AT_A_TIME = 32
_COLUMNS_AT_A_TIME = 1024
# A smaller share of the variance is a rounding error.
NOTHING_LOST = 1e-13
_ROWS = Numbers(None, "m", dtypes=("float64", "float32"), any_order=True)
_TYPES = np.dtype(np.float32), np.dtype(np.float64)


class SparseRows:
    r"""Many sparse rows, centred and multiplied by the roots of their weights, without forming them.

    With the roots u of the weights, scaled to length one, the centred rows are :math:`(I - u u^T) X`. Products are
    centred instead of the rows, which multiplies rounding errors by the largest mean in standard deviations. Columns
    with a large mean have few zeros, and are centred themselves.

    Parameters
    ----------
    rows : sparse array of shape (n, m)
        X, multiplied by the roots of the weights.
    root : ndarray of shape (n,)
        u.
    """

    def __init__(self, rows: Rows, root: Float64Array) -> None:
        self.rows, self.root = rows, root

    @classmethod
    def of(cls, block: Block, moments: Moments) -> SparseRows:
        """Return the rows of a block with the given moments."""
        varies = moments.x_squares > 0
        far = np.square(moments.x_mean) * moments.weight > _LARGEST_SPARSE_MEAN**2 * moments.x_squares
        root = np.ones(block.n_rows) if block.weight is None else np.sqrt(block.weight)
        rows = cls(sparse.csr_array(block.X, dtype=np.float64), root / np.linalg.norm(root))
        if far.any():
            # Rounding errors in a constant column would not vanish.
            columns = np.flatnonzero(far & varies)
            centred = rows.rows[:, columns].toarray() - moments.x_origin[columns] - moments.x_offset[columns]
            places = np.repeat(np.arange(len(root)), len(columns)), np.tile(columns, len(root))
            others = rows.times(~far).rows
            rows = cls(others + sparse.csr_array((centred.ravel(), places), rows.shape), rows.root)
        if block.weight is not None:
            rows.rows.data *= np.repeat(root, np.diff(rows.rows.indptr))
        return rows

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""
        n_rows, n_columns = self.rows.shape
        return n_rows, n_columns

    def __len__(self) -> int:
        return self.shape[0]

    def __matmul__(self, V: FloatArray) -> FloatArray:
        return self._centred(self.rows.astype(V.dtype) @ V)

    def combined(self, left: FloatArray) -> FloatArray:
        """Return left'S."""
        product: FloatArray = self.rows.astype(left.dtype).T @ self._centred(left)
        return product.T

    def times(self, ratio: Array) -> SparseRows:
        """Return the rows with every column multiplied by a number."""
        rows = sparse.csr_array(
            (self.rows.data * ratio[self.rows.indices], self.rows.indices, self.rows.indptr), self.shape
        )
        return SparseRows(rows, self.root)

    def column_squares(self) -> Float64Array:
        """Return the sums of squares of the columns."""
        squares = np.bincount(self.rows.indices, np.square(self.rows.data), self.shape[1])
        return np.maximum(squares - np.square(self.rows.T @ self.root), 0.0)

    def _centred(self, left: FloatArray) -> FloatArray:
        root = self.root.astype(left.dtype)
        along = root @ left
        return left - (np.outer(root, along) if left.ndim > 1 else root * along)


Piece: TypeAlias = FloatArray | SparseRows


def n_rows_of(pieces: tuple[Any, ...]) -> int:
    """Return the total number of rows."""
    return sum(piece.shape[0] for piece in pieces)


def products(piece: Piece, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return S'SV, and the sums of squares of the columns of SV, in the precision of V."""
    if isinstance(piece, SparseRows):
        scores = piece @ V
        return piece.combined(scores).T, np.square(scores).sum(axis=0)
    action, squares = np.zeros_like(V), np.zeros(V.shape[1:], V.dtype)
    for start in range(0, len(piece), _ROWS_AT_A_TIME):
        rows = piece[start : start + _ROWS_AT_A_TIME].astype(V.dtype, copy=False)
        scores = rows @ V
        action += rows.T @ scores
        squares += np.square(scores).sum(axis=0)
    return action, squares


@stored()
class Residual(NamedTuple):
    """The part not represented by the rows: a diagonal, outside of the directions in which the rows are exact."""

    diagonal: Annotated[Float64Array, Numbers("m", least=0)]
    directions: Annotated[FloatArray, _ROWS]
    """Orthonormal rows H, of shape (k, m)."""

    @classmethod
    def of(
        cls, rows: FloatArray, leading: FloatArray, R: Float64Array, squares: Float64Array
    ) -> tuple[Residual, Float64Array]:
        """Return the residual, and the sums of squares that rows lack of those of all columns.

        It vanishes on the columns of R and the ``leading`` rows.
        """
        lost = np.maximum(squares - column_squares(rows), 0.0)
        weights = linalg.qr(R, mode="economic", check_finite=False)[0].T
        directions = np.concatenate([unit_rows(leading), weights.astype(rows.dtype)])
        free = 1.0 - column_squares(directions)
        return cls(lost / np.maximum(free, _LEAST_FREE_SHARE), directions), lost

    def act(self, V: FloatArray) -> FloatArray:
        """Return (I - H'H) diag (I - H'H) V, for a vector or the columns of a matrix."""
        weighted = (self.diagonal.astype(V.dtype, copy=False) * self._off(V).T).T
        return self._off(weighted)

    def squares_along(self, rows: FloatArray) -> FloatArray:
        """Return the sum of squares that the residual adds along each row."""
        off = rows - (rows @ self.directions.T) @ self.directions
        return np.square(off, out=off) @ self.diagonal.astype(rows.dtype)

    def without(self, R: Float64Array) -> Residual:
        """Return a residual that also vanishes on the columns of R."""
        both = np.concatenate([self.directions.T.astype(np.float64), R], axis=1)
        basis = linalg.qr(both, mode="economic", check_finite=False)[0]
        return self._replace(directions=basis.T.astype(self.directions.dtype))

    def scaled(self, ratio: Float64Array) -> Residual:
        """Return the residual with every column multiplied by a number; it vanishes in the same directions."""
        diagonal = self.diagonal * ratio**2
        if not np.ptp(ratio):
            return self._replace(diagonal=diagonal)
        # Up to a constant factor: only the span matters.
        inverse = np.divide(ratio[ratio > 0].min(initial=np.inf), ratio, out=np.zeros_like(ratio), where=ratio > 0)
        turned = _scaled(self.directions, inverse, self.directions.dtype)
        return Residual(diagonal, linalg.qr(turned.T, mode="economic")[0].T)

    def _off(self, V: FloatArray) -> FloatArray:
        off = V.copy()
        for start in range(0, len(self.directions), _ROWS_AT_A_TIME):
            rows = self.directions[start : start + _ROWS_AT_A_TIME].astype(V.dtype, copy=False)
            off -= rows.T @ (rows @ off)
        return off


@stored(rules={"all rows have one type": lambda its: all(piece.dtype == its.dtype for piece in its.pieces)})
@dataclass(frozen=True)
class HeldRows:
    r"""The matrix :math:`A = S^T S + (I - H^T H) \operatorname{diag}(\rho) (I - H^T H)`, with rows S in several pieces.

    It is never modified, so copies of a state share it.
    """

    pieces: Annotated[tuple[Any, ...], Each(_ROWS)] = ()
    residuals: Annotated[tuple[Residual, ...], Each(Object(Residual, m="m"))] = ()
    """The second term; several after merges."""
    dtype: Annotated[Any, Choice(*_TYPES)] = _TYPES[1]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return n_rows_of(self.pieces)

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return sum(array.nbytes for array in chain(self.pieces, *self.residuals))

    @property
    def has_sparse_rows(self) -> bool:
        """Whether some rows are sparse."""
        return any(isinstance(piece, SparseRows) for piece in self.pieces)

    def act(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return A V and the diagonal of V'AV, for a vector or the columns of a matrix, in the precision of V."""
        action, squares = np.zeros_like(V), np.zeros(V.shape[1:], V.dtype)
        for piece in self.pieces:
            by_rows, lengths = products(piece, V)
            action += by_rows
            squares += lengths
        for residual in self.residuals:
            by_column = residual.act(V)
            action += by_column
            squares += (V * by_column).sum(axis=0)
        return action, squares

    def act_in_own_precision(self, V: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the same in the precision of the rows."""
        lengths = np.linalg.norm(V, axis=0)
        lengths = np.where(lengths > 0, lengths, 1.0)
        action, squares = self.act((V / lengths).astype(self.dtype))
        return action.astype(np.float64) * lengths, squares.astype(np.float64) * lengths**2

    def with_pieces(self, *pieces: Any) -> Self:
        """Return the rows with further ones."""
        return replace(self, pieces=self.pieces + pieces)

    def merged(self, other: HeldRows) -> Self:
        """Return the rows and residuals of both."""
        return replace(self, pieces=self.pieces + other.pieces, residuals=self.residuals + other.residuals)

    def scaled(self, ratio: Float64Array, dtype: Any = None) -> Self:
        """Return the rows, possibly in another precision, with every column multiplied by a number."""
        dtype = dtype or self.dtype
        return replace(
            self,
            pieces=tuple(_scaled(piece, ratio, dtype) for piece in self.pieces),
            residuals=tuple(residual.scaled(ratio) for residual in self.residuals),
            dtype=dtype,
        )

    def with_columns_cleared(self, columns: NDArray[np.bool_]) -> Self:
        """Return the rows with some columns set to zero."""
        return replace(
            self,
            pieces=tuple(clear_columns(piece, columns) for piece in self.pieces),
            residuals=tuple(
                Residual(*(np.where(columns, 0, array) for array in residual)) for residual in self.residuals
            ),
        )

    def as_type(self, dtype: Any) -> Self:
        """Return the rows in another precision."""
        return replace(
            self,
            pieces=tuple(piece.astype(dtype, copy=False) for piece in self.pieces),
            residuals=tuple(
                residual._replace(directions=residual.directions.astype(dtype, copy=False))
                for residual in self.residuals
            ),
            dtype=np.dtype(dtype),
        )

    def corrected(self, rows: FloatArray, R: Float64Array) -> Self:
        """Return rows whose action on the columns of R is that of the given rows."""
        turned, rows = R.astype(self.dtype), rows.astype(self.dtype)
        return replace(
            self,
            pieces=(rows, *(piece - (piece @ turned) @ rows for piece in self.pieces)),
            residuals=tuple(residual.without(R) for residual in self.residuals),
        )

    def compressed(self, R: Float64Array, size: int, squares: Float64Array) -> tuple[Self, Float64Array]:
        r"""Return combinations of the rows with the same action on the columns of R, and the sums of squares they lack.

        :math:`T = S R` is orthonormal, and :math:`S^T T = A R`, after the action of the residuals on R is converted to
        a few more rows. ``squares`` are the sums of squares of the columns of all data.
        """
        with single_threaded_blas():  # Too little work for threads.
            brought = tuple(rows_acting_on(R, residual).astype(self.dtype) for residual in self.residuals)
            pieces = self.pieces + brought
            gram: FloatArray | ImplicitProducts = (
                ImplicitProducts(pieces, self.dtype)
                if self.has_sparse_rows
                else inner_products(pieces).astype(self.dtype)
            )
            T = np.concatenate([piece @ R.astype(self.dtype) for piece in pieces])
            T = linalg.qr(T, mode="economic", check_finite=False)[0]
            U, variances = leading_combinations(gram, T, min(size, len(R)) - T.shape[1])
            kept = combine(np.hstack([U, T]), pieces, self.dtype)
        # Rounding errors in a constant column would be scaled up if it varies a little later.
        kept[:, squares == 0] = 0
        dropped = column_squares(*pieces).sum() - column_squares(kept).sum()
        if not self.residuals and dropped <= NOTHING_LOST * squares.sum():
            return replace(self, pieces=(kept,)), np.zeros(len(squares))
        leading = kept[: len(variances)]
        add_along(leading, variances, self.residuals, brought)
        residual, lost = Residual.of(kept, leading, R, squares)
        return replace(self, pieces=(kept,), residuals=(residual,)), lost


def clear_columns(rows: Any, columns: NDArray[np.bool_]) -> Any:
    """Return rows with some columns set to zero."""
    return rows.times(~columns) if isinstance(rows, SparseRows) else np.where(columns, 0, rows)


def _scaled(rows: Any, ratio: Float64Array, dtype: Any) -> Any:
    """Return rows times a ratio per column, multiplied in float64 without a float64 copy."""
    if isinstance(rows, SparseRows):
        return rows.times(ratio)
    return np.multiply(rows, ratio, out=np.empty(rows.shape, dtype), casting="same_kind")


def leading_columns(C: Float64Array, n: int) -> Float64Array:
    """Return n combinations of the columns of C, with approximately its leading left singular vectors."""
    if C.shape[1] <= _MANY_MORE * n:
        return C
    basis = mixture(C.shape[1], n)
    for _ in range(_SUBSPACE_STEPS):
        basis = linalg.qr(C.T @ (C @ basis), mode="economic", check_finite=False)[0]
    return C @ basis


class ImplicitProducts:
    """SS', multiplied without forming it: there are many more rows than columns of the factor."""

    def __init__(self, pieces: tuple[Piece, ...], dtype: Any) -> None:
        self.pieces, self.dtype = pieces, dtype

    def __len__(self) -> int:
        return n_rows_of(self.pieces)

    def __matmul__(self, left: FloatArray) -> FloatArray:
        right = combine(left, self.pieces, self.dtype).T
        return np.concatenate([piece @ right for piece in self.pieces])


def inner_products(pieces: tuple[FloatArray, ...]) -> Float64Array:
    """Return SS' in float64."""
    ends = np.cumsum([0, *map(len, pieces)])
    gram = np.empty((ends[-1], ends[-1]))
    for i, left in enumerate(pieces):
        for j, right in enumerate(pieces[: i + 1]):
            rows, columns = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
            gram[rows, columns] = left @ right.T
            gram[columns, rows] = gram[rows, columns].T
    return gram


def combine(left: FloatArray, pieces: tuple[Piece, ...], dtype: Any) -> FloatArray:
    """Return left'S."""
    n_columns = pieces[0].shape[1]
    factors = np.split(left.T.astype(dtype), np.cumsum([len(piece) for piece in pieces[:-1]]), axis=1)
    dense = [(factor, piece) for factor, piece in zip(factors, pieces, strict=True) if isinstance(piece, np.ndarray)]
    total = np.empty((left.shape[1], n_columns), dtype)
    for start in range(0, n_columns, _COLUMNS_AT_A_TIME):
        columns = slice(start, start + _COLUMNS_AT_A_TIME)
        total[:, columns] = sum(factor @ piece[:, columns] for factor, piece in dense)
    for factor, piece in zip(factors, pieces, strict=True):
        if isinstance(piece, SparseRows):
            total += piece.combined(factor.T)
    return total


def column_squares(*pieces: Piece) -> Float64Array:
    """Return the sums of squares of the columns of all pieces."""
    squares = np.zeros(pieces[0].shape[1])
    for piece in pieces:
        squares += np.einsum("ij,ij->j", piece, piece) if isinstance(piece, np.ndarray) else piece.column_squares()
    return squares


def leading_combinations(gram: FloatArray | ImplicitProducts, T: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return the approximate leading eigenvectors of the part of SS' orthogonal to T, and their eigenvalues.

    This is subspace iteration, with QR in every step so that data of low rank stays exact. It starts from the first
    rows, which were leading before a compression, with all others mixed in so that no new direction is missed.
    """
    # The number of sparse rows differs from block to block, and their mixture is large.
    mixed = (mixture if isinstance(gram, np.ndarray) else _random)(len(gram) - n, n)
    basis = np.concatenate([np.eye(n, dtype=gram.dtype), mixed.astype(gram.dtype)])
    for _ in range(_SUBSPACE_STEPS):
        basis = linalg.qr(np.hstack([T, gram @ basis]), mode="economic", check_finite=False)[0][:, T.shape[1] :]
    variances, rotation = np.linalg.eigh(basis.T @ (gram @ basis))
    vectors = basis @ rotation[:, ::-1]
    # With fixed signs, the start of the next iteration does not depend on rounding errors.
    return vectors * peak_signs(vectors), np.maximum(variances[::-1], 0.0)


def _random(n_rows: int, n_columns: int) -> Float64Array:
    """Return a random matrix with a fixed seed."""
    return np.random.default_rng(0).standard_normal((n_rows, n_columns)) / np.sqrt(n_rows)


mixture = lru_cache(maxsize=8)(_random)


def unit_rows(rows: FloatArray) -> FloatArray:
    """Return the rows scaled to unit length; zero rows stay zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)


def rows_acting_on(R: Float64Array, residual: Residual) -> Float64Array:
    """Return rows whose products act on R like the residual (Nystrom)."""
    action = residual.act(R)
    squares, basis = np.linalg.eigh(R.T @ action)
    held = squares > NOTHING_LOST
    basis = basis[:, held] * peak_signs(basis[:, held])
    return (action @ basis / np.sqrt(squares[held])).T


def add_along(
    rows: FloatArray, squares: FloatArray, residuals: tuple[Residual, ...], brought: tuple[FloatArray, ...]
) -> None:
    """Lengthen orthogonal rows by the part of the residuals in their directions that has not been converted to rows."""
    along = np.zeros(len(rows))
    for residual, brought_rows in zip(residuals, brought, strict=True):
        along += residual.squares_along(rows) - np.square(rows @ brought_rows.T).sum(axis=1)
    squares = squares.astype(np.float64)
    # A row of rounding errors has no direction.
    present = squares > np.finfo(rows.dtype).eps * squares.max(initial=0.0)
    shares = np.divide(along, squares**2, out=np.zeros(len(rows)), where=present)
    rows *= np.sqrt(np.maximum(1 + shares, 0.0))[:, None].astype(rows.dtype)
