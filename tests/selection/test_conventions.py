"""scikit-learn's own checks for every selector, and what they all have in common."""

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from plstream import CIPLS, ILFS, IncrementalPLS, InfFS, InfFSS, InfFSU, VIPSelector
from plstream.selection._base import number_to_keep, ranking_of

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


def excused(selector):
    if isinstance(selector, VIPSelector) and selector.estimator is None:
        return {"check_fit_score_takes_y": "calls partial_fit after a fit by reading again, which keeps no stream"}
    return {}


@parametrize_with_checks(SELECTORS, expected_failed_checks=excused)
@pytest.mark.filterwarnings("ignore:X and y have only:UserWarning")
@pytest.mark.filterwarnings("ignore:The rows so far have only:UserWarning")
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
def test_sklearn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("wanted", "n_features", "number"),
    [(3, 10, 3), (0.25, 10, 3), (0.15, 10, 2), (0.01, 10, 1), (1.0, 7, 7), (np.int64(2), 5, 2), (0.1, 8192, 819)],
)
def test_number_to_keep(wanted, n_features, number):
    assert number_to_keep(wanted, n_features) == number


def test_more_than_there_are():
    with pytest.warns(UserWarning, match="X has 4 features, fewer than n_features_to_select=9: all are kept"):
        assert number_to_keep(9, 4) == 4


def test_ranking_breaks_ties_by_column():
    rounding = 1e-15 * np.array([3, 1, 2, 0, 5])
    np.testing.assert_array_equal(ranking_of(np.array([0.5, 1.0, 0.5, 0.0, 1.0]) + rounding), [3, 1, 4, 5, 2])
    np.testing.assert_array_equal(ranking_of(np.zeros(3)), [1, 2, 3])
    np.testing.assert_array_equal(ranking_of(np.array([1e-300, 2e-300])), [2, 1])
    np.testing.assert_array_equal(
        ranking_of(np.array([-np.inf, 1.0, np.inf, 2.0, np.inf, -np.inf])), [5, 4, 1, 3, 2, 6]
    )
