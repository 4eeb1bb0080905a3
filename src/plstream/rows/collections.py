"""Rows of a Dask collection, which stay on the workers: only merged results of the blocks are transferred."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

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

_NO_ROWS = "X has no row with a positive weight: pass at least one."
_SMALLER = "use smaller chunks or fewer threads per worker"

Total = TypeVar("Total")

# Opens a block: given the features of the model, X, y and weights, it yields training rows and their head.
OpenBlock: TypeAlias = Callable[[BaseEstimator, Any, Any, Any], AbstractContextManager[tuple[TrainingRows, Any]]]


class CollectionRows(TrainingRows):
    """The rows of a Dask collection (see :func:`plstream.distributed.collection_of`), and further columns by name.

    Each read is one computation. Only the merged result of all blocks is transferred to this process.
    """

    # Opens the training rows of a block, on the workers. Set before the first read.
    open_block: OpenBlock

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, **columns: Any) -> None:
        self.collection: Collection = collection_of(X, y, sample_weight=sample_weight, **columns)
        self.n_columns, self.feature_names, self.n_targets, self.target_is_vector = self.collection.layout
        self.name = self.collection.name
        self.n_rows: int | None = None
        self.features = _Features.of(self.n_columns, self.feature_names)

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Raise TypeError: the rows stay on the workers."""
        raise TypeError(
            "The rows of a Dask collection stay on its workers: to read them here, pass one computed block after "
            "another."
        )

    def parts(
        self, work: Callable[[Block], Part], forgetting: float, label: str, start: int = 0
    ) -> Iterator[tuple[Part, int]]:
        """Yield the merged parts of all blocks, from one read."""
        blocks = self.collection.blocks
        vector = 8 * self.n_columns
        # Small blocks are copied and centred as a whole, large ones in parts of that size.
        blocks.require_room(2 * SMALL_BYTES + 8 * vector, vector * (self.n_targets + 6), _SMALLER)
        blocks.hold_if_few(self.n_rows if blocks.n_rows is None else sum(blocks.n_rows))
        self.features.missing = "model" if self.allow_missing else "error"
        merge = partial(_merge_parts, forgetting)
        add = partial(_add_part, self.features, self.open_block, work, forgetting)
        counted = blocks.reduce(_Fold(self.collection.names, add), merge, label)
        if counted is None:
            raise ValueError(_NO_ROWS)
        self.n_rows = counted[1]
        yield counted

    def absorbed(
        self,
        empty: Any,
        absorb: Callable[[Any, TrainingRows, int, dict[str, Any]], Any],
        *,
        state_bytes: int,
        by_number: bool,
        label: str = "read 1 of 1",
    ) -> Any:
        """Return a stream of all rows, in one read.

        ``absorb`` returns a stream with the rows of a block, given the number of its first row and the other columns.
        That number, needed if ``by_number``, may take another read. ``state_bytes`` is the memory of a stream,
        including temporary arrays.
        """
        blocks = self.collection.blocks
        blocks.require_room(state_bytes, state_bytes // 3, f"{_SMALLER}, or solver='sketch'")
        first_rows = self._first_rows() if by_number else None
        self.features.missing = "model" if self.allow_missing else "error"
        add = partial(_add_to_stream, self.features, self.open_block, empty, absorb, first_rows)
        # Only the state is sent to another process, not buffered rows.
        fold = _Fold(self.collection.names, add, methodcaller("without_waiting"))
        stream = blocks.reduce(fold, _merge_streams, label)
        if stream is None:
            raise self._no_rows()
        return stream

    def label_counts(self) -> tuple[Array, Array]:
        """Return all labels, and the total weight of each, from a read without X."""
        targets = self.collection.targets
        counts = targets.reduce(_Fold(self.collection.names, _add_label_counts), _merge_label_counts, "labels")
        if counts is None:
            raise self._no_rows()
        return counts

    def first_y(self) -> Array:
        """Return the y of the first row, usually from the first block alone."""
        targets = self.collection.targets
        first: Array | None = targets.first(_first_y)
        if first is not None and not len(first):
            first = targets.reduce(_Fold(self.collection.names, _keep_first_y), _keep_first, "looking for rows")
        if first is None:
            raise self._no_rows()
        return first

    def _first_rows(self) -> Array:
        """Return the number of rows of nonzero weight before each block, which may take a read of the weights."""
        names, n_rows = self.collection.names, self.collection.blocks.n_rows
        if n_rows is None or "sample_weight" in names:
            counts = self.collection.targets.reduce(_Fold(names, _add_row_count), dict.__or__, "rows counted") or {}
            n_rows = [counts.get(number, 0) for number in range(max(counts, default=0) + 1)]
        return np.cumsum([0, *n_rows])

    def _no_rows(self) -> ValueError:
        return (NoWeightError if "sample_weight" in self.collection.names else ValueError)(_NO_ROWS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # Close it now rather than when an error that refers to the blocks is garbage collected.
        self.collection.blocks.let_go()


def apply_lazily(estimator: BaseEstimator, X: Any, function: Callable[[Rows], Array]) -> Any:
    """Apply ``function`` lazily to the rows of a Dask collection."""
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
    # Neither zero nor constant, because some functions warn about such rows.
    rows = np.linspace(1.0, 2.0, m)[None].astype(dtype)
    names = getattr(known, "feature_names_in_", None)
    sample = function(rows)
    return lazily(X, partial(_apply, _Features.of(m, names), function, sample[:0]), sample)


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


def _apply(features: _Features, function: Callable[[Rows], Array], nothing: Array, X: Any) -> Array:
    """Check the columns of a block and apply a function to it; for an empty block, return ``nothing``."""
    return function(validate_rows(features, X, reset=False)) if _num_samples(X) else nothing


@dataclass(frozen=True)
class _Fold:
    """Folds blocks of X, y and named columns, except those without rows, into one result."""

    names: Sequence[str]
    add: Callable[[Any, int, Any, Any, dict[str, Any]], Any]
    """Returns the result with a block, given the result so far (None at first) and the number of the block."""
    then: Callable[[Any], Any] | None = None
    """Applied to the result."""

    def __call__(self, blocks: Iterator[LoadedBlock]) -> Any:
        total = None
        for block in blocks:
            X, y, *others = block.parts
            columns = dict(zip(self.names, others, strict=True))
            if _n_weighted_rows(X, y, columns):
                total = self.add(total, block.number, X, y, columns)
            # Released before the next one is computed.
            del block, X, y, others, columns
        return total if self.then is None or total is None else self.then(total)


def _n_weighted_rows(X: Any, y: Any, columns: dict[str, Any]) -> int:
    """Return the number of rows of nonzero weight; raise ValueError unless all columns have one entry per row."""
    n = X.count() if isinstance(X, Source) else _num_samples(X)
    for name, column in (("y", y), *columns.items()):
        if np.ndim(column) and _num_samples(column) != n:
            raise ValueError(
                f"X has {n} rows, but {name} has {_num_samples(column)}: divide both into blocks at the same rows."
            )
    if isinstance(X, Source) and "weight" in X.roles:
        return X.n_weighted()
    weight = columns.get("sample_weight")
    return n if weight is None else int(np.count_nonzero(np.broadcast_to(np.asarray(weight), n)))


def _add_part(
    features: _Features,
    open_block: OpenBlock,
    work: Callable[[Block], Any],
    forgetting: float,
    total: Any,
    _number: int,
    X: Any,
    y: Any,
    columns: dict[str, Any],
) -> Any:
    """Add the results of ``work`` for a block, and count its rows; weights are those after its last row."""
    with open_block(features, X, y, columns.get("sample_weight")) as (rows, _), located_errors(rows, features):
        for block in rows.blocks():
            # Loading the compiler takes 80 MB on each worker, which does not pay off for small blocks.
            light = block._replace(compiled=block.compiled and not rows.in_memory)
            part = work(light.aged(forgetting)), block.n_rows
            total = part if total is None else _merge_parts(forgetting, total, part)
    return total


def _merge_parts(forgetting: float, first: tuple[Part, int], second: tuple[Part, int]) -> tuple[Part, int]:
    """Merge results with their row counts, which determine how much earlier rows are forgotten."""
    part = deepcopy(first[0])
    if forgetting < 1.0:
        part.shrink(forgetting ** second[1])
    part.merge(second[0])
    return part, first[1] + second[1]


def _add_to_stream(
    features: _Features,
    open_block: OpenBlock,
    empty: Any,
    absorb: Callable[[Any, TrainingRows, int, dict[str, Any]], Any],
    first_rows: Array | None,
    total: Any,
    number: int,
    X: Any,
    y: Any,
    columns: dict[str, Any],
) -> Any:
    """Add the rows of a block to a stream."""
    stream = empty if total is None else total
    first_row = 0 if first_rows is None else int(first_rows[number])
    weight = columns.pop("sample_weight", None)
    # Progress is reported by the process that waits for the workers.
    with listening(None), open_block(features, X, y, weight) as (rows, _), located_errors(rows, features):
        return absorb(stream, rows, first_row, columns)


def _merge_streams(first: Any, second: Any) -> Any:
    return first.merged(second, later=True)


def _add_label_counts(total: Any, _number: int, X: Any, y: Any, columns: dict[str, Any]) -> Any:
    """Add the labels of a block, and the total weight of each."""
    if isinstance(X, Source):
        counted = X.label_counts(weighted=True)
    else:
        labels, where = np.unique(as_labels(y, "A classifier", warn=False), return_inverse=True)
        weight = np.broadcast_to(columns.get("sample_weight", 1.0), len(where))
        counted = labels, np.bincount(where, weight)
    return counted if total is None else _merge_label_counts(total, counted)


def _merge_label_counts(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    labels, where = np.unique(np.concatenate([first[0], second[0]]), return_inverse=True)
    return labels, np.bincount(where, np.concatenate([first[1], second[1]]))


def _add_row_count(total: Any, number: int, X: Any, y: Any, columns: dict[str, Any]) -> Any:
    return {**(total or {}), number: _n_weighted_rows(X, y, columns)}


def _keep_first_y(total: Any, _number: int, X: Any, y: Any, _columns: dict[str, Any]) -> Any:
    return _y_of_first_row(X, y) if total is None else total


def _keep_first(first: Array, _second: Array) -> Array:
    return first


def _first_y(blocks: Iterator[LoadedBlock]) -> Array:
    return _y_of_first_row(*next(blocks).parts[:2])


def _y_of_first_row(X: Any, y: Any) -> Array:
    target: Array = np.asarray(next(X.blocks())[1] if isinstance(X, Source) else y)
    return target[:1]
