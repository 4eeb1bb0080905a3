"""Reduction: one state per block, computed where Dask stores the block, and merged as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cached_property, partial
from inspect import signature
from math import ceil, log2
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from .._core.errors import counted
from .._core.memory import format_bytes
from ..data import Source
from .graph import Graph, Key, LoadedBlock, Unit, are_delayed, graph_of, is_future, recipes_of, run_unit, units_of
from .workers import Workers

State = TypeVar("State")
Merge = Callable[[State, State], State]
"""Merges two states, the first one of earlier rows."""
Fold = Callable[[Iterator[LoadedBlock]], State | None]
"""Returns the state of some blocks, or None if they are empty."""

# Tasks per thread: enough that no thread is idle for long at the end, and little is lost with a worker.
_UNITS_PER_THREAD = 4
_FEWEST_UNITS = 16


def map_reduce(
    blocks: Iterable[Any], make_state: Callable[[Any], State | None], merge: Merge[State] | None = None
) -> State:
    """Return the merged state of all blocks.

    Parameters
    ----------
    blocks : iterable, or list of dask.delayed.Delayed
        The blocks, of any type. Those of an iterable are processed one after the other in this process; delayed ones by
        Dask. With a ``Client``, the workers of its cluster are used, and neither blocks nor their states are
        transferred to this process.
    make_state : callable
        Returns the state of a block, or None if it is empty.
    merge : callable, default=None
        Merges two states, the first one of earlier blocks, which it may change. By default ``first.merge(second)``,
        with ``later=True`` if supported: with forgetting, the rows of the second block came later.

    Returns
    -------
    state : object
        The state of all blocks.

    Notes
    -----
    For n blocks, at most log2(n) + 2 states are in memory at a time: two states of equally many blocks are merged as
    soon as possible. With Dask, one task processes neighbouring blocks one after the other.

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
        remote = RemoteBlocks(graph, [{"block": key} for key in keys])
        fold = partial(_fold_one_by_one, make_state, merge)
        state: State | None = remote.reduce(fold, partial(_merge_copy, merge), "blocks")
    else:
        state = _merge_all(map(make_state, blocks), merge)
    if state is None:
        raise ValueError("All blocks are empty: pass at least one block with rows.")
    return state


def _merge_into_first(first: Any, second: Any) -> Any:
    in_order = {"later": True} if "later" in signature(first.merge).parameters else {}
    return first.merge(second, **in_order)


def _merge_copy(merge: Merge[State], first: State, second: State) -> State:
    """Merge two states without changing them: Dask may have to repeat a task."""
    return merge(deepcopy(first), second)


def _fold_one_by_one(
    make_state: Callable[[Any], State | None], merge: Merge[State], blocks: Iterator[LoadedBlock]
) -> State | None:
    # A generator expression would keep a block while the next one is computed.
    return _merge_all(map(lambda block: make_state(block.parts["block"]), blocks), merge)  # noqa: C417


def _merge_all(states: Iterable[State | None], merge: Merge[State]) -> State | None:
    """Merge states as a balanced tree, in order, with as few in memory as possible."""
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


