"""What y is, and what scores are turned into: responses, or classes.

A head is decided on at the first call. ``open_values`` and ``open_labels`` read X, y and weights for a model with such
a head, wherever the rows are: as arrays, in a source, or in a Dask collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from .._core.errors import counted
from .._core.labels import Labels, as_labels, balanced_weights, require_known, united
from .._core.schema import Boolean, Count, Each, Object, OrNone, Text, stored
from .._core.types import Array, Float64Array
from .._core.validation import (
    NoWeightError,
    names_of_target,
    require_numbers,
    validate_rows,
    validate_training_rows,
    validate_weight,
)
from ..data import Source
from ..rows import (
    ArrayRows,
    CollectionRows,
    SourceRows,
    TrainingRows,
    is_collection,
    opened_data,
    require_target,
    reread,
    validate_source,
)
from ..rows.sources import require_rereadable

_LONGEST_NAME = 1000

NOT_BALANCED = (
    "class_weight='balanced' needs to know how many rows of each class there will be, which a stream does not tell: "
    "pass class_weight as a dict, or equal priors, or fit what can be read again."
)


@stored(
    {"n_targets": Count(1, size="q"), "is_vector": Boolean(), "names": OrNone(Each(Text()))},
    {
        "a vector has one column": lambda its: not its.is_vector or its.n_targets == 1,
        "every response has a name, or none": lambda its: its.names is None or len(its.names) == its.n_targets,
    },
)
@dataclass(frozen=True)
class RegressionHead:
    """Responses: y as it is.

    Attributes
    ----------
    n_targets : int
        Number of responses.
    is_vector : bool
        Whether y has one dimension.
    names : tuple of str, or None
        Names of the responses, if those of the first call had any.
    """

    n_targets: int
    is_vector: bool
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, n_targets: int, names: list[str] | None, *, is_vector: bool) -> RegressionHead:
        """Return the head of so many responses; names that are too many or too long for a file are left out."""
        are_names = names is not None and len(names) == n_targets and max(map(len, names)) <= _LONGEST_NAME
        return cls(n_targets, is_vector, tuple(names) if names is not None and are_names else None)

    @property
    def alike(self) -> dict[str, Any]:
        """What models must have in common to be merged."""
        return {"the number of targets": self.n_targets, "the number of dimensions of y": 1 if self.is_vector else 2}

    def require_targets(self, n_targets: int) -> None:
        """Raise ValueError unless y has the number of columns that it had in the first call."""
        if n_targets != self.n_targets:
            raise ValueError(f"y has {counted(n_targets, 'target')}, but the model has {self.n_targets}.")

    def united(self, other: RegressionHead) -> RegressionHead:
        """Return the head of both."""
        return self

    def extended(self, head: RegressionHead, stream: Any) -> Any:
        """Return a stream as it is."""
        return stream

    def numbers_of_one(self, y: Any) -> Float64Array | None:
        """Return the numbers of the y of one row if it is plainly such, else None."""
        if isinstance(y, float | int) and self.n_targets == 1:
            return np.array([[y]], dtype=np.float64)
        is_row = type(y) is np.ndarray and y.dtype == np.float64 and y.shape == (self.n_targets,)
        return y[None] if is_row else None

    def shaped(self, prediction: Float64Array) -> Float64Array:
        """Return predictions with as many dimensions as y has."""
        return prediction[:, 0] if self.is_vector else prediction


@stored({"labels": Object(Labels, k="q")})
@dataclass(frozen=True)
class ClassifierHead:
    """Classes: labels by number, one response per class.

    Attributes
    ----------
    labels : Labels
        Which classes there are.
    """

    labels: Labels

    @property
    def n_targets(self) -> int:
        """Number of classes."""
        return len(self.labels.classes)

    @property
    def alike(self) -> dict[str, Any]:
        """What models must have in common to be merged."""
        return {"the type of labels": self.labels.kind}

    def numbers_of_one(self, y: Any) -> Float64Array | None:
        """Return the number of the class of one row if y is plainly a known label, else None."""
        position = self.labels.position_of(y)
        return None if position is None else np.array([[position]], dtype=np.float64)

    def with_class(self, label: Any) -> tuple[ClassifierHead, int]:
        """Return the head with one class more, and its number."""
        labels, position = self.labels.with_label(label)
        return ClassifierHead(labels), position

    def united(self, other: ClassifierHead) -> ClassifierHead:
        """Return the head of all classes that either has."""
        return ClassifierHead(replace(self.labels, classes=united(self.labels.classes, other.labels.classes)))

    def extended(self, head: ClassifierHead, stream: Any) -> Any:
        """Return a stream of these classes as one of a head that has others besides."""
        missing = np.flatnonzero(~np.isin(head.labels.classes, self.labels.classes)).tolist()
        return stream.with_classes(missing) if missing else stream


Head: TypeAlias = RegressionHead | ClassifierHead
OpenedRows: TypeAlias = AbstractContextManager[tuple[TrainingRows, Any]]


@contextmanager
def open_values(
    model: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: Any,
    head: RegressionHead | None,
    *,
    again: bool = False,
    batch_size: int | None = None,
    instead: str = "IncrementalPLSClassifier",
    **columns: Any,
) -> Iterator[tuple[TrainingRows, RegressionHead]]:
    """Give rows with responses that are numbers, and their head.

    Parameters
    ----------
    model : estimator
        Its columns are checked, or set if there is no head yet.
    X, y, sample_weight
        The data as the caller has it.
    head : RegressionHead or None
        What y was in the first call.
    again : bool
        Whether the rows are to be read several times.
    batch_size : int, optional
        Rows in a block.
    instead : str
        The estimator that takes labels, for the message about these.
    **columns
        Of a Dask collection, what else there is of each row.
    """
    first = head is None

    def numbers(target: Array) -> Float64Array:
        return np.asarray(require_numbers(target, instead), dtype=np.float64).reshape(len(target), -1)

    X, y = opened_data(X, y)
    if isinstance(X, Source):
        require_target(X, type(model).__name__, y, sample_weight)
        validate_source(model, X, reset=first)
        head = head or RegressionHead.of(X.n_targets, X.target_names, is_vector=X.target_is_vector)
        head.require_targets(X.n_targets)
        with reread(X, numbers, batch_size) if again else SourceRows(X, numbers) as rows:
            yield rows, head
    elif not isinstance(X, np.ndarray) and is_collection(X):
        with CollectionRows(X, y, sample_weight, **columns) as remote:
            validate_source(model, remote, reset=first)
            head = head or RegressionHead(remote.n_targets, remote.target_is_vector)
            head.require_targets(remote.n_targets)
            remote.open_block = partial(open_values, head=head, batch_size=batch_size, instead=instead)
            yield remote, head
    else:
        checked, target, weight = validate_training_rows(model, X, y, sample_weight, reset=first, instead=instead)
        Y = target.reshape(-1, 1) if target.ndim == 1 else target
        head = head or RegressionHead.of(Y.shape[1], names_of_target(y), is_vector=target.ndim == 1)
        head.require_targets(Y.shape[1])
        if getattr(model, "missing", "error") == "model":
            weight = _weight_of_labelled(Y, weight)
        names = getattr(model, "feature_names_in_", None)
        yield ArrayRows(checked, Y, weight, batch_size=batch_size, feature_names=names), head


def _weight_of_labelled(Y: Array, weight: Float64Array | None) -> Float64Array | None:
    """Return weights that are zero for rows without any response: its own predictions teach a model nothing."""
    unknown = np.isnan(Y).all(axis=1) if Y.dtype.kind == "f" else np.zeros(len(Y), bool)
    if not unknown.any():
        return weight
    labelled = np.where(unknown, 0.0, 1.0 if weight is None else weight)
    if not labelled.any():
        raise NoWeightError("y has no value in any row: pass rows with responses.")
    return labelled


@contextmanager
def open_labels(
    model: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: Any,
    head: ClassifierHead | None,
    *,
    again: bool = False,
    batch_size: int | None = None,
    classes: Any = None,
    class_weight: Any = None,
    **columns: Any,
) -> Iterator[tuple[TrainingRows, ClassifierHead]]:
    """Give rows with labels by number, and their head.

    Parameters
    ----------
    model, X, y, sample_weight, head, again, batch_size, **columns
        As of :func:`open_values`.
    classes : array-like, optional
        All labels that will come.
    class_weight : dict, "balanced", array of one weight per class, or None
        Weights of the classes.
    """
    X, y = opened_data(X, y)
    y_as_labels = _LabelReader(type(model).__name__, head, classes, class_weight)
    if isinstance(X, Source):
        require_target(X, type(model).__name__, y, sample_weight)
        validate_source(model, X, reset=head is None)
        opened = y_as_labels.rereading(X, batch_size) if again else y_as_labels.reading(X)
        with opened as (source_rows, found):
            yield source_rows, found
    elif not isinstance(X, np.ndarray) and is_collection(X):
        with CollectionRows(X, y, sample_weight, **columns) as remote:
            validate_source(model, remote, reset=head is None)
            found, weights = y_as_labels.head_of_collection(remote)
            remote.n_classes = remote.n_targets = found.n_targets
            class_weight = weights["class_weight"]
            remote.open_block = partial(open_labels, head=found, batch_size=batch_size, class_weight=class_weight)
            yield remote, found
    else:
        rows = validate_rows(model, X, reset=head is None)
        labels = y_as_labels.checked(y, warn=True)
        check_consistent_length(rows, labels)
        weight = validate_weight(sample_weight, rows.shape[0])
        if head is None and weight is not None and not weight.any():
            # Before classes are made of labels that do not count.
            raise NoWeightError
        found = y_as_labels.head_for(labels)
        numbers = y_as_labels.positions(labels, found)
        weights = y_as_labels.of_classes(found, np.bincount(numbers, weight, found.n_targets))
        names = getattr(model, "feature_names_in_", None)
        yield ArrayRows(rows, numbers[:, None], weight, batch_size=batch_size, feature_names=names, **weights), found


@dataclass(frozen=True)
class _LabelReader:
    """Turns y into numbers of classes, in the first call and in later ones."""

    name: str
    head: ClassifierHead | None
    classes: Any
    class_weight: Any

    def checked(self, y: Any, *, warn: bool) -> Array:
        """Return y as labels."""
        return as_labels(y, self.name, first=self.head is None and self.classes is None, warn=warn)

    def head_for(self, labels: Array) -> ClassifierHead:
        """Return the head: in the first call, that of all labels or of those that are said to come."""
        if self.head is None:
            return ClassifierHead(Labels.of(labels, self.classes))
        if self.classes is not None:
            require_known(self.classes, self.head.labels.classes)
        return self.head

    def positions(self, labels: Array, head: ClassifierHead) -> NDArray[np.intp]:
        """Return the numbers of classes."""
        # A model that is about to begin has nothing to add a class to.
        return head.labels.positions(labels, "" if self.head is None else ", or call add_class with it")

    def numbers(self, head: ClassifierHead) -> Callable[[Array], Float64Array]:
        """Return what turns y of a block into one column of numbers of classes."""
        return lambda y: self.positions(as_labels(y, self.name, warn=False), head)[:, None].astype(np.float64)

    def of_classes(self, head: ClassifierHead, counts: Array | None) -> dict[str, Any]:
        """Return what rows have to know about the classes, of which there are so many rows if that is known."""
        return {"n_classes": head.n_targets, "class_weight": _weights_of_classes(self.class_weight, head, counts)}

    def counted(self, values: Array, n_rows: Array) -> tuple[ClassifierHead, dict[str, Any]]:
        """Return the head and weights of all labels, of each of which there are so many rows."""
        labels = self.checked(values, warn=True)
        head = self.head_for(labels)
        return head, self.of_classes(head, np.bincount(self.positions(labels, head), n_rows, head.n_targets))

    @contextmanager
    def reading(self, source: Source) -> Iterator[tuple[SourceRows, ClassifierHead]]:
        """Yield the rows of a source, to be read once."""
        with SourceRows(source) as rows:
            if self.head is None and source.rereadable and self.classes is None:
                # All labels have to be known before the first row is learnt.
                head, weights = self.counted(*source.label_counts())
            else:
                head = self.head_for(self.checked(rows.first_y, warn=False))
                weights = self.of_classes(head, None)
            rows.learn(self.numbers(head), **weights)
            yield rows, head

    @contextmanager
    def rereading(self, source: Source, batch_size: int | None) -> Iterator[tuple[TrainingRows, ClassifierHead]]:
        """Give the rows of a source to be read several times."""
        require_rereadable(source)
        head, weights = self.counted(*source.label_counts())
        with reread(source, self.numbers(head), batch_size, **weights) as rows:
            yield rows, head

    def head_of_collection(self, rows: CollectionRows) -> tuple[ClassifierHead, dict[str, Any]]:
        """Return the head and weights of rows that are elsewhere."""
        if self.head is None and self.classes is None:
            # What is balanced in all blocks together need not be so in any of them.
            return self.counted(*rows.label_counts())
        head = self.head or self.head_for(self.checked(rows.first_y(), warn=False))
        return self.head_for(head.labels.classes), self.of_classes(head, None)


def _weights_of_classes(class_weight: Any, head: ClassifierHead, counts: Array | None) -> Float64Array | None:
    """Return one weight per class, or None if all are one."""
    if class_weight is None or isinstance(class_weight, np.ndarray):
        return class_weight
    if isinstance(class_weight, str):
        if counts is None:
            raise ValueError(NOT_BALANCED)
        return balanced_weights(counts)
    labels = head.labels.classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight has {unknown[0]!r}, which is none of the classes.")
    weights: NDArray[np.float64] = np.array([class_weight.get(label, 1.0) for label in labels], dtype=np.float64)
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError("class_weight must have positive numbers: leave out the rows of a class that is not to count.")
    return weights
