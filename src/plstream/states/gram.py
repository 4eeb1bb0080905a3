r"""The moments and the full Gram matrix: exact PLS from one pass, for up to a few thousand features.

.. math::
    G \leftarrow G + G' + f \delta_x \delta_x^T

with f and :math:`\delta_x` as for the moments. The sums are additive, so states merge.
"""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from scipy.linalg import blas

from .._core.schema import Numbers, stored
from .._core.types import Float64Array
from ..rows import Block
from .moments import Moments, centred_rows


@stored()
class Gram(Moments):
    """Moments with the matrix of sums (x - mean)(x - mean)'.

    Forming it squares the condition number of X, so results are accurate to about eps cond(X)^2, instead of
    eps cond(X): directions of very small variance are less accurate, or lost.

    Parameters
    ----------
    n_columns, n_targets : int
        Number of features and of responses.
    forgetting : float in (0, 1], default=1.0
        Factor by which the weight of all earlier rows shrinks with every row.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.states import Gram
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [6.0, 2.0]])
    >>> state = Gram(2, 1).update(X, X[:, :1])
    >>> action, square = state.apply(np.array([1.0, 0.0]))
    >>> action.tolist(), square
    ([14.0, 5.0], 14.0)
    """

    rounding = 1e-15
    # The variance of every direction has the rounding error of the largest variance.
    variance_resolution = 1e-15
    lost = 0.0
    subspace_error = np.zeros(0)

    upper: Annotated[Float64Array, Numbers("m", "m", any_order=True)]
    """The upper triangle of the sum of (x - mean)(x - mean)'; entries below it are meaningless."""

    def __init__(self, n_columns: int, n_targets: int, *, forgetting: float = 1.0) -> None:
        super().__init__(n_columns, n_targets, forgetting=forgetting)
        # Fortran order and a single triangle, so BLAS can update it in place.
        self.upper = np.zeros((n_columns, n_columns), order="F")

    @classmethod
    def of(cls, moments: Moments, rows: Float64Array) -> Self:
        """Return the state of rows, given their moments and the centred rows times the roots of their weights."""
        state = cls(*moments.shape)
        vars(state).update(vars(moments))
        state._add_product(rows)
        return state

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        """Return Gv and v'Gv."""
        action: Float64Array = blas.dsymv(1.0, self.upper, v)
        return action, float(v @ action)

    def merge(self, other: Moments) -> Self:
        """Add the rows of another state, which is left unchanged."""
        if not isinstance(other, Gram):
            raise TypeError(f"Only another Gram can be merged, not {type(other).__name__}.")
        row = self._between_means(other)
        super().merge(other)
        self.upper += other.upper
        self._add_product(row[None])
        return self

    def _summarise(self, block: Block) -> tuple[Moments, Float64Array]:
        return centred_rows(block)

    def _add(self, summary: Moments, rows: Float64Array) -> None:
        between = self._between_means(summary)
        super()._add(summary, rows)
        self._add_product(np.concatenate([rows, between[None]]))

    def _add_product(self, rows: Float64Array) -> None:
        """Add rows'rows, in place if the matrix is writable: BLAS would write even to memory mapped read-only."""
        in_place = self.upper.flags.writeable
        self.upper = blas.dsyrk(1.0, rows.T, beta=1.0, c=self.upper, overwrite_c=in_place)

    def shrink(self, factor: float) -> None:
        """Multiply the weight of everything absorbed so far by a factor."""
        super().shrink(factor)
        self.upper *= factor
