"""Estimators and Dask: they learn where the blocks are, and what they have learnt is merged there.

An estimator with ``partial_fit`` and ``merge`` needs no more than, in ``fit`` and ``partial_fit`` alike,

>>> def partial_fit(self, X, y, sample_weight=None):
...     if is_collection(X):
...         return learn_collection(self, X, y, sample_weight)

(``reset=True`` in ``fit``), and :func:`by_blocks` for results. If the order of rows matters to it, it also has

- ``_followed_by(later)``, which returns a model of its rows and then those of a later model, and changes neither;
- ``_begin_at(row)``, which tells an unfitted model the number of the first row that it will see.

and, if it keeps rows for a while, ``_settle()``, which makes a part of its state of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._core.labels import Labels, as_labels, balanced_weights, is_text, require_known
from .._core.tiles import SMALL_BYTES
from .._core.types import Array, Rows
from .._core.validation import NoWeightError, located_errors, unchanged_on_failure, validate_rows
from ..data import Block, Source
from ..distributed import LoadedBlock, Remote, collection_of, is_collection, lazily, rows_of
from ..solvers.multipass import Part
from ..states.moments import aged

__all__ = ["CollectionRows", "apply_lazily", "is_collection", "label_counts", "learn_collection"]

Model = TypeVar("Model", bound=BaseEstimator)

_NO_ROWS = "X has no rows, or none with a positive weight: pass at least one."
_SMALLER = "use smaller chunks or fewer threads a worker"


def learn_collection(
    model: Model,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    reset: bool = False,
    classes: Any = None,
    by_number: bool = True,
    **columns: Any,
) -> Model:
    """Let a model learn from a Dask collection in one read, by ``partial_fit`` and ``merge`` on the workers.

    Parameters
    ----------
    model : estimator
        The model. It is changed only if all goes well.
    X, y, sample_weight : Dask collections
        See :class:`plstream.distributed.Collection`.
    reset : bool, default=False
        Whether to forget what the model has learnt before.
    classes : array-like of shape (n_classes,), default=None
        All labels, for a classifier. By default they are looked for in a read of their own.
    by_number : bool, default=True
        Whether a model that has ``_begin_at`` needs it.
    **columns : Dask collections
        What else ``partial_fit`` takes of each row, such as ``groups``.

    Returns
    -------
    model : estimator
    """
    collection = collection_of(X, y, sample_weight=sample_weight, **columns)
    fresh: Any = clone(model)
    goes_on = not reset and _is_fitted(model)
    classes = _known_classes(model, classes) if goes_on else _classes_to_come(fresh, collection, classes)
    if getattr(model, "target", None) == "auto":
        # All blocks are to be taken alike.
        fresh.target = "values" if classes is None else "labels"
    _require_room(fresh, collection, classes)
    first_rows = None
    if by_number and hasattr(fresh, "_begin_at"):
        first_rows = _first_rows(collection) + (model.n_samples_seen_ if goes_on else 0)
    params = {} if classes is None else {"classes": classes}
    learning = _Learning(collection.names, fresh, params, first_rows)
    learned = collection.blocks.reduce(learning, _followed_by, "read 1 of 1")
    if learned is None:
        raise _no_rows(collection)
    with unchanged_on_failure(model):
        after = _followed_by(model, learned) if goes_on else learned
        if not goes_on:
            vars(model).pop("feature_names_in_", None)
        # Parameters stay those that the caller has set.
        params = model.get_params(deep=False)
        vars(model).update({name: value for name, value in vars(after).items() if name not in params})
    return model


class CollectionRows:
    """The rows of a Dask collection, for exact fits that read them again and again.

    Each read is one computation. What comes to this process is the sum of all blocks' parts in it.

    Parameters
    ----------
    model : estimator
        The model to fit. On the workers, its ``_rows`` makes blocks of numbers of what is in the blocks here.
    X, y, sample_weight : Dask collections
        See :class:`plstream.distributed.Collection`.
    """

    dense = False
    compiled = False

    def __init__(self, model: Any, X: Any, y: Any, sample_weight: Any = None) -> None:
        self.model = model
        self.collection = collection_of(X, y, sample_weight=sample_weight)
        self.n_columns, self.feature_names, self.n_targets, self.target_is_vector = self.collection.layout
        self.name = self.collection.name
        self.n_rows: int | None = None
        vector = 8 * self.n_columns
        # Small blocks are centred in a copy, and of large ones as much is worked on at a time.
        self.collection.blocks.require_room(2 * SMALL_BYTES + 8 * vector, vector * (self.n_targets + 6), _SMALLER)

    def reduce(self, work: Callable[[Block], Part], forgetting: float, label: str) -> Part:
        """Return the merged parts of all blocks in one read."""
        blocks = self.collection.blocks
        blocks.hold_if_few(self.n_rows if blocks.n_rows is None else sum(blocks.n_rows))
        # Nothing has been learnt yet: this is small.
        reading = _Reading(self.collection.names, work, forgetting, copy(self.model))
        counted = blocks.reduce(reading, _Merging(forgetting), label)
        if counted is None:
            raise ValueError(_NO_ROWS)
        part: Part
        part, self.n_rows = counted
        return part

    def require_finite(self) -> None:
        """Do nothing: blocks are looked at on the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # At once, and not when an error that refers to them is forgotten.
        self.collection.blocks.let_go()


