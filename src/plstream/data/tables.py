"""Columns in Arrow's formats: what Parquet, Arrow files and Feather have in common, and streams of Arrow.

Features are columns of numbers, or the entries of one column of lists of a fixed size, which is read without taking
columns apart and so several times faster.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, beginning, import_optional, shortened, wrap_iteration, wrap_library_errors
from .._core.types import Array
from .columns import listed
from .table import Piece, Table, rows_of

# Rows that are taken apart at a time, at most: they stay in the cache from one step to the next.
_PIECE_BYTES = 2 << 20
# How often a piece is there at most: as lists are decoded, as Arrow has it and as rows.
_COPIES = 4
_HASHED_ROWS = 1 << 12
# The numbers of rows that pandas keeps beside them.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
# What is said of the first letters of a file, ARRO, as a number of bytes.
_FILE_NOT_STREAM = "1330795073 metadata bytes"
# Rows by which a stream that begins anew is known.
_FIRST_ROWS = 5


class ArrowTable(Table):
    """Record batches, however they come."""

    def __init__(self, where: str, schema: Any) -> None:
        self._types = import_optional("pyarrow", f"Reading {where}").types
        with wrap_library_errors(where):
            # Names need not be text.
            names = schema.names
        twice = [name for name in names if names.count(name) > 1] if _has_twins(names) else []
        if twice:
            raise DataError(f"{where} has several columns named {shortened(twice[0])}: give each a name of its own.")
        lists = [field for field in schema if self._types.is_fixed_size_list(field.type)]
        if len(lists) > 1:
            raise DataError(f"{where} has several columns of lists, {listed(field.name for field in lists)}: keep one.")
        self._fields = {field.name: field.type for field in schema}
        self._list = lists[0].name if lists else None
        scalars = tuple(name for name in names if name != self._list and not _PANDAS_INDEX.fullmatch(name))
        super().__init__(where, lists[0].type.list_size if lists else len(scalars))
        if not self.n_columns:
            raise DataError(f"{where} has no columns.")
        if lists:
            self.others = scalars
        else:
            self.names = scalars

    @abstractmethod
    def batches(self, names: list[str], start: int, step: int) -> Iterator[tuple[int, Any]]:
        """Yield record batches of some columns and the row that each begins with, the first at ``start`` or before."""

    def dtype_of(self, columns: NDArray[np.intp], *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype that holds all the columns."""
        if self._list is not None and len(columns) and columns.max() < self.n_columns:
            return self._dtype(self._list, self._fields[self._list].value_type, text=False)
        names = {self._name(int(column)) for column in columns}
        dtypes = {self._dtype(name, self._fields[name], text=text) for name in names}
        if len({dtype.kind in "SU" for dtype in dtypes}) > 1:
            raise DataError(f"Targets in {self.where} are text and numbers: choose either.")
        return np.result_type(*dtypes)

    def pieces(self, features: NDArray[np.intp], targets: NDArray[np.intp], start: int, step: int) -> Iterator[Piece]:
        """Yield rows, batch by batch."""
        step = self._step(features, step)
        batches = self.batches(self._names(features, targets), start, step)
        yield from self._rows_of_batches(batches, features, targets, start, step)

    def _step(self, features: NDArray[np.intp], step: int) -> int:
        """Return how many rows of the features to take apart at a time."""
        row_bytes = self.dtype_of(features).itemsize * len(features) if len(features) else 1
        return max(1, min(step, self._pieces_bytes // _COPIES // row_bytes))

    @property
    def _pieces_bytes(self) -> int:
        """Bytes that a piece takes in all its forms, which leave half of the room to columns."""
        return min(_COPIES * _PIECE_BYTES, self.room // 2)

    def _names(self, features: NDArray[np.intp], targets: NDArray[np.intp]) -> list[str]:
        return list(dict.fromkeys(self._name(int(column)) for column in (*features, *targets))) or self._cheapest()

    def _rows_of_batches(
        self,
        batches: Iterator[tuple[int, Any]],
        features: NDArray[np.intp],
        targets: NDArray[np.intp],
        start: int,
        step: int,
    ) -> Iterator[Piece]:
        dtype = self.dtype_of(features) if len(features) else np.dtype(np.float64)
        for begin, batch in batches:
            # Before it is, nothing in it is known to be within its bounds.
            with wrap_library_errors(self.where):
                batch.validate(full=True)
            for first in range(max(0, start - begin), batch.num_rows, step):
                with wrap_library_errors(self.where):
                    piece = self._piece(batch.slice(first, step), features, targets, dtype, begin + first)
                yield piece
                del piece
            # Neither is needed while the next one is read.
            del batch

    def _piece(
        self, batch: Any, features: NDArray[np.intp], targets: NDArray[np.intp], dtype: np.dtype[Any], row: int
    ) -> Piece:
        if not len(features):
            X: Array = np.empty((batch.num_rows, 0), dtype)
        elif self._list is not None:
            X = self._entries(batch, row)
            X = X if len(features) == self.n_columns and (np.diff(features) == 1).all() else X[:, features]
        else:
            X = self._rows(batch, features, dtype, row)
        columns = [self._column(batch, int(column), row) for column in targets]
        if len(columns) > 1:
            return X, np.column_stack(columns)
        return X, columns[0] if columns else None

    def _rows(self, batch: Any, features: NDArray[np.intp], dtype: np.dtype[Any], row: int) -> Array:
        """Return columns side by side; by Arrow if all are of one type, which leaves the interpreter to others."""
        names = [self._name(int(column)) for column in features]
        kinds = {self._fields[name] for name in names}
        if len(kinds) > 1 or not all(self._types.is_integer(kind) or self._types.is_floating(kind) for kind in kinds):
            return rows_of([self._column(batch, int(column), row) for column in features], dtype)
        chosen = batch.select(names)
        for values, column in zip(chosen.columns, features, strict=True):
            self._require_no_nulls(values, row, int(column))
        rows: Array = chosen.to_tensor().to_numpy()
        return rows

    def _entries(self, batch: Any, row: int) -> Array:
        """Return the entries of the lists, one list a row."""
        lists = batch.column(self._list)
        self._require_no_nulls(lists, row, 0)
        entries = lists.flatten()
        if entries.null_count:
            at = _first_null(entries)
            raise self.bad_value(row + at // self.n_columns, at % self.n_columns, None)
        numbers: Array = entries.to_numpy(zero_copy_only=False)
        return numbers.reshape(len(lists), self.n_columns)

    def _column(self, batch: Any, column: int, row: int) -> Array:
        values = batch.column(self._name(column))
        if self._types.is_dictionary(values.type):
            values = values.dictionary_decode()
        self._require_no_nulls(values, row, column)
        array: Array = values.to_numpy(zero_copy_only=False)
        return array.astype(str) if array.dtype.kind == "O" else array

    def _require_no_nulls(self, values: Any, row: int, column: int) -> None:
        if values.null_count:
            raise self.bad_value(row + _first_null(values), column, None)

    def _name(self, column: int) -> str:
        if column >= self.n_columns:
            return self.others[column - self.n_columns]
        return self._list or (self.names or ())[column]

    def _cheapest(self) -> list[str]:
        """Return a column to count rows by."""
        return [next(iter(self.others), None) or self._name(0)]

    def _dtype(self, name: str, kind: Any, *, text: bool) -> np.dtype[Any]:
        types, column = self._types, f"Column {shortened(name)} of {self.where}"
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
            dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
            return dtype
        # Views are of pyarrow 16 and later.
        is_view = getattr(types, "is_string_view", lambda _: False)
        if types.is_string(kind) or types.is_large_string(kind) or is_view(kind):
            if text:
                return np.dtype(str)
            raise DataError(f"{column} holds text, not numbers: leave it out by columns= or exclude=.")
        if types.is_list(kind) or types.is_large_list(kind):
            raise DataError(f"{column} holds lists of any size: write lists of a fixed size.")
        raise DataError(
            f"{column} holds values of type {beginning(str(kind))}, not numbers: leave it out by columns= or exclude=."
        )


class IpcStreamTable(ArrowTable):
    """An Arrow stream, from a file or a pipe."""

    format: ClassVar[str] = "arrow"

    def __init__(self, file: Path | IO[bytes], where: str) -> None:
        self.where = where
        self._pa = import_optional("pyarrow", f"Reading {where}")
        self.rereadable = isinstance(file, Path) and not file.is_fifo()
        self.path = file if isinstance(file, Path) and self.rereadable else None
        self._is_own = isinstance(file, Path) and not self.rereadable
        self._file: Any = file.open("rb") if isinstance(file, Path) and self._is_own else file
        try:
            with wrap_library_errors(self.where):
                reader = self._open()
        except DataError as error:
            if _FILE_NOT_STREAM in str(error):
                raise DataError(f"{where} is an Arrow file, not an Arrow stream: pass its path.") from None
            raise
        super().__init__(where, reader.schema)
        self._unread = None if self.rereadable else self._pieces_of(reader)
        self._first = None if self._unread is None else next(self._unread, None)

    @property
    def beginning(self) -> str | None:
        """A short text that changes with the first rows."""
        if self._first is None:
            return None
        return sha256(repr(self._first.slice(0, _FIRST_ROWS).to_pydict()).encode()).hexdigest()[:16]

    def batches(self, names: list[str], start: int, step: int) -> Iterator[tuple[int, Any]]:
        """Yield all batches that are not before the row."""
        end = 0
        with wrap_library_errors(self.where):
            found = self._pieces_of(self._open()) if self._unread is None else self._unread
        for batch in found if self._first is None else chain([self._first], found):
            end += batch.num_rows
            if end > start:
                yield end - batch.num_rows, batch
            # It is not needed while the next one is read.
            del batch

    def _pieces_of(self, reader: Any) -> Iterator[Any]:
        yield from wrap_iteration(iter(reader), self.where)
        if self._is_own:
            self._file.close()

    def _open(self) -> Any:
        if isinstance(self._file, Path):
            file = self._pa.memory_map(str(self._file))
        else:
            file = self._pa.PythonFile(self._file, "r")
        return self._pa.ipc.open_stream(file)


class ArrowInMemory(ArrowTable):
    """A table of Arrow in memory."""

    format: ClassVar[str] = "arrow"
    slow = False

    def __init__(self, table: Any) -> None:
        super().__init__("the table", table.schema)
        self.table = table
        self.n_rows = table.num_rows
        if not self.n_rows:
            raise DataError("The table has no rows.")

    @property
    def identity(self) -> tuple[Any, ...]:
        """Number of rows, types of columns and a hash."""
        digest = sha256()
        for batch in self.table.to_batches(_HASHED_ROWS):
            for column in batch.columns:
                digest.update(repr(column.to_pylist()).encode())
        return self.n_rows, str(self.table.schema), digest.hexdigest()

    def batches(self, names: list[str], start: int, step: int) -> Iterator[tuple[int, Any]]:
        """Yield the rows from there on."""
        begin = start
        for batch in self.table.slice(start).select(names).to_batches(step):
            yield begin, batch
            begin += batch.num_rows


def _has_twins(names: list[str]) -> bool:
    return len(set(names)) < len(names)


def _first_null(values: Any) -> int:
    return int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
