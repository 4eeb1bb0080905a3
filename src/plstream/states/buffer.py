"""Rows gathered to blocks of a fixed size before a state absorbs them.

A stream comes in chunks of any size, often one row at a time. Cut into blocks by the count of rows since the start,
it looks the same to the state however the rows came: the result is the same to the last bit, and products are large.
"""

from __future__ import annotations

from typing import Any, Generic, Self, TypeVar

import numpy as np
from scipy import sparse

from .._core.types import Float64Array, FloatArray, Rows
from ..data.blocks import Block
from .moments import Moments, require_range, require_size

State = TypeVar("State", bound=Moments)


class Buffered(Generic[State]):
    """A state behind a buffer of rows.

    Parameters
    ----------
    state : Moments or a kind of it
        The state to feed.
    block_rows : int
        Rows that the state absorbs at a time.
    of_labels : bool, default=False
        Whether Y is one column of labels by number, see :class:`Moments`.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.states import Buffered, Gram
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> stream = Buffered(Gram(2, 1), block_rows=2).update(X, X[:, :1])
    >>> stream.state.n_rows, stream.current().n_rows
    (2, 3)
    """

    def __init__(self, state: State, block_rows: int, *, of_labels: bool = False) -> None:
        self.state = state
        self.block_rows = block_rows
        self.n_waiting = 0
        n_columns, n_targets = state.shape
        self._peaks = (0.0, 0.0)
        self._X: FloatArray = np.empty((block_rows, n_columns), np.float32)
        self._Y = np.empty((block_rows, 1 if of_labels else n_targets))
        self._weight = np.empty(block_rows)
        # Places in the buffer that have been written to, by this stream or by any that goes on from it.
        self._taken = [0]

    @property
    def of_labels(self) -> bool:
        """Whether Y is one column of labels by number."""
        return self._Y.shape[1] < self.state.shape[1]

    @property
    def n_rows(self) -> int:
        """Rows taken in, absorbed or waiting."""
        return self.state.n_rows + self.n_waiting

    @property
    def nbytes(self) -> int:
        """Memory that the state and the buffer take."""
        return self.state.nbytes + self._X.nbytes + self._Y.nbytes + self._weight.nbytes

    @property
    def bytes_to_send(self) -> int:
        """Bytes of the state and of the rows that wait."""
        return self.state.nbytes + sum(rows[: self.n_waiting].nbytes for rows in (self._X, self._Y, self._weight))

    def update(self, X: Rows, Y: Float64Array, sample_weight: Float64Array | None = None) -> Self:
        """Take rows in; a failure, or an interrupt, leaves everything as it was."""
        weight = np.ones(len(Y)) if sample_weight is None else sample_weight
        peaks = self._require_range(X, Y, weight)
        # What is absorbed changes the state in place, so that is done to a copy. Rows that only wait change nothing
        # before they are counted.
        absorbs = self.n_waiting + np.count_nonzero(weight) >= self.block_rows
        stream = self.copy() if absorbs else self
        start = 0
        while start < len(Y):
            rows = slice(start, start + stream.block_rows - stream.n_waiting)
            block = Block(X[rows], Y[rows], weight[rows]).present()
            start = rows.stop
            if block.n_rows == stream.block_rows and not sparse.issparse(block.X):
                stream._absorb(stream.state, block)
                continue
            stream._append(block)
            if stream.n_waiting == stream.block_rows:
                stream._absorb(stream.state, stream._waiting())
                stream.n_waiting, stream._taken = 0, [0]
        vars(self).update(vars(stream), _peaks=peaks if stream.n_waiting else (0.0, 0.0))
        return self

    def branch(self) -> Self:
        """Return a stream that goes on from here. The first of both to take rows in has the rest of the buffer."""
        # Not copy.copy, which would copy the rows that wait.
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def copy(self) -> Self:
        """Return a stream of its own with the same content."""
        twin = self.branch()
        twin.state = self.state.copy()
        twin._own_buffer()
        return twin

    def current(self) -> State:
        """Return the state of all rows taken in. The stream is not disturbed."""
        if not self.n_waiting:
            return self.state
        state = self.state.copy()
        self._absorb(state, self._waiting())
        return state

    def settled(self) -> Self:
        """Return a stream of the same rows, none of which waits: there is less to be sent."""
        return type(self)(self._own_current(), self.block_rows, of_labels=self.of_labels)

    def followed_by(self, later: Buffered[State]) -> Self:
        """Return a stream of these rows and then those of a later one; neither is changed."""
        state = self._own_current().forget(later.n_rows).merge(later.current())
        return type(self)(state, self.block_rows, of_labels=self.of_labels)

    def merge(self, other: Buffered[State]) -> Self:
        """Add all rows that another stream has taken in; the other one is left as it is."""
        merged = self._own_current().merge(other.current())
        self.state, self.n_waiting, self._peaks = merged, 0, (0.0, 0.0)
        return self

    def add_class(self, at: int) -> Self:
        """Let there be one class more, with the number ``at``, of which there are no rows yet."""
        self.state.add_class(at)
        waiting = self._Y[: self.n_waiting]
        waiting[waiting >= at] += 1
        return self

    def _own_current(self) -> State:
        """Return a copy of the state of all rows taken in."""
        return self.current() if self.n_waiting else self.state.copy()

    def __getstate__(self) -> dict[str, Any]:
        # Only the rows that wait are worth keeping.
        waiting = {name: getattr(self, name)[: self.n_waiting].copy() for name in ("_X", "_Y", "_weight")}
        kept = {**vars(self), **waiting}
        del kept["_taken"]
        return kept

    def __setstate__(self, saved: dict[str, Any]) -> None:
        of_labels = saved["_Y"].shape[1] < saved["state"].shape[1]
        self.__init__(saved["state"], saved["block_rows"], of_labels=of_labels)  # type: ignore[misc]
        self._append(Block(saved["_X"], saved["_Y"], saved["_weight"]))
        self._peaks = saved["_peaks"]

    def _append(self, block: Block) -> None:
        X = block.X.toarray() if sparse.issparse(block.X) else block.X
        if self._taken[0] != self.n_waiting:
            self._own_buffer()
        dtype = np.result_type(self._X.dtype, X.dtype)
        if dtype != self._X.dtype:
            self._X = self._with_waiting(self._X, dtype)
        rows = slice(self.n_waiting, self.n_waiting + block.n_rows)
        # First of all: whatever happens next, they are not free.
        self._taken[0] = rows.stop
        self._X[rows] = X
        self._Y[rows] = block.Y
        self._weight[rows] = block.weight
        self.n_waiting = rows.stop

    def _own_buffer(self) -> None:
        """Let the buffer be that of no other stream."""
        for name in ("_X", "_Y", "_weight"):
            rows = getattr(self, name)
            setattr(self, name, self._with_waiting(rows, rows.dtype))
        self._taken = [self.n_waiting]

    def _with_waiting(self, rows: FloatArray, dtype: Any) -> FloatArray:
        """Return a new array with those of the rows that wait; the others have no content."""
        copied: FloatArray = np.empty(rows.shape, dtype)
        copied[: self.n_waiting] = rows[: self.n_waiting]
        return copied

    def _waiting(self) -> Block:
        rows = slice(self.n_waiting)
        return Block(self._X[rows], self._Y[rows], self._weight[rows])

    def _require_range(self, X: Rows, Y: Float64Array, weight: Float64Array) -> tuple[float, float]:
        """Return the largest |x| and |y| of these rows and those that wait.

        Raise ValueError unless the rows are finite, and the state has room for all of them.
        """
        total = float(weight.sum()) + float(self._weight[: self.n_waiting].sum())
        peaks = self._peaks
        for start in range(0, len(Y), self.block_rows):
            rows = slice(start, start + self.block_rows)
            peaks = require_range(self.state, Block(X[rows], Y[rows], weight[rows]).present(), total, peaks)
        require_size(self.state, total, peaks)
        return peaks

    @staticmethod
    def _absorb(state: State, block: Block) -> None:
        assert block.weight is not None
        state.update(block.X, block.Y, None if (block.weight == 1.0).all() else block.weight)
