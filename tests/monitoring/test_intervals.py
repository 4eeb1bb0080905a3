"""Prediction intervals: those of least squares where PLS is least squares, and the stated coverage."""

import warnings

import numpy as np
import pytest
from scipy import stats

from plstream import IncrementalPLS, IncrementalPLSClassifier, IncrementalPLSCV, open_source
from plstream.monitoring import PredictionInterval


def data(n, m=6, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) @ rng.normal(size=(m, m)) + 5
    return X, X @ rng.normal(size=m) + noise * rng.normal(size=n)


def least_squares_interval(X, y, new, level):
    """The textbook's."""
    A, B = (np.column_stack([np.ones(len(rows)), rows]) for rows in (X, new))
    beta, *_ = np.linalg.lstsq(A, y, rcond=None)
    dof = len(A) - A.shape[1]
    s = np.sqrt(np.sum((y - A @ beta) ** 2) / dof)
    leverage = np.einsum("ij,jk,ik->i", B, np.linalg.inv(A.T @ A), B)
    width = stats.t.ppf((1 + level) / 2, dof) * s * np.sqrt(1 + leverage)
    return B @ beta - width, B @ beta + width


@pytest.mark.parametrize("solver", ["gram", "multipass", "sketch"])
@pytest.mark.parametrize("scale", [True, False])
def test_all_components_are_least_squares(solver, scale):
    X, y = data(60)
    model = IncrementalPLS(6, solver=solver, scale=scale).fit(X, y)
    found = PredictionInterval(model, level=0.9).of(X[:10] + 1)
    np.testing.assert_allclose(found, least_squares_interval(X, y, X[:10] + 1, 0.9), rtol=1e-6)


def test_weights_that_are_all_alike_change_nothing():
    X, y = data(60)
    expected = PredictionInterval(IncrementalPLS(3).fit(X, y)).of(X)
    weighted = IncrementalPLS(3).fit(X, y, sample_weight=np.full(60, 7.0))
    np.testing.assert_allclose(PredictionInterval(weighted).of(X), expected, rtol=1e-9)


@pytest.mark.parametrize("model", [IncrementalPLS(3), IncrementalPLSCV(6)])
@pytest.mark.parametrize("n", [60, 1000])
def test_coverage(model, n):
    hits = []
    for seed in range(20):
        X, y = data(n + 500, seed=seed)
        lower, upper = PredictionInterval(model.fit(X[:n], y[:n]), level=0.8).of(X[n:])
        hits.append(np.mean((lower <= y[n:]) & (y[n:] <= upper)))
    assert 0.77 < np.mean(hits) < 0.86


def test_several_targets_and_sources():
    X, y = data(100)
    Y = np.column_stack([y, 1e6 * X[:, 0] + y])
    model = IncrementalPLS(2).fit(X, Y)
    lower, upper = PredictionInterval(model).of(open_source(X, batch_size=30))
    assert lower.shape == upper.shape == (100, 2)
    np.testing.assert_allclose((lower + upper) / 2, model.predict(X), rtol=1e-9)
    for k in range(2):
        within = (lower[:, k] <= Y[:, k]) & (Y[:, k] <= upper[:, k])
        assert within.mean() > 0.9


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_units(unit):
    X, y = data(60)
    expected = np.array(PredictionInterval(IncrementalPLS(3).fit(X, y)).of(X))
    found = np.array(PredictionInterval(IncrementalPLS(3).fit(X, y * unit)).of(X))
    np.testing.assert_allclose(found / unit, expected, rtol=1e-8)


def test_a_constant_target():
    X, _ = data(60)
    with warnings.catch_warnings(action="ignore"):
        model = IncrementalPLSCV(2).fit(X, np.ones(60))
    lower, upper = PredictionInterval(model).of(X)
    np.testing.assert_allclose([lower, upper], 1.0)


def test_invalid_calls_are_refused():
    X, y = data(7)
    with pytest.raises(ValueError, match="errors of a model of"):
        PredictionInterval(IncrementalPLS(2).fit(X, y))
    X, y = data(60)
    with pytest.raises(ValueError, match="between 0 and 1"):
        PredictionInterval(IncrementalPLS(2).fit(X, y), level=95)
    with pytest.raises(TypeError, match="predicts labels"):
        PredictionInterval(IncrementalPLSClassifier(2).fit(X, y > 0))
    with pytest.raises(TypeError, match="not int"):
        PredictionInterval(3)
