"""Infinite latent feature selection: features whose rows are near the mean of their own class, by a latent factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions

from .._core.progress import track
from .._core.schema import Numbers, stored
from .._core.types import Array, Float64Array
from .._core.warnings import warn_user
from ._base import FeatureRanking, needs_labels
from ._statistics import map_features, to_common_size

# Differences below this relative tolerance are rounding errors.
_ROUNDING = 1e-12
# Probabilities of tokens are kept above zero, so that nothing is divided by zero.
_LEAST_PROBABILITY = 1e-200


@dataclass(frozen=True)
class _Variant:
    """The differences between the two released codes."""

    n_tokens: int
    least_tokens: int
    n_iter: int
    own_range: bool
    """Whether tokens divide the range of a feature's distances, or that from 0 to 1."""
    prior_tokens: Callable[[int], slice]
    """The tokens whose share of the rows is the prior, by the number of tokens."""
    factor: Callable[[Float64Array], float]
    """The spectral radius that the graph of the probabilities is scaled to."""


_VARIANTS = {
    "A": _Variant(
        n_tokens=4,
        least_tokens=4,
        n_iter=1000,
        own_range=False,
        prior_tokens=lambda n_tokens: slice(n_tokens - 3, None),
        factor=lambda p: float(np.ceil(p.max() * p.sum()) / len(p)),
    ),
    "B": _Variant(
        n_tokens=6,
        least_tokens=2,
        n_iter=15,
        own_range=True,
        prior_tokens=lambda n_tokens: slice(max(1, round(0.2 * n_tokens))),
        factor=lambda _: 0.99,
    ),
}


