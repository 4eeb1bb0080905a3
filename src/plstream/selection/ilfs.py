"""Infinite latent feature selection: features whose rows are near the mean of their own class, by a latent factor."""

from __future__ import annotations

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
from .base import FeatureRanking, needs_labels
from .statistics import per_feature, to_common_size

# Differences below this relative tolerance are rounding errors.
_ROUNDING = 1e-12
# Probabilities of tokens are kept above zero, so that nothing is divided by zero.
_LEAST_PROBABILITY = 1e-200


@stored(
    {
        "log_odds_": Numbers("m", finite=False),
        "probabilities_": Numbers("m", least=0, most=1),
        "token_probabilities_": Numbers(2, "t", least=0, most=1, any_order=True),
    }
)
class ILFS(FeatureRanking):
    """Infinite latent feature selection (Roffo et al. 2017): features whose rows are near the mean of their own class.

    For each feature, the distance of every row from the mean of its own class, relative to the distances from all class
    means, is discretized into a few tokens. Two latent factors, "relevant" and "irrelevant", explain how often each
    token occurs: the first makes near tokens likely, the second far ones. The score of a feature is its share of the
    first factor, found by EM.

    Labels are required. The notes describe the authors' implementations, differences from them, and performance.

    Parameters
    ----------
    n_features_to_select : int or float, default=None
        Number or fraction of features to keep. None keeps half.
    variant : {"B", "A"}, default="B"
        Which of the authors' two implementations. "A" is that of 2017 (version 5.2 of their library), for two classes;
        "B" is a later one, for any number of classes.
    n_tokens : int, default=None
        Number of tokens. Default: 4 for "A", its minimum, and 6 for "B".
    n_iter : int, default=None
        Number of EM iterations. Default: 1,000 for "A", 15 for "B".
    update_tokens : bool, default=False
        Whether EM also learns the token probabilities of each factor. The authors' implementations compute but do not
        use them. The factors can then swap their meaning, which raises a warning.

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
        The rank of every feature, 1 for the best: by log-odds, ties in column order.
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
    sklearn.feature_selection.f_classif : Fisher's F, another comparison of a feature with its class means.

    Notes
    -----
    *Method.* For a row x of a feature and the means mu_k of the K classes, pi = (x - mu_own)^2 / sum_k (x - mu_k)^2.
    The counts N_t of T tokens are a histogram of pi, over [0, 1] in "A" and over the range of the feature in "B"; the
    last token contains only the last edge. P(t|z1) falls linearly from 5000 to 1 and P(t|z2) rises from 1 to 5000, up
    to normalization. The prior P(z1|f) is the share of the first round(T/5) tokens in "B", and of the last three in
    "A"; each EM iteration sets P(z1|f) to the share of the rows that z1 is responsible for. The graph of p = P(z1|f) is
    A = p p', of rank one, so the energies ((I - r A)^-1 - I) 1 are r/(1 - factor) (sum p) p for r = factor/(p'p): they
    rank features as p does, and no matrix of n_features^2 numbers is needed. The factor is 0.99 in "B". In "A", it is
    the largest row sum of A, rounded up, divided by the number of features: 1 if p is near 1 for all features, which
    makes the energies infinite.

    *Differences.* Memory is that of the counts and a few blocks of columns. All iterations are done. The authors'
    implementations stop when the log-likelihood of all features changes by less than 1e-6 in an iteration, which makes
    the probability of a feature depend on the other features. (The effect is small: Kendall's tau with their order was
    0.98 to 1 on three data sets for "A", and "B" never stopped early. Stopping each feature separately would change the
    order, to tau of 0.83 to 0.91, because the log-odds of good features grow with every iteration.) A feature whose
    class means are all equal, such as a constant, has probability 0; in the implementations, constants do as well,
    through a division of 0 by 0. If all rows of a feature have the same pi, they count as the nearest token if pi is
    below 1/K, as for a feature that separates the classes exactly, and as the farthest otherwise. ("B" as released
    counts them as the farthest, and ranks the perfect feature last.)

    *Performance.* The method is not reliable. "B" does not depend on the scale of the distances, nor thus on the
    separation of classes. Because middle tokens count for the first factor, features without any difference between
    classes are not always last. In "A", the prior counts far rows as good: a feature without near rows keeps
    probability 1, and one without far rows, such as the best separating feature, starts and ends with probability 0,
    and is ranked with the constants. Most others have probability 1 up to rounding. ``update_tokens`` can be better or
    far worse. On features of face pairs that are mostly zero, the default is worse than a random choice: compare with
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
        of_2017 = self.variant == "A"
        least_tokens, default_tokens, default_iterations = (4, 4, 1000) if of_2017 else (2, 6, 15)
        n_tokens = default_tokens if self.n_tokens is None else self.n_tokens
        n_iter = default_iterations if self.n_iter is None else self.n_iter
        if n_tokens < least_tokens:
            raise ValueError(
                f"variant={self.variant!r} requires at least {least_tokens} tokens, but n_tokens is "
                f"{n_tokens}: with fewer, the prior is 1 for all features."
            )
        chance = 1 / len(self.classes_)

        def count(features: Float64Array) -> tuple[Float64Array, NDArray[np.bool_]]:
            distances, same_mean = distances_to_own_class(features, classes)
            return count_tokens(distances, n_tokens, chance, own_range=not of_2017), same_mean

        counts, same_mean = per_feature(count, X, "ILFS")
        # The tokens whose share of the rows is the prior.
        tokens = slice(n_tokens - 3, None) if of_2017 else slice(max(1, round(0.2 * n_tokens)))
        prior = np.where(same_mean, 0.0, counts[:, tokens].sum(axis=1) / len(X))
        self.log_odds_, self.token_probabilities_ = fit_factors(counts, prior, n_iter, update_tokens=self.update_tokens)
        if self.token_probabilities_[0, 0] < self.token_probabilities_[1, 0]:
            warn_user(
                "The two factors have swapped their meaning, so the ranking is not reliable: use update_tokens=False."
            )
        self.probabilities_: Float64Array = expit(self.log_odds_)
        p = self.probabilities_
        # The spectral radius to which the graph of probabilities is scaled.
        return rank_one_energies(p, float(np.ceil(p.max() * p.sum()) / len(p)) if of_2017 else 0.99)

    def _ranked_by(self) -> Float64Array:
        return self.log_odds_


def distances_to_own_class(features: Float64Array, classes: NDArray[np.intp]) -> tuple[Float64Array, NDArray[np.bool_]]:
    """Return pi of features, stored as rows, and which features have the same mean in all classes.

    pi = (x - mu_own)^2 / sum_k (x - mu_k)^2, whose denominator is K (x - mu)^2 + sum_k (mu_k - mu)^2 with the mean mu
    of the K class means. If these are equal, pi is 1/K, also instead of 0/0. Rows are sorted by class.
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
    """Return the counts of T tokens: token t is the interval [edge t, edge t + 1), and the last one is edge T alone.

    Distances that are all equal have no range: they count as token 1 if they are below ``chance``, else as token T.
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
    """Return the log-odds of P(z1|f) after some iterations of EM, and P(t|z), of shape (2, T).

    An iteration multiplies the odds of P(z1|f) by sum_t N_tf P(t|z1)/P(t|f) over sum_t N_tf P(t|z2)/P(t|f). Log-odds
    keep all digits even if P(z1|f) rounds to 1. Odds of zero and infinity do not change.
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
    """Return the explained tokens of each factor as probabilities; a factor without any keeps its own."""
    totals = explained.sum(axis=1, keepdims=True)
    shares = np.maximum(explained / np.where(totals > 0, totals, 1.0), _LEAST_PROBABILITY)
    return np.where(totals > 0, shares, before)


def rank_one_energies(p: Float64Array, factor: float) -> Float64Array:
    """Return e = ((I - r A)^-1 - I) 1 for A = p p' and r = factor/(p'p), or p if that matrix is singular.

    A has rank one, so e = r/(1 - factor) (sum p) p, which does not depend on the scale of p.
    """
    if factor >= 1 or not p.any():
        return p.copy()
    u = p / p.max()
    energy: Float64Array = factor / (1 - factor) * u.sum() / (u @ u) * u
    return energy
