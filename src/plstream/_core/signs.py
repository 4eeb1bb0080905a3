"""The signs of components, which PLS and PCA do not determine: the entry of largest magnitude is positive."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Float = TypeVar("Float", bound=np.floating[Any])


def peak_sign(vector: NDArray[Float]) -> float:
    """Return the sign of the entry of largest magnitude of one vector: -1 or 1."""
    return -1.0 if len(vector) and vector[np.abs(vector).argmax()] < 0 else 1.0


def peak_signs(vectors: NDArray[Float]) -> NDArray[Float]:
    """Return the sign of the entry of largest magnitude of each column: -1 or 1."""
    if not len(vectors):
        return np.ones(vectors.shape[1:], vectors.dtype)
    peaks = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0, keepdims=True), axis=0)[0]
    return np.where(peaks < 0, -1, 1).astype(vectors.dtype)
