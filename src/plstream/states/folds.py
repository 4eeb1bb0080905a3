"""Streams side by side, one for each fold of the rows, and the states of all rows but those of a fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Generic, Self

import numpy as np
from numpy.typing import NDArray

from .._core.types import Float64Array, Rows
from .buffer import Buffered, State


class Folds(Generic[State]):
    """Rows dealt to several streams.

    Parameters
    ----------
    streams : iterable of Buffered
        An empty stream for each fold, all of one kind.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.states import Buffered, Folds, Gram
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> folds = Folds(Buffered(Gram(2, 1), block_rows=2) for _ in range(2))
    >>> folds = folds.update(X, X[:, :1], None, np.array([0, 1, 0]))
    >>> [state.n_rows for state in folds.states()], folds.current().n_rows
    ([2, 1], 3)
    """

    def __init__(self, streams: Iterable[Buffered[State]]) -> None:
        self.streams = tuple(streams)

    @property
    def state(self) -> State:
        """One of the states, for what they have in common."""
        return self.streams[0].state

    @property
    def n_rows(self) -> int:
        """Rows taken in."""
        return sum(stream.n_rows for stream in self.streams)

    @property
    def nbytes(self) -> int:
        """Memory that all states and buffers take."""
        return sum(stream.nbytes for stream in self.streams)

    def update(
        self, X: Rows, Y: Float64Array, sample_weight: Float64Array | None, folds: NDArray[np.integer[Any]]
    ) -> Self:
        """Take rows in, each in the fold of its number; a failure, or an interrupt, leaves everything as it was."""
        streams = list(self.streams)
        for fold in np.unique(folds):
            rows = np.flatnonzero(folds == fold)
            weight = None if sample_weight is None else sample_weight[rows]
            streams[fold] = streams[fold].branch().update(X[rows], Y[rows], weight)
        self.streams = tuple(streams)
        return self

    def merge(self, other: Folds[State]) -> Self:
        """Add to each fold the rows of the same fold of another one, which is left as it is."""
        pairs = zip(self.streams, other.streams, strict=True)
        self.streams = tuple(mine.branch().merge(theirs) for mine, theirs in pairs)
        return self

    @property
    def bytes_to_send(self) -> int:
        """Bytes of all states and of the rows that wait."""
        return sum(stream.bytes_to_send for stream in self.streams)

    def settled(self) -> Self:
        """Return folds of the same rows, none of which waits."""
        return type(self)(stream.settled() for stream in self.streams)

    def followed_by(self, later: Folds[State]) -> Self:
        """Return folds of these rows and then those of later ones; neither is changed."""
        pairs = zip(self.streams, later.streams, strict=True)
        return type(self)(mine.followed_by(theirs) for mine, theirs in pairs)

    def add_class(self, at: int) -> Self:
        """Let there be one class more, with the number ``at``, of which there are no rows yet."""
        for stream in self.streams:
            stream.add_class(at)
        return self

    def branch(self) -> Self:
        """Return folds that go on from here, as the streams do."""
        return type(self)(self.streams)

    def copy(self) -> Self:
        """Return folds of their own with the same content."""
        return type(self)(stream.copy() for stream in self.streams)

    def states(self) -> list[State]:
        """Return the state of each fold. The streams are not disturbed."""
        return [stream.current() for stream in self.streams]

    def current(self) -> State:
        """Return the state of all rows taken in."""
        return merged(self.states())


def merged(states: Sequence[State]) -> State:
    """Return the state of all rows of some states, which are left as they are."""
    return reduce(lambda total, state: total.merge(state), states[1:], states[0].copy())


def all_but_one(states: Sequence[State], others: Sequence[State] = ()) -> Iterator[State]:
    """Yield, for one state after the other, the state of all rows but its own, and of others if there are any.

    Sums are made anew and nothing is taken out of them, which would leave rounding errors behind. Each half of the
    states is merged once for all of the other half, so n states take about n log(n) merges, and room for log(n).
    """
    if len(states) == 1:
        yield others[0]
        return
    half = len(states) // 2
    first, second = states[:half], states[half:]
    yield from all_but_one(first, [merged([*others, *second])])
    yield from all_but_one(second, [merged([*others, *first])])
