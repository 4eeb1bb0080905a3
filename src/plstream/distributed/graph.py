"""Graphs of Dask collections, divided into units of work that read their blocks one after the other.

As separate tasks, blocks would stay in the workers' memory, and move between workers, until they are used. All tasks
that only one block needs are therefore merged into the task that uses it. A thread then holds one block at a time, and
the result of a unit is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

from .._core.errors import NonFiniteError, import_optional
from ..data import DataError

# Blocks in the memory of workers, possibly different ones, are joined only up to this size: they would be transferred
# again with every read.
_LARGEST_JOURNEY_BYTES = 1 << 20

Key: TypeAlias = Any
Graph: TypeAlias = dict[Key, Any]


def are_delayed(blocks: Any) -> bool:
    """Return whether this is a list of delayed blocks."""
    return isinstance(blocks, list | tuple) and bool(blocks) and all(hasattr(type(b), "__dask_graph__") for b in blocks)


def is_dask_frame(X: Any) -> bool:
    """Return whether a collection is a dataframe, or one of its columns."""
    return hasattr(X, "npartitions") and hasattr(X, "divisions")


def is_future(value: Any) -> bool:
    """Return whether a value is in the memory of a cluster."""
    return type(value).__name__ == "Future" and type(value).__module__.startswith("distributed.")


def graph_of(*collections: Any) -> tuple[Graph, list[list[Key]]]:
    """Return the optimised tasks of collections or of delayed blocks, and the keys of the blocks of each."""
    dask = import_optional("dask", "A Dask collection", "distributed")
    # The optimize of a frame joins small partitions, differently for X and y, which then no longer match.
    collections = tuple(
        frame.expr.simplify().lower_completely() if is_dask_frame(frame) and hasattr(frame, "expr") else frame
        for frame in collections
    )
    keys = [
        [block.key for block in collection]
        if are_delayed(collection)
        else [*dask.core.flatten(collection.__dask_keys__())]
        for collection in collections
    ]
    frames = [i for i, collection in enumerate(collections) if is_dask_frame(collection)]
    arrays = [i for i, collection in enumerate(collections) if i not in frames and not are_delayed(collection)]
    graph: Graph = {}
    if arrays:
        # Together: tasks that X and y share, such as the chunk of a file, are computed once.
        merged = dask.highlevelgraph.HighLevelGraph.merge(*(collections[i].__dask_graph__() for i in arrays))
        # Optimising an array drops futures.
        graph.update((key, value) for key, value in merged.items() if is_future(value))
        graph.update(collections[arrays[0]].__dask_optimize__(merged, [key for i in arrays for key in keys[i]]))
    for collection in collections:
        if are_delayed(collection):
            graph.update((key, task) for block in collection for key, task in block.__dask_graph__().items())
    for i in frames:
        graph.update(collections[i].__dask_graph__())
    return graph, keys


class LoadedBlock(NamedTuple):
    """A block on the worker that uses it: its number, that of its first row if known, and X, y and others by name."""

    number: int
    first_row: int | None
    parts: Mapping[str, Any]

    @property
    def where(self) -> str:
        """Its name in messages."""
        return f"block {self.number}" + ("" if self.first_row is None else f" (rows from {self.first_row} on)")


@dataclass(frozen=True)
class Recipe:
    """How to compute a block: tasks that no other block needs, and inputs that others may share."""

    number: int
    first_row: int | None
    n_rows: int | None
    keys: Mapping[str, Key]
    tasks: Graph
    inputs: frozenset[Key]

    @property
    def size(self) -> int:
        """Number of rows, or one block if unknown."""
        return 1 if self.n_rows is None else self.n_rows

    def make(self, values: Mapping[Key, Any]) -> LoadedBlock:
        """Return the block."""
        from dask.core import get

        own = [key for key in self.keys.values() if key in self.tasks]
        made = dict(zip(own, get(self.tasks, own, cache={key: values[key] for key in self.inputs}), strict=True))
        parts = {name: made[key] if key in made else values[key] for name, key in self.keys.items()}
        return LoadedBlock(self.number, self.first_row, parts)


@dataclass(frozen=True)
class Unit:
    """Neighbouring blocks read by one task: computed one at a time, or held in memory. Opaque to Dask."""

    recipes: tuple[Recipe, ...] = ()
    held: tuple[LoadedBlock, ...] = ()

    @property
    def inputs(self) -> list[Key]:
        """Keys of the inputs of the blocks."""
        return sorted(frozenset[Key]().union(*(recipe.inputs for recipe in self.recipes)), key=str)

    @property
    def size(self) -> int:
        """Number of rows, or of blocks if unknown."""
        return sum(recipe.size for recipe in self.recipes)

    def load(self, values: Sequence[Any]) -> Iterator[LoadedBlock]:
        """Yield one block after another, computed from the values of the inputs."""
        yield from self.held
        named = dict(zip(self.inputs, values, strict=True))
        for recipe in self.recipes:
            yield recipe.make(named)

    def __sizeof__(self) -> int:
        # Dask uses it to track memory.
        from dask.sizeof import sizeof

        return object.__sizeof__(self) + sum(int(sizeof(part)) for block in self.held for part in block.parts.values())


def run_unit(unit: Unit, fold: Callable[[Iterator[LoadedBlock]], Any], values: Sequence[Any]) -> Any:
    """Return the result of ``fold`` for the blocks of a unit; errors name the block."""
    from .._core.threads import single_threaded_blas

    where = ""

    def located() -> Iterator[LoadedBlock]:
        nonlocal where
        for block in unit.load(values):
            where = block.where
            yield block
            del block

    # Blocks are processed in parallel: BLAS threads would oversubscribe the cores.
    with single_threaded_blas():
        try:
            return fold(located())
        except DataError:
            # The error already names the position in a file.
            raise
        except NonFiniteError as error:
            raise error.within(where) from None
        except ValueError as error:
            if not where:
                raise
            raise DataError(f"In {where}: {error}") from error


def recipes_of(
    graph: Graph, blocks: Sequence[Mapping[str, Key]], n_rows: Sequence[int] | None
) -> tuple[list[Recipe], Graph]:
    """Return the recipe of each block, and the tasks that several blocks need, which are left to Dask."""
    from dask.core import get_dependencies

    needs = {key: set() if is_future(task) else set(get_dependencies(graph, key)) for key, task in graph.items()}
    owner, shared = _owners(graph, blocks, needs)
    tasks: list[Graph] = [{} for _ in blocks]
    inputs: list[set[Key]] = [{key for key in keys.values() if key in shared} for keys in blocks]
    for key, number in owner.items():
        if key not in shared:
            tasks[number][key] = graph[key]
            inputs[number] |= needs[key] & shared
    first_rows = [None] * len(blocks) if n_rows is None else [0, *accumulate(n_rows)]
    recipes = [
        Recipe(i, first_rows[i], None if n_rows is None else n_rows[i], keys, tasks[i], frozenset(inputs[i]))
        for i, keys in enumerate(blocks)
    ]
    return recipes, {key: graph[key] for key in shared}


def units_of(recipes: Sequence[Recipe], wanted: int, row_bytes: int) -> list[Unit]:
    """Return about ``wanted`` units of neighbouring blocks.

    All inputs of a unit must be on one worker. If blocks have their own inputs, such as chunks in the workers' memory,
    only small ones are joined.
    """
    target = sum(recipe.size for recipe in recipes) / max(1, wanted)
    # Lists are appended to: there may be a hundred thousand blocks.
    groups: list[list[Recipe]] = []
    size = 0
    for recipe in recipes:
        size += recipe.size
        is_small = recipe.n_rows is not None and size * row_bytes <= _LARGEST_JOURNEY_BYTES
        if groups and size <= target and (recipe.inputs == groups[-1][0].inputs or is_small):
            groups[-1].append(recipe)
        else:
            groups.append([recipe])
            size = recipe.size
    return [Unit(tuple(group)) for group in groups]


def _owners(
    graph: Graph, blocks: Sequence[Mapping[str, Key]], needs: dict[Key, set[Key]]
) -> tuple[dict[Key, int], set[Key]]:
    """Return the first block that needs each task, and the tasks needed by more than one block."""
    owner: dict[Key, int] = {}
    shared: set[Key] = set()
    for number, keys in enumerate(blocks):
        stack = list(keys.values())
        while stack:
            key = stack.pop()
            if owner.setdefault(key, number) != number or is_future(graph[key]):
                shared.add(key)
            elif key not in shared:
                stack.extend(need for need in needs[key] if owner.get(need) != number)
    # Inputs of a shared task are needed by all blocks that share it.
    stack = list(shared)
    while stack:
        new = needs[stack.pop()] - shared
        shared |= new
        stack.extend(new)
    return owner, shared
