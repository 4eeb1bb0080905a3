"""A reader: all columns of one file, pipe or object, read in order from any row on. Every format has one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, counted, first_not_finite, shortened
from .._core.remote import AnyPath, RemotePath
from .._core.types import Array
from .columns import listed
from .files import file_identity, file_status
from .where import Where

Checked = TypeVar("Checked")

XY: TypeAlias = tuple[Array, Array | None]
"""Some rows: their features, and their targets if there are any."""

Pieces: TypeAlias = tuple[Array, list[Array]]
"""Some rows as a reader yields them: features side by side, and further columns, numbers or text, each by itself."""

Columns: TypeAlias = NDArray[np.intp]
"""Numbers of columns."""

# Columns that are described in a message.
_SHOWN = 20

NO_COLUMNS: Columns = np.empty(0, np.intp)


class OpenOptions(NamedTuple):
    """What a caller says of files beside their names; see :func:`plstream.open_source`."""

    format: str | None = None
    key: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    query: str | None = None
    where: Where | None = None


class Reader(ABC):
    """Rows of columns, read in order from any row on.

    Attributes
    ----------
    where : str
        What to call it in a message.
    n_rows : int or None
        Number of rows, None if that is not known before all are read.
    n_columns : int
        Number of columns.
    names : tuple of str, or None
        Names of the columns.
    others : tuple of str
        Names of further columns, which can only be targets. They are numbered on from ``n_columns``.
    own_targets : array of int
        Numbers of the columns that are targets unless the caller names others: blocks may come as pairs of X and y.
    index_columns : array of int
        Numbers of the columns that only number the rows, and are features only if they are chosen.
    is_vector : bool
        Whether it has a single column because it has one dimension.
    rereadable, slow : bool
        Whether it can be read again, and whether that takes much longer than to read as much from a file of numbers.
    in_blocks : bool
        Whether what it yields ends at multiples of the step.
    path : Path, RemotePath or None
        The file or object, if it is one.
    status : tuple, str or None
        That of the file when it was opened, see :func:`file_status`.
    beginning : str or None
        A short text that changes with the first rows, of what can be read only once.
    room : int
        Bytes that reading may take beside the blocks that are made of the rows. A source sets it before it reads.
    allow_missing : bool
        Whether missing numbers are read as NaN, and are no error. A source sets it before it reads.
    optional : frozenset of int
        Columns of categories, in which values may be missing: text is then empty. A source sets it before it reads.
    """

    n_rows: int | None = None
    names: tuple[str, ...] | None = None
    others: tuple[str, ...] = ()
    own_targets: Columns = NO_COLUMNS
    index_columns: Columns = NO_COLUMNS
    is_vector = False
    rereadable = True
    slow = True
    in_blocks = False
    path: AnyPath | None = None
    status: tuple[int, ...] | str | None = None
    beginning: str | None = None
    room = 8 << 20
    allow_missing = False
    optional: frozenset[int] = frozenset()

    def __init__(self, where: str, n_columns: int) -> None:
        self.where = where
        self.n_columns = n_columns

    @property
    def reads_gaps(self) -> bool:
        """Whether missing numbers are to be parsed; those in other columns than categories may be an error later."""
        return self.allow_missing or bool(self.optional)

    def read_like(self, other: Reader) -> None:
        """Read with the memory, and with the missing values, that another reader may have."""
        self.room, self.allow_missing, self.optional = other.room, other.allow_missing, other.optional

    @abstractmethod
    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype of some columns together; raise DataError if they are not numbers (or text)."""

    @abstractmethod
    def pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield rows from ``start`` on, at most ``step`` at a time, best with ends at multiples of it."""

    def whole_bytes(self, features: Columns, targets: Columns) -> int:
        """Return the room that it takes to read nothing twice, as far as it depends on the file."""
        return 0

    @property
    def bytes_at_most(self) -> int | None:
        """Upper bound of the bytes of all columns as float64, if known before reading."""
        return None if self.n_rows is None else 8 * self.n_rows * self.n_columns

    @property
    def identity(self) -> tuple[Any, ...]:
        """What changes when the rows do: name, size, time and parts of the file."""
        return (self.where,) if self.path is None else file_identity(self.path)

    def mapped(self) -> Array | None:
        """Return all columns as one array whose rows are read when they are used, if there is such."""
        return None

    def count(self) -> int:
        """Return the number of rows, reading them all if need be."""
        if self.n_rows is None:
            self.n_rows = sum(len(X) for X, _ in self.pieces(NO_COLUMNS, NO_COLUMNS, 0, 1 << 16))
        return self.n_rows

    def read(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield rows from ``start`` on; raise DataError for the first number that is not finite, or if files change."""
        self.require_unchanged()
        try:
            yield from self._finite_pieces(features, others, start, step)
        except DataError:
            # What looks like damage may be a file that is being written.
            self.require_unchanged()
            raise
        self.require_unchanged()

    def require_unchanged(self) -> None:
        """Raise DataError unless the file is the same as when it was opened, as far as its status tells."""
        if self.status is None or self.path is None:
            return
        try:
            status = file_status(self.path)
        except OSError as error:
            if isinstance(self.path, RemotePath) and not isinstance(error, FileNotFoundError):
                # A store that does not answer.
                raise DataError(str(error)) from None
            raise DataError(
                f"{self.path} was removed or renamed after it was opened: leave it in place until all is read."
            ) from None
        if status != self.status:
            raise DataError(f"{self.path} has changed since it was opened: open it again, and repeat the fit.")

    def require_not_cut(self) -> None:
        """Raise DataError if a file has changed: to read on in a mapped one that was cut off would end the process."""
        # A folder or an object in a store is not mapped, and takes longer to look at.
        if not isinstance(self.status, str):
            self.require_unchanged()

    def _finite_pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        read = False
        for X, columns in self.pieces(features, others, start, step):
            if (bad := first_not_finite(X, allow_missing=self.allow_missing)) is not None:
                raise self.bad_value(start + bad[0], int(features[bad[1]]), X[bad])
            for values, column in zip([X, *columns], [-1, *others], strict=True):
                allowed = self.allow_missing or int(column) in self.optional
                if column >= 0 and (bad := first_not_finite(values, allow_missing=allowed)) is not None:
                    raise self.bad_value(start + bad[0], int(column), values[bad])
            start += len(X)
            read = True
            yield X, columns
            # It is not needed while the next one is made.
            del X, columns, values
            self.require_not_cut()
        if self.n_rows is not None and (start < self.n_rows or (read and start > self.n_rows)):
            raise DataError(f"{self.where} is damaged: it says that it has {self.n_rows:,} rows, and has {start:,}.")

    def kind_of(self, column: int) -> str:
        """Return what a column holds, in a word or two for a reader: a type of numbers, text, or what it is not."""
        try:
            dtype = self.dtype_of(np.array([column], np.intp), text=True)
        except DataError:
            return "neither numbers nor text"
        return "text" if dtype.kind in "SU" else str(dtype)

    def each_suitable(self, columns: Columns, check: Callable[[int], Checked]) -> list[Checked]:
        """Return what ``check`` makes of columns; raise one DataError that names all columns that it refuses."""
        found: list[Checked] = []
        refused: list[int] = []
        error: DataError | None = None
        for column in map(int, columns):
            try:
                found.append(check(column))
            except DataError as problem:
                error = error or problem
                refused.append(column)
        if error is not None:
            raise error if len(refused) == 1 else self.unsuitable(refused)
        return found

    def unsuitable(self, columns: Sequence[int]) -> DataError:
        """Return the error for several columns that do not hold numbers, in their order, to be left out together."""
        names = [str(name) if (name := self.name_of(column)) is not None else column for column in sorted(columns)]
        kinds = ", ".join(f"{self.column_name(column)} ({self.kind_of(column)})" for column in sorted(columns)[:_SHOWN])
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
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
        """Return the error for something in a row and a column."""
        return DataError(f"In {self.where}, row {row}, column {self.column_name(column)}, {problem}.")

    def column_name(self, column: int) -> str:
        """Return what to call a column in a message."""
        name = self.name_of(column)
        return str(column) if name is None else shortened(name)

    def name_of(self, column: int) -> str | None:
        """Return the name of a column, if it has one."""
        if column >= self.n_columns:
            return self.others[column - self.n_columns]
        return None if self.names is None else self.names[column]