def apply_lazily(estimator: BaseEstimator, X: Any, function: Callable[[Rows], Array]) -> Any:
    """Return ``function`` of the rows of a Dask collection, to be computed when it is needed."""
    if isinstance(X, Remote):
        raise TypeError("OnWorkers is for fit and partial_fit: pass the source itself.")
    known: Any = estimator
    m = known.n_features_in_
    if hasattr(X, "_meta_nonempty"):
        rows = validate_rows(estimator, X._meta_nonempty, reset=False)
    else:
        width = m if isinstance(X, list | tuple) else X.shape[-1]
        validate_rows(_Features.of(m, None), np.zeros((1, int(width))), reset=False)
        rows = np.zeros((1, m), getattr(X, "dtype", np.float64))
    names = getattr(known, "feature_names_in_", None)
    sample = function(rows)
    return lazily(X, _Applied(_Features.of(m, names), function, sample[:0]).rows, sample)


class _Features(BaseEstimator):
    """What of a model it takes to check the columns of X."""

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
    """A function of checked rows, none of which there may be."""

    features: _Features
    function: Callable[[Rows], Array]
    nothing: Array

    def rows(self, X: Any) -> Array:
        """Return the function of rows."""
        return self.function(validate_rows(self.features, X, reset=False)) if _num_samples(X) else self.nothing


@dataclass(frozen=True)
class _Fold:
    """What blocks, of X, y and named columns, come to."""

    names: Sequence[str]

    def __call__(self, blocks: Iterator[LoadedBlock]) -> Any:
        total = None
        for block in blocks:
            X, y, *others = rows_of(block)
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
        """Return the number of rows that have a weight; raise ValueError unless all columns have one entry a row."""
        n = X.count() if isinstance(X, Source) else _num_samples(X)
        for name, column in (("y", y), *columns.items()):
            if np.ndim(column) and _num_samples(column) != n:
                raise ValueError(f"X has {n} rows and {name} has {_num_samples(column)}: cut both at the same rows.")
        weight = columns.get("sample_weight")
        return n if weight is None else int(np.count_nonzero(np.broadcast_to(np.asarray(weight), n)))


@dataclass(frozen=True)
class _Learning(_Fold):
    """Makes a model of blocks."""

    model: Any
    params: dict[str, Any]
    first_rows: Array | None

    def __call__(self, blocks: Iterator[LoadedBlock]) -> Any:
        model = super().__call__(blocks)
        if hasattr(model, "_settle"):
            # A state travels, and rows do not.
            model._settle()
        return model

    def _add(self, total: Any, number: int, X: Any, y: Any, columns: dict[str, Any]) -> Any:
        model = self._begun(number) if total is None else total
        return model.partial_fit(X, y, **columns, **self.params)

    def _begun(self, number: int) -> Any:
        model = clone(self.model)
        if self.first_rows is not None:
            model._begin_at(int(self.first_rows[number]))
        return model


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
class _RowCounts(_Fold):
    """Counts the rows of each block that have a weight."""

    def _add(self, total: Any, number: int, X: Any, y: Any, columns: dict[str, Any]) -> Any:
        return {**(total or {}), number: self._n_present(X, y, columns)}


