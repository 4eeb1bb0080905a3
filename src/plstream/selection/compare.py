"""Comparison of selectors: scores of a model on the kept features, stability, overlap and time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, indexable

from .._core.progress import listening, track
from .._core.types import Float64Array
from .base import number_to_keep

Ranking = NDArray[np.intp]


def overlap(first: Any, second: Any, k: int) -> float:
    """Return the share of the best k features of one ranking that are among the best k of another.

    Parameters
    ----------
    first, second : array-like of shape (n_features,)
        Rankings: the rank of every feature, 1 for the best.
    k : int
        Number of features.

    Returns
    -------
    share : float
        From 0 to 1. Unrelated rankings have about k/n_features in common.

    Examples
    --------
    >>> from plstream.selection import overlap
    >>> overlap([1, 2, 3, 4], [2, 4, 1, 3], k=2)
    0.5
    """
    first, second = np.asarray(first), np.asarray(second)
    if not isinstance(k, (int, np.integer)):
        raise TypeError(f"k must be an integer, not {k!r}.")
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"Rankings must be of the same features, but have shapes {first.shape} and {second.shape}.")
    if not 1 <= k <= len(first):
        raise ValueError(f"k must be from 1 to the number of features, {len(first)}, not {k}.")
    return float(np.count_nonzero((first <= k) & (second <= k)) / k)


def stability(supports: Any) -> float:
    """Return the similarity of feature sets, corrected for chance: 1 if all are equal, about 0 if they are random.

    This is the measure of Nogueira, Sechidis and Brown. For M sets of d features, it is
    1 - mean_f s_f^2 / (k/d (1 - k/d)), where s_f^2 = M/(M - 1) p_f (1 - p_f) is the variance of selection of a feature
    in a share p_f of the sets, and k is their mean size. If sizes are equal, it is the mean of Kuncheva's index over
    all pairs.

    Parameters
    ----------
    supports : array-like of bool of shape (n_sets, n_features)
        Which features are in each of two or more sets.

    Returns
    -------
    stability : float
        From -1/(n_sets - 1) to 1. Sets of all features, or of none, count as equal.

    References
    ----------
    S. Nogueira, K. Sechidis and G. Brown, "On the stability of feature selection algorithms", Journal of Machine
    Learning Research 18, 2018.

    L. I. Kuncheva, "A stability index for feature selection", IASTED Artificial Intelligence and Applications, 2007.

    Examples
    --------
    >>> from plstream.selection import stability
    >>> stability([[True, True, False, False], [True, True, False, False]])
    1.0
    >>> stability([[True, True, False, False], [True, False, True, False]])
    0.0
    """
    sets = np.asarray(supports)
    if sets.ndim != 2 or len(sets) < 2 or not sets.shape[1]:
        raise ValueError(f"supports must have shape (n_sets, n_features) with two sets or more, not {sets.shape}.")
    if sets.dtype != np.bool_:
        raise ValueError(f"supports must be of type bool, not {sets.dtype}: pass a mask of the features for each set.")
    n_sets, shares = len(sets), sets.mean(axis=0)
    share = shares.mean()
    if share in {0.0, 1.0}:
        return 1.0
    variance = n_sets / (n_sets - 1) * np.mean(shares * (1 - shares))
    return float(1 - variance / (share * (1 - share)))


@dataclass(frozen=True, eq=False)
class SelectorComparison:
    """Result of :func:`compare_selectors`.

    Attributes
    ----------
    names : tuple of str
        The selectors.
    keep : tuple of int or float
        Numbers or fractions of features kept.
    rankings : ndarray of shape (n_selectors, n_folds, n_features)
        The rank of every feature, 1 for the best.
    seconds : ndarray of shape (n_selectors, n_folds)
        Time of ranking.
    scores : ndarray of shape (n_selectors, n_keep, n_folds) or None
        Scores of the estimator on the test rows, if there was one.
    scores_of_all : ndarray of shape (n_folds,) or None
        The same without selection.
    """

    names: tuple[str, ...]
    keep: tuple[float, ...]
    rankings: Ranking
    seconds: Float64Array
    scores: Float64Array | None = None
    scores_of_all: Float64Array | None = None

    @property
    def n_kept(self) -> tuple[int, ...]:
        """Numbers of features kept."""
        return tuple(number_to_keep(share, self.rankings.shape[2]) for share in self.keep)

    def stability(self) -> Float64Array:
        """Return the stability over folds of the kept features, of shape (n_selectors, n_keep)."""
        if self.rankings.shape[1] < 2:
            raise ValueError("Stability requires at least two folds, but there is only one.")
        return np.array([[stability(ranks <= k) for k in self.n_kept] for ranks in self.rankings])

    def overlap(self) -> Float64Array:
        """Return the share of features that two selectors both keep, averaged over folds.

        Returns
        -------
        shares : ndarray of shape (n_keep, n_selectors, n_selectors)
        """

        def shared(first: Ranking, second: Ranking, k: int) -> float:
            return float(np.mean([overlap(a, b, k) for a, b in zip(first, second, strict=True)]))

        return np.array([[[shared(a, b, k) for b in self.rankings] for a in self.rankings] for k in self.n_kept])

    def table(self) -> str:
        """Return a Markdown table of mean scores, their standard errors over folds, and seconds of ranking.

        The best score of each column, including that without selection, is bold. Without an estimator, the table
        contains stabilities. Folds share most training rows, so standard errors are somewhat too small.
        """
        if self.scores is None or self.scores_of_all is None:
            names, means, errors = list(self.names), self.stability(), None
        else:
            names = [*self.names, "all features"]
            of_all = np.broadcast_to(self.scores_of_all, (1, *self.scores.shape[1:]))
            values = np.concatenate([self.scores, of_all])
            n_folds = values.shape[2]
            means = values.mean(axis=2)
            errors = values.std(axis=2, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else None
        seconds = [f"{mean:.2g}" for mean in self.seconds.mean(axis=1)]
        lines = [["selector", *map(_column_title, self.keep), "seconds"]]
        for name, cells, time_taken in zip_longest(names, _cells(means, errors), seconds, fillvalue=""):
            # A bar would start a new column.
            lines.append([name.replace("|", "/"), *cells, time_taken])
        lines.insert(1, ["---"] * len(lines[0]))
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def compare_selectors(
    selectors: Mapping[str, Any],
    X: Any,
    y: Any = None,
    *,
    cv: Any = 5,
    groups: Any = None,
    keep: Any = (0.1, 0.15, 0.2, 0.5),
    estimator: Any = None,
    scoring: Any = None,
) -> SelectorComparison:
    """Rank features by several selectors in the same folds, and score an estimator on the best of each ranking.

    Every selector is fitted once per fold, on the training rows only, and its ranking is cut at each number in
    ``keep``. Test rows thus do not influence the selection, and further numbers need no further rankings.

    Parameters
    ----------
    selectors : mapping of str to selector
        Names, and selectors that have ``ranking_`` after ``fit``, or at least ``scores_``, like SelectKBest. They are
        cloned.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,), default=None
        Labels or values.
    cv : int, splitter or iterable of pairs of indices, default=5
        The folds, as in scikit-learn: an integer means stratified folds if y holds labels.
    groups : array-like of shape (n_samples,), default=None
        Groups of rows, for splitters that keep them together.
    keep : int, float or iterable of them, default=(0.1, 0.15, 0.2, 0.5)
        Numbers or fractions of features to keep.
    estimator : estimator, default=None
        Estimator fitted to the kept features, and to all features.
    scoring : str or callable, default=None
        The scorer, as in scikit-learn. None uses the ``score`` of the estimator.

    Returns
    -------
    comparison : SelectorComparison
        Rankings, times, scores, stabilities, overlaps and a table.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from plstream.selection import ILFS, compare_selectors
    >>> X, y = load_wine(return_X_y=True)
    >>> selectors = {"Fisher": SelectKBest(), "ILFS": ILFS()}
    >>> found = compare_selectors(selectors, X, y, keep=(3, 0.5), estimator=GaussianNB())
    >>> found.scores.mean(axis=2).round(2)
    array([[0.92, 0.96],
           [0.94, 0.94]])
    >>> found.stability().round(2)
    array([[1.  , 1.  ],
           [0.65, 0.54]])
    """
    X, y, groups = indexable(X if hasattr(X, "shape") else np.asarray(X), y, groups)
    _require_arguments(selectors, X, scoring)
    keep = tuple(keep) if isinstance(keep, Iterable) and not isinstance(keep, str) else (keep,)
    if not keep:
        raise ValueError("keep is empty: pass the numbers or fractions of features to keep.")
    n_kept = [_n_kept(share, X.shape[1]) for share in keep]
    # Floats are values, unless the estimator is a classifier.
    labels = y is not None and np.asarray(y).dtype.kind != "f" if estimator is None else not is_regressor(estimator)
    splits = list(check_cv(cv, y, classifier=labels).split(X, y, groups))
    if not splits:
        raise ValueError("cv has no folds: pass a number of folds, a splitter or pairs of indices.")
    scorer = None if estimator is None else check_scoring(estimator, scoring=scoring)

    shape = len(selectors), len(splits)
    rankings, seconds = np.empty((*shape, X.shape[1]), dtype=np.intp), np.empty(shape)
    scores, scores_of_all = np.empty((shape[0], len(keep), shape[1])), np.empty(shape[1])

    def fits() -> Iterator[None]:
        for f, (train, test) in enumerate(splits):
            fold = [None if a is None else _safe_indexing(a, rows) for rows in (train, test) for a in (X, y)]
            if scorer is not None:
                scores_of_all[f] = _score(estimator, scorer, fold)
            for s, (name, selector) in enumerate(selectors.items()):
                start = time.perf_counter()
                # Scores may be computed on first access.
                rankings[s, f] = _ranking_by(name, _fit(selector, fold[0], fold[1]))
                seconds[s, f] = time.perf_counter() - start
                if scorer is not None:
                    scores[s, :, f] = [_score(estimator, scorer, fold, rankings[s, f] <= k) for k in n_kept]
                yield
            # Free the rows of this fold before the next ones are read.
            del fold

    for _ in track(fits(), "comparing selectors", len(selectors) * len(splits), lambda _: 1, "fits"):
        pass
    if scorer is None:
        return SelectorComparison(tuple(selectors), keep, rankings, seconds)
    return SelectorComparison(tuple(selectors), keep, rankings, seconds, scores, scores_of_all)


def _require_arguments(selectors: Any, X: Any, scoring: Any) -> None:
    """Raise ValueError for arguments that would fail only after some fits."""
    if len(X.shape) != 2:
        raise ValueError(f"X must have two dimensions, rows and features, not {len(X.shape)}.")
    if not isinstance(selectors, Mapping) or not selectors or not all(isinstance(name, str) for name in selectors):
        raise ValueError("selectors must be a mapping of names to selectors, with at least one of them.")
    if scoring is not None and not (isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be one name or one callable, not {scoring!r}.")


def _score(estimator: Any, scorer: Any, fold: Sequence[Any], kept: NDArray[np.bool_] | None = None) -> float:
    """Return the test score of the estimator fitted to the kept features, by default all."""
    X, y, X_test, y_test = fold
    if kept is not None:
        X, X_test = (_safe_indexing(rows, np.flatnonzero(kept), axis=1) for rows in (X, X_test))
    return float(scorer(_fit(estimator, X, y), X_test, y_test))


def _fit(estimator: Any, X: Any, y: Any) -> Any:
    """Return a fitted clone, without its own progress bar."""
    with listening(None):
        return clone(estimator).fit(X, y)


def _ranking_by(name: str, selector: Any) -> Ranking:
    """Return the ranking of a fitted selector, or that of its scores; NaN comes last."""
    found = getattr(selector, "ranking_", None)
    if found is not None:
        ranking = np.asarray(found)
        if not np.array_equal(np.sort(ranking), np.arange(1, len(ranking) + 1)):
            raise ValueError(
                f"The ranking of {name!r} does not order all features, because several share a rank: if it ranks only "
                "the features that it leaves out, let it keep one feature."
            )
        return ranking
    if not hasattr(selector, "scores_"):
        raise ValueError(f"{name!r} has neither ranking_ nor scores_ after fit: it cannot be compared.")
    # Without ties by rounding: rounding errors in scores of other libraries are unknown.
    order = np.argsort(-np.asarray(selector.scores_, dtype=np.float64), kind="stable")
    return np.argsort(order) + 1


def _n_kept(keep: Any, n_features: int) -> int:
    whole = isinstance(keep, (int, np.integer))
    number = keep if isinstance(keep, (int, float, np.integer, np.floating)) else 0
    if not (1 <= number <= n_features if whole else 0 < number <= 1):
        raise ValueError(f"keep must hold fractions, or numbers of at most {n_features} features, not {keep!r}.")
    return number_to_keep(keep, n_features)


def _column_title(keep: float) -> str:
    if isinstance(keep, (int, np.integer)):
        return "1 feature" if keep == 1 else f"{keep} features"
    return f"{100 * keep:.3g} %"


def _cells(means: Float64Array, errors: Float64Array | None) -> list[list[str]]:
    """Return formatted means and errors, with three digits of the largest and the best of every column in bold."""
    largest = np.abs(means[np.isfinite(means)]).max(initial=0.0) or 1.0
    decimals = max(0, 2 - int(np.floor(np.log10(largest))))
    cells = [[f"{mean:.{decimals}f}" for mean in row] for row in means]
    if errors is not None:
        cells = [
            [f"{cell} ± {error:.{decimals}f}" for cell, error in zip(*row, strict=True)]
            for row in zip(cells, errors, strict=True)
        ]
    best = means == np.fmax.reduce(means, axis=0)
    return [
        [f"**{cell}**" if bold else cell for cell, bold in zip(*row, strict=True)]
        for row in zip(cells, best, strict=True)
    ]
