"""A source: rows of any size from anywhere, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError
from .._core.tiles import default_rows
from .._core.types import Array
from .._core.urls import redacted
from .columns import listed
from .reading import read_ahead, regrouped
from .table import Mapped, Piece, Table, pick

DEFAULT_MEMORY = 256 << 20
# A block that is being made, one that waits, five that threads are working on; and as much as a block to read from.
_BLOCKS_UNDER_WAY = 8
# Reading may take more than a block does, if rows can be read only together; up to this share of memory.
_LARGEST_SHARE_OF_READING = 0.25
# With less, reading is slow: so much it may take at any rate.
_LEAST_ROOM = 4 << 20


class Source:
    """Rows of data in blocks, from any row on. Made by :func:`plstream.open_source`.

    Attributes
    ----------
    n_rows : int or None
        Number of rows; None if it is not known before all are read.
    n_columns : int
        Number of features.
    feature_names : list of str, or None
        Names of the features.
    target_names : list of str, or None
        Names of the targets.
    n_targets : int
        Number of targets, 0 if there are none.
    dtype : numpy.dtype
        Type of the features.
    rereadable : bool
        Whether the rows can be read more than once.
    slow : bool
        Whether to read the rows once more takes much longer than to read as much from a plain file of numbers.
    block_rows : int
        Rows in a block.
    first_row : int
        The number of the first row in its file, for messages.
    reopen : callable or None
        Opens the same files again, also in another process; None for what is not in files.
    """

    def __init__(
        self,
        table: Table,
        features: NDArray[np.intp],
        targets: NDArray[np.intp],
        *,
        target_table: Table | None = None,
        is_vector: bool = True,
        memory: int = DEFAULT_MEMORY,
        batch_size: int | None = None,
    ) -> None:
        self._table, self._features, self._targets = table, features, targets
        self._target_table = target_table
        self.target_is_vector = is_vector
        self.batch_size = batch_size
        self.first_row = 0
        self.reopen: Callable[[], Source] | None = None
        self.n_columns = len(features)
        self.n_targets = len(targets)
        self.dtype = table.dtype_of(features)
        self.memory = memory
        self.block_rows = batch_size or self._default_rows()
        self._used = False

    def limit(self, memory: int) -> None:
        """Let reading, and blocks under way, take no more bytes than this together."""
        self.memory = min(self.memory, memory)
        self.block_rows = min(self.block_rows, self._default_rows())

    def limit_rows(self, n_rows: int) -> None:
        """Let blocks be of no more rows than this."""
        self.block_rows = min(self.block_rows, n_rows)

    @property
    def bytes_under_way(self) -> int:
        """Bytes that the blocks under way take together, at most."""
        return _BLOCKS_UNDER_WAY * self.block_rows * self._row_bytes

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of rows that it holds itself."""
        return 0

    def _default_rows(self) -> int:
        row_bytes, share = self._row_bytes, self.memory // _BLOCKS_UNDER_WAY
        reading = int(min(self._whole_bytes(), _LARGEST_SHARE_OF_READING * self.memory))
        share = min(share, (self.memory - reading) // (_BLOCKS_UNDER_WAY - 1))
        return max(1, min(default_rows(self.n_rows, row_bytes), share // row_bytes))

    def _whole_bytes(self) -> int:
        """Return what it takes to read rows without reading anything twice."""
        nothing = np.empty(0, np.intp)
        if self._target_table is None:
            return self._table.whole_bytes(self._features, self._targets)
        both = self._table.whole_bytes(self._features, nothing), self._target_table.whole_bytes(nothing, self._targets)
        return 2 * max(both)

    @property
    def _room(self) -> int:
        """Bytes that reading may take, in each table: what blocks leave of memory."""
        blocks = (_BLOCKS_UNDER_WAY - 1) * self.block_rows * self._row_bytes
        room = max(self.memory - blocks, self.memory // _BLOCKS_UNDER_WAY, _LEAST_ROOM)
        return room // len(self._tables)

    @property
    def _row_bytes(self) -> int:
        return self.n_columns * self.dtype.itemsize + 8 * self.n_targets

    @property
    def n_rows(self) -> int | None:
        """Number of rows, if it is known."""
        known = [table.n_rows for table in self._tables if table.n_rows is not None]
        return known[0] if known else None

    @property
    def bytes_at_most(self) -> int | None:
        """Bytes that all features take as float64, at most, if that is known before they are read."""
        return self._table.bytes_at_most

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features."""
        names = self._table.names
        return None if names is None else [names[column] for column in self._features]

    @property
    def target_names(self) -> list[str] | None:
        """Names of the targets."""
        table = self._target_table or self._table
        names = [table.name_of(int(column)) for column in self._targets]
        return [name for name in names if name is not None] or None

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read more than once."""
        return all(table.rereadable for table in self._tables)

    @property
    def slow(self) -> bool:
        """Whether it pays to copy the rows to a plain file before they are read several times."""
        return any(table.slow for table in self._tables)

    @property
    def name(self) -> str:
        """What messages call it."""
        return redacted(self._table.where)

    def blocks(self, start: int = 0) -> Iterator[Piece]:
        """Yield the rows in blocks, from any row on.

        Blocks end where they would end if all rows were read. The next one is read by a thread of its own while the
        present one is worked on.

        Parameters
        ----------
        start : int, default=0
            The first row.

        Yields
        ------
        X : ndarray of shape (n, n_columns)
            Features.
        y : ndarray of shape (n,) or (n, n_targets), or None
            Labels or numbers.
        """
        if start < 0:
            raise ValueError(f"start={start} must be zero or more.")
        if not self.rereadable:
            if self._used:
                raise DataError(f"{self.name} can be read only once.")
            self._used = True
        if self._is_mapped():
            return self._read(start)
        return read_ahead(lambda: self._read(start))

    def count(self) -> int:
        """Return the number of rows, reading them all if that is not known."""
        return self._table.count() if self._table.n_rows is None else self._table.n_rows

    def labels(self) -> Array:
        """Return the values of the target that there are, in ascending order, from a read of the target alone."""
        return self.label_counts()[0]

    def label_counts(self) -> tuple[Array, NDArray[np.int64]]:
        """Return the values of the target, in ascending order, and how often they are there."""
        found: Array | None = None
        counts = np.empty(0, np.int64)
        for y in self._target_pieces():
            values, n = np.unique(y, return_counts=True)
            both = values if found is None else np.concatenate([found, values])
            found, where = np.unique(both, return_inverse=True)
            counts = np.bincount(where, np.concatenate([counts, n])).astype(np.int64)
        assert found is not None
        return found, counts

    def mapped(self) -> tuple[Array, Array | None] | None:
        """Return all of X and y as arrays, if rows of theirs are read only when they are used, else None."""
        if not self._is_mapped():
            return None
        X = self._table.mapped()
        Y = X if self._target_table is None else self._target_table.mapped()
        if X is None or Y is None:
            return None
        return pick(X, self._features), self._as_shaped(pick(Y, self._targets, as_target=True))

    def part(self, piece: Piece, first_row: int) -> Source:
        """Return a source of one block of this one, for work that goes from block to block."""
        return _Part(self, piece, first_row)

    def between(self, start: int, stop: int) -> Source:
        """Return a source of the rows from one to before another, which opens the files anew where it is unpickled.

        Parameters
        ----------
        start, stop : int
            Numbers of rows. To read from a row on is quickest where a block begins, at a multiple of ``block_rows``.

        Returns
        -------
        source : Source
        """
        if not self.rereadable:
            raise DataError(f"{self.name} can be read only once, from its first row on.")
        return _Range(self, start, min(stop, self.count()))

    def fingerprint(self) -> str:
        """Return a short text that changes with the files, their columns or the choice of these."""
        # Not the number of rows, which may become known in between.
        parts = [(table.format, table.identity, table.n_columns, table.names, table.others) for table in self._tables]
        chosen = self._features.tolist(), self._targets.tolist(), self.target_is_vector
        return sha256(repr((parts, chosen, str(self.dtype), self.block_rows)).encode()).hexdigest()[:16]

    def beginning(self) -> str | None:
        """Return a short text that changes with the first rows, of what can be read only once, else None."""
        return None if self.rereadable else next((t.beginning for t in self._tables if not t.rereadable), None)

    def require_finite(self) -> None:
        """Read all rows, and raise DataError for the first number that is not finite."""
        for _ in self._read(0):
            pass

    def _target_pieces(self, start: int = 0) -> Iterator[Array]:
        """Read the target alone."""
        table, nothing = self._target_table or self._table, np.empty(0, np.intp)
        table.room = self._room
        for _, y in table.read(nothing, self._targets, start, 1 << 16):
            assert y is not None
            yield y

    def _is_mapped(self) -> bool:
        return all(table.mapped() is not None for table in self._tables) and _are_neighbours(self._features)

    @property
    def _tables(self) -> list[Table]:
        return [self._table] if self._target_table is None else [self._table, self._target_table]

    def _read(self, start: int) -> Iterator[Piece]:
        if self._target_table is None:
            yield from self._table_blocks(self._table, self._features, self._targets, start)
            return
        nothing = np.empty(0, np.intp)
        rows = self._table_blocks(self._table, self._features, nothing, start)
        targets = self._table_blocks(self._target_table, nothing, self._targets, start)
        for X, _ in rows:
            _, y = next(targets, (None, None))
            if y is None or len(y) != len(X):
                raise self._length_error()
            yield X, y
        if next(targets, None) is not None:
            raise self._length_error()

    def _table_blocks(
        self, table: Table, features: NDArray[np.intp], targets: NDArray[np.intp], start: int
    ) -> Iterator[Piece]:
        table.room = self._room
        blocks = table.read(features, targets, start, self.block_rows)
        if not isinstance(table, Mapped):
            # With targets in another table blocks have to end at the same rows.
            live = not self.rereadable and self._target_table is None
            blocks = regrouped(blocks, start, self.block_rows, live=live)
        for X, y in blocks:
            yield X, self._as_shaped(y)
            del X, y

    def _as_shaped(self, y: Array | None) -> Array | None:
        return y if y is None or self.target_is_vector or y.ndim == 2 else y.reshape(-1, 1)

    def _length_error(self) -> DataError:
        assert self._target_table is not None
        return DataError(f"{self._target_table.where} has not as many rows as {self._table.where}.")

    def __repr__(self) -> str:
        rows = "unknown" if self.n_rows is None else f"{self.n_rows:,}"
        text = f"<Source {self.name}: {rows} rows, {self.n_columns:,} features of {self.dtype}"
        if self.n_targets:
            names = self.target_names
            text += f", target {listed(names)}" if names else f", {self.n_targets} target(s)"
        return text + ">"


class _Part(Source):
    """One block of a source, with all else that is known of the whole."""

    def __init__(self, source: Source, piece: Piece, first_row: int) -> None:
        vars(self).update(vars(source))
        self._whole = source
        self._piece = piece
        self.first_row = first_row

    @property
    def n_rows(self) -> int:
        """Rows of the block."""
        return len(self._piece[0])

    def blocks(self, start: int = 0) -> Iterator[Piece]:
        """Yield the block."""
        yield self._piece

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of the block."""
        return sum(0 if part is None else part.nbytes for part in self._piece)

    def count(self) -> int:
        """Return the rows of the block."""
        return self.n_rows

    def label_counts(self) -> tuple[Array, NDArray[np.int64]]:
        """Return the labels of the whole: a model that begins with a block has to know all that will come."""
        return self._whole.label_counts()

    def mapped(self) -> None:
        """Return nothing: the block is in memory."""

    def __reduce__(self) -> tuple[Any, ...]:
        # It is read again where it is needed.
        return _range_elsewhere(self, self.first_row, self.first_row + self.n_rows)


class _Range(Source):
    """Some rows of a source, with all else that is known of the whole."""

    def __init__(self, source: Source, start: int, stop: int) -> None:
        if not 0 <= start < stop:
            raise ValueError(f"There are no rows from {start} to {stop} in {source.name}.")
        vars(self).update(vars(source))
        self._whole, self._start, self._stop = source, start, stop
        self.first_row = source.first_row + start

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._stop - self._start

    def count(self) -> int:
        """Return the number of rows."""
        return self.n_rows

    def between(self, start: int, stop: int) -> Source:
        """Return a source of some of the rows."""
        return self._whole.between(self._start + start, min(self._start + stop, self._stop))

    def mapped(self) -> tuple[Array, Array | None] | None:
        """Return these rows of arrays that are read when they are used."""
        arrays = self._whole.mapped()
        if arrays is None:
            return None
        X, y = arrays
        rows = slice(self._start, self._stop)
        return X[rows], None if y is None else y[rows]

    def fingerprint(self) -> str:
        """Return a short text that changes with the files or the choice of rows."""
        return f"{self._whole.fingerprint()}-{self._start}-{self._stop}"

    def _read(self, start: int) -> Iterator[Piece]:
        left = self._stop - self._start - start
        # Blocks end where those of the whole do.
        for X, y in self._whole._read(self._start + start):
            yield X[:left], None if y is None else y[:left]
            left -= len(X)
            if left <= 0:
                return

    def _target_pieces(self, start: int = 0) -> Iterator[Array]:
        left = self.n_rows - start
        for y in self._whole._target_pieces(self._start + start):
            yield y[:left]
            left -= len(y)
            if left <= 0:
                return

    def __reduce__(self) -> tuple[Any, ...]:
        return _range_elsewhere(self, self._start, self._stop)


def _range_elsewhere(source: Source, start: int, stop: int) -> tuple[Any, ...]:
    """Return what it takes to have some rows of the same files in another process."""
    if source.reopen is None:
        raise DataError(f"{source.name} is not a file, which another process could open.")
    return _reopened, (source.reopen, source.memory, source.block_rows, Source.fingerprint(source), start, stop)


def _reopened(
    reopen: Callable[[], Source], memory: int, block_rows: int, fingerprint: str, start: int, stop: int
) -> Source:
    source = reopen()
    source.memory, source.block_rows = memory, block_rows
    if source.fingerprint() != fingerprint:
        raise DataError(f"{source.name} is not the same file here as where it was opened first, or has changed since.")
    return _Range(source, start, stop)


def _are_neighbours(columns: NDArray[np.intp]) -> bool:
    return bool((np.diff(columns) == 1).all())
