"""Rows of a Dask collection, which stay on the workers: only merged results of the blocks are transferred."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples

from .._core.errors import import_optional
from .._core.labels import as_labels
from .._core.progress import listening
from .._core.tiles import SMALL_BYTES
from .._core.types import Array, Rows
from .._core.validation import NoWeightError, located_errors, validate_rows
from ..data import Source
from ..data.source import LabelCounts, count_labels, merge_label_counts
from ..distributed import OnWorkers
from ..distributed.collections import Collection, collection_of, is_collection, lazily
from ..distributed.graph import LoadedBlock
from .blocks import Block, Part, TrainingRows

__all__ = ["CollectionRows", "apply_lazily", "is_collection"]

_NO_ROWS = "X has no row with a positive weight: pass at least one."
_NO_RESPONSES = "y has no value in any row: pass rows with responses."
# Parts of a block that open its training rows; the others are further columns.
_TRAINING_DATA = ("X", "y", "sample_weight")
_SMALLER = "use smaller chunks or fewer threads per worker"

Total = TypeVar("Total")

# Opens a block: given the features of the model, X, y and weights, it yields training rows and their head.
OpenBlock: TypeAlias = Callable[[BaseEstimator, Any, Any, Any], AbstractContextManager[tuple[TrainingRows, Any]]]

# Opens the training rows of a block, given its parts.
OpenRows: TypeAlias = Callable[[Mapping[str, Any]], AbstractContextManager[TrainingRows]]


class CollectionRows(TrainingRows):
    """The rows of a Dask collection (see :func:`plstream.distributed.collection_of`), and further columns by name.

    Each read is one computation. Only the merged result of all blocks is transferred to this process.
    """

    # Opens the training rows of a block, on the workers. Set before the first read.
    open_block: OpenBlock

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, **columns: Any) -> None:
        opened = collection_of(X, y, sample_weight=sample_weight, **columns)
        self.collection: Collection = opened
        self.name, self.n_columns, self.feature_names = opened.name, opened.n_columns, opened.feature_names
        self.n_targets, self.target_is_vector = opened.n_targets, opened.target_is_vector
        # Files have the weights in a column of the source.
        self.is_weighted = sample_weight is not None or (isinstance(X, OnWorkers) and "weight" in X.source.roles)
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
        n_rows = self.n_rows if blocks.n_rows is None else sum(blocks.n_rows)
        blocks.hold_if_few(n_rows, allow_missing=self.allow_missing)
        add = partial(_add_part, self._row_opener(), work, forgetting)
        fold = partial(_fold, add, labelled=self._only_labelled)
        counted = blocks.reduce(fold, partial(_merge_parts, forgetting), label)
        if counted is None:
            raise ValueError(_NO_RESPONSES if self._only_labelled else _NO_ROWS)
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
        add = partial(_add_to_stream, self._row_opener(), empty, absorb, first_rows)
        fold = partial(_fold_into_stream, add, labelled=self._only_labelled)
        stream = blocks.reduce(fold, _merge_streams, label)
        if stream is None:
            raise self._no_rows()
        return stream

    def label_counts(self) -> LabelCounts:
        """Return all labels, and the total weight of each, from a read without X."""
        add = partial(_add_label_counts, allow_missing=self.allow_missing)
        counts = self.collection.targets.reduce(partial(_fold, add), merge_label_counts, "labels")
        if counts is None:
            raise self._no_rows()
        return counts

    def first_y(self) -> Array:
        """Return the y of the first row, usually from the first block alone."""
        targets = self.collection.targets
        look = partial(_y_of_first_row, allow_missing=self.allow_missing)
        first: Array = targets.first(look)
        if len(first):
            return first
        found: Array | None = targets.reduce(
            partial(_fold, partial(_keep_first_y, look)), _keep_first, "looking for rows"
        )
        if found is None:
            raise self._no_rows()
        return found

    def _row_opener(self) -> OpenRows:
        """Return a function that opens the training rows of a block."""
        self.features.missing = "model" if self.allow_missing else "error"
        return partial(_open_rows, self.features, self.open_block)

    @property
    def _only_labelled(self) -> bool:
        """Whether rows without any response are left out."""
        return self.allow_missing and not self.n_classes

    def _first_rows(self) -> Array:
        """Return the number of rows learnt before each block, which may take a read of y and the weights."""
        n_rows = self.collection.blocks.n_rows
        if n_rows is None or self.is_weighted or self._only_labelled:
            add = partial(_add_row_count, labelled=self._only_labelled)
            counts = self.collection.targets.reduce(partial(_fold, add), dict.__or__, "rows counted") or {}
            n_rows = [counts.get(number, 0) for number in range(max(counts, default=0) + 1)]
        return np.cumsum([0, *n_rows])

    def _no_rows(self) -> ValueError:
        if self._only_labelled:
            return NoWeightError(_NO_RESPONSES)
        return (NoWeightError if self.is_weighted else ValueError)(_NO_ROWS)

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


def _fold(add: Callable[[Any, LoadedBlock], Any], blocks: Iterator[LoadedBlock], *, labelled: bool = False) -> Any:
    """Add blocks, except those without rows, one after another to a result, which is None at first.

    If ``labelled``, arrays without any response are left out. Files leave out such rows themselves.
    """
    total = None
    for block in blocks:
        if _n_weighted_rows(block.parts, labelled=labelled and not isinstance(block.parts.get("X"), Source)):
            total = add(total, block)
        # Released before the next one is computed.
        del block
    return total


def _fold_into_stream(add: Callable[[Any, LoadedBlock], Any], blocks: Iterator[LoadedBlock], *, labelled: bool) -> Any:
    stream = _fold(add, blocks, labelled=labelled)
    # Only the state is sent to another process, not buffered rows.
    return None if stream is None else stream.without_waiting()


def _n_weighted_rows(parts: Mapping[str, Any], *, labelled: bool = False) -> int:
    """Return the number of rows of nonzero weight; raise ValueError unless all columns have one entry per row.

    If ``labelled``, rows without any response are not counted.
    """
    X = parts["X"] if "X" in parts else parts["y"]
    n = X.count() if isinstance(X, Source) else _num_samples(X)
    for name, column in parts.items():
        if name != "X" and np.ndim(column) and _num_samples(column) != n:
            raise ValueError(
                f"X has {n} rows, but {name} has {_num_samples(column)}: divide both into blocks at the same rows."
            )
    if isinstance(X, Source):
        if labelled:
            return _n_labelled_rows(X)
        return X.n_weighted() if "weight" in X.roles else n
    weight = parts.get("sample_weight")
    counts = np.ones(n, bool) if weight is None else np.broadcast_to(np.asarray(weight), n) != 0
    return int(np.count_nonzero(counts & _have_response(parts["y"]) if labelled else counts))


def _n_labelled_rows(source: Source) -> int:
    """Return the number of rows of nonzero weight that have a response, by reading all rows."""
    source.allow_missing = True
    n_rows = 0
    for _, y, *others in source.records():
        known = _have_response(y)
        if "weight" in source.roles:
            known = np.logical_and(known, others[source.roles.index("weight")] > 0)
        n_rows += int(np.count_nonzero(known))
    return n_rows


def _have_response(y: Any) -> NDArray[np.bool_]:
    """Return which rows have a response."""
    if hasattr(y, "isna"):
        missing = np.asarray(y.isna())
    else:
        values = np.asarray(y)
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, bool)
    known: NDArray[np.bool_] = np.logical_not(missing.reshape(len(missing), -1).all(axis=1))
    return known


@contextmanager
def _open_rows(features: _Features, open_block: OpenBlock, parts: Mapping[str, Any]) -> Iterator[TrainingRows]:
    X, y, weight = map(parts.get, _TRAINING_DATA)
    with open_block(features, X, y, weight) as (rows, _), located_errors(rows, features):
        yield rows


def _add_part(
    open_rows: OpenRows, work: Callable[[Block], Any], forgetting: float, total: Any, loaded: LoadedBlock
) -> Any:
    """Add the results of ``work`` for a block, and count its rows; weights are those after its last row."""
    with open_rows(loaded.parts) as rows:
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
    open_rows: OpenRows,
    empty: Any,
    absorb: Callable[[Any, TrainingRows, int, dict[str, Any]], Any],
    first_rows: Array | None,
    total: Any,
    loaded: LoadedBlock,
) -> Any:
    """Add the rows of a block to a stream."""
    stream = empty if total is None else total
    first_row = 0 if first_rows is None else int(first_rows[loaded.number])
    columns = {name: column for name, column in loaded.parts.items() if name not in _TRAINING_DATA}
    # Progress is reported by the process that waits for the workers.
    with listening(None), open_rows(loaded.parts) as rows:
        return absorb(stream, rows, first_row, columns)


def _merge_streams(first: Any, second: Any) -> Any:
    return first.merged(second, later=True)


def _add_label_counts(total: Any, loaded: LoadedBlock, *, allow_missing: bool) -> Any:
    """Add the labels of a block, and the total weight of each."""
    parts = loaded.parts
    if "X" in parts:
        # Features are read with the weights.
        parts["X"].allow_missing = allow_missing
        counted = parts["X"].label_counts(weighted=True)
    else:
        labels = as_labels(parts["y"], "A classifier", warn=False)
        counted = count_labels(labels, np.broadcast_to(parts.get("sample_weight", 1.0), len(labels)))
    return counted if total is None else merge_label_counts(total, counted)


def _add_row_count(total: Any, loaded: LoadedBlock, *, labelled: bool) -> Any:
    return {**(total or {}), loaded.number: _n_weighted_rows(loaded.parts, labelled=labelled)}


def _keep_first_y(look: Callable[[Mapping[str, Any]], Array], total: Any, loaded: LoadedBlock) -> Any:
    return look(loaded.parts) if total is None else total


def _keep_first(first: Array, _second: Array) -> Array:
    return first


def _y_of_first_row(parts: Mapping[str, Any], *, allow_missing: bool) -> Array:
    if "X" in parts:
        parts["X"].allow_missing = allow_missing
    y: Array = np.asarray(next(parts["X"].blocks())[1] if "X" in parts else parts["y"])
    return y[:1]
