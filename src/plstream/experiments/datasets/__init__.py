"""Data sets, by name: each becomes one task or several."""

from __future__ import annotations

from ..task import Task
from . import digits

_LOADERS = {"digits": digits.load}


def load_tasks(data: str, *, folds: int | None = None, seed: int = 0) -> list[Task]:
    """Return the tasks of a data set.

    Parameters
    ----------
    data : str
        ``"digits"``.
    folds : int, default=None
        Keep the first so many splits. By default all.
    seed : int, default=0
        For folds and pairs that a data set does not come with, and for the order of training rows.

    Returns
    -------
    tasks : list of Task
        At least one.

    Examples
    --------
    >>> from plstream.experiments.datasets import load_tasks
    >>> for task in load_tasks("digits", folds=3):
    ...     print(task.name, task.X.shape, len(task.splits))
    digits-pairs (4000, 64) 3
    digits (1797, 64) 3
    """
    if folds is not None and folds < 1:
        raise ValueError(f"folds={folds} must be 1 or more.")
    if data not in _LOADERS:
        raise ValueError(f"There is no data set {data!r}: there are {', '.join(_LOADERS)}.")
    return _LOADERS[data](folds, seed)
