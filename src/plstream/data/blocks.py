"""Blocks of rows: what is read at a time, and what states absorb."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.types import Float64Array, Rows


class Block(NamedTuple):
    """Some rows: X as the caller has it, Y in float64 with one column a response, and weights or None.

    Of labels, Y is one column with the numbers of the classes. It stands for a response for each class, which is one
    for the rows of the class and zero for all others, but that is never written out.
    """

    X: Rows
    Y: Float64Array
    weight: Float64Array | None
    compiled: bool = False
    """Whether to use compiled loops: X is dense, and part of something large."""
    n_classes: int = 0
    """Number of classes, if Y is of labels."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_targets(self) -> int:
        """Number of responses."""
        return self.n_classes or int(self.Y.shape[1])

    @property
    def classes(self) -> NDArray[np.intp]:
        """The classes of the rows, by number."""
        return self.Y[:, 0].astype(np.intp)

    def present(self) -> Block:
        """Return the block without its rows of weight zero: such a row counts as absent."""
        if self.weight is None or (self.weight > 0).all():
            return self
        rows = np.flatnonzero(self.weight > 0)
        return self._replace(X=self.X[rows], Y=self.Y[rows], weight=self.weight[rows])

    def weighted(self, class_weight: Float64Array | None) -> Block:
        """Return the block with weights times those of the classes."""
        if class_weight is None:
            return self
        weight = class_weight[self.classes]
        return self._replace(weight=weight if self.weight is None else self.weight * weight)
