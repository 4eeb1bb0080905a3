"""
One pass over thousands of features
===================================

Are two handwritten digits the same? Every pair is described by 4,096 random features, too many for a square matrix of
all of them, and the stream of pairs is read once. :class:`~plstream.IncrementalPLS` keeps a sketch that preserves the
PLS solution, and estimates how far it is from an exact fit. For comparison the stream is also kept here.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from plstream import IncrementalPLS

images, digits = load_digits(return_X_y=True)
projection = np.random.default_rng(0).normal(size=(images.shape[1], 4096)) / 128
features = np.maximum(images @ projection, 0).astype(np.float32)


def pairs(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs, half of them of the same digit: absolute differences of features, and +1 or -1."""
    left, right = rng.integers(len(digits), size=(2, n))
    for i in np.flatnonzero(rng.random(n) < 0.5):
        right[i] = rng.choice(np.flatnonzero(digits == digits[left[i]]))
    return np.abs(features[left] - features[right]), np.where(digits[left] == digits[right], 1.0, -1.0)


# %%
# The memory of the sketch is known beforehand, and does not depend on the length of the stream.
model = IncrementalPLS(n_components=4, scale=False)
print(f"at most {model.memory_usage(4096) / 1e6:.0f} MB")

rng = np.random.default_rng(1)
kept, estimates, seconds = [], [], 0.0
for _ in range(24):
    X, y = pairs(250, rng)
    kept.append((X, y))
    start = time.perf_counter()
    model.partial_fit(X, y)
    seconds += time.perf_counter() - start
    estimates.append((model.n_samples_seen_, model.subspace_error_[-1]))
print(f"{model.n_samples_seen_:,} pairs, {1e6 * seconds / model.n_samples_seen_:.0f} microseconds each")

# %%
# The estimated sine of the angle to the exact solution, and the true one:
exact = IncrementalPLS(n_components=4, scale=False).fit(*map(np.concatenate, zip(*kept, strict=True)))
cosines = np.linalg.svd(model.x_weights_.T @ exact.x_weights_, compute_uv=False)
print(f"estimated {model.subspace_error_[-1]:.3f}, measured {np.sqrt(max(0.0, 1 - cosines.min() ** 2)):.3f}")

new, new_y = pairs(2000, np.random.default_rng(2))
for name, fitted in (("one pass", model), ("exact", exact)):
    print(f"accuracy on new pairs, {name}: {np.mean(np.sign(fitted.predict(new)) == new_y):.1%}")

# %%
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(*zip(*estimates, strict=True), "o-")
ax.set(xlabel="pairs seen", ylabel="estimated sine", title="Distance of the sketch from an exact fit")
plt.show()
