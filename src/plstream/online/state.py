"""The state of an online method: a recursion over rows, and the running means for centring."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from .._core.compiled import aligned_empty, compiled
from .._core.labels import TargetEncoding
from .._core.schema import Count, Number, Numbers, Object, schema_of, stored
from .._core.threads import ordered_map
from .._core.types import Float64Array, FloatArray, Rows

# Size of a tile of rows: small enough for a core's cache, large enough for few calls of compiled code.
_TILE_BYTES = 1 << 20
_LEAST_TILE_ROWS = 8
# Number of state entries that take a few milliseconds to process, several times the time to start threads.
_WORK_WORTH_THREADS = 10_000_000

Declared = TypeVar("Declared")


class ComponentOverflowError(ValueError):
    """The numbers of a component, counted from 1, have overflowed; fewer components may avoid this."""

    # Without the component when it is unpickled, which then sets the attributes.
    def __init__(self, message: str, component: int = 0) -> None:
        super().__init__(message)
        self.component = component


class Tile(NamedTuple):
    """Consecutive rows for a recursion.

    ``U`` and ``V`` are X and y minus the running means up to and including each row, in the units of the means; the
    recursion may overwrite them. ``X`` and ``Y`` are the rows as given, of any type and order, and must not be changed.
    ``n_before`` is the number of rows before the tile, and ``x_total`` the sum of squares of the centred X up to its
    last row.
    """

    U: Float64Array
    V: Float64Array
    X: FloatArray
    Y: Float64Array
    n_before: int
    x_total: float


class Recursion:
    """The state of a method, a dataclass of arrays and numbers, and its update."""

    @property
    def advice(self) -> str:
        """What to do when numbers are no longer finite."""
        return "scale the features to unit variance, or use fewer components"

    def learn(self, tile: Tile) -> int:
        """Learn from the rows; return the index of a component that is no longer finite, or -1."""
        raise NotImplementedError


def zeros_of(cls: type[Declared], **given: Any) -> Declared:
    """Return an object of a declared class, with zeros in its arrays, given their sizes and all other attributes."""
    schema = schema_of(cls)
    assert schema is not None, cls
    attributes = {name: given[name] for name in schema.fields if name in given}
    for name, kind in schema.fields.items():
        if isinstance(kind, Numbers) and name not in given:
            attributes[name] = np.zeros([_size(entry, given) for entry in kind.shape], kind.dtypes[0])
    return cls(**attributes)


def _size(expression: Any, sizes: dict[str, int]) -> int:
    """Return the size for an entry of a shape, such as ``"c+1"``."""
    terms = str(expression).removesuffix("?").split("+")
    return sum(int(term) if term.isdecimal() else sizes[term] for term in terms)


def for_each_column(run: Callable[[Float64Array, int], int], tile: Tile, n_columns: int, n_components: int) -> int:
    """Run the recursion for every column of y, on all cores if there is enough work.

    ``run`` takes the rows, which it may overwrite, and the index of the column. Returns the smallest index of a failed
    component, else -1.
    """
    if n_columns == 1:
        return int(run(tile.U, 0))
    parallel = tile.U.size * n_columns * n_components > _WORK_WORTH_THREADS
    results = (ordered_map if parallel else map)(lambda k: int(run(tile.U.copy(), k)), range(n_columns))
    return min((result for result in results if result >= 0), default=-1)


@stored()
@dataclass
class RunningMean:
    """Mean of the rows so far, as the first row plus a difference in units of about the size of the data.

    Columns with a mean of 1e8 deviations thus lose no digits, and squares of data in units of 1e150 or 1e-150 neither
    overflow nor underflow.
    """

    origin: Annotated[Float64Array, Numbers("n?")]
    """The first row."""
    offset: Annotated[Float64Array, Numbers("n?")]
    """Mean of the differences from it, times ``unit``."""
    unit: Annotated[float, Number(0)]
    """A power of two: one if fixed, else about the inverse of the first nonzero difference, and zero before that."""
    n_rows: Annotated[int, Count()] = 0
    total: Annotated[float, Number(0, finite=False)] = 0.0
    """Sum of squares of the centred rows, in units."""

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

    def begin(self, rows: FloatArray) -> None:
        """Set the origin and the unit from the first rows."""
        if self.n_rows == 0:
            self.origin[:] = rows[0]
        if not self.unit:
            with np.errstate(over="ignore", invalid="ignore"):
                self.unit = unit_of(rows - self.origin)

    def is_finite(self) -> bool:
        """Return whether the mean is finite. It is if the sum of squares is, which is faster to check."""
        return math.isfinite(self.total) or bool(np.isfinite(self.offset).all())


def unit_of(differences: FloatArray) -> float:
    """Return the inverse of a power of two near the largest entry of the first nonzero row, else zero."""
    rows = np.flatnonzero(differences.any(axis=1))
    if not len(rows):
        return 0.0
    largest = np.abs(differences[rows[0]]).max()
    return float(np.ldexp(1.0, -int(np.clip(np.frexp(largest)[1], -1000, 1000))))


@stored()
@dataclass
class OnlineState:
    """A recursion with the running means for centring its rows."""

    x: Annotated[RunningMean, Object(RunningMean, n="m")]
    y: Annotated[RunningMean, Object(RunningMean, n="q?")]
    # Declared by each method.
    recursion: Annotated[Any, Object()]

    @classmethod
    def of(cls, recursion: Recursion, n_features: int, n_columns: int, *, fixed_unit: bool = False) -> OnlineState:
        """Return the state before the first row. Units are fixed for methods whose results depend on them."""
        x, y = (RunningMean.of(n, float(fixed_unit)) for n in (n_features, n_columns))
        return cls(x, y, recursion)

    def learn(self, X: Rows, numbers: Float64Array, encoding: TargetEncoding | None) -> None:
        """Learn from rows one by one; raise ValueError if numbers are no longer finite."""
        n_rows, n_features = X.shape
        if n_rows == 1:
            rows = X if type(X) is np.ndarray else X.toarray()
            self._learn_tile(rows, numbers, encoding, np.array(rows, np.float64, order="C"))
        else:
            step = min(n_rows, tile_rows(max(n_features, len(self.y.origin))))
            buffer = aligned_empty((step, n_features))
            for start in range(0, n_rows, step):
                rows = X[start : start + step]
                rows = rows if type(rows) is np.ndarray else rows.toarray()
                U = buffer[: len(rows)]
                U[:] = rows
                self._learn_tile(rows, numbers[start : start + step], encoding, U)
        x, y = self.x, self.y
        if not (math.isfinite(x.total + y.total) or (x.is_finite() and y.is_finite())):
            raise ValueError("The mean is no longer finite: scale the features to unit variance.")

    def _learn_tile(
        self, rows: FloatArray, numbers: Float64Array, encoding: TargetEncoding | None, U: Float64Array
    ) -> None:
        """Learn from a tile of rows; U is a copy of them in float64."""
        x, y, n_before = self.x, self.y, self.x.n_rows
        Y = numbers if encoding is None else encoding.columns(numbers)
        V = Y.copy()
        if n_before == 0 or not x.unit:
            x.begin(rows)
        if encoding is not None and (n_before == 0 or not y.unit):
            y.begin(Y)
        x.total, y.total = subtract_running_means(
            U, V, x.origin, x.offset, x.unit, x.total, y.origin, y.offset, y.unit, y.total, n_before
        )
        x.n_rows = n_before + len(U)
        if encoding is not None:
            y.n_rows = x.n_rows
        component = self.recursion.learn(Tile(U, V, rows, Y, n_before, x.total)) + 1
        if component:
            raise ComponentOverflowError(
                f"Component {component} is no longer finite: {self.recursion.advice}. The model is unchanged by this "
                "call.",
                component,
            )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.x.n_rows


def tile_rows(n_columns: int) -> int:
    """Return the number of rows in a tile."""
    return max(_LEAST_TILE_ROWS, _TILE_BYTES // (8 * max(1, n_columns)))


@compiled
def subtract_running_means(
    X: Float64Array,
    Y: Float64Array,
    x_origin: Float64Array,
    x_offset: Float64Array,
    x_unit: float,
    x_total: float,
    y_origin: Float64Array,
    y_offset: Float64Array,
    y_unit: float,
    y_total: float,
    n_before: int,
) -> tuple[float, float]:
    """Subtract from each row of X and Y the mean up to and including it, in units, and update the offsets.

    Returns the sums of squares about the means, given those of earlier rows.
    """
    for i in range(len(X)):
        n = n_before + i + 1
        # One factor of each product is a difference from the previous mean, which is larger by n/(n - 1).
        x_total += _subtract_mean(X[i], x_origin, x_offset, x_unit, 1.0 / n) * n / max(1, n - 1)
        y_total += _subtract_mean(Y[i], y_origin, y_offset, y_unit, 1.0 / n) * n / max(1, n - 1)
    return x_total, y_total


@compiled
def _subtract_mean(x: Float64Array, origin: Float64Array, offset: Float64Array, unit: float, share: float) -> float:
    square = 0.0
    for j in range(len(x)):
        difference = (x[j] - origin[j]) * unit - offset[j]
        step = share * difference
        offset[j] += step
        left = difference - step
        x[j] = left
        square += left * left
    return square
