"""Fit where the data is, on Dask: in chunks of an array that is never there as a whole, and in files that workers read.

Here the workers are threads of this machine. With a ``distributed.Client`` they are those of its cluster, and nothing
else changes.

Run as ``python examples/on_dask.py``. It needs ``pip install 'plstream[distributed]'``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import dask.array as da
import numpy as np

from plstream import IncrementalPLS, open_source
from plstream.distributed import OnWorkers


def main() -> None:
    """Fit an array and files, and compare with fits in one process."""
    rng = da.random.default_rng(0)
    X = rng.normal(size=(200_000, 40), chunks=(10_000, 40))
    y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=200_000, chunks=10_000)
    model = IncrementalPLS(n_components=3).fit(X, y)
    a, b = model.coef_[0, :2]
    print(f"{model.n_samples_seen_:,} rows in {X.numblocks[0]} chunks: y = {a:.2f} x0 {b:+.2f} x1")
    predictions = model.predict(X)
    print(f"Predictions are a Dask array; their error is {float((predictions - y).std().compute()):.3f}\n")

    with tempfile.TemporaryDirectory() as folder:
        rows, values = np.asarray(X[:20_000]), np.asarray(y[:20_000])
        np.save(Path(folder, "X.npy"), rows)
        np.save(Path(folder, "y.npy"), values)
        source = open_source(Path(folder, "X.npy"), target=Path(folder, "y.npy"))
        on_workers = IncrementalPLS(n_components=3).fit(OnWorkers(source))
    here = IncrementalPLS(n_components=3).fit(rows, values)
    print(f"Files read by workers: largest difference to a fit here {np.abs(on_workers.coef_ - here.coef_).max():.0e}")


if __name__ == "__main__":
    main()
