"""Rows of a Dask collection: they stay where they are, and what is made of every block there is merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples

from .._core.errors import import_optional
from .._core.labels import as_labels
from .._core.progress import listening
from .._core.tiles import SMALL_BYTES
from .._core.types import Array, Rows
from .._core.validation import NoWeightError, located_errors, validate_rows
from ..data import Source
from ..distributed import OnWorkers
from ..distributed.collections import Collection, collection_of, is_collection, lazily
from ..distributed.graph import LoadedBlock
from .blocks import Block, Part, TrainingRows

__all__ = ["CollectionRows", "apply_lazily", "is_collection"]

_NO_ROWS = "X has no rows, or none with a positive weight: pass at least one."
_SMALLER = "use smaller chunks or fewer threads per worker"

Stream = TypeVar("Stream", bound="MergedStream")
Total = TypeVar("Total")


class MergedStream(Protocol):
    """What rows in one read are taken in by."""

    def merged(self, other: Any, *, later: bool = False) -> Self:
        """Return a stream of these rows and those of another one."""

    def without_waiting(self) -> Self:
        """Return a stream of the same rows, none of which waits."""


# Gives training rows of a block, from the columns to check it for, and X, y and weights; and what y is.
OpenBlock: TypeAlias = Callable[[BaseEstimator, Any, Any, Any], AbstractContextManager[tuple[TrainingRows, Any]]]


class CollectionRows(TrainingRows):
    """The rows of a Dask collection.

    Each read is one computation. Only the merged result of all blocks is transferred to this process.

    Parameters
    ----------
    X, y, sample_weight : Dask collections
        See :func:`plstream.distributed.collection_of`.
    **columns : Dask collections
        Further columns, such as groups.

    Attributes
    ----------
    open_block : callable
        Creates the training rows of a block, on the workers. Set it before the first read.
    """

    open_block: OpenBlock

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, **columns: Any) -> None:
        self.collection: Collection = collection_of(X, y, sample_weight=sample_weight, **columns)
        self.n_columns, self.feature_names, self.n_targets, self.target_is_vector = self.collection.layout
        self.name = self.collection.name
        self.n_rows: int | None = None
        self.features = _Features.of(self.n_columns, self.feature_names)

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Raise TypeError: the rows stay on the workers."""
        raise TypeError("The rows of a Dask collection are read by its workers: pass the blocks one after another.")

    def parts(
        self, work: Callable[[Block], Part], forgetting: float, label: str, start: int = 0
    ) -> Iterator[tuple[Part, int]]:
        """Yield the merged parts of all blocks, from one read."""
        blocks = self.collection.blocks
        vector = 8 * self.n_columns
        # Small blocks are centred in a copy, and of large ones as much is worked on at a time.
        blocks.require_room(2 * SMALL_BYTES + 8 * vector, vector * (self.n_targets + 6), _SMALLER)
        blocks.hold_if_few(self.n_rows if blocks.n_rows is None else sum(blocks.n_rows))
        self.features.missing = "model" if self.allow_missing else "error"
        reading = _Reading(self.collection.names, self.features, self.open_block, work, forgetting)
        counted = blocks.reduce(reading, _MergedParts(forgetting), label)
        if counted is None:
            raise ValueError(_NO_ROWS)
        self.n_rows = counted[1]
        yield counted

    def absorbed(
        self,
        empty: Stream,
        absorb: Callable[[Stream, TrainingRows, int, dict[str, Any]], Stream],
        *,
        state_bytes: int,
        by_number: bool,
        label: str = "read 1 of 1",
    ) -> Stream:
        """Return a stream of all rows, in one read.

        Parameters
        ----------
        empty : object
            A stream without rows.
        absorb : callable
            Returns a stream with the rows of a block, given the number of the first of them and the other columns.
        state_bytes : int
            Memory of a stream in bytes, including temporary arrays.
        by_number : bool
            Whether ``absorb`` needs to know the number of the first row of a block, which may take a read to find out.
        label : str
            Name of the read in the progress bar.
        """
        blocks = self.collection.blocks
        blocks.require_room(state_bytes, state_bytes // 3, f"{_SMALLER}, or solver='sketch'")
        first_rows = self._first_rows() if by_number else None
        self.features.missing = "model" if self.allow_missing else "error"
        absorbing = _Absorbing(self.collection.names, self.features, self.open_block, empty, absorb, first_rows)
        stream: Stream | None = blocks.reduce(absorbing, _merged_streams, label)
        if stream is None:
            raise self._no_rows()
        return stream

    def label_counts(self) -> tuple[Array, Array]:
        """Return all labels, and the weight of the rows of each, from a read without X."""
        targets = self.collection.targets
        counts = targets.reduce(_LabelCounts(self.collection.names), _added_counts, "labels")
        if counts is None:
            raise self._no_rows()
        return counts

    def first_y(self) -> Array:
        """Return the y of the first row, which is in the first block as a rule."""
        targets = self.collection.targets
        first: Array | None = targets.first(_first_y)
        if first is not None and not len(first):
            first = targets.reduce(_FirstY(self.collection.names), _earlier, "looking for rows")
        if first is None:
            raise self._no_rows()
        return first

    def _first_rows(self) -> Array:
        """Return how many rows with a weight come before each block, from a read of their own if that is not known."""
        names, n_rows = self.collection.names, self.collection.blocks.n_rows
        if n_rows is None or "sample_weight" in names:
            counts = self.collection.targets.reduce(_RowCounts(names), dict.__or__, "rows counted") or {}
            n_rows = [counts.get(number, 0) for number in range(max(counts, default=0) + 1)]
        return np.cumsum([0, *n_rows])

    def _no_rows(self) -> ValueError:
        return (NoWeightError if "sample_weight" in self.collection.names else ValueError)(_NO_ROWS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # At once, and not when an error that refers to them is forgotten.
        self.collection.blocks.let_go()


def apply_lazily(estimator: BaseEstimator, X: Any, function: Callable[[Rows], Array]) -> Any:
    """Return ``function`` of the rows of a Dask collection, to be computed when it is needed."""
    if isinstance(X, OnWorkers):
        raise TypeError("OnWorkers is for fit and partial_fit: pass the source itself.")
    known: Any = estimator
    m = known.n_features_in_
    if hasattr(X, "_meta_nonempty"):
        dtype = validate_rows(estimator, X._meta_nonempty, reset=False).dtype
    else:
        width = m if isinstance(X, list | tuple) else X.shape[-1]
        validate_rows(_Features.of(m, None), np.zeros((1, int(width))), reset=False)
        dtype = getattr(X, "dtype", np.dtype(np.float64))
    # Neither zero nor constant, which some functions warn of.
    rows = np.linspace(1.0, 2.0, m)[None].astype(dtype)
    names = getattr(known, "feature_names_in_", None)
    sample = function(rows)
    return lazily(X, _Applied(_Features.of(m, names), function, sample[:0]).rows, sample)


def fold_in_order(X: Any, start: Total, add: Callable[[Total, Any], Total]) -> Total:
    """Return the sum of the results of the blocks of a Dask collection, computed on the workers."""
    delayed = import_optional("dask", "A Dask collection", "distributed").delayed
    blocks = X if isinstance(X, list | tuple) else np.ravel(np.array(X.to_delayed(), dtype=object))
    total = delayed(start)
    for block in blocks:
        total = delayed(add)(total, block)
    return total.compute()


class _Features(BaseEstimator):
    """The attributes of a model needed to check the columns of X."""

    _missing_by: ClassVar[dict[str, str]] = {"X": "model", "y": "model"}
    missing = "error"

    @classmethod
    def of(cls, n_features: int, names: Any) -> _Features:
        """Return the columns of a model."""
        features = cls()
        features.n_features_in_ = n_features
        if names is not None:
            features.feature_names_in_ = np.asarray(names, dtype=object)
        return features


@dataclass(frozen=True)
class _Applied:
    """Applies a function to checked rows; handles empty blocks."""

    features: _Features
    function: Callable[[Rows], Array]
    nothing: Array

    def rows(self, X: Any) -> Array:
        """Return the function of rows."""
        return self.function(validate_rows(self.features, X, reset=False)) if _num_samples(X) else self.nothing


@dataclass(frozen=True)
class _Fold:
    """The results of blocks of X, y and named columns."""

    names: Sequence[str]

    def __call__(self, blocks: Iterator[LoadedBlock]) -> Any:
        total = None
        for block in blocks:
            X, y, *others = block.parts
            columns = dict(zip(self.names, others, strict=True))
            if self._n_present(X, y, columns):
                total = self._add(total, block.number, X, y, columns)
            # Before the next one is made.
            del block, X, y, others, columns
        return total

    def _add(self, total: Any, number: int, X: Any, y: Any, columns: dict[str, Any]) -> Any:
        """Return the total with a block that has rows."""
        raise NotImplementedError

    @staticmethod
    def _n_present(X: Any, y: Any, columns: dict[str, Any]) -> int:
        """Return the number of rows that have a weight; raise ValueError unless all columns have one entry per row."""
        n = X.count() if isinstance(X, Source) else _num_samples(X)
        for name, column in (("y", y), *columns.items()):
            if np.ndim(column) and _num_samples(column) != n:
                raise ValueError(f"X has {n} rows and {name} has {_num_samples(column)}: cut both at the same rows.")
        weight = columns.get("sample_weight")
        return n if weight is None else int(np.count_nonzero(np.broadcast_to(np.asarray(weight), n)))


@dataclass(frozen=True)
class _Reading(_Fold):
    """Sums the results of each block, and counts rows; weights are those after the last row."""

    features: _Features
    open_block: OpenBlock
    work: Callable[[Block], Any]
    forgetting: float

    def _add(self, total: Any, number: int, X: Any, y: Any, columns: dict[str, Any]) -> Any:
        merge = _MergedParts(self.forgetting)
        weight = columns.get("sample_weight")
        with self.open_block(self.features, X, y, weight) as (rows, _), located_errors(rows, self.features):
            for block in rows.blocks():
                # To load the compiler takes 80 MB of each worker, which small blocks are not worth.
                light = block._replace(compiled=block.compiled and not rows.in_memory)
                part = self.work(light.aged(self.forgetting)), block.n_rows
                total = part if total is None else merge(total, part)
        return total


@dataclass(frozen=True)
class _Absorbing(_Fold):
    """Adds the rows of blocks to a stream."""

    features: _Features
    open_block: OpenBlock
    empty: Any
    absorb: Callable[[Any, TrainingRows, int, dict[str, Any]], Any]
    first_rows: Array | None

    def __call__(self, blocks: Iterator[LoadedBlock]) -> Any:
        stream = super().__call__(blocks)
        # A state travels, and rows do not.
        return None if stream is None else stream.without_waiting()

    def _add(self, total: Any, number: int, X: Any, y: Any, columns: dict[str, Any]) -> Any:
        stream = self.empty if total is None else total
        first_row = 0 if self.first_rows is None else int(self.first_rows[number])
        weight = columns.pop("sample_weight", None)
        # Progress is reported by the process that waits for the workers.
        with (
            listening(None),
            self.open_block(self.features, X, y, weight) as (rows, _),
            located_errors(rows, self.features),
        ):
            return self.absorb(stream, rows, first_row, columns)


@dataclass(frozen=True)
class _LabelCounts(_Fold):
    """Finds all labels, and the weight of the rows of each."""

    def _add(self, total: Any, number: int, X: Any, y: Any, columns: dict[str, Any]) -> Any:
        if isinstance(X, Source):
            counted = X.label_counts()
        else:
            labels, where = np.unique(as_labels(y, "A classifier", warn=False), return_inverse=True)
            weight = np.broadcast_to(columns.get("sample_weight", 1.0), len(where))
            counted = labels, np.bincount(where, weight)
        return counted if total is None else _added_counts(total, counted)


def _added_counts(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    labels, where = np.unique(np.concatenate([first[0], second[0]]), return_inverse=True)
    return labels, np.bincount(where, np.concatenate([first[1], second[1]]))


@dataclass(frozen=True)
class _FirstY(_Fold):
    """Looks for the first row."""

    def _add(self, total: Any, number: int, X: Any, y: Any, columns: dict[str, Any]) -> Any:
        target = next(X.blocks())[1] if isinstance(X, Source) else y
        return np.asarray(target)[:1] if total is None else total


def _earlier(first: Array, _second: Array) -> Array:
    return first


@dataclass(frozen=True)
class _RowCounts(_Fold):
    """Counts the rows of each block that have a weight."""

    def _add(self, total: Any, number: int, X: Any, y: Any, columns: dict[str, Any]) -> Any:
        return {**(total or {}), number: self._n_present(X, y, columns)}


@dataclass(frozen=True)
class _MergedParts:
    """Merges parts with their row counts, which determine how much earlier rows are forgotten."""

    forgetting: float

    def __call__(self, first: tuple[Part, int], second: tuple[Part, int]) -> tuple[Part, int]:
        part = deepcopy(first[0])
        if self.forgetting < 1.0:
            part.shrink(self.forgetting ** second[1])
        part.merge(second[0])
        return part, first[1] + second[1]


def _merged_streams(first: Any, second: Any) -> Any:
    return first.merged(second, later=True)


def _first_y(block: LoadedBlock) -> Array:
    X, y = block.parts[:2]
    target: Array = np.asarray(next(X.blocks())[1] if isinstance(X, Source) else y)
    return target[:1]
