"""Heads: how a model represents y, as responses or as classes.

The first call determines the head. ``open_values`` and ``open_labels`` open X, y and weights for a model: arrays, a
source, or a Dask collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, TypeAlias

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
    "class_weight='balanced' requires the class frequencies, which are unknown in a stream: pass class_weight as a "
    "dict, set equal priors, or fit data that can be read again."
)


@stored(
    rules={
        "a vector has one column": lambda its: not its.is_vector or its.n_targets == 1,
        "every response has a name, or none": lambda its: its.names is None or len(its.names) == its.n_targets,
    }
)
@dataclass(frozen=True)
class RegressionHead:
    """The head of a regression: y unchanged, with one or two dimensions, and the names of the first call."""

    n_targets: Annotated[int, Count(1, size="q")]
    is_vector: Annotated[bool, Boolean()]
    names: Annotated[tuple[str, ...] | None, OrNone(Each(Text()))] = None

    @classmethod
    def of(
        cls, known: RegressionHead | None, n_targets: int, names: list[str] | None, *, is_vector: bool
    ) -> RegressionHead:
        """Return the known head if y has the same number of columns; in the first call, return a new one.

        Names that are too many or too long for a model file are dropped.
        """
        if known is not None:
            known.require_targets(n_targets)
            return known
        are_names = names is not None and len(names) == n_targets and max(map(len, names)) <= _LONGEST_NAME
        return cls(n_targets, is_vector, tuple(names) if names is not None and are_names else None)

    @property
    def merge_signature(self) -> dict[str, Any]:
        """Properties that must be equal to merge models."""
        return {"the number of targets": self.n_targets, "the number of dimensions of y": 1 if self.is_vector else 2}

    def require_targets(self, n_targets: int) -> None:
        """Raise ValueError unless y has as many columns as in the first call."""
        if n_targets != self.n_targets:
            raise ValueError(f"y has {counted(n_targets, 'target')}, but the model has {self.n_targets}.")

    def united(self, other: RegressionHead) -> RegressionHead:
        """Return the head of merged models."""
        return self

    def extended(self, head: RegressionHead, stream: Any) -> Any:
        """Return the stream unchanged."""
        return stream

    def numbers_of_one(self, y: Any) -> Float64Array | None:
        """Return y of one row as an array of numbers, or None if it needs conversion."""
        if isinstance(y, float | int) and self.n_targets == 1:
            return np.array([[y]], dtype=np.float64)
        is_row = type(y) is np.ndarray and y.dtype == np.float64 and y.shape == (self.n_targets,)
        return y[None] if is_row else None

    def shaped(self, prediction: Float64Array) -> Float64Array:
        """Return predictions with the number of dimensions of y."""
        return prediction[:, 0] if self.is_vector else prediction


@stored()
@dataclass(frozen=True)
class ClassifierHead:
    """The head of a classifier: labels as class indices, with one response per class."""

    labels: Annotated[Labels, Object(Labels, k="q")]

    @property
    def n_targets(self) -> int:
        """Number of classes."""
        return len(self.labels.classes)

    @property
    def merge_signature(self) -> dict[str, Any]:
        """Properties that must be equal to merge models."""
        return {"the type of labels": self.labels.kind}

    def numbers_of_one(self, y: Any) -> Float64Array | None:
        """Return the class index of one row as an array, or None if y is not a known label."""
        position = self.labels.position_of(y)
        return None if position is None else np.array([[position]], dtype=np.float64)

    def with_class(self, label: Any) -> tuple[ClassifierHead, int]:
        """Return the head with a new class, and its index."""
        labels, position = self.labels.with_label(label)
        return ClassifierHead(labels), position

    def united(self, other: ClassifierHead) -> ClassifierHead:
        """Return the head of merged models, with the classes of both."""
        return ClassifierHead(replace(self.labels, classes=united(self.labels.classes, other.labels.classes)))

    def extended(self, head: ClassifierHead, stream: Any) -> Any:
        """Return the stream with the additional classes of another head."""
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
    again: bool | None = False,
    batch_size: int | None = None,
    instead: str = "IncrementalPLSClassifier",
    **columns: Any,
) -> Iterator[tuple[TrainingRows, RegressionHead]]:
    """Provide training rows with numeric y, and their head.

    ``again`` says whether the rows will be read several times; None, if the data can be. The features of the model are
    checked, or set in the first call, when ``head`` is None. ``instead`` names the estimator for labels in an error
    message. ``columns`` are further columns of a Dask collection.
    """
    first = head is None

    def numbers(target: Array) -> Float64Array:
        return np.asarray(require_numbers(target, instead), dtype=np.float64).reshape(len(target), -1)

    X, y = opened_data(X, y)
    if isinstance(X, Source):
        require_target(X, type(model).__name__, y, sample_weight)
        validate_source(model, X, reset=first)
        head = RegressionHead.of(head, X.n_targets, X.target_names, is_vector=X.target_is_vector)
        again = X.rereadable if again is None else again
        with reread(X, numbers, batch_size) if again else SourceRows(X, numbers) as rows:
            yield rows, head
    elif not isinstance(X, np.ndarray) and is_collection(X):
        with CollectionRows(X, y, sample_weight, **columns) as remote:
            validate_source(model, remote, reset=first)
            head = RegressionHead.of(head, remote.n_targets, None, is_vector=remote.target_is_vector)
            remote.open_block = partial(open_values, head=head, batch_size=batch_size, instead=instead)
            yield remote, head
    else:
        checked, target, weight = validate_training_rows(model, X, y, sample_weight, reset=first, instead=instead)
        Y = target.reshape(-1, 1) if target.ndim == 1 else target
        head = RegressionHead.of(head, Y.shape[1], names_of_target(y), is_vector=target.ndim == 1)
        if getattr(model, "missing", "error") == "model":
            weight = _weight_of_labelled(Y, weight)
        names = getattr(model, "feature_names_in_", None)
        yield ArrayRows(checked, Y, weight, batch_size=batch_size, feature_names=names), head


def _weight_of_labelled(Y: Array, weight: Float64Array | None) -> Float64Array | None:
    """Set the weights of rows without any response to zero: a model cannot learn from its own predictions."""
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
    again: bool | None = False,
    batch_size: int | None = None,
    classes: Any = None,
    class_weight: Any = None,
    **columns: Any,
) -> Iterator[tuple[TrainingRows, ClassifierHead]]:
    """Provide training rows with labels as class indices, and their head, like :func:`open_values`.

    ``classes`` are all labels, if declared; ``class_weight`` is a dict, "balanced", one weight per class, or None.
    """
    X, y = opened_data(X, y)
    encoder = _LabelEncoder(type(model).__name__, head, classes, class_weight)
    # All labels must be known before the first row is learnt.
    finds_classes = head is None and classes is None
    if isinstance(X, Source):
        require_target(X, type(model).__name__, y, sample_weight)
        validate_source(model, X, reset=head is None)
        if X.rereadable if again is None else again:
            require_rereadable(X)
            found, weights = encoder.from_counts(*X.label_counts(weighted=encoder.is_balanced))
            with reread(X, encoder.numbers(found), batch_size, **weights) as reread_rows:
                yield reread_rows, found
            return
        with SourceRows(X) as source_rows:
            if finds_classes and X.rereadable:
                found, weights = encoder.from_counts(*X.label_counts(weighted=encoder.is_balanced))
            else:
                found = encoder.head_for(encoder.as_labels(source_rows.first_y, warn=False))
                weights = encoder.class_parameters(found)
            source_rows.learn(encoder.numbers(found), **weights)
            yield source_rows, found
    elif not isinstance(X, np.ndarray) and is_collection(X):
        with CollectionRows(X, y, sample_weight, **columns) as remote:
            validate_source(model, remote, reset=head is None)
            if finds_classes:
                # Classes that are balanced overall may not be balanced in each block.
                found, weights = encoder.from_counts(*remote.label_counts())
            else:
                labels = head.labels.classes if head else encoder.as_labels(remote.first_y(), warn=False)
                found = encoder.head_for(labels)
                weights = encoder.class_parameters(found)
            remote.n_classes = remote.n_targets = found.n_targets
            weight = weights["class_weight"]
            remote.open_block = partial(open_labels, head=found, batch_size=batch_size, class_weight=weight)
            yield remote, found
    else:
        rows = validate_rows(model, X, reset=head is None)
        labels = encoder.as_labels(y)
        check_consistent_length(rows, labels)
        weight = validate_weight(sample_weight, rows.shape[0])
        if head is None and weight is not None and not weight.any():
            # Rows of weight zero do not define classes.
            raise NoWeightError
        found, numbers, weights = encoder.encode(labels, weight)
        names = getattr(model, "feature_names_in_", None)
        yield ArrayRows(rows, numbers[:, None], weight, batch_size=batch_size, feature_names=names, **weights), found


@dataclass(frozen=True)
class _LabelEncoder:
    """Encodes y as class indices, in the first call and, given a head, in later ones."""

    name: str
    head: ClassifierHead | None
    classes: Any
    class_weight: Any

    @property
    def is_balanced(self) -> bool:
        """Whether the weights of the classes depend on those of their rows."""
        return isinstance(self.class_weight, str)

    def as_labels(self, y: Any, *, warn: bool = True) -> Array:
        """Return y as an array of labels."""
        return as_labels(y, self.name, first=self.head is None and self.classes is None, warn=warn)

    def head_for(self, labels: Array) -> ClassifierHead:
        """Return the head; in the first call, a new one of the declared classes or of the labels."""
        if self.head is None:
            return ClassifierHead(Labels.of(labels, self.classes))
        if self.classes is not None:
            require_known(self.classes, self.head.labels.classes)
        return self.head

    def from_counts(self, values: Array, n_rows: Array) -> tuple[ClassifierHead, dict[str, Any]]:
        """Return the head and the class parameters, given all labels and the number or weight of the rows of each."""
        head, _, parameters = self.encode(self.as_labels(values), n_rows)
        return head, parameters

    def encode(self, labels: Array, weight: Array | None) -> tuple[ClassifierHead, NDArray[np.intp], dict[str, Any]]:
        """Return the head, the class indices of labels, and the class parameters of training rows."""
        head = self.head_for(labels)
        numbers = self._positions(labels, head)
        return head, numbers, self.class_parameters(head, np.bincount(numbers, weight, head.n_targets))

    def numbers(self, head: ClassifierHead) -> Callable[[Array], Float64Array]:
        """Return a function that encodes y of a block as one column of class indices."""
        return lambda y: self._positions(as_labels(y, self.name, warn=False), head)[:, None].astype(np.float64)

    def _positions(self, labels: Array, head: ClassifierHead) -> NDArray[np.intp]:
        # A class can be added only to a model with training rows.
        return head.labels.positions(labels, "" if self.head is None else ", or call add_class with it")

    def class_parameters(self, head: ClassifierHead, counts: Array | None = None) -> dict[str, Any]:
        """Return the number of classes and their weights (None if all are one); ``counts`` are rows per class."""
        weight = self.class_weight
        if self.is_balanced:
            if counts is None:
                raise ValueError(NOT_BALANCED)
            weight = balanced_weights(counts)
        elif weight is not None and not isinstance(weight, np.ndarray):
            weight = _weights_by_label(weight, head.labels.classes.tolist())
        return {"n_classes": head.n_targets, "class_weight": weight}


def _weights_by_label(class_weight: Mapping[Any, float], labels: list[Any]) -> Float64Array:
    """Return one weight per class."""
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight has {unknown[0]!r}, which is not one of the classes.")
    weights: Float64Array = np.array([class_weight.get(label, 1.0) for label in labels], dtype=np.float64)
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError("class_weight must be positive: to ignore a class, leave out its rows.")
    return weights
