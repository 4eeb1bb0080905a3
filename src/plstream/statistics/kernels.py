"""Compiled loops over the rows of large blocks: several results from one read of memory, in float64 whatever the data.

NumPy makes a pass over memory for every operation, and the exact solvers do so little arithmetic that memory is all
they wait for. These loops take four rows at a time and form all that is needed while the rows are in the nearest cache:
up to twice as fast as BLAS on tiles, centred explicitly, and as exact for float32 as for float64. Each inner loop is a
function of its own, for LLVM stops vectorising larger ones. Numba compiles them on first use, and caches them on disk.
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
    n, k = left.shape
    whole = n - n % 4
    for i in range(0, whole, 4):
        _add_squares(X[i], X[i + 1], X[i + 2], X[i + 3], shift, left[i : i + 4], squares)
        _add_products(X[i], X[i + 1], X[i + 2], X[i + 3], shift, left[i : i + 4], sums)
    single = np.zeros((4, k))
    for i in range(whole, n):
        single[0] = left[i]
        _add_squares(X[i], X[i], X[i], X[i], shift, single, squares)
        _add_products(X[i], X[i], X[i], X[i], shift, single, sums)


@_compiled
def _add_squares(
    x0: FloatArray,
    x1: FloatArray,
    x2: FloatArray,
    x3: FloatArray,
    shift: Float64Array,
    left: Float64Array,
    squares: Float64Array,
) -> None:
    w0, w1, w2, w3 = left[0, 0], left[1, 0], left[2, 0], left[3, 0]
    for j in range(len(shift)):
        s = shift[j]
        a, b, c, d = x0[j] - s, x1[j] - s, x2[j] - s, x3[j] - s
        squares[j] += (w0 * a * a + w1 * b * b) + (w2 * c * c + w3 * d * d)


@_compiled
def _add_products(
    x0: FloatArray,
    x1: FloatArray,
    x2: FloatArray,
    x3: FloatArray,
    shift: Float64Array,
    left: Float64Array,
    sums: Float64Array,
) -> None:
    for k in range(0, len(sums), 2):
        f0, f1, f2, f3 = left[0, k], left[1, k], left[2, k], left[3, k]
        g0, g1, g2, g3 = left[0, k + 1], left[1, k + 1], left[2, k + 1], left[3, k + 1]
        for j in range(len(shift)):
            s = shift[j]
            a, b, c, d = x0[j] - s, x1[j] - s, x2[j] - s, x3[j] - s
            sums[k, j] += (f0 * a + f1 * b) + (f2 * c + f3 * d)
            sums[k + 1, j] += (g0 * a + g1 * b) + (g2 * c + g3 * d)


@_compiled
def _add_gram_action(
    X: FloatArray,
    mean: Float64Array,
    v: Float64Array,
    weight: Float64Array,
    scores: Float64Array,
    action: Float64Array,
) -> None:
    n = len(scores)
    whole = n - n % 4
    for i in range(0, whole, 4):
        a, b, c, d = _four_scores(X[i], X[i + 1], X[i + 2], X[i + 3], mean, v)
        scores[i], scores[i + 1], scores[i + 2], scores[i + 3] = a, b, c, d
        a, b, c, d = a * weight[i], b * weight[i + 1], c * weight[i + 2], d * weight[i + 3]
        _add_four_rows(X[i], X[i + 1], X[i + 2], X[i + 3], mean, a, b, c, d, action)
    for i in range(whole, n):
        a, _, _, _ = _four_scores(X[i], X[i], X[i], X[i], mean, v)
        scores[i] = a
        _add_four_rows(X[i], X[i], X[i], X[i], mean, a * weight[i], 0.0, 0.0, 0.0, action)


@_compiled
def _four_scores(
    x0: FloatArray, x1: FloatArray, x2: FloatArray, x3: FloatArray, mean: Float64Array, v: Float64Array
) -> tuple[float, float, float, float]:
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(len(v)):
        s, r = mean[j], v[j]
        a += (x0[j] - s) * r
        b += (x1[j] - s) * r
        c += (x2[j] - s) * r
        d += (x3[j] - s) * r
    return a, b, c, d


@_compiled
def _add_four_rows(
    x0: FloatArray,
    x1: FloatArray,
    x2: FloatArray,
    x3: FloatArray,
    mean: Float64Array,
    a: float,
    b: float,
    c: float,
    d: float,
    action: Float64Array,
) -> None:
    for j in range(len(action)):
        s = mean[j]
        action[j] += (a * (x0[j] - s) + b * (x1[j] - s)) + (c * (x2[j] - s) + d * (x3[j] - s))
