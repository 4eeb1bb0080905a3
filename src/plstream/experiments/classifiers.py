"""Classifiers of scores: those of the paper, and a faster one to choose the number of components.

The scores of different methods differ in scale by many orders of magnitude, and both C of an SVM and the steps of a
perceptron depend on the scale. All scores are therefore standardised by the training rows first.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._core.types import Array
from ..online import IncrementalLDA
from .settings import Settings
from .task import Task

# As in the authors' code.
_SVM_SEED = 1227


_NAMES = {"svm": "linear SVM", "perceptron": "multilayer perceptron", "discriminants": "linear discriminants"}


def classifier_kind(n_classes: int, settings: Settings, *, quick: bool = False) -> str:
    """Return the kind of classifier: "svm", "perceptron", or "discriminants" where many classifiers are trained.

    Examples
    --------
    >>> from plstream.experiments.classifiers import classifier_kind
    >>> from plstream.experiments.settings import Settings
    >>> classifier_kind(2, Settings()), classifier_kind(10, Settings()), classifier_kind(10, Settings(), quick=True)
    ('svm', 'perceptron', 'discriminants')
    """
    if quick:
        return "svm" if n_classes <= 2 else "discriminants"
    return settings.classifier if settings.classifier != "auto" else "svm" if n_classes <= 2 else "perceptron"


def final_classifier(task: Task, settings: Settings) -> str:
    """Describe the classifier of the final test."""
    return _NAMES[classifier_kind(task.n_classes, settings)]


def quick_classifier(task: Task, settings: Settings) -> str:
    """Describe the classifier that is trained many times."""
    return _NAMES[classifier_kind(task.n_classes, settings, quick=True)]


def feature_classifier(task: Task, settings: Settings) -> str:
    """Describe the classifier of features."""
    name = "linear SVM" if task.n_classes == 2 else "linear SVM, one class against the rest"
    if task.n_features <= settings.many_features:
        return name
    return f"{name}, stopped at a tolerance of {settings.early_tolerance:g}"


def accuracy(S: Array, y: Array, S_test: Array, y_test: Array, *, settings: Settings, seed: int, kind: str) -> float:
    """Return the test accuracy of a kind of classifier of scores, which may have any shape after the rows."""
    columns, test_columns = standardised(S, S_test)
    if kind == "svm":
        classifier = linear_svm(settings)
    elif kind == "discriminants":
        classifier = IncrementalLDA(shrinkage=settings.shrinkage, solver="scatter")
    else:
        classifier = _perceptron(y, settings, seed)
    with warnings.catch_warnings():
        # Warnings that the last epoch was reached, and that scores may all be zero.
        warnings.simplefilter("ignore")
        predicted = classifier.fit(columns, y).predict(test_columns)
    return float(np.mean(predicted == y_test))


def standardised(S: Array, S_test: Array) -> tuple[Array, Array]:
    """Return both as matrices, standardised by the means and standard deviations of the columns of the first."""
    columns, test_columns = S.reshape(len(S), -1), S_test.reshape(len(S_test), -1)
    mean, deviation = columns.mean(axis=0), columns.std(axis=0)
    # A column that is constant up to rounding errors carries no information.
    deviation = np.where(deviation > 1e-12 * np.abs(mean), deviation, np.inf)
    return (columns - mean) / deviation, (test_columns - mean) / deviation


def linear_svm(settings: Settings, n_features: int = 0) -> Any:
    """Return a linear SVM of scores, or of the given number of features; it stops early with thousands of them."""
    from sklearn.svm import LinearSVC

    svm = LinearSVC(C=settings.svm_c, dual="auto", random_state=_SVM_SEED, max_iter=5000)
    return svm.set_params(dual=False, tol=settings.early_tolerance) if n_features > settings.many_features else svm


def _perceptron(y: Array, settings: Settings, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier

    counts = np.unique(y, return_counts=True)[1]
    # A tenth of the rows is held out, with at least one of each class.
    can_stop = counts.min() >= 2 and len(y) >= 10 * len(counts)
    return MLPClassifier(
        settings.hidden,
        learning_rate_init=settings.rate,
        early_stopping=can_stop,
        n_iter_no_change=settings.patience,
        max_iter=settings.epochs,
        random_state=seed,
    )
