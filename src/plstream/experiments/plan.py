"""The plan of a run: its parts, estimates of their time and memory, and parts to omit if these are too large.

The times to train a method and project rows, and to train an SVM of features, are measured on a part of the task,
those of the steps of a perceptron on random rows. The rest follows from the sizes, and from the measured speed of
matrix multiplications. All are accurate to about a factor of two on an idle machine.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from .._core.memory import available_bytes, format_bytes
from .._core.progress import listening, track
from .._core.threads import single_threaded_blas
from .classifiers import linear_svm, perceptron, standardised
from .methods import METHODS, Projection
from .paper import Experiment
from .protocol import is_large
from .settings import Settings
from .task import Task

# On some systems the clock of a thread has a resolution of milliseconds.
clock = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-6 else time.perf_counter
_ROWS_TO_TIME = (32, 96)
# Epochs of a perceptron until it stops early, about; and rows, columns and classes on which its steps are timed.
_EPOCHS = 15
_PERCEPTRON_PART = (1000, 10, 10)
# Seconds to begin with a classifier.
_START = 0.002
# Time of a linear SVM of scores per number, in multiplications of large matrices: 50 to 100 passes, each of which waits
# for memory.
_SVM_PER_NUMBER = 2000
# Rows, features and classes of the part on which an SVM of features is measured. liblinear stores 16 bytes per number:
# this part fits into the cache of a core. A larger one takes about twice the time per number.
_SVM_PART = (1000, 1000, 3)
_SVM_BYTES_IN_CACHE = 32 << 20
SVM_BYTES_PER_NUMBER = 16


@dataclass(frozen=True)
class Part:
    """An experiment on a task."""

    experiment: Experiment
    task: Task
    # The number of splits to run, from the first.
    n_splits: int
    # Estimates for one cell of each method: seconds of those to run, and bytes of all.
    seconds: dict[str, float]
    memory: dict[str, int]
    # Methods not run, with the reason; and the reason for fewer splits than requested.
    skipped: dict[str, str]
    note: str = ""

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods to run."""
        return tuple(self.seconds)

    @property
    def total_seconds(self) -> float:
        """Estimated total time on one core."""
        return self.n_splits * sum(self.seconds.values())

    @property
    def largest_memory(self) -> int:
        """Estimated bytes of the largest cell."""
        return max((self.memory[method] for method in self.methods), default=0)


