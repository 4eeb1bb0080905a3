"""The methods of dimensionality reduction, which project rows to scores, and of feature selection."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._core.types import Array, Float64Array, FloatArray
from ..estimators import IncrementalPLS, IncrementalPLSClassifier
from ..online import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA
from ..selection import ILFS, InfFS, InfFSS, InfFSU, VIPSelector
from .settings import Settings
from .task import Task


@dataclass(frozen=True)
class Method:
    """A method of dimensionality reduction."""

    # Names in files and in tables.
    name: str
    title: str
    # Takes the number of components, fixed options, and options from settings, by name. If a setting has several
    # values, the first is used unless another one is chosen on validation rows.
    estimator: type[Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    from_settings: Mapping[str, str] = field(default_factory=dict)
    # The target: "labels"; "responses", one column of -1 and +1 for two classes or one column per class; or "none".
    target: str = "labels"
    # Whether there is one model per class for more than two classes, with concatenated scores.
    model_per_class: bool = False
    # Whether fits with fewer components are the first components of a fit with more.
    nested: bool = True
    # Whether there are fewer components than classes.
    bounded: bool = False
    incremental: bool = True
    # The setting with the number of passes over the rows, if there are several.
    passes: str = ""

    def new(self, n_components: int, seed: int, settings: Settings) -> Any:
        """Return an unfitted estimator."""
        values = {option: getattr(settings, name) for option, name in self.from_settings.items()}
        first = {option: value[0] if isinstance(value, tuple) else value for option, value in values.items()}
        seeded = {"random_state": seed} if self.estimator is SGDPLS else {}
        return self.estimator(n_components, **self.options, **first, **seeded)

    def alternatives(self, settings: Settings) -> dict[Any, Settings]:
        """Return the settings for each candidate of the tuned value; {None: settings} if nothing is tuned."""
        for name in self.from_settings.values():
            if isinstance(values := getattr(settings, name), tuple) and len(values) > 1:
                singles: dict[Any, dict[str, Any]] = {value: {name: (value,)} for value in values}
                return {value: replace(settings, **single) for value, single in singles.items()}
        return {None: settings}

    def max_components(self, n_classes: int, n_features: int, wanted: int) -> int:
        """Return the largest possible number of components, at most ``wanted``."""
        return min(wanted, n_features, n_classes - 1 if self.bounded else wanted)

    def n_models(self, n_classes: int) -> int:
        """Return the number of models."""
        return n_classes if self.model_per_class and n_classes > 2 else 1


class ClassMeansSVD:
    """PLS-SVD: the singular vectors of Xc'Y, for Y with one indicator column per class.

    Column k of Xc'Y is the sum of the n_k rows of class k minus n_k times the mean of all rows, so Y is not needed.
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


_METHODS = (
    # Components are sorted by variance, so a new one may precede others.
    Method("ccipca", "CCIPCA", CCIPCA, target="none", nested=False),
    Method("sgdpls", "SGDPLS", SGDPLS, from_settings={"eta0": "sgdpls_rates"}, nested=False, bounded=True),
    Method("ipls", "IPLS", IPLS, from_settings={"n_pca_components": "ipls_directions"}, model_per_class=True),
    Method("olpls", "OLPLS", OLPLS, model_per_class=True),
    Method(
        "sgdpls-released",
        "SGDPLS (released code)",
        SGDPLS,
        {"variant": "released"},
        from_settings={"n_epochs": "steps", "eta0": "sgdpls_released_rates"},
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
        model_per_class=True,
    ),
    Method("incremental-lda", "Incremental LDA", IncrementalLDA, bounded=True),
    Method("cipls-paper", "CIPLS (Algorithm 1)", CIPLS, {"variant": "paper"}, model_per_class=True),
    Method("cipls-released", "CIPLS (released code)", CIPLS, {"variant": "released"}, model_per_class=True),
    Method("cipls", "CIPLS (normalized)", CIPLS, {"variant": "normalized"}, model_per_class=True),
    Method("incremental-pls", "IncrementalPLS (one pass)", IncrementalPLS, {"scale": False}, target="responses"),
    Method(
        "pls",
        "PLS",
        IncrementalPLS,
        {"scale": False, "solver": "multipass"},
        target="responses",
        incremental=False,
    ),
    Method("pls-svd", "PLS-SVD", ClassMeansSVD, bounded=True),
    # Only timed: the paper makes 100 or more steps per row.
    Method("sgdpls-steps", "SGDPLS, T steps", SGDPLS, from_settings={"n_steps": "steps"}, nested=False, bounded=True),
)
METHODS = {method.name: method for method in _METHODS}
# The paper has one CIPLS, and does not say whether its figures come from Algorithm 1 or from the authors' code.
PAPER_VARIANTS = ("cipls-paper", "cipls-released")
RELEASED_RIVALS = ("sgdpls-released", "ipls-released", "olpls-released")
"""The methods that CIPLS is compared with, as in the authors' code, the possible source of the paper's figures."""
# All methods except the one that is only timed.
ALL_REDUCERS = tuple(name for name in METHODS if name != "sgdpls-steps")
REDUCERS = tuple(name for name in ALL_REDUCERS if name not in RELEASED_RIVALS)
STREAMING_REDUCERS = tuple(name for name in REDUCERS if name != "pls-svd")


