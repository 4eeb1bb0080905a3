"""The handwritten digits of scikit-learn: 10 classes, and pairs to verify, without a download."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._core.types import Array
from ..task import Task, split_by_fold, stratified_folds
from .pairs import verification

# Pairs of each kind per fold: LFW has 300.
_PAIRS = 200


def load(seed: int) -> list[Task]:
    """Return the tasks of pairs of digits, and of digits."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X, y = X.astype(np.float32), y.astype(np.int64)
    fold = stratified_folds(y, seed)
    return [
        verification(
            X,
            *_make_pairs(y, fold, seed),
            name="digits-pairs",
            title="Pairs of handwritten digits, the same digit or not",
            seed=seed,
            note=(
                f"|a - b| of the 8 x 8 pixels of pairs of scikit-learn's 1,797 digits, made by seed {seed} like LFW's "
                f"View 2: 10 folds of {_PAIRS} pairs of the same and {_PAIRS} of different digits. No image is in two "
                "folds; unlike LFW's people, the ten digits are in all folds."
            ),
        ),
        Task(
            name="digits",
            title="Handwritten digits",
            kind="classification",
            X=X,
            y=y,
            splits=split_by_fold(fold, seed),
            note=f"The 8 x 8 pixels of scikit-learn's 1,797 digits, in 10 stratified folds by seed {seed}.",
        ),
    ]


def _make_pairs(y: Array, fold: Array, seed: int) -> tuple[Array, NDArray[np.int64], Array]:
    """Return pairs of rows, whether they are the same, and their folds, with matching pairs first, as in LFW."""
    random = np.random.default_rng(seed)
    pairs = []
    for number in np.unique(fold):
        rows = np.flatnonzero(fold == number)
        possible = np.column_stack([rows[side] for side in np.triu_indices(len(rows), k=1)])
        is_same = y[possible[:, 0]] == y[possible[:, 1]]
        pairs += [random.choice(possible[is_same == kind], _PAIRS, replace=False) for kind in (True, False)]
    n_folds = len(pairs) // 2
    same = np.tile(np.repeat(np.array([1, 0], np.int64), _PAIRS), n_folds)
    return np.concatenate(pairs), same, np.repeat(np.arange(n_folds), 2 * _PAIRS)