class CostModel:
    """Estimates of seconds and bytes for a task, from which experiments compose those of their cells."""

    def __init__(self, task: Task, settings: Settings, seed: int) -> None:
        self.task, self.settings, self.seed = task, settings, seed
        # Training rows, and multiplications per second in large matrices.
        self.n, self.speed = len(task.splits[0][0]), _multiplications_per_second()
        # Each is measured once.
        self.row_and_solve = cache(self._row_and_solve)
        self._svm_per_number = cache(self._measured_svm)
        self._perceptron_per_row = cache(self._measured_perceptron)

    def fit(self, method: str, n: int | None = None, *, c: int | None = None) -> float:
        """Return seconds to train c components, by default the most, on n rows, and project these.

        By default, on the training rows.
        """
        row, solve = self.row_and_solve(method) if c is None else self.row_and_solve(method, c)
        return (self.n if n is None else n) * row + solve

    def choose(self, method: str) -> float:
        """Return seconds to choose the number of components, and then the tuned value."""
        most, n = self._max_components(method), min(self.n, self.settings.choice_rows)
        others = len(METHODS[method].alternatives(self.settings)) - 1
        fits = others + (1 if METHODS[method].nested else most)
        return fits * self.fit(method, n) + (others + most) * self.classify(method, quick=True, n=n)

    def classify(self, method: str, *, quick: bool = False, n: float | None = None, c: float | None = None) -> float:
        """Return seconds for one classifier of the scores of c components, by default half of the most, the average."""
        n, k = self.n if n is None else n, self.task.n_classes
        d = METHODS[method].n_models(k) * (max(1.0, self._max_components(method) / 2) if c is None else c)
        if k == 2:
            return _START + _SVM_PER_NUMBER * n * d / self.speed
        if quick:
            return _START + (n * d * (d + k) + 10 * d**3) / self.speed
        more = d + k - sum(_PERCEPTRON_PART[1:])
        per_row = self._perceptron_per_row() + max(0.0, 3 * more * sum(self.settings.hidden) / self.speed)
        return min(_EPOCHS, self.settings.epochs) * n * per_row

    def classify_features(self, share: float = 1.0) -> float:
        """Return seconds for a linear SVM of a share of the features, one per class if there are more than two."""
        numbers, k = self.n * share * self.task.n_features, self.task.n_classes
        out_of_cache = SVM_BYTES_PER_NUMBER * numbers > _SVM_BYTES_IN_CACHE
        per_class = numbers * self._svm_per_number() * (2 if out_of_cache else 1)
        return _START + (k if k > 2 else 1) * per_class

    def memory(self, method: str) -> int:
        """Return the peak bytes of a model and its scores."""
        task, m = self.task, self.task.n_features
        models, c = METHODS[method].n_models(task.n_classes), self._max_components(method)
        model = 8 * m * models * c * 12 + (8 * 8 * m * m if m <= 2048 else 0)
        if is_large(task, self.settings):
            # Blocks of rows and scores, and the scatter matrix of discriminants.
            return model + (2 << 30) + 3 * 8 * (models * c) ** 2
        return model + 3 * self.bytes_of_scores(method) + (0 if METHODS[method].incremental else 2 * self.bytes_of_rows)

    def bytes_of_scores(self, method: str) -> int:
        """Return the bytes of the scores of all rows."""
        models = METHODS[method].n_models(self.task.n_classes)
        return 8 * len(self.task.X) * models * self._max_components(method)

    @property
    def bytes_of_rows(self) -> int:
        """Bytes of the training rows."""
        return self.n * self.task.n_features * self.task.X.dtype.itemsize

    def _max_components(self, method: str) -> int:
        return METHODS[method].max_components(self.task.n_classes, self.task.n_features, self.settings.components)

    def _row_and_solve(self, method: str, c: int | None = None) -> tuple[float, float]:
        """Return the measured seconds per row, to learn and project it, and for solving."""
        c = self._max_components(method) if c is None else c
        few, many = (self._seconds_to_fit(method, c, n_rows) for n_rows in _ROWS_TO_TIME)
        more = _ROWS_TO_TIME[1] - _ROWS_TO_TIME[0]
        # If most of the time does not depend on the rows, the difference is mostly noise.
        row = max((many - few) / more, 0.1 * many / _ROWS_TO_TIME[1])
        return row, max(0.0, few - row * _ROWS_TO_TIME[0])

    def _measured_svm(self) -> float:
        """Return the measured seconds of a linear SVM of features, one class against the rest, per number."""
        n_rows, n_features, n_classes = _SVM_PART
        train, m = self.task.splits[0][0][:n_rows], self.task.n_features
        features = np.linspace(0, m - 1, min(m, n_features)).astype(np.intp)
        X, y = self.task.X[train][:, features], self.task.y[train]
        X, _ = standardised(X, X[:1])
        classes = np.unique(y)
        targets = [y == label for label in (classes[1:] if len(classes) == 2 else classes[:n_classes])]
        start = clock()
        for target in targets:
            # For example, a single class among these rows.
            with suppress(ValueError):
                linear_svm(self.settings, m).fit(X, target)
        return (clock() - start) / (X.size * len(targets))

    def _measured_perceptron(self) -> float:
        """Return the measured seconds of an epoch of a perceptron of few scores, per row."""
        n_rows, n_columns, n_classes = _PERCEPTRON_PART
        S, y = np.random.default_rng(0).standard_normal((n_rows, n_columns)), np.arange(n_rows) % n_classes
        times = []
        # The first fit takes longer.
        for _ in range(2):
            model = perceptron(y, replace(self.settings, epochs=3), self.seed)
            start = clock()
            with warnings.catch_warnings():
                # It does not converge.
                warnings.simplefilter("ignore")
                model.fit(S, y)
            times.append(clock() - start)
        return min(times) / (model.n_iter_ * n_rows)

    def _seconds_to_fit(self, method: str, c: int, n_rows: int) -> float:
        train = self.task.splits[0][0]
        rows = np.resize(train, n_rows)
        X, y, classes = self.task.X[rows], self.task.y[rows], np.unique(self.task.y[train])
        times = []
        # The first fit may compile functions.
        for _ in range(2):
            projection = Projection(METHODS[method], c, classes, self.seed, self.settings)
            start = clock()
            # For example, overflow, which the cell will report. Progress of such a fit would replace that of the plan.
            with suppress(ValueError), listening(None):
                projection.learn(X, y)
                projection.directions()
                projection.scores(X)
            times.append(clock() - start)
        return min(times)


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
    """Return the parts with their estimates, without methods that need too much memory."""
    available = available_bytes()
    room = None if available is None else available // jobs
    pairs = [(experiment, task) for experiment in experiments for task in tasks]
    with single_threaded_blas(), warnings.catch_warnings():
        # Warnings that few rows have fewer components.
        warnings.simplefilter("ignore")
        costs = {task.name: CostModel(task, settings, seed) for task in tasks}
        parts = (_part(one, task, methods, folds, costs[task.name], room) for one, task in pairs)
        return list(track(parts, "estimating", len(pairs), lambda _: 1, "parts"))


