"""Rows gathered to blocks of a fixed size before a state absorbs them.

A stream comes in chunks of any size, often one row at a time. Cut into blocks by the count of rows since the start,
it looks the same to the state however the rows came: the result is the same to the last bit, and products are large.
"""

from __future__ import annotations

from typing import Any, Generic, Self, TypeVar

import numpy as np
from scipy import sparse

from .._types import Float64Array, Rows
from ..sources.blocks import Block
from .moments import Moments, require_range

State = TypeVar("State", bound=Moments)


class Buffered(Generic[State]):
    """A state behind a buffer of rows.

    Parameters
    ----------
    state : Moments or a kind of it
        The state to feed.
    block_rows : int
        Rows that the state absorbs at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.statistics import Buffered, Gram
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> stream = Buffered(Gram(2, 1), block_rows=2).update(X, X[:, :1])
    >>> stream.state.n_rows, stream.current().n_rows
    (2, 3)
    """

    def __init__(self, state: State, block_rows: int) -> None:
        self.state = state
        self.block_rows = block_rows
        self.n_waiting = 0
        n_columns, n_targets = state.shape
        self._X = np.empty((block_rows, n_columns))
        self._Y = np.empty((block_rows, n_targets))
        self._weight = np.empty(block_rows)

    @property
    def n_rows(self) -> int:
        """Rows taken in, absorbed or waiting."""
        return self.state.n_rows + self.n_waiting

    @property
    def nbytes(self) -> int:
        """Memory that the state and the buffer take."""
        return self.state.nbytes + self._X.nbytes + self._Y.nbytes + self._weight.nbytes

    def update(self, X: Rows, Y: Float64Array, sample_weight: Float64Array | None = None) -> Self:
        """Take rows in; a failure leaves everything as it was."""
        block = Block(X, Y, sample_weight).present()
        weight = np.ones(block.n_rows) if block.weight is None else block.weight
        require_range(self.state, block.X, block.Y, weight.sum() + self._weight[: self.n_waiting].sum())
        start = 0
        while start < block.n_rows:
            rows = slice(start, start + self.block_rows - self.n_waiting)
            self._append(block.X[rows], block.Y[rows], weight[rows])
            start = rows.stop
            if self.n_waiting == self.block_rows:
                self._absorb(self.state)
                self.n_waiting = 0
        return self

    def current(self) -> State:
        """Return the state of all rows taken in. The stream is not disturbed."""
        if not self.n_waiting:
            return self.state
        state = self.state.copy()
        self._absorb(state)
        return state

    def merge(self, other: Buffered[State]) -> Self:
        """Add all rows that another stream has taken in; the other one is left as it is."""
        merged = self.current().copy().merge(other.current())
        self.state, self.n_waiting = merged, 0
        return self

    def __getstate__(self) -> dict[str, Any]:
        # Only the rows that wait are worth keeping.
        waiting = {name: getattr(self, name)[: self.n_waiting].copy() for name in ("_X", "_Y", "_weight")}
        return {**vars(self), **waiting}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__init__(saved["state"], saved["block_rows"])  # type: ignore[misc]
        self._append(saved["_X"], saved["_Y"], saved["_weight"])

    def _append(self, X: Rows, Y: Float64Array, weight: Float64Array) -> None:
        rows = slice(self.n_waiting, self.n_waiting + len(Y))
        self._X[rows] = X.toarray() if sparse.issparse(X) else X
        self._Y[rows] = Y
        self._weight[rows] = weight
        self.n_waiting = rows.stop

    def _absorb(self, state: State) -> None:
        rows = slice(self.n_waiting)
        weight = self._weight[rows]
        state.update(self._X[rows], self._Y[rows], None if (weight == 1.0).all() else weight)
