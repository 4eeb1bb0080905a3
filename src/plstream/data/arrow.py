"""Rows of Arrow record batches: shared code for Parquet, Arrow files, Feather, Arrow streams and Arrow tables.

Features are columns of numbers, or the entries of one column of fixed-size lists, which is several times faster to
read.

Each column of a row group is compressed separately, so reading rows of all columns takes a page of every column. With
a thousand columns and a million rows per group, the default of most writers, that would be gigabytes. Such a group is
first transposed: read a few columns at a time into a temporary file.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import accumulate, chain, islice
from typing import Any

import numpy as np

from .._core.errors import DataError, beginning, import_optional, shortened, wrap_library_errors
from .._core.remote import AnyPath
from .._core.types import Array
from .columns import listed, require_unique
from .reader import FIRST_ROWS, NO_COLUMNS, Columns, Pieces, Reader, are_adjacent, stack_columns
from .reading import GrowingArray, NoRoomError, temporary_array

# Maximum size of pieces, which stay in the cache from one step to the next.
_PIECE_BYTES = 2 << 20
# Maximum number of copies of a piece: decoded lists, Arrow arrays and rows.
_COPIES = 4
_HASHED_ROWS = 1 << 12
# Row labels that pandas stores as a column.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


class ArrowReader(Reader):
    """Columns of Arrow record batches, in consecutive row groups, with the schema of pyarrow.

    ``batches(group number, column names, step)`` yields the record batches of a group with at least these columns and,
    if it can choose, of about ``step`` rows. ``counts`` are the numbers of rows of the groups; by default there is one
    group of unknown length. ``begins`` are the numbers of their first rows in the file, for messages, if groups are
    skipped. ``held_bytes(group number, column name)`` is about how much memory the column takes while its rows are
    read.
    """

    as_float = False
    """Whether features are returned as float64, because types may differ between batches."""

    def __init__(
        self,
        where: str,
        schema: Any,
        batches: Callable[[int, list[str], int], Iterator[Any]],
        *,
        counts: Sequence[int] | None = None,
        begins: Sequence[int] | None = None,
        held_bytes: Callable[[int, str], int] = lambda _number, _name: 0,
        path: AnyPath | None = None,
        rereadable: bool = True,
    ) -> None:
        self._types = import_optional("pyarrow", f"Reading {where}").types
        with wrap_library_errors(where):
            # Raises an error for names that are not UTF-8.
            names = schema.names
        require_unique(names, where)
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
        if counts is not None:
            self.n_rows = sum(counts)
        if self.n_rows == 0:
            raise DataError(f"{where} has no rows.")
        self.path, self.rereadable = path, rereadable
        self._batches, self._begins, self._held_bytes = batches, begins, held_bytes
        # For every group, the row after its last one.
        self._ends = [*accumulate(counts or [sys.maxsize])]

    @property
    def identity(self) -> tuple[Any, ...]:
        """Identity of the file; for a table in memory, number of rows, types of columns and a hash."""
        if self.path is not None or self.known_by is not None or not self.rereadable:
            return super().identity
        digest = sha256()
        for batch in self._batches(0, list(self._fields), _HASHED_ROWS):
            for column in batch.columns:
                is_plain = not column.null_count and self._types.is_primitive(column.type)
                values = column.to_numpy(zero_copy_only=False) if is_plain else repr(column.to_pylist()).encode()
                digest.update(np.ascontiguousarray(values).data if is_plain else values)
        return self.n_rows, str(self._fields), digest.hexdigest()

    def table(self) -> Any:
        """Return all rows as an Arrow table."""
        pa = import_optional("pyarrow", f"Reading {self.where}")
        schema = pa.schema(list(self._fields.items()))
        batches = self._batches(0, list(self._fields), sys.maxsize)
        return pa.Table.from_batches([batch.cast(schema) for batch in batches], schema)

    def error_at(self, row: int, column: int, problem: str) -> DataError:
        """Return the error for a problem in a row, numbered as in the file, and a column."""
        if self._begins is not None:
            number = bisect_right(self._ends, row)
            row += self._begins[number] - self._begin(number)
        return super().error_at(row, column, problem)

    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return the common dtype of columns."""
        if self._list is not None and len(columns) and columns.max() < self.n_columns:
            return self._dtype_of_column(0, text=False)
        dtypes = set(self.check_each(columns, partial(self._dtype_of_column, text=text)))
        if len({dtype.kind in "SU" for dtype in dtypes}) > 1:
            raise DataError(
                f"Some targets in {self.where} are numbers and some are strings: choose targets of one type."
            )
        if self.as_float and not text:
            return np.dtype(np.float64)
        return np.result_type(*dtypes)

    def kind_of(self, column: int) -> str:
        """Return the Arrow type of a column."""
        return str(self._type_of(column)).replace("large_", "").replace("string", "text")

    def _type_of(self, column: int) -> Any:
        """Return the Arrow type of a column, or of the entries of the lists."""
        found = self._fields[self._name(column)]
        return found.value_type if self._list is not None and column < self.n_columns else found

    def whole_bytes(self, features: Columns, targets: Columns) -> int:
        """Return the memory that the columns of the first group take."""
        held = self._bytes_of(0, self._names(features, targets))
        return held + min(held, self._pieces_bytes)

    def pieces(self, features: Columns, targets: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield rows, group by group."""
        row_bytes = self.dtype_of(features).itemsize * len(features) if len(features) else 1
        step = max(1, min(step, self._pieces_bytes // _COPIES // row_bytes))
        names = self._names(features, targets)
        for number, end in enumerate(self._ends):
            if end <= start:
                continue
            is_large = self._bytes_of(number, names) > self._largest_columns_bytes
            if is_large and len(features) > 1 and self._list is None:
                with temporary_array() as file, suppress(NoRoomError):
                    yield from self._transposed(file, number, features, targets, start, step)
                    continue
            yield from self._rows_of(number, features, targets, start, step)

    @property
    def _pieces_bytes(self) -> int:
        """Memory for all copies of a piece: at most half, the rest is for columns."""
        return min(_COPIES * _PIECE_BYTES, self.room // 2)

    @property
    def _largest_columns_bytes(self) -> int:
        """Memory that the columns of a group may take while its rows are read."""
        return self.room - self._pieces_bytes

    def _bytes_of(self, number: int, names: list[str]) -> int:
        return sum(self._held_bytes(number, name) for name in names)

    def _transposed(
        self, file: GrowingArray, number: int, features: Columns, targets: Columns, start: int, step: int
    ) -> Iterator[Pieces]:
        """Yield the rows of a group, whose features are first written to a file.

        It has all rows of the first few columns, then all rows of the next few, ...
        """
        ranges, dtype = [*self._parts(number, features)], self.dtype_of(features)
        for part in ranges:
            for X, _ in self._rows_of(number, features[part], NO_COLUMNS, start, step):
                file.append(X.astype(dtype, copy=False).ravel())
        n_rows, values = self._ends[number] - max(start, self._begin(number)), file.array()
        parts = [values[n_rows * part.start : n_rows * part.stop].reshape(n_rows, -1) for part in ranges]
        row = 0
        for X, columns in self._rows_of(number, NO_COLUMNS, targets, start, step):
            yield np.concatenate([part[row : row + len(X)] for part in parts], axis=1), columns
            row += len(X)

    def _parts(self, number: int, features: Columns) -> Iterator[slice]:
        """Yield ranges of the features that can be read together."""
        first, held = 0, 0
        for at, column in enumerate(features):
            more = self._held_bytes(number, self._name(int(column)))
            if at > first and held + more > self._largest_columns_bytes:
                yield slice(first, at)
                first, held = at, 0
            held += more
        yield slice(first, len(features))

    def _begin(self, number: int) -> int:
        return self._ends[number - 1] if number else 0

    def _rows_of(self, number: int, features: Columns, targets: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield the rows of a group, batch by batch."""
        dtype = self.dtype_of(features) if len(features) else np.dtype(np.float64)
        begin = self._begin(number)
        for batch in self._batches(number, self._names(features, targets), step):
            skipped = max(0, start - begin)
            if skipped < batch.num_rows:
                # Unvalidated offsets may be out of bounds.
                with wrap_library_errors(self.where):
                    batch.validate(full=True)
            for first in range(skipped, batch.num_rows, step):
                with wrap_library_errors(self.where):
                    piece = self._piece(batch.slice(first, step), features, targets, dtype, begin + first)
                yield piece
                del piece
            begin += batch.num_rows
            # Free it before the next one is read.
            del batch

    def _piece(self, batch: Any, features: Columns, targets: Columns, dtype: np.dtype[Any], row: int) -> Pieces:
        if not len(features):
            X: Array = np.empty((batch.num_rows, 0), dtype)
        elif self._list is not None:
            X = self._entries(batch, row)
            X = X if len(features) == self.n_columns and are_adjacent(features) else X[:, features]
        else:
            X = self._rows(batch, features, dtype, row)
        return X, [self._column(batch, int(column), row) for column in targets]

    def _rows(self, batch: Any, features: Columns, dtype: np.dtype[Any], row: int) -> Array:
        """Return columns as a matrix; by Arrow, without the interpreter lock, if all have the same type."""
        names = [self._name(int(column)) for column in features]
        kinds = {self._fields[name] for name in names}
        is_plain = all(self._types.is_integer(kind) or self._types.is_floating(kind) for kind in kinds)
        has_nulls = self.allow_missing and any(batch.column(name).null_count for name in names)
        if self.as_float or len(kinds) > 1 or not is_plain or has_nulls:
            # Integers with missing values become floats.
            dtype = np.result_type(dtype, np.float64) if has_nulls and dtype.kind != "f" else dtype
            return stack_columns([self._column(batch, int(column), row) for column in features], dtype)
        chosen = batch.select(names)
        for values, column in zip(chosen.columns, features, strict=True):
            self._require_no_nulls(values, row, int(column))
        rows: Array = chosen.to_tensor().to_numpy()
        return rows

    def _entries(self, batch: Any, row: int) -> Array:
        """Return the entries of the lists, one list per row."""
        lists = batch.column(self._list)
        self._require_no_nulls(lists, row, 0)
        # Those of missing lists are left out.
        entries = lists.flatten()
        if entries.null_count and not self.allow_missing:
            at = _first_null(entries)
            raise self.bad_value(row + at // self.n_columns, at % self.n_columns, None)
        numbers: Array = entries.to_numpy(zero_copy_only=False).reshape(-1, self.n_columns)
        if not lists.null_count:
            return numbers
        # The smallest type of floats that has all entries.
        rows = np.full((len(lists), self.n_columns), np.nan, np.result_type(numbers, np.float16))
        rows[lists.is_valid().to_numpy(zero_copy_only=False)] = numbers
        return rows

    def _column(self, batch: Any, column: int, row: int) -> Array:
        values, types = batch.column(self._name(column)), self._types
        if types.is_dictionary(values.type):
            if types.is_string_view(values.type.value_type):
                # Arrow cannot decode string views, the categories of polars.
                values = type(values).from_arrays(values.indices, values.dictionary.cast("large_string"))
            values = values.dictionary_decode()
        if column in self.optional and values.null_count:
            return self._with_missing(values)
        self._require_no_nulls(values, row, column)
        if types.is_decimal(values.type):
            values = values.cast("float64")
        elif _is_text(types, values.type):
            # NumPy cannot convert string views.
            values = values.cast("large_string")
        if _is_text(types, values.type) != _is_text(types, self._fields[self._name(column)]):
            raise self.error_at(row, column, "or later, strings are mixed with numbers: use one type")
        array: Array = values.to_numpy(zero_copy_only=False)
        return array.astype(str) if array.dtype.kind == "O" else array

    def _with_missing(self, values: Any) -> Array:
        """Return the values of a categorical column; missing ones are NaN or an empty string."""
        types = self._types
        if types.is_floating(values.type) or types.is_decimal(values.type):
            numbers: Array = values.cast("float64").to_numpy(zero_copy_only=False)
            return numbers
        if types.is_boolean(values.type):
            missing = values.is_null().to_numpy(zero_copy_only=False)
            return np.where(missing, "", values.fill_null(False).to_numpy(zero_copy_only=False).astype(str))
        text: Array = values.cast("large_string").fill_null("").to_numpy(zero_copy_only=False).astype(str)
        return text

    def _require_no_nulls(self, values: Any, row: int, column: int) -> None:
        if values.null_count and not (self.allow_missing and not _is_text(self._types, values.type)):
            raise self.bad_value(row + _first_null(values), column, None)

    def _names(self, features: Columns, targets: Columns) -> list[str]:
        """Return the names of columns; if there are none, of a single one to count rows by."""
        # Not computed for every list entry: there may be 100,000 entries, and as many batches.
        entries = [self._list] if self._list is not None and len(features) else []
        columns = [self._name(int(column)) for column in (*(() if entries else features), *targets)]
        return list(dict.fromkeys(entries + columns)) or [next(iter(self.others), None) or self._name(0)]

    def _name(self, column: int) -> str:
        if column >= self.n_columns:
            return self.others[column - self.n_columns]
        return self._list or (self.names or ())[column]

    def _dtype_of_column(self, number: int, *, text: bool) -> np.dtype[Any]:
        types, kind = self._types, self._type_of(number)
        column = f"Column {shortened(self._name(number))} of {self.where}"
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_decimal(kind):
            return np.dtype(np.float64)
        if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
            dtype: np.dtype[Any] = np.dtype(kind.to_pandas_dtype())
            return dtype
        if _is_text(types, kind):
            if text:
                return np.dtype(str)
            raise DataError(f"{column} holds text, not numbers: leave it out by columns= or exclude=.")
        if types.is_list(kind) or types.is_large_list(kind):
            raise DataError(f"{column} holds lists of variable size: write it as lists of a fixed size.")
        raise DataError(
            f"{column} holds values of type {beginning(str(kind))}, not numbers: leave it out by columns= or exclude=."
        )


def stream_reader(where: str, schema: Any, batches: Iterator[Any]) -> ArrowReader:
    """Return a reader of batches that can be read only once; the first one is read now, to identify the stream."""
    first = list(islice(batches, 1))
    left = chain(first, batches)
    reader = ArrowReader(where, schema, lambda *_: left, rereadable=False)
    for batch in first:
        reader.beginning = beginning_of(batch)
    return reader


def beginning_of(rows: Any) -> str:
    """Return a hash of the first rows of a batch or a table."""
    return sha256(repr(rows.slice(0, FIRST_ROWS).to_pydict()).encode()).hexdigest()[:16]


def _is_text(types: Any, kind: Any) -> bool:
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _first_null(values: Any) -> int:
    return int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
