"""Methods by name, and what all have in common: they learn rows, and take rows to scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._core.types import Array, Float64Array, FloatArray
from ..estimators import IncrementalPLS
from ..online import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA
from ..online._base import NotFiniteError
from .settings import Settings
from .task import Rows, Task

# Of rows that are taken from a memory map at a time.
_BLOCK_BYTES = 32 << 20


@dataclass(frozen=True)
class Method:
    """How a method is made, and what is particular about it.

    Attributes
    ----------
    name, title : str
        In files, and in tables.
    estimator : type
        Takes the number of components, and options.
    options : dict
        Options that are always the same.
    named : dict
        Options that are settings, by the names that they have there.
    seeded : bool
        Whether something is random.
    target : {"labels", "responses", "none"}
        What it learns: labels, one column of -1 and +1 (two classes) or a column a class (more), or nothing.
    directions, weights : str
        Attributes: what centred rows are multiplied by, and the directions that the components are known by.
    a_class : bool
        Whether more than two classes have a model each, with scores side by side.
    nested : bool
        Whether the first components of many are those of few.
    bounded : bool
        Whether there are fewer components than classes.
    incremental : bool
        Whether it can learn more.
    """

    name: str
    title: str
    estimator: type[Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    seeded: bool = False
    target: str = "labels"
    directions: str = "x_weights_"
    weights: str = "x_weights_"
    a_class: bool = False
    nested: bool = True
    bounded: bool = False
    incremental: bool = True

    def new(self, n_components: int, seed: int, settings: Settings) -> Any:
        """Return an estimator that has learnt nothing."""
        options = {**self.options, **{option: getattr(settings, name) for option, name in self.named.items()}}
        return self.estimator(n_components, **options, **({"random_state": seed} if self.seeded else {}))

    def most_components(self, n_classes: int, n_features: int, wanted: int) -> int:
        """Return how many components there can be, at most as many as are wanted."""
        return min(wanted, n_features, n_classes - 1 if self.bounded else wanted)

    def n_models(self, n_classes: int) -> int:
        """Return how many models there are side by side."""
        return n_classes if self.a_class and n_classes > 2 else 1


class ClassMeansSVD:
    """The singular vectors of Xc'Y, for Y of one column a class: PLS-SVD.

    Column k of Xc'Y is the sum of the rows of class k less as many times the mean of all rows, so that Y is never made.
    """

    def __init__(self, n_components: int) -> None:
        self.n_components = n_components
        self._sums: Float64Array | None = None

    def partial_fit(self, X: Array, y: Array, classes: Array) -> ClassMeansSVD:
        """Add rows to the sums of their classes."""
        if self._sums is None:
            self._sums, self._counts = np.zeros((len(classes), X.shape[1])), np.zeros(len(classes))
        for k, label in enumerate(classes):
            self._sums[k] += X[y == label].sum(axis=0, dtype=np.float64)
            self._counts[k] += np.count_nonzero(y == label)
        return self

    @property
    def x_mean_(self) -> Float64Array:
        """Mean of all rows."""
        assert self._sums is not None
        mean: Float64Array = self._sums.sum(axis=0) / self._counts.sum()
        return mean

    @property
    def x_weights_(self) -> Float64Array:
        """Left singular vectors, largest singular values first."""
        assert self._sums is not None
        centred = self._sums - self._counts[:, None] * self.x_mean_
        vectors: Float64Array = np.linalg.svd(centred, full_matrices=False)[2]
        return vectors[: self.n_components].T

    def transform(self, X: Array) -> Float64Array:
        """Return the scores."""
        return np.asarray((X - self.x_mean_) @ self.x_weights_)


_ONE_A_CLASS: dict[str, Any] = {"directions": "x_rotations_", "a_class": True}
_METHODS = (
    # Components are in the order of their variances: with one more, another may come before them.
    Method("ccipca", "CCIPCA", CCIPCA, target="none", directions="components_", weights="components_", nested=False),
    Method("sgdpls", "SGDPLS", SGDPLS, seeded=True, nested=False, bounded=True),
    Method("ipls", "IPLS", IPLS, named={"n_pca_components": "ipls_directions"}, a_class=True),
    Method("olpls", "OLPLS", OLPLS, **_ONE_A_CLASS),
    Method(
        "incremental-lda",
        "Incremental LDA",
        IncrementalLDA,
        directions="scalings_",
        weights="scalings_",
        bounded=True,
    ),
    Method("cipls-paper", "CIPLS (Algorithm 1)", CIPLS, {"variant": "paper"}, **_ONE_A_CLASS),
    Method("cipls-released", "CIPLS (released code)", CIPLS, {"variant": "released"}, **_ONE_A_CLASS),
    Method("cipls", "CIPLS (normalized)", CIPLS, {"variant": "normalized"}, **_ONE_A_CLASS),
    Method(
        "incremental-pls",
        "IncrementalPLS (one pass)",
        IncrementalPLS,
        {"scale": False},
        target="responses",
        directions="x_rotations_",
    ),
    Method(
        "pls",
        "PLS",
        IncrementalPLS,
        {"scale": False, "solver": "multipass"},
        target="responses",
        directions="x_rotations_",
        incremental=False,
    ),
    Method("pls-svd", "PLS-SVD", ClassMeansSVD, bounded=True),
    # Only timed: the paper has 100 steps or more with every row.
    Method(
        "sgdpls-steps",
        "SGDPLS, T steps a row",
        SGDPLS,
        named={"n_steps": "steps"},
        seeded=True,
        nested=False,
        bounded=True,
    ),
)
METHODS = {method.name: method for method in _METHODS}


class Projection:
    """A method that learns rows, and takes rows to scores.

    Scores have the shape (rows, models, components): one model, or one for each class.
    """

    def __init__(self, method: Method, n_components: int, classes: Array, seed: int, settings: Settings) -> None:
        self.method, self.n_components, self.classes = method, n_components, classes
        self.n_models = method.n_models(len(classes))
        self.limited = ""
        """Why there are fewer components than asked for, if so."""
        self.model = method.new(n_components, seed, settings)

    def learn(self, X: Array, y: Array) -> None:
        """Learn more rows; a method that cannot forgets those before."""
        if self.method.target == "none":
            self.model.partial_fit(X)
        elif self.method.target == "labels":
            self.model.partial_fit(X, y, classes=self.classes)
        elif self.method.incremental:
            self.model.partial_fit(X, as_responses(y, self.classes))
        else:
            self.model.fit(X, as_responses(y, self.classes))

    def scores(self, X: Array) -> FloatArray:
        """Return the scores of rows."""
        scores: FloatArray = self.model.transform(X)
        return scores.reshape(len(X), self.n_models, -1)

    def directions(self) -> Float64Array:
        """Return what centred rows are multiplied by, of shape (models, components, features)."""
        return self._vectors(self.method.directions)

    def weights(self) -> Float64Array:
        """Return the directions that the components are known by, of the same shape."""
        return self._vectors(self.method.weights)

    def _vectors(self, name: str) -> Float64Array:
        vectors = np.asarray(getattr(self.model, name))
        vectors = vectors if name == "components_" else vectors.T
        return vectors.reshape(self.n_models, -1, vectors.shape[1])


def as_responses(y: Array, classes: Array) -> Float64Array:
    """Return -1 and +1 for two classes, else a column of 0 and 1 for each class.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.experiments.methods import as_responses
    >>> as_responses(np.array([3, 7, 3]), np.array([3, 7]))
    array([-1.,  1., -1.])
    >>> as_responses(np.array([2, 1]), np.array([1, 2, 3]))
    array([[0., 1., 0.],
           [1., 0., 0.]])
    """
    if len(classes) == 2:
        return np.where(y == classes[1], 1.0, -1.0)
    return np.asarray(y[:, None] == classes, dtype=np.float64)


def in_blocks(rows: Rows, task: Task) -> Iterator[Rows]:
    """Yield numbers of rows, so many that the rows themselves fit into a little memory."""
    step = max(1, _BLOCK_BYTES // (task.n_features * task.X.dtype.itemsize))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def fitted(method: Method, task: Task, rows: Rows, n_components: int, seed: int, settings: Settings) -> Projection:
    """Return the method after it has learnt some rows in order.

    If numbers overflow, it has as many components as can be had without: ``limited`` says why.
    """
    classes, limited = np.unique(task.y[rows]), ""
    while True:
        projection = Projection(method, n_components, classes, seed, settings)
        projection.limited = limited
        try:
            for block in in_blocks(rows, task) if method.incremental else [rows]:
                projection.learn(task.X[block], task.y[block])
        except NotFiniteError as error:
            if error.component < 2:
                raise
            n_components = error.component - 1
            limited = f"{n_components} component(s) at most, for number {error.component} is no longer finite"
        else:
            return projection


def scores_of(projection: Projection, task: Task, rows: Rows) -> FloatArray:
    """Return the scores of some rows of a task."""
    return np.concatenate([projection.scores(task.X[block]) for block in in_blocks(rows, task)])