@dataclass(frozen=True)
class _Reading(_Fold):
    """Adds up what the work on each block comes to, and counts rows; the weights are as seen from the last of them."""

    work: Callable[[Block], Any]
    forgetting: float
    model: Any

    def _add(self, total: Any, number: int, X: Any, y: Any, columns: dict[str, Any]) -> Any:
        merge, weight = _Merging(self.forgetting), columns.get("sample_weight")
        with self.model._rows(X, y, weight, reset=False, in_one_read=True) as rows, located_errors(rows):
            for block in rows:
                present = block._replace(weight=aged(block.weight, self.forgetting, block.n_rows)).present()
                part = self.work(present), block.n_rows
                total = part if total is None else merge(total, part)
        return total


@dataclass(frozen=True)
class _Merging:
    """Merges parts with their counts of rows: with every row after it, what is known of a row weighs less."""

    forgetting: float

    def __call__(self, first: tuple[Part, int], second: tuple[Part, int]) -> tuple[Part, int]:
        part = deepcopy(first[0])
        if self.forgetting < 1.0:
            part.shrink(self.forgetting ** second[1])
        part.merge(second[0])
        return part, first[1] + second[1]


def _known_classes(model: Any, classes: Any) -> Array | None:
    """Return all labels of a model that has learnt before, or None if it learns values."""
    known = model.classes_ if is_classifier(model) else None
    if classes is not None:
        if known is None:
            raise ValueError("classes are for labels, and y holds values: pass none.")
        require_known(classes, known)
    return known


def _classes_to_come(fresh: Any, collection: Remote, classes: Any) -> Any:
    """Return all labels that a new model will see, those given or those that there are, or None if it learns values."""
    if classes is not None or not _learns_labels(fresh, collection):
        return classes
    values, counts = label_counts(collection)
    found = Labels.of(as_labels(values, type(fresh).__name__, first=True), None).classes
    if getattr(fresh, "class_weight", None) == "balanced":
        # What is balanced in all blocks together need not be so in any of them.
        fresh.class_weight = dict(zip(found.tolist(), balanced_weights(counts), strict=True))
    return found


def _learns_labels(model: Any, collection: Remote) -> bool:
    """Return whether y holds labels: what it is for some models, a look at the first block tells."""
    if is_classifier(model) or getattr(model, "target", "values") != "auto":
        return bool(is_classifier(model))
    return bool(collection.targets.first(_has_text))


def _has_text(block: LoadedBlock) -> bool:
    X, y = rows_of(block)[:2]
    return is_text(next(X.blocks())[1] if isinstance(X, Source) else y)


def _followed_by(model: Any, later: Any) -> Any:
    """Return a model of the rows of one and then those of another; neither is changed."""
    if hasattr(model, "_followed_by"):
        return model._followed_by(later)
    return deepcopy(model).merge(later)


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except ValueError:
        return False
    return True


def _require_room(model: Any, collection: Remote, classes: Any) -> None:
    """Raise MemoryError unless the workers have room for blocks and states, as far as it is known what they take."""
    if not hasattr(model, "memory_usage"):
        return
    n_targets = collection.layout.n_targets if classes is None else len(classes)
    work = model.memory_usage(collection.layout.n_columns, n_targets)
    collection.blocks.require_room(work, work // 3, f"{_SMALLER}, or solver='sketch'")


def _no_rows(collection: Remote) -> ValueError:
    return (NoWeightError if "sample_weight" in collection.names else ValueError)(_NO_ROWS)


def label_counts(collection: Remote) -> tuple[Array, Array]:
    """Return all labels of y, in ascending order, and the weight of the rows of each, from a read of their own."""
    counted = collection.targets.reduce(_LabelCounts(collection.names), _added_counts, "labels")
    if counted is None:
        raise _no_rows(collection)
    labels, counts = counted
    return labels, counts


def _first_rows(collection: Remote) -> Array:
    """Return how many rows with a weight come before each block, from a read of their own if that is not known."""
    n_rows = collection.blocks.n_rows
    if n_rows is None or "sample_weight" in collection.names:
        counts = collection.targets.reduce(_RowCounts(collection.names), dict.__or__, "rows counted") or {}
        n_rows = [counts.get(number, 0) for number in range(max(counts, default=0) + 1)]
    return np.cumsum([0, *n_rows])
