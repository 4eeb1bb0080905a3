"""A Dask graph cut into units of work that read their blocks one after the other.

As tasks of their own, blocks would wait in the workers' memory, and move between workers, until something is made of
them. So all tasks that one block needs, and no other, go into the task that uses it. Then a thread holds one block at a
time, however many there are, and what comes out of a unit is small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..data import DataError, Source

# Blocks that are in the memory of workers, perhaps of different ones, are brought together only if they are this small:
# with every read they would travel again.
_LARGEST_JOURNEY_BYTES = 1 << 20

Key: TypeAlias = Any
Graph: TypeAlias = dict[Key, Any]


class LoadedBlock(NamedTuple):
    """A block that is in memory: its number, that of its first row if it is known, and what it is made of."""

    number: int
    first_row: int | None
    parts: tuple[Any, ...]

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"block {self.number}" + ("" if self.first_row is None else f" (rows from {self.first_row} on)")


class Rows:
    """Rows of files, in something that Dask does not look into."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.source.bytes_in_memory


def rows_of(block: LoadedBlock) -> tuple[Any, ...]:
    """Return X, y and columns of a block, whichever kind it is; of files, X is a source."""
    first = block.parts[0]
    return (first.source, None) if isinstance(first, Rows) else block.parts


def in_memory(block: LoadedBlock) -> LoadedBlock:
    """Return a block of which nothing has to be read from files any more."""
    rows = block.parts[0]
    if not isinstance(rows, Rows):
        return block
    X, y = (np.concatenate(column) for column in zip(*rows.source.blocks(), strict=True))
    return block._replace(parts=(Rows(rows.source.part((X, y), rows.source.first_row)),))


@dataclass(frozen=True)
class Recipe:
    """How a block is made: by tasks that no other block needs, from values that others may need too."""

    number: int
    first_row: int | None
    n_rows: int | None
    keys: tuple[Key, ...]
    tasks: Graph
    inputs: frozenset[Key]

    @property
    def size(self) -> int:
        """Rows, or one block if their number is not known."""
        return 1 if self.n_rows is None else self.n_rows

    def make(self, values: Mapping[Key, Any]) -> LoadedBlock:
        """Return the block."""
        from dask.core import get

        own = [key for key in self.keys if key in self.tasks]
        made = dict(zip(own, get(self.tasks, own, cache={key: values[key] for key in self.inputs}), strict=True))
        parts = tuple(made[key] if key in made else values[key] for key in self.keys)
        return LoadedBlock(self.number, self.first_row, parts)


@dataclass(frozen=True)
class Unit:
    """Neighbouring blocks that one task reads, one at a time."""

    recipes: tuple[Recipe, ...]

    @property
    def inputs(self) -> list[Key]:
        """Keys of the values that the blocks are made from."""
        return sorted(frozenset[Key]().union(*(recipe.inputs for recipe in self.recipes)), key=str)

    @property
    def size(self) -> int:
        """Rows, or blocks if the number of rows is not known."""
        return sum(recipe.size for recipe in self.recipes)

    def load(self, values: Sequence[Any]) -> Iterator[LoadedBlock]:
        """Make one block after another from the values of the inputs."""
        named = dict(zip(self.inputs, values, strict=True))
        for recipe in self.recipes:
            yield recipe.make(named)


@dataclass(frozen=True)
class HeldUnit:
    """Blocks that are kept in memory, as the one input."""

    inputs: list[Key]

    def load(self, values: Sequence[Any]) -> Iterator[LoadedBlock]:
        """Yield the blocks."""
        yield from values[0].blocks


@dataclass(frozen=True)
class Held:
    """The blocks of a unit in memory, in something that Dask does not look into."""

    blocks: list[LoadedBlock]

    def __sizeof__(self) -> int:
        # It is counted by Dask as what it is, so that memory is kept in bounds.
        from dask.sizeof import sizeof

        return object.__sizeof__(self) + sum(int(sizeof(part)) for block in self.blocks for part in block.parts)


def located(blocks: Iterator[LoadedBlock], seen: list[str]) -> Iterator[LoadedBlock]:
    """Yield the blocks, with the place of the latest one in ``seen``."""
    for block in blocks:
        seen[:] = [block.where]
        yield block
        del block


def run_unit(unit: Unit | HeldUnit, fold: Any, values: Sequence[Any]) -> Any:
    """Return what ``fold`` makes of the blocks of a unit; errors of data say in which of them."""
    from .._core.threads import single_threaded_blas

    seen: list[str] = []
    # Threads are for blocks: with BLAS's own beside them there would be too many.
    with single_threaded_blas():
        try:
            return fold(located(unit.load(values), seen))
        except DataError:
            # It is known where in a file.
            raise
        except ValueError as error:
            if not seen:
                raise
            raise DataError(f"In {seen[0]}: {error}") from error


def recipes_of(
    graph: Graph, blocks: Sequence[tuple[Key, ...]], n_rows: Sequence[int] | None
) -> tuple[list[Recipe], Graph]:
    """Return how each block is made, and the tasks that are left to Dask: those that several blocks need."""
    needs = _dependencies(graph)
    owner, shared = _owners(graph, blocks, needs)
    tasks: list[Graph] = [{} for _ in blocks]
    inputs: list[set[Key]] = [{key for key in keys if key in shared} for keys in blocks]
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
    """Return the blocks in about as many units as wanted, of neighbours.

    All inputs of a unit have to be in one place. Where blocks have inputs of their own, such as chunks that are in the
    workers' memory already, only small ones are joined.
    """
    target = sum(recipe.size for recipe in recipes) / max(1, wanted)
    # Lists that grow: there may be a hundred thousand blocks.
    groups: list[list[Recipe]] = []
    size = 0
    for recipe in recipes:
        size += recipe.size
        if groups and size <= target and _fit_together(groups[-1][0], recipe, size * row_bytes):
            groups[-1].append(recipe)
        else:
            groups.append([recipe])
            size = recipe.size
    return [Unit(tuple(group)) for group in groups]


def _fit_together(first: Recipe, last: Recipe, n_bytes: int) -> bool:
    """Return whether the inputs of all blocks of a unit can be in one place."""
    return last.inputs == first.inputs or (last.n_rows is not None and n_bytes <= _LARGEST_JOURNEY_BYTES)


def _dependencies(graph: Graph) -> dict[Key, set[Key]]:
    from dask.core import get_dependencies

    return {key: set() if is_future(task) else set(get_dependencies(graph, key)) for key, task in graph.items()}


def is_future(value: Any) -> bool:
    """Return whether a value is in the memory of a cluster."""
    return type(value).__name__ == "Future" and type(value).__module__.startswith("distributed.")


def _owners(
    graph: Graph, blocks: Sequence[tuple[Key, ...]], needs: dict[Key, set[Key]]
) -> tuple[dict[Key, int], set[Key]]:
    """Return the first block that needs each task, and the tasks that are not for that block alone."""
    owner: dict[Key, int] = {}
    shared: set[Key] = set()
    for number, keys in enumerate(blocks):
        stack = list(keys)
        while stack:
            key = stack.pop()
            if owner.setdefault(key, number) != number or is_future(graph[key]):
                shared.add(key)
            elif key not in shared:
                stack.extend(need for need in needs[key] if owner.get(need) != number)
    # What a shared task needs is needed by all who share it.
    stack = list(shared)
    while stack:
        new = needs[stack.pop()] - shared
        shared |= new
        stack.extend(new)
    return owner, shared
