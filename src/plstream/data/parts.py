"""Several files as one table, with the columns that names of folders add, as in Hive: ``year=2024/part.parquet``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote

import numpy as np

from .._core.errors import DataError, counted
from .._core.remote import AnyPath
from .._core.types import Array
from .columns import listed
from .reader import Columns, Pieces, Reader

_PARTITION = re.compile(r"([^=/]+)=(.*)")


def is_partition(folder: AnyPath) -> bool:
    """Return whether the name of a folder consists of a column and a value."""
    return _PARTITION.fullmatch(folder.name) is not None


def partition_values(folder: Any, files: Sequence[Any]) -> list[dict[str, Array]]:
    """Return the columns that the folders of each file add: integers or floats if all values are, else text."""
    parts = [map(_PARTITION.fullmatch, file.relative_to(folder).parts[:-1]) for file in files]
    partitions = [{match[1]: unquote(match[2]) for match in matches if match is not None} for matches in parts]
    names = list(partitions[0])
    for partition in partitions:
        if list(partition) != names:
            raise DataError(f"The folders in {folder} name different columns: {list(partition)} and {names}.")
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


class ConcatenatedReader(Reader):
    """Files with the same columns, one after another. All are opened beforehand, so that a bad one is found early.

    ``constants`` are additional columns of each file, with a single value for all its rows.
    """

    def __init__(self, where: str, readers: Sequence[Reader], constants: Sequence[Mapping[str, Array]] = ()) -> None:
        first = readers[0]
        # Columns that the files contain as well are read from them.
        added = [name for name in (constants[0] if constants else ()) if name not in (first.names or ())]
        super().__init__(where, first.n_columns + len(added))
        self.readers, self._n_stored = readers, first.n_columns
        self._constants = [[values[name] for name in added] for values in constants or [{}] * len(readers)]
        self.names = None if first.names is None else (*first.names, *added)
        self.others = () if added else first.others
        for reader in readers[1:]:
            self._require_alike(reader)
        if all(np.array_equal(reader.index_columns, first.index_columns) for reader in readers):
            self.index_columns = first.index_columns
        self.slow = any(reader.slow for reader in readers)
        counts = [reader.n_rows for reader in readers]
        self.n_rows = None if None in counts else sum(count for count in counts if count is not None)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Identities of all files, with their constants."""
        constants = [([value.tolist() for value in values],) if values else () for values in self._constants]
        return tuple((*reader.identity, *more) for reader, more in zip(self.readers, constants, strict=True))

    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return a dtype for the values of all files, which must be all numbers or all strings."""
        is_stored = columns < self._n_stored
        stored = columns[is_stored]
        dtypes = [reader.dtype_of(stored, text=text) for reader in self.readers] if is_stored.any() else []
        for reader, dtype in zip(self.readers, dtypes, strict=False):
            if (dtype.kind in "SU") != (dtypes[0].kind in "SU"):
                raise DataError(
                    f"Column {self.column_name(int(stored[0]))} holds numbers in one of {self.readers[0].where} and "
                    f"{reader.where}, and text in the other."
                )
        dtypes += self.check_each(columns[~is_stored], partial(self._dtype_of_constant, text=text))
        return np.result_type(*dtypes)

    def _dtype_of_constant(self, column: int, *, text: bool) -> np.dtype[Any]:
        dtype = self._constants[0][column - self._n_stored].dtype
        if dtype.kind == "U" and not text:
            raise DataError(f"Column {self.column_name(column)} of {self.where} holds text, not numbers.")
        return np.dtype(str) if dtype.kind == "U" else dtype

    def kind_of(self, column: int) -> str:
        """Describe the values of a column by the first file."""
        return self.readers[0].kind_of(column) if column < self._n_stored else super().kind_of(column)

    def whole_bytes(self, features: Columns, targets: Columns) -> int:
        """Return the largest size of all files."""
        features, targets = features[features < self._n_stored], targets[targets < self._n_stored]
        return max(reader.whole_bytes(features, targets) for reader in self.readers)

    def count(self) -> int:
        """Return the total number of rows."""
        self.n_rows = sum(reader.count() for reader in self.readers)
        return self.n_rows

    def pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield the rows of one file after another."""
        n, dtype = self._n_stored, self.dtype_of(features) if len(features) else None
        for reader, constants in zip(self.readers, self._constants, strict=True):
            skipped = min(start, reader.count()) if start else 0
            start -= skipped
            if skipped and skipped == reader.n_rows:
                continue
            reader.room, reader.allow_missing, reader.optional = self.room, self.allow_missing, self.optional
            for X, columns in reader.read(features[features < n], others[others < n], skipped, step):
                if constants:
                    stored = iter(columns)
                    columns = [next(stored) if j < n else np.repeat(constants[j - n], len(X)) for j in others]  # noqa: PLW2901
                    X = _with_constants(X, features, n, constants, dtype)  # noqa: PLW2901
                yield X if dtype is None else X.astype(dtype, copy=False), columns
                del X, columns

    # Readers of the files check their own rows, and whether their file has changed.
    read = pieces

    def require_unchanged(self) -> None:
        """Raise DataError if a file has changed."""
        for reader in self.readers:
            reader.require_unchanged()

    def _require_alike(self, reader: Reader) -> None:
        first = self.readers[0]
        mine, theirs = (first.names or ()) + first.others, (reader.names or ()) + reader.others
        if mine != theirs:
            missing, more = [name for name in mine if name not in theirs], [name for name in theirs if name not in mine]
            if missing or more:
                difference = f"has no {listed(missing)}" if missing else f"has the additional {listed(more)}"
            else:
                difference = "has its columns in another order"
            raise DataError(f"{reader.where} does not match {first.where}: it {difference}.")
        if reader.n_columns != first.n_columns:
            raise DataError(
                f"{reader.where} has {counted(reader.n_columns, 'column')}, but {first.where} has {first.n_columns}."
            )


def _with_constants(X: Array, features: Columns, n_stored: int, constants: Sequence[Array], dtype: Any) -> Array:
    """Return the features in order, with the constants inserted."""
    is_stored = features < n_stored
    if is_stored.all():
        return X
    rows = np.empty((len(X), len(features)), dtype)
    rows[:, is_stored] = X
    rows[:, ~is_stored] = np.concatenate([constants[column - n_stored] for column in features[~is_stored]])
    return rows
