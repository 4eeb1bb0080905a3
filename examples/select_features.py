"""
Select features from a stream
=============================

The features are the pixels of handwritten digits and as many columns of noise with the same distribution; the label is
whether a digit is even. :class:`~plstream.VIPSelector` selects features while rows stream by, and
:func:`~plstream.selection.compare_selectors` compares it with other selectors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from plstream import CIPLS, ILFS, IncrementalPLS, InfFS, InfFSS, InfFSU, VIPSelector
from plstream.selection import compare_selectors

pixels, digits = load_digits(return_X_y=True)
noise = np.random.default_rng(0).permuted(pixels, axis=0)
X, y = np.hstack([pixels, noise]), (digits % 2 == 0).astype(int)

# %%
# How many of the 51 selected features are pixels, as rows come in:
selector = VIPSelector(CIPLS(n_components=4), n_features_to_select=0.4)
for start in range(0, len(X), 450):
    selector.partial_fit(X[start : start + 450], y[start : start + 450], classes=[0, 1])
    print(f"{min(start + 450, len(X)):5,} rows: {np.sum(selector.get_support(indices=True) < 64)}")

# %%
# Accuracy of a logistic regression on the selected features, in five folds:
selectors = {
    "VIP of IncrementalPLS": VIPSelector(IncrementalPLS(4)),
    "VIP of CIPLS": VIPSelector(CIPLS(4)),
    "infFS": InfFS(),
    "infFS, supervised": InfFS(supervised=True),
    "infFS_U": InfFSU(),
    "infFS_S": InfFSS(),
    "ilFS": ILFS(),
}
comparison = compare_selectors(
    selectors, X, y, keep=[0.1, 0.2, 0.5], estimator=LogisticRegression(C=0.01, max_iter=500)
)
print(comparison.table())

# %%
# Stability: the similarity of the sets of features that a selector keeps in different folds.
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.barh(comparison.names, [values[1] for values in comparison.stability()])
ax.invert_yaxis()
ax.set(xlabel="stability between folds, a fifth of the features kept", xlim=(0, 1))
plt.show()
