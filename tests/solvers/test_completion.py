"""Completion of rows against the dense conditional Gaussian distribution of the same factor model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plstream import IncrementalPLS
from plstream.rows import Block
from plstream.solvers.completion import FactorModel, Gaps, observed_means

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(200, 3))
X = SCORES @ rng.normal(size=(3, 12)) + 0.3 * rng.normal(size=(200, 12)) + 5
Y = SCORES[:, :2] + 0.1 * rng.normal(size=(200, 2))


def conditional_mean(model, values):
    """Return the conditional mean of one row, x and then y, by solving with the covariance of all columns."""
    z = (values - model.mean) / model.scale
    varies = model.precision > 0
    noise = np.where(varies, 1 / np.where(varies, model.precision, 1), 0.0)
    covariance = model.loadings @ model.loadings.T + np.diag(noise)
    observed = np.flatnonzero(~np.isnan(z) & varies)
    weights = np.linalg.solve(covariance[np.ix_(observed, observed)], z[observed])
    # The residual of a missing cell is independent of all others.
    expected = model.loadings @ model.loadings[observed].T @ weights
    return np.where(np.isnan(values), expected * model.scale + model.mean, values)


@settings(deadline=None, max_examples=30)
@given(share=st.floats(0, 1), scale=st.booleans(), seed=st.integers(0, 99), responses=st.booleans())
def test_completion_is_the_conditional_mean(share, scale, seed, responses):
    fitted = IncrementalPLS(3, scale=scale).fit(X, Y)
    model = FactorModel.of(fitted._solution())
    gaps = np.random.default_rng(seed).random((20, 12)) < share
    rows = np.where(gaps, np.nan, X[:20])
    if responses:
        completed = model.completed_block(Block(rows, Y[:20], None)).X
        expected = np.array([conditional_mean(model, row)[:12] for row in np.hstack([rows, Y[:20]])])
    else:
        completed = model.completed(rows)
        expected = np.array([conditional_mean(model, np.append(row, [np.nan] * 2))[:12] for row in rows])
    np.testing.assert_allclose(completed, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(completed[~gaps], X[:20][~gaps])


def test_rows_without_gaps_are_not_copied():
    model = FactorModel.of(IncrementalPLS(3).fit(X, Y)._solution())
    block = Block(X, Y, None)
    assert model.completed(X) is X
    assert model.completed_block(block) is block
    assert model.completed(np.ones((2, 12), int)).dtype == int


def test_a_row_with_nothing_observed_is_the_mean():
    fitted = IncrementalPLS(3).fit(X, Y)
    completed = FactorModel.of(fitted._solution()).completed(np.full((1, 12), np.nan))
    np.testing.assert_allclose(completed[0], X.mean(axis=0))
    np.testing.assert_allclose(fitted.transform(completed), 0, atol=1e-12)


def test_missing_responses_are_predicted_from_the_completed_row():
    fitted = IncrementalPLS(3).fit(X, Y)
    rows, known = X[:5].copy(), Y[:5].copy()
    rows[:, 3] = np.nan
    known[:, 1] = np.nan
    completed = FactorModel.of(fitted._solution()).completed_block(Block(rows, known, None))
    np.testing.assert_allclose(completed.Y[:, 1], fitted.predict(completed.X)[:, 1])
    np.testing.assert_array_equal(completed.Y[:, 0], known[:, 0])


def test_exact_data_is_completed_exactly():
    exact = SCORES @ rng.normal(size=(3, 12)) * 1e-3 + 1e6
    model = FactorModel.of(IncrementalPLS(3).fit(exact, SCORES)._solution())
    rows = exact.copy()
    rows[:, ::2] = np.nan
    np.testing.assert_allclose(model.completed(rows) - exact, 0, atol=1e-7)


def test_float32_stays_float32():
    model = FactorModel.of(IncrementalPLS(3).fit(X, Y)._solution())
    rows = X[:4].astype(np.float32)
    rows[0, 0] = np.nan
    completed = model.completed(rows)
    assert completed.dtype == np.float32
    assert np.isnan(rows[0, 0])


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_gaps_of_parts_add_up(parts):
    rows, weight = np.where(rng.random(X.shape) < 0.3, np.nan, X), rng.random(200)
    rows[:, 4] = np.nan
    whole = Gaps.of(Block(rows, Y, weight))
    total = Gaps.none((12, 2), 0.0)
    for some in np.array_split(np.arange(200), parts):
        total.merge(Gaps.of(Block(rows[some], Y[some], weight[some])))
    np.testing.assert_array_equal(total.n_missing, np.isnan(rows).sum(axis=0))
    np.testing.assert_allclose(total.share, whole.share)
    np.testing.assert_allclose(whole.weight[:12], weight @ ~np.isnan(rows), atol=1e-12)
    assert np.flatnonzero(total.unseen).tolist() == [4]
    total.shrink(0.5)
    np.testing.assert_allclose(total.share, whole.share)


def test_observed_means_far_from_zero():
    rows = np.array([[1e8 + 1, np.nan, 1.0], [np.nan, np.nan, 2.0], [1e8 + 2, np.nan, 3.0]])
    means = observed_means(Block(rows, np.zeros((3, 1)), np.array([1.0, 1.0, 3.0])))
    np.testing.assert_allclose(means, [1e8 + 1.75, 0, 2.4, 0], rtol=1e-15)
