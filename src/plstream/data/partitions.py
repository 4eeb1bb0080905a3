"""Folders partitioned as in Hive: names of folders such as ``year=2024`` are values of a column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np

from .._core.errors import DataError
from .._core.remote import AnyPath
from .._core.types import Array
from .reader import Columns, Pieces, Reader
from .where import Where

_PARTITION = re.compile(r"([^=/]+)=(.*)")


def partition_of(folder: Any, file: Any) -> dict[str, str]:
    """Return the values that the folders between say of all rows of a file."""
    found = (_PARTITION.fullmatch(part) for part in file.relative_to(folder).parts[:-1])
    return {match[1]: unquote(match[2]) for match in found if match is not None}


def is_partition(folder: AnyPath) -> bool:
    """Return whether the name of a folder is that of a column and a value."""
    return _PARTITION.fullmatch(folder.name) is not None


def typed_values(partitions: Sequence[dict[str, str]], where: str) -> list[dict[str, Array]]:
    """Return the values of all files by column: integers or other numbers if all are, else text."""
    names = list(partitions[0])
    for partition in partitions:
        if list(partition) != names:
            raise DataError(f"The folders in {where} do not all name the same columns: {list(partition)} and {names}.")
    found: list[dict[str, Array]] = [{} for _ in partitions]
    for name in names:
        texts = [partition[name] for partition in partitions]
        values: Array = np.array(texts)
        for kind in (np.int64, np.float64):
            try:
                values = np.array([kind(text) for text in texts])
            except ValueError:
                continue
            break
        for columns, value in zip(found, values, strict=True):
            columns[name] = np.array([value])
    return found


def may_hold(where: Where | None, values: dict[str, Array]) -> bool:
    """Return whether a file with these values can have rows that are used."""
    return where is None or where.holds(values)


class PartitionReader(Reader):
    """A file with further columns, whose values are the same in all rows."""

    def __init__(self, reader: Reader, values: dict[str, Array]) -> None:
        new = {name: value for name, value in values.items() if name not in (reader.names or ())}
        super().__init__(reader.where, reader.n_columns + len(new))
        self.reader, self._values = reader, list(new.values())
        self.names = None if reader.names is None else (*reader.names, *new)
        self.n_rows, self.slow, self.rereadable = reader.n_rows, reader.slow, reader.rereadable
        self.index_columns = reader.index_columns

    @property
    def identity(self) -> tuple[Any, ...]:
        """That of the file, and the values."""
        return *self.reader.identity, [value.tolist() for value in self._values]

    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype of columns of the file and of others."""
        self.each_suitable(columns[columns >= self.reader.n_columns], lambda column: self._dtype(column, text=text))
        inner = columns[columns < self.reader.n_columns]
        found = [self._dtype(int(column), text=text) for column in columns[columns >= self.reader.n_columns]]
        return np.result_type(*found, *([self.reader.dtype_of(inner, text=text)] if len(inner) else []))

    def _dtype(self, column: int, *, text: bool) -> np.dtype[Any]:
        dtype = self._values[column - self.reader.n_columns].dtype
        if dtype.kind == "U" and not text:
            raise DataError(f"Column {self.column_name(column)} of {self.where} holds text, not numbers.")
        return np.dtype(str) if dtype.kind == "U" else dtype

    def kind_of(self, column: int) -> str:
        """Return what a column holds."""
        return self.reader.kind_of(column) if column < self.reader.n_columns else super().kind_of(column)

    def whole_bytes(self, features: Columns, targets: Columns) -> int:
        """Return that of the file."""
        n = self.reader.n_columns
        return self.reader.whole_bytes(features[features < n], targets[targets < n])

    def count(self) -> int:
        """Return that of the file."""
        self.n_rows = self.reader.count()
        return self.n_rows

    def pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield rows of the file with the values beside them."""
        n = self.reader.n_columns
        self.reader.read_like(self)
        dtype = self.dtype_of(features) if len(features) else None
        for X, columns in self.reader.read(features[features < n], others[others < n], start, step):
            found = iter(columns)
            beside = [next(found) if column < n else self._column(column, len(X)) for column in others]
            yield self._rows(X, features, dtype), beside

    # The file itself is checked by its own reader.
    read = pieces

    def require_unchanged(self) -> None:
        """Raise DataError unless the file is the same."""
        self.reader.require_unchanged()

    def _column(self, column: int, n_rows: int) -> Array:
        return np.repeat(self._values[column - self.reader.n_columns], n_rows)

    def _rows(self, X: Array, features: Columns, dtype: np.dtype[Any] | None) -> Array:
        if dtype is None or (features < self.reader.n_columns).all():
            return X
        rows = np.empty((len(X), len(features)), dtype)
        inner = features < self.reader.n_columns
        rows[:, inner] = X
        for place in np.flatnonzero(~inner):
            rows[:, place] = self._values[features[place] - self.reader.n_columns][0]
        return rows
