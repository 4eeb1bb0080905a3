"""Names for the kinds of array that pass between the modules."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array: TypeAlias = NDArray[Any]
"""A dense array of any dtype, as it comes from the caller."""

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""A dense array of float32 or float64."""

Float64Array: TypeAlias = NDArray[np.float64]
"""What every state and every fitted attribute is made of."""

SparseRows: TypeAlias = sparse.csr_matrix | sparse.csr_array
"""Sparse rows; columns-first matrices are converted once, when they come in."""

Rows: TypeAlias = Array | SparseRows
"""Rows of data, dense or sparse."""
