"""
Choose the number of components
===============================

:class:`~plstream.IncrementalPLSCV` cross-validates every number of components while it fits. Here five factors are seen
through 80 noisy columns, and the same curve is computed by refitting scikit-learn's ``PLSRegression`` for every fold
and number.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import KFold, cross_val_predict

from plstream import IncrementalPLSCV
from plstream.plots import CrossValidationDisplay

rng = np.random.default_rng(0)
factors = rng.normal(size=(5000, 5)) * [5.0, 4.0, 3.0, 2.0, 1.0]
X = factors @ rng.normal(size=(5, 80)) + rng.normal(size=(5000, 80))
y = factors.sum(axis=1) + rng.normal(size=5000)

# %%
# One call fits the model and cross-validates it. ``rule="one-se"`` takes the smallest number of components whose error
# is within one standard error of the best.
folds = KFold(5)
start = time.perf_counter()
model = IncrementalPLSCV(max_components=8, cv=folds, rule="one-se").fit(X, y)
seconds = time.perf_counter() - start
print(f"{model.n_components_} components")

# %%
# The same errors, by 40 fits:
start = time.perf_counter()
held_out = [cross_val_predict(PLSRegression(c), X, y, cv=folds) for c in range(1, 9)]
errors = np.sqrt(np.mean((y - np.array(held_out)) ** 2, axis=1))
ratio = (time.perf_counter() - start) / seconds

difference = np.abs(model.cv_results_["mean_test_rmse"] / errors - 1).max()
print(f"Largest relative difference: {difference:.0e}. The loop takes {ratio:.0f} times as long.")

# %%
CrossValidationDisplay.from_estimator(model)
plt.show()
