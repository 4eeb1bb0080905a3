"""What will be run, how long it will take and how much memory, and what to leave out if that is too much.

Time to learn is measured on a few rows of the task itself. Time to classify follows from the sizes, and from how fast
the machine multiplies matrices. Both are good to a factor of two or so, on a machine that does nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from .._core.memory import available_bytes, format_bytes
from .._core.progress import track
from .._core.threads import single_threaded_blas
from .catalogue import TIME, Experiment
from .methods import METHODS, Projection
from .settings import Settings
from .task import Task
from .timing import clock

_ROWS_TO_TIME = (32, 96)
_EPOCHS = 20
# Passes over the scores, or over the features, that an SVM takes.
_SVM_PASSES = 60
# Multiplications are slower in small steps than in large matrices.
_SMALL = 5
_SECONDS_OF_GROWTH = 6.0


@dataclass(frozen=True)
class Part:
    """An experiment on a task.

    Attributes
    ----------
    experiment, task
        Which.
    methods : tuple of str
        Methods to run.
    n_splits : int
        The first so many splits.
    seconds, memory : dict
        Estimates for one cell of each method.
    skipped : dict
        Methods that are not run, and why.
    note : str
        What is less than was asked for, and why.
    """

    experiment: Experiment
    task: Task
    methods: tuple[str, ...]
    n_splits: int
    seconds: dict[str, float]
    memory: dict[str, int]
    skipped: dict[str, str]
    note: str = ""

    @property
    def total_seconds(self) -> float:
        """Estimate for all of it, on one core."""
        return self.n_splits * sum(self.seconds[method] for method in self.methods)

    @property
    def largest_memory(self) -> int:
        """Bytes that the largest cell takes."""
        return max((self.memory[method] for method in self.methods), default=0)

    def without(self, methods: Iterable[str], why: str) -> Part:
        """Return the part with fewer methods."""
        gone = {method: why for method in self.methods if method in set(methods)}
        left = tuple(method for method in self.methods if method not in gone)
        return replace(self, methods=left, skipped={**self.skipped, **gone})


class Costs:
    """Seconds and bytes that the cells of a task take."""

    def __init__(self, task: Task, settings: Settings, seed: int) -> None:
        self.task, self.settings, self.seed = task, settings, seed
        self.n = len(task.splits[0][0])
        self._fits: dict[str, tuple[float, float]] = {}
        self._speed = _multiplications_a_second()

    def seconds(self, experiment: Experiment, method: str) -> float:
        """Return about how long a cell takes."""
        settings = self.settings
        if experiment.name == "selection":
            return self._selection(method)
        if experiment.name == TIME:
            a_row, solve = self._fit(method)
            return settings.runs * (a_row + solve) + settings.warm_rows * a_row
        most = self._most(method)
        fit = self._to_fit(method)
        choose = fit if METHODS[method].nested else most * fit
        # Of 1, 2, ... components, half as many on average.
        quick = most * self._classify(method, most / 2, quick=True)
        final = self._classify(method, most / 2, quick=False)
        return {
            "accuracy": choose + quick + fit + final,
            "components": choose + quick,
            "higher-order": choose + quick + fit + 4 * final,
            "streaming": choose
            + quick
            + fit
            + settings.blocks * self._classify(method, most / 2, quick=True, n=self.n / 2),
            "projection": fit,
        }[experiment.name]

    def memory(self, experiment: Experiment, method: str) -> int:
        """Return about how many bytes a cell takes at most."""
        task, n, m = self.task, self.n, self.task.n_features
        rows = n * m * task.X.dtype.itemsize
        if experiment.name == "selection":
            matrices = 4 * 8 * m * m if method.startswith("inffs") else 0
            return 4 * rows + matrices
        models, c = METHODS[method].n_models(task.n_classes), self._most(method)
        model = 8 * m * models * c * 12 + (8 * 8 * m * m if m <= 2048 else 0)
        scores = 8 * len(task.X) * models * c * 3
        return model + scores + (0 if METHODS[method].incremental else 2 * rows)

    def _most(self, method: str) -> int:
        return METHODS[method].most_components(self.task.n_classes, self.task.n_features, self.settings.components)

    def _to_fit(self, method: str) -> float:
        a_row, solve = self._fit(method)
        return self.n * a_row + solve

    def _fit(self, method: str) -> tuple[float, float]:
        """Return seconds to learn a row, and to solve: measured."""
        if method not in self._fits:
            self._fits[method] = self._measured_fit(method)
        return self._fits[method]

    def _measured_fit(self, method: str) -> tuple[float, float]:
        few, many = (self._seconds_to_fit(method, n_rows) for n_rows in _ROWS_TO_TIME)
        more = _ROWS_TO_TIME[1] - _ROWS_TO_TIME[0]
        # What does not grow with rows may be most of it, and then the difference is mostly noise.
        a_row = max((many - few) / more, 0.1 * many / _ROWS_TO_TIME[1])
        return a_row, max(0.0, few - a_row * _ROWS_TO_TIME[0])

    def _seconds_to_fit(self, method: str, n_rows: int) -> float:
        train = self.task.splits[0][0]
        rows = np.resize(train, n_rows)
        X, y, classes = self.task.X[rows], self.task.y[rows], np.unique(self.task.y[train])
        times = []
        # The first time, something may have to be compiled.
        for _ in range(2):
            projection = Projection(METHODS[method], self._most(method), classes, self.seed, self.settings)
            start = clock()
            # Numbers that overflow, say: the cell will tell.
            with suppress(ValueError):
                projection.learn(X, y)
                projection.directions()
            times.append(clock() - start)
        return min(times)

    def _classify(self, method: str, components: float, *, quick: bool, n: float | None = None) -> float:
        """Return seconds for one classifier of scores."""
        n, k = self.n if n is None else n, self.task.n_classes
        d = METHODS[method].n_models(k) * max(1.0, components)
        if k == 2:
            return 0.001 + _SVM_PASSES * n * d * _SMALL / self._speed
        if quick:
            return 0.002 + (n * d * (d + k) + 10 * d**3) / self._speed
        hidden = sum(self.settings.hidden)
        # A step for every 200 rows takes a moment, however little there is to multiply.
        return _EPOCHS * n * (3 * (d + k) * hidden / self._speed + 4e-6)

    def _selection(self, method: str) -> float:
        n, m, k = self.n, self.task.n_features, self.task.n_classes
        svm = _SVM_PASSES * n * m * (1 if k == 2 else k) * _SMALL / self._speed
        if method == "none":
            return svm
        rank = {
            "ilfs": 100.0 * n * m,
            "inffs": n * m * m + 300.0 * m * m,
            "inffs-u": n * m * m + 300.0 * m * m,
            "inffs-s": n * m * m + 300.0 * m * m,
        }.get(method, 20.0 * n * m * (1 if k == 2 else k))
        return rank / self._speed + sum(self.settings.shares) * svm


def make_plan(
    tasks: Sequence[Task],
    experiments: Sequence[Experiment],
    *,
    methods: Sequence[str] | None,
    folds: int | None,
    settings: Settings,
    seed: int,
    jobs: int,
) -> list[Part]:
    """Return the parts, with estimates. Methods for which there is not enough memory are left out."""
    available = available_bytes()
    room = None if available is None else available // jobs
    which = [(experiment, task) for experiment in experiments for task in tasks]
    with single_threaded_blas(), warnings.catch_warnings():
        # That so few rows have fewer components.
        warnings.simplefilter("ignore")
        costs = {task.name: Costs(task, settings, seed) for task in tasks}
        parts = (_part(*both, methods, folds, costs[both[1].name], room) for both in which)
        return list(track(parts, "estimating", len(which), lambda _: 1, "parts"))


def _part(
    experiment: Experiment,
    task: Task,
    methods: Sequence[str] | None,
    folds: int | None,
    costs: Costs,
    room: int | None,
) -> Part:
    wanted = tuple(method for method in experiment.methods if methods is None or method in methods)
    skipped = {method: why for method in wanted if (why := experiment.why_not(method, task))}
    wanted = tuple(method for method in wanted if method not in skipped)
    memory = {method: costs.memory(experiment, method) for method in wanted}
    for method in wanted:
        if room is not None and memory[method] > room:
            skipped[method] = (
                f"not run, because it needs about {format_bytes(memory[method])} of memory, and there are "
                f"{format_bytes(room)} for each cell of those at a time"
            )
    wanted = tuple(method for method in wanted if method not in skipped)
    n_splits = 1 if experiment.one_split else min(folds or len(task.splits), len(task.splits))
    seconds = {method: costs.seconds(experiment, method) for method in wanted}
    return Part(experiment, task, wanted, n_splits, seconds, memory, skipped)


def planned_seconds(parts: Iterable[Part], jobs: int) -> float:
    """Return about how long all parts take on some cores; times are measured on one of them."""
    parts = list(parts)
    timed = [part.total_seconds for part in parts if part.experiment.name == TIME and part.methods]
    others = sum(part.total_seconds for part in parts if part.experiment.name != TIME)
    return others / jobs + sum(timed) + (_SECONDS_OF_GROWTH if timed else 0.0)


def within_budget(parts: Sequence[Part], minutes: float, jobs: int) -> list[Part]:
    """Return parts that take no longer than this: with fewer splits, or else also without the slowest methods.

    Parameters
    ----------
    parts : sequence of Part
        What is wanted.
    minutes : float
        The budget.
    jobs : int
        Cells at a time.

    Returns
    -------
    parts : list of Part
        The same, in the same order, with what is missing in their ``skipped`` and ``note``.
    """
    for n_splits in range(max((part.n_splits for part in parts), default=1), 0, -1):
        fewer = [_with_splits(part, n_splits, minutes) for part in parts]
        if planned_seconds(fewer, jobs) <= 60 * minutes:
            return fewer
    slowest = sorted(
        ((seconds, i, method) for i, part in enumerate(fewer) for method, seconds in part.seconds.items()),
        reverse=True,
    )
    for seconds, i, method in slowest:
        why = f"not run, because it would take about {in_time(seconds)}, and there are {minutes:g} min for all"
        fewer[i] = fewer[i].without([method], why)
        if planned_seconds(fewer, jobs) <= 60 * minutes:
            break
    return fewer


def _with_splits(part: Part, n_splits: int, minutes: float) -> Part:
    if n_splits >= part.n_splits:
        return part
    note = f"{n_splits} of {part.n_splits} splits, because there are {minutes:g} min for all"
    return replace(part, n_splits=n_splits, note=note)


def in_time(seconds: float) -> str:
    """Return a time with its unit.

    Examples
    --------
    >>> from plstream.experiments.plan import in_time
    >>> in_time(0.4), in_time(75), in_time(600), in_time(9000)
    ('1 s', '75 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _multiplications_a_second() -> float:
    A = np.ones((256, 256))
    A @ A
    start = clock()
    for _ in range(10):
        A @ A
    return float(10 * 256**3 / (clock() - start))
