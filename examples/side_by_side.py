"""See the methods of the CIPLS paper learn from one stream, row by row, and how well their scores tell digits apart.

Pairs of handwritten digits (from scikit-learn's bundled set) arrive in 20 blocks: differences of 1,000 random features,
and whether the digits are the same. After some blocks, a linear classifier is trained on the scores of the rows so far.

Run as ``python examples/side_by_side.py [--pairs 4000]``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from plstream import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA, IncrementalPLS

N_FEATURES = 1000
N_BLOCKS = 20
SHOWN = (1, 2, 5, 10, 20)

METHODS: dict[str, TransformerMixin] = {
    "CIPLS": CIPLS(4),
    "CIPLS, as in the paper": CIPLS(4, variant="paper"),
    "CIPLS, as released": CIPLS(4, variant="released"),
    "IPLS": IPLS(4),
    "OLPLS": OLPLS(4),
    "SGDPLS": SGDPLS(1, random_state=0),
    "CCIPCA": CCIPCA(4),
    "IncrementalLDA": IncrementalLDA(shrinkage=0.1),
    "IncrementalPLS": IncrementalPLS(4, scale=False),
}


def make_pairs(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return n pairs, half of them of one digit: differences of features, and 1 for the same digit or 0."""
    rng = np.random.default_rng(seed)
    images, digits = load_digits(return_X_y=True)
    weights = np.random.default_rng(0).normal(size=(images.shape[1], N_FEATURES)) / 128
    features = np.maximum(images @ weights, 0)
    left, right = rng.integers(len(digits), size=(2, n))
    for i in np.flatnonzero(rng.random(n) < 0.5):
        right[i] = rng.choice(np.flatnonzero(digits == digits[left[i]]))
    return np.abs(features[left] - features[right]), (digits[left] == digits[right]).astype(int)


def accuracies(model: TransformerMixin, pairs: int) -> Iterator[float]:
    """Feed a method block by block, and yield the share of new pairs that its scores get right after some of them."""
    X, y = make_pairs(pairs, seed=1)
    new_X, new_y = make_pairs(2000, seed=2)
    step = len(X) // N_BLOCKS
    for block in range(1, N_BLOCKS + 1):
        rows = slice((block - 1) * step, block * step)
        model.partial_fit(X[rows], y[rows])
        if block in SHOWN:
            seen = slice(0, block * step)
            scores = model.transform(X[seen])
            spread = scores.std(axis=0) + np.finfo(float).tiny
            classifier = LinearSVC(dual=False).fit(scores / spread, y[seen])
            yield classifier.score(model.transform(new_X) / spread, new_y)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=4000, help="length of the stream (default: %(default)s)")
    pairs = max(400, parser.parse_args().pairs)
    # The first rows do not have all components yet.
    warnings.filterwarnings("ignore", message=".*component")
    print(f"Correct on new pairs, after so many of {pairs:,} pairs:\n")
    print(" " * 24 + "".join(f"{block * pairs // N_BLOCKS:>9,}" for block in SHOWN))
    for name, model in METHODS.items():
        print(f"{name:24}" + "".join(f"{accuracy:>9.1%}" for accuracy in accuracies(model, pairs)), flush=True)


if __name__ == "__main__":
    main()
