"""Results for the rows of a Dask collection, which are computed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.errors import import_optional
from .._core.types import Array
from .collections import are_delayed, in_whole_rows, is_frame


def lazily(X: Any, function: Callable[[Any], Array], sample: Array) -> Any:
    """Return ``function`` of the rows of every block of X, as a Dask array, or as a list if X is one.

    ``sample`` is what the function returns for some rows.
    """
    X = in_whole_rows(X)
    if are_delayed(X):
        delayed = import_optional("dask", "A list of delayed blocks", "distributed").delayed
        return [delayed(function)(block) for block in X]
    meta = np.empty((0, *sample.shape[1:]), sample.dtype)
    if is_frame(X):
        return X.map_partitions(function, meta=meta)
    if sample.ndim == 1:
        return X.map_blocks(function, drop_axis=1, dtype=meta.dtype, meta=meta)
    return X.map_blocks(function, chunks=(X.chunks[0], sample.shape[1:]), dtype=meta.dtype, meta=meta)
