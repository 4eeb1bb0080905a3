"""Labels as responses: one column a class, one where a row is of the class and zero elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._types import Array, Float64Array


def as_labels(y: Any) -> Array:
    """Return labels as an array of one dimension, of text or of numbers."""
    labels: Array = np.asarray(y)
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels.flat):
        labels = labels.astype(str)
    if labels.ndim != 1:
        raise ValueError(f"Labels must have one dimension, not {labels.ndim}: pass target='values' for responses.")
    if labels.dtype.kind not in "biufUS":
        raise ValueError("Labels must be all text, or all numbers.")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("Input y contains NaN or infinity: every row needs a label.")
    return labels


def is_text(y: Any) -> bool:
    """Return whether y holds text."""
    values: Array = np.asarray(y)
    return values.dtype.kind in "US" or (values.dtype.kind == "O" and any(isinstance(v, str) for v in values.flat))


def classes_of(labels: Array) -> Array:
    """Return the classes in ascending order."""
    classes: Array = np.unique(labels)
    if len(classes) < 2:
        raise ValueError("There is only one class: pass all labels that will ever come as classes= in the first call.")
    return classes


def one_hot(labels: Array, classes: Array) -> Float64Array:
    """Return a column for each class."""
    columns: Array = labels[:, None] == classes
    unknown = ~columns.any(axis=1)
    if unknown.any():
        raise ValueError(
            f"Label {labels[unknown][0]} is not among the classes of the first call: pass all labels that will ever "
            "come as classes= in the first call."
        )
    responses: Float64Array = columns.astype(np.float64)
    return responses
