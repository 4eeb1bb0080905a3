r"""The moments and the full Gram matrix: exact PLS from one pass, for up to a few thousand features.

.. math::
    G \leftarrow G + G' + f \delta_x \delta_x^T

with f and :math:`\delta_x` as for the moments. The sums are additive, so states merge.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._types import Float64Array
from ..sources.blocks import Block
from .moments import Moments, moments_of


class Gram(Moments):
    """Moments with the matrix of sums (x - mean)(x - mean)'.

    It squares the condition of X, so directions of very small variance are known less well than from the data itself.

    Parameters
    ----------
    n_columns, n_targets : int
        Number of features and of responses.
    forgetting : float in (0, 1], default=1.0
        Factor by which the weight of everything seen before shrinks with every row.

    Attributes
    ----------
    gram : ndarray of shape (n_columns, n_columns)
        Sum of (x - mean)(x - mean)'.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.statistics import Gram
    >>> X = np.array([[1.0, 0.0], [2.0, 1.0], [6.0, 2.0]])
    >>> state = Gram(2, 1).update(X, X[:, :1])
    >>> action, square = state.apply(np.array([1.0, 0.0]))
    >>> action.tolist(), square
    ([14.0, 5.0], 14.0)
    """

    rounding = 1e-15
    # Squares are all there is: a direction's variance has the rounding error of the largest one.
    variance_resolution = 1e-15

    def __init__(self, n_columns: int, n_targets: int, *, forgetting: float = 1.0) -> None:
        super().__init__(n_columns, n_targets, forgetting=forgetting)
        self.gram = np.zeros((n_columns, n_columns))

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        """Return Gv and v'Gv."""
        action = self.gram @ v
        return action, float(v @ action)

    def summarise(self, block: Block) -> Gram:
        """Return the state of a block's rows alone."""
        X = block.X.toarray() if sparse.issparse(block.X) else block.X
        X = np.ascontiguousarray(X, dtype=np.float64)
        moments = moments_of(block._replace(X=X))
        centred = X - moments.x_mean
        if block.weight is not None:
            centred *= np.sqrt(block.weight)[:, None]
        summary = Gram.__new__(Gram)
        vars(summary).update(vars(moments), gram=centred.T @ centred)
        return summary

    def _shrink(self, factor: float) -> None:
        super()._shrink(factor)
        self.gram *= factor

    def _add_squares(self, other: Moments, dx: Float64Array, dy: Float64Array, f: float) -> None:
        assert isinstance(other, Gram)
        super()._add_squares(other, dx, dy, f)
        self.gram += other.gram
        if f > 0:
            root = np.sqrt(f) * dx
            self.gram += np.outer(root, root)
