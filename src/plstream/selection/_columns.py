"""Features a few at a time: what is computed for each of them by itself takes the memory of a block, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from .._core.progress import track
from .._core.threads import ordered_map
from .._core.types import Array, Float64Array

Result = TypeVar("Result")

_BLOCK_BYTES = 8 << 20
# With few rows, what is computed of a feature takes more memory than the feature.
_LEAST_ROWS = 256


def map_features(function: Callable[[Float64Array], Result], X: Array, label: str) -> Iterator[tuple[slice, Result]]:
    """Yield blocks of columns with ``function`` of each, in order.

    The function is given the columns of a block as the rows of an array of its own, which it may change.
    """
    n, m = X.shape
    width = max(1, _BLOCK_BYTES // (8 * max(n, _LEAST_ROWS)))
    blocks = [slice(start, min(start + width, m)) for start in range(0, m, width)]

    def run(columns: slice) -> tuple[slice, Result]:
        return columns, function(np.array(X[:, columns].T, dtype=np.float64, order="C"))

    results = ordered_map(run, blocks)
    return track(results, label, m, lambda result: result[0].stop - result[0].start, "features")
