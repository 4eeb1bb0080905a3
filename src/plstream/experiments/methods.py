"""Methods by name: those that reduce the dimension, which learn rows and project rows to scores, and selectors."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._core.types import Array, Float64Array, FloatArray
from ..estimators import IncrementalPLS, IncrementalPLSClassifier
from ..online import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA
from ..selection import ILFS, InfFS, InfFSS, InfFSU, VIPSelector
from .settings import Settings
from .task import Rows, Task

# Size of the blocks that are read from a memory map.
_BLOCK_BYTES = 32 << 20


@dataclass(frozen=True)
class Method:
    """How a method is made, and what is particular about it."""

    # In files, and in tables.
    name: str
    title: str
    # Takes the number of components, options that are always the same, and options that are settings, by their names. A
    # setting with several values is one of which the first is taken, unless another is chosen on validation rows.
    estimator: type[Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    from_settings: Mapping[str, str] = field(default_factory=dict)
    # Whether something is random.
    seeded: bool = False
    # What it learns: "labels"; "responses", one column of -1 and +1 (two classes) or one per class (more); or "none".
    target: str = "labels"
    # Attributes: what centred rows are multiplied by, and the directions that the components are known by.
    directions: str = "x_weights_"
    weights: str = "x_weights_"
    # Whether more than two classes have a model each, with scores side by side.
    model_per_class: bool = False
    # Whether the first components of many are those of few.
    nested: bool = True
    # Whether there are fewer components than classes.
    bounded: bool = False
    # Whether it can learn more.
    incremental: bool = True
    # The setting that says how many times it reads the rows, if that is more than once.
    passes: str = ""

    def new(self, n_components: int, seed: int, settings: Settings) -> Any:
        """Return an estimator that is not fitted."""
        values = {option: getattr(settings, name) for option, name in self.from_settings.items()}
        first = {option: value[0] if isinstance(value, tuple) else value for option, value in values.items()}
        return self.estimator(n_components, **self.options, **first, **({"random_state": seed} if self.seeded else {}))

    def alternatives(self, settings: Settings) -> dict[Any, Settings]:
        """Return settings, each with one of the values that are tried, by that value; or those given, if none are."""
        for name in self.from_settings.values():
            if isinstance(values := getattr(settings, name), tuple) and len(values) > 1:
                singles: dict[Any, dict[str, Any]] = {value: {name: (value,)} for value in values}
                return {value: replace(settings, **single) for value, single in singles.items()}
        return {None: settings}

    def max_components(self, n_classes: int, n_features: int, wanted: int) -> int:
        """Return the largest number of components there can be, at most as many as are wanted."""
        return min(wanted, n_features, n_classes - 1 if self.bounded else wanted)

    def n_models(self, n_classes: int) -> int:
        """Return the number of models side by side."""
        return n_classes if self.model_per_class and n_classes > 2 else 1


class ClassMeansSVD:
    """The singular vectors of Xc'Y, for Y of one column per class: PLS-SVD.

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


_MODEL_PER_CLASS: dict[str, Any] = {"directions": "x_rotations_", "model_per_class": True}
_METHODS = (
    # Components are in the order of their variances: with one more, another may come before them.
    Method("ccipca", "CCIPCA", CCIPCA, target="none", directions="components_", weights="components_", nested=False),
    Method(
        "sgdpls",
        "SGDPLS",
        SGDPLS,
        from_settings={"eta0": "sgdpls_rates"},
        seeded=True,
        nested=False,
        bounded=True,
    ),
    Method("ipls", "IPLS", IPLS, from_settings={"n_pca_components": "ipls_directions"}, model_per_class=True),
    Method("olpls", "OLPLS", OLPLS, **_MODEL_PER_CLASS),
    # It reads the rows 100 times.
    Method(
        "sgdpls-released",
        "SGDPLS (released code)",
        SGDPLS,
        {"variant": "released"},
        from_settings={"n_epochs": "steps", "eta0": "sgdpls_released_rates"},
        seeded=True,
        nested=False,
        incremental=False,
        passes="steps",
    ),
    Method(
        "ipls-released",
        "IPLS (released code)",
        IPLS,
        {"variant": "released"},
        from_settings={"n_pca_components": "ipls_directions"},
        model_per_class=True,
    ),
    Method(
        "olpls-released",
        "OLPLS (released code)",
        OLPLS,
        {"variant": "released", "forgetting": 0.2, "eta": 0.01, "eta_loading": 0.01},
        **_MODEL_PER_CLASS,
    ),
    Method(
        "incremental-lda", "Incremental LDA", IncrementalLDA, directions="scalings_", weights="scalings_", bounded=True
    ),
    Method("cipls-paper", "CIPLS (Algorithm 1)", CIPLS, {"variant": "paper"}, **_MODEL_PER_CLASS),
    Method("cipls-released", "CIPLS (released code)", CIPLS, {"variant": "released"}, **_MODEL_PER_CLASS),
    Method("cipls", "CIPLS (normalized)", CIPLS, {"variant": "normalized"}, **_MODEL_PER_CLASS),
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
        "SGDPLS, T steps",
        SGDPLS,
        from_settings={"n_steps": "steps"},
        seeded=True,
        nested=False,
        bounded=True,
    ),
)
METHODS = {method.name: method for method in _METHODS}
# The paper has one CIPLS. What its figures were made with, Algorithm 1 or the authors' code, it does not say.
PAPER_VARIANTS = ("cipls-paper", "cipls-released")
RELEASED_RIVALS = ("sgdpls-released", "ipls-released", "olpls-released")
"""What CIPLS is compared with, as the authors' code computes it: what the paper's figures may come from."""


