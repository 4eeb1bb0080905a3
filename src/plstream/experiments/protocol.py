"""The paper's protocol: the number of components is chosen on a tenth of the training rows, and tested once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import Array, FloatArray
from ..online._base import NotFiniteError
from .classifiers import accuracy
from .methods import METHODS, Projection, in_blocks
from .settings import Settings
from .task import Rows, Task


class NotPossibleError(ValueError):
    """A method cannot be run on a task, or cannot do what an experiment asks for: that is a result."""


@dataclass(frozen=True)
class Trial:
    """One method on one split, by its number: all that a cell of a table is computed from."""

    task: Task
    method: str
    split: int
    settings: Settings
    seed: int

    @property
    def train(self) -> Rows:
        """Rows to learn, in order."""
        return self.task.splits[self.split][0]

    @property
    def test(self) -> Rows:
        """Rows that nothing is learnt from."""
        return self.task.splits[self.split][1]

    def max_components(self, wanted: int | None = None) -> int:
        """Return the largest number of components that the method has here and that is wanted: those to be tried."""
        n_classes = len(np.unique(self.task.y[self.train]))
        wanted = self.settings.components if wanted is None else wanted
        return METHODS[self.method].max_components(n_classes, self.task.n_features, wanted)

    def fit(self, n_components: int, rows: Rows | None = None) -> Projection:
        """Return the method after it has learnt some rows in order, by default all training rows.

        If numbers overflow, it has as many components as can be had without: ``limited`` says why.
        """
        method, task = METHODS[self.method], self.task
        rows = self.train if rows is None else rows
        classes, limited = np.unique(task.y[rows]), ""
        while True:
            projection = Projection(method, n_components, classes, self.seed, self.settings)
            projection.limited = limited
            try:
                for block in in_blocks(rows, task) if method.incremental else [rows]:
                    projection.learn(task.X[block], task.y[block])
            except NotFiniteError as error:
                if error.component < 2:
                    raise
                n_components = error.component - 1
                limited = f"{n_components} component(s) at most, for number {error.component} is no longer finite"
            else:
                return projection

    def scores(self, projection: Projection, rows: Rows) -> FloatArray:
        """Return the scores of some rows."""
        task = self.task
        return np.concatenate([projection.scores(task.X[block]) for block in in_blocks(rows, task)])

    def accuracy(self, rows: Rows, S: Array, test_rows: Rows, S_test: Array, *, quick: bool = False) -> float:
        """Return the accuracy on the second rows of a classifier of the scores of the first."""
        y = self.task.y
        return accuracy(S, y[rows], S_test, y[test_rows], settings=self.settings, seed=self.seed, quick=quick)


def hold_out(y: Any, rows: Rows, share: float, seed: int, split: int) -> tuple[Rows, Rows]:
    """Return the rows that are left and those that are held out, a share of every class; both in order.

    The seed and the split decide which, the same for all methods. A class with a single row keeps it.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.experiments.protocol import hold_out
    >>> left, held = hold_out(np.repeat([0, 1], 10), np.arange(20), 0.1, seed=0, split=0)
    >>> len(left), held // 10
    (18, array([0, 1]))
    """
    random = np.random.default_rng([seed, split])
    labels, is_held = y[rows], np.zeros(len(rows), dtype=bool)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        n_held = min(len(members) - 1, max(1, round(share * len(members))))
        is_held[random.choice(members, n_held, replace=False)] = True
    return rows[~is_held], rows[is_held]


def choose_components(trial: Trial, least: int = 1) -> tuple[int, list[float | None]]:
    """Return the number of components with the best accuracy on validation rows, the smallest of equals, and all.

    Accuracies are those for 1, 2, ... components, None where there is none.
    """
    left, held = hold_out(trial.task.y, trial.train, trial.settings.validation, trial.seed, trial.split)
    validation = accuracies(trial, left, held, least)
    known = [value for value in validation if value is not None]
    if not known:
        raise NotPossibleError(f"it has fewer than {least} components")
    return validation.index(max(known)) + 1, validation


def accuracies(trial: Trial, rows: Rows, others: Rows, least: int = 1) -> list[float | None]:
    """Return the accuracies on other rows for 1, 2, ... components, None where there is none.

    Nested methods learn once. Numbers of components that a method cannot have are left out.
    """
    found: list[float | None] = [None] * trial.settings.components
    most, nested = trial.max_components(), METHODS[trial.method].nested
    for c in range(least, most + 1):
        if c == least or not nested:
            projection = trial.fit(most if nested else c, rows)
            S, S_others = trial.scores(projection, rows), trial.scores(projection, others)
        if nested and c > S.shape[2]:
            break
        found[c - 1] = trial.accuracy(rows, S[:, :, :c], others, S_others[:, :, :c], quick=True)
    return found


def limit(trial: Trial, found: list[float | None]) -> dict[str, str]:
    """Return a note for a cell if the method could not have all the components that were requested."""
    reached = sum(value is not None for value in found)
    if reached == trial.max_components():
        return {}
    return {"limited": f"at most {reached} component(s): with more, numbers are no longer finite"}
