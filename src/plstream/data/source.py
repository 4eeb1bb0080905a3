"""A source: rows of any size from anywhere, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

import numpy as np

from .._core.errors import DataError, beginning, counted, first_not_finite, usable_dtype
from .._core.tiles import default_rows
from .._core.types import Array
from .._core.urls import redacted
from .columns import listed
from .preparation import Preparation
from .reader import NO_COLUMNS, XY, Columns, Reader, are_adjacent, pick
from .reading import Parts, cut_rows, first_two, read_ahead, regrouped, skip_rows

LabelCounts: TypeAlias = tuple[Array, Array]
"""Distinct labels in ascending order, and the number, or weight, of rows of each."""

DEFAULT_MEMORY = 256 << 20
# One block being assembled, one waiting, five that threads work on; and buffers of the size of a block.
_BLOCKS_UNDER_WAY = 8
# Buffers may take more than a block if rows can only be read together, up to this share of memory.
_LARGEST_SHARE_OF_READING = 0.25
# Buffers may always take this much: with less, reading is slow.
_LEAST_ROOM = 4 << 20


class _Treatment(NamedTuple):
    """A function of the rows of a block, with the columns of its results."""

    function: Callable[[Array], Array]
    n_columns: int
    dtype: np.dtype[Any]
    names: Sequence[str] | None


class Source:
    """Rows of data in blocks, from any row on. Returned by :func:`plstream.open_source`.

    Attributes
    ----------
    n_rows : int or None
        Number of rows; None if unknown until all have been read.
    n_columns : int
        Number of features.
    feature_names : list of str, or None
        Names of the features.
    target_names : list of str, or None
        Names of the targets.
    n_targets : int
        Number of targets, 0 if there are none.
    dtype : numpy.dtype
        Dtype of the features.
    rereadable : bool
        Whether the rows can be read more than once.
    slow : bool
        Whether reading is much slower than reading a binary file of numbers.
    block_rows : int
        Number of rows per block.
    first_row : int
        Number of the first row in its file, for messages.
    reopen : callable or None
        Opens the same files again, also in another process; None if the data is not in files.
    """

    def __init__(
        self,
        reader: Reader,
        preparation: Preparation,
        targets: Columns,
        *,
        target_reader: Reader | None = None,
        is_vector: bool = True,
        memory: int = DEFAULT_MEMORY,
        batch_size: int | None = None,
    ) -> None:
        self._reader, self._preparation, self._targets = reader, preparation, targets
        self._target_reader = target_reader
        # Number of rows that a condition selects, once they have been counted.
        self._n_chosen: int | None = None
        self.target_is_vector = is_vector
        self.batch_size = batch_size
        self.reopen: Callable[[], Source] | None = None
        self.n_columns = preparation.n_features
        self.n_targets = len(targets)
        self.dtype = preparation.dtype(reader)
        self.memory = memory
        # Whether missing numbers are read as NaN: set by the model that reads them.
        self.allow_missing = False
        self._used = False
        # For a range of rows of another source: the row after the last one, the rows if they are in memory, and that
        # source.
        self.first_row = 0
        self._stop: int | None = None
        self._held: Parts | None = None
        self._whole: Source | None = None
        self._treatment: _Treatment | None = None
        self.block_rows = batch_size or self._default_rows()

    def limit(self, memory: int) -> None:
        """Limit the memory of buffers and blocks together, in bytes."""
        self.memory = min(self.memory, memory)
        self.block_rows = min(self.block_rows, self._default_rows())

    def limit_rows(self, n_rows: int) -> None:
        """Limit the number of rows per block."""
        self.block_rows = min(self.block_rows, n_rows)

    @property
    def bytes_under_way(self) -> int:
        """Maximum memory of blocks that are in use at the same time, in bytes."""
        return _BLOCKS_UNDER_WAY * self.block_rows * self._row_bytes

    def _default_rows(self) -> int:
        row_bytes, share = self._row_bytes, self.memory // _BLOCKS_UNDER_WAY
        reading = int(min(self._whole_bytes(), _LARGEST_SHARE_OF_READING * self.memory))
        share = min(share, (self.memory - reading) // (_BLOCKS_UNDER_WAY - 1))
        return max(1, min(default_rows(self.n_rows, row_bytes), share // row_bytes))

    def _whole_bytes(self) -> int:
        """Return the size of buffers with which nothing has to be read twice."""
        if self._target_reader is None:
            return self._reader.whole_bytes(self._preparation.numbers, self._preparation.others)
        features = self._reader.whole_bytes(self._preparation.numbers, NO_COLUMNS)
        return 2 * max(features, self._target_reader.whole_bytes(NO_COLUMNS, self._targets))

    @property
    def _room(self) -> int:
        """Memory for the buffers of each reader: the rest besides the blocks."""
        blocks = (_BLOCKS_UNDER_WAY - 1) * self.block_rows * self._row_bytes
        room = max(self.memory - blocks, self.memory // _BLOCKS_UNDER_WAY, _LEAST_ROOM)
        return room // len(self._readers)

    @property
    def _row_bytes(self) -> int:
        return self.n_columns * self.dtype.itemsize + 8 * self.n_targets

    @property
    def n_rows(self) -> int | None:
        """Number of rows, if known."""
        if self._stop is not None:
            return self._stop - self.first_row
        if self._preparation.where is not None:
            return self._n_chosen
        return next((reader.n_rows for reader in self._readers if reader.n_rows is not None), None)

    @property
    def bytes_at_most(self) -> int | None:
        """Upper bound of the size of all features as float64, if known before reading."""
        return self._reader.bytes_at_most

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features."""
        if self._treatment is None:
            return self._preparation.names(self._reader)
        return None if self._treatment.names is None else list(self._treatment.names)

    @property
    def target_names(self) -> list[str] | None:
        """Names of the targets."""
        reader = self._target_reader or self._reader
        names = [reader.name_of(int(column)) for column in self._targets]
        return [name for name in names if name is not None] or None

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles of columns other than features and targets, such as "weight", in the order of :meth:`records`."""
        return tuple(self._preparation.roles)

    @property
    def unseen_levels(self) -> dict[str, int]:
        """Number of rows in the last read with an unknown category, by column: all features of the column are zero."""
        return dict(self._preparation.unseen)

    @property
    def rereadable(self) -> bool:
        """Whether the rows can be read more than once."""
        return all(reader.rereadable for reader in self._readers)

    @property
    def slow(self) -> bool:
        """Whether copying the rows to a binary file pays off if they are read several times."""
        return self._treatment is not None or any(reader.slow for reader in self._readers)

    @property
    def name(self) -> str:
        """Its name in messages."""
        return redacted(self._reader.where)

    def no_rows(self) -> DataError:
        """Return the error for a source without rows."""
        where = self._preparation.where
        if where is None:
            return DataError(f"{self.name} has no rows.")
        return DataError(f"{self.name} has no rows with where={beginning(where.text)!r}: change the condition.")

    def blocks(self, start: int = 0) -> Iterator[XY]:
        """Yield the rows in blocks, from any row on.

        Blocks end at the same rows whatever the start. The next one is read by a separate thread while the current one
        is in use.

        Parameters
        ----------
        start : int, default=0
            The first row.

        Yields
        ------
        X : ndarray of shape (n, n_columns)
            Features.
        y : ndarray of shape (n,) or (n, n_targets), or None
            Labels or values.
        """
        records = self.records(start)
        return records if not self.roles else first_two(records)

    def records(self, start: int = 0) -> Iterator[Parts]:
        """Yield X, y and the columns with a role, in blocks, as :meth:`blocks` does."""
        if start < 0:
            raise ValueError(f"start={start} must be zero or more.")
        if self._held is not None:
            return self._read(start)
        if not self.rereadable:
            if self._used:
                raise DataError(f"{self.name} can be read only once: open it again, or copy it to a file.")
            self._used = True
        if self._is_mapped():
            return self._read(start)
        return read_ahead(lambda: self._read(start))

    def count(self) -> int:
        """Return the number of rows, reading all of them if it is unknown."""
        if self._stop is not None:
            return self._stop - self.first_row
        where = self._preparation.where
        if where is None:
            return self._reader.count()
        if self._n_chosen is None:
            rows = self._read_columns(self._reader, np.array([*where.columns.values()], np.intp))
            self._n_chosen = sum(len(X) for X, *_ in rows)
        return self._n_chosen

    def n_weighted(self) -> int:
        """Return the number of rows with a nonzero weight, reading only the weights."""
        return sum(int(np.count_nonzero(weight)) for weight in self.column("weight"))

    def column(self, role: str) -> Iterator[Array]:
        """Yield a column with a role, such as "groups", some rows at a time, reading only that column."""
        if self._held is not None:
            yield self._held[2 + self.roles.index(role)]
            return
        if not self.rereadable:
            raise DataError(f"{self.name} can be read only once, but its {role} must be read first: copy it to a file.")
        number = np.array([self._preparation.roles[role]], np.intp)
        for _, values, *_ in self._up_to_stop(self._read_columns(self._reader, number), 0):
            yield values

    def _read_columns(self, reader: Reader, columns: Columns) -> Iterator[Parts]:
        """Yield only these columns, as y of all rows that are selected."""
        preparation = Preparation(NO_COLUMNS, columns, where=self._preparation.where)
        return self._pieces_of(reader, preparation, self.first_row, 1 << 16)

    def labels(self) -> Array:
        """Return the distinct values of the target in ascending order, reading only the target."""
        return self.label_counts()[0]

    def label_counts(self, *, weighted: bool = False) -> LabelCounts:
        """Return the distinct values of the target in ascending order, and the number, or weight, of rows of each.

        A block in memory returns the labels of the whole source, because a model that starts with a block must know all
        of them.
        """
        if self._whole is not None:
            return self._whole.label_counts(weighted=weighted)
        found: LabelCounts | None = None
        weighted = weighted and "weight" in self.roles
        if weighted:
            # The weights may be in another file than the labels.
            rows = self._read(0)
        else:
            reader = self._target_reader or self._reader
            rows = self._up_to_stop(self._read_columns(reader, self._targets), 0)
        for _, y, *others in rows:
            if y is None or not len(y):
                continue
            weight = others[self.roles.index("weight")] if weighted else None
            counted = count_labels(y, weight)
            found = counted if found is None else merge_label_counts(found, counted)
        if found is None:
            raise self.no_rows()
        return found

    def mapped(self) -> tuple[Array, Array | None] | None:
        """Return all of X and y as arrays that are read lazily, or None if there are none."""
        if self._held is not None or not self._is_mapped():
            return None
        X = self._reader.mapped()
        Y = X if self._target_reader is None else self._target_reader.mapped()
        if X is None or Y is None:
            return None
        rows = slice(self.first_row, self._stop)
        targets = pick(Y[rows], self._targets)
        targets = targets[:, 0] if len(self._targets) == 1 else targets
        return pick(X[rows], self._preparation.numbers), self._as_shaped(targets)

    def part(self, block: Parts, first_row: int) -> Source:
        """Return a source of one block or record of this one."""
        part = self._view(first_row, first_row + len(block[0]))
        part._held, part._whole = block, self
        return part

    def between(self, start: int, stop: int) -> Source:
        """Return a source of a range of rows, which reopens the files where it is unpickled.

        Parameters
        ----------
        start, stop : int
            The first row, and the row after the last one. Reading is fastest from multiples of ``block_rows`` on.

        Returns
        -------
        source : Source
        """
        if not self.rereadable:
            raise DataError(f"{self.name} can be read only once, and only from its first row.")
        stop = min(stop, self.count())
        if not 0 <= start < stop:
            raise ValueError(f"There are no rows from {start} to {stop} in {self.name}.")
        return self._view(self.first_row + start, self.first_row + stop)

    def treated(self, function: Callable[[Array], Array], sample: Array, names: Sequence[str] | None = None) -> Source:
        """Return a source of these rows, transformed block by block, such as by the steps before a model.

        Parameters
        ----------
        function : callable
            Transforms the features of a block; the number of columns it returns must not vary.
        sample : ndarray of shape (n, n_columns)
            Its result for some rows, which has the number of columns and their type.
        names : sequence of str, default=None
            Names of the columns.

        Returns
        -------
        source : Source
        """
        results = f"What the steps before the model return for {self.name}"
        if sample.ndim != 2:
            raise DataError(f"{results} has {counted(sample.ndim, 'dimension')}: every step must return two.")
        # As for arrays, objects are converted to numbers. Where the sample has integers, other rows may not.
        dtype = np.dtype(np.float64) if sample.dtype.kind in "Oiub" else usable_dtype(sample.dtype, results)
        treatment = _Treatment(function, int(sample.shape[1]), dtype, names)
        of_files = treatment
        if self._treatment is not None:
            of_files = treatment._replace(function=partial(_in_turn, self._treatment.function, function))
        source = self._with_treatment(of_files)
        if self._held is not None:
            source._held = next(source._treated(iter([self._held]), self.first_row, treatment))
        return source

    def _with_treatment(self, treatment: _Treatment) -> Source:
        source = copy(self)
        source._treatment, source.n_columns, source.dtype = treatment, treatment.n_columns, treatment.dtype
        if source.batch_size is None and source._row_bytes > self._row_bytes:
            # Blocks have the same size in bytes as those of this source.
            source.block_rows = max(1, self.block_rows * self._row_bytes // source._row_bytes)
        return source

    def _view(self, first_row: int, stop: int) -> Source:
        """Return a copy for a range of rows of the file."""
        view = copy(self)
        view.first_row, view._stop = first_row, stop
        view._held = view._whole = None
        return view

    def __copy__(self) -> Source:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __sizeof__(self) -> int:
        # Dask needs the size of rows in memory.
        return object.__sizeof__(self) + sum(part.nbytes for part in self._held or () if part is not None)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        # Files are reopened where it is unpickled, also for rows in memory.
        if self.reopen is not None:
            files = self.reopen, self.memory, self.block_rows, self._fingerprint_of_files()
            return _reopened, (*files, self.first_row, self._stop, self._treatment)
        if self._stop is not None:
            raise DataError(f"{self.name} is not a file that another process could open.")
        return super().__reduce_ex__(protocol)

    def fingerprint(self) -> str:
        """Return a hash that changes with the files and with the choice of columns and rows."""
        files = self._fingerprint_of_files()
        return files if self._stop is None else f"{files}-{self.first_row}-{self._stop}"

    def _fingerprint_of_files(self) -> str:
        # Without the number of rows, which may become known later.
        known = [(type(r).__name__, r.identity, r.n_columns, r.names, r.others) for r in self._readers]
        prepared = self._preparation
        chosen: tuple[Any, ...] = prepared.numbers.tolist(), self._targets.tolist(), self.target_is_vector
        if not prepared.is_plain:
            where = None if prepared.where is None else prepared.where.text
            chosen = *chosen, prepared.categories, where, prepared.roles
        digest = sha256(repr((known, chosen, str(self.dtype), self.block_rows)).encode()).hexdigest()[:16]
        return digest if self._treatment is None else f"{digest}-treated"

    def beginning(self) -> str | None:
        """Return a hash of the first rows if they can be read only once, else None."""
        return next((reader.beginning for reader in self._readers if not reader.rereadable), None)

    def require_finite(self) -> None:
        """Read all rows, and raise DataError for the first number that is not finite, in the file or transformed."""
        row = self.first_row
        for X, *_ in self._read(0):
            if self._treatment is not None and (bad := first_not_finite(X, allow_missing=self.allow_missing)):
                raise DataError(
                    f"In {self.name}, row {row + bad[0]}, the steps before the model return NaN or infinity "
                    f"(column {bad[1]}): leave out such rows, or use other steps."
                )
            row += len(X)

    def require_unchanged(self) -> None:
        """Raise DataError if a file has changed since it was opened.

        Every read checks this; users of mapped arrays must do so themselves.
        """
        for reader in self._readers:
            reader.require_unchanged()

    def _is_mapped(self) -> bool:
        is_mapped = all(reader.mapped() is not None for reader in self._readers) and self._treatment is None
        return is_mapped and self._preparation.is_plain and are_adjacent(self._preparation.numbers)

    @property
    def _readers(self) -> list[Reader]:
        return [self._reader] if self._target_reader is None else [self._reader, self._target_reader]

    def _read(self, start: int) -> Iterator[Parts]:
        if self._held is not None:
            yield cut_rows(self._held, start)
            return
        # Blocks end at the same rows as those of the whole source.
        row = self.first_row + start
        blocks = self._read_from(row)
        if self._treatment is not None:
            blocks = self._treated(blocks, row, self._treatment)
        yield from self._up_to_stop(blocks, start)

    def _treated(self, blocks: Iterator[Parts], row: int, treatment: _Treatment) -> Iterator[Parts]:
        """Yield blocks with their features transformed."""
        for X, *others in blocks:
            try:
                rows = _without_objects(treatment.function(X))
            except ValueError as error:
                reason = str(error).partition("\n")[0].strip()
                raise DataError(f"In {self.name}, from row {row} on: {reason}") from None
            if rows.shape != (len(X), self.n_columns):
                raise DataError(
                    f"In {self.name}, from row {row} on, the steps before the model return {rows.shape[0]} rows of "
                    f"{rows.shape[-1]} columns instead of {len(X)} of {self.n_columns}: every step must return one "
                    "output row per input row, and always the same number of columns."
                )
            if not np.can_cast(rows.dtype, self.dtype) and rows.dtype != np.longdouble:
                raise DataError(
                    f"In {self.name}, from row {row} on, the steps before the model return values of type "
                    f"{rows.dtype} instead of {self.dtype}: all blocks must have, and every step must return, one type."
                )
            row += len(X)
            yield rows.astype(self.dtype, copy=False), *others
            del X, rows, others

    def _up_to_stop(self, blocks: Iterator[Parts], start: int) -> Iterator[Parts]:
        """Yield the rows of blocks from ``start`` on that belong to this source."""
        if self._stop is None:
            yield from blocks
            return
        left = self._stop - self.first_row - start
        for parts in blocks:
            n_rows = len(parts[0])
            yield cut_rows(parts, 0, left)
            # Free it before the next one is read.
            del parts
            left -= n_rows
            if left <= 0:
                return

    def _read_from(self, row: int) -> Iterator[Parts]:
        rows = self._blocks_of(self._reader, self._preparation, row)
        if self._target_reader is None:
            yield from rows
            return
        targets = self._blocks_of(self._target_reader, Preparation(NO_COLUMNS, self._targets), row)
        for X, _, *others in rows:
            y = next(targets, (None, None))[1]
            if y is None or len(y) != len(X):
                raise self._length_error()
            yield X, y, *others
        if next(targets, None) is not None:
            raise self._length_error()

    def _blocks_of(self, reader: Reader, preparation: Preparation, row: int) -> Iterator[Parts]:
        blocks = self._pieces_of(reader, preparation, row, self.block_rows)
        if not reader.in_blocks or preparation.where is not None:
            # Blocks of targets in another reader must end at the same rows.
            live = not self.rereadable and self._target_reader is None
            blocks = regrouped(blocks, row, self.block_rows, live=live)
        for X, y, *others in blocks:
            yield X, self._as_shaped(y), *others
            del X, y, others
            # The next block may be part of the same memory map.
            reader.require_not_cut()

    def _pieces_of(self, reader: Reader, preparation: Preparation, row: int, step: int) -> Iterator[Parts]:
        """Yield the selected rows of a reader from ``row`` on, in pieces of at most ``step``."""
        reader.room, reader.allow_missing = self._room, self.allow_missing
        reader.optional = self._preparation.optional if reader is self._reader else frozenset()
        selects = preparation.where is not None
        rows = preparation.rows(reader.read(preparation.numbers, preparation.others, 0 if selects else row, step))
        # The position of a selected row is unknown until all rows before it have been read.
        return skip_rows(rows, row) if selects else rows

    def _as_shaped(self, y: Array | None) -> Array | None:
        return y if y is None or self.target_is_vector or y.ndim == 2 else y.reshape(-1, 1)

    def _length_error(self) -> DataError:
        assert self._target_reader is not None
        return DataError(f"{self._target_reader.where} has a different number of rows than {self._reader.where}.")

    def __repr__(self) -> str:
        rows = "unknown" if self.n_rows is None else f"{self.n_rows:,}"
        text = f"<Source {self.name}: {rows} rows, {self.n_columns:,} features of {self.dtype}"
        if self.n_targets:
            names = self.target_names
            text += f", target {listed(names)}" if names else f", {counted(self.n_targets, 'target')}"
        return text + ">"


def count_labels(y: Array, weight: Array | None = None) -> LabelCounts:
    """Return the distinct labels in ascending order, and the number, or weight, of rows of each."""
    labels, where = np.unique(y, return_inverse=True)
    return labels, np.bincount(where, weight)


def merge_label_counts(first: LabelCounts, second: LabelCounts) -> LabelCounts:
    """Return the labels of both, and the sums of their counts."""
    labels, where = np.unique(np.concatenate([first[0], second[0]]), return_inverse=True)
    counts = np.concatenate([first[1], second[1]])
    return labels, np.bincount(where, counts).astype(counts.dtype)


def _without_objects(rows: Array) -> Array:
    try:
        return rows.astype(np.float64) if rows.dtype.kind == "O" else rows
    except TypeError as error:
        raise ValueError(str(error)) from None


def _in_turn(first: Callable[[Array], Array], second: Callable[[Array], Array], X: Array) -> Array:
    return second(first(X))


def _reopened(
    reopen: Callable[[], Source],
    memory: int,
    block_rows: int,
    fingerprint: str,
    start: int,
    stop: int | None,
    treatment: _Treatment | None,
) -> Source:
    """Open the same rows of the same files, possibly in another process."""
    source = reopen() if treatment is None else reopen()._with_treatment(treatment)
    source.memory, source.block_rows = memory, block_rows
    if source.fingerprint() != fingerprint:
        raise DataError(
            f"{source.name} is not the file that was first opened, or has changed since: every worker must see the "
            "same files."
        )
    return source if stop is None else source._view(start, stop)