def paper_name(method: str) -> str | None:
    """Return the name in the paper, which has one of each, of a method that it can have run; None for our own.

    Examples
    --------
    >>> from plstream.experiments.methods import paper_name
    >>> paper_name("cipls-paper"), paper_name("ipls"), paper_name("ipls-released"), paper_name("cipls")
    ('cipls', 'ipls', 'ipls', None)
    """
    return None if method == "cipls" else method.removesuffix("-released").removesuffix("-paper")


class _OnePassVIP:
    """VIP of a model that reads the rows once."""

    def __init__(self, n_components: int) -> None:
        self._selector = VIPSelector(IncrementalPLS(n_components, scale=False))

    def fit(self, X: Array, y: Array) -> Any:
        return self._selector.partial_fit(X, y)


class _Random:
    """A ranking by chance, as a control: another one for every set of rows."""

    def fit(self, X: Array, y: Array) -> _Random:
        seed = zlib.crc32(np.float64(X.sum(dtype=np.float64)).tobytes())
        self.ranking_ = 1 + np.random.default_rng(seed).permutation(X.shape[1])
        return self


@dataclass(frozen=True)
class Selector:
    """How a method that selects features is made, by the number of components of its model if it has one."""

    title: str
    new: Callable[[int], Any]
    takes_responses: bool = False

    def ranking(self, X: Array, y: Array, n_components: int) -> Array:
        """Return the ranks of the features, 1 for the best."""
        target = as_responses(y, np.unique(y)) if self.takes_responses else y
        return np.asarray(self.new(n_components).fit(X, target).ranking_)


SELECTORS = {
    "inffs": Selector("InfFS", lambda _: InfFS()),
    "ilfs": Selector("ILFS", lambda _: ILFS()),
    # That of the article which the paper cites.
    "ilfs-a": Selector("ILFS (variant A)", lambda _: ILFS(variant="A")),
    "inffs-u": Selector("InfFS_U", lambda _: InfFSU()),
    "inffs-s": Selector("InfFS_S", lambda _: InfFSS()),
    "pls-vip": Selector("PLS + VIP", lambda c: VIPSelector(IncrementalPLS(c, scale=False)), takes_responses=True),
    "cipls-paper-vip": Selector("CIPLS (Algorithm 1) + VIP", lambda c: VIPSelector(CIPLS(c, variant="paper"))),
    "cipls-vip": Selector("CIPLS (normalized) + VIP", lambda c: VIPSelector(CIPLS(c))),
    "incremental-pls-vip": Selector("IncrementalPLS (one pass) + VIP", _OnePassVIP, takes_responses=True),
    "random": Selector("random features", lambda _: _Random()),
    "none": Selector("all features", lambda _: None),
}
TITLES = {name: one.title for name, one in (METHODS | SELECTORS).items()}


class Projection:
    """A method that learns rows, and projects rows to scores.

    Scores have the shape (rows, models, components): one model, or one for each class.
    """

    def __init__(
        self,
        method: Method,
        n_components: int,
        classes: Array,
        seed: int,
        settings: Settings,
        *,
        is_large: bool = False,
    ) -> None:
        if is_large and method.target == "responses" and len(classes) > 2:
            # The same model, which has no need of a matrix of responses.
            method = replace(method, estimator=IncrementalPLSClassifier, target="labels")
        self.method, self.n_components, self.classes = method, n_components, classes
        self.n_models = method.n_models(len(classes))
        self.limited = ""
        """Why there are fewer components than requested, if so."""
        self.model = method.new(n_components, seed, settings)

    def learn(self, X: Array, y: Array) -> None:
        """Learn more rows; a method that is not incremental starts again."""
        if self.method.incremental:
            self.learn_more(X, y)
        else:
            self.model.fit(X, y if self.method.target == "labels" else as_responses(y, self.classes))

    def learn_more(self, X: Array, y: Array) -> None:
        """Learn more rows, which may be those of another pass."""
        if self.method.target == "none":
            self.model.partial_fit(X)
        elif self.method.target == "labels":
            self.model.partial_fit(X, y, classes=self.classes)
        else:
            self.model.partial_fit(X, as_responses(y, self.classes))

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


def rows_per_block(task: Task) -> int:
    """Return a number of rows that, with their responses, take little memory."""
    return max(1, _BLOCK_BYTES // max(task.n_features * task.X.dtype.itemsize, 8 * task.n_classes))


def in_blocks(rows: Rows, task: Task) -> Iterator[Rows]:
    """Yield row numbers in blocks."""
    step = rows_per_block(task)
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


class RowsInBlocks:
    """Rows of a task with their labels, a block at a time, for methods that read them several times.

    They come in the order of the file, which is read faster than in that of a stream.
    """

    def __init__(self, task: Task, rows: Rows) -> None:
        self._task, self._rows = task, np.sort(rows)

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        for block in in_blocks(self._rows, self._task):
            yield self._task.X[block], self._task.y[block]
