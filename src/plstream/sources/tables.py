"""Columns in Arrow's formats: Parquet, Arrow IPC and Feather, from files and from streams.

Features are columns of numbers, or the entries of one column of lists of a fixed size, which is read without taking
columns apart and so several times faster.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._types import Array
from .columns import listed
from .errors import DataError, beginning, damage_told, each, needed, shortened
from .table import Piece, Table, rows_of

_PIECE_BYTES = 8 << 20
_SAMPLE_ROWS = 64


class ArrowTable(Table):
    """Record batches, however they come."""

    def __init__(self, where: str, schema: Any) -> None:
        self._types = needed("pyarrow", f"Reading {where}").types
        with damage_told(where):
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
        scalars = tuple(name for name in names if name != self._list)
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
        names = list(dict.fromkeys(self._name(int(column)) for column in (*features, *targets)))
        dtype = self.dtype_of(features) if len(features) else np.dtype(np.float64)
        step = max(1, min(step, _PIECE_BYTES // (dtype.itemsize * max(1, len(features)))))
        for begin, batch in self.batches(names or self._cheapest(), start, step):
            # Before it is, nothing in it is known to be within its bounds.
            with damage_told(self.where):
                batch.validate(full=True)
            skip = max(0, start - begin)
            for first in range(skip, batch.num_rows, step):
                with damage_told(self.where):
                    piece = self._piece(batch.slice(first, step), features, targets, dtype, begin + first)
                yield piece

    def _piece(
        self, batch: Any, features: NDArray[np.intp], targets: NDArray[np.intp], dtype: np.dtype[Any], row: int
    ) -> Piece:
        if not len(features):
            X: Array = np.empty((batch.num_rows, 0), dtype)
        elif self._list is not None:
            X = self._entries(batch, row)
            X = X if len(features) == self.n_columns and (np.diff(features) == 1).all() else X[:, features]
        else:
            X = rows_of([self._column(batch, int(column), row) for column in features], dtype)
        columns = [self._column(batch, int(column), row) for column in targets]
        if len(columns) > 1:
            return X, np.column_stack(columns)
        return X, columns[0] if columns else None

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
        self._require_no_nulls(values, row, column)
        if self._types.is_dictionary(values.type):
            values = values.dictionary_decode()
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
        if types.is_string(kind) or types.is_large_string(kind):
            if text:
                return np.dtype(str)
            raise DataError(f"{column} holds text, not numbers: leave it out by columns= or exclude=.")
        if types.is_list(kind) or types.is_large_list(kind):
            raise DataError(f"{column} holds lists of any size: write lists of a fixed size.")
        raise DataError(
            f"{column} holds values of type {beginning(str(kind))}, not numbers: leave it out by columns= or exclude=."
        )


class ParquetTable(ArrowTable):
    """A Parquet file."""

    format: ClassVar[str] = "parquet"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = str(path)
        self._parquet = needed("pyarrow.parquet", f"Reading {path}")
        with damage_told(self.where), self._parquet.ParquetFile(path, memory_map=True) as file:
            schema, self.n_rows = file.schema_arrow, file.metadata.num_rows
            self._group_rows = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        super().__init__(str(path), schema)
        if not self.n_rows:
            raise DataError(f"{path} has no rows.")

    def batches(self, names: list[str], start: int, step: int) -> Iterator[tuple[int, Any]]:
        """Yield batches, beginning with the row group that has the row."""
        begin, groups = 0, list(range(len(self._group_rows)))
        while groups and begin + self._group_rows[groups[0]] <= start:
            begin += self._group_rows[groups.pop(0)]
        if not groups:
            return
        with damage_told(self.where):
            file = self._parquet.ParquetFile(self.path, memory_map=True)
        with file:
            for batch in each(file.iter_batches(step, row_groups=groups, columns=names), self.where):
                yield begin, batch
                begin += batch.num_rows


class IpcFileTable(ArrowTable):
    """An Arrow file, which is what Feather is too."""

    format: ClassVar[str] = "arrow"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = str(path)
        self._pa = needed("pyarrow", f"Reading {path}")
        with damage_told(self.where), self._pa.memory_map(str(path)) as file:
            schema = self._pa.ipc.open_file(file).schema
        super().__init__(str(path), schema)
        # Lists are handed out as they are in the file.
        self.slow = self._list is None
        with damage_told(self.where), self._open(self._cheapest()) as reader:
            counts = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
        self._ends = np.cumsum(counts).tolist()
        self.n_rows = self._ends[-1] if counts else 0
        if not self.n_rows:
            raise DataError(f"{path} has no rows.")

    def batches(self, names: list[str], start: int, step: int) -> Iterator[tuple[int, Any]]:
        """Yield batches, beginning with the one that has the row."""
        with damage_told(self.where), self._open(names) as reader:
            for i, end in enumerate(self._ends):
                if end > start:
                    batch = reader.get_batch(i)
                    yield end - batch.num_rows, batch

    @contextmanager
    def _open(self, names: list[str]) -> Iterator[Any]:
        positions = {name: position for position, name in enumerate(self._fields)}
        options = self._pa.ipc.IpcReadOptions(included_fields=[positions[name] for name in names])
        with self._pa.memory_map(str(self.path)) as file:
            yield self._pa.ipc.open_file(file, options=options)


class IpcStreamTable(ArrowTable):
    """An Arrow stream, from a file or a pipe."""

    format: ClassVar[str] = "arrow"

    def __init__(self, file: Path | IO[bytes], where: str) -> None:
        self.where = where
        self._pa = needed("pyarrow", f"Reading {where}")
        self.rereadable = isinstance(file, Path) and not file.is_fifo()
        self.path = file if isinstance(file, Path) and self.rereadable else None
        self._is_own = isinstance(file, Path) and not self.rereadable
        self._file: Any = file.open("rb") if isinstance(file, Path) and self._is_own else file
        with damage_told(self.where):
            reader = self._open()
        super().__init__(where, reader.schema)
        self._unread = None if self.rereadable else reader

    def batches(self, names: list[str], start: int, step: int) -> Iterator[tuple[int, Any]]:
        """Yield all batches that are not before the row."""
        end = 0
        with damage_told(self.where):
            reader = self._open() if self._unread is None else self._unread
        for batch in each(iter(reader), self.where):
            end += batch.num_rows
            if end > start:
                yield end - batch.num_rows, batch
        if self._is_own:
            self._file.close()

    def _open(self) -> Any:
        file = self._pa.OSFile(str(self._file)) if isinstance(self._file, Path) else self._pa.PythonFile(self._file)
        return self._pa.ipc.open_stream(file)


def open_arrow(path: Path) -> ArrowTable:
    """Open an Arrow file in either of its two forms."""
    with path.open("rb") as file:
        is_file = file.read(6) == b"ARROW1"
    return IpcFileTable(path) if is_file else IpcStreamTable(path, str(path))


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
        """Number of rows, and the first and the last of them."""
        assert self.n_rows is not None
        ends = [self.table.slice(start, _SAMPLE_ROWS).to_pydict() for start in (0, max(0, self.n_rows - _SAMPLE_ROWS))]
        return self.n_rows, sha256(repr(ends).encode()).hexdigest()

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
