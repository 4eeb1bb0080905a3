"""Small tasks and settings."""

import tempfile
from pathlib import Path

import numpy as np
import pytest

from plstream.experiments import runner
from plstream.experiments.paper import experiments
from plstream.experiments.plan import make_plan
from plstream.experiments.protocol import Trial
from plstream.experiments.results import Results
from plstream.experiments.scratch import Scratch
from plstream.experiments.settings import Settings
from plstream.experiments.task import Task

SMALL = Settings(components=3, epochs=5, blocks=4, runs=3, warm_rows=20, points=20, steps=2)


def make_task(n_classes, n_splits=3, n_rows=120, n_features=6, **options):
    random = np.random.default_rng(n_classes)
    y = np.arange(n_rows, dtype=np.int64) % n_classes
    X = random.normal(size=(n_rows, n_features)) + random.normal(size=(n_classes, n_features))[y]
    parts = np.array_split(random.permutation(n_rows).astype(np.intp), n_splits)
    splits = tuple((np.concatenate(parts[:i] + parts[i + 1 :]), parts[i]) for i in range(n_splits))
    known = {"name": f"small{n_classes}", "title": f"{n_classes} classes", "kind": "classification"}
    return Task(**(known | options), X=X, y=y, splits=splits)


@pytest.fixture(params=[2, 4], ids=["two classes", "four classes"])
def task(request):
    return make_task(request.param)


def trial_of(task, method, split=0, settings=SMALL, seed=0):
    # Only cells that take long, or are too large for memory, create the folder.
    return Trial(task, method, split, settings, seed, Scratch(Path(tempfile.gettempdir(), "plstream-no-such-cell")))


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """All experiments on two tasks, one of them as if it were in the paper."""
    patch = pytest.MonkeyPatch()
    patch.setattr(
        "plstream.experiments.paper.timing.GROWTH", {"n": (20, 40), "m": (8, 16), "c": (1, 2), "L": (2, 4), "T": (1, 2)}
    )
    patch.setattr("plstream.experiments.paper.timing._USUAL", {"n": 40, "m": 8, "c": 2})
    tasks = [make_task(2, kind="verification", paper="LFW"), make_task(4)]
    found = Results(tmp_path_factory.mktemp("results"), 0, SMALL)
    for task in tasks:
        found.begin(task)
    parts = make_plan(tasks, list(experiments().values()), methods=None, folds=2, settings=SMALL, seed=0, jobs=1)
    runner.run(parts, found)
    patch.undo()
    return found.data
