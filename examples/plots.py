"""
Plot a model
============

Scores, importance of features, explained variance and predictions of one model. The data is scikit-learn's wine data:
alcohol is predicted from twelve other measurements. It requires ``pip install 'plstream[plot]'``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from plstream import IncrementalPLS
from plstream.plots import ExplainedVarianceDisplay, PredictionDisplay, ScoresDisplay, VIPDisplay

wine = load_wine(as_frame=True)
alcohol, others = wine.data["alcohol"], wine.data.drop(columns="alcohol")
test = np.arange(len(alcohol)) % 3 == 0
model = IncrementalPLS(n_components=4).fit(others[~test], alcohol[~test])

# %%
# Every display takes an ``ax``, or makes a figure of its own.
figure, ((scores, importance), (variance, prediction)) = plt.subplots(2, 2, figsize=(11, 8), layout="constrained")
ScoresDisplay.from_estimator(model, others, wine.target_names[wine.target], ax=scores)
VIPDisplay.from_estimator(model, ax=importance)
ExplainedVarianceDisplay.from_estimator(model, ax=variance)
PredictionDisplay.from_estimator(model, others[test], alcohol[test], name="alcohol, %", ax=prediction)
print(f"R2 on new wines: {model.score(others[test], alcohol[test]):.2f}")
plt.show()
