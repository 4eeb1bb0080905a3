"""Blocks of rows, the interface of rows read in blocks, and its implementation for arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._core.compiled import LOOP_DTYPES
from .._core.progress import track
from .._core.threads import ordered_map
from .._core.tiles import SMALL_BYTES, SMALLEST_BLOCK_BYTES, default_block_rows, require_finite, row_bytes
from .._core.types import Array, Float64Array, Rows

# Dense data above this size, in float64, is read by compiled loops if that requires no copy.
_LOOP_BYTES = 2 << 20
# With fewer columns, loops along rows are slower than NumPy.
_LEAST_COLUMNS = 32

_AS_FLOAT64: Callable[[Array], Float64Array] = partial(np.asarray, dtype=np.float64)


class Block(NamedTuple):
    """A block of rows: X unchanged, Y in float64 with one column per response, and the weights, or None.

    For labels, Y is one column of class indices. It represents one indicator response per class, which is never
    formed.
    """

    X: Rows
    Y: Float64Array
    weight: Float64Array | None
    compiled: bool = False
    """Whether to use compiled loops: X is dense, and part of a large array."""
    n_classes: int = 0
    """Number of classes, if Y holds labels."""
    first: int = 0
    """Number of its first row among all rows of nonzero weight, as counted by :meth:`TrainingRows.parts`."""
    n_skipped: int = 0
    """Number of rows that were read with it and left out, such as those of weight zero."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_targets(self) -> int:
        """Number of responses."""
        return self.n_classes or int(self.Y.shape[1])

    @property
    def classes(self) -> NDArray[np.intp]:
        """The class indices of the rows."""
        return self.Y[:, 0].astype(np.intp)

    @property
    def responses(self) -> Float64Array:
        """Y with one column per response, also for labels."""
        return (np.arange(self.n_classes) == self.Y).astype(np.float64) if self.n_classes else self.Y

    @property
    def weights(self) -> Float64Array:
        """The weights of the rows, also if all are one."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def part(self, rows: slice | NDArray[np.intp]) -> Block:
        """Return some of the rows."""
        return self._replace(X=self.X[rows], Y=self.Y[rows], weight=None if self.weight is None else self.weight[rows])

    def present(self) -> Block:
        """Return the block without rows of weight zero."""
        if self.weight is None or (self.weight > 0).all():
            return self
        rows = np.flatnonzero(self.weight > 0)
        return self.part(rows)._replace(n_skipped=self.n_skipped + self.n_rows - len(rows))

    def labelled(self) -> Block:
        """Return the block without rows that have no response."""
        unknown = np.isnan(self.Y).all(axis=1) if self.Y.shape[1] else np.zeros(self.n_rows, bool)
        if not unknown.any():
            return self
        weight = np.where(unknown, 0.0, 1.0 if self.weight is None else self.weight)
        return self._replace(weight=weight).present()

    def weighted(self, class_weight: Float64Array) -> Block:
        """Return the block with weights multiplied by those of the classes."""
        weight = class_weight[self.classes]
        return self._replace(weight=weight if self.weight is None else self.weight * weight)

    def aged(self, forgetting: float, n_later: int = 0) -> Block:
        """Return the block with its weights decayed by its own later rows and ``n_later`` more."""
        if forgetting >= 1.0:
            return self.present()
        age = np.arange(n_later + self.n_rows - 1, n_later - 1, -1, dtype=np.float64)
        factor: Float64Array = forgetting**age
        return self._replace(weight=factor if self.weight is None else self.weight * factor).present()


class Mergeable(Protocol):
    """A summary of some rows."""

    def merge(self, other: Any) -> Self:
        """Add the summary of other rows."""

    def shrink(self, factor: float) -> None:
        """Multiply the weights by a factor."""


Part = TypeVar("Part", bound=Mergeable)


class TrainingRows(ABC):
    """Rows with numeric y, to be read once or several times."""

    n_rows: int | None
    """Number of rows, not counting those of weight zero; None if unknown before a read."""
    n_columns: int
    n_targets: int
    n_classes: int = 0
    """Number of classes if y holds labels, else 0."""
    compiled: bool = False
    """Whether the rows are dense, and too large for memory or large enough for compiled loops to be faster."""
    in_memory: bool = False
    """Whether the rows are dense, and few enough to be copied as a whole."""
    rereadable: bool = True
    """Whether the rows can be read several times."""
    allow_missing: bool = False
    """Whether NaN is a missing value rather than an error."""
    # Number of blocks processed at a time, for memory estimates.
    _under_way: int | None = None

    @abstractmethod
    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Read the rows once, in blocks without rows of weight zero, starting at the beginning of a block."""

    def n_rows_from(self, start: int) -> int:
        """Return the number of rows, not counting those of weight zero, from ``start`` on, where all rows count."""
        assert self.n_rows is not None
        return self.n_rows - start

    def tracked_blocks(self, label: str, start: int = 0) -> Generator[Block, None, None]:
        """Read the rows like :meth:`blocks`, and report progress under a label."""
        n_rows = None if self.n_rows is None else self.n_rows - start
        return track(self.blocks(start), label, n_rows, lambda block: block.n_rows)

    def parts(
        self, work: Callable[[Block], Part], forgetting: float, label: str, start: int = 0
    ) -> Iterator[tuple[Part, int]]:
        """Read the rows once, and yield the results of ``work``, in order, with the number of rows done.

        With forgetting, weights are those after the last of all rows. Remote rows yield a single part.
        """
        assert self.n_rows is not None
        blocks = self.aged_blocks(forgetting, start)
        results = ordered_map(lambda block: (work(block[0]), block[1]), blocks, self._under_way)
        return track(results, label, self.n_rows - start, lambda part: part[1])

    def require_finite(self) -> None:  # noqa: B027
        """Raise ValueError for the first number that is not finite, if the blocks cannot tell its position."""

    def as_one_block(self, forgetting: float = 1.0, label: str | None = None) -> Block:
        """Read all rows as one block, and report progress under the label, if any; for weights see :meth:`parts`."""
        blocks = self.blocks()
        first, *others = blocks if label is None else track(blocks, label, self.n_rows, lambda block: block.n_rows)
        if others:
            parts = first, *others
            X, Y = (np.concatenate(column) for column in zip(*((part.X, part.Y) for part in parts), strict=True))
            # Blocks from which rows without a response have been left out have weights, others may have none.
            is_weighted = any(part.weight is not None for part in parts)
            weight = np.concatenate([part.weights for part in parts]) if is_weighted else None
            first = first._replace(X=X, Y=Y, weight=weight)
        return first if forgetting >= 1.0 else first.aged(forgetting)

    def aged_blocks(self, forgetting: float, start: int) -> Iterator[tuple[Block, int]]:
        """Yield the nonempty blocks, with the number of rows read for each. For the weights, see :meth:`parts`."""
        assert self.n_rows is not None
        n_later, n_read = self.n_rows_from(start), 0
        for block in self.blocks(start):
            n_later -= block.n_rows
            n_read += block.n_rows + block.n_skipped
            # Rows of weight zero have been dropped, except those whose weight decays to zero.
            present = block.aged(forgetting, n_later) if forgetting < 1.0 else block
            if present.n_rows:
                yield present._replace(first=self.n_rows - n_later - block.n_rows), n_read
                n_read = 0


