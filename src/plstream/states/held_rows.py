"""Linear algebra of the rows of a sketch, stored in several pieces, and of its residual."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import linalg

from .._core.schema import Numbers, stored
from .._core.signs import peak_signs
from .._core.types import Float64Array, FloatArray

# With these steps it is as accurate as a full eigendecomposition, except for flat spectra, where more steps would
# improve the third digit.
_SUBSPACE_STEPS = 2
# With fewer responses than this multiple of the directions, finding these costs as much as it saves.
_MANY_MORE = 3
# Number of rows of a large array processed at a time.
ROWS_AT_A_TIME = 32
_COLUMNS_AT_A_TIME = 1024
# A smaller share of the variance is a rounding error.
NOTHING_LOST = 1e-13
ROWS = Numbers(None, "m", dtypes=("float64", "float32"), any_order=True)


def n_rows_of(pieces: tuple[FloatArray, ...]) -> int:
    """Return the total number of rows."""
    return sum(piece.shape[0] for piece in pieces)


@stored({"diagonal": Numbers("m", least=0), "directions": ROWS})
class Residual(NamedTuple):
    """The part not represented by the rows: a diagonal, outside of the directions in which the rows are exact."""

    diagonal: Float64Array
    directions: FloatArray
    """Orthonormal rows H, of shape (k, m)."""

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

    def _off(self, V: FloatArray) -> FloatArray:
        off = V.copy()
        for start in range(0, len(self.directions), ROWS_AT_A_TIME):
            rows = self.directions[start : start + ROWS_AT_A_TIME].astype(V.dtype, copy=False)
            off -= rows.T @ (rows @ off)
        return off


def leading_columns(C: Float64Array, n: int) -> Float64Array:
    """Return n combinations of the columns of C, with approximately its leading left singular vectors."""
    if C.shape[1] <= _MANY_MORE * n:
        return C
    basis = mixture(C.shape[1], n)
    for _ in range(_SUBSPACE_STEPS):
        basis = linalg.qr(C.T @ (C @ basis), mode="economic", check_finite=False)[0]
    return C @ basis


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


def combine(left: Float64Array, pieces: tuple[FloatArray, ...]) -> FloatArray:
    """Return left'S."""
    dtype, n_columns = pieces[0].dtype, pieces[0].shape[1]
    factors = np.split(left.T.astype(dtype), np.cumsum([len(piece) for piece in pieces[:-1]]), axis=1)
    total = np.empty((left.shape[1], n_columns), dtype)
    for start in range(0, n_columns, _COLUMNS_AT_A_TIME):
        columns = slice(start, start + _COLUMNS_AT_A_TIME)
        total[:, columns] = sum(factor @ piece[:, columns] for factor, piece in zip(factors, pieces, strict=True))
    return total


def column_squares(*pieces: FloatArray) -> Float64Array:
    """Return the sums of squares of the columns of all pieces."""
    squares = np.zeros(pieces[0].shape[1])
    for piece in pieces:
        squares += np.einsum("ij,ij->j", piece, piece)
    return squares


def leading_combinations(gram: FloatArray, T: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """Return the approximate leading eigenvectors of the part of SS' orthogonal to T, and their eigenvalues.

    This is subspace iteration, with QR in every step so that data of low rank stays exact. It starts from the first
    rows, which were leading before a compression, with all others mixed in so that no new direction is missed.
    """
    basis = np.concatenate([np.eye(n, dtype=gram.dtype), mixture(len(gram) - n, n).astype(gram.dtype)])
    for _ in range(_SUBSPACE_STEPS):
        basis = linalg.qr(np.hstack([T, gram @ basis]), mode="economic", check_finite=False)[0][:, T.shape[1] :]
    variances, rotation = np.linalg.eigh(basis.T @ gram @ basis)
    vectors = basis @ rotation[:, ::-1]
    # With fixed signs, the start of the next iteration does not depend on rounding errors.
    return vectors * peak_signs(vectors), np.maximum(variances[::-1], 0.0)


@lru_cache(maxsize=8)
def mixture(n_rows: int, n_columns: int) -> Float64Array:
    """Return a random matrix with a fixed seed."""
    return np.random.default_rng(0).standard_normal((n_rows, n_columns)) / np.sqrt(n_rows)


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
