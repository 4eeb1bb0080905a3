"""``map_reduce``: a state of every block, and all of them merged as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeVar

from .collections import are_delayed, graph_of
from .graph import LoadedBlock
from .remote import Merge, RemoteBlocks

State = TypeVar("State")


def map_reduce(
    blocks: Iterable[Any], make_state: Callable[[Any], State | None], merge: Merge[State] | None = None
) -> State:
    """Return the merged state of all blocks.

    Parameters
    ----------
    blocks : iterable, or list of dask.delayed.Delayed
        The blocks, of any kind. Those of an iterable are worked on one after the other, here; delayed ones where Dask
        does its work: on the workers of a cluster if there is a ``Client``, and then neither blocks nor the states of
        single blocks come here.
    make_state : callable
        Makes a state of a block, or None if there is nothing in it.
    merge : callable, default=None
        Returns the state of two states, of which the first is that of earlier blocks. By default
        ``first.merge(second)``. It may change the first.

    Returns
    -------
    state : object
        The state of all blocks.

    Notes
    -----
    Of n blocks, no more than log2(n) + 2 states are in memory at a time: two of equally many blocks are merged as soon
    as there are two. With Dask, neighbouring blocks are worked on by one task, one after the other.

    Examples
    --------
    Any estimator with ``partial_fit`` and ``merge`` is a state:

    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.distributed import map_reduce
    >>> X = np.random.default_rng(0).normal(size=(1000, 20))
    >>> blocks = [X[start : start + 100] for start in range(0, 1000, 100)]
    >>> model = map_reduce(blocks, lambda block: IncrementalPLS(2).partial_fit(block, block[:, 0]))
    >>> model.n_samples_seen_
    1000
    """
    merge = merge or _merge_into_first
    if are_delayed(blocks):
        graph, (keys,) = graph_of(blocks)
        remote = RemoteBlocks(graph, [(key,) for key in keys])
        state: State | None = remote.reduce(_OneByOne(make_state, merge), _OnACopy(merge), "blocks")
    else:
        state = merged(map(make_state, blocks), merge)
    if state is None:
        raise ValueError("There are no blocks to make a state of: pass at least one that is not empty.")
    return state


def _merge_into_first(first: Any, second: Any) -> Any:
    """Return the first state after it has taken in the second."""
    return first.merge(second)


def merged(states: Iterable[State | None], merge: Merge[State]) -> State | None:
    """Merge states as a balanced tree, in their order, with as few of them at a time as that takes."""
    stack: list[tuple[int, State]] = []
    for state in states:
        if state is None:
            continue
        rank = 0
        while stack and stack[-1][0] == rank:
            state = merge(stack.pop()[1], state)  # noqa: PLW2901
            rank += 1
        stack.append((rank, state))
        del state
    last = stack.pop()[1] if stack else None
    while stack and last is not None:
        last = merge(stack.pop()[1], last)
    return last


@dataclass(frozen=True)
class _OnACopy:
    """Merges two states and leaves both as they are: Dask may have to do a task again."""

    merge: Merge[Any]

    def __call__(self, first: Any, second: Any) -> Any:
        return self.merge(deepcopy(first), second)


@dataclass(frozen=True)
class _OneByOne:
    """Makes a state of each of the blocks of a unit, and merges them."""

    make_state: Callable[[Any], Any]
    merge: Merge[Any]

    def __call__(self, blocks: Iterator[LoadedBlock]) -> Any:
        return merged(map(self._state_of, blocks), self.merge)

    def _state_of(self, block: LoadedBlock) -> Any:
        return self.make_state(block.parts[0])
