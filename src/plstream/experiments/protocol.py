"""The paper's protocol: the number of components is chosen on a tenth of the training rows, and tested once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._core.types import FloatArray
from .classifiers import accuracy
from .methods import METHODS, fitted, scores_of
from .settings import Settings
from .task import Rows, Task

Cell = dict[str, Any]


class NotPossibleError(ValueError):
    """A method cannot be run on a task, or cannot do what an experiment asks for: that is a result."""


@dataclass(frozen=True)
class Setting:
    """All that a cell of a table is computed from.

    Attributes
    ----------
    task : Task
        The data.
    method : str
        Name of the method.
    split : int
        Which rows are for training and which for the test.
    settings : Settings
        Numbers that all cells share.
    seed : int
        Of all that is random.
    """

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

    @property
    def most_components(self) -> int:
        """The most components that the method has here, and that are tried."""
        n_classes = len(np.unique(self.task.y[self.train]))
        return METHODS[self.method].most_components(n_classes, self.task.n_features, self.settings.components)

    def accuracy(self, rows: Rows, S: FloatArray, test_rows: Rows, S_test: FloatArray, *, quick: bool = False) -> float:
        """Return how many of the second rows are right, by a classifier of the scores of the first."""
        y = self.task.y
        return accuracy(S, y[rows], S_test, y[test_rows], settings=self.settings, seed=self.seed, quick=quick)


def hold_out(y: Any, rows: Rows, share: float, seed: int, split: int) -> tuple[Rows, Rows]:
    """Return the rows that are left, in order, and a share of every class, drawn by seed, that is held out.

    Parameters
    ----------
    y : ndarray of shape (n_rows_of_task,)
        Labels.
    rows : ndarray of int
        Rows to draw from.
    share : float
        Of each class, rounded; a class with a single row keeps it.
    seed, split : int
        The same for all methods.

    Returns
    -------
    left, held : ndarrays of int
        Both in the order of ``rows``.

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


def score_tables(
    setting: Setting, rows: Rows, others: Rows, least: int = 1
) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Yield the scores of rows that are learnt, and of others, for every number of components.

    Nested methods learn once. Numbers of components that a method cannot have are left out.
    """
    method, task = METHODS[setting.method], setting.task
    most = setting.most_components

    def scores(n_components: int) -> tuple[FloatArray, FloatArray]:
        projection = fitted(method, task, rows, n_components, setting.seed, setting.settings)
        return scores_of(projection, task, rows), scores_of(projection, task, others)

    if method.nested:
        S, S_others = scores(most)
        for c in range(least, S.shape[2] + 1):
            yield c, S[:, :, :c], S_others[:, :, :c]
        return
    for c in range(least, most + 1):
        yield c, *scores(c)


def choose_components(setting: Setting, least: int = 1) -> tuple[int, list[float | None]]:
    """Return the number of components with the best accuracy on validation rows, the smallest of equals, and all.

    Accuracies are those for 1, 2, ... components, None where there is none.
    """
    task, settings = setting.task, setting.settings
    left, held = hold_out(task.y, setting.train, settings.validation, setting.seed, setting.split)
    validation = accuracies(setting, left, held, least)
    known = [value for value in validation if value is not None]
    if not known:
        raise NotPossibleError(f"it has fewer than {least} components")
    return validation.index(max(known)) + 1, validation


def accuracies(setting: Setting, rows: Rows, others: Rows, least: int = 1) -> list[float | None]:
    """Return the accuracies on other rows for 1, 2, ... components, None where there is none."""
    found: list[float | None] = [None] * setting.settings.components
    for c, S, S_others in score_tables(setting, rows, others, least):
        found[c - 1] = setting.accuracy(rows, S, others, S_others, quick=True)
    return found


CellFunction = Callable[[Setting], list[Cell]]
