"""Choose the number of components by cross-validation, in the one pass over the data that the fit takes anyway.

Five factors are seen through 80 noisy columns. The same curve takes scikit-learn a fit for every fold and number.

Run as ``python examples/choose_components.py``.
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import KFold, cross_val_predict

from plstream import IncrementalPLSCV

MAX_COMPONENTS = 8


def main() -> None:
    """Choose both ways, and compare."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(5000, 5)) * [5.0, 4.0, 3.0, 2.0, 1.0]
    X = factors @ rng.normal(size=(5, 80)) + rng.normal(size=(5000, 80))
    y = factors.sum(axis=1) + rng.normal(size=5000)
    folds = KFold(5)

    start = time.perf_counter()
    model = IncrementalPLSCV(MAX_COMPONENTS, cv=folds, rule="one-se").fit(X, y)
    ours = model.cv_results_["mean_test_rmse"]
    seconds = time.perf_counter() - start

    start = time.perf_counter()
    held_out = [cross_val_predict(PLSRegression(c), X, y, cv=folds) for c in model.cv_results_["n_components"]]
    theirs = np.sqrt(np.mean((y - np.array(held_out)) ** 2, axis=1))
    times = (time.perf_counter() - start) / seconds

    print("components   RMSECV   by many fits")
    for c, mine, other in zip(model.cv_results_["n_components"], ours, theirs, strict=True):
        print(f"{c:10} {mine:8.4f} {other:14.4f}{'   chosen' if c == model.n_components_ else ''}")
    difference = np.abs(ours / theirs - 1).max()
    print(f"\nLargest relative difference {difference:.0e}; many fits take {times:.0f} times as long.")


if __name__ == "__main__":
    main()
