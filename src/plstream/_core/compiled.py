"""Loops compiled by Numba, and arrays in the form that they require.

Importing Numba takes half a second, so it is imported when a loop first runs.

A recursion over rows makes a few passes over the features per row. Each pass computes as much as possible while the
entries are in registers: it updates a vector of the state, deflates the row, and computes the products needed by the
next pass. Each pass is a separate function, because LLVM vectorizes short loops, but not a loop over rows that contains
everything.

The exact solvers are limited by memory bandwidth. Their loops process a few rows at a time, and compute everything
needed while they are in L1 cache: up to twice as fast as BLAS on tiles, and as exact for float32 as for float64. Rows
in a group are unrolled, because LLVM then vectorizes the loop over columns.

Results must not depend on the addresses of arrays. For arrays that may overlap, LLVM generates a second loop, which is
not vectorized and sums in another order. If a loop changes an array in place, LLVM compares whole ranges, and arrays
that do not overlap always take the first loop. But if each array is only read or only written, it compares distances,
and short arrays can be too close. So a loop that computes sums either changes an array in place or stores nothing.
(Always computing sums in separate loops would be slower by a third to a half.)

Numba's disk cache checks only the file of a function: after changing a loop that other files use, delete it
(``find src -name '*.nb?' -delete``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from functools import cache, partial, update_wrapper
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast, get_origin, get_type_hints

import numpy as np
from scipy import sparse

from .types import Array, Float64Array, FloatArray, Rows

Function = TypeVar("Function", bound=Callable[..., Any])
State = TypeVar("State")

# Enough rows that copies from column-major order use whole cache lines.
_COPY_BYTES = 4 << 20
# Vectors that straddle two cache lines take up to 1.5 times as long to load. Smaller arrays are in L1 cache anyway.
_CACHE_LINE = 64
_LEAST_ALIGNED_BYTES = 8 << 10
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_NOT_DOUBLE = frozenset({np.dtype(np.float16), _SINGLE})
# Types that loops accept without a copy.
LOOP_DTYPES = frozenset({_SINGLE, _DOUBLE})
_NUMBERS = frozenset({float, int, bool})
_lock = Lock()


def compiled(function: Function) -> Function:
    """Compile a function on first use, without the interpreter lock, and cache the result on disk if possible.

    Sums may be reordered for vectorization; non-finite values are preserved.
    """
    return cast("Function", CompiledFunction(function, {"reassoc", "contract", "nsz"}))


def compiled_inline(function: Function) -> Function:
    """Compile a function like :func:`compiled`, and always inline it into its callers.

    A function that is not inlined exists twice: compiled on its own, and optimized once more in the module of its
    caller, where sums may have another order. Which of the two runs can depend on whether the process compiled the
    caller or loaded it from the cache. Inlining everything would take up to twice as long to compile.
    """
    return cast("Function", CompiledFunction(function, {"reassoc", "contract", "nsz"}, inlined=True))


def compiled_in_order(function: Function) -> Function:
    """Compile a function like :func:`compiled`, but without reordering sums."""
    return cast("Function", CompiledFunction(function, {"contract"}))


class CompiledFunction:
    """A function that is passed to Numba on its first call, from Python or another such function."""

    def __init__(self, function: Callable[..., Any], fastmath: set[str], *, inlined: bool = False) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._fastmath, self._inlined = fastmath, inlined
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._dispatcher or self.dispatcher)(*arguments)

    @property
    def dispatcher(self) -> Any:
        """The Numba function, which holds the compiled code."""
        with _lock:
            if self._dispatcher is None:
                self._dispatcher = self._compile_on_use()
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """The interface through which compiled functions call this object."""
        return self.dispatcher._numba_type_

    def _compile_on_use(self) -> Any:
        import numba

        options: dict[str, Any] = {
            "nogil": True,
            "error_model": "numpy",
            "fastmath": self._fastmath,
            "forceinline": self._inlined,
        }
        try:
            dispatcher: Any = numba.njit(cache=True, **options)(self.py_func)
            dispatcher._cache = _ForgivingCache(dispatcher._cache)
        except RuntimeError:  # There is no folder for the cache.
            dispatcher = numba.njit(**options)(self.py_func)
        return dispatcher


class _ForgivingCache:
    """Numba's disk cache, made robust: neither a full or missing disk nor a damaged file prevents compilation.

    After a power failure, cache files may be empty or truncated. The function is then compiled again, and the files
    are replaced.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, *arguments: Any) -> Any:
        # Unpickling a damaged file may raise anything.
        with suppress(Exception):
            return self._cache.load_overload(*arguments)
        return None

    def save_overload(self, *arguments: Any) -> None:
        try:
            self._cache.save_overload(*arguments)
        except OSError:
            return
        except Exception:  # noqa: BLE001
            # Remove the index, which is read before it is rewritten.
            with suppress(Exception):
                Path(self._cache._cache_file._index_path).unlink(missing_ok=True)
                self._cache.save_overload(*arguments)


