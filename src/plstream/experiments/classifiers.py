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

import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
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
_NAMES = {"svm": "linear SVM", "perceptron": "multilayer perceptron", "discriminants": "linear discriminants"}


def classifier_kind(n_classes: int, settings: Settings, *, quick: bool = False) -> str:
    """Return the kind of classifier: "svm", "perceptron", or "discriminants" if many classifiers are trained.

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
    """Describe the classifier used when many are trained."""
    return _NAMES[classifier_kind(task.n_classes, settings, quick=True)]


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
        classifier = _perceptron(y, settings, seed)
    with warnings.catch_warnings():
        # Warnings about the last epoch, and about scores that are all zero.
        warnings.simplefilter("ignore")
        predicted = classifier.fit(columns, y).predict(test_columns)
    return float(np.mean(predicted == y_test))


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


def accuracy_in_blocks(
    train: tuple[Array, Array],
    test: tuple[Array, Array],
    *,
    settings: Settings,
    seed: int,
    scratch: Scratch,
    kind: str,
) -> float:
    """Return the accuracy on test scores and labels of a classifier: "svm", "perceptron" or "discriminants"."""
    classes = np.unique(train[1])
    S = _Standardised.of(train[0], len(classes))
    classifier: Any
    if kind == "discriminants":
        classifier = IncrementalLDA(shrinkage=settings.shrinkage, solver="scatter")
        for _, block, labels in S.blocks(*train):
            classifier.partial_fit(block, labels, classes=classes)
    else:
        classifier = _BlockLearner(kind, classes, len(train[1]), settings, seed)
        name = f"classifier-{kind}-{zlib.crc32(np.array(train[0][:8]).tobytes()):08x}-{train[0].shape[-1]}"
        classifier.learn(S, *train, settings, scratch, name)
    return _accuracy(classifier, S, *test)


@dataclass(frozen=True)
class _Standardised:
    """Scores standardised by the means and standard deviations of the training rows."""

    mean: Float64Array
    deviation: Float64Array
    n_classes: int

    @classmethod
    def of(cls, S: Array, n_classes: int) -> _Standardised:
        origin, sums, squares = None, 0.0, 0.0
        for _, block in blocks_of(S, n_classes):
            origin = block.mean(axis=0) if origin is None else origin
            centred = block - origin
            sums, squares = sums + centred.sum(axis=0), squares + np.einsum("ij,ij->j", centred, centred)
        shift = np.asarray(sums) / len(S)
        deviation = np.sqrt(np.maximum(np.asarray(squares) / len(S) - shift**2, 0.0))
        mean = np.asarray(origin) + shift
        # As for scores in memory, up to the rounding of float32: a constant column carries no information.
        return cls(mean, np.where(deviation > 1e-6 * np.abs(mean), deviation, np.inf), n_classes)

    def blocks(self, S: Array, y: Array, start: int = 0) -> Iterator[tuple[int, Array, Array]]:
        """Yield the end of each block, its scores and its labels."""
        for rows, block in blocks_of(S, self.n_classes, start):
            yield rows.stop, (block - self.mean) / self.deviation, y[rows]


class _BlockLearner:
    """A scikit-learn classifier trained by ``partial_fit``, with checkpoints."""

    def __init__(self, kind: str, classes: Array, n_rows: int, settings: Settings, seed: int) -> None:
        from sklearn.linear_model import SGDClassifier
        from sklearn.neural_network import MLPClassifier

        self._classes = classes
        if kind == "svm":
            self._model = SGDClassifier(alpha=1 / (settings.svm_c * n_rows), random_state=_SVM_SEED)
        else:
            self._model = MLPClassifier(settings.hidden, learning_rate_init=settings.rate, random_state=seed)

    def learn(self, scores: _Standardised, S: Array, y: Array, settings: Settings, scratch: Scratch, name: str) -> None:
        """Train epoch by epoch, resuming from the last checkpoint."""
        n_held = min(len(y) // 10, _MOST_HELD)
        n, held = len(y) - n_held, (S[len(y) - n_held :], y[len(y) - n_held :])
        # A step with a single row allocates the weights.
        _, first, label = next(scores.blocks(S[:1], y[:1]))
        self._learn_block(first, label)
        best, progress = self.weights, np.array([0.0, 0.0, -1.0, 0.0])
        if (found := scratch.load_arrays(name)) is not None:
            best, progress = self._restore(found), found["progress"]
        # Rows of the current epoch, epochs without improvement, best accuracy, epochs.
        row, waited, reached, epoch = int(progress[0]), int(progress[1]), float(progress[2]), int(progress[3])

        def write() -> None:
            scratch.save_arrays(name, progress=np.array([row, waited, reached, epoch]), **self._state(best))

        while epoch < settings.epochs and waited < settings.patience:
            for stop, block, labels in scores.blocks(S[:n], y[:n], row):
                self._learn_block(block, labels)
                row = stop
                if scratch.is_due:
                    write()
            accuracy = _accuracy(self, scores, *held) if n_held else float(epoch)
            waited = 0 if accuracy > reached + _LEAST_GAIN else waited + 1
            if accuracy > reached:
                reached, best = accuracy, [weights.copy() for weights in self.weights]
            row, epoch = 0, epoch + 1
        for weights, values in zip(self.weights, best, strict=True):
            weights[...] = values

    def predict(self, block: Array) -> Array:
        """Predict the classes of rows."""
        return np.asarray(self._model.predict(block.astype(np.float32)))

    @property
    def weights(self) -> list[Array]:
        """The learnt arrays, without copying."""
        model = self._model
        if hasattr(model, "coefs_"):
            return [*model.coefs_, *model.intercepts_]
        return [model.coef_, model.intercept_]

    def _learn_block(self, block: Array, labels: Array) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._model.partial_fit(block.astype(np.float32), labels, classes=self._classes)

    @property
    def _moments(self) -> list[Array]:
        """Adam's moments of the gradients."""
        optimizer = getattr(self._model, "_optimizer", None)
        return [] if optimizer is None else [*optimizer.ms, *optimizer.vs]

    def _state(self, best: list[Array]) -> dict[str, Any]:
        kinds = {"weights": self.weights, "moments": self._moments, "best": best}
        arrays = {f"{kind}{i}": array for kind, found in kinds.items() for i, array in enumerate(found)}
        return {**arrays, "steps": getattr(getattr(self._model, "_optimizer", None), "t", None) or self._model.t_}

    def _restore(self, found: dict[str, Array]) -> list[Array]:
        """Continue from a checkpoint, and return the best weights so far."""
        for kind, arrays in (("weights", self.weights), ("moments", self._moments)):
            for i, array in enumerate(arrays):
                array[...] = found[f"{kind}{i}"]
        if hasattr(self._model, "_optimizer"):
            self._model._optimizer.t = int(found["steps"])
        else:
            self._model.t_ = float(found["steps"])
        return [found[f"best{i}"] for i in range(len(self.weights))]


def _accuracy(classifier: Any, scores: _Standardised, S: Array, y: Array) -> float:
    correct = sum(np.count_nonzero(classifier.predict(block) == labels) for _, block, labels in scores.blocks(S, y))
    return float(correct / len(y))
