"""Infinite feature selection: features are ranked by all walks in a complete graph of features."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

from .._core.schema import stored
from .._core.types import Array, Float64Array
from .base import A_NUMBER_OR_SHARE, FeatureRanking, needs_labels
from .graph import Edges, SpearmanDissimilarity, energies, low_rank, pairwise_maximum, weighted_sum
from .statistics import deviations, fisher, mutual_information, normalised

# Margin of the rate per feature in the authors' code of infFS_U and infFS_S, so that sums of walks converge.
_SLACK = 5e-6
# Without this, the rate would be zero with 200,000 features.
_LEAST_SHARE = 0.1
# The value that the authors' code of infFS and infFS_S uses for variances of zero.
_NO_VARIANCE = 10_000.0

_SHARE = [Interval(Real, 0, 1, closed="both")]
_SOLVERS = [StrOptions({"auto", "dense", "krylov"})]
_NUMBER_SHARE_OR_BINS = [*A_NUMBER_OR_SHARE, StrOptions({"bins"})]


@stored({})
class InfFS(FeatureRanking):
    """Infinite feature selection (infFS): features with a large variance that differ from the others.

    Every pair of features is connected by an edge with the weight ``alpha * s + (1 - alpha) * c``, where s is the
    larger of their standard deviations, scaled to [0, 1] over all pairs, and c is one minus the absolute value of
    Spearman's correlation. The score of a feature is the weight of all walks of any length that begin with it, where
    each further edge is discounted by ``r = factor / spectral radius``.

    Labels are ignored unless ``supervised=True``. Then c is the product of the two features' Fisher criteria,
    (difference of means)^2 / (sum of variances) of two classes, scaled to [0, 1] over all pairs.

    Parameters
    ----------
    n_features_to_select : int, float or None, default=None
        Number or fraction of features to keep. None keeps half.
    alpha : float, default=0.5
        The weight of standard deviations, in [0, 1]; the rest is for correlations or criteria. It should be
        cross-validated.
    supervised : bool, default=False
        Whether to use the labels of two classes.
    factor : float, default=0.9
        Discount of walks, less than 1, relative to divergence. With a smaller value, long walks count less: near zero,
        features are ranked by their edge sums, near 1 by the main eigenvector of the graph.
    variant : {"published", "released"}, default="published"
        "released" follows the authors' code: c is one minus the correlation, so that opposites are twice as far apart
        as uncorrelated features; ``alpha`` is the weight of c; a constant feature counts as unlike all others, so it
        may come first; and in a supervised graph, a feature with a different constant in each class has its squared
        difference of means divided by 10,000. In "published", such a feature is as good as the best other feature.
    solver : {"auto", "dense", "krylov"}, default="auto"
        "dense" stores and solves with all edges, for up to a few thousand features. "krylov" needs only products with a
        few vectors, and agrees to ten digits of the largest score. "auto" is "dense" up to 256 features.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Energies of the features: higher is better.
    ranking_ : ndarray of shape (n_features,)
        Ranks of the features, 1 for the best. Scores that are equal up to rounding errors are ranked by column.
    support_ : ndarray of shape (n_features,)
        Which features are kept.
    classes_ : ndarray of shape (2,)
        The labels, if they were used.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    InfFSU : The later method without labels.
    InfFSS : The later method with labels.

    Notes
    -----
    Scores are ``(I - rA)^-1 1 - 1`` for edges A. Correlations are products of ranks, computed in blocks: this
    takes time proportional to n m^2 and memory for the ranks, of two bytes each (four from 32,769 rows on). Blocks
    are cached within the ``working_memory`` of scikit-learn's configuration, and otherwise recomputed for
    each of about five to ten products. A supervised graph takes only a few reads of X.

    References
    ----------
    G. Roffo, S. Melzi and M. Cristani, "Infinite Feature Selection", IEEE International Conference on Computer Vision,
    2015.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import InfFS
    >>> X = np.random.default_rng(0).normal(size=(100, 4)) * [1, 2, 3, 4]
    >>> X[:, 2] = X[:, 3] - X[:, 0]
    >>> InfFS(n_features_to_select=2).fit(X).ranking_
    array([4, 3, 2, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FeatureRanking._parameter_constraints,
        "alpha": _SHARE,
        "supervised": ["boolean"],
        "factor": [Interval(Real, 0, 1, closed="neither")],
        "variant": [StrOptions({"published", "released"})],
        "solver": _SOLVERS,
    }

    def __init__(
        self,
        n_features_to_select: float | None = None,
        *,
        alpha: float = 0.5,
        supervised: bool = False,
        factor: float = 0.9,
        variant: str = "published",
        solver: str = "auto",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.supervised = supervised
        self.factor = factor
        self.variant = variant
        self.solver = solver

    def _score(self, X: Array, classes: NDArray[np.intp] | None) -> Float64Array:
        released = self.variant == "released"
        alpha = 1 - self.alpha if released else self.alpha
        if classes is None:
            edges = _mixed(X, alpha, signed=released)
        else:
            criteria = fisher(X, classes, perfect=_NO_VARIANCE if released else None)
            edges = weighted_sum((alpha, _spread(X)), (1 - alpha, _products(criteria)))
        return energies(edges, X.shape[1], self.factor, None, symmetric=True, solver=self.solver)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        return needs_labels(tags, multi_class=False) if self.supervised else tags


@stored({})
class InfFSU(FeatureRanking):
    """Unsupervised infinite feature selection of 2020 (infFS_U): features with a large variance unlike the others.

    Edges are those of :class:`InfFS`: ``alpha * s + (1 - alpha) * c``. They are divided by the largest row sum, so
    they are the transition probabilities of a terminating walk. The score of a feature is the expected length of walks
    that begin with it, minus one. Labels are ignored.

    Parameters
    ----------
    n_features_to_select : int, float, "bins" or None, default=None
        Number or fraction of features to keep. None keeps half. "bins" is the rule of the authors' code: the
        number of bins in a histogram of the scores, with half as many bins as features, that contain more features
        than the average. It counts bins, not features: a heuristic, for reproduction only.
    alpha : float, default=0.5
        The weight of standard deviations, in [0, 1]; the rest is for correlations. It should be cross-validated.
    double_scaling : bool, default=False
        Whether to divide by the largest row sum twice, as the authors' code does. With many features, walks of more
        than one edge then count almost nothing, and features are ranked by their edge sums. With few, similar
        features, the largest sum may be below one, and walks may diverge, which raises an error.
    solver : {"auto", "dense", "krylov"}, default="auto"
        As in :class:`InfFS`.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Energies of the features: higher is better. The authors' code adds 1.
    ranking_ : ndarray of shape (n_features,)
        Ranks of the features, 1 for the best. Scores that are equal up to rounding errors are ranked by column.
    support_ : ndarray of shape (n_features,)
        Which features are kept.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    InfFS : The first method, with the same time and memory.

    Notes
    -----
    Scores are ``(I - rA)^-1 1 - 1`` for edges A, with ``r = (1 - d) / (largest row sum + d)`` and d = 5e-6 m for m
    features, which keeps r away from divergence. From 180,000 features, 1 - d is fixed at 0.1, because it would
    otherwise vanish and become negative.

    References
    ----------
    G. Roffo, S. Melzi, U. Castellani, A. Vinciarelli and M. Cristani, "Infinite Feature Selection: A Graph-based
    Feature Filtering Approach", IEEE Transactions on Pattern Analysis and Machine Intelligence, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import InfFSU
    >>> X = np.random.default_rng(0).normal(size=(100, 4)) * [1, 2, 3, 4]
    >>> X[:, 2] = X[:, 3] + X[:, 0]
    >>> InfFSU(n_features_to_select=0.5).fit_transform(X).shape
    (100, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": _NUMBER_SHARE_OR_BINS,
        "alpha": _SHARE,
        "double_scaling": ["boolean"],
        "solver": _SOLVERS,
    }

    def __init__(
        self,
        n_features_to_select: float | str | None = None,
        *,
        alpha: float = 0.5,
        double_scaling: bool = False,
        solver: str = "auto",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.double_scaling = double_scaling
        self.solver = solver

    def _score(self, X: Array, classes: NDArray[np.intp] | None) -> Float64Array:
        edges = _mixed(X, self.alpha, signed=False)
        return _absorbing_energies(self, edges, X.shape[1], symmetric=True)


@stored({})
class InfFSS(FeatureRanking):
    """Supervised infinite feature selection of 2020 (infFS_S): features that separate two classes and vary much.

    The weight of the edge from feature i to j is ``alpha_1 (g_j + h_i) / 2 + alpha_2 (g_j + s_ij) / 2 +
    alpha_3 (s_ij + h_i) / 2``, with the mutual information g of a feature and the labels, Fisher's criterion h, and the
    larger standard deviation s of the two, each scaled to [0, 1]. Walks are weighted as in :class:`InfFSU`.

    Parameters
    ----------
    n_features_to_select : int, float, "bins" or None, default=None
        As in :class:`InfFSU`.
    alpha : sequence of three floats, default=(1/3, 1/3, 1/3)
        Non-negative weights of the three pairs, with a sum of one. They should be cross-validated.
    symmetrise : bool, default=False
        Whether to average the edges in both directions, an extension of the method. Otherwise, the ranking depends
        hardly or not at all on the mutual information, which enters only at the far end of an edge, and adds the same
        to all features.
    double_scaling : bool, default=False
        As in :class:`InfFSU`. If True, as in the authors' code, a feature with a different constant in each class also
        has its squared difference of means divided by 10,000. Otherwise, such a feature is as good as the best other
        feature.
    solver : {"auto", "dense", "krylov"}, default="auto"
        As in :class:`InfFS`. Products take O(m log m) here, so "dense" is not needed.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Energies of the features: higher is better. The authors' code adds 1.
    ranking_ : ndarray of shape (n_features,)
        Ranks of the features, 1 for the best. Scores that are equal up to rounding errors are ranked by column.
    support_ : ndarray of shape (n_features,)
        Which features are kept.
    classes_ : ndarray of shape (2,)
        The labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    InfFSU : The method without labels.

    Notes
    -----
    Mutual information is computed from histograms of 20 bins (up to 200 rows, a tenth of the rows, but at least 10),
    and divided by the mean of the two entropies. Time is proportional to n m, and memory to m.

    References
    ----------
    G. Roffo, S. Melzi, U. Castellani, A. Vinciarelli and M. Cristani, "Infinite Feature Selection: A Graph-based
    Feature Filtering Approach", IEEE Transactions on Pattern Analysis and Machine Intelligence, 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from plstream import InfFSS
    >>> data = load_breast_cancer()
    >>> selector = InfFSS(n_features_to_select=3).fit(data.data, data.target)
    >>> print(*data.feature_names[selector.support_], sep=", ")
    mean area, worst area, worst concave points
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_features_to_select": _NUMBER_SHARE_OR_BINS,
        "alpha": ["array-like"],
        "symmetrise": ["boolean"],
        "double_scaling": ["boolean"],
        "solver": _SOLVERS,
    }

    def __init__(
        self,
        n_features_to_select: float | str | None = None,
        *,
        alpha: Sequence[float] = (1 / 3, 1 / 3, 1 / 3),
        symmetrise: bool = False,
        double_scaling: bool = False,
        solver: str = "auto",
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.alpha = alpha
        self.symmetrise = symmetrise
        self.double_scaling = double_scaling
        self.solver = solver

    def _score(self, X: Array, classes: NDArray[np.intp] | None) -> Float64Array:
        a1, a2, a3 = self._weights()
        assert classes is not None
        criteria = normalised(fisher(X, classes, perfect=_NO_VARIANCE if self.double_scaling else None))
        information = normalised(mutual_information(X, classes))
        ones = np.ones(X.shape[1])
        left = np.column_stack([ones, criteria])
        right = np.column_stack([(a1 + a2) / 2 * information, (a1 + a3) / 2 * ones])
        if self.symmetrise:
            left, right = np.hstack([left, right]) / 2, np.hstack([right, left])
        edges = weighted_sum((1.0, low_rank(left, right)), ((a2 + a3) / 2, _spread(X)))
        return _absorbing_energies(self, edges, X.shape[1], symmetric=self.symmetrise)

    def _weights(self) -> Float64Array:
        try:
            weights = np.asarray(self.alpha, dtype=np.float64)
        except (TypeError, ValueError):
            weights = np.empty(0)
        if weights.shape != (3,) or not (weights >= 0).all() or not np.isclose(weights.sum(), 1):
            raise ValueError(f"alpha must be three non-negative numbers with a sum of one, not {self.alpha!r}.")
        return weights

    def __sklearn_tags__(self) -> Tags:
        return needs_labels(super().__sklearn_tags__(), multi_class=False)


def _absorbing_energies(selector: InfFSU | InfFSS, edges: Edges, m: int, *, symmetric: bool) -> Float64Array:
    """Return energies of randomly terminating walks: the graph is scaled by its largest row sum."""

    def bound(largest_sum: float) -> float:
        once = largest_sum + _SLACK * m
        return once * largest_sum if selector.double_scaling else once

    share = max(1 - _SLACK * m, _LEAST_SHARE)
    return energies(edges, m, share, bound, symmetric=symmetric, solver=selector.solver)


def _mixed(X: Array, alpha: float, *, signed: bool) -> Edges:
    """Return the edges of deviations, with weight alpha, and of correlations, without parts of weight zero."""
    parts: list[tuple[float, Edges]] = []
    if alpha < 1:
        dissimilarity = SpearmanDissimilarity(X, signed=signed)
        parts.append((1 - alpha, Edges(dissimilarity.product, dissimilarity.dense)))
    if alpha > 0:
        parts.append((alpha, _spread(X)))
    return weighted_sum(*parts)


def _spread(X: Array) -> Edges:
    """Return the larger deviation of two features, scaled to [0, 1] over all pairs; the minimum is on the diagonal."""
    return pairwise_maximum(normalised(deviations(X)))


def _products(criteria: Float64Array) -> Edges:
    """Return the products of criteria, scaled to [0, 1] over all pairs.

    With the minimum l and the excess d over it, they are ``d_i d_j + l (d_i + d_j)`` before scaling: a sum without
    differences, which would lose digits.
    """
    criteria = criteria / (criteria.max() or 1.0)
    least, more = criteria.min(), criteria - criteria.min()
    scale = more.max() * (more.max() + 2 * least) or 1.0
    ones = np.ones_like(more)
    return low_rank(np.column_stack([more, least * more, least * ones]) / scale, np.column_stack([more, ones, more]))
