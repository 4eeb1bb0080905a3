"""Watch a stream: which rows are unlike those that a model was made from, which feature is at fault, and what drifts.

Twenty sensors see three factors. Later one of the sensors is stuck, and then what y depends on changes.

Run as ``python examples/monitor_a_stream.py``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plstream import IncrementalPLS
from plstream.monitoring import DriftTracker, Monitor

RNG = np.random.default_rng(0)
MIXING = RNG.normal(size=(3, 20))


def read(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return n rows and responses."""
    factors = RNG.normal(size=(n, 3))
    return factors @ MIXING + 0.2 * RNG.normal(size=(n, 20)), factors.sum(axis=1) + 0.1 * RNG.normal(size=n)


def main() -> None:
    """Judge rows, then a stream."""
    model = IncrementalPLS(n_components=3).partial_fit(*read(2000))
    monitor = Monitor(model, level=0.999)
    usual, _ = read(1000)
    broken = usual.copy()
    broken[:, 7] = usual[:, 7].max()
    print("Rows beyond the limits of T2 or Q:")
    for name, rows in (("all sensors work", usual), ("sensor 7 is stuck", broken)):
        print(f"  {name}: {monitor.check(rows).alarm.mean():.1%}")
    culprits = monitor.contributions(broken, "q").argmax(axis=1)
    print(f"Of the latter, sensor {np.bincount(culprits).argmax()} contributes most in {np.mean(culprits == 7):.0%}.\n")

    tracker = DriftTracker(IncrementalPLS(n_components=3, forgetting=0.999))
    for batch in range(60):
        X, y = read(50)
        tracker.partial_fit(X, y if batch < 40 else -y)
    print("A stream in which y changes its sign with batch 40:\n")
    print(tracker.summary())


if __name__ == "__main__":
    main()
