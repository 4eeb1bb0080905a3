"""Array types passed between modules."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""A dense array of any dtype, as passed by the caller."""

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""A dense array of float32 or float64."""

Float64Array: TypeAlias = NDArray[np.float64]
"""The type of all states and fitted attributes."""

Rows: TypeAlias = Any
"""Rows of data: an Array, or a SciPy sparse matrix in CSR format, for which there are no types."""
