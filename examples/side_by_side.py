"""
The methods of the CIPLS paper on one stream
============================================

Pairs of handwritten digits arrive in 20 blocks: absolute differences of 1,000 random features, and whether the digits
are the same. After some of the blocks a linear classifier is trained on the scores of the rows so far, and tested on
new pairs.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from plstream import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA, IncrementalPLS

images, digits = load_digits(return_X_y=True)
features = np.maximum(images @ (np.random.default_rng(0).normal(size=(images.shape[1], 1000)) / 128), 0)


def pairs(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return n pairs, half of them of the same digit: absolute differences of features, and 1 or 0."""
    rng = np.random.default_rng(seed)
    left, right = rng.integers(len(digits), size=(2, n))
    for i in np.flatnonzero(rng.random(n) < 0.5):
        right[i] = rng.choice(np.flatnonzero(digits == digits[left[i]]))
    return np.abs(features[left] - features[right]), (digits[left] == digits[right]).astype(int)


X, y = pairs(4000, seed=1)
new, new_y = pairs(2000, seed=2)

# %%
methods = {
    "CIPLS": CIPLS(4),
    "CIPLS, Algorithm 1": CIPLS(4, variant="paper"),
    "CIPLS, released code": CIPLS(4, variant="released"),
    "IPLS": IPLS(4),
    "OLPLS": OLPLS(4),
    "SGDPLS": SGDPLS(1, random_state=0),
    "CCIPCA": CCIPCA(4),
    "IncrementalLDA": IncrementalLDA(shrinkage=0.1),
    "IncrementalPLS": IncrementalPLS(4, scale=False),
}
# Before many rows have come, not all components exist.
warnings.filterwarnings("ignore", message=".*component")
blocks = np.array([1, 2, 5, 10, 20])
accuracy = {}
for name, model in methods.items():
    accuracy[name] = []
    for block in range(1, 21):
        rows = slice((block - 1) * 200, block * 200)
        model.partial_fit(X[rows], y[rows])
        if block in blocks:
            scores, test_scores = model.transform(X[: rows.stop]), model.transform(new)
            spread = scores.std(axis=0) + np.finfo(float).tiny
            classifier = LinearSVC(dual=False).fit(scores / spread, y[: rows.stop])
            accuracy[name].append(classifier.score(test_scores / spread, new_y))
    print(f"{name:22}", *(f"{value:7.1%}" for value in accuracy[name]))

# %%
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, values in accuracy.items():
    ax.plot(200 * blocks, values, "o-", label=name)
ax.set(xlabel="pairs seen", ylabel="accuracy on new pairs")
ax.legend(frameon=False, fontsize="small", bbox_to_anchor=(1.01, 1))
plt.show()
