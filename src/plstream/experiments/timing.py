"""Time to learn one more row, and how it grows with rows, features and components.

On one thread, whose own time is counted, not that of whatever else the machine does; with methods in turn, as even so
others may slow it down. A row is learnt when the directions that include it are there: some methods do most of their
work only when they are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from .._core.progress import listening
from .._core.types import Array
from ..online._base import NotFiniteError
from .methods import METHODS, Method, Projection
from .protocol import Cell
from .settings import Settings
from .task import Task

# On some systems the time of a thread is known to a few milliseconds only.
clock = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-6 else time.perf_counter
# One of these varies at a time, and the others are as usual.
GROWTH = {"n": (250, 500, 1000, 2000), "m": (512, 1024, 2048, 4096, 8192), "c": (2, 4, 8, 16)}
_USUAL = {"n": 500, "m": 2048, "c": 4}
_REPEATS = 3
# For methods that have fewer components than classes.
_CLASSES = 20
NOT_GROWN = ("incremental-lda", "sgdpls-steps")


def update_times(
    task: Task, methods: Sequence[str], settings: Settings, seed: int
) -> tuple[list[Cell], dict[str, str]]:
    """Time how long methods take to learn one more row, each of several rows, in turn; say why some cannot."""
    train, c = task.splits[0][0], settings.time_components
    classes = np.unique(task.y[train])
    rows = np.resize(train, settings.warm_rows + 2 + settings.runs)
    warm, more = np.split(rows, [settings.warm_rows])
    projections, skipped = [], {}
    for name in methods:
        method = METHODS[name]
        most = method.most_components(len(classes), task.n_features, c)
        projection = Projection(method, most, classes, seed, settings)
        try:
            projection.learn(task.X[warm], task.y[warm])
        except NotFiniteError as error:
            skipped[name] = f"component {error.component} of {most} is no longer finite after a few rows"
        else:
            projections.append(projection)
    cells: list[Cell] = []
    # The first ones compile what is left to be compiled.
    for run, row in enumerate(more, start=-2):
        X, y = task.X[row : row + 1], task.y[row : row + 1]
        first = run % max(1, len(projections))
        for projection in projections[first:] + projections[:first]:
            try:
                times = _to_update(projection, X, y)
            except NotFiniteError as error:
                projections.remove(projection)
                skipped[projection.method.name] = f"component {error.component} is no longer finite after some rows"
                continue
            if run >= 0:
                cells.append({"method": projection.method.name, "run": run, **times})
    return [cell for cell in cells if cell["method"] not in skipped], skipped


def _to_update(projection: Projection, X: Array, y: Array) -> dict[str, float]:
    """Return seconds to learn a row and have the directions, and those to learn it."""
    start = clock()
    projection.learn(X, y)
    learnt = clock()
    projection.directions()
    return {"seconds": clock() - start, "update": learnt - start}


def growth(methods: Sequence[str], settings: Settings, seed: int) -> Iterator[Cell]:
    """Time how long methods take to learn random rows, of one size after the other, if they can."""
    random = np.random.default_rng(seed)
    for varied, values in GROWTH.items():
        for value in values:
            size = {**_USUAL, varied: value}
            rows, y = random.standard_normal((size["n"], size["m"])), np.arange(size["n"]) % _CLASSES
            for name in methods:
                method = METHODS[name]
                labels = y if method.bounded else y % 2
                with suppress(NotFiniteError):
                    times = [_to_learn(method, rows, labels, size["c"], seed, settings) for _ in range(_REPEATS)]
                    yield {"method": name, "varied": varied, "value": value, "seconds": min(times)}


def _to_learn(method: Method, X: Array, y: Array, c: int, seed: int, settings: Settings) -> float:
    projection = Projection(method, c, np.unique(y), seed, settings)
    with listening(None):
        start = clock()
        projection.learn(X, y)
        projection.directions()
        return clock() - start
