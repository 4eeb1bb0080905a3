"""Classifiers of scores: those of the paper, and a faster one to choose the number of components.

The scores of different methods differ in scale by many orders of magnitude, and both C of an SVM and the steps of a
perceptron depend on the scale. All scores are therefore first standardised by the training rows.

On tasks whose scores do not fit into memory, classifiers are trained on blocks, for all methods, even those with few
scores, so that they are compared on equal terms. Linear discriminants are the same as for all scores at once. The
perceptron and the linear SVM are trained with scikit-learn's ``partial_fit``, in the same order of blocks in every
epoch; a tenth of the rows, at most 20,000, is held out, and training stops when the accuracy on these rows has not
improved for some epochs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .._core.types import Array, Float64Array
from ..online import IncrementalLDA
from .scratch import Scratch, blocks_of
from .settings import Settings
from .task import Task

# As in the authors' code.
_SVM_SEED = 1227
# For training in blocks: maximum number of held-out rows, and minimum gain that counts as an improvement.
_MOST_HELD = 20_000
_LEAST_GAIN = 1e-4
# The end of each block, its standardised scores and its labels.
Blocks = Iterator[tuple[int, Array, Array]]
_NAMES = {"svm": "linear SVM", "perceptron": "multilayer perceptron", "discriminants": "linear discriminants"}


def classifier_kind(n_classes: int, settings: Settings, *, quick: bool = False) -> str:
    """Return the kind of classifier: "svm", "perceptron", or "discriminants" if many classifiers are trained."""
    if quick:
        return "svm" if n_classes <= 2 else "discriminants"
    return settings.classifier if settings.classifier != "auto" else "svm" if n_classes <= 2 else "perceptron"


def score_classifier(task: Task, settings: Settings, *, quick: bool = False) -> str:
    """Describe the classifier of scores."""
    return _NAMES[classifier_kind(task.n_classes, settings, quick=quick)]


quick_classifier = partial(score_classifier, quick=True)


def feature_classifier(task: Task, settings: Settings) -> str:
    """Describe the classifier of features."""
    name = "linear SVM" if task.n_classes == 2 else "linear SVM, one class against the rest"
    if task.n_features <= settings.many_features:
        return name
    return f"{name}, stopped at a tolerance of {settings.early_tolerance:g}"


def accuracy(S: Array, y: Array, S_test: Array, y_test: Array, *, settings: Settings, seed: int, kind: str) -> float:
    """Return the test accuracy of a classifier trained on scores; all axes after the first are flattened."""
    columns, test_columns = standardised(S, S_test)
    if kind == "svm":
        classifier = linear_svm(settings)
    elif kind == "discriminants":
        classifier = IncrementalLDA(shrinkage=settings.shrinkage, solver="scatter")
    else:
        classifier = perceptron(y, settings, seed)
    return float(np.mean(classifier.fit(columns, y).predict(test_columns) == y_test))


def standardised(S: Array, S_test: Array) -> tuple[Array, Array]:
    """Return both as matrices, standardised by the means and deviations of the first."""
    columns, test_columns = S.reshape(len(S), -1), S_test.reshape(len(S_test), -1)
    mean, deviation = columns.mean(axis=0), columns.std(axis=0)
    # A column that is constant up to rounding carries no information.
    deviation = np.where(deviation > 1e-12 * np.abs(mean), deviation, np.inf)
    return (columns - mean) / deviation, (test_columns - mean) / deviation


def linear_svm(settings: Settings, n_features: int = 0) -> Any:
    """Return a linear SVM of scores, or of the given number of features; with thousands of them, it stops early."""
    from sklearn.svm import LinearSVC

    svm = LinearSVC(C=settings.svm_c, dual="auto", random_state=_SVM_SEED, max_iter=5000)
    return svm.set_params(dual=False, tol=settings.early_tolerance) if n_features > settings.many_features else svm


def perceptron(y: Array, settings: Settings, seed: int) -> Any:
    """Return a perceptron for scores with these labels."""
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


def accuracy_in_blocks(
    S: Array,
    y: Array,
    S_test: Array,
    y_test: Array,
    *,
    settings: Settings,
    seed: int,
    scratch: Scratch,
    kind: str,
) -> float:
    """Return the test accuracy of a classifier trained on blocks of scores, resuming from its last checkpoint."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.neural_network import MLPClassifier

    classes = np.unique(y)
    mean, deviation = _mean_and_deviation(S, len(classes))

    def blocks(S: Array, y: Array, start: int = 0) -> Blocks:
        for rows, block in blocks_of(S, len(classes), start):
            standard = (block - mean) / deviation
            yield rows.stop, standard if kind == "discriminants" else standard.astype(np.float32), y[rows]

    model: Any
    if kind == "discriminants":
        model = IncrementalLDA(shrinkage=settings.shrinkage, solver="scatter")
        for _, block, labels in blocks(S, y):
            model.partial_fit(block, labels, classes=classes)
        return _accuracy_on(blocks(S_test, y_test), model)
    if kind == "svm":
        model = SGDClassifier(alpha=1 / (settings.svm_c * len(y)), random_state=_SVM_SEED)
    else:
        model = MLPClassifier(settings.hidden, learning_rate_init=settings.rate, random_state=seed)
    # A step with a single row allocates the weights.
    model.partial_fit(next(blocks(S[:1], y[:1]))[1], y[:1], classes=classes)
    name = f"classifier-{kind}-{zlib.crc32(np.array(S[:8]).tobytes()):08x}-{S.shape[-1]}"
    n = len(y) - min(len(y) // 10, _MOST_HELD)
    _train(model, partial(blocks, S[:n], y[:n]), partial(blocks, S[n:], y[n:]), settings, scratch, name)
    return _accuracy_on(blocks(S_test, y_test), model)


def _train(
    model: Any,
    blocks: Callable[..., Blocks],
    held: Callable[[], Blocks],
    settings: Settings,
    scratch: Scratch,
    name: str,
) -> None:
    """Train epoch by epoch until the accuracy on held-out rows no longer improves, and keep the best weights."""
    best = _weights(model)
    # Rows of the current epoch, epochs without improvement, epochs, and best accuracy.
    row, waited, epoch, reached = 0, 0, 0, -1.0
    if (found := scratch.load_arrays(name)) is not None:
        best = _restore(model, found)
        row, waited, epoch = (int(found[key]) for key in ("row", "waited", "epoch"))
        reached = float(found["reached"])
    while epoch < settings.epochs and waited < settings.patience:
        for stop, block, labels in blocks(row):
            model.partial_fit(block, labels)
            row = stop
            if scratch.is_due:
                progress = {"row": row, "waited": waited, "epoch": epoch, "reached": reached}
                scratch.save_arrays(name, **progress, **_training_state(model, best))
        # Without held-out rows, the last epoch is the best.
        accuracy = _accuracy_on(held(), model, default=float(epoch))
        waited = 0 if accuracy > reached + _LEAST_GAIN else waited + 1
        if accuracy > reached:
            reached, best = accuracy, [weights.copy() for weights in _weights(model)]
        row, epoch = 0, epoch + 1
    for weights, values in zip(_weights(model), best, strict=True):
        weights[...] = values


def _accuracy_on(blocks: Blocks, model: Any, default: float = np.nan) -> float:
    correct = [model.predict(block) == labels for _, block, labels in blocks]
    return float(np.mean(np.concatenate(correct))) if correct else default


def _mean_and_deviation(S: Array, n_classes: int) -> tuple[Float64Array, Float64Array]:
    """Return the means and standard deviations of scores, read in blocks."""
    origin, sums, squares = None, 0.0, 0.0
    for _, block in blocks_of(S, n_classes):
        origin = block.mean(axis=0) if origin is None else origin
        centred = block - origin
        sums, squares = sums + centred.sum(axis=0), squares + np.einsum("ij,ij->j", centred, centred)
    shift = np.asarray(sums) / len(S)
    deviation = np.sqrt(np.maximum(np.asarray(squares) / len(S) - shift**2, 0.0))
    mean = np.asarray(origin) + shift
    # As for scores in memory, up to the rounding of float32: a constant column carries no information.
    return mean, np.where(deviation > 1e-6 * np.abs(mean), deviation, np.inf)


def _weights(model: Any) -> list[Array]:
    """Return the learnt arrays of a perceptron or an SVM, without copying."""
    return [*model.coefs_, *model.intercepts_] if hasattr(model, "coefs_") else [model.coef_, model.intercept_]


def _moments(model: Any) -> list[Array]:
    """Return Adam's moments of the gradients, without copying; an SVM has none."""
    return [*model._optimizer.ms, *model._optimizer.vs] if hasattr(model, "_optimizer") else []


def _training_state(model: Any, best: list[Array]) -> dict[str, Any]:
    """Return all that the next steps depend on, and the best weights so far."""
    kinds = {"weights": _weights(model), "moments": _moments(model), "best": best}
    arrays = {f"{kind}{i}": array for kind, found in kinds.items() for i, array in enumerate(found)}
    return {**arrays, "steps": model._optimizer.t if hasattr(model, "_optimizer") else model.t_}


def _restore(model: Any, found: dict[str, Array]) -> list[Array]:
    """Continue from a training state, and return the best weights so far."""
    for kind, arrays in (("weights", _weights(model)), ("moments", _moments(model))):
        for i, array in enumerate(arrays):
            array[...] = found[f"{kind}{i}"]
    if hasattr(model, "_optimizer"):
        model._optimizer.t = int(found["steps"])
    else:
        model.t_ = float(found["steps"])
    return [found[f"best{i}"] for i in range(len(_weights(model)))]