def why_not(method: str, task: Task) -> str | None:
    """Return why a method cannot be used on a task, or None if it can."""
    if method == "pls-svd" and task.n_classes == 2:
        return "with two classes its only component is the first one of PLS"
    return None


def why_not_streaming(method: str, task: Task) -> str | None:
    """Return why a method cannot be used on a stream, or None if it can."""
    return why_not(method, task) or (None if METHODS[method].incremental else "it learns all rows at once")


def paper_name(method: str) -> str | None:
    """Return the paper's name of a method that it may have run; None for the normalized CIPLS."""
    return None if method == "cipls" else method.removesuffix("-released").removesuffix("-paper")


@dataclass(frozen=True)
class Selector:
    """A feature selection method, which ranks features (1 is best), given rows, labels and the number of components."""

    title: str
    ranking: Callable[[Array, Array, int], Array]


def _random_ranking(X: Array, *_: Any) -> Array:
    """Return a random ranking, as a control: a different one for each set of rows."""
    seed = zlib.crc32(np.float64(X.sum(dtype=np.float64)).tobytes())
    return 1 + np.random.default_rng(seed).permutation(X.shape[1])


def _pls_vip(n_components: int) -> VIPSelector:
    return VIPSelector(IncrementalPLS(n_components, scale=False))


SELECTORS = {
    "inffs": Selector("InfFS", lambda X, y, _: InfFS().fit(X, y).ranking_),
    "ilfs": Selector("ILFS", lambda X, y, _: ILFS().fit(X, y).ranking_),
    # The variant in the article that the paper cites.
    "ilfs-a": Selector("ILFS (variant A)", lambda X, y, _: ILFS(variant="A").fit(X, y).ranking_),
    "inffs-u": Selector("InfFS_U", lambda X, y, _: InfFSU().fit(X, y).ranking_),
    "inffs-s": Selector("InfFS_S", lambda X, y, _: InfFSS().fit(X, y).ranking_),
    "pls-vip": Selector("PLS + VIP", lambda X, y, c: _pls_vip(c).fit(X, as_responses(y)).ranking_),
    "cipls-paper-vip": Selector(
        "CIPLS (Algorithm 1) + VIP", lambda X, y, c: VIPSelector(CIPLS(c, variant="paper")).fit(X, y).ranking_
    ),
    "cipls-vip": Selector("CIPLS (normalized) + VIP", lambda X, y, c: VIPSelector(CIPLS(c)).fit(X, y).ranking_),
    "incremental-pls-vip": Selector(
        "IncrementalPLS (one pass) + VIP", lambda X, y, c: _pls_vip(c).partial_fit(X, as_responses(y)).ranking_
    ),
    "random": Selector("random features", _random_ranking),
    "none": Selector("all features", lambda X, *_: np.arange(1, X.shape[1] + 1)),
}
TITLES = {name: one.title for name, one in (METHODS | SELECTORS).items()}


class Projection:
    """A trainable method that projects rows to scores of shape (rows, models, components).

    There is one model, or one per class.
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
            # The same model, without a matrix of responses.
            method = replace(method, estimator=IncrementalPLSClassifier, target="labels")
        self.method, self.n_components, self.classes = method, n_components, classes
        self.n_models = method.n_models(len(classes))
        # The reason for fewer components than requested, if any.
        self.limited = ""
        self.model = method.new(n_components, seed, settings)

    def learn(self, X: Array, y: Array) -> None:
        """Train on more rows; a method that is not incremental starts over."""
        if self.method.incremental:
            self.learn_more(X, y)
        else:
            self.model.fit(X, y if self.method.target == "labels" else as_responses(y, self.classes))

    def learn_more(self, X: Array, y: Array) -> None:
        """Train on more rows, possibly those of another pass."""
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
        """Return the vectors that project centred rows, of shape (models, components, features)."""
        return self._vectors("components_", "scalings_", "x_rotations_", "x_weights_")

    def weights(self) -> Float64Array:
        """Return the weights, of the same shape."""
        return self._vectors("components_", "scalings_", "x_weights_")

    def _vectors(self, *names: str) -> Float64Array:
        """Return the first of these attributes that the estimator has."""
        name = next(name for name in names if hasattr(type(self.model), name))
        vectors = np.asarray(getattr(self.model, name))
        vectors = vectors if name == "components_" else vectors.T
        return vectors.reshape(self.n_models, -1, vectors.shape[1])


def as_responses(y: Array, classes: Array | None = None) -> Float64Array:
    """Return -1 and +1 for two classes, otherwise an indicator column per class; by default of the classes in y."""
    classes = np.unique(y) if classes is None else classes
    if len(classes) == 2:
        return np.where(y == classes[1], 1.0, -1.0)
    return np.asarray(y[:, None] == classes, dtype=np.float64)
