"""Small tasks and settings."""

import numpy as np
import pytest

from plstream.experiments.protocol import Setting
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


def setting_of(task, method, split=0, settings=SMALL, seed=0):
    return Setting(task, method, split, settings, seed)
