"""Figures of merit, against their formulas and scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import linregress
from sklearn.metrics import r2_score, root_mean_squared_error

from plstream import figures_of_merit
from plstream._core.metrics import RegressionMetrics


def by_formula(true, predicted):
    errors = predicted - true
    sep = errors.std(ddof=1)
    return (
        len(true),
        root_mean_squared_error(true, predicted),
        sep,
        errors.mean(),
        linregress(true, predicted).slope,
        r2_score(true, predicted),
        true.std(ddof=1) / sep,
    )


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 39), max_size=4, unique=True),
    st.sampled_from([0.0, 1e6]),
    st.sampled_from([1.0, 1e120, 1e-120]),
)
def test_figures_do_not_depend_on_blocks(seed, ends, offset, unit):
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(40, 2)) + offset
    predicted = 0.9 * (true - offset) + offset + 0.2 * rng.normal(size=(40, 2)) + 0.1
    metrics = RegressionMetrics(true[: min(ends, default=40)] * unit)
    for rows in np.split(np.arange(40), sorted(ends)):
        metrics.add(true[rows] * unit, predicted[rows] * unit)
    for k in range(2):
        n_rows, *expected = by_formula(true[:, k], predicted[:, k])
        units = np.array([unit, unit, unit, 1.0, 1.0, 1.0])
        found = [getattr(metrics, name)[k] for name in ("rmse", "sep", "bias", "slope", "r2", "rpd")]
        assert metrics.n_rows == n_rows
        assert_allclose(found / units, expected, rtol=1e-6)


def test_one_response_or_several():
    rng = np.random.default_rng(0)
    true = rng.normal(size=(30, 2))
    predicted = true + 0.1 * rng.normal(size=(30, 2))
    figures = figures_of_merit(true, predicted)
    assert_allclose([figures.sep[1], figures.rpd[1]], np.array(by_formula(true[:, 1], predicted[:, 1]))[[2, 6]])
    single = figures_of_merit(true[:, 0].tolist(), predicted[:, 0])
    assert isinstance(single.slope, float)
    assert_allclose(single, by_formula(true[:, 0], predicted[:, 0]))


def test_perfect_and_constant():
    perfect = figures_of_merit([1.0, 2.0], [1.0, 2.0])
    assert (perfect.rmse, perfect.sep, perfect.slope, perfect.r2, perfect.rpd) == (0.0, 0.0, 1.0, 1.0, np.inf)
    constant = figures_of_merit([1.0, 1.0], [1.0, 2.0])
    assert np.isnan(constant.slope)
    assert constant.rpd == 0.0


def test_bad_input():
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        figures_of_merit([1.0], [1.0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        figures_of_merit([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="y has 2 targets"):
        figures_of_merit(np.ones((3, 2)), np.ones((3, 1)))
    with pytest.raises(ValueError, match="y_pred contains NaN"):
        figures_of_merit([1.0, 2.0], [1.0, np.nan])
