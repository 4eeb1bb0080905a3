"""Blocks that stay where Dask has them, as often as they are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil, log2
from typing import Any, TypeVar
from uuid import uuid4

from .._core.memory import format_bytes
from .graph import (
    Graph,
    Held,
    HeldUnit,
    Key,
    LoadedBlock,
    Unit,
    in_memory,
    is_future,
    recipes_of,
    run_unit,
    units_of,
)
from .workers import Workers

State = TypeVar("State")
Merge = Callable[[State, State], State]
"""Returns the state of two states, of which the first is that of earlier rows, and changes neither."""
Fold = Callable[[Iterator[LoadedBlock]], State | None]

# Tasks for each thread: enough that none is idle for long at the end, or much is lost with a worker.
_UNITS_A_THREAD = 4
_FEWEST_UNITS = 16


class RemoteBlocks:
    """Blocks of rows in the order of the rows, that are made and worked on by Dask's workers.

    Parameters
    ----------
    graph : dict
        Dask's tasks.
    blocks : sequence of tuples of keys
        The keys of what each block is made of.
    n_rows : sequence of int, optional
        Rows of each block, if they are known.
    row_bytes : int
        Bytes of a row.
    block_bytes : int, optional
        Bytes of a block that are in memory at a time. By default all of it.
    """

    def __init__(
        self,
        graph: Graph,
        blocks: Sequence[tuple[Key, ...]],
        *,
        n_rows: Sequence[int] | None = None,
        row_bytes: int = 0,
        block_bytes: int | None = None,
    ) -> None:
        self.workers = Workers.current()
        self.n_rows = n_rows
        self.row_bytes = row_bytes
        recipes, self._shared = recipes_of(graph, blocks, n_rows)
        wanted = max(_FEWEST_UNITS, _UNITS_A_THREAD * self.workers.threads * self.workers.n_workers)
        units = units_of(recipes, wanted, row_bytes)
        self._units: Sequence[Unit | HeldUnit] = units
        # What the blocks were before they were kept in memory.
        self._made_from: tuple[Graph, Sequence[Unit | HeldUnit]] | None = None
        self._sizes = [unit.size for unit in units]
        self._largest_block = row_bytes * max(n_rows or [0]) if block_bytes is None else block_bytes
        self._needed = 0
        # What is in the workers' memory already is not kept there twice.
        self._decided = any(is_future(graph[keys[0]]) for keys in blocks)

    def reduce(self, fold: Fold[State], merge: Merge[State], label: str) -> State | None:
        """Return what ``fold`` makes of the blocks, of neighbouring ones at a time, merged as a tree in their order."""
        graph, folded = self._folded(fold, "learn")
        token = uuid4().hex
        level, depth = folded, 0
        while len(level) > 1:
            above: list[Key] = []
            for i in range(0, len(level), 2):
                if i + 1 < len(level):
                    above.append((f"merge-{token}", depth, i // 2))
                    graph[above[-1]] = (_merged, merge, level[i], level[i + 1])
                else:
                    above.append(level[i])
            level, depth = above, depth + 1
        return self._compute(graph, level[0], folded, label) if level else None

    def first(self, look: Callable[[LoadedBlock], Any]) -> Any:
        """Return what ``look`` finds in the first block."""
        graph, keys = self._folded(_First(look), "look", self._units[:1])
        return self._compute(graph, keys[0], [], "a first look")

    def require_room(self, work: int, state: int, advice: str) -> None:
        """Raise MemoryError unless every worker has the memory that all of its threads need.

        Each thread has a block, what that is made from, and what the work on it takes. Beside them are states that
        wait to be merged.
        """
        usable = self.workers.usable
        threads = self.workers.threads
        waiting = 2 * threads + ceil(log2(max(1, len(self._units))))
        self._needed = threads * (2 * self._largest_block + work) + waiting * state
        if usable is not None and self._needed > usable:
            raise MemoryError(
                f"A worker with {threads} thread(s) needs about {format_bytes(self._needed)}: for each of them two "
                f"chunks of up to {format_bytes(self._largest_block)} and {format_bytes(work)} to work on one, and "
                f"{waiting} states of {format_bytes(state)}; it may take {format_bytes(usable)}: {advice}."
            )

    def hold_if_few(self, n_rows: int | None) -> None:
        """Keep the blocks on the workers from now on if these have enough memory, else let them be made again."""
        if self._decided or n_rows is None:
            return
        self._decided = True
        if not self.row_bytes or not self.workers.can_hold(n_rows * self.row_bytes, self._needed):
            return
        graph, keys = self._folded(_hold, "hold")
        held = dict(zip(keys, self.workers.keep(graph, keys), strict=True))
        self._made_from = self._shared, self._units
        self._shared, self._units = held, [HeldUnit([key]) for key in keys]

    def let_go(self) -> None:
        """Keep no blocks on the workers any longer: they would stay there as long as anything refers to this."""
        if self._made_from is not None:
            for value in self._shared.values():
                if is_future(value):
                    value.release()
            self._shared, self._units = self._made_from
            self._made_from, self._decided = None, False

    def _folded(
        self, fold: Callable[[Iterator[LoadedBlock]], Any], name: str, units: Sequence[Unit | HeldUnit] | None = None
    ) -> tuple[Graph, list[Key]]:
        """Return a graph in which every unit is folded, and the keys of the results."""
        token = uuid4().hex
        # One entry for all tasks: what it holds may be large.
        shared = f"with-{token}"
        graph: Graph = {**self._shared, shared: fold}
        keys = []
        for i, unit in enumerate(self._units if units is None else units):
            keys.append((f"{name}-{token}", i))
            graph[keys[-1]] = (run_unit, unit, shared, list(unit.inputs))
        return graph, keys

    def _compute(self, graph: Graph, key: Key, units: Sequence[Key], label: str) -> Any:
        sizes = dict(zip(units, self._sizes, strict=False))
        unit = "blocks" if self.n_rows is None else "rows"
        return self.workers.compute(graph, key, sizes, label, sum(self._sizes), unit)


class _First:
    """Looks at the first block alone."""

    def __init__(self, look: Callable[[LoadedBlock], Any]) -> None:
        self.look = look

    def __call__(self, blocks: Iterator[LoadedBlock]) -> Any:
        return self.look(next(blocks))


def _merged(merge: Merge[State], first: State | None, second: State | None) -> State | None:
    if first is None or second is None:
        return first if second is None else second
    return merge(first, second)


def _hold(blocks: Iterator[LoadedBlock]) -> Held:
    return Held([in_memory(block) for block in blocks])
