"""Rows as differences from the running mean: what every recursion begins with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._core.aligned import Copied
from .._core.types import Float64Array, FloatArray, Rows

# Rows that are worked on at a time: they stay in a core's cache, and calls of compiled code are few.
_TILE_BYTES = 1 << 20
_LEAST_TILE_ROWS = 8


def tiles(X: Rows, step: int) -> Iterator[tuple[slice, FloatArray]]:
    """Yield X in parts of a few rows each, in a form that the compiled loops can read."""
    from .._core.compiled import readable

    for rows, part in readable(X):
        for start in range(0, len(part), step):
            tile = part[start : start + step]
            first = rows.start + start
            yield slice(first, first + len(tile)), tile


def tile_rows(n_columns: int) -> int:
    """Return the number of rows in a tile of so many columns."""
    return max(_LEAST_TILE_ROWS, _TILE_BYTES // (8 * max(1, n_columns)))


@dataclass
class RunningMean(Copied):
    """Mean of the rows so far, as their first one plus a difference in units of about the size of the data.

    So columns with a mean of 1e8 deviations lose no digits, and squares neither overflow nor vanish for data in units
    of 1e150 or 1e-150.

    Attributes
    ----------
    origin : ndarray of shape (m,)
        The first row.
    offset : ndarray of shape (m,)
        Mean of the differences from it, times ``unit``.
    unit : float
        A power of two: one if fixed, else about one over the first difference that is not zero, and zero before that.
    n_rows : int
        Rows so far.
    total : float
        Sum of squares of all of them, centred, in units.
    """

    origin: Float64Array
    offset: Float64Array
    unit: float
    n_rows: int = 0
    total: float = 0.0

    @classmethod
    def of(cls, n_columns: int, *, fixed_unit: bool = False) -> RunningMean:
        """Return the mean of no rows of so many columns."""
        return cls(np.zeros(n_columns), np.zeros(n_columns), float(fixed_unit))

    @property
    def mean(self) -> Float64Array:
        """The mean in the units of the data."""
        return self.origin + self.offset / (self.unit or 1.0)

    def subtract_from(self, tile: FloatArray, out: Float64Array) -> Float64Array:
        """Add the rows to the mean one by one, and set ``out`` to each minus the mean that includes it, in units."""
        from .kernels.means import subtract_running_mean

        if self.n_rows == 0:
            self.origin[:] = tile[0]
        if not self.unit:
            self.unit = unit_of(tile - self.origin)
        before = self.n_rows, self.total
        self.total = subtract_running_mean(tile, self.origin, self.offset, self.unit, *before, out)
        self.n_rows += len(tile)
        return out


def unit_of(differences: FloatArray) -> float:
    """Return one over a power of two near the largest entry of the first row that is not all zeros, else zero."""
    rows = np.flatnonzero(differences.any(axis=1))
    if not len(rows):
        return 0.0
    largest = np.abs(differences[rows[0]]).max()
    return float(np.ldexp(1.0, -int(np.clip(np.frexp(largest)[1], -1000, 1000))))
