"""Which rows are for training and which for testing: folds, and a single split."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.types import Array
from .task import Split

FOLDS = 10


def stratified_folds(y: Array, seed: int, n_folds: int = FOLDS) -> NDArray[np.intp]:
    """Return the fold of every row, by chance: sizes of folds and of classes in folds differ by one at most.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Labels.
    seed : int
        The same seed gives the same folds.
    n_folds : int, default=10
        How many folds.

    Returns
    -------
    fold : ndarray of shape (n_rows,)
        From 0 on.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.experiments.splits import stratified_folds
    >>> fold = stratified_folds(np.repeat([0, 1], 4), seed=0, n_folds=4)
    >>> [int(np.sum(fold[:4] == k)) for k in range(4)]
    [1, 1, 1, 1]
    """
    by_class = np.lexsort((np.random.default_rng(seed).random(len(y)), y))
    fold = np.empty(len(y), np.intp)
    # Dealt out class by class, like cards.
    fold[by_class] = np.arange(len(y)) % n_folds
    return fold


def split_by_fold(fold: Array, seed: int) -> tuple[Split, ...]:
    """Return one split a fold, which is tested on after training on all others.

    Training rows are in random order, the same in all splits: files have them sorted by class, and a stream that brings
    one class after another is another experiment.
    """
    shuffled = _shuffled(np.arange(len(fold)), seed)
    return tuple((shuffled[fold[shuffled] != number], np.flatnonzero(fold == number)) for number in np.unique(fold))


def single_split(test: Any, seed: int) -> tuple[Split, ...]:
    """Return the split whose test rows a mask says. Training rows are in random order."""
    test = np.asarray(test, bool)
    return ((_shuffled(np.flatnonzero(~test), seed), np.flatnonzero(test)),)


def _shuffled(rows: NDArray[np.intp], seed: int) -> NDArray[np.intp]:
    return np.random.default_rng(seed).permutation(rows)
