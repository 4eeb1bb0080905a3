"""Labels or values: how y becomes columns of numbers, the same way in every call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from .._types import Array, Float64Array

# What the kinds of dtype are called.
_KINDS = {
    "b": "truth values",
    "i": "integers",
    "u": "integers",
    "f": "floats",
    "U": "text",
    "S": "text",
}


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
        require_label_vector(y)
        known = np.unique(y) if classes is None else _known_classes(classes, y)
        if len(known) < 2:
            raise ValueError(
                f"y has only one class, {known[0]}: pass all labels that will ever come as classes= in the first call."
            )
        return cls(known, _KINDS[y.dtype.kind], True, 1 if len(known) == 2 else len(known))

    def numbers(self, y: Array) -> Float64Array:
        """Return values as they are, one column a response, and labels as one column of positions among the classes."""
        if self.classes is None:
            return self._values(y)
        require_label_vector(y)
        kind = _KINDS[y.dtype.kind]
        if kind != self.kind:
            raise ValueError(f"Labels were {self.kind} in the first call, and now are {kind}: keep to one type.")
        sought = self._as_class(y)
        index = np.minimum(np.searchsorted(self.classes, sought), len(self.classes) - 1)
        found = self.classes[index]
        # A number that has become another one to fit the type of the classes may have become that of a class.
        unknown = (found != sought) | (found.astype(y.dtype) != y)
        if y.dtype.kind == "u" and found.dtype.kind == "i":
            unknown |= found < 0
        if unknown.any():
            raise ValueError(
                f"Label {y[unknown][0]} is not among the classes of the first call: "
                "pass all labels that will ever come as classes= in the first call."
            )
        return index[:, None].astype(np.float64)

    def _as_class(self, y: Array) -> Array:
        """Return labels in the type of the classes, if both are integers: else they would be compared as floats."""
        assert self.classes is not None
        both_integers = y.dtype.kind in "iu" and self.classes.dtype.kind in "iu"
        return y.astype(self.classes.dtype, copy=False) if both_integers else y

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
        if classes is not None and (self.classes is None or not np.array_equal(_as_classes(classes), self.classes)):
            raise ValueError("classes differ from those of the first call: pass them once, or the same every time.")

    def _values(self, y: Array) -> Float64Array:
        if y.dtype.kind not in "biuf":
            raise ValueError(f"y must hold numbers, not {_KINDS[y.dtype.kind]}.")
        values: Float64Array = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        if values.shape[1] != self.n_columns:
            raise ValueError(f"y has {values.shape[1]} target(s), but the model has {self.n_columns}.")
        return values


def is_labels(y: Array, classes: Any, target: str) -> bool:
    """Return whether y holds labels and not values."""
    return classes is not None or y.dtype.kind != "f" if target == "auto" else target == "labels"


def as_target(y: Any, name: str) -> Array:
    """Return y as an array of one or two dimensions; objects become numbers if they are numbers, else text."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None: pass labels or values as y.")
    target: Array = np.asarray(y)
    if target.dtype.kind == "O":
        # Data frames of nullable types come as objects, too, with a missing value of their own kind.
        target = _of_objects(target, "y")
    if target.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers or labels.")
    if target.dtype.kind not in _KINDS:
        raise ValueError(f"y must hold numbers or labels, not values of type {target.dtype}.")
    if target.ndim == 2 and target.shape[1] == 0:
        raise ValueError("y has no columns.")
    if target.ndim not in {1, 2}:
        raise ValueError(f"y must have one or two dimensions, not {target.ndim}.")
    return target


def require_label_vector(y: Array) -> None:
    """Raise ValueError unless y has one dimension and no NaN."""
    if y.ndim == 2:
        raise ValueError("Labels must be in one column: pass y with one dimension, or target='values'.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity: every row needs a label.")


def _known_classes(classes: Any, y: Array) -> Array:
    known = _as_classes(classes)
    if (known.dtype.kind in "US") != (y.dtype.kind in "US"):
        raise ValueError(
            f"classes are {_KINDS.get(known.dtype.kind, known.dtype)}, but y holds {_KINDS[y.dtype.kind]}: "
            "give both the same type."
        )
    return known


def _as_classes(classes: Any) -> Array:
    """Return the labels in any collection in ascending order."""
    if not isinstance(classes, Iterable) or isinstance(classes, str):
        raise ValueError("classes must be a list of two labels or more.")  # noqa: TRY004
    known = np.asarray(classes) if hasattr(classes, "dtype") else np.array(list(classes), dtype=object)
    if known.dtype.kind == "O" and known.size:
        known = _of_objects(known, "classes")
    if known.dtype.kind == "f" and np.isnan(known).any():
        raise ValueError("classes contain NaN, which is no label.")
    if known.ndim != 1 or len(np.unique(known)) < 2:
        raise ValueError("classes must be a list of two labels or more.")
    return np.unique(known)


def _of_objects(y: Array, name: str) -> Array:
    kinds = {_kind_of_object(label) for label in y.flat}
    if kinds == {"text"}:
        return y.astype(str)
    if kinds == {"bool"}:
        return y.astype(bool)
    try:
        return y.astype(np.int64 if kinds <= {"bool", "integer"} else np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must hold numbers, or labels that are all text.") from None


def _kind_of_object(label: Any) -> str:
    if isinstance(label, str):
        return "text"
    if isinstance(label, bool | np.bool_):
        return "bool"
    return "integer" if isinstance(label, Integral) else "other"
