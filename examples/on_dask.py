"""
Fit on Dask
===========

``fit`` takes Dask arrays and dataframes, and reduces each chunk on the worker that holds it: no chunk is sent to this
process. Here the workers are threads of this machine; with a ``distributed.Client``, the same code runs on its cluster.
It requires ``pip install 'plstream[distributed,plot]'``.
"""

import tempfile
from pathlib import Path

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from plstream import IncrementalPLS, open_source
from plstream.distributed import OnWorkers
from plstream.plots import CoefficientsDisplay

# %%
# An array that is generated chunk by chunk, and never in memory as a whole:
rng = da.random.default_rng(0)
X = rng.normal(size=(200_000, 40), chunks=(10_000, 40))
y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=200_000, chunks=10_000)
model = IncrementalPLS(n_components=3).fit(X, y)
a, b = model.coef_[0, :2]
print(f"{model.n_samples_seen_:,} rows in {X.numblocks[0]} chunks: y = {a:.2f} x0 {b:+.2f} x1")

predictions = model.predict(X)
print(f"Predictions are a Dask array; their error is {float((predictions - y).std().compute()):.3f}")

# %%
# The coefficients of the first two of 40 features stand out:
CoefficientsDisplay.from_estimator(model)
plt.show()

# %%
# Workers can also read files themselves:
with tempfile.TemporaryDirectory() as folder:
    rows, values = np.asarray(X[:20_000]), np.asarray(y[:20_000])
    np.save(Path(folder, "X.npy"), rows)
    np.save(Path(folder, "y.npy"), values)
    source = open_source(Path(folder, "X.npy"), target=Path(folder, "y.npy"))
    on_workers = IncrementalPLS(n_components=3).fit(OnWorkers(source))
local = IncrementalPLS(n_components=3).fit(rows, values)
print(f"Largest difference from a local fit: {np.abs(on_workers.coef_ - local.coef_).max():.0e}")
