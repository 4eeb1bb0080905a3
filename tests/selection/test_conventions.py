"""scikit-learn's checks for every selector, and their common properties."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from plstream import CIPLS, ILFS, IncrementalPLS, InfFS, InfFSS, InfFSU, VIPSelector
from plstream.selection.base import number_to_keep, ranking_of

SELECTORS = [
    InfFS(),
    InfFS(supervised=True),
    InfFS(variant="released", solver="krylov"),
    InfFSU(),
    InfFSS(),
    ILFS(),
    ILFS(variant="A"),
    VIPSelector(),
    VIPSelector(IncrementalPLS(1, solver="gram"), n_features_to_select=0.5),
    VIPSelector(PLSRegression(1)),
    VIPSelector(CIPLS()),
]


@parametrize_with_checks(SELECTORS)
@pytest.mark.filterwarnings("ignore:X and y have only:UserWarning")
@pytest.mark.filterwarnings("ignore:The rows so far have only:UserWarning")
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("wanted", "n_features", "number"),
    [
        (3, 10, 3),
        (0.25, 10, 3),
        (0.15, 10, 2),
        (0.01, 10, 1),
        (1.0, 7, 7),
        (np.int64(2), 5, 2),
        (0.1, 8192, 819),
        (0.145, 100, 15),
        (0.7, 45, 32),
    ],
)
def test_number_to_keep(wanted, n_features, number):
    assert number_to_keep(wanted, n_features) == number


def test_more_features_than_available():
    with pytest.warns(UserWarning, match="X has 4 features, fewer than n_features_to_select=9: all are kept"):
        assert number_to_keep(9, 4) == 4


def test_ranking_breaks_ties_by_column():
    rounding = 1e-15 * np.array([3, 1, 2, 0, 5])
    np.testing.assert_array_equal(ranking_of(np.array([0.5, 1.0, 0.5, 0.0, 1.0]) + rounding), [3, 1, 4, 5, 2])
    np.testing.assert_array_equal(ranking_of(np.zeros(3)), [1, 2, 3])
    # What is small relative to the largest is distinguished all the same.
    np.testing.assert_array_equal(ranking_of(np.array([1e-7, 2e-7, 1e5])), [3, 2, 1])
    np.testing.assert_array_equal(ranking_of(np.array([1.0, 1.0 + 1e-10])), [2, 1])
    np.testing.assert_array_equal(ranking_of(np.array([1e-300, 2e-300])), [2, 1])
    np.testing.assert_array_equal(
        ranking_of(np.array([-np.inf, 1.0, np.inf, 2.0, np.inf, -np.inf])), [5, 4, 1, 3, 2, 6]
    )


@pytest.mark.parametrize("selector", [InfFS(supervised=True), InfFSS(), ILFS()], ids=str)
def test_labels_are_checked(selector):
    X = np.random.default_rng(0).normal(size=(6, 4))
    for y, message in (
        (None, "requires y to be passed"),
        (["a"] * 6, "at least two classes, but all rows have the label 'a'"),
        ([0, 1] * 2, "X has 6 rows, but y has 4 labels"),
        (X[:, 0], "Unknown label type"),
        (np.array(["a", None] * 3, dtype=object), "cannot be sorted|Unknown label type"),
    ):
        with pytest.raises(ValueError, match=message):
            selector.fit(X, y)
    with pytest.raises(ValueError, match="n_features_to_select"):
        clone(selector).set_params(n_features_to_select=0).fit(X, [0, 1] * 3)
    assert selector.fit(X, [0, 1] * 3).support_.sum() == 2


@pytest.mark.parametrize("selector", SELECTORS, ids=str)
def test_a_call_that_fails_leaves_the_selector_unchanged(selector):
    X = np.random.default_rng(0).normal(size=(20, 4))
    y = (X[:, 0] > 0).astype(int)
    scores = selector.fit(X, y).scores_
    with pytest.raises(ValueError, match="Input X contains NaN"):
        selector.fit(np.where(np.arange(80).reshape(20, 4) == 14, np.nan, X), y)
    np.testing.assert_array_equal(selector.scores_, scores)


@pytest.mark.parametrize("selector", [InfFSS(), ILFS(), VIPSelector(IncrementalPLS(1)), VIPSelector(PLSRegression(1))])
def test_number_of_features_by_grid_search(selector):
    pytest.importorskip("pandas")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    search = GridSearchCV(
        Pipeline([("select", selector), ("classify", GaussianNB())]),
        {"select__n_features_to_select": [2, 0.5, 30]},
        cv=2,
    ).fit(X, y)
    kept = search.best_estimator_[:-1].set_output(transform="pandas").transform(X)
    assert len(kept.columns) == number_to_keep(search.best_params_["select__n_features_to_select"], 30)
    assert set(kept.columns) <= set(X.columns)
    back = search.best_estimator_["select"].inverse_transform(kept.to_numpy())
    assert back.shape == X.shape
    assert np.count_nonzero(back.any(axis=0)) == len(kept.columns)
