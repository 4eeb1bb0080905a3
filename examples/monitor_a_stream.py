"""
Monitor a stream
================

Twenty sensors measure three factors. :class:`~plstream.monitoring.Monitor` finds rows that differ from the training
rows and the sensor at fault; :class:`~plstream.monitoring.DriftTracker` finds the moment at which the relation of y to
the sensors changes.
"""

import matplotlib.pyplot as plt
import numpy as np

from plstream import IncrementalPLS
from plstream.monitoring import DriftTracker, Monitor
from plstream.plots import MonitoringDisplay

rng = np.random.default_rng(0)
mixing = rng.normal(size=(3, 20))


def read(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the next n rows and responses."""
    factors = rng.normal(size=(n, 3))
    return factors @ mixing + 0.2 * rng.normal(size=(n, 20)), factors.sum(axis=1) + 0.1 * rng.normal(size=n)


model = IncrementalPLS(n_components=3).partial_fit(*read(2000))
monitor = Monitor(model, level=0.999)

# %%
# Sensor 7 is stuck in half of the new rows.
normal, _ = read(1000)
stuck = normal.copy()
stuck[:, 7] = normal[:, 7].max()
print(f"alarms when all sensors work:   {monitor.check(normal).alarm.mean():.1%}")
print(f"alarms when sensor 7 is stuck:  {monitor.check(stuck).alarm.mean():.1%}")

largest = monitor.contributions(stuck, "q").argmax(axis=1)
print(f"sensor 7 contributes most to Q in {np.mean(largest == 7):.0%} of these rows")

# %%
MonitoringDisplay.from_estimator(monitor, np.vstack([normal, stuck]))
plt.show()

# %%
# A stream in which y changes its sign with batch 40:
tracker = DriftTracker(IncrementalPLS(n_components=3, forgetting=0.999))
for batch in range(60):
    X, y = read(50)
    tracker.partial_fit(X, y if batch < 40 else -y)
print(tracker.summary())
