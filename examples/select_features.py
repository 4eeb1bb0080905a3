"""Keep the features that matter, while rows stream by, and compare the ways to choose them.

The data is that of handwritten digits (bundled with scikit-learn), each pixel beside noise of the same size: half of
the features are worth nothing. The question is whether a digit is even.

Run as ``python examples/select_features.py [--keep 0.1 0.2 0.5]``.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from plstream import CIPLS, ILFS, IncrementalPLS, InfFS, InfFSS, InfFSU, VIPSelector, show_progress
from plstream.selection import compare_selectors

SELECTORS = {
    "VIP of IncrementalPLS": VIPSelector(IncrementalPLS(4)),
    "VIP of CIPLS": VIPSelector(CIPLS(4)),
    "infFS": InfFS(),
    "infFS, supervised": InfFS(supervised=True),
    "infFS_U": InfFSU(),
    "infFS_S": InfFSS(),
    "ilFS": ILFS(),
}


def pixels_and_noise() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return pixels, followed by pixels of other digits at random, and whether each digit is even."""
    data = load_digits()
    noise = np.random.default_rng(0).permuted(data.data, axis=0)
    return np.hstack([data.data, noise]), (data.target % 2 == 0).astype(np.int64)


def main() -> None:
    """Select from a stream, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=float, nargs="+", default=[0.1, 0.2, 0.5], help="shares of features to keep")
    args = parser.parse_args()
    X, y = pixels_and_noise()

    selector = VIPSelector(CIPLS(n_components=4), n_features_to_select=0.4)
    print("How many of the 51 features kept are pixels, as rows stream by:")
    for start in range(0, len(X), 200):
        rows = slice(start, start + 200)
        selector.partial_fit(X[rows], y[rows], classes=[0, 1])
        print(f"  after {min(rows.stop, len(X)):5,} rows: {np.sum(selector.get_support(indices=True) < 64)}")

    print("\nAccuracy of logistic regression with the features kept, in five folds:\n")
    with show_progress():
        comparison = compare_selectors(
            SELECTORS, X, y, keep=args.keep, estimator=LogisticRegression(C=0.01, max_iter=500)
        )
    print(comparison.table())
    print("\nStability: how alike the sets of features are that a selector keeps in different folds\n")
    for name, values in zip(comparison.names, comparison.stability(), strict=True):
        print(f"  {name:24}", *(f"{value:6.2f}" for value in values))


if __name__ == "__main__":
    main()
