"""IncrementalPLS equals PLSRegression: for all data at once, for streams, parts and weights."""

import json
import warnings
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_linnerud

from plstream import IncrementalPLS
from tests.oracles import dense_pls, precise_pls, regression_data, relative_error
from tests.real_data import real_data

SHARED_ATTRIBUTES = [
    "x_weights_",
    "x_loadings_",
    "x_rotations_",
    "y_weights_",
    "y_loadings_",
    "y_rotations_",
    "coef_",
    "intercept_",
]
SHAPES = [(60, 9), (20, 50)]
scales = pytest.mark.parametrize("scale", [True, False])
shapes = pytest.mark.parametrize(("n", "m"), SHAPES)


@scales
@shapes
def test_equals_plsregression_for_one_response(solver, scale, n, m):
    X, y = regression_data(n, m)
    ours = IncrementalPLS(5, scale=scale, solver=solver).fit(X, y)
    theirs = PLSRegression(5, scale=scale).fit(X, y)
    for name in SHARED_ATTRIBUTES:
        assert relative_error(getattr(ours, name), getattr(theirs, name)) < 1e-9, name
        assert getattr(ours, name).shape == getattr(theirs, name).shape, name
    assert relative_error(ours.predict(X), theirs.predict(X)) < 1e-9
    assert ours.predict(X).shape == theirs.predict(X).shape
    assert relative_error(ours.transform(X), theirs.transform(X)) < 1e-9
    assert relative_error(ours.transform_y(y), theirs.transform(X, y)[1]) < 1e-9
    scores, y_scores = theirs.transform(X, y)
    back, y_back = theirs.inverse_transform(scores, y_scores)
    assert relative_error(ours.inverse_transform(scores), back) < 1e-9
    assert relative_error(ours.inverse_transform(scores, y_scores)[1], y_back) < 1e-9
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-9)


