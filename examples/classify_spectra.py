"""
Classify spectra in a stream
============================

Two instruments measure the spectra of six kinds of grain. One of them meets a new kind in mid-stream, the models of
both are merged, and most of the grain is wheat. The spectra are simulated: absorption bands whose strengths depend on
the kind, with the drift and scatter of an instrument.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import balanced_accuracy_score, log_loss

from plstream import IncrementalPLSClassifier
from plstream.plots import ScoresDisplay

KINDS = np.array(["barley", "maize", "oat", "rye", "spelt", "wheat"])
SHARES = [0.1, 0.05, 0.1, 0.1, 0.05, 0.6]
WAVELENGTHS = np.linspace(850, 1050, 100)

shared = np.random.default_rng(0)
centres, widths = shared.uniform(850, 1050, 9), shared.uniform(10, 40, 9)
bands = np.exp(-(((WAVELENGTHS - centres[:, None]) / widths[:, None]) ** 2))
strengths = 1 + 0.12 * shared.normal(size=(len(KINDS), 9))


def measure(labels: np.ndarray, seed: int) -> np.ndarray:
    """Return a spectrum for each label."""
    rng = np.random.default_rng(seed)
    n = len(labels)
    contents = strengths[np.searchsorted(KINDS, labels)] + 0.1 * rng.normal(size=(n, 9))
    baseline = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 1)) * np.linspace(-1, 1, 100)
    return (1 + 0.1 * rng.normal(size=(n, 1))) * (contents @ bands) + baseline + 0.005 * rng.normal(size=(n, 100))


rng = np.random.default_rng(1)
test_labels = rng.choice(KINDS, 2000, p=SHARES)
test_spectra = measure(test_labels, seed=2)

# %%
# The first instrument sees no spelt in the first half of its stream; ``add_class`` registers it when it turns up.
model = IncrementalPLSClassifier(n_components=12)
for start in range(0, 3000, 500):
    labels = rng.choice(KINDS, 500, p=SHARES)
    if start < 1500:
        labels = labels[labels != "spelt"]
    elif "spelt" not in model.classes_:
        model.add_class("spelt")
    model.partial_fit(measure(labels, seed=start + 3), labels)
    accuracy = model.score(test_spectra, test_labels)
    print(f"{model.n_samples_seen_:5,} spectra, {len(model.classes_)} kinds: accuracy {accuracy:.1%}")

# %%
# The second instrument has a model of its own, and both merge into the model of all spectra.
labels = rng.choice(KINDS, 3000, p=SHARES)
other = IncrementalPLSClassifier(n_components=12).partial_fit(measure(labels, seed=4), labels)
print(f"second instrument: {other.score(test_spectra, test_labels):.1%}")
print(f"merged:            {model.merge(other).score(test_spectra, test_labels):.1%}")

# %%
# How scores are turned into classes can be changed without training: ``priors`` for classes of unequal size,
# ``decision`` for the rule, and fewer components.
equal = np.full(len(KINDS), 1 / len(KINDS))
print("decision       components  accuracy  balanced accuracy  log loss")
for decision, priors in (("lda", None), ("lda", equal), ("regression", None)):
    model.set_params(decision=decision, priors=priors)
    for k in (4, 12):
        predicted = model.predict(test_spectra, n_components=k)
        loss = log_loss(test_labels, model.predict_proba(test_spectra, n_components=k))
        balanced = balanced_accuracy_score(test_labels, predicted)
        name = decision + (", equal" if priors is not None else "")
        print(f"{name:14} {k:10} {np.mean(predicted == test_labels):9.1%} {balanced:18.1%} {loss:9.3f}")

# %%
ScoresDisplay.from_estimator(model, test_spectra, test_labels)
plt.show()