class RemoteBlocks:
    """Ordered blocks of rows that Dask workers compute and reduce.

    ``blocks`` are the keys in a Dask graph of the parts of each block, by name, and ``n_rows`` their numbers of rows,
    if known. ``block_bytes`` of a block are in memory at a time, by default all of it.
    """

    def __init__(
        self,
        graph: Graph,
        blocks: Sequence[Mapping[str, Key]],
        *,
        n_rows: Sequence[int] | None = None,
        row_bytes: int = 0,
        block_bytes: int | None = None,
    ) -> None:
        self.workers = Workers.current()
        self.n_rows = n_rows
        self.row_bytes = row_bytes
        self._graph, self._blocks = graph, blocks
        self._largest_block = row_bytes * max(n_rows or [0]) if block_bytes is None else block_bytes
        self._needed = 0
        # Futures of the units kept in the workers' memory, by key.
        self._held: Graph | None = None
        self._decided = False

    @cached_property
    def _cut(self) -> tuple[list[Unit], Graph]:
        """The units, and the tasks that several of them need."""
        recipes, shared = recipes_of(self._graph, self._blocks, self.n_rows)
        wanted = max(_FEWEST_UNITS, _UNITS_PER_THREAD * self.workers.threads * self.workers.n_workers)
        return units_of(recipes, wanted, self.row_bytes), shared

    def reduce(self, fold: Fold[State], merge: Merge[State], label: str) -> State | None:
        """Return the results of ``fold`` for neighbouring blocks, merged as a tree, in order.

        ``merge`` changes neither of its two states.
        """
        graph, folded = self._folded(fold, "learn")
        token = uuid4().hex
        level, depth = folded, 0
        while len(level) > 1:
            above: list[Key] = []
            for i in range(0, len(level), 2):
                if i + 1 < len(level):
                    above.append((f"merge-{token}", depth, i // 2))
                    graph[above[-1]] = (_merge_present, merge, level[i], level[i + 1])
                else:
                    above.append(level[i])
            level, depth = above, depth + 1
        return self._compute(graph, level[0], folded, label) if level else None

    def first(self, look: Callable[[Mapping[str, Any]], Any]) -> Any:
        """Return the result of ``look`` for the parts of the first block."""
        graph, keys = self._folded(partial(_look_at_first, look), "look", n_units=1)
        return self._compute(graph, keys[0], [], "a first look")

    def require_room(self, work: int, state: int, advice: str) -> None:
        """Raise MemoryError unless every worker has enough memory for all of its threads.

        Each thread needs a block, its inputs, and working memory, in addition to states that wait to be merged.
        """
        usable = self.workers.usable
        threads = self.workers.threads
        waiting = 2 * threads + ceil(log2(max(1, len(self._cut[0]))))
        self._needed = threads * (2 * self._largest_block + work) + waiting * state
        if usable is not None and self._needed > usable:
            raise MemoryError(
                f"A worker with {counted(threads, 'thread')} requires about {format_bytes(self._needed)}: for each "
                f"thread two chunks of up to {format_bytes(self._largest_block)} and {format_bytes(work)} of working "
                f"memory, and {waiting} states of {format_bytes(state)}; but only {format_bytes(usable)} may be used: "
                f"{advice}."
            )

    def hold_if_few(self, n_rows: int | None, *, allow_missing: bool = False) -> None:
        """Keep the blocks on the workers if these have enough memory; otherwise recompute them in each read.

        With ``allow_missing``, files may have missing values.
        """
        if self._decided or n_rows is None:
            return
        self._decided = True
        # Data already in the workers' memory is not kept twice.
        if any(is_future(self._graph[keys["X"]]) for keys in self._blocks):
            return
        if self.row_bytes and self.workers.can_hold(n_rows * self.row_bytes, self._needed):
            graph, keys = self._folded(partial(_hold, allow_missing=allow_missing), "hold")
            client = self.workers.client
            kept = self.workers.get(graph, keys) if client is None else client.get(graph, keys, sync=False)
            self._held = dict(zip(keys, kept, strict=True))

    def let_go(self) -> None:
        """Release the blocks on the workers, which would stay there as long as this object is referenced."""
        if self._held is not None:
            for value in self._held.values():
                if is_future(value):
                    value.release()
            self._held, self._decided = None, False

    def _folded(
        self, fold: Callable[[Iterator[LoadedBlock]], Any], name: str, n_units: int | None = None
    ) -> tuple[Graph, list[Key]]:
        """Return a graph that folds all units or the first few, and the keys of the results."""
        token = uuid4().hex
        units, shared = self._cut
        # One entry shared by all tasks: it may be large.
        entry = f"with-{token}"
        graph: Graph = {**(shared if self._held is None else self._held), entry: fold}
        tasks = [(run_unit, unit, entry, unit.inputs) for unit in units]
        if self._held is not None:
            tasks = [(run_unit, held, entry, []) for held in self._held]
        folded = {(f"{name}-{token}", i): task for i, task in enumerate(tasks[:n_units])}
        return graph | folded, list(folded)

    def _compute(self, graph: Graph, key: Key, folded: Sequence[Key], label: str) -> Any:
        sizes = [unit.size for unit in self._cut[0]]
        unit = "blocks" if self.n_rows is None else "rows"
        return self.workers.compute(graph, key, dict(zip(folded, sizes, strict=False)), label, sum(sizes), unit)


def _look_at_first(look: Callable[[Mapping[str, Any]], Any], blocks: Iterator[LoadedBlock]) -> Any:
    return look(next(blocks).parts)


def _merge_present(merge: Merge[State], first: State | None, second: State | None) -> State | None:
    if first is None or second is None:
        return first if second is None else second
    return merge(first, second)


def _hold(blocks: Iterator[LoadedBlock], *, allow_missing: bool) -> Unit:
    """Return the blocks as a unit held in memory."""
    held = []
    for block in blocks:
        source = block.parts["X"]
        if isinstance(source, Source):
            source.allow_missing = allow_missing
            columns = tuple(np.concatenate(column) for column in zip(*source.records(), strict=True))
            held.append(block._replace(parts={"X": source.part(columns, source.first_row)}))
        else:
            held.append(block)
    return Unit(held=tuple(held))
