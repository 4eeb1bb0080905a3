"""One stream per fold of the rows, and the states of all rows except those of a fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from sys import getsizeof as sizeof
from typing import Any, Generic, Self

import numpy as np
from numpy.typing import NDArray

from .._core.schema import Each, Object, stored
from .._core.types import Float64Array, Rows
from .buffer import Buffered, State
from .moments import TOO_LARGE, Moments, relative_means, two_sum

# Moments of up to this size, times the squared number of folds, are merged together: calls take longer than the work.
_LITTLE_BYTES = 1 << 20


@stored(
    {"streams": Each(Object(Buffered, m="m", q="q"))},
    {"there are at least two folds": lambda its: len(its.streams) > 1},
)
class Folds(Generic[State]):
    """Rows assigned to several streams.

    Parameters
    ----------
    streams : iterable of Buffered
        One empty stream per fold, all of the same type.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.states import Buffered, Folds, Gram
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> folds = Folds(Buffered(Gram(2, 1), block_rows=2) for _ in range(2))
    >>> folds = folds.with_rows(X, X[:, :1], None, np.array([0, 1, 0]))
    >>> [state.n_rows for state in folds.states()], folds.current().n_rows
    ([2, 1], 3)
    """

    def __init__(self, streams: Iterable[Buffered[State]]) -> None:
        self.streams = tuple(streams)

    @property
    def state(self) -> State:
        """The first state, for properties that all share."""
        return self.streams[0].state

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(stream.n_rows for stream in self.streams)

    @property
    def nbytes(self) -> int:
        """Memory of all states and buffers."""
        return sum(stream.nbytes for stream in self.streams)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(map(sizeof, self.streams))

    def with_rows(
        self, X: Rows, Y: Float64Array, sample_weight: Float64Array | None, folds: NDArray[np.integer[Any]]
    ) -> Self:
        """Return the streams with rows added to the given folds."""
        streams = list(self.streams)
        for fold in np.unique(folds):
            rows = np.flatnonzero(folds == fold)
            weight = None if sample_weight is None else sample_weight[rows]
            streams[fold] = streams[fold].with_rows(X[rows], Y[rows], weight)
        return type(self)(streams)

    def merged(self, other: Folds[State], *, later: bool = False) -> Self:
        """Return the streams merged fold by fold; if ``later``, the rows of ``other`` come last."""
        pairs = zip(self.streams, other.streams, strict=True)
        return type(self)(mine.merged(theirs, later=later) for mine, theirs in pairs)

    def with_classes(self, positions: Sequence[int]) -> Self:
        """Return the streams with new, empty classes at the given positions of the result."""
        return type(self)(stream.with_classes(positions) for stream in self.streams)

    def without_waiting(self) -> Self:
        """Return the streams with all rows absorbed."""
        return type(self)(stream.without_waiting() for stream in self.streams)

    def states(self) -> list[State]:
        """Return the state of each fold."""
        return [stream.current() for stream in self.streams]

    def current(self) -> State:
        """Return the state of all rows."""
        return merged(self.states())


def merged(states: Sequence[State]) -> State:
    """Return the merged state; the states are unchanged."""
    return reduce(lambda total, state: total.merge(state), states[1:], states[0].copy())


def all_but_one(states: Sequence[State], others: Sequence[State] = ()) -> Iterator[State]:
    """Yield, for each state, the merged state of all the other states and of ``others``.

    Sums are recomputed rather than subtracted, because subtraction would leave rounding errors. By recursive halving,
    each half of the states is merged once for the whole other half: n states take about n log(n) merges, and memory for
    log(n) states.
    """
    if len(states) == 1:
        yield others[0]
        return
    half = len(states) // 2
    first, second = states[:half], states[half:]
    yield from all_but_one(first, [merged([*others, *second])])
    yield from all_but_one(second, [merged([*others, *first])])


def training_states(states: Sequence[State]) -> list[State]:
    """Return, for each of several states, the merged state of all the others, followed by that of all states."""
    if type(states[0]) is Moments and len(states) ** 2 * states[0].nbytes <= _LITTLE_BYTES:
        return _training_moments(states)
    training = [*all_but_one(states)]
    return [*training, merged([training[-1], states[-1]])]


def _training_moments(folds: Sequence[Any]) -> list[Any]:
    """Return the same for moments, by a few operations on all of them together."""
    n, (m, q) = len(folds), folds[0].shape
    included = 1.0 - np.eye(n + 1, n)
    weights = included * [fold.weight for fold in folds]
    total = weights.sum(axis=1)
    shares = weights / total[:, None]
    # Of X and y side by side.
    origins, offsets, squares = (
        np.array([np.concatenate([getattr(fold, f"x_{name}"), getattr(fold, f"y_{name}")]) for fold in folds])
        for name in ("origin", "offset", "squares")
    )
    origin, offset, means = relative_means(origins, offsets)
    set_means = shares @ means
    origins, offsets = two_sum(origin, offset + set_means)
    differences = means - set_means[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        squares = included @ squares + (weights[:, None] @ differences**2)[:, 0]
    if not np.isfinite(squares).all():
        raise ValueError(TOO_LARGE)
    weighted = (weights[:, :, None] * differences[:, :, :m]).transpose(0, 2, 1)
    crosses = np.array([fold.cross for fold in folds]).reshape(n, -1)
    columns: dict[str, Any] = {
        "forgetting": [1.0] * (n + 1),
        "n_rows": (included @ [fold.n_rows for fold in folds]).astype(int).tolist(),
        "weight": total.tolist(),
        "typical_weight": (shares @ [fold.typical_weight for fold in folds]).tolist(),
        "cross": (included @ crosses).reshape(n + 1, m, q) + weighted @ differences[:, :, m:],
    }
    for name, both in (("origin", origins), ("offset", offsets), ("squares", squares)):
        columns[f"x_{name}"], columns[f"y_{name}"] = both[:, :m], both[:, m:]
    sets = [Moments.__new__(Moments) for _ in range(n + 1)]
    for state, values in zip(sets, zip(*columns.values(), strict=True), strict=True):
        vars(state).update(zip(columns, values, strict=True))
    return sets