def readable(X: Rows) -> Iterator[tuple[slice, FloatArray]]:
    """Yield X in the form that the loops are compiled for: as a whole if it has that form, else as small copies.

    The form is dense, float32 or float64, C-ordered, and read-only: Numba would compile everything again for writable
    arrays.
    """
    n_rows, n_columns = X.shape
    dtype = _SINGLE if X.dtype in _NOT_DOUBLE else _DOUBLE
    is_sparse = sparse.issparse(X)
    if not is_sparse and X.dtype == dtype and X.flags.c_contiguous:
        yield slice(0, n_rows), read_only(np.asarray(X))
        return
    step = max(4, _COPY_BYTES // max(1, n_columns * 8))
    for start in range(0, n_rows, step):
        rows = slice(start, start + step)
        part = X[rows].toarray() if is_sparse else X[rows]
        yield rows, read_only(np.ascontiguousarray(part, dtype=dtype))


def read_only(array: Array) -> Array:
    """Return a read-only view of an array."""
    view = array.view()
    view.setflags(write=False)
    return view


def aligned_empty(shape: tuple[int, ...]) -> Float64Array:
    """Return an uninitialized array that starts at a cache line."""
    n_bytes = 8 * math.prod(shape)
    memory = np.empty(n_bytes + _CACHE_LINE, dtype=np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + n_bytes].view(np.float64).reshape(shape)


def copied(state: State, *, aligned: bool = False) -> State:
    """Return a deep copy of a dataclass of arrays and numbers, possibly nested.

    Arrays that the class declares as ``never_written`` are shared, not copied. With ``aligned``, large arrays start at
    a cache line: this takes longer than to learn a row, and pays off with many rows.
    """
    # Copying is a considerable part of the time to learn one row.
    kind: Any = type(state)
    made: State = object.__new__(kind)
    made.__dict__ = attributes = state.__dict__.copy()
    for name, copy in _copies(kind, aligned):
        attributes[name] = copy(attributes[name])
    return made


@cache
def _copies(state: Any, aligned: bool) -> list[tuple[str, Callable[[Any], Any]]]:  # noqa: FBT001
    """Return the names of the fields that hold writable arrays or dataclasses, and the functions that copy them."""
    shared: frozenset[str] = getattr(state, "never_written", frozenset())
    hints = get_type_hints(state)
    kinds = {f.name: hints[f.name] for f in fields(state) if f.name not in shared and hints[f.name] not in _NUMBERS}
    of_array, of_state = (_aligned_copy, partial(copied, aligned=True)) if aligned else (np.ndarray.copy, copied)
    return [(name, of_array if _is_array(kind) else of_state) for name, kind in kinds.items()]


def _is_array(kind: Any) -> bool:
    origin = get_origin(kind)
    # From Python 3.12 on, NDArray is an alias.
    return origin is np.ndarray or get_origin(getattr(origin, "__value__", None)) is np.ndarray


def _aligned_copy(array: Array) -> Array:
    if array.dtype != np.float64 or array.nbytes < _LEAST_ALIGNED_BYTES:
        return array.copy()
    copy = aligned_empty(array.shape)
    copy[:] = array
    return copy