class ArrayRows(TrainingRows):
    """Rows of an array, in blocks, which can be read repeatedly.

    Nothing is copied or converted as a whole: a block of a dense array is a view, so a memory map is read from its file
    block by block. Sparse columns are the exception: they are converted to sparse rows once.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_columns)
    Y : array of shape (n_rows, n_targets)
    weight : array of shape (n_rows,), optional
        Rows of weight zero are skipped.
    n_classes : int, default=0
        Number of classes, if Y is one column of class indices.
    class_weight : array of shape (n_classes,), optional
        Positive weights of the classes; the weight of a row is the product of both.
    feature_names : sequence of str, optional
        Names of the columns, for messages.
    batch_size : int, optional
        Number of rows per block. By default 1/32 of the rows, but at least 4 MiB and at most 32 MiB; 4 MiB if rows are
        skipped; all rows for small dense arrays.
    numbers : callable, optional
        Converts some rows of Y to float64. By default Y holds numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.rows import ArrayRows
    >>> X = np.arange(10.0).reshape(5, 2)
    >>> [len(block.Y) for block in ArrayRows(X, X[:, :1], batch_size=2).blocks()]
    [2, 2, 1]
    """

    def __init__(
        self,
        X: Rows,
        Y: Array,
        weight: Float64Array | None = None,
        *,
        batch_size: int | None = None,
        n_classes: int = 0,
        class_weight: Float64Array | None = None,
        numbers: Callable[[Array], Float64Array] = _AS_FLOAT64,
        feature_names: Any = None,
    ) -> None:
        self.X: Rows = X.tocsr() if sparse.issparse(X) else X
        self.Y = Y
        self.weight = weight
        self.n_classes = n_classes
        self.class_weight = class_weight
        self.numbers = numbers
        self.feature_names = feature_names
        self.n_rows = int(X.shape[0] if weight is None else np.count_nonzero(weight))
        self.n_columns = int(X.shape[1])
        self.n_targets = n_classes or int(Y.shape[1])
        if isinstance(self.X, np.ndarray):
            # Loops over contiguous rows pay off earlier than loops over copies.
            is_contiguous = self.X.flags.c_contiguous and self.X.dtype in LOOP_DTYPES and self.n_rows == len(self.X)
            wide = self.n_columns >= _LEAST_COLUMNS
            self.compiled = 8 * self.X.size > (min(SMALL_BYTES, _LOOP_BYTES) if is_contiguous and wide else SMALL_BYTES)
            self.in_memory = 8 * self.X.size <= SMALL_BYTES
        if batch_size is not None:
            self.batch_size = batch_size
        elif self.in_memory:
            # Too small to divide among threads.
            self.batch_size = int(X.shape[0])
        elif weight is not None and self.n_rows < X.shape[0]:
            # Skipping rows requires copies of blocks, several of which are processed at a time.
            self.batch_size = max(1, SMALLEST_BLOCK_BYTES // row_bytes(self.X))
        else:
            self.batch_size = default_block_rows(self.X)

    def require_finite(self) -> None:
        """Raise ValueError for the first number that is not finite, if any."""
        require_finite("X", self.X, self.weight, self.feature_names, allow_missing=self.allow_missing)
        require_finite("y", self.Y, self.weight, allow_missing=self.allow_missing)

    def n_rows_from(self, start: int) -> int:
        """Return the number of rows of nonzero weight from ``start`` on."""
        return super().n_rows_from(start) if self.weight is None else int(np.count_nonzero(self.weight[start:]))

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Read the rows, starting at the beginning of a block."""
        n_skipped = 0
        for first in range(start, self.X.shape[0], self.batch_size):
            rows = slice(first, first + self.batch_size)
            weight = None if self.weight is None else self.weight[rows]
            block = Block(self.X[rows], self.numbers(self.Y[rows]), weight, self.compiled, self.n_classes)
            if self.class_weight is not None:
                block = block.weighted(self.class_weight)
            if weight is not None:
                block = block.present()
            n_skipped += block.n_skipped
            if block.n_rows:
                yield block._replace(n_skipped=n_skipped)
                n_skipped = 0
