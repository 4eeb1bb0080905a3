"""The first two scores of rows that were not learnt, to be looked at."""

from __future__ import annotations

import numpy as np

from .methods import METHODS, fitted, scores_of
from .protocol import Cell, Setting


def projection_cell(setting: Setting) -> list[Cell]:
    """Project test rows on two components; on the first ones of two classes, if every class has a model of its own."""
    task, settings = setting.task, setting.settings
    method = METHODS[setting.method]
    most = method.most_components(len(np.unique(task.y[setting.train])), task.n_features, 2)
    projection = fitted(method, task, setting.train, most, setting.seed, settings)
    random = np.random.default_rng([setting.seed, setting.split])
    rows = random.permutation(setting.test)[: settings.points]
    S = scores_of(projection, task, rows)
    pair = S[:, :2, 0] if projection.n_models > 1 else S[:, 0, :2]
    scores = np.zeros((len(rows), 2))
    # There may be one component only; that it is all there is can be seen.
    scores[:, : pair.shape[1]] = pair
    # Digits that can be seen.
    return [{"scores": [[float(f"{t:.6g}") for t in row] for row in scores], "labels": task.y[rows].tolist()}]
