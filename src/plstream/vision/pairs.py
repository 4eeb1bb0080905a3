"""Pairs of images: the absolute difference of their features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._types import Array


def pair_differences(features: Array, pairs: Any) -> NDArray[np.float32]:
    """Return |a - b|, feature by feature, for pairs of rows.

    Parameters
    ----------
    features : ndarray of shape (n_images, n_features)
        Features of images.
    pairs : array-like of shape (n_pairs, 2)
        Numbers of rows.

    Returns
    -------
    differences : ndarray of shape (n_pairs, n_features), float32
        One row a pair.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.vision.pairs import pair_differences
    >>> pair_differences(np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 0.0]]), [[0, 1], [2, 2]])
    array([[2., 1.],
           [0., 0.]], dtype=float32)
    """
    first, second = np.asarray(pairs, dtype=np.intp).T
    difference = np.asarray(features[first], dtype=np.float32)
    difference -= features[second]
    return np.abs(difference, out=difference)
