"""What an online method keeps: a recursion that learns rows one by one, and the running means they are centred by."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .._core.compiled import aligned_empty, compiled, read_only, readable
from .._core.labels import TargetEncoding
from .._core.schema import Count, Number, Numbers, Object, stored
from .._core.threads import ordered_map
from .._core.types import Float64Array, FloatArray, Rows

# Rows that are worked on at a time: they stay in a core's cache, and calls of compiled code are few.
_TILE_BYTES = 1 << 20
_LEAST_TILE_ROWS = 8
_DOUBLE = np.dtype(np.float64)
# Entries of the state that are read in a few milliseconds, which is what it takes to start threads several times over.
_WORK_WORTH_THREADS = 10_000_000


class NotFiniteError(ValueError):
    """A component, the first being 1, has numbers that are no longer finite: fewer components may do."""

    def __init__(self, message: str, component: int = 0) -> None:
        super().__init__(message)
        self.component = component


class Tile(NamedTuple):
    """Some consecutive rows, ready for a recursion, which may use them as its scratch space.

    ``U`` and ``V`` are X and y minus the running means that include the row itself, in the units of those; ``X`` and
    ``Y`` are X and y as they came, and not to be written to. ``n_before`` is the number of rows before them, and
    ``x_total`` the sum of squares of X, centred, of all rows up to the last of them.
    """

    U: Float64Array
    V: Float64Array
    X: FloatArray
    Y: Float64Array
    n_before: int
    x_total: float


class Recursion:
    """The state of a method, a dataclass of arrays and numbers, and how it learns."""

    @property
    def advice(self) -> str:
        """What to do when numbers are no longer finite."""
        return "scale the features to unit variance, or use fewer components"

    def learn(self, tile: Tile) -> int:
        """Take in the rows; return the number of the component whose numbers are no longer finite, or -1."""
        raise NotImplementedError


def for_each_column(run: Callable[[Float64Array, int], int], tile: Tile, n_columns: int, n_components: int) -> int:
    """Run the recursion of every column of y, on all cores if there is enough work.

    ``run`` takes the rows, which it may overwrite, and the number of the column. Returns the least number that any of
    them returned that is not negative, else -1.
    """
    if n_columns == 1:
        return int(run(tile.U, 0))
    parallel = tile.U.size * n_columns * n_components > _WORK_WORTH_THREADS
    results = (ordered_map if parallel else map)(lambda k: int(run(tile.U.copy(), k)), range(n_columns))
    return min((result for result in results if result >= 0), default=-1)


@stored(
    {
        "origin": Numbers("n?"),
        "offset": Numbers("n?"),
        "unit": Number(0),
        "n_rows": Count(),
        "total": Number(0, finite=False),
    }
)
@dataclass
class RunningMean:
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

    # After the first row.
    never_written: ClassVar[frozenset[str]] = frozenset({"origin"})

    @classmethod
    def of(cls, n: int, unit: float) -> RunningMean:
        """Return the mean of no rows of n columns."""
        origin = aligned_empty((n,))
        origin[:] = 0.0
        return cls(origin, np.zeros(n), unit)

    @property
    def mean(self) -> Float64Array:
        """The mean in the units of the data."""
        return self.origin + self.offset / (self.unit or 1.0)

    def subtract_from(self, tile: FloatArray, out: Float64Array) -> Float64Array:
        """Add the rows to the mean one by one, and set ``out`` to each minus the mean that includes it, in units."""
        if self.n_rows == 0:
            self.origin[:] = tile[0]
        if not self.unit:
            with np.errstate(over="ignore", invalid="ignore"):
                self.unit = unit_of(tile - self.origin)
        before = self.n_rows, self.total
        self.total = subtract_running_mean(tile, self.origin, self.offset, self.unit, *before, out)
        self.n_rows += len(tile)
        return out

    @property
    def is_finite(self) -> bool:
        """Whether the mean is finite: so it is if the sum of squares is, which is sooner known."""
        return math.isfinite(self.total) or bool(np.isfinite(self.offset).all())


def unit_of(differences: FloatArray) -> float:
    """Return one over a power of two near the largest entry of the first row that is not all zeros, else zero."""
    rows = np.flatnonzero(differences.any(axis=1))
    if not len(rows):
        return 0.0
    largest = np.abs(differences[rows[0]]).max()
    return float(np.ldexp(1.0, -int(np.clip(np.frexp(largest)[1], -1000, 1000))))


@stored(
    {
        "x": Object(RunningMean, n="m"),
        "y": Object(RunningMean, n="q?"),
        # Each method says which.
        "recursion": Object(),
    }
)
@dataclass
class OnlineState:
    """A recursion with the running means that its rows are centred by."""

    x: RunningMean
    y: RunningMean
    recursion: Any

    @classmethod
    def of(cls, recursion: Recursion, n_features: int, n_columns: int, *, fixed_unit: bool = False) -> OnlineState:
        """Return the state before the first row. Units are fixed if results depend on them."""
        x, y = (RunningMean.of(n, float(fixed_unit)) for n in (n_features, n_columns))
        return cls(x, y, recursion)

    def learn(self, X: Rows, numbers: Float64Array, encoding: TargetEncoding | None) -> None:
        """Take in rows one by one; raise ValueError if numbers are no longer finite."""
        if len(numbers) == 1 and type(X) is np.ndarray and X.dtype == _DOUBLE and X.flags.c_contiguous:
            # All that the loops below do with one row, in less time.
            self._learn_tile(read_only(X), numbers, encoding, np.empty(X.shape))
        else:
            # Of X and of y, whichever is wider.
            step = min(X.shape[0], tile_rows(max(X.shape[1], len(self.y.origin))))
            buffer = aligned_empty((step, X.shape[1]))
            for rows, part in readable(X):
                for start in range(0, len(part), step):
                    tile = part[start : start + step]
                    some = numbers[rows.start + start :][: len(tile)]
                    self._learn_tile(tile, some, encoding, buffer[: len(tile)])
        if not (self.x.is_finite and self.y.is_finite):
            raise ValueError("The mean is no longer finite: scale the features to unit variance.")

    def _learn_tile(
        self, tile: FloatArray, numbers: Float64Array, encoding: TargetEncoding | None, out: Float64Array
    ) -> None:
        """Take in some rows, in the form that ``readable`` yields; ``out`` is scratch space."""
        n_before = self.x.n_rows
        U = self.x.subtract_from(tile, out)
        Y = V = numbers
        if encoding is not None:
            # As X is: not to be written to, or else Numba compiles once more.
            Y = read_only(np.ascontiguousarray(encoding.columns(numbers)))
            V = self.y.subtract_from(Y, np.empty(Y.shape))
        component = self.recursion.learn(Tile(U, V, tile, Y, n_before, self.x.total)) + 1
        if component:
            raise NotFiniteError(
                f"Component {component} is no longer finite: {self.recursion.advice}. The model is as it was before "
                "this call.",
                component,
            )

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self.x.n_rows


def tile_rows(n_columns: int) -> int:
    """Return the number of rows in a tile of so many columns."""
    return max(_LEAST_TILE_ROWS, _TILE_BYTES // (8 * max(1, n_columns)))


@compiled
def subtract_running_mean(
    X: FloatArray,
    origin: Float64Array,
    offset: Float64Array,
    unit: float,
    n_rows: int,
    total: float,
    out: Float64Array,
) -> float:
    """Set ``out`` to the rows minus the mean up to and with each, in units, and ``offset`` to the last mean.

    Returns the sum of squares about the mean, given that of the rows before, which is ``total``.
    """
    for i in range(len(X)):
        n = n_rows + i + 1
        square = _subtract_mean(X[i], origin, offset, unit, 1.0 / n, out[i])
        # One factor of the product is from the mean before, which is that much further off.
        total += square * n / max(1, n - 1)
    return total


@compiled
def _subtract_mean(
    x: FloatArray, origin: Float64Array, offset: Float64Array, unit: float, share: float, out: Float64Array
) -> float:
    square = 0.0
    for j in range(len(x)):
        difference = (x[j] - origin[j]) * unit - offset[j]
        step = share * difference
        offset[j] += step
        left = difference - step
        out[j] = left
        square += left * left
    return square