@scales
@shapes
@pytest.mark.parametrize("q", [3, 10])
def test_equals_dense_svd_and_converged_plsregression_for_several_responses(solver, scale, n, m, q):
    X, Y = regression_data(n, m, q)
    ours = IncrementalPLS(4, scale=scale, solver=solver).fit(X, Y)
    coefficients, W, P, Q, _ = dense_pls(X, Y, 4, scale=scale)
    assert relative_error(ours.coef_, coefficients.T) < 1e-9
    signs = np.sign(np.sum(W * ours.x_weights_, axis=0))
    assert relative_error(ours.x_weights_, W * signs) < 1e-9
    assert relative_error(ours.x_loadings_, P * signs) < 1e-9
    assert relative_error(ours.y_loadings_, Q * signs) < 1e-9
    assert relative_error(ours.x_rotations_, W @ np.linalg.inv(P.T @ W) * signs) < 1e-9
    theirs = PLSRegression(4, scale=scale, tol=1e-15, max_iter=20000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(X, Y)
    for name in SHARED_ATTRIBUTES:
        assert relative_error(getattr(ours, name), getattr(theirs, name)) < 1e-6, name


def test_more_responses_than_features():
    X, Y = regression_data(40, 6, 15)
    assert relative_error(IncrementalPLS(4).fit(X, Y).coef_, dense_pls(X, Y, 4)[0].T) < 1e-9


def test_equals_r_on_linnerud(solver):
    expected = np.array(
        json.loads((Path(__file__).parents[1] / "samples" / "r_pls.json").read_text(encoding="utf-8"))[
            "linnerud, 2 components"
        ]
    )
    data = load_linnerud()
    model = IncrementalPLS(2, solver=solver).fit(data.data, data.target)
    ours = model.coef_ * model.x_scale_ / model.y_scale_[:, None]
    assert relative_error(ours.ravel(), expected) < 1e-9


@pytest.mark.parametrize(
    ("key", "n_components", "scale"),
    [
        ("gasoline, 2 components", 2, False),
        ("gasoline, 6 components", 6, False),
        ("gasoline, 3 components, scaled", 3, True),
    ],
)
def test_equals_r_on_gasoline(solver, key, n_components, scale):
    expected = np.array(
        json.loads((Path(__file__).parents[1] / "samples" / "r_pls.json").read_text(encoding="utf-8"))[key]
    )
    data = real_data("spectra/pls_gasoline.npz")
    model = IncrementalPLS(n_components, scale=scale, solver=solver, sketch_size=64).fit(data["NIR"], data["octane"])
    # R leaves X scaled in its coefficients, and y as it is.
    assert relative_error(model.coef_[0] * model.x_scale_, expected) < 1e-9


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="needs extended precision")
@pytest.mark.parametrize(("trend", "cost"), [(1e3, 2e-9), (1e4, 2e-7), (1e5, 2e-5), (1e6, 2e-3)])
def test_documented_errors_with_a_common_trend(trend, cost):
    """The Gram matrix has the square of the condition number, and the rows have the number itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 50))
    y = X[:, :5].sum(axis=1) + 0.1 * rng.normal(size=5000)
    X += trend * rng.normal(size=(5000, 1))
    expected = precise_pls(X, y, 3)
    eps, cond = np.finfo(np.float64).eps, np.linalg.cond(X - X.mean(axis=0))
    gram = relative_error(IncrementalPLS(3).partial_fit(X, y).coef_[0], expected)
    assert gram < eps * cond**2
    assert cost / 10 < gram < 10 * cost
    assert relative_error(IncrementalPLS(3).fit(X, y).coef_[0], expected) < eps * cond


def test_a_trend_that_hides_all_else():
    X, y = regression_data(500, 20)
    X += 1e9 * np.linspace(-1, 1, 500)[:, None]
    with pytest.warns(UserWarning, match="only 1 component"):
        assert IncrementalPLS(3).partial_fit(X, y).n_components_ == 1
    assert IncrementalPLS(3).fit(X, y).n_components_ == 3


def test_many_components_of_ill_conditioned_spectra():
    data = real_data("spectra/tecator.npz")
    X, y = data["X"], data["Y_water_fat_protein"][:, 1]
    theirs = PLSRegression(20, scale=False).fit(X, y)
    assert relative_error(IncrementalPLS(20, scale=False).fit(X, y).coef_, theirs.coef_) < 1e-8
    # The Gram matrix squares the condition of X: half of the digits are left.
    for solver in ("gram", "sketch"):
        assert relative_error(IncrementalPLS(20, scale=False, solver=solver).fit(X, y).coef_, theirs.coef_) < 1e-5


@pytest.mark.parametrize("batch_size", [1, 7, 60, 1000])
def test_batch_size_does_not_matter(batch_size, solver):
    X, y = regression_data(60, 9)
    model = IncrementalPLS(3, solver=solver, batch_size=batch_size).fit(X, y)
    assert relative_error(model.coef_, PLSRegression(3).fit(X, y).coef_) < 1e-9


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(8, 80),
    m=st.integers(1, 12),
    q=st.integers(1, 4),
    scale=st.booleans(),
    way=st.sampled_from(["small multipass", "large multipass", "gram", "sketch"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_invariances(n, m, q, scale, way, seed):
    """Order, weights as repeated rows, units and offsets of the data change nothing that they should not."""
    with mock.patch("plstream.rows.blocks.SMALL_BYTES", 0 if way == "large multipass" else 10**6):
        check_invariances(n, m, q, scale, way.split()[-1], seed)


def check_invariances(n, m, q, scale, solver, seed):
    rng = np.random.default_rng(seed)
    X, Y = regression_data(n, m, q, seed)
    c = min(3, m, n - 1)

    def fit(X, Y, **params):
        # As many rows as columns in the sketch: it is compressed, and exact.
        return IncrementalPLS(c, scale=scale, solver=solver, sketch_size=12).fit(X, Y, **params).coef_

    coef = fit(X, Y)

    order = rng.permutation(n)
    assert relative_error(fit(X[order], Y[order]), coef) < 1e-8
    counts = rng.integers(0, 4, size=n)
    counts[: c + 2] = 1
    assert relative_error(fit(X, Y, sample_weight=counts), fit(np.repeat(X, counts, 0), np.repeat(Y, counts, 0))) < 1e-8
    for x_unit, y_unit in ((1e150, 1.0), (1e-150, 1.0), (1.0, 1e150), (1.0, 1e-150), (1e140, 1e-140), (1e-150, 1e-150)):
        assert relative_error(fit(X * x_unit, Y * y_unit) * (x_unit / y_unit), coef) < 1e-8
    # The data itself is rounded to 1e-8 of its deviation by such an offset.
    assert relative_error(fit(X + 1e8, Y - 1e8), fit((X + 1e8) - 1e8, (Y - 1e8) + 1e8)) < 1e-8
    assert relative_error(fit(X + 1e8, Y), coef) < 1e-4


@settings(max_examples=30, deadline=None)
@given(
    cuts=st.lists(st.integers(0, 50), max_size=6),
    order=st.permutations(range(50)),
    q=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_stream_and_merge_equal_fit(cuts, order, q, seed):
    """Rows in any chunking and order, or parts in any partition, give what fit gives."""
    X, Y = regression_data(50, 6, q, seed)
    expected = IncrementalPLS(3).fit(X, Y).coef_
    X, Y = X[list(order)], Y[list(order)]
    edges = [0, *sorted(cuts), 50]
    chunks = [slice(a, b) for a, b in pairwise(edges) if a < b]
    stream = IncrementalPLS(3)
    for rows in chunks:
        stream.partial_fit(X[rows], Y[rows])
    assert relative_error(stream.coef_, expected) < 1e-8
    parts = [IncrementalPLS(3).partial_fit(X[rows], Y[rows]) for rows in chunks]
    while len(parts) > 1:
        parts = [parts[i].merge(parts[i + 1]) if i + 1 < len(parts) else parts[i] for i in range(0, len(parts), 2)]
    assert relative_error(parts[0].coef_, expected) < 1e-8
    assert parts[0].n_samples_seen_ == stream.n_samples_seen_ == 50


@pytest.mark.parametrize("forgetting", [0.5, 0.9, 0.999])
def test_forgetting_is_explicit_weights(solver, forgetting):
    X, y = regression_data(80, 6)
    ages = np.arange(79, -1, -1)
    explicit = IncrementalPLS(2, solver=solver).fit(X, y, sample_weight=forgetting**ages)
    model = IncrementalPLS(2, solver=solver, forgetting=forgetting).fit(X, y)
    assert relative_error(model.coef_, explicit.coef_) < 1e-9
    assert relative_error(model.coef_, dense_pls(X, y, 2, weight=forgetting**ages)[0].T) < 1e-9
    stream = IncrementalPLS(2, forgetting=forgetting)
    for start in range(0, 80, 11):
        stream.partial_fit(X[start : start + 11], y[start : start + 11])
    assert relative_error(stream.coef_, explicit.coef_) < 1e-9


@pytest.mark.parametrize("solver", ["gram", "sketch"])
def test_merge_of_later_rows_is_one_stream(solver):
    X, y = regression_data(80, 6)
    whole = IncrementalPLS(2, solver=solver, forgetting=0.97).partial_fit(X, y)
    parts = [
        IncrementalPLS(2, solver=solver, forgetting=0.97).partial_fit(X[i], y[i]) for i in (slice(50), slice(50, 80))
    ]
    before = parts[1].coef_
    merged = parts[0].merge(parts[1], later=True)
    assert relative_error(merged.coef_, whole.coef_) < 1e-9
    np.testing.assert_array_equal(parts[1].coef_, before)
    # Rows to come age those of both parts.
    later = regression_data(20, 6, seed=1)
    assert relative_error(merged.partial_fit(*later).coef_, whole.partial_fit(*later).coef_) < 1e-9
    # Else both parts are equally old.
    parts = [
        IncrementalPLS(2, solver=solver, forgetting=0.97).partial_fit(X[i], y[i]) for i in (slice(50), slice(50, 80))
    ]
    ages = np.r_[np.arange(49, -1, -1), np.arange(29, -1, -1)]
    explicit = IncrementalPLS(2, solver="gram").fit(X, y, sample_weight=0.97**ages)
    assert relative_error(parts[0].merge(parts[1], later=False).coef_, explicit.coef_) < 1e-9


def test_merge_warns_if_the_order_counts_and_was_not_given():
    """Days with opposite signs: one after the other, the first is forgotten; side by side, they cancel."""
    X, y = regression_data(2000, 4, noise=0.0)
    y[:1000] *= -1

    def days(forgetting):
        return [
            IncrementalPLS(4, forgetting=forgetting).partial_fit(X[i], y[i]) for i in (slice(1000), slice(1000, 2000))
        ]

    first, second = days(0.99)
    with pytest.warns(UserWarning, match="pass later=True if the rows of the other model came after"):
        assert first.merge(second).score(X[1000:], y[1000:]) < 0.5
    for later in (True, False):
        first, second = days(0.99)
        first.merge(second, later=later)
        assert (first.score(X[1000:], y[1000:]) > 0.99) == later
    first, second = days(1.0)
    first.merge(second)


def test_forgetting_follows_a_change():
    X, y = regression_data(4000, 5, noise=0.0)
    y[:2000] *= -1
    model = IncrementalPLS(5, forgetting=0.98).partial_fit(X, y)
    assert relative_error(model.coef_, IncrementalPLS(5).fit(X[2000:], y[2000:]).coef_) < 1e-6


def test_forgetting_follows_a_drift_of_the_mean():
    X, y = regression_data(9216, 4)
    drifted = X.copy()
    drifted[:1024] += 1e12
    model = IncrementalPLS(2, forgetting=0.99).partial_fit(drifted, y)
    expected = IncrementalPLS(2, forgetting=0.99).fit(X[4096:], y[4096:])
    assert relative_error(model.x_mean_, expected.x_mean_) < 1e-9
    assert relative_error(model.predict(X), expected.predict(X)) < 1e-6


def test_forgetting_with_rows_too_old_to_count():
    X, y = regression_data(3000, 4)
    model = IncrementalPLS(2, forgetting=0.5).fit(X, y)
    assert relative_error(model.coef_, IncrementalPLS(2, forgetting=0.5).partial_fit(X, y).coef_) < 1e-9
    assert model.n_samples_seen_ == 3000


def test_weight_zero_is_absence(solver):
    X, y = regression_data(60, 5)
    weight = np.ones(60)
    weight[[0, 7, 59]] = 0
    X_dirty = X.copy()
    X_dirty[7] = 1e300
    model = IncrementalPLS(3, solver=solver).fit(X_dirty, y, sample_weight=weight)
    keep = weight > 0
    assert relative_error(model.coef_, IncrementalPLS(3, solver=solver).fit(X[keep], y[keep]).coef_) < 1e-12
    assert model.n_samples_seen_ == 57


@pytest.mark.parametrize("total", [1e-3, 1.0, 1 + 2**-52, 1.5])
def test_weights_that_are_shares(total):
    X, y = regression_data(60, 5)
    model = IncrementalPLS(3).fit(X, y, sample_weight=np.full(60, total / 60))
    reference = IncrementalPLS(3).fit(X, y)
    assert relative_error(model.coef_, reference.coef_) < 1e-9
    assert 0.5 < model.x_scale_[0] / reference.x_scale_[0] < 2
