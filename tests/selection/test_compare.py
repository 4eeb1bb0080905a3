"""Measures of stability and overlap against hand-computed values, and a comparison against scikit-learn's loops."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import BaseEstimator
from sklearn.datasets import load_diabetes, load_wine
from sklearn.feature_selection import RFE, SelectKBest, VarianceThreshold, f_regression
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, ShuffleSplit, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from plstream._core.progress import listening
from plstream.selection import ILFS, SelectorComparison, compare_selectors, overlap, stability


class Fixed(BaseEstimator):
    """Ranks features by given scores, and records what it is fitted to."""

    seen = ()

    def __init__(self, scores=()):
        self.scores = scores

    def fit(self, X, y=None):
        Fixed.seen = (*Fixed.seen, np.asarray(X))
        self.scores_ = np.array(self.scores, dtype=float)
        return self


def test_overlap_by_hand():
    first, second = [1, 2, 3, 4, 5], [5, 1, 4, 3, 2]
    assert [overlap(first, second, k) for k in range(1, 6)] == [0, 1 / 2, 1 / 3, 3 / 4, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [1, 2, 3], 1), "Rankings must be of the same features, but have shapes"),
        (([1, 2], [2, 1], 3), "k must be from 1 to the number of features, 2, not 3"),
        (([1, 2], [2, 1], 0), "k must be from 1"),
    ],
)
def test_overlap_of_invalid_rankings(arguments, message):
    with pytest.raises(ValueError, match=message):
        overlap(*arguments)


def test_stability_by_hand():
    """Three sets of four features with 2, 2 and 1 of them: p = 1, 1/3, 1/3, 0, mean of s^2 1/6, k/d = 5/12."""
    sets = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0]], dtype=bool)
    assert stability(sets) == pytest.approx(1 - (1 / 6) / (5 / 12 * 7 / 12))


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_same_sets_are_stable(share):
    assert stability(np.tile(np.arange(10) < 10 * share, (4, 1))) == 1


def test_random_sets_are_not_stable():
    rng = np.random.default_rng(0)
    assert abs(stability(rng.random((30, 2000)) < 0.2)) < 0.01


@given(arrays(bool, st.tuples(st.integers(2, 6), st.integers(1, 12))))
@settings(max_examples=100, deadline=None)
def test_bounds_of_stability(sets):
    value = stability(sets)
    assert -1 / (len(sets) - 1) - 1e-12 <= value <= 1
    assert value == pytest.approx(stability(sets[::-1, ::-1]))
    if not (sets == sets[0]).all():
        assert value < 1


@given(st.integers(1, 7), st.integers(2, 5), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_stability_of_sets_of_one_size_is_kunchevas(k, n_sets, random):
    d = 8
    sets = [set(random.sample(range(d), k)) for _ in range(n_sets)]
    index = [(len(a & b) - k**2 / d) / (k - k**2 / d) for a, b in combinations(sets, 2)]
    assert stability([[f in s for f in range(d)] for s in sets]) == pytest.approx(np.mean(index))


@pytest.mark.parametrize(
    ("supports", "message"),
    [([[True, False]], "two sets or more"), ([True, False], "must have shape"), ([[1, 2], [2, 1]], "of type bool")],
)
def test_stability_of_invalid_sets(supports, message):
    with pytest.raises(ValueError, match=message):
        stability(supports)


def test_measures_of_a_comparison():
    rankings = np.array([[[1, 2, 3, 4], [1, 3, 2, 4]], [[4, 3, 2, 1], [1, 2, 3, 4]]])
    found = SelectorComparison(("a", "b"), (1, 0.5), rankings, np.ones((2, 2)))
    assert found.n_kept == (1, 2)
    np.testing.assert_allclose(found.overlap(), [[[1, 0.5], [0.5, 1]], [[1, 0.25], [0.25, 1]]])
    np.testing.assert_allclose(found.stability(), [[1, 0], [-1 / 3, -1]], atol=1e-12)


def test_table():
    scores = np.array([[[0.5, 0.7], [0.8, 0.8]], [[0.6, 0.6], [0.7, 0.9]]])
    rankings = np.tile(np.arange(1, 11), (2, 2, 1))
    seconds = np.array([[1.0, 3.0], [0.1, 0.1]])
    found = SelectorComparison(("VIP", "ILFS"), (0.15, 5), rankings, seconds, scores, np.array([0.9, 0.7]))
    assert found.table().splitlines() == [
        "| selector | 15 % | 5 features | seconds |",
        "| --- | --- | --- | --- |",
        "| VIP | 0.600 ± 0.100 | **0.800 ± 0.000** | 2 |",
        "| ILFS | 0.600 ± 0.000 | **0.800 ± 0.100** | 0.1 |",
        "| all features | **0.800 ± 0.100** | **0.800 ± 0.100** |  |",
    ]
    one = SelectorComparison(
        ("VIP",), (5,), rankings[:1, :1], seconds[:1, :1], -1234 * scores[:1, :1, :1], np.array([-1.0])
    )
    assert "| VIP | -617 | 1 |\n| all features | **-1** |  |" in one.table()
    without = SelectorComparison(("VIP", "ILFS"), (0.2,), rankings, seconds)
    assert "| VIP | **1.00** | 2 |" in without.table()


def test_equals_pipelines():
    X, y = load_wine(return_X_y=True)
    selectors = {"F": SelectKBest(), "ILFS": ILFS()}
    keep = (1, 0.2, 0.5, 1.0)
    found = compare_selectors(selectors, X, y, cv=4, keep=keep, estimator=GaussianNB(), scoring="balanced_accuracy")
    assert found.names == ("F", "ILFS")
    assert found.rankings.shape == (2, 4, 13)
    assert found.seconds.shape == (2, 4)
    assert (found.seconds > 0).all()
    for i, k in enumerate((1, 3, 7, 13)):
        for s, selector in enumerate((SelectKBest(k=k), ILFS(n_features_to_select=k))):
            expected = cross_val_score(
                make_pipeline(selector, GaussianNB()), X, y, cv=StratifiedKFold(4), scoring="balanced_accuracy"
            )
            np.testing.assert_allclose(found.scores[s, i], expected)
    np.testing.assert_allclose(found.scores_of_all, found.scores[0, -1])


def test_selectors_see_the_training_rows_alone_and_stay_unfitted():
    X = np.arange(24.0).reshape(12, 2)
    selector, Fixed.seen = Fixed([1, 2]), ()
    splits = [(np.arange(8), np.arange(8, 12)), (np.arange(4, 12), np.arange(4))]
    compare_selectors({"fixed": selector}, X, cv=iter(splits), keep=(1,))
    assert len(Fixed.seen) == 2
    for seen, (train, _) in zip(Fixed.seen, splits, strict=True):
        np.testing.assert_array_equal(seen, X[train])
    assert not hasattr(selector, "scores_")


def test_folds():
    """Plain for values, in groups, or by a splitter."""
    X, y = load_diabetes(return_X_y=True)
    best = {"F": SelectKBest(f_regression)}
    expected = cross_val_score(LinearRegression(), X, y, cv=5)
    np.testing.assert_allclose(compare_selectors(best, X, y, estimator=LinearRegression()).scores_of_all, expected)
    groups = np.arange(len(y)) % 7
    found = compare_selectors(best, X, y, cv=GroupKFold(3), groups=groups, estimator=LinearRegression())
    expected = cross_val_score(LinearRegression(), X, y, cv=GroupKFold(3), groups=groups)
    np.testing.assert_allclose(found.scores_of_all, expected)
    assert compare_selectors(best, X, y, cv=ShuffleSplit(2, random_state=0)).rankings.shape == (1, 2, 10)


def test_ranks_of_scores_that_are_not_finite():
    found = compare_selectors({"x": Fixed([np.nan, 2, np.inf, -np.inf, 3])}, np.zeros((4, 5)), cv=2, keep=(2,))
    np.testing.assert_array_equal(found.rankings[0, 0], [5, 3, 1, 4, 2])


def test_scores_of_others_are_ranked_as_they_are():
    """One score that dwarfs the others does not make ties of them."""
    scores = [1.0, 3.0, 1e16, 2.0]
    found = compare_selectors({"x": Fixed(scores)}, np.zeros((4, 4)), cv=2, keep=2)
    np.testing.assert_array_equal(found.rankings[0, 0], [4, 2, 1, 3])
    assert found.keep == (2,)


def test_one_fold():
    X, y = load_wine(return_X_y=True)
    found = compare_selectors({"a|b": SelectKBest()}, X, y, keep=1, cv=[(np.arange(178), np.arange(178))])
    with pytest.raises(ValueError, match="at least two folds, but there is only one"):
        found.stability()
    found = compare_selectors(
        {"a|b": SelectKBest()}, X, y, keep=1, cv=[(np.arange(178), np.arange(178))], estimator=GaussianNB()
    )
    assert found.table().splitlines()[0] == "| selector | 1 feature | seconds |"
    assert "| a/b |" in found.table()


def test_values_are_not_stratified():
    X = np.random.default_rng(0).normal(size=(12, 3))
    compare_selectors({"F": SelectKBest(f_regression, k=2)}, X, np.arange(12.0), cv=3, keep=2)


def test_a_ranking_goes_before_scores():
    X, y = load_wine(return_X_y=True)
    selector = RFE(LinearRegression(), n_features_to_select=1)
    found = compare_selectors({"RFE": selector}, X, y, cv=[(np.arange(178), np.arange(5))], keep=(2,))
    np.testing.assert_array_equal(found.rankings[0, 0], selector.fit(X, y).ranking_)


def test_frames_and_lists():
    pd = pytest.importorskip("pandas")
    X, y = load_wine(return_X_y=True)
    arguments = {"keep": (4,), "estimator": GaussianNB(), "cv": 2}
    expected = compare_selectors({"ILFS": ILFS()}, X, y, **arguments)
    labels = np.array(["a", "b", "c"])[y]
    for rows in (pd.DataFrame(X).add_prefix("x"), X.tolist()):
        found = compare_selectors({"ILFS": ILFS()}, rows, labels.tolist(), **arguments)
        np.testing.assert_array_equal(found.rankings, expected.rankings)
        np.testing.assert_allclose(found.scores, expected.scores)


def test_progress():
    X, y = load_wine(return_X_y=True)
    steps = []
    with listening(steps.append):
        compare_selectors({"F": SelectKBest(), "ILFS": ILFS()}, X, y, cv=3, keep=(2,))
    assert [(step.done, step.total, step.unit) for step in steps] == [(done, 6, "fits") for done in range(1, 7)]


@pytest.mark.parametrize(
    ("selectors", "arguments", "message"),
    [
        ({}, {}, "selectors must be a mapping of names to selectors"),
        ([SelectKBest()], {}, "selectors must be a mapping of names to selectors"),
        ({1: SelectKBest()}, {}, "selectors must be a mapping of names to selectors"),
        ({"F": SelectKBest()}, {"cv": []}, "cv has no folds"),
        ({"F": SelectKBest()}, {"keep": "all"}, "features, not 'all'"),
        ({"F": SelectKBest()}, {"estimator": GaussianNB(), "scoring": ["accuracy"]}, "one name or one callable"),
        ({"F": SelectKBest()}, {"keep": (14,)}, "at most 13 features, not 14"),
        ({"F": SelectKBest()}, {"keep": (1.5,)}, "keep must hold fractions, or numbers of at most 13 features"),
        ({"F": SelectKBest()}, {"keep": (0,)}, "features, not 0"),
        ({"F": SelectKBest()}, {"keep": ()}, "keep is empty"),
        ({"V": VarianceThreshold()}, {}, "'V' has neither ranking_ nor scores_ after fit"),
        ({"R": RFE(GaussianNB(), importance_getter="theta_")}, {}, "several share a rank"),
    ],
)
def test_invalid_comparisons_are_refused(selectors, arguments, message):
    X, y = load_wine(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        compare_selectors(selectors, X, y, **arguments)
