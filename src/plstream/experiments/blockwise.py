"""Classifiers trained on blocks of scores, for tasks whose scores do not fit into memory.

All methods of such a task are classified in this way, even with few scores, so that they are compared on equal
terms. Linear discriminants equal those of all scores at once. The perceptron and the linear SVM are trained with
scikit-learn's ``partial_fit``, in the same order of blocks in every epoch; a tenth of the rows, at most 20,000, is held
out, and training stops when the accuracy on these rows has not improved for some epochs.
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

_MOST_HELD = 20_000
_LEAST_GAIN = 1e-4
# As in the authors' code.
_SVM_SEED = 1227


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
        """Train epoch after epoch, from the last checkpoint on."""
        n_held = min(len(y) // 10, _MOST_HELD)
        n, held = len(y) - n_held, (S[len(y) - n_held :], y[len(y) - n_held :])
        self._begin(next(scores.blocks(S[:1], y[:1])))
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
        """The learnt arrays, not copied."""
        model = self._model
        if hasattr(model, "coefs_"):
            return [*model.coefs_, *model.intercepts_]
        return [model.coef_, model.intercept_]

    def _learn_block(self, block: Array, labels: Array) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._model.partial_fit(block.astype(np.float32), labels, classes=self._classes)

    def _begin(self, first: tuple[int, Array, Array]) -> None:
        """Allocate the weights by a step with a single row."""
        self._learn_block(first[1], first[2])

    @property
    def _moments(self) -> list[Array]:
        """The moments of the gradients that Adam keeps."""
        optimizer = getattr(self._model, "_optimizer", None)
        return [] if optimizer is None else [*optimizer.ms, *optimizer.vs]

    def _state(self, best: list[Array]) -> dict[str, Any]:
        kinds = {"weights": self.weights, "moments": self._moments, "best": best}
        steps = getattr(getattr(self._model, "_optimizer", None), "t", None) or self._model.t_
        return {f"{kind}{i}": array for kind, arrays in kinds.items() for i, array in enumerate(arrays)} | {
            "steps": steps
        }

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
