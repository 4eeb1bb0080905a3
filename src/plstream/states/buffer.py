"""Buffered: rows are collected into blocks of a fixed size before a state absorbs them.

A stream arrives in chunks of any size, often one row at a time. Blocks are cut by the row count since the start, so
results are bit-identical for any chunk size, and matrix products are large. The cost of compressing a sketch does not
depend on how sparse the new rows are, so blocks of sparse rows are larger: they are cut by the number of entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, Generic, Self, TypeVar

import numpy as np
from scipy import sparse

from .._core.schema import Count, Number, Numbers, Object, OrMissing, Tuple, stored
from .._core.types import Float64Array, FloatArray, Rows
from ..rows import Block
from .gram import Gram
from .moments import Moments
from .ranges import require_range, require_size
from .sketch import MOST_ROWS, Sketch

State = TypeVar("State", bound=Moments)

# Sums of squares of smaller numbers do not overflow.
_FAR_FROM_OVERFLOW = 1e100
_ONE = np.ones(1)
# A block of sparse rows takes at most this share of the numbers of a dense block, or has as many rows: then compressing
# the sketch costs about as much as the products with these rows, and memory is that of dense rows.
_SPARSE_SHARE = 0.5


def _is_x(its: Any) -> bool:
    """Return whether buffered rows are dense and fewer than a block, or valid in CSR format for a sketch."""
    entries, columns, ends = (getattr(its, name, None) for name in ("_entries", "_columns", "_ends"))
    if entries is None or columns is None or ends is None:
        return len(its._X) == its.n_waiting < its.block_rows and entries is columns is ends is None
    state = its.state
    return bool(
        not len(its._X)
        and getattr(state, "compressed", False)
        # Rows for the first compression of a seed are dense.
        and (state.errors.unresolved == 0 or state.held.pieces[0].shape[0] != state.errors.rotations.shape[0])
        and (np.diff(ends, prepend=0, append=len(entries)) >= 0).all()
        and ends[-1:].max(initial=0) == len(entries)
        and columns.max(initial=-1) < its._X.shape[1]
    )


def _is_y(Y: Float64Array, n_targets: int) -> bool:
    """Return whether Y has one column per response, or one of class indices."""
    return Y.shape[1] == n_targets or (Y.shape[1] == 1 and bool(np.isin(Y, np.arange(n_targets)).all()))


@stored(
    {
        "state": Object(Gram, Sketch, m="m", q="q"),
        "block_rows": Count(1, MOST_ROWS),
        "n_waiting": Count(size="w?"),
        "_peaks": Tuple(Number(0), Number(0)),
        "_X": Numbers(None, "m", dtypes=("float64", "float32")),
        "_Y": Numbers("w?", None),
        "_weight": Numbers("w?", least=0),
        # Rows in CSR format, instead of dense ones.
        "_entries": OrMissing(Numbers("e?", dtypes=("float64", "float32"))),
        "_columns": OrMissing(Numbers("e?", dtypes=("int64",), least=0)),
        "_ends": OrMissing(Numbers("w?", dtypes=("int64",), least=0)),
    },
    {
        "fewer rows wait than make a block, or sparse ones": _is_x,
        "blocks have 1024 rows, or those of the sketch": lambda its: its.block_rows == getattr(its.state, "size", 1024),
        "y has all responses, or class indices": lambda its: _is_y(its._Y, len(its.state.y_squares)),
    },
)
class Buffered(Generic[State]):
    """A state and the buffered rows that it has not absorbed yet.

    Streams are immutable: ``with_rows`` and similar methods return a new one. A failure thus leaves the old stream
    intact, and results can be computed from it while the next one is built.

    Parameters
    ----------
    state : Moments or subclass
        The state to update.
    block_rows : int
        Number of rows that the state absorbs at a time.
    of_labels : bool, default=False
        Whether Y is one column of class indices, see :class:`Moments`.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.states import Buffered, Gram
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> stream = Buffered(Gram(2, 1), block_rows=2).with_rows(X, X[:, :1])
    >>> stream.state.n_rows, stream.current().n_rows
    (2, 3)
    """

    def __init__(self, state: State, block_rows: int, *, of_labels: bool = False) -> None:
        n_columns, n_targets = state.shape
        self.state = state
        self.block_rows = block_rows
        self.n_waiting = 0
        self._peaks = (0.0, 0.0)
        self._buffer = _Buffer.of(0, n_columns, 1 if of_labels else n_targets)
        # Sparse rows, if these wait instead: blocks of decreasing size.
        self._sparse: tuple[Block, ...] = ()

    @property
    def of_labels(self) -> bool:
        """Whether Y is one column of class indices."""
        return bool(self._buffer.Y.shape[1] < self.state.shape[1])

    @property
    def n_rows(self) -> int:
        """Number of rows, absorbed or buffered."""
        return self.state.n_rows + self.n_waiting

    @property
    def nbytes(self) -> int:
        """Memory of the state and the buffer."""
        buffer = self._buffer
        return self.state.nbytes + buffer.X.nbytes + buffer.Y.nbytes + buffer.weight.nbytes + self._sparse_nbytes

    def __sizeof__(self) -> int:
        # Dask uses it to track memory. Only the rows in use are sent, not the whole buffer.
        buffer = self._buffer
        n_dense = 0 if self._sparse else self.n_waiting
        waiting = sum(rows[:n_dense].nbytes for rows in (buffer.X, buffer.Y, buffer.weight))
        return object.__sizeof__(self) + self.state.nbytes + waiting + self._sparse_nbytes

    @property
    def _sparse_nbytes(self) -> int:
        arrays = ((X.data, X.indices, X.indptr, Y, weight) for X, Y, weight, *_ in self._sparse)
        return sum(array.nbytes for array in chain.from_iterable(arrays))

    def with_rows(self, X: Rows, Y: Float64Array, sample_weight: Float64Array | None = None) -> Self:
        """Return the stream with rows added; raise ValueError if any are not finite, too large or too small."""
        weight = np.ones(len(Y)) if sample_weight is None else sample_weight
        return self._with_checked_rows(X, Y, weight, self._require_range(X, Y, weight))

    def _with_checked_rows(self, X: Rows, Y: Float64Array, weight: Float64Array, peaks: tuple[float, float]) -> Self:
        twin = self._twin()
        is_sparse = sparse.issparse(X)
        if not self._sparse and self.n_waiting + np.count_nonzero(weight) >= self.block_rows:
            twin.state = self.state.copy()
        if is_sparse and not weight.all():
            present = np.flatnonzero(weight)
            X, Y, weight = X[present], Y[present], weight[present]
        if twin._sparse and not is_sparse and weight.any():
            # Dense rows end a block of sparse ones.
            twin._absorb_waiting(self.state)
        start = 0
        while start < len(Y):
            if is_sparse and twin._holds_sparse_rows:
                n_added = twin._append_sparse(X, Y, weight, start)
                start += n_added
                if not n_added:
                    twin._absorb_waiting(self.state)
                continue
            rows = slice(start, start + twin.block_rows - twin.n_waiting)
            block = Block(X[rows], Y[rows], weight[rows]).present()
            start = rows.stop
            if block.n_rows == twin.block_rows and not sparse.issparse(block.X):
                twin._absorb(twin.state, block)
                continue
            twin._append(block)
            if twin.n_waiting == twin.block_rows:
                twin._absorb_waiting(self.state)
        twin._peaks = peaks if twin.n_waiting else (0.0, 0.0)
        return twin

    def with_one(self, X: FloatArray, Y: Float64Array) -> Self | None:
        """Return the stream with one row buffered, or None if that is not enough: then use ``with_rows``."""
        if not self.n_waiting or self.n_waiting + 1 >= self.block_rows or self._sparse:
            return None
        largest = max(-X.min(), X.max()), max(-Y.min(), Y.max())
        # Larger rows have been buffered without overflow. A comparison with NaN is false.
        if not all(new <= old <= _FAR_FROM_OVERFLOW for new, old in zip(largest, self._peaks, strict=True)):
            return None
        twin = self._twin()
        twin._append(Block(X, Y, _ONE))
        return twin

    def merged(self, other: Buffered[State], *, later: bool = False) -> Self:
        """Return a stream with the rows of both; if ``later``, those of ``other`` come last."""
        state = self._copy_of_current().settle()
        if later:
            state.forget(other.n_rows)
        return self._around(state.merge(other.current()))

    def with_classes(self, positions: Sequence[int]) -> Self:
        """Return the stream with new classes without rows, at the given positions in the result."""
        state, waiting = self.state.copy(), self._waiting()
        Y = waiting.Y
        for at in positions:
            state.add_class(at)
            Y = np.where(at <= Y, Y + 1, Y)
        twin = self._around(state)
        if self._sparse:
            twin._sparse, twin.n_waiting = (waiting._replace(Y=Y),), self.n_waiting
        elif waiting.n_rows:
            twin._append(waiting._replace(Y=Y))
        twin._peaks = self._peaks
        return twin

    def with_state(self, state: State) -> Self:
        """Return a stream with the same buffered rows for another state."""
        twin = self._twin()
        twin.state = state
        return twin

    def without_waiting(self) -> Self:
        """Return a stream with all rows absorbed, which is smaller to send to another process."""
        return self._around(self._copy_of_current().settle())

    def current(self) -> State:
        """Return the state of all rows, not settled (see :meth:`Sketch.settle`)."""
        return self._copy_of_current() if self.n_waiting else self.state

    def _copy_of_current(self) -> State:
        """Return a copy of the state of all rows, not settled."""
        state = self.state.copy()
        if self.n_waiting:
            self._absorb(state, self._waiting())
        return state

    def _around(self, state: State) -> Self:
        """Return a stream of a state, without buffered rows."""
        return type(self)(state, self.block_rows, of_labels=self.of_labels)

    def _twin(self) -> Self:
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def _absorb(self, state: State, block: Block) -> None:
        """Let a state of this stream absorb a block."""
        assert block.weight is not None
        state.update(block.X, block.Y, None if (block.weight == 1.0).all() else block.weight)

    def _absorb_waiting(self, shared: State) -> None:
        """Let the state, or a copy if it is shared with another stream, absorb the buffered rows."""
        if self.state is shared:
            self.state = shared.copy()
        self._absorb(self.state, self._waiting())
        self.state.settle()
        self.n_waiting, self._sparse, self._buffer = 0, (), self._buffer.copy(0, self._buffer.n_places)

    @property
    def _holds_sparse_rows(self) -> bool:
        """Whether sparse rows that come next are buffered as such."""
        if not isinstance(self.state, Sketch) or (self.n_waiting and not self._sparse):
            return False
        return self.state.compresses_sparse_rows

    def _append_sparse(self, X: Rows, Y: Float64Array, weight: Float64Array, start: int) -> int:
        """Buffer rows from ``start`` on that fit in the present block, and return their number."""
        # With Y, the weight, the end of the row, and the coefficients of as many combinations as the sketch has rows.
        n_others = Y.shape[1] + 2 + self.block_rows
        most = int(_SPARSE_SHARE * self.block_rows * X.shape[1])
        most -= sum(block.X.nnz + n_others * block.n_rows for block in self._sparse)
        ends = X.indptr[start + 1 :] - X.indptr[start]
        n_fitting = int(np.searchsorted(ends + n_others * np.arange(1, len(ends) + 1), most, side="right"))
        n_rows = min(max(n_fitting, self.block_rows - self.n_waiting, 0), len(ends))
        if n_rows:
            rows, places = slice(start, start + n_rows), slice(X.indptr[start], X.indptr[start + n_rows])
            ends = np.concatenate([[0], ends[:n_rows]])
            copied = sparse.csr_array((X.data[places].copy(), X.indices[places].copy(), ends), (n_rows, X.shape[1]))
            copied.sum_duplicates()
            blocks = [*self._sparse, Block(copied, Y[rows].copy(), weight[rows].copy())]
            # Rows that come one by one are not copied more than a few times.
            while len(blocks) > 1 and blocks[-2].n_rows <= blocks[-1].n_rows:
                blocks[-2:] = [_joined(blocks[-2:])]
            self._sparse = tuple(blocks)
            self.n_waiting += n_rows
        return n_rows

    def _append(self, block: Block) -> None:
        X = block.X.toarray() if sparse.issparse(block.X) else block.X
        dtype = np.result_type(self._buffer.X.dtype, X.dtype)
        rows = slice(self.n_waiting, self.n_waiting + block.n_rows)
        is_full = rows.stop > self._buffer.n_places
        if self._buffer.n_taken != self.n_waiting or is_full or dtype != self._buffer.X.dtype:
            # Another stream with the same history has taken the free rows, or there are too few.
            n_places = min(self.block_rows, 2 * rows.stop) if is_full else self._buffer.n_places
            self._buffer = self._buffer.copy(self.n_waiting, n_places, dtype)
        # Reserve them first, so that they are not free even after a failure.
        self._buffer.n_taken = rows.stop
        self._buffer.X[rows] = X
        self._buffer.Y[rows] = block.Y
        self._buffer.weight[rows] = block.weight
        self.n_waiting = rows.stop

    def _waiting(self) -> Block:
        if self._sparse:
            return _joined(self._sparse)
        rows = slice(self.n_waiting)
        return Block(self._buffer.X[rows], self._buffer.Y[rows], self._buffer.weight[rows])

    def _require_range(self, X: Rows, Y: Float64Array, weight: Float64Array) -> tuple[float, float]:
        """Return the largest |x| and |y| of these rows and the buffered ones.

        Raise ValueError unless the rows are finite, and the state has room for all of them.
        """
        buffered = self._buffer.weight[: 0 if self._sparse else self.n_waiting]
        total = float(weight.sum()) + float(buffered.sum())
        total += sum(float(np.sum(block.weight)) for block in self._sparse if block.weight is not None)
        peaks = self._peaks
        for start in range(0, len(Y), self.block_rows):
            rows = slice(start, start + self.block_rows)
            peaks = require_range(self.state, Block(X[rows], Y[rows], weight[rows]).present(), total, peaks)
        require_size(self.state, total, peaks)
        return peaks

    def __getstate__(self) -> dict[str, Any]:
        # Save only the buffered rows, not the free ones.
        X, Y, weight, *_ = self._waiting()
        kept = {name: value for name, value in vars(self).items() if name not in {"_buffer", "_sparse"}}
        if self._sparse:
            kept |= {"_entries": X.data, "_columns": X.indices.astype(np.int64), "_ends": X.indptr[1:].astype(np.int64)}
            X = np.empty((0, X.shape[1]), np.float32)
        return kept | {"_X": X.copy(), "_Y": Y.copy(), "_weight": np.array(weight)}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        of_labels = saved["_Y"].shape[1] < saved["state"].shape[1]
        self.__init__(saved["state"], saved["block_rows"], of_labels=of_labels)  # type: ignore[misc]
        Y, weight = saved["_Y"], saved["_weight"]
        if "_entries" in saved:
            places = saved["_columns"], np.concatenate([[0], saved["_ends"]])
            X = sparse.csr_array((saved["_entries"], *places), (len(Y), saved["_X"].shape[1]))
            self._sparse, self.n_waiting = (Block(X, Y, weight),), len(Y)
        else:
            self._append(Block(saved["_X"], Y, weight))
        self._peaks = saved["_peaks"]


def _joined(blocks: Sequence[Block]) -> Block:
    """Return the rows of several blocks of sparse rows as one."""
    if len(blocks) == 1:
        return blocks[0]
    X, Y, weight, *_ = zip(*blocks, strict=True)
    return Block(sparse.vstack(X, format="csr"), np.concatenate(Y), np.concatenate(weight))


class _Buffer:
    """Storage of buffered rows, shared by successive streams until one of them branches off.

    Its capacity grows as needed. It does not start with a whole block, whose size may come from an untrusted file.
    """

    def __init__(self, X: FloatArray, Y: Float64Array, weight: Float64Array, n_taken: int) -> None:
        self.X, self.Y, self.weight = X, Y, weight
        # Number of rows written by any of the streams.
        self.n_taken = n_taken

    @classmethod
    def of(cls, n_rows: int, n_columns: int, n_targets: int) -> _Buffer:
        """Return an empty buffer."""
        return cls(np.empty((n_rows, n_columns), np.float32), np.empty((n_rows, n_targets)), np.empty(n_rows), 0)

    @property
    def n_places(self) -> int:
        """Capacity in rows."""
        return len(self.weight)

    def copy(self, n_waiting: int, n_places: int, dtype: Any = None) -> _Buffer:
        """Return an independent copy of the first rows with the given capacity; the rest is uninitialized."""
        X: FloatArray = np.empty((n_places, self.X.shape[1]), dtype or self.X.dtype)
        Y, weight = np.empty((n_places, self.Y.shape[1])), np.empty(n_places)
        for copied, rows in ((X, self.X), (Y, self.Y), (weight, self.weight)):
            copied[:n_waiting] = rows[:n_waiting]
        return _Buffer(X, Y, weight, n_waiting)
