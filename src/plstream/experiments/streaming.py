"""A stream: rows come in blocks, the model goes on learning, and is tested after each block."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .methods import METHODS, Projection, in_blocks, scores_of
from .protocol import Cell, Setting, choose_components


def streaming_cell(setting: Setting) -> list[Cell]:
    """Learn block after block, never a row twice, and test after each with a classifier of all rows so far."""
    task, train, test, settings = setting.task, setting.train, setting.test, setting.settings
    n_components, _ = choose_components(setting)
    projection = Projection(METHODS[setting.method], n_components, np.unique(task.y[train]), setting.seed, settings)
    ends = np.linspace(0, len(train), settings.blocks + 1).astype(int)
    found: list[float | None] = []
    for start, end in pairwise(ends):
        for block in in_blocks(train[start:end], task):
            projection.learn(task.X[block], task.y[block])
        seen = train[:end]
        if len(np.unique(task.y[seen])) < 2:
            found.append(None)
            continue
        S, S_test = scores_of(projection, task, seen), scores_of(projection, task, test)
        found.append(setting.accuracy(seen, S, test, S_test, quick=True))
    return [{"n_components": n_components, "n_seen": ends[1:].tolist(), "accuracy": found}]
