"""Compiled loops over the rows of large blocks: several results from one read of memory, in float64 whatever the data.

NumPy makes a pass over memory for every operation, and the exact solvers do so little arithmetic that memory is all
they wait for. These loops take a few rows at a time and form all that is needed while these are in the nearest cache:
up to twice as fast as BLAS on tiles, centred explicitly, and as exact for float32 as for float64. Rows in a group are
written out one by one, for so LLVM makes vector instructions of the loop over columns. Numba compiles the functions on
first use, and caches them on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
import numpy as np

from .._types import Array, Float64Array, FloatArray

Function = TypeVar("Function", bound=Callable[..., Any])

# Enough rows that a copy from columns to rows takes whole pieces of each column.
_COPY_BYTES = 4 << 20


def _compiled(function: Function) -> Function:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        compiled: Function = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # There is no folder that the result could be kept in.
        compiled = numba.njit(**options)(function)
    return compiled


def add_moments(X: Array, shift: Float64Array, left: Float64Array, squares: Float64Array, sums: Float64Array) -> None:
    """Add to ``squares`` the sums of w (x - shift)^2, and to ``sums`` left'(X - shift).

    ``left`` has an even number of columns, of which the first is w.
    """
    for rows, readable in _readable(X):
        _add_moments(readable, shift, left[rows], squares, sums)


def add_gram_action(
    X: Array, mean: Float64Array, v: Float64Array, weight: Float64Array, scores: Float64Array, action: Float64Array
) -> None:
    """Set ``scores`` to t = (X - mean) v and add to ``action`` (X - mean)'(weight * t)."""
    for rows, readable in _readable(X):
        _add_gram_action(readable, mean, v, weight[rows], scores[rows], action)


def _readable(X: Array) -> Iterator[tuple[slice, FloatArray]]:
    """Yield X in a form that the loops are compiled for: all at once if it has that form, else in small copies.

    The form is float32 or float64, row by row, and not to be written to: for arrays that can be, Numba would compile
    everything once more.
    """
    dtype: Any = np.float32 if X.dtype in {np.dtype(np.float16), np.dtype(np.float32)} else np.float64
    as_it_is = X.flags.c_contiguous and X.dtype == dtype
    step = len(X) if as_it_is else max(4, _COPY_BYTES // max(1, X.shape[1] * 8))
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        view: FloatArray = np.ascontiguousarray(X[rows], dtype=dtype).view()
        view.flags.writeable = False
        yield rows, view


@_compiled
def _add_moments(
    X: FloatArray, shift: Float64Array, left: Float64Array, squares: Float64Array, sums: Float64Array
) -> None:
    n, m = X.shape
    n_columns = left.shape[1]
    whole = n - n % 4
    for i in range(0, whole, 4):
        w0, w1, w2, w3 = left[i, 0], left[i + 1, 0], left[i + 2, 0], left[i + 3, 0]
        for j in range(m):
            s = shift[j]
            a, b, c, d = X[i, j] - s, X[i + 1, j] - s, X[i + 2, j] - s, X[i + 3, j] - s
            squares[j] += (w0 * a * a + w1 * b * b) + (w2 * c * c + w3 * d * d)
        for k in range(0, n_columns, 2):
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


@_compiled
def _add_gram_action(
    X: FloatArray,
    mean: Float64Array,
    v: Float64Array,
    weight: Float64Array,
    scores: Float64Array,
    action: Float64Array,
) -> None:
    n, m = X.shape
    whole = n - n % 8
    for i in range(0, whole, 8):
        a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(m):
            s, r = mean[j], v[j]
            a += (X[i, j] - s) * r
            b += (X[i + 1, j] - s) * r
            c += (X[i + 2, j] - s) * r
            d += (X[i + 3, j] - s) * r
            e += (X[i + 4, j] - s) * r
            f += (X[i + 5, j] - s) * r
            g += (X[i + 6, j] - s) * r
            h += (X[i + 7, j] - s) * r
        scores[i], scores[i + 1], scores[i + 2], scores[i + 3] = a, b, c, d
        scores[i + 4], scores[i + 5], scores[i + 6], scores[i + 7] = e, f, g, h
        a, b, c, d = a * weight[i], b * weight[i + 1], c * weight[i + 2], d * weight[i + 3]
        e, f, g, h = e * weight[i + 4], f * weight[i + 5], g * weight[i + 6], h * weight[i + 7]
        for j in range(m):
            s = mean[j]
            first = (a * (X[i, j] - s) + b * (X[i + 1, j] - s)) + (c * (X[i + 2, j] - s) + d * (X[i + 3, j] - s))
            last = (e * (X[i + 4, j] - s) + f * (X[i + 5, j] - s)) + (g * (X[i + 6, j] - s) + h * (X[i + 7, j] - s))
            action[j] += first + last
    for i in range(whole, n):
        a = 0.0
        for j in range(m):
            a += (X[i, j] - mean[j]) * v[j]
        scores[i] = a
        for j in range(m):
            action[j] += a * weight[i] * (X[i, j] - mean[j])