def _part(
    experiment: Experiment,
    task: Task,
    methods: Sequence[str] | None,
    folds: int | None,
    costs: CostModel,
    room: int | None,
) -> Part:
    wanted = [method for method in experiment.methods if methods is None or method in methods]
    skipped = {method: why for method in wanted if (why := experiment.why_not(method, task))}
    memory = {
        method: (experiment.memory or CostModel.memory)(costs, method) for method in wanted if method not in skipped
    }
    for method, needed in memory.items():
        if room is not None and needed > room:
            skipped[method] = (
                f"not run, because it needs about {format_bytes(needed)} of memory, and there are "
                f"{format_bytes(room)} for each cell of those at a time"
            )
    seconds = {method: experiment.seconds(costs, method) for method in memory if method not in skipped}
    n_splits = 1 if experiment.one_split else min(folds or len(task.splits), len(task.splits))
    return Part(experiment, task, n_splits, seconds, memory, skipped)


def planned_seconds(parts: Iterable[Part], jobs: int) -> float:
    """Estimate the time of all parts on ``jobs`` cores; dependent cells share one core."""
    parts = list(parts)
    seconds = sum(part.total_seconds / (1 if part.experiment.run else jobs) for part in parts)
    overheads = {part.experiment.name: part.experiment.overhead for part in parts if part.seconds}
    return seconds + sum(overheads.values())


def within_budget(parts: Sequence[Part], minutes: float, jobs: int) -> list[Part]:
    """Return the parts with fewer splits and, if necessary, without the slowest methods, to meet a budget.

    Their ``skipped`` and ``note`` state what is missing.
    """
    reason = f"because there are {minutes:g} min for all"
    for n_splits in range(max((part.n_splits for part in parts), default=1), 0, -1):
        fewer = [
            replace(part, n_splits=n_splits, note=f"{n_splits} of {part.n_splits} splits, {reason}")
            if n_splits < part.n_splits
            else part
            for part in parts
        ]
        if planned_seconds(fewer, jobs) <= 60 * minutes:
            return fewer
    each = [(seconds, i, method) for i, part in enumerate(fewer) for method, seconds in part.seconds.items()]
    for seconds, i, method in sorted(each, reverse=True):
        why = f"not run, because it would take about {format_duration(seconds)}, and there are {minutes:g} min for all"
        left = {other: value for other, value in fewer[i].seconds.items() if other != method}
        fewer[i] = replace(fewer[i], seconds=left, skipped={**fewer[i].skipped, method: why})
        if planned_seconds(fewer, jobs) <= 60 * minutes:
            break
    return fewer


def format_duration(seconds: float) -> str:
    """Return a time with its unit."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _multiplications_per_second() -> float:
    A = np.ones((256, 256))
    A @ A
    start = clock()
    for _ in range(10):
        A @ A
    return float(10 * 256**3 / (clock() - start))
