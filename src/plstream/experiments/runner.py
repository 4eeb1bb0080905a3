"""Runs the planned cells, sequentially or in parallel, and writes results as they are finished."""

from __future__ import annotations

import hashlib
import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._core.progress import listening, track
from .._core.threads import single_threaded_blas
from ..online.state import ComponentOverflowError
from .paper import experiments
from .plan import Part
from .protocol import Trial
from .results import Cell, Results
from .scratch import Scratch

# Folder of the intermediate results of cells, next to the results.
UNFINISHED = "unfinished"
# Errors that are a result of the experiment. All others are bugs.
_RESULTS = (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError)


class Outcome(NamedTuple):
    """The cells of a trial, or the reason why there are none."""

    method: str
    split: int
    cells: list[Cell]
    why: str = ""


def run(
    parts: Sequence[Part],
    results: Results,
    *,
    jobs: int = 1,
    budget: float | None = None,
    on_finished: Callable[[str], None] = lambda _: None,
) -> None:
    """Run the parts whose cells are not yet among the results.

    Results are written after every cell and at the end, also after errors. They do not depend on ``jobs``, the number
    of parallel processes. After ``budget`` minutes no more cells are started. The name of each finished experiment is
    passed to ``on_finished``. Intermediate results of long cells are in a folder next to the results, from which the
    next run resumes.
    """
    end = np.inf if budget is None else time.monotonic() + 60 * budget

    def stop() -> str:
        """Return why no more cells are started, if the time is up."""
        return f"because the {budget:g} min for all were over" if time.monotonic() > end else ""

    try:
        for part in parts:
            _begin(part, results)
        for name, experiment in {part.experiment.name: part.experiment for part in parts}.items():
            mine = [part for part in parts if part.experiment.name == name]
            if experiment.run:
                experiment.run(mine, results, stop)
            else:
                for part in mine:
                    _run_part(part, results, jobs, stop, f"{1 + parts.index(part)} of {len(parts)}: ")
            results.save()
            on_finished(name)
    finally:
        results.save()
        with suppress(OSError):
            (results.path.parent / UNFINISHED).rmdir()


def compute(experiment: str, trial: Trial) -> Outcome:
    """Return the cells of a trial, which depend on nothing else."""
    function = experiments()[experiment].cells
    assert function is not None
    start = time.perf_counter()
    with listening(None), single_threaded_blas(), warnings.catch_warnings(), np.errstate(all="ignore"):
        # Cells record missing components themselves. Classifiers warn about the last epoch, and scores that are zero.
        warnings.simplefilter("ignore")
        try:
            cells = function(trial)
        except _RESULTS as error:
            trial.scratch.remove()
            text = " ".join(str(error).split()).rstrip(".")
            if isinstance(error, ComponentOverflowError):
                text = f"component {error.component} is no longer finite"
            text = text or ("there is not enough memory" if isinstance(error, MemoryError) else type(error).__name__)
            return Outcome(trial.method, trial.split, [], f"split {trial.split}: {text}")
    trial.scratch.remove()
    seconds = time.perf_counter() - start
    name = {"method": trial.method, "split": trial.split}
    return Outcome(trial.method, trial.split, [{**name, "seconds": seconds, **cell} for cell in cells])


def _begin(part: Part, results: Results) -> None:
    place = results.experiment(part.task.name, part.experiment.name)
    # Keep earlier reasons for methods that are not run now.
    known = {method: why for method, why in place["skipped"].items() if method not in part.methods}
    place["skipped"] = {**known, **part.skipped}
    describe = part.experiment.classifier
    about = {
        "classifier": describe and describe(part.task, results.settings),
        "n_splits": part.n_splits,
        "note": part.note,
    }
    place["settings"] = {name: value for name, value in about.items() if value}


def _run_part(part: Part, results: Results, jobs: int, stop: Callable[[], str], number: str) -> None:
    name, task = part.experiment.name, part.task
    place, done = results.experiment(task.name, name), results.done(task.name, name)
    # Split by split, so that an interrupted run has comparable methods.
    units = [(method, split) for split in range(part.n_splits) for method in part.methods]
    folder, settings, seed = results.path.parent / UNFINISHED, results.settings, results.seed
    # The folder of a cell is specific to its task and settings.
    about = [results.data["tasks"][task.name]["fingerprint"], settings, seed]
    digest = hashlib.sha256(repr(about).encode()).hexdigest()[:12]
    left = [
        Trial(task, method, split, settings, seed, Scratch(folder / f"{name}-{method}-{split}-{digest}"))
        for method, split in units
        if (method, split) not in done
    ]
    outcomes = _computed(name, takewhile(lambda _: not stop(), left), jobs, folder)
    for outcome in track(outcomes, f"{number}{name}, {task.name}", len(left), lambda _: 1, "cells"):
        if outcome.why:
            place["skipped"][outcome.method] = outcome.why
        results.add(task.name, name, outcome.cells, part.experiment.methods)
        results.save(now=False)
    done = results.done(task.name, name)
    for method, split in units:
        if (method, split) not in done and method not in place["skipped"]:
            place["skipped"][method] = f"split {split} and on not run, {stop()}"


def _computed(experiment: str, trials: Iterator[Trial], jobs: int, folder: Path) -> Iterator[Outcome]:
    if jobs == 1:
        yield from (compute(experiment, trial) for trial in trials)
        return
    from joblib import Parallel, delayed

    # Processes share arrays through files: the memory map of the rows, or else a file in this folder. joblib's default
    # is an in-memory file system, which would hold the rows a second time.
    folder.mkdir(exist_ok=True)
    workers = Parallel(
        jobs, return_as="generator_unordered", pre_dispatch=jobs, max_nbytes="1M", temp_folder=str(folder)
    )
    yield from workers(delayed(_compute_apart)(experiment, trial) for trial in trials)


def _compute_apart(experiment: str, trial: Trial) -> Outcome:
    """Compute in a process that ignores Ctrl-C, which the main process handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return compute(experiment, trial)
