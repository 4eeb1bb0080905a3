"""map_reduce: any blocks and states, merged in order with few states at a time; and units of graphs."""

import math
import operator
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plstream import IncrementalPLS, open_source
from plstream.data import DataError
from plstream.distributed import map_reduce
from plstream.distributed.graph import Recipe, units_of
from tests.oracles import regression_data, relative_error


@given(st.integers(1, 200))
def test_order_is_kept(n):
    assert map_reduce(range(n), lambda i: [i], operator.add) == list(range(n))


@given(st.integers(1, 300))
def test_few_states_at_a_time(n):
    alive, most = weakref.WeakSet(), 0

    class State:
        def __init__(self, count):
            nonlocal most
            self.count = count
            alive.add(self)
            most = max(most, len(alive))

        def merge(self, other):
            self.count += other.count
            return self

    assert map_reduce((i for i in range(n)), lambda _: State(1)).count == n
    assert most <= math.log2(n) + 2


def test_states_of_nothing_are_left_out():
    assert map_reduce([1, None, 2, None], lambda block: block and [block], operator.add) == [1, 2]
    for blocks in ([], [None]):
        with pytest.raises(ValueError, match="All blocks are empty"):
            map_reduce(blocks, lambda block: block)


def test_models_are_states():
    X, y = regression_data(200, 6)
    blocks = [(X[i : i + 17], y[i : i + 17]) for i in range(0, 200, 17)]
    model = map_reduce(blocks, lambda block: IncrementalPLS(3).partial_fit(*block))
    assert relative_error(model.coef_, IncrementalPLS(3).fit(X, y).coef_) < 1e-12


def forgetful(block):
    return IncrementalPLS(3, forgetting=0.98).partial_fit(*block)


def test_blocks_are_in_order_where_rows_are_forgotten():
    X, y = regression_data(200, 6)
    blocks = [(X[i : i + 17], y[i : i + 17]) for i in range(0, 200, 17)]
    assert relative_error(map_reduce(blocks, forgetful).coef_, forgetful((X, y)).coef_) < 1e-12


def test_delayed_blocks_are_in_order_where_rows_are_forgotten(dask):
    X, y = regression_data(200, 6)
    blocks = [dask.delayed(tuple)([X[i : i + 17], y[i : i + 17]]) for i in range(0, 200, 17)]
    assert relative_error(map_reduce(blocks, forgetful).coef_, forgetful((X, y)).coef_) < 1e-12


@pytest.fixture
def dask():
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="sync"):
        yield dask


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_delayed_blocks(dask, scheduler):
    blocks = [dask.delayed(operator.mul)(i, 2) for i in range(100)]
    with dask.config.set(scheduler=scheduler):
        assert map_reduce(blocks, lambda block: [block], operator.add) == list(range(0, 200, 2))


def test_merging_on_workers_leaves_states_alone(dask):
    """A task may be repeated, so it must not change its inputs."""
    made = []

    def make(block):
        made.append([block])
        return made[-1]

    blocks = [dask.delayed(int)(i) for i in range(5)]
    assert map_reduce(blocks, make, lambda a, b: (a.extend(b), a)[1]) == list(range(5))
    assert sorted(made) == [[i] for i in range(5)]


def test_errors_name_the_block(dask):
    def make(block):
        if block == 70:
            raise ValueError("Seventy.")
        return [block]

    with pytest.raises(DataError, match="In block 70: Seventy"):
        map_reduce([dask.delayed(int)(i) for i in range(100)], make, operator.add)


def sizes_of_units(blocks):
    from plstream.distributed.graph import graph_of
    from plstream.distributed.reduce import RemoteBlocks

    graph, (keys,) = graph_of(blocks)
    units, shared = RemoteBlocks(graph, [{"block": key} for key in keys])._cut
    return [unit.size for unit in units], shared


def test_blocks_are_read_by_few_tasks(dask):
    """A task reads its blocks one after the other, so only as many tasks are needed as keep the threads busy."""
    sizes, shared = sizes_of_units([dask.delayed(int)(i) for i in range(1000)])
    assert sum(sizes) == 1000
    assert len(sizes) <= 2 * 16
    assert not shared


def test_work_to_cut_units_grows_with_blocks_only(monkeypatch):
    looks = 0

    def size(_):
        nonlocal looks
        looks += 1
        return 10

    monkeypatch.setattr(Recipe, "size", property(size))
    n = 3000
    recipes = [Recipe(i, 10 * i, 10, {"block": ("x", i)}, {}, frozenset()) for i in range(n)]
    units = units_of(recipes, wanted=16, row_bytes=8)
    assert [recipe for unit in units for recipe in unit.recipes] == recipes
    assert 16 <= len(units) <= 17
    assert looks <= 4 * n


def test_shared_work_is_done_once(dask):
    calls = []
    total = dask.delayed(calls.append)(1)
    blocks = [dask.delayed(lambda _, i: i)(total, i) for i in range(100)]
    sizes, shared = sizes_of_units(blocks)
    assert len(sizes) <= 2 * 16
    assert len(shared) == 1
    assert map_reduce(blocks, lambda block: block, operator.add) == sum(range(100))
    assert len(calls) == 1


def test_inputs_shared_by_neighbours_are_not_gathered(dask):
    """Where every block has inputs of its own, those of many would have to be in one place."""
    pieces = [dask.delayed(int)(i) for i in range(101)]
    blocks = [dask.delayed(operator.add)(pieces[i], pieces[i + 1]) for i in range(100)]
    sizes, shared = sizes_of_units(blocks)
    assert len(sizes) == 100
    assert len(shared) == 99
    assert map_reduce(blocks, lambda block: [block], operator.add) == [2 * i + 1 for i in range(100)]


def test_a_thread_holds_one_block_at_a_time(dask):
    alive, most = weakref.WeakSet(), []

    class Rows:
        def __init__(self):
            alive.add(self)
            most.append(len(alive))

    blocks = [dask.delayed(Rows)() for _ in range(200)]
    assert map_reduce(blocks, lambda _: 1, operator.add) == 200
    assert max(most) == 1


def test_blocks_without_dask(monkeypatch):
    """Other objects with Dask's protocol raise an error that says what to install."""

    class Delayed:
        def __dask_graph__(self):
            return {}

    monkeypatch.setitem(__import__("sys").modules, "dask", None)
    with pytest.raises(ImportError, match=r"pip install 'plstream\[distributed\]'"):
        map_reduce([Delayed()], np.sum)


def test_dask_knows_how_large_states_and_blocks_are():
    sizeof = pytest.importorskip("dask.sizeof", reason="needs Dask").sizeof
    from plstream.distributed.graph import LoadedBlock, Unit
    from plstream.solvers.multipass import Sums

    X = np.ones((50, 300))
    model = IncrementalPLS(2, solver="gram").partial_fit(X + np.eye(50, 300), X[:, 0] * np.arange(50))
    assert sizeof(model) >= 8 * 300 * 300
    assert sizeof((model._fitted.stream.state, 50)) >= 8 * 300 * 300
    assert sizeof(Sums(X[0], X[0])) >= 2 * 8 * 300
    source = open_source(X, X[:, 0])
    assert sizeof(Unit(held=(LoadedBlock(0, 0, {"X": X, "y": X[:, 0]}),))) >= X.nbytes
    assert sizeof(Unit(held=(LoadedBlock(0, 0, {"X": source.part((X, X[:, 0]), 0)}),))) >= X.nbytes
    assert sizeof(IncrementalPLS()) < 1000
