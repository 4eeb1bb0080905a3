"""Whether y holds labels or values: decided in the first call and fixed afterwards.

Floats are values unless ``classes`` is given. Integers, booleans and strings are labels for online methods and
classifiers, and values for IncrementalPLS, which refuses strings. The parameter ``target`` decides explicitly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._missing import is_pandas_na, is_scalar_nan
from sklearn.utils.validation import column_or_1d

from .errors import counted
from .schema import Boolean, Choice, ClassLabels, Count, Object, OrNone, stored
from .types import Array, Float64Array
from .validation import as_numpy

# Names of dtype kinds.
KINDS = {
    "b": "booleans",
    "i": "integers",
    "u": "integers",
    "f": "floats",
    "U": "strings",
    "S": "strings",
}
# The same for single values.
_KINDS_OF_TYPES = {bool: "booleans", int: "integers", float: "floats", str: "strings", bytes: "strings"}
# Floats represent all integers up to this one exactly.
_LARGEST_EXACT = 2**53
_TELL_ALL = "all labels as classes= in the first call of partial_fit"


@stored()
@dataclass(frozen=True)
class Labels:
    """The labels of the first call, or those passed as classes, in ascending order."""

    classes: Annotated[Array, ClassLabels("k")]
    kind: Annotated[str, Choice(*dict.fromkeys(KINDS.values()))]

    @classmethod
    def of(cls, y: Array, classes: Any) -> Labels:
        """Return the labels that occur in y, or ``classes`` if given."""
        require_label_vector(y)
        known = np.unique(y) if classes is None else as_classes(classes)
        if (known.dtype.kind in "US") != (y.dtype.kind in "US"):
            raise ValueError(
                f"classes are {KINDS.get(known.dtype.kind, known.dtype)}, but y holds {KINDS[y.dtype.kind]}: use the "
                "same type for both."
            )
        if len(known) < 2:
            raise ValueError(f"y has only one class, {known[0]}: pass rows of at least two classes, or {_TELL_ALL}.")
        return cls(known, KINDS[y.dtype.kind])

    def positions(self, y: Array, or_else: str = "") -> NDArray[np.intp]:
        """Return labels as class indices; ``or_else`` is advice about unknown labels."""
        require_label_vector(y)
        kind = KINDS[y.dtype.kind]
        if kind != self.kind:
            raise ValueError(f"Labels were {self.kind} in the first call, but are {kind} now: use one type.")
        sought = y
        if y.dtype.kind in "iu" and self.classes.dtype.kind in "iu":
            # Otherwise integers of two types would be compared as floats.
            sought = y.astype(self.classes.dtype, copy=False)
        index = np.minimum(np.searchsorted(self.classes, sought), len(self.classes) - 1)
        found = self.classes[index]
        # A number rounded to the type of the classes may equal a class.
        unknown = (found != sought) | (found.astype(y.dtype) != y)
        if y.dtype.kind == "u" and found.dtype.kind == "i":
            unknown |= found < 0
        if unknown.any():
            label = y[unknown][0]
            raise ValueError(f"Label {label} is not among the classes of the first call: pass {_TELL_ALL}{or_else}.")
        return index

    def position_of(self, label: Any) -> int | None:
        """Return the index of a label, or None if this quick lookup cannot tell: then use :meth:`positions`."""
        if isinstance(label, np.generic):
            label = label.item()
        return self._positions.get((type(label), label)) if type(label) in _KINDS_OF_TYPES else None

    @cached_property
    def _positions(self) -> dict[tuple[type, Any], int]:
        """Indices by type and label, for types of the same kind as in the first call."""
        labels = enumerate(self.classes.tolist())
        return {(type(label), label): i for i, label in labels if _KINDS_OF_TYPES.get(type(label)) == self.kind}

    def __getstate__(self) -> dict[str, Any]:
        return {"classes": self.classes, "kind": self.kind}

    def with_label(self, label: Any) -> tuple[Labels, int]:
        """Return the labels with one added, and its index."""
        added = as_target([label], "add_class")
        if KINDS[added.dtype.kind] != self.kind:
            raise ValueError(f"Labels are {self.kind}, but {label!r} is not: pass a label of the same type.")
        if added[0] in self.classes:
            raise ValueError(f"{label!r} is a class already.")
        classes = united(self.classes, added)
        return Labels(classes, self.kind), int(np.searchsorted(classes, added.astype(classes.dtype)[0]))


@stored(
    rules={
        "there is one column for two classes, else one per class": lambda its: (
            its.labels is None or its.n_columns == (len(its.labels.classes) if len(its.labels.classes) > 2 else 1)
        ),
        "a vector has one column": lambda its: its.labels is not None or not its.is_vector or its.n_columns == 1,
    },
)
@dataclass(frozen=True)
class TargetEncoding:
    """The encoding of y as columns of numbers, and back: values unchanged, labels as -1 and +1."""

    labels: Annotated[Labels | None, OrNone(Object(Labels, k="k"))]
    """The labels, or None for values."""
    n_columns: Annotated[int, Count(1, size="q")]
    """Number of columns: one per response; one for two classes, else one per class."""
    is_vector: Annotated[bool, Boolean()]
    """Whether y has one dimension."""

    @classmethod
    def of(cls, y: Array, classes: Any, target: str) -> TargetEncoding:
        """Return the encoding for the first y, the classes passed with it, and ``target``."""
        if holds_labels(y, classes, target):
            labels = Labels.of(y, classes)
            n_classes = len(labels.classes)
            return cls(labels, 1 if n_classes == 2 else n_classes, is_vector=True)
        if classes is not None:
            raise ValueError("classes are for labels, but target='values': leave out one of the two.")
        return cls(None, 1 if y.ndim == 1 else y.shape[1], is_vector=y.ndim == 1)

    def require_same(self, classes: Any) -> None:
        """Raise ValueError if classes are passed again and differ."""
        known = np.empty(0) if self.labels is None else self.labels.classes
        if not np.array_equal(as_classes(classes), known):
            raise ValueError(
                "classes differ from those of the first call: pass them only once, or the same classes in every call."
            )

    def numbers(self, y: Array) -> Float64Array:
        """Return values with one column per response, and labels as one column of class indices."""
        if self.labels is not None:
            return self.labels.positions(y)[:, None].astype(np.float64)
        if y.dtype.kind not in "biuf":
            raise ValueError(f"y must hold numbers, not {KINDS[y.dtype.kind]}.")
        values: Float64Array = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        if values.shape[1] != self.n_columns:
            raise ValueError(f"y has {counted(values.shape[1], 'target')}, but the model has {self.n_columns}.")
        return values

    def numbers_of_one(self, y: Any) -> Float64Array | None:
        """Return the y of one row as numbers if it is clearly of the same kind as before, else None.

        If it returns None, call :meth:`numbers` with an array that holds only this y: it is slower, and raises the
        error.
        """
        if self.labels is not None:
            position = self.labels.position_of(y)
            return None if position is None else _as_array(position)
        kind = type(y)
        if kind is np.ndarray:
            return y[None] if y.dtype == np.float64 and y.shape == (self.n_columns,) else None
        is_number = kind is float or kind is np.float64 or (kind is int and abs(y) <= _LARGEST_EXACT)
        return _as_array(y) if is_number and self.n_columns == 1 else None

    def columns(self, numbers: Float64Array) -> Float64Array:
        """Return the columns that a recursion learns, given :meth:`numbers` of a few rows, to limit memory."""
        if self.labels is None:
            return numbers
        if self.n_columns == 1:
            return 2.0 * numbers - 1.0
        return np.where(numbers == np.arange(self.n_columns), 1.0, -1.0)

    def decode(self, columns: Float64Array) -> Array:
        """Return the labels of predicted columns, or the values with the dimensions of y."""
        if self.labels is not None:
            index = columns[:, 0] > 0 if self.n_columns == 1 else columns.argmax(axis=1)
            labels: Array = self.labels.classes[index.astype(np.intp)]
            return labels
        return columns[:, 0] if self.is_vector else columns


def _as_array(number: float) -> Float64Array:
    # Twice as fast as np.array([[number]]).
    array = np.empty((1, 1))
    array[0, 0] = number
    return array


def holds_labels(y: Array, classes: Any = None, target: str = "auto") -> bool:
    """Return whether y holds labels rather than values, from the parameter ``target`` and classes."""
    return classes is not None or y.dtype.kind != "f" if target == "auto" else target == "labels"


def as_target(y: Any, name: str) -> Array:
    """Return y as an array of one or two dimensions; objects become numbers if possible, else strings."""
    if y is None:
        raise ValueError(f"{name} requires y to be passed, but the target y is None: pass it as y.")
    target: Array = np.asarray(as_numpy(y, "y"))
    if target.dtype.kind == "O":
        # Data frames of nullable types also become objects, with their own missing value.
        target = _of_objects(target, "y")
    if target.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers or labels.")
    if target.dtype.kind not in KINDS:
        raise ValueError(f"y must hold numbers or labels, not values of type {target.dtype}.")
    if target.ndim == 2 and target.shape[1] == 0:
        raise ValueError("y has no columns.")
    if target.ndim not in {1, 2}:
        raise ValueError(f"y must have one or two dimensions, not {target.ndim}.")
    return target


def as_one_target(y: Any) -> Any:
    """Return the y of one row (a number, a label or several responses) as an array with one row."""
    return None if y is None else [y] if np.ndim(y) == 0 else np.asarray(y)[None]


def as_labels(y: Any, name: str, *, first: bool = False, warn: bool = True) -> Array:
    """Return y as labels in one dimension; in the first call, raise ValueError if they cannot be labels.

    Non-integer floats must be passed as classes. Two-dimensional y may raise a warning.
    """
    labels = as_target(y, name)
    if labels.ndim == 2:
        labels = column_or_1d(labels, warn=warn)
    if first and labels.dtype.kind == "f" and np.isfinite(labels).all() and (labels != np.round(labels)).any():
        raise ValueError(
            "Unknown label type: y holds floats that are not integers. Pass labels, or pass all such numbers as "
            "classes= in the first call of partial_fit."
        )
    return labels


def require_label_vector(y: Array) -> None:
    """Raise ValueError unless y has one dimension and no NaN."""
    if y.ndim == 2:
        raise ValueError("Labels must be in one column: pass y with one dimension, or target='values'.")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity: every row requires a label.")


def as_classes(classes: Any) -> Array:
    """Return the labels of a collection in ascending order."""
    classes = as_numpy(classes, "classes")
    if not isinstance(classes, Iterable) or isinstance(classes, str):
        raise ValueError("classes must be a list of at least two labels.")  # noqa: TRY004
    known = np.asarray(classes) if hasattr(classes, "dtype") else np.array(list(classes), dtype=object)
    if known.dtype.kind == "O" and known.size:
        known = _of_objects(known, "classes")
    if known.dtype.kind == "f" and np.isnan(known).any():
        raise ValueError("classes contain NaN, which is not a label.")
    if known.ndim != 1 or len(np.unique(known)) < 2:
        raise ValueError("classes must be a list of at least two labels.")
    return np.unique(known)


def united(first: Array, second: Array) -> Array:
    """Return the union of labels in ascending order; integers of any type stay integers."""
    kinds = {first.dtype.kind, second.dtype.kind}
    if kinds != {"i", "u"} or np.result_type(first, second).kind != "f":
        return np.union1d(first, second)
    labels = sorted({*first.tolist(), *second.tolist()})
    signed = labels[-1] < 2**63
    if not signed and labels[0] < 0:
        raise ValueError(f"No integer type holds both {labels[0]} and {labels[-1]}: use other labels.")
    return np.array(labels, np.int64 if signed else np.uint64)


def require_known(classes: Any, known: Array) -> None:
    """Raise ValueError if classes are passed again and one is unknown."""
    unknown = np.setdiff1d(as_classes(classes), known)
    if len(unknown):
        raise ValueError(f"{unknown[0]} is not among the classes of the first call: call add_class with it.")


def balanced_weights(counts: Array) -> Float64Array:
    """Return weights that give all non-empty classes the same total and preserve the number of rows."""
    weights: Float64Array = counts.sum() / max(1, np.count_nonzero(counts)) / np.where(counts > 0, counts, 1.0)
    return weights


def _of_objects(y: Array, name: str) -> Array:
    """Return objects as numbers, booleans or strings."""
    kinds = {_kind_of_object(label) for label in y.flat}
    if kinds == {"text"}:
        return y.astype(str)
    if kinds == {"bool"}:
        return y.astype(bool)
    try:
        return y.astype(np.int64 if kinds <= {"bool", "integer"} else np.float64)
    except (TypeError, ValueError, OverflowError):
        if name == "y" and any(label is None or is_scalar_nan(label) or is_pandas_na(label) for label in y.flat):
            raise ValueError("Input y contains NaN or None: every row requires a label.") from None
        raise ValueError(f"{name} must hold numbers, or labels that are all strings.") from None


def _kind_of_object(label: Any) -> str:
    if isinstance(label, str):
        return "text"
    if isinstance(label, bool | np.bool_):
        return "bool"
    return "integer" if isinstance(label, Integral) else "other"