@stored(
    {
        "log_odds_": Numbers("m", finite=False),
        "probabilities_": Numbers("m", least=0, most=1),
        "token_probabilities_": Numbers(2, "t", least=0, most=1, any_order=True),
    }
)
class ILFS(FeatureRanking):
    """Infinite latent feature selection (Roffo et al. 2017): features whose rows are near the mean of their own class.

    For each feature, the distance of every row from the mean of its own class, relative to those from the means of all
    classes, is discretized into a few tokens. Two latent factors, "relevant" and "irrelevant", explain how often each
    token occurs: the first makes near tokens likely and the second far ones. The score of a feature is its share of the
    first factor, found by EM.

    Labels are required. See the notes for what the authors' codes compute, how well that works, and how this differs.

    Parameters
    ----------
    n_features_to_select : int or float, default=None
        How many features to keep, as a number or as a fraction. By default half of them.
    variant : {"B", "A"}, default="B"
        Which of the authors' two codes. "A" is that of 2017 (version 5.2 of their library), for two classes only; "B"
        a later one, for any number of classes.
    n_tokens : int, default=None
        Number of tokens. By default 4 for "A", its minimum, and 6 for "B".
    n_iter : int, default=None
        Iterations of EM. By default 1,000 for "A" and 15 for "B".
    update_tokens : bool, default=False
        Whether EM also learns the token probabilities of each factor. The authors' codes compute them but do not use
        them. The factors can then swap their meaning, which raises a warning.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Energies of the features in the graph of "infinite feature selection". They are proportional to
        ``probabilities_``, and equal to them where the energies of "A" would be infinite.
    probabilities_ : ndarray of shape (n_features,)
        P(relevant | feature).
    log_odds_ : ndarray of shape (n_features,)
        Their log-odds, which distinguish features whose probabilities are equal up to rounding. Infinite for a
        probability of exactly 0 or 1.
    token_probabilities_ : ndarray of shape (2, n_tokens)
        P(token | relevant) and P(token | irrelevant), from the nearest token to the farthest.
    ranking_ : ndarray of shape (n_features,)
        The rank of every feature, 1 for the best: by log-odds, equal ones in the order of the columns.
    support_ : ndarray of shape (n_features,)
        Which features are kept.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    sklearn.feature_selection.f_classif : Fisher's F, the other way to compare a feature with its class means.

    Notes
    -----
    *The method.* For the row x of a feature and the means mu_k of its K classes pi = (x - mu_own)^2 / sum_k
    (x - mu_k)^2. The counts N_t of T tokens are a histogram of pi, from 0 to 1 in "A", and from the feature's own
    smallest to its largest in "B"; the last token is what equals the last edge. P(t|z1) falls and P(t|z2) rises
    linearly, from 5000 to 1 and from 1 to 5000 but for their sum. From a prior P(z1|f), in "B" the share of the
    first round(T/5) tokens and in "A" that of the last three, each round of EM sets P(z1|f) to the share of the rows
    that z1 is responsible for. The graph of p = P(z1|f) is A = p p', of rank one, so that the energies
    ((I - r A)^-1 - I) 1 are r/(1 - factor) (sum p) p for r = factor/(p'p): they rank features as p does, and no matrix
    of n_features^2 numbers is needed. The factor is 0.99 in "B". In "A" it is the largest sum of a row of A, rounded
    up, as a share of the number of features: 1 when p is near 1 for all, which makes the energies infinite.

    *What is done differently.* Memory is that of the counts and a few blocks of columns. All rounds are done. The
    authors' codes stop when the log-likelihood of all features changes by less than 1e-6 in a round, which makes the
    probability of a feature depend on which others there are. (It makes little difference: Kendall's tau with their
    order was 0.98 to 1 on three data sets for "A", and "B" never stopped early. To stop each feature by itself would
    break the order, to tau of 0.83 to 0.91, as the log-odds of good features grow with every round.) A feature whose
    class means are all the same, such as a constant, has a probability of 0; the codes give that to constants too,
    through a division of 0 by 0. If the rows of a feature all have the same pi there is no range to cut: they count
    as the nearest token if pi is below 1/K, as for a feature that separates the classes exactly, and as the farthest
    otherwise. ("B" as released counts them as the farthest, and ranks the perfect feature last.)

    *How well it works.* Not reliably. The scale of the distances, and so the separation of classes, drops out of "B".
    Because tokens in the middle count for the first factor, features without any difference between classes are not
    always last. In "A", the prior counts far rows as good: a feature without near ones keeps a probability of 1, and
    one without far ones, such as the best separating feature, begins and ends with a probability of 0, and is ranked
    with the constants. Most others have a probability of 1 up to rounding. ``update_tokens`` can make it better, or far
    worse. On features of face pairs that are mostly zero, the default is worse than a random choice: compare with
    :class:`VIPSelector`.

    References
    ----------
    G. Roffo, S. Melzi, U. Castellani and A. Vinciarelli, "Infinite latent feature selection: A probabilistic latent
    graph-based ranking approach", International Conference on Computer Vision, 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from plstream import ILFS
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> selector = ILFS(n_features_to_select=5).fit(X, y)
    >>> selector.transform(X).shape
    (569, 5)
    >>> selector.get_support(indices=True)
    array([ 2,  7, 20, 22, 27])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FeatureRanking._parameter_constraints,
        "variant": [StrOptions({"A", "B"})],
        "n_tokens": [None, Interval(Integral, 2, None, closed="left")],
        "n_iter": [None, Interval(Integral, 1, None, closed="left")],
        "update_tokens": ["boolean"],
    }

    classes_: Array

    def __init__(
        self,
        n_features_to_select: float | None = None,
        *,
        variant: str = "B",
        n_tokens: int | None = None,
        n_iter: int | None = None,
        update_tokens: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.variant = variant
        self.n_tokens = n_tokens
        self.n_iter = n_iter
        self.update_tokens = update_tokens

    def __sklearn_tags__(self) -> Tags:
        return needs_labels(super().__sklearn_tags__(), multi_class=self.variant != "A")

    def _score(self, X: Array, classes: NDArray[np.intp] | None) -> Float64Array:
        assert classes is not None
        variant = _VARIANTS[self.variant]
        n_tokens = variant.n_tokens if self.n_tokens is None else self.n_tokens
        if n_tokens < variant.least_tokens:
            raise ValueError(
                f"variant={self.variant!r} needs at least {variant.least_tokens} tokens, and n_tokens is {n_tokens}: "
                "its prior would be 1 for all features."
            )
        n_iter = variant.n_iter if self.n_iter is None else self.n_iter
        chance = 1 / len(self.classes_)

        def count(features: Float64Array) -> tuple[Float64Array, NDArray[np.bool_]]:
            distances, same_mean = distances_to_own_class(features, classes)
            return count_tokens(distances, n_tokens, chance, own_range=variant.own_range), same_mean

        counts, prior = np.empty((X.shape[1], n_tokens)), np.empty(X.shape[1])
        for columns, (block, same_mean) in map_features(count, X, "ILFS"):
            counts[columns] = block
            share = block[:, variant.prior_tokens(n_tokens)].sum(axis=1) / len(X)
            prior[columns] = np.where(same_mean, 0.0, share)
        self.log_odds_, self.token_probabilities_ = fit_factors(counts, prior, n_iter, update_tokens=self.update_tokens)
        if self.token_probabilities_[0, 0] < self.token_probabilities_[1, 0]:
            warn_user(
                "The factors have swapped their meaning, as near rows now count for irrelevant features: do not trust "
                "the ranking, use update_tokens=False."
            )
        self.probabilities_: Float64Array = expit(self.log_odds_)
        return rank_one_energies(self.probabilities_, variant.factor(self.probabilities_))

    def _ranked_by(self) -> Float64Array:
        return self.log_odds_


def distances_to_own_class(features: Float64Array, classes: NDArray[np.intp]) -> tuple[Float64Array, NDArray[np.bool_]]:
    """Return pi of features, the rows of the array, and which features have the same mean in all classes.

    pi = (x - mu_own)^2 / sum_k (x - mu_k)^2, whose denominator is K (x - mu)^2 + sum_k (mu_k - mu)^2 with mu the mean
    of the K class means. If these are equal then pi is 1/K, or 0/0, which is taken for 1/K. Rows are sorted by class.
    """
    n_rows = np.bincount(classes)
    features = features[:, np.argsort(classes, kind="stable")]
    to_common_size(features)
    means = np.add.reduceat(features, np.cumsum(n_rows) - n_rows, axis=1) / n_rows
    centre = means.mean(axis=1, keepdims=True)
    between = np.square(means - centre).sum(axis=1)
    same_mean = between <= np.square(_ROUNDING * np.abs(features).max(axis=1))
    distances = np.square(features - np.repeat(means, n_rows, axis=1))
    features -= centre
    features *= features
    features *= len(n_rows)
    features += np.where(same_mean, 1.0, between)[:, None]
    distances /= features
    distances[same_mean] = 1 / len(n_rows)
    return distances, same_mean


def count_tokens(distances: Float64Array, n_tokens: int, chance: float, *, own_range: bool) -> Float64Array:
    """Return the counts of T tokens: token t is from edge t to below edge t + 1, and the last one is edge T alone.

    Distances that are all equal have no range of their own. If they are below ``chance`` all count as token 1, else as
    token T.
    """
    m = len(distances)
    places = distances
    if own_range:
        low, high = distances.min(axis=1), distances.max(axis=1)
        equal = high - low <= _ROUNDING
        places = (distances - low[:, None]) / np.where(equal, 1.0, high - low)[:, None]
        places[equal] = (high[equal] > chance - _ROUNDING)[:, None]
    # Values within rounding errors of an edge are on it.
    tokens = (places * (n_tokens - 1) + _ROUNDING * n_tokens).astype(np.intp)
    tokens += n_tokens * np.arange(m)[:, None]
    return np.bincount(tokens.ravel(), minlength=m * n_tokens).reshape(m, n_tokens).astype(np.float64)


def fit_factors(
    counts: Float64Array, prior: Float64Array, n_iter: int, *, update_tokens: bool
) -> tuple[Float64Array, Float64Array]:
    """Return the log-odds of P(z1|f) after so many rounds of EM, and P(t|z), of shape (2, T).

    A round multiplies the odds of P(z1|f) by sum_t N_tf P(t|z1)/P(t|f) over sum_t N_tf P(t|z2)/P(t|f). As logarithms
    they have all digits even where P(z1|f) is 1 to rounding. Odds of zero and infinity stay what they are.
    """
    slope = np.linspace(5000.0, 1.0, counts.shape[1])
    given = np.stack([slope, slope[::-1]]) / slope.sum()
    log_odds: Float64Array = logit(prior)
    for _ in track(range(n_iter), "EM", n_iter, lambda _: 1, "rounds"):
        shares = expit(np.stack([log_odds, -log_odds]))
        ratios = counts / (shares.T @ given)
        explained = ratios @ given.T
        log_odds = log_odds + np.log(explained[:, 0] / explained[:, 1])
        if update_tokens:
            given = _shared_out(given * (shares @ ratios), given)
    return log_odds, given


def _shared_out(explained: Float64Array, before: Float64Array) -> Float64Array:
    """Return the explained tokens of each factor as probabilities; a factor that explains none keeps its own."""
    totals = explained.sum(axis=1, keepdims=True)
    shares = np.maximum(explained / np.where(totals > 0, totals, 1.0), _LEAST_PROBABILITY)
    return np.where(totals > 0, shares, before)


def rank_one_energies(p: Float64Array, factor: float) -> Float64Array:
    """Return e = ((I - r A)^-1 - I) 1 for A = p p' and r = factor/(p'p), or p itself if that matrix is singular.

    A has rank one, so e = r/(1 - factor) (sum p) p, which is the same for every multiple of p.
    """
    if factor >= 1 or not p.any():
        return p.copy()
    u = p / p.max()
    energy: Float64Array = factor / (1 - factor) * u.sum() / (u @ u) * u
    return energy
