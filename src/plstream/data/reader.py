"""Reader: the interface of a file format. It yields columns of a file, pipe or object in order, from any row on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, first_not_finite, shortened
from .._core.remote import AnyPath, RemotePath
from .._core.types import Array
from .files import file_identity, file_status
from .where import Where

Checked = TypeVar("Checked")

XY: TypeAlias = tuple[Array, Array | None]
"""Features of some rows, and their targets if any."""

Pieces: TypeAlias = tuple[Array, list[Array]]
"""Some rows from a reader: a matrix of features, and a list of single columns of numbers or strings."""

Columns: TypeAlias = NDArray[np.intp]
"""Column numbers."""

NO_COLUMNS: Columns = np.empty(0, np.intp)

# Rows by which a stream is recognised when it is started again.
FIRST_ROWS = 5
# Integers below this one are exact in float64.
LARGEST_EXACT = 2.0**53

# Maximum number of columns listed in a message.
_MOST_SHOWN = 20


class OpenOptions(NamedTuple):
    """Options for opening files; see :func:`plstream.open_source`."""

    format: str | None = None
    key: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    query: str | None = None
    where: Where | None = None


class Reader(ABC):
    """Columns that are read in order, from any row on. A format implements ``dtype_of`` and ``pieces``."""

    where: str
    """Name in messages."""
    n_columns: int
    n_rows: int | None = None
    """Number of rows, or None if unknown until all have been read."""
    names: tuple[str, ...] | None = None
    """Names of the columns, if any."""
    others: tuple[str, ...] = ()
    """Names of additional columns, which can only be targets. Their numbers start at ``n_columns``."""
    own_targets: Columns = NO_COLUMNS
    """Columns that are targets by default: blocks may be pairs of X and y."""
    index_columns: Columns = NO_COLUMNS
    """Columns that only number the rows: features only if requested."""
    is_vector = False
    """Whether there is a single column because the array has one dimension."""
    rereadable = True
    slow = True
    """Whether reading is much slower than reading a binary file of numbers."""
    in_blocks = False
    """Whether pieces end at multiples of the step."""
    path: AnyPath | None = None
    """The file or object, if it is a single one."""
    status: tuple[int, ...] | str | None = None
    """Status of the file when it was opened, see :func:`file_status`."""
    known_by: tuple[str, ...] | None = None
    """What identifies the rows, if they are neither in a file nor in memory."""
    beginning: str | None = None
    """Hash of the first rows, for streams that can be read only once."""

    # Set by the source before reading.
    room = 8 << 20
    """Memory limit for read buffers in bytes."""
    allow_missing = False
    """Whether missing numbers are returned as NaN instead of raising an error."""
    optional: frozenset[int] = frozenset()
    """Categorical columns, where values may be missing: an empty string or NaN."""

    def __init__(self, where: str, n_columns: int) -> None:
        self.where = where
        self.n_columns = n_columns

    @property
    def parses_missing(self) -> bool:
        """Whether missing numbers are parsed; outside of categorical columns, they may be an error later."""
        return self.allow_missing or bool(self.optional)

    @abstractmethod
    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return the common dtype of columns; raise DataError unless they hold numbers (or, if allowed, text)."""

    @abstractmethod
    def pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield rows from ``start`` on, at most ``step`` at a time, preferably ending at multiples of it.

        ``features`` become a matrix, ``others`` single columns.
        """

    def whole_bytes(self, features: Columns, targets: Columns) -> int:
        """Return the size of the buffers with which no part of the file has to be read twice."""
        return 0

    @property
    def bytes_at_most(self) -> int | None:
        """Upper bound of the bytes of all columns as float64, if known before reading."""
        return None if self.n_rows is None else 8 * self.n_rows * self.n_columns

    @property
    def identity(self) -> tuple[Any, ...]:
        """Values that change with the rows: name, size, modification time and hash of parts of the file."""
        return self.known_by or (self.where,) if self.path is None else file_identity(self.path)

    def mapped(self) -> Array | None:
        """Return all columns as one array that is read lazily, or None if there is none."""
        return None

    def count(self) -> int:
        """Return the number of rows, reading all of them if necessary."""
        if self.n_rows is None:
            self.n_rows = sum(len(X) for X, _ in self.pieces(NO_COLUMNS, NO_COLUMNS, 0, 1 << 16))
        return self.n_rows

    def read(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield rows from ``start`` on; raise DataError if a number is not finite, or if the file has changed."""
        self.require_unchanged()
        try:
            yield from self._finite_pieces(features, others, start, step)
        except DataError:
            # A file that is being written looks damaged.
            self.require_unchanged()
            raise
        self.require_unchanged()

    def require_unchanged(self) -> None:
        """Raise DataError if the status of the file has changed since it was opened."""
        if self.status is None or self.path is None:
            return
        try:
            status = file_status(self.path)
        except OSError as error:
            if isinstance(self.path, RemotePath) and not isinstance(error, FileNotFoundError):
                # The store does not respond.
                raise DataError(str(error)) from None
            raise DataError(
                f"{self.path} was removed or renamed after it was opened: leave it in place until all rows are read."
            ) from None
        if status != self.status:
            raise DataError(f"{self.path} has changed since it was opened: open it again, and repeat the fit.")

    def require_not_cut(self) -> None:
        """Raise DataError if a local file has changed: reading a memory map of a truncated file ends the process."""
        # Folders and objects in stores are not mapped, and take longer to check.
        if not isinstance(self.status, str):
            self.require_unchanged()

    def _finite_pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        read = False
        for X, columns in self.pieces(features, others, start, step):
            if (bad := first_not_finite(X, allow_missing=self.allow_missing)) is not None:
                raise self.bad_value(start + bad[0], int(features[bad[1]]), X[bad])
            for j, column in enumerate(map(int, others)):
                allowed = self.allow_missing or column in self.optional
                if (bad := first_not_finite(columns[j], allow_missing=allowed)) is not None:
                    raise self.bad_value(start + bad[0], column, columns[j][bad])
            start += len(X)
            read = True
            yield X, columns
            # Free it before the next one is read.
            del X, columns
            self.require_not_cut()
        if self.n_rows is not None and (start < self.n_rows or (read and start > self.n_rows)):
            raise DataError(f"{self.where} is damaged: it declares {self.n_rows:,} rows, but has {start:,}.")

    def kind_of(self, column: int) -> str:
        """Describe the values of a column for display: a type of numbers, text, or neither."""
        try:
            dtype = self.dtype_of(np.array([column], np.intp), text=True)
        except DataError:
            return "neither numbers nor text"
        return "text" if dtype.kind in "SU" else str(dtype)

    def check_each(self, columns: Columns, check: Callable[[int], Checked]) -> list[Checked]:
        """Return ``check(column)`` of each column; raise one DataError that names all columns it refuses."""
        found: list[Checked] = []
        errors: dict[int, DataError] = {}
        for column in map(int, columns):
            try:
                found.append(check(column))
            except DataError as error:
                errors[column] = error
        if errors:
            raise next(iter(errors.values())) if len(errors) == 1 else self.not_numeric(errors)
        return found

    def not_numeric(self, columns: Iterable[int]) -> DataError:
        """Return the error for several columns that do not hold numbers, to be left out together."""
        refused = sorted(columns)
        names = [str(name) if (name := self.name_of(column)) is not None else column for column in refused]
        kinds = ", ".join(f"{self.column_name(column)} ({self.kind_of(column)})" for column in refused[:_MOST_SHOWN])
        more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
        return DataError(
            f"{len(names)} columns of {self.where} do not hold numbers, {kinds}{more}: leave them out by "
            f"exclude={names}, or encode text by categorical=."
        )

    def bad_value(self, row: int, column: int, value: Any) -> DataError:
        """Return the error for a value that is not a finite number."""
        problem, instead = "a missing value", ", or read it by a model with missing='model'"
        if value is not None:
            problem, instead = ("NaN", instead) if np.isnan(value) else ("infinity", "")
        return self.error_at(row, column, f"there is {problem}: drop or replace such values{instead}")

    def error_at(self, row: int, column: int, problem: str) -> DataError:
        """Return the error for a problem in a row and a column."""
        return DataError(f"In {self.where}, row {row}, column {self.column_name(column)}, {problem}.")

    def column_name(self, column: int) -> str:
        """Return the name or number of a column for a message."""
        name = self.name_of(column)
        return str(column) if name is None else shortened(name)

    def name_of(self, column: int) -> str | None:
        """Return the name of a column, if it has one."""
        if column >= self.n_columns:
            return self.others[column - self.n_columns]
        return None if self.names is None else self.names[column]


def pick(rows: Array, columns: Columns) -> Array:
    """Return some columns, as a view if they are adjacent."""
    if len(columns) and are_adjacent(columns):
        return rows[:, columns[0] : columns[-1] + 1]
    return rows[:, columns]


def are_adjacent(columns: Columns) -> bool:
    """Return whether columns are adjacent and in order."""
    return bool((np.diff(columns) == 1).all())


def stack_columns(columns: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Return columns as a matrix in C order."""
    n_rows = len(columns[0]) if columns else 0
    out = np.empty((n_rows, len(columns)), dtype)
    # A few rows at a time, which stay in the cache while they are written column by column.
    step = max(64, (1 << 20) // max(1, out[:1].nbytes))
    for start in range(0, n_rows, step):
        part = out[start : start + step]
        for j, column in enumerate(columns):
            part[:, j] = column[start : start + step]
    return out
