"""Arrays that begin at a cache line: vectors that straddle two of them take up to half as long again to load."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from .types import Array, Float64Array

_CACHE_LINE = 64
# Smaller arrays are in the nearest cache anyway, and calls with one row should not take long.
_LEAST_BYTES = 8 << 10


def aligned_empty(shape: tuple[int, ...]) -> Float64Array:
    """Return an array whose first entry is at the beginning of a cache line."""
    n_bytes = 8 * math.prod(shape)
    memory = np.empty(n_bytes + _CACHE_LINE, dtype=np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + n_bytes].view(np.float64).reshape(shape)


def aligned_copy(array: Array) -> Array:
    """Return a copy, at the beginning of a cache line if it is large."""
    if array.nbytes < _LEAST_BYTES or array.dtype != np.float64:
        return array.copy()
    copy = aligned_empty(array.shape)
    copy[:] = array
    return copy


class Copied:
    """A dataclass of arrays and numbers that copies itself, arrays included."""

    def copy(self) -> Self:
        """Return a copy that shares no array with this one."""
        return type(self)(**{name: _copy_of(value) for name, value in vars(self).items()})


def _copy_of(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return aligned_copy(value)
    return value.copy() if isinstance(value, Copied) else value
