"""Tell kinds of grain apart by their spectra, as they come by on a belt.

The spectra are made here: absorption bands whose strengths differ by kind, with the drift and scatter of an instrument.
Two instruments measure at two places, a new kind turns up in mid-stream, and most of the grain is wheat.

Run as ``python examples/classify_spectra.py [--rows 3000]``.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, log_loss

from plstream import IncrementalPLSClassifier

KINDS = np.array(["barley", "maize", "oat", "rye", "spelt", "wheat"])
SHARES = np.array([0.1, 0.05, 0.1, 0.1, 0.05, 0.6])
WAVELENGTHS = np.linspace(850, 1050, 100)


def measure(labels: NDArray[np.str_], seed: int) -> NDArray[np.float64]:
    """Return a spectrum for each label."""
    rng = np.random.default_rng(seed)
    same = np.random.default_rng(0)
    centres, widths = same.uniform(850, 1050, 9), same.uniform(10, 40, 9)
    bands = np.exp(-(((WAVELENGTHS - centres[:, None]) / widths[:, None]) ** 2))
    strengths = 1 + 0.12 * same.normal(size=(len(KINDS), 9))
    n = len(labels)
    contents = strengths[np.searchsorted(KINDS, labels)] + 0.1 * rng.normal(size=(n, 9))
    baseline = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, 1)) * np.linspace(-1, 1, 100)
    spectra: NDArray[np.float64] = (1 + 0.1 * rng.normal(size=(n, 1))) * (contents @ bands) + baseline
    return spectra + 0.005 * rng.normal(size=(n, 100))


def main() -> None:
    """Stream, add a class, merge, and compare decisions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3000, help="spectra that each instrument measures")
    args = parser.parse_args()
    rng = np.random.default_rng(1)
    new = rng.choice(KINDS, 2000, p=SHARES)
    new_spectra = measure(new, seed=2)

    print("One instrument, which sees no spelt at first:")
    model = IncrementalPLSClassifier(n_components=12)
    for start in range(0, args.rows, 500):
        late = start >= args.rows / 2
        labels = rng.choice(KINDS, 500, p=SHARES)
        labels = labels if late else labels[labels != "spelt"]
        if late and "spelt" not in model.classes_:
            model.add_class("spelt")
        model.partial_fit(measure(labels, seed=start + 3), labels)
        right = model.score(new_spectra, new)
        print(f"  after {model.n_samples_seen_:5,} spectra, {len(model.classes_)} kinds: {right:.1%}")

    labels = rng.choice(KINDS, args.rows, p=SHARES)
    other = IncrementalPLSClassifier(n_components=12).partial_fit(measure(labels, seed=4), labels)
    print(f"\nThe other: {other.score(new_spectra, new):.1%}. Both together: ", end="")
    print(f"{model.merge(other).score(new_spectra, new):.1%}\n")

    print("  decision     components   accuracy   of all kinds alike   log-loss")
    equal = np.full(len(KINDS), 1 / len(KINDS))
    for decision, priors in (("lda", None), ("lda", equal), ("regression", None)):
        model.set_params(decision=decision, priors=priors)
        for k in (4, 8, 12):
            found = model.predict(new_spectra, n_components=k)
            loss = log_loss(new, model.predict_proba(new_spectra, n_components=k))
            alike = balanced_accuracy_score(new, found)
            name = decision + (", equal" if priors is not None else "")
            print(f"  {name:12} {k:10} {np.mean(found == new):10.1%} {alike:20.1%} {loss:10.3f}")


if __name__ == "__main__":
    main()
