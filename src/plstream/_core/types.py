"""Names for the kinds of array that pass between the modules."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""A dense array of any dtype, as it comes from the caller."""

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""A dense array of float32 or float64."""

Float64Array: TypeAlias = NDArray[np.float64]
"""What every state and every fitted attribute is made of."""

Rows: TypeAlias = Any
"""Rows of data: an Array, or one of SciPy's sparse matrices in CSR format, for which there are no types."""