class ConcatenatedReader(Reader):
    """Readers of the same columns, one after another. They are opened beforehand, so that a bad one is found early."""

    def __init__(self, where: str, readers: Sequence[Reader]) -> None:
        first = readers[0]
        super().__init__(where, first.n_columns)
        self.names, self.others = first.names, first.others
        self.readers = readers
        for reader in readers[1:]:
            self._require_alike(reader)
        self.slow = any(reader.slow for reader in readers)
        counts = [reader.n_rows for reader in readers]
        self.n_rows = None if None in counts else sum(count for count in counts if count is not None)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Those of all readers."""
        return tuple(reader.identity for reader in self.readers)

    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return a dtype that holds what all have, if all have numbers or all have text."""
        dtypes = [reader.dtype_of(columns, text=text) for reader in self.readers]
        for reader, dtype in zip(self.readers, dtypes, strict=True):
            if (dtype.kind in "SU") != (dtypes[0].kind in "SU"):
                raise DataError(
                    f"Column {self.column_name(int(columns[0]))} holds numbers in one of {self.readers[0].where} and "
                    f"{reader.where}, and text in the other."
                )
        return np.result_type(*dtypes)

    def kind_of(self, column: int) -> str:
        """Return what the column holds in the first."""
        return self.readers[0].kind_of(column)

    def whole_bytes(self, features: Columns, targets: Columns) -> int:
        """Return that of the one that takes the most."""
        return max(reader.whole_bytes(features, targets) for reader in self.readers)

    def count(self) -> int:
        """Return the rows of all together."""
        self.n_rows = sum(reader.count() for reader in self.readers)
        return self.n_rows

    def pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield the rows of one after another."""
        dtype = self.dtype_of(features) if len(features) else None
        for reader in self.readers:
            skipped = min(start, reader.count()) if start else 0
            start -= skipped
            if skipped and skipped == reader.n_rows:
                continue
            reader.read_like(self)
            for X, columns in reader.read(features, others, skipped, step):
                yield X if dtype is None else X.astype(dtype, copy=False), columns
                del X, columns

    # Each looks for numbers that are not finite and for changes of its file, and knows its own rows.
    read = pieces

    def require_unchanged(self) -> None:
        """Raise DataError unless all files are the same."""
        for reader in self.readers:
            reader.require_unchanged()

    def _require_alike(self, reader: Reader) -> None:
        first = self.readers[0]
        mine, theirs = (first.names or ()) + first.others, (reader.names or ()) + reader.others
        if mine != theirs:
            missing, more = [name for name in mine if name not in theirs], [name for name in theirs if name not in mine]
            if missing or more:
                difference = f"has no {listed(missing)}" if missing else f"has {listed(more)} besides"
            else:
                difference = "has its columns in another order"
            raise DataError(f"{reader.where} does not go with {first.where}: it {difference}.")
        if reader.n_columns != first.n_columns:
            raise DataError(
                f"{reader.where} has {counted(reader.n_columns, 'column')}, but {first.where} has {first.n_columns}."
            )


def pick(rows: Array, columns: Columns) -> Array:
    """Return some columns, as a view if they are neighbours."""
    if len(columns) and are_neighbours(columns):
        return rows[:, columns[0] : columns[-1] + 1]
    return rows[:, columns]


def are_neighbours(columns: Columns) -> bool:
    """Return whether columns are side by side, in their order."""
    return bool((np.diff(columns) == 1).all())


def side_by_side(columns: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Return columns as an array of rows, row by row in memory."""
    n_rows = len(columns[0]) if columns else 0
    out = np.empty((n_rows, len(columns)), dtype)
    # A few rows at a time: written column by column, they stay in the cache until they are complete.
    step = max(64, (1 << 20) // max(1, out[:1].nbytes))
    for start in range(0, n_rows, step):
        part = out[start : start + step]
        for j, column in enumerate(columns):
            part[:, j] = column[start : start + step]
    return out
