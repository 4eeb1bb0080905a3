"""Classifiers of scores: what is in the paper, and something quick to choose the number of components with.

Scores of methods differ in scale by many orders of magnitude, and both C of an SVM and the steps of a perceptron have
the units of what they are given. So all scores are divided by their deviations in the training rows first.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._core.types import Array
from ..online import IncrementalLDA
from .settings import Settings

# That of the authors' code.
_SVM_SEED = 1227
FINAL = {True: "linear SVM", False: "multilayer perceptron"}
QUICK = {True: "linear SVM", False: "linear discriminants"}


def accuracy(
    S: Array, y: Array, S_test: Array, y_test: Array, *, settings: Settings, seed: int, quick: bool = False
) -> float:
    """Return the share of test rows that a classifier of scores gets right.

    Parameters
    ----------
    S, S_test : ndarray of shape (n_rows, ...)
        Scores of the rows to train with and to test with, of any shape.
    y, y_test : ndarray of shape (n_rows,)
        Labels.
    settings : Settings
        Of the classifier.
    seed : int
        Of the perceptron.
    quick : bool, default=False
        With more than two classes, whether to use linear discriminants instead of a perceptron.

    Returns
    -------
    share : float
    """
    columns, test_columns = standardised(S, S_test)
    several = len(np.unique(y)) > 2
    if not several:
        classifier = linear_svm(settings)
    elif quick:
        classifier = IncrementalLDA(shrinkage=settings.shrinkage, solver="scatter")
    else:
        classifier = _perceptron(y, settings, seed)
    with warnings.catch_warnings():
        # That the last epoch was the last one allowed, and that scores may all be zero.
        warnings.simplefilter("ignore")
        predicted = classifier.fit(columns, y).predict(test_columns)
    return float(np.mean(predicted == y_test))


def standardised(S: Array, S_test: Array) -> tuple[Array, Array]:
    """Return both as matrices, minus the means and divided by the deviations of the columns of the first."""
    columns, test_columns = S.reshape(len(S), -1), S_test.reshape(len(S_test), -1)
    mean, deviation = columns.mean(axis=0), columns.std(axis=0)
    # A column that is constant but for rounding errors says nothing.
    deviation = np.where(deviation > 1e-12 * np.abs(mean), deviation, np.inf)
    return (columns - mean) / deviation, (test_columns - mean) / deviation


def linear_svm(settings: Settings) -> Any:
    """Return a linear SVM of scores, of one class against the rest if there are several."""
    from sklearn.svm import LinearSVC

    return LinearSVC(C=settings.svm_c, dual="auto", random_state=_SVM_SEED, max_iter=5000)


def linear_svm_of_features(settings: Settings, n_features: int) -> Any:
    """Return a linear SVM of the best of so many features, which stops early if there are thousands."""
    svm = linear_svm(settings)
    return svm.set_params(dual=False, tol=settings.early_tolerance) if stops_early(settings, n_features) else svm


def stops_early(settings: Settings, n_features: int) -> bool:
    """Return whether an SVM of some of so many features would take too long to converge."""
    return n_features > settings.many_features


def _perceptron(y: Array, settings: Settings, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    counts = np.unique(y, return_counts=True)[1]
    # It sets a tenth of the rows aside, with one of each class at least.
    can_stop = counts.min() >= 2 and len(y) >= 10 * len(counts)
    return MLPClassifier(
        settings.hidden,
        learning_rate_init=settings.rate,
        early_stopping=can_stop,
        n_iter_no_change=settings.patience,
        max_iter=settings.epochs,
        random_state=seed,
    )
