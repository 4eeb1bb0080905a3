"""What all compiled loops share: how Numba is asked to compile them, and rows in a form that they are compiled for.

Numba takes half a second to load, so modules import this one when a loop is first run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import numba
import numpy as np
from scipy import sparse

from .types import FloatArray, Rows

Function = TypeVar("Function", bound=Callable[..., Any])

# Enough rows that a copy from columns to rows takes whole pieces of each column.
_COPY_BYTES = 4 << 20


def compiled(function: Function) -> Function:
    """Compile a function on first use, without the interpreter lock, and keep the result on disk if that is possible.

    Sums may be reordered, for vector instructions; what is not finite stays so.
    """
    return _compiled(function, {"reassoc", "contract", "nsz"})


def compiled_in_order(function: Function) -> Function:
    """Compile a function as :func:`compiled` does, but with sums in the order in which they are written."""
    return _compiled(function, {"contract"})


def _compiled(function: Function, fastmath: set[str]) -> Function:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        result: Any = numba.njit(cache=True, **options)(function)
        result._cache = _ForgivingCache(result._cache)
    except RuntimeError:  # There is no folder that the result could be kept in.
        result = numba.njit(**options)(function)
    kept: Function = result
    return kept


class _ForgivingCache:
    """Numba's cache on disk, where a disk that is full or has gone away is no reason not to compile."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *arguments: Any) -> Any:
        with suppress(OSError):
            return self._cache.load_overload(*arguments)
        return None

    def save_overload(self, *arguments: Any) -> None:
        with suppress(OSError):
            self._cache.save_overload(*arguments)


def readable(X: Rows) -> Iterator[tuple[slice, FloatArray]]:
    """Yield X in a form that the loops are compiled for: all at once if it has that form, else in small copies.

    The form is dense, float32 or float64, row by row, and not to be written to: for arrays that can be, Numba would
    compile everything once more.
    """
    n_rows, n_columns = X.shape
    dtype: Any = np.float32 if X.dtype in {np.dtype(np.float16), np.dtype(np.float32)} else np.float64
    is_sparse = sparse.issparse(X)
    as_it_is = not is_sparse and X.flags.c_contiguous and X.dtype == dtype
    step = n_rows if as_it_is else max(4, _COPY_BYTES // max(1, n_columns * 8))
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        part = X[rows].toarray() if is_sparse else X[rows]
        view: FloatArray = np.ascontiguousarray(part, dtype=dtype).view()
        view.flags.writeable = False
        yield rows, view
