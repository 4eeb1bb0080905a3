"""A few of many: rows to be drawn of any number of rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .._core.types import Array, Float64Array


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
    >>> from plstream.report.kept_rows import KeptRows
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
