"""Labels or values: how y becomes columns of numbers, the same way in every call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.labels import KINDS, Labels
from .._core.types import Array, Float64Array


@dataclass(frozen=True)
class Targets:
    """What y is, decided at the first call.

    Attributes
    ----------
    classes : ndarray, or None for values
        The labels in ascending order.
    kind : str
        What labels are made of.
    is_vector : bool
        Whether y has one dimension.
    n_columns : int
        Columns that y is turned into: one for each response; one for two classes, else one for each class.
    """

    classes: Array | None
    kind: str
    is_vector: bool
    n_columns: int

    @classmethod
    def of(cls, y: Array, classes: Any, target: str) -> Targets:
        """Decide by the parameter ``target``, and if that is "auto" by the type of y and whether classes are given."""
        if not is_labels(y, classes, target):
            if classes is not None:
                raise ValueError("classes are for labels, but target='values': drop one of the two.")
            return cls(None, "values", y.ndim == 1, 1 if y.ndim == 1 else y.shape[1])
        labels = Labels.of(y, classes)
        known = labels.classes
        return cls(known, labels.kind, True, 1 if len(known) == 2 else len(known))

    def numbers(self, y: Array) -> Float64Array:
        """Return values as they are, one column a response, and labels as one column of positions among the classes."""
        if self.classes is None:
            return self._values(y)
        return Labels(self.classes, self.kind).positions(y)[:, None].astype(np.float64)

    def columns(self, numbers: Float64Array) -> Float64Array:
        """Return the columns that a recursion learns: values as they are, and labels as -1 and +1."""
        if self.classes is None:
            return numbers
        if self.n_columns == 1:
            return 2.0 * numbers - 1.0
        return np.where(numbers == np.arange(self.n_columns), 1.0, -1.0)

    def decode(self, values: Float64Array) -> Array:
        """Return the labels that predicted columns stand for, or the values with as many dimensions as y has."""
        if self.classes is not None:
            index = values[:, 0] > 0 if self.n_columns == 1 else values.argmax(axis=1)
            labels: Array = self.classes[index.astype(np.intp)]
            return labels
        return values[:, 0] if self.is_vector else values

    def require_same(self, classes: Any) -> None:
        """Raise ValueError if classes are given again and differ."""
        known = np.empty(0) if self.classes is None else self.classes
        Labels(known, self.kind).require_same(classes)

    def _values(self, y: Array) -> Float64Array:
        if y.dtype.kind not in "biuf":
            raise ValueError(f"y must hold numbers, not {KINDS[y.dtype.kind]}.")
        values: Float64Array = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        if values.shape[1] != self.n_columns:
            raise ValueError(f"y has {values.shape[1]} target(s), but the model has {self.n_columns}.")
        return values


def is_labels(y: Array, classes: Any, target: str) -> bool:
    """Return whether y holds labels and not values."""
    return classes is not None or y.dtype.kind != "f" if target == "auto" else target == "labels"
