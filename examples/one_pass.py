"""Learn whether two digits are the same from a stream of pairs that is never stored, in one pass.

Every pair of handwritten digits (from scikit-learn's bundled set) is described by 4,096 random features, too many for a
square matrix of all of them. ``IncrementalPLS`` takes the pairs as they come and keeps a sketch. For once the stream is
also kept, to see how close the result is to an exact fit that reads all pairs again and again.

Run as ``python examples/one_pass.py [--pairs 6000]``.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from plstream import IncrementalPLS

N_FEATURES = 4096
N_COMPONENTS = 4
CHUNK = 250


class Pairs:
    """A stream of pairs of digits: differences of features, and +1 for the same digit or -1."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        images, self.digits = load_digits(return_X_y=True)
        weights = np.random.default_rng(0).normal(size=(images.shape[1], N_FEATURES)) / 128
        self.features = np.maximum(images @ weights, 0).astype(np.float32)

    def take(self, n: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return the next n pairs, half of them of one digit."""
        left = self.rng.integers(len(self.digits), size=n)
        right = self.rng.integers(len(self.digits), size=n)
        for i in np.flatnonzero(self.rng.random(n) < 0.5):
            right[i] = self.rng.choice(np.flatnonzero(self.digits == self.digits[left[i]]))
        same = self.digits[left] == self.digits[right]
        return np.abs(self.features[left] - self.features[right]), np.where(same, 1.0, -1.0)


def main() -> None:
    """Stream, compare and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=6000, help="length of the stream (default: %(default)s)")
    n_chunks = max(2, parser.parse_args().pairs // CHUNK)
    stream, kept = Pairs(seed=1), []
    model = IncrementalPLS(N_COMPONENTS, scale=False)
    print(f"The sketch takes at most {model.memory_usage(N_FEATURES) / 1e6:.0f} MB, however long the stream is.")
    seconds = 0.0
    for _ in range(n_chunks):
        X, y = stream.take(CHUNK)
        start = time.perf_counter()
        model.partial_fit(X, y)
        seconds += time.perf_counter() - start
        kept.append((X, y))
    print(f"{model.n_samples_seen_:,} pairs, {1e6 * seconds / model.n_samples_seen_:.0f} microseconds each.")
    print(f"Share of the variance held: {model.retained_variance_:.2f}")
    print(f"Angle to the exact solution, its sine estimated: {model.subspace_error_[-1]:.3f}")
    exact = IncrementalPLS(N_COMPONENTS, scale=False).fit(*map(np.concatenate, zip(*kept, strict=True)))
    cosines = np.linalg.svd(model.x_weights_.T @ exact.x_weights_, compute_uv=False)
    print(f"  and measured: {np.sqrt(max(0.0, 1 - cosines.min() ** 2)):.3f}")
    X, y = Pairs(seed=2).take(2000)
    for name, one in (("one pass", model), ("exact", exact)):
        print(f"Correct on new pairs, {name}: {np.mean(np.sign(one.predict(X)) == y):.1%}")


if __name__ == "__main__":
    main()
