"""Files that hold columns in groups of rows: Parquet, Arrow files and Feather.

A column of a group is compressed as one, so to read rows of all columns is to hold a piece of every column. With a
thousand columns and a million rows in a group, as most writers make them, that would be gigabytes. Such a group is
read a few columns at a time into a temporary file first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, import_optional, wrap_iteration, wrap_library_errors
from .._core.types import Array
from .reading import GrowingArray, NoRoomError, temporary_array
from .table import Piece
from .tables import ArrowTable, IpcStreamTable

# A page of a column with its dictionary, at most, unless a writer was told otherwise.
_PAGE_BYTES = 2 << 20
_NOTHING = np.empty(0, np.intp)


class GroupedTable(ArrowTable):
    """Groups of rows, each of them read a batch at a time."""

    _ends: list[int]
    """The row after the last one, for every group."""

    @abstractmethod
    def group(self, number: int, names: list[str], step: int) -> Iterator[Any]:
        """Yield record batches of some columns of a group."""

    @abstractmethod
    def held_bytes(self, number: int, name: str) -> int:
        """Return about how much memory a column of a group takes while its rows are read."""

    def batches(self, names: list[str], start: int, step: int) -> Iterator[tuple[int, Any]]:
        """Yield batches, beginning with those of the group that has the row."""
        for number, end in enumerate(self._ends):
            if end > start:
                yield from self._batches_of(number, names, step)

    def _batches_of(self, number: int, names: list[str], step: int) -> Iterator[tuple[int, Any]]:
        begin = self._begin(number)
        for batch in self.group(number, names, step):
            yield begin, batch
            begin += batch.num_rows
            del batch

    def whole_bytes(self, features: NDArray[np.intp], targets: NDArray[np.intp]) -> int:
        """Return what the columns of a group take, by the first one."""
        held = sum(self.held_bytes(0, name) for name in self._names(features, targets))
        return held + min(held, self._pieces_bytes)

    @property
    def _held_at_most(self) -> int:
        """What the columns of a group may take while its rows are read."""
        return self.room - self._pieces_bytes

    def _begin(self, number: int) -> int:
        return self._ends[number - 1] if number else 0

    def pieces(self, features: NDArray[np.intp], targets: NDArray[np.intp], start: int, step: int) -> Iterator[Piece]:
        """Yield rows, group by group."""
        step = self._step(features, step)
        names = self._names(features, targets)
        for number, end in enumerate(self._ends):
            if end <= start:
                continue
            held = sum(self.held_bytes(number, name) for name in names)
            if held > self._held_at_most and len(features) > 1 and self._list is None:
                with temporary_array() as turned, suppress(NoRoomError):
                    self._turn(turned, number, features, start, step)
                    yield from self._turned(turned.array(), number, features, targets, start, step)
                    continue
            yield from self._rows_of(number, features, targets, start, step)

    def _rows_of(
        self, number: int, features: NDArray[np.intp], targets: NDArray[np.intp], start: int, step: int
    ) -> Iterator[Piece]:
        """Yield rows of a group."""
        batches = self._batches_of(number, self._names(features, targets), step)
        return self._rows_of_batches(batches, features, targets, start, step)

    def _turn(self, turned: GrowingArray, number: int, features: NDArray[np.intp], start: int, step: int) -> None:
        """Write the features of a group to a file: all rows of the first few columns, all rows of the next few, ..."""
        dtype = self.dtype_of(features)
        for part in self._parts(number, features):
            for X, _ in self._rows_of(number, features[part], _NOTHING, start, step):
                turned.append(X.astype(dtype, copy=False).ravel())

    def _turned(
        self,
        turned: Array,
        number: int,
        features: NDArray[np.intp],
        targets: NDArray[np.intp],
        start: int,
        step: int,
    ) -> Iterator[Piece]:
        """Yield the rows of a group from that file."""
        n_rows = self._ends[number] - max(start, self._begin(number))
        parts = [
            turned[n_rows * part.start : n_rows * part.stop].reshape(n_rows, -1)
            for part in self._parts(number, features)
        ]
        row = 0
        for X, y in self._rows_of(number, _NOTHING, targets, start, step):
            yield np.concatenate([part[row : row + len(X)] for part in parts], axis=1), y
            row += len(X)

    def _parts(self, number: int, features: NDArray[np.intp]) -> Iterator[slice]:
        """Yield stretches of the features that can be read together."""
        first, held = 0, 0
        for at, column in enumerate(features):
            more = self.held_bytes(number, self._name(int(column)))
            if at > first and held + more > self._held_at_most:
                yield slice(first, at)
                first, held = at, 0
            held += more
        yield slice(first, len(features))


class ParquetTable(GroupedTable):
    """A Parquet file."""

    format: ClassVar[str] = "parquet"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = str(path)
        self._parquet = import_optional("pyarrow.parquet", f"Reading {path}")
        self._metadata: Any = None
        with wrap_library_errors(self.where), self._open() as file:
            schema, self._metadata = file.schema_arrow, file.metadata
            counts = [self._metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        super().__init__(str(path), schema)
        self._ends = np.cumsum(counts).tolist()
        self.n_rows = self._metadata.num_rows
        if not self.n_rows:
            raise DataError(f"{path} has no rows.")
        paths = [self._metadata.schema.column(position).path for position in range(self._metadata.num_columns)]
        # Entries of lists are named after what they are in, as in x.list.element.
        is_entry = [self._list is not None and path.startswith(f"{self._list}.") for path in paths]
        names = [self._list if entry else path for entry, path in zip(is_entry, paths, strict=True)]
        self._positions = {name: position for position, name in enumerate(names)}

    def held_bytes(self, number: int, name: str) -> int:
        """Return the size of a page with its dictionary, or that of the column if it is smaller."""
        position = self._positions.get(name)
        if position is None:
            return _PAGE_BYTES
        size: int = self._metadata.row_group(number).column(position).total_uncompressed_size
        return min(_PAGE_BYTES, size)

    def group(self, number: int, names: list[str], step: int) -> Iterator[Any]:
        """Yield the batches of a row group."""
        with wrap_library_errors(self.where):
            file = self._open()
        with file:
            yield from wrap_iteration(file.iter_batches(step, row_groups=[number], columns=names), self.where)

    def _open(self) -> Any:
        # Without pre_buffer=False all of a row group is read before the first of its rows. And what a file says of its
        # groups takes long to parse if there are many: once is enough.
        return self._parquet.ParquetFile(self.path, metadata=self._metadata, memory_map=True, pre_buffer=False)


class IpcFileTable(GroupedTable):
    """An Arrow file, which is what Feather is too."""

    format: ClassVar[str] = "arrow"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.where = str(path)
        self._pa = import_optional("pyarrow", f"Reading {path}")
        with wrap_library_errors(self.where), self._pa.memory_map(str(path)) as file:
            schema = self._pa.ipc.open_file(file).schema
        super().__init__(str(path), schema)
        # Lists are handed out as they are in the file.
        self.slow = self._list is None
        with wrap_library_errors(self.where), self._open(self._cheapest()) as reader:
            counts = [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]
        self._ends = np.cumsum(counts).tolist()
        self.n_rows = self._ends[-1] if counts else 0
        if not self.n_rows:
            raise DataError(f"{path} has no rows.")
        self._is_compressed = path.stat().st_size < self.n_rows * sum(map(_row_bytes, self._fields.values()))

    def held_bytes(self, number: int, name: str) -> int:
        """Return the size of a column that has to be decompressed; others are used as they are in the file."""
        n_rows = self._ends[number] - self._begin(number)
        return n_rows * _row_bytes(self._fields[name]) if self._is_compressed else 0

    def group(self, number: int, names: list[str], step: int) -> Iterator[Any]:
        """Yield a record batch."""
        with wrap_library_errors(self.where), self._open(names if self._is_compressed else None) as reader:
            batch = reader.get_batch(number)
        yield batch

    @contextmanager
    def _open(self, names: list[str] | None) -> Iterator[Any]:
        """Open the file for some columns, which are copied from it, or for all, which are mapped."""
        positions = {name: position for position, name in enumerate(self._fields)}
        chosen = None if names is None else [positions[name] for name in names]
        with self._pa.memory_map(str(self.path)) as file:
            yield self._pa.ipc.open_file(file, options=self._pa.ipc.IpcReadOptions(included_fields=chosen))


def _row_bytes(kind: Any) -> int:
    """Return how many bytes a value takes; 0 if that is not known, or less than one."""
    try:
        return int(kind.bit_width) // 8
    except ValueError:
        return 0


def open_arrow(path: Path) -> ArrowTable:
    """Open an Arrow file in either of its two forms."""
    with path.open("rb") as file:
        is_file = file.read(6) == b"ARROW1"
    return IpcFileTable(path) if is_file else IpcStreamTable(path, str(path))
