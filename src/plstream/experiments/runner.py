"""Runs what is planned: cells in order or several at a time, each once, with results on disk as they come."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .._core.progress import listening, track
from .._core.threads import single_threaded_blas
from .catalogue import EXPERIMENTS, TIME
from .plan import Part
from .protocol import Cell, Setting
from .results import Results
from .settings import Settings
from .timing import GROWTH, NOT_GROWN, growth, update_times

# What may be wrong with a method and its data, and is then a result. All else is an error of the program.
_RESULTS = (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError)


class Outcome(NamedTuple):
    """Cells of a method and a split, or why there are none."""

    method: str
    split: int
    cells: list[Cell]
    why: str = ""


def run(
    parts: Sequence[Part],
    results: Results,
    *,
    settings: Settings,
    seed: int,
    jobs: int = 1,
    budget: float | None = None,
    on_finished: Callable[[str], None] = lambda _: None,
) -> None:
    """Run what is not yet among the results.

    Parameters
    ----------
    parts : sequence of Part
        What to run, those of an experiment next to each other.
    results : Results
        What there is; it is written after every cell, and when the work ends, however it ends.
    settings : Settings
        As in the plan.
    seed : int
        Of all that is random.
    jobs : int, default=1
        Cells at a time, in processes of their own. Results do not depend on it.
    budget : float, default=None
        Minutes after which no more cells are begun.
    on_finished : callable, optional
        Is passed the name of each experiment when it is finished.
    """
    deadline = np.inf if budget is None else time.monotonic() + 60 * budget
    try:
        for part in parts:
            _begin(part, results, settings)
        for name in dict.fromkeys(part.experiment.name for part in parts):
            mine = [part for part in parts if part.experiment.name == name]
            if name == TIME:
                _run_times(mine, results, settings, seed, deadline, budget)
            else:
                for part in mine:
                    _run_part(part, results, settings, seed, jobs, deadline, budget)
            results.save()
            on_finished(name)
    finally:
        results.save()


def compute(experiment: str, setting: Setting) -> Outcome:
    """Return the cells of a method and a split: they depend on nothing else."""
    function = EXPERIMENTS[experiment].cell
    assert function is not None
    start = time.perf_counter()
    with listening(None), single_threaded_blas(), warnings.catch_warnings(), np.errstate(all="ignore"):
        # What they say of components that are missing is in the cells.
        warnings.simplefilter("ignore")
        try:
            cells = function(setting)
        except _RESULTS as error:
            return Outcome(setting.method, setting.split, [], f"split {setting.split}: {_sentence(error)}")
    seconds = time.perf_counter() - start
    name = {"method": setting.method, "split": setting.split}
    return Outcome(setting.method, setting.split, [{**name, "seconds": seconds, **cell} for cell in cells])


def _begin(part: Part, results: Results, settings: Settings) -> None:
    place = results.experiment(part.task.name, part.experiment.name)
    # Of methods that are not run now, what was known before.
    known = {method: why for method, why in place["skipped"].items() if method not in part.methods}
    place["skipped"] = {**known, **part.skipped}
    place["settings"] = {
        name: value
        for name, value in (
            ("classifier", part.experiment.classifier(part.task, settings)),
            ("n_splits", part.n_splits),
            ("note", part.note),
        )
        if value
    }


def _run_part(
    part: Part,
    results: Results,
    settings: Settings,
    seed: int,
    jobs: int,
    deadline: float,
    budget: float | None,
) -> None:
    experiment, task = part.experiment, part.task
    place, done = results.experiment(task.name, experiment.name), results.done(task.name, experiment.name)
    # All methods of a split, then the next split.
    units = [(method, split) for split in range(part.n_splits) for method in part.methods]
    left = [Setting(task, method, split, settings, seed) for method, split in units if (method, split) not in done]
    in_time = _before(deadline, left)
    outcomes = _computed(experiment.name, in_time, jobs)
    for outcome in track(outcomes, f"{experiment.name}, {task.name}", len(left), lambda _: 1, "cells"):
        if outcome.why:
            place["skipped"][outcome.method] = outcome.why
        results.add(task.name, experiment.name, outcome.cells, experiment.methods)
        results.save(now=False)
    done = results.done(task.name, experiment.name)
    for method, split in units:
        if (method, split) not in done and method not in place["skipped"]:
            place["skipped"][method] = f"split {split} and on not run, {_over(budget)}"


def _over(budget: float | None) -> str:
    return f"because the {budget:g} min for all were over"


def _before(deadline: float, settings: Iterable[Setting]) -> Iterator[Setting]:
    for setting in settings:
        if time.monotonic() > deadline:
            return
        yield setting


def _computed(experiment: str, settings: Iterator[Setting], jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from (compute(experiment, setting) for setting in settings)
        return
    from joblib import Parallel, delayed

    # Arrays are shared by way of files: a copy of the data for each process may be more than there is room for.
    workers = Parallel(jobs, return_as="generator_unordered", pre_dispatch=jobs, max_nbytes="1M")
    yield from workers(delayed(_compute_apart)(experiment, setting) for setting in settings)


def _compute_apart(experiment: str, setting: Setting) -> Outcome:
    """Compute in a process that leaves it to the first one to do something about Ctrl-C, which reaches both."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return compute(experiment, setting)


def _run_times(
    parts: Sequence[Part], results: Results, settings: Settings, seed: int, deadline: float, budget: float | None
) -> None:
    """Measure times: all methods of a task in turn, and how they grow once for all tasks."""
    places = [results.experiment(part.task.name, TIME) for part in parts]
    grown = next((place for place in places if place.get("growth")), None)
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in parts:
            name, place = part.task.name, results.experiment(part.task.name, TIME)
            known, wanted = {method for method, _ in results.done(name, TIME)}, set(part.methods)
            place.setdefault("growth", [])
            if time.monotonic() > deadline:
                place["skipped"].update(dict.fromkeys(wanted - known, f"not run, {_over(budget)}"))
                continue
            if wanted - known:
                # Methods are measured in turn, so all of them again if there is a new one.
                methods = [method for method in part.experiment.methods if method in known | wanted]
                with listening(None):
                    cells, skipped = update_times(part.task, methods, settings, seed)
                place["skipped"].update(skipped)
                place["cells"] = []
                results.add(name, TIME, cells, part.experiment.methods)
            if grown is None or grown is place:
                known = {cell["method"] for cell in place["growth"]}
                methods = [method for method in part.methods if method not in {*NOT_GROWN, *known}]
                n_cells = len(methods) * sum(map(len, GROWTH.values()))
                sizes = growth(methods, settings, seed)
                place["growth"] += track(sizes, "time, by size", n_cells, lambda _: 1, "cells")
                grown = place
            results.save(now=False)


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return text or ("there is not enough memory" if isinstance(error, MemoryError) else type(error).__name__)
