"""Feature selection: a linear SVM of the features that a method ranks best."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.types import Array
from ..estimators import IncrementalPLS
from ..online import CIPLS
from ..selection import ILFS, InfFS, InfFSS, InfFSU, VIPSelector
from ..selection._base import number_to_keep
from .classifiers import linear_svm_of_features, standardised
from .methods import as_responses
from .protocol import Cell, Setting


class _OnePass:
    """VIP of a model that has read the rows once."""

    def __init__(self, n_components: int) -> None:
        self._selector = VIPSelector(IncrementalPLS(n_components, scale=False))

    def fit(self, X: Array, y: Array) -> Any:
        return self._selector.partial_fit(X, y)


_SELECTORS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "inffs": ("InfFS", lambda _: InfFS()),
    "ilfs": ("ILFS", lambda _: ILFS()),
    "inffs-u": ("InfFS_U", lambda _: InfFSU()),
    "inffs-s": ("InfFS_S", lambda _: InfFSS()),
    "pls-vip": ("PLS + VIP", lambda c: VIPSelector(IncrementalPLS(c, scale=False))),
    "cipls-vip": ("CIPLS (normalized) + VIP", lambda c: VIPSelector(CIPLS(c))),
    "incremental-pls-vip": ("IncrementalPLS (one pass) + VIP", _OnePass),
    "none": ("all features", lambda _: None),
}
SELECTORS = {name: title for name, (title, _) in _SELECTORS.items()}
_TAKE_RESPONSES = {"pls-vip", "incremental-pls-vip"}


def ranking(name: str, X: Array, y: Array, n_components: int) -> Array:
    """Return the ranks of the features, 1 for the best."""
    selector = _SELECTORS[name][1](n_components)
    target = as_responses(y, np.unique(y)) if name in _TAKE_RESPONSES else y
    return np.asarray(selector.fit(X, target).ranking_)


def selection_cell(setting: Setting) -> list[Cell]:
    """Rank the features by the training rows, and test the best shares of them; or all of them."""
    task, settings, start = setting.task, setting.settings, time.perf_counter()
    y, y_test = task.y[setting.train], task.y[setting.test]
    raw, raw_test = task.X[setting.train], task.X[setting.test]
    if setting.method == "none":
        ranks = np.arange(1, task.n_features + 1)
    else:
        ranks = ranking(setting.method, raw, y, settings.vip_components)
    X, X_test = standardised(raw, raw_test)
    digest = hashlib.sha256(np.ascontiguousarray(ranks, dtype=np.int64).tobytes()).hexdigest()[:16]
    to_rank, cells = time.perf_counter() - start, []
    for share in (1.0,) if setting.method == "none" else settings.shares:
        start = time.perf_counter()
        kept = ranks <= number_to_keep(share, task.n_features)
        with warnings.catch_warnings():
            # That liblinear has had the iterations it is allowed.
            warnings.simplefilter("ignore")
            svm = linear_svm_of_features(settings, task.n_features)
            predicted = svm.fit(X[:, kept], y).predict(X_test[:, kept])
        cell: Cell = {
            "share": share,
            "n_kept": int(np.count_nonzero(kept)),
            "accuracy": float(np.mean(predicted == y_test)),
            "ranking": digest,
            "seconds": to_rank + time.perf_counter() - start,
        }
        cells.append(cell)
    return cells
