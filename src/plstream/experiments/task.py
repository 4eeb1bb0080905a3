"""A task: a data set of features and labels, with its splits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, first_not_finite
from .._core.types import Array

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]

KINDS = ("verification", "classification")
FOLDS = 10
# Rows in a fingerprint: enough to distinguish data sets, and quickly read from the largest file.
_FINGERPRINT_ROWS = 64
# Rows may be larger than memory, and are read in blocks.
_BLOCK_BYTES = 32 << 20


@dataclass(frozen=True, eq=False)
class Task:
    """A data set of an experiment: rows of features with labels, and its splits.

    Parameters
    ----------
    name : str
        A short, unique name, such as ``"lfw/vgg16_conv5_64px"``.
    title : str
        A readable title.
    kind : {"verification", "classification"}
        Verification decides whether two items are the same: its labels are 1 if they are, else 0.
    X : ndarray of shape (n_rows, n_features)
        Features, float32 or float64, possibly a memory map. Pairs are ``abs(a - b)``.
    y : ndarray of shape (n_rows,), int64
        Labels.
    splits : tuple of (train, test)
        Row indices: ten folds, or one split. Training rows are in the order of the stream.
    paper : str, default=None
        The name of this data set in the paper.
    note : str, default=""
        Its origin.

    Raises
    ------
    DataError
        If labels and rows do not match, a value is not finite, a row is used for both training and testing, or a
        training set has a single class.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.experiments.task import Task
    >>> task = Task(
    ...     name="four",
    ...     title="Four numbers",
    ...     kind="classification",
    ...     X=np.array([[0.0], [1.0], [0.1], [0.9]]),
    ...     y=np.array([0, 1, 0, 1]),
    ...     splits=((np.array([0, 1]), np.array([2, 3])),),
    ... )
    >>> task.n_classes, task.n_features
    (2, 1)
    """

    name: str
    title: str
    kind: str
    X: Array
    y: NDArray[np.int64]
    splits: tuple[Split, ...]
    paper: str | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DataError(f"{self.name}: a task is one of {' and '.join(KINDS)}, not {self.kind!r}.")
        self._check_rows()
        if not self.splits:
            raise DataError(f"{self.name} has no splits: it needs at least one into training and test rows.")
        for number, (train, test) in enumerate(self.splits, start=1):
            self._check_split(f"Split {number} of {self.name}", train, test)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @cached_property
    def n_classes(self) -> int:
        """Number of distinct labels."""
        return len(np.unique(self.y))

    @property
    def rows_per_block(self) -> int:
        """Number of rows that, with one response per class, take a few megabytes."""
        return max(1, _BLOCK_BYTES // max(self.n_features * self.X.dtype.itemsize, 8 * self.n_classes))

    def blocks(self, rows: Rows) -> Iterator[Rows]:
        """Yield row numbers in blocks."""
        step = self.rows_per_block
        yield from (rows[start : start + step] for start in range(0, len(rows), step))

    def fingerprint(self) -> str:
        """Return 32 hexadecimal digits that depend on the labels, the splits and some evenly spaced rows.

        It identifies the data of results, but does not detect tampering.
        """
        rows = np.unique(np.linspace(0, len(self.X) - 1, _FINGERPRINT_ROWS).astype(np.intp))
        digest = hashlib.sha256(repr((self.name, self.kind, self.X.shape, self.X.dtype.str)).encode())
        arrays = [self.X[rows], self.y, *(part for split in self.splits for part in split)]
        for array in arrays:
            # Arrays of different shapes may have the same bytes.
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()[:32]

    def _check_rows(self) -> None:
        X, y = self.X, self.y
        if X.ndim != 2 or X.dtype not in {np.dtype(np.float32), np.dtype(np.float64)} or 0 in X.shape:
            raise DataError(
                f"{self.name}: features must be a matrix of float32 or float64, not {X.dtype} of shape {X.shape}."
            )
        if y.shape != (len(X),) or y.dtype != np.int64:
            raise DataError(
                f"{self.name}: labels must be {len(X):,} int64, one per row, not {y.dtype} of shape {y.shape}."
            )
        if self.kind == "verification" and not np.isin(y, (0, 1)).all():
            raise DataError(f"{self.name}: labels of pairs must be 1 (same) or 0 (different).")
        step = self.rows_per_block
        for start in range(0, len(X), step):
            block = X[start : start + step]
            where = first_not_finite(block)
            if where is not None:
                row, feature = start + where[0], where[1]
                raise DataError(f"{self.name}: row {row}, feature {feature} is {block[where]}, not a finite number.")

    def _check_split(self, what: str, train: Rows, test: Rows) -> None:
        used = np.zeros(len(self.X), bool)
        for part, rows in (("training", train), ("test", test)):
            if rows.ndim != 1 or rows.dtype != np.intp or not len(rows):
                raise DataError(f"{what}: {part} rows must be a non-empty list of integers.")
            if rows.min() < 0 or rows.max() >= len(used):
                raise DataError(f"{what} has {part} rows that do not exist: there are rows 0 to {len(used) - 1:,}.")
            if used[rows].any():
                raise DataError(f"{what}: row {rows[used[rows]][0]} is both for training and for testing.")
            before = np.count_nonzero(used)
            used[rows] = True
            if np.count_nonzero(used) - before < len(rows):
                raise DataError(f"{what} lists some {part} rows more than once.")
        if len(np.unique(self.y[train])) < 2:
            raise DataError(f"The training rows of {what} have a single class.")


def stratified_folds(y: Array, seed: int) -> NDArray[np.intp]:
    """Return a random fold for every row; sizes of folds, and of classes in folds, differ by at most one."""
    by_class = np.lexsort((np.random.default_rng(seed).random(len(y)), y))
    fold = np.empty(len(y), np.intp)
    fold[by_class] = np.arange(len(y)) % FOLDS
    return fold


def split_by_fold(fold: Array, seed: int) -> tuple[Split, ...]:
    """Return one split per fold, with that fold as test rows.

    Training rows are in random order, the same in all splits, because files are often sorted by class.
    """
    shuffled = np.random.default_rng(seed).permutation(len(fold))
    return tuple((shuffled[fold[shuffled] != number], np.flatnonzero(fold == number)) for number in np.unique(fold))


def single_split(test: Any, seed: int) -> tuple[Split, ...]:
    """Return one split with the test rows given by a mask, and training rows in random order."""
    test = np.asarray(test, bool)
    return ((np.random.default_rng(seed).permutation(np.flatnonzero(~test)), np.flatnonzero(test)),)
