"""A few of many: rows to be drawn of any number of rows, and the points of a spectrum that a screen can show."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .._types import Array, Float64Array


class KeptRows:
    """The rows of the smallest keys, from blocks of any size.

    With random keys these are a sample in which every row is as likely as any other.

    Parameters
    ----------
    size : int
        Rows to keep.

    Attributes
    ----------
    columns : dict of str to ndarray
        What is known of the rows, which are in the order they came in.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.inspection.thinning import KeptRows
    >>> kept = KeptRows(2)
    >>> for block in ([3.0, 1.0], [0.5, 2.0]):
    ...     kept.add(np.array(block), {"value": np.array(block)})
    >>> kept.columns["value"]
    array([1. , 0.5])
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.columns: dict[str, Array] = {}
        self._keys = np.empty(0)

    def add(self, keys: Float64Array, columns: Mapping[str, Array]) -> None:
        """Take in a block."""
        keys = np.concatenate([self._keys, keys])
        kept = np.sort(np.argsort(keys, kind="stable")[: self.size])
        old, new = kept[kept < len(self._keys)], kept[kept >= len(self._keys)] - len(self._keys)
        self.columns = {
            name: np.concatenate([self.columns[name][old], column[new]]) if self.columns else column[new]
            for name, column in columns.items()
        }
        self._keys = keys[kept]


def extremes(values: Float64Array, n_bins: int) -> NDArray[np.intp]:
    """Return which points of a long line are enough to draw it: the least and the largest in each of many bins.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.inspection.thinning import extremes
    >>> line = np.zeros(1_000_000)
    >>> line[[123_456, 654_321]] = 1, -1
    >>> points = extremes(line, 500)
    >>> len(points) <= 1000, 123_456 in points, 654_321 in points
    (True, True, True)
    """
    n = len(values)
    if n <= 2 * n_bins:
        return np.arange(n)
    edges = np.linspace(0, n, n_bins + 1).astype(np.intp)
    bins = [(start, values[start:end]) for start, end in pairwise(edges)]
    return np.unique([start + at for start, part in bins for at in (np.argmin(part), np.argmax(part))])
