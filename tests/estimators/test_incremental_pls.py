"""IncrementalPLS is PLSRegression: the same attributes, predictions and invariances."""

import json
import warnings
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_diabetes, load_linnerud
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from plstream import IncrementalPLS
from plstream.solvers import Rereading, Scaling, solve_scaled
from plstream.sources import ArraySource
from tests.oracles import dense_pls, regression_data, relative_error

SPECTRA = Path(__file__).parents[3] / "shared" / "data" / "spectra"
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


@pytest.fixture(params=["small multipass", "large multipass", "gram"])
def solver(request, monkeypatch):
    """Every way to solve; data counts as small or large whatever its size."""
    if request.param == "large multipass":
        monkeypatch.setattr("plstream.sources.arrays.SMALL_BYTES", 0)
    return request.param.split()[-1]


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
        json.loads((Path(__file__).parents[1] / "data" / "r_pls.json").read_text())["linnerud, 2 components"]
    )
    data = load_linnerud()
    model = IncrementalPLS(2, solver=solver).fit(data.data, data.target)
    ours = model.coef_ * model.x_scale_ / model.y_scale_[:, None]
    assert relative_error(ours.ravel(), expected) < 1e-9


@pytest.mark.skipif(not SPECTRA.exists(), reason="the gasoline spectra of R's package pls are not at hand")
@pytest.mark.parametrize(
    ("key", "n_components", "scale"),
    [
        ("gasoline, 2 components", 2, False),
        ("gasoline, 6 components", 6, False),
        ("gasoline, 3 components, scaled", 3, True),
    ],
)
def test_equals_r_on_gasoline(solver, key, n_components, scale):
    expected = np.array(json.loads((Path(__file__).parents[1] / "data" / "r_pls.json").read_text())[key])
    data = np.load(SPECTRA / "pls_gasoline.npz")
    model = IncrementalPLS(n_components, scale=scale, solver=solver).fit(data["NIR"], data["octane"])
    # R leaves X scaled in its coefficients, and y as it is.
    assert relative_error(model.coef_[0] * model.x_scale_, expected) < 1e-9


@pytest.mark.skipif(not SPECTRA.exists(), reason="the spectra are not at hand")
def test_many_components_of_ill_conditioned_spectra():
    data = np.load(SPECTRA / "tecator.npz")
    X, y = data["X"], data["Y_water_fat_protein"][:, 1]
    theirs = PLSRegression(20, scale=False).fit(X, y)
    assert relative_error(IncrementalPLS(20, scale=False).fit(X, y).coef_, theirs.coef_) < 1e-8
    # The Gram matrix squares the condition of X: half of the digits are left.
    assert relative_error(IncrementalPLS(20, scale=False, solver="gram").fit(X, y).coef_, theirs.coef_) < 1e-5


@pytest.mark.parametrize("batch_size", [1, 7, 60, 1000])
def test_batch_size_does_not_matter(batch_size, solver):
    X, y = regression_data(60, 9)
    model = IncrementalPLS(3, solver=solver, batch_size=batch_size).fit(X, y)
    assert relative_error(model.coef_, PLSRegression(3).fit(X, y).coef_) < 1e-9


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(8, 40),
    m=st.integers(1, 12),
    q=st.integers(1, 4),
    scale=st.booleans(),
    way=st.sampled_from(["small multipass", "large multipass", "gram"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_invariances(n, m, q, scale, way, seed):
    """Order, weights as repeated rows, units and offsets of the data change nothing that they should not."""
    with mock.patch("plstream.sources.arrays.SMALL_BYTES", 0 if way == "large multipass" else 10**6):
        check_invariances(n, m, q, scale, way.split()[-1], seed)


def check_invariances(n, m, q, scale, solver, seed):
    rng = np.random.default_rng(seed)
    X, Y = regression_data(n, m, q, seed)
    c = min(3, m, n - 1)
    coef = IncrementalPLS(c, scale=scale, solver=solver).fit(X, Y).coef_

    def fit(X, Y, **params):
        return IncrementalPLS(c, scale=scale, solver=solver).fit(X, Y, **params).coef_

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


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_equals_dense(solver, container, dtype):
    X, y = regression_data(60, 9)
    X = np.where(np.abs(X) > 6, X, 0).astype(dtype)
    X[:, 3] = 0.0
    weight = np.linspace(0, 2, 60)
    dense = IncrementalPLS(3, solver=solver).fit(X.astype(np.float64), y, sample_weight=weight)
    model = IncrementalPLS(3, solver=solver, batch_size=13).fit(container(X), y, sample_weight=weight)
    assert relative_error(model.coef_, dense.coef_) < 1e-9
    tolerance = 1e-9 if dtype == np.float64 else 1e-4
    assert relative_error(model.transform(container(X)), dense.transform(X)) < tolerance
    assert relative_error(model.predict(container(X)), dense.predict(X)) < tolerance


def test_sparse_with_nearly_constant_columns(solver):
    """Columns that are sparse in name only are centred as dense ones are."""
    X, y = regression_data(60, 4)
    X[:, 0] += 1e8
    X[:, 1] = 0.1
    model = IncrementalPLS(2, solver=solver, batch_size=16).fit(sparse.csr_array(X), y)
    assert relative_error(model.coef_, IncrementalPLS(2).fit(X, y).coef_) < 1e-8
    assert model.coef_[0, 1] == 0


def test_float32_is_as_exact_as_float64():
    X, y = regression_data(500, 20)
    X += 1000
    single = X.astype(np.float32)
    expected = PLSRegression(4).fit(single.astype(np.float64), y)
    for model in (IncrementalPLS(4).fit(single, y), IncrementalPLS(4).partial_fit(single, y)):
        assert relative_error(model.coef_, expected.coef_) < 1e-9
        scores = model.transform(single)
        assert scores.dtype == np.float32
        assert model.predict(single).dtype == np.float64
        assert relative_error(model.predict(single), expected.predict(single.astype(np.float64))) < 1e-9
        assert relative_error(scores, expected.transform(single.astype(np.float64))) < 1e-5


def test_predictions_for_float32_keep_the_digits_of_y():
    X, y = regression_data(60, 5)
    single, y = X.astype(np.float32), y + 1e8
    expected = PLSRegression(2).fit(single, y)
    model = IncrementalPLS(2).fit(single, y)
    assert model.score(single, y) == pytest.approx(expected.score(single, y), abs=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool, np.float16, np.longdouble, object])
def test_other_numbers(dtype):
    X, y = regression_data(50, 6)
    X = np.round(np.abs(X)).astype(dtype)
    expected = IncrementalPLS(2).fit(X.astype(np.float64), y)
    for model in (IncrementalPLS(2).fit(X, y), IncrementalPLS(2).partial_fit(X, y)):
        assert relative_error(model.coef_, expected.coef_) < 1e-9
        assert relative_error(model.predict(X), expected.predict(X.astype(np.float64))) < 1e-3


@pytest.mark.parametrize("dtype", [int, bool, np.float32])
def test_y_of_other_numbers(dtype):
    X, y = regression_data(50, 6)
    y = (np.round(y) % 2).astype(dtype)
    model = IncrementalPLS(2).fit(X, y)
    assert relative_error(model.coef_, IncrementalPLS(2).fit(X, y.astype(np.float64)).coef_) < 1e-12


def test_constant_columns_do_not_take_part(solver):
    X, y = regression_data(50, 6)
    padded = np.column_stack([np.full(50, 0.1), X, np.zeros(50), np.full(50, 1e8)])
    model = IncrementalPLS(3, solver=solver, batch_size=8).fit(padded, y)
    assert relative_error(model.coef_[:, 1:7], IncrementalPLS(3).fit(X, y).coef_) < 1e-9
    for name in ("coef_", "x_weights_", "x_rotations_", "x_loadings_"):
        values = getattr(model, name)
        values = values.T if name == "coef_" else values
        assert not values[[0, 7, 8]].any(), name
    assert (model.x_scale_[[0, 7, 8]] == 1).all()


@pytest.mark.parametrize("offset", [1e8, 1e11, 1e14])
def test_rank_is_found_far_from_zero(solver, offset):
    rng = np.random.default_rng(0)
    X = (rng.integers(-4, 5, size=(61, 3)) @ rng.integers(-4, 5, size=(3, 8))).astype(np.float64)
    y = X[:, 0] + rng.normal(size=61)
    with pytest.warns(UserWarning, match="only 3 component"):
        model = IncrementalPLS(5, scale=False, solver=solver, batch_size=16).fit(X + offset, y)
    assert relative_error(model.coef_, IncrementalPLS(3, scale=False).fit(X, y).coef_) < 1e-9


@pytest.mark.parametrize("spectrum", [(1, 1, 1), (1, 1e-3, 1e-6)])
@scales
def test_rank_is_found(solver, spectrum, scale):
    rng = np.random.default_rng(0)
    rank = len(spectrum)
    X = rng.normal(size=(60, rank)) * spectrum @ rng.normal(size=(rank, 30)) + 3
    y = X @ rng.normal(size=30) + rng.normal(size=60)
    with pytest.warns(UserWarning, match="only 3 component") as caught:
        model = IncrementalPLS(7, scale=scale, solver=solver).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.n_components_ == 3
    assert model.x_weights_.shape == (30, 7)
    assert not model.x_weights_[:, 3:].any()
    assert not model.transform(X)[:, 3:].any()
    exact = IncrementalPLS(3, solver=solver, scale=scale).fit(X, y)
    assert relative_error(model.coef_, exact.coef_) < 1e-9


@pytest.mark.filterwarnings("ignore:X and y have only")
def test_degenerate_data(solver):
    X, y = regression_data(30, 4)
    cases = {
        "constant y": (X, np.full(30, 0.1)),
        "constant X": (np.full((30, 4), 0.1), y),
        "duplicate rows": (np.repeat(X[:1], 30, axis=0), y),
        "one row": (X[:1], y[:1]),
        "one column": (X[:, :1], y),
        "rank one": (np.outer(y, [1.0, 2.0, 3.0, 4.0]), y),
    }
    for name, (rows, target) in cases.items():
        model = IncrementalPLS(1, solver=solver).fit(rows, target)
        prediction = model.predict(rows)
        assert np.isfinite(prediction).all(), name
        assert np.isfinite(model.transform(rows)).all(), name
        assert np.isfinite(model.transform_y(target)).all(), name
        assert np.isfinite(model.vip_).all(), name
        if name in {"constant y", "constant X", "duplicate rows", "one row"}:
            assert model.n_components_ == 0, name
            np.testing.assert_allclose(prediction, target.mean(), rtol=1e-12, err_msg=name)
    assert (
        relative_error(IncrementalPLS(1, solver=solver).fit(*cases["rank one"]).predict(cases["rank one"][0]), y) < 1e-9
    )


@pytest.mark.parametrize("q", [1, 3])
def test_fewer_components_need_no_refit(solver, q):
    X, Y = regression_data(60, 9, q)
    model = IncrementalPLS(6, solver=solver).fit(X, Y)
    for k in range(1, 7):
        smaller = IncrementalPLS(k, solver=solver).fit(X, Y)
        assert relative_error(model.predict(X, n_components=k), smaller.predict(X)) < 1e-9
        assert relative_error(model.transform(X, n_components=k), smaller.transform(X)) < 1e-9
    for k in (0, 7, 1.5, "two"):
        with pytest.raises(ValueError, match="n_components"):
            model.predict(X, n_components=k)


@scales
@pytest.mark.parametrize("q", [1, 3])
def test_explained_variance_and_vip(scale, q):
    X, Y = regression_data(60, 9, q)
    model = IncrementalPLS(4, scale=scale).fit(X, Y)
    _, W, P, Q, T = dense_pls(X, Y, 4, scale=scale)
    squares = np.sum(T**2, axis=0)
    x_scaled = (X - X.mean(0)) / model.x_scale_
    y_scaled = (Y.reshape(60, -1) - Y.reshape(60, -1).mean(0)) / model.y_scale_
    x_share = squares * np.sum(P**2, axis=0) / np.sum(x_scaled**2)
    y_share = squares * np.sum(Q**2, axis=0) / np.sum(y_scaled**2)
    np.testing.assert_allclose(model.x_explained_variance_ratio_, x_share, rtol=1e-9)
    np.testing.assert_allclose(model.y_explained_variance_ratio_, y_share, rtol=1e-9)
    # What is explained is what the prediction takes away.
    left = (Y - model.predict(X)).reshape(60, -1) / model.y_scale_
    assert model.y_explained_variance_ratio_.sum() == pytest.approx(1 - np.sum(left**2) / np.sum(y_scaled**2), rel=1e-9)
    np.testing.assert_allclose(model.vip_, np.sqrt(9 * (W**2 @ y_share) / y_share.sum()), rtol=1e-9)
    assert np.mean(model.vip_**2) == pytest.approx(1.0)
    assert model.retained_variance_ == 1.0


@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e100, 1e-100), (1e-100, 1e100), (1e150, 1e150), (1e-150, 1e-150)])
@pytest.mark.parametrize("scale", [True, False])
def test_every_result_is_right_in_any_unit(x_unit, y_unit, scale):
    X, y = regression_data(60, 5)
    reference = IncrementalPLS(2, scale=scale).fit(X, y)
    model = IncrementalPLS(2, scale=scale).fit(X * x_unit, y * y_unit)
    for name in ("vip_", "x_explained_variance_ratio_", "y_explained_variance_ratio_", "x_weights_", "x_loadings_"):
        assert relative_error(getattr(model, name), getattr(reference, name)) < 1e-9, name
    assert relative_error(model.predict(X * x_unit) / y_unit, reference.predict(X)) < 1e-9
    unit = 1.0 if scale else x_unit
    assert relative_error(model.transform_y(y * y_unit) / unit, reference.transform_y(y)) < 1e-9
    assert relative_error(model.transform(X * x_unit) / unit, reference.transform(X)) < 1e-9


def test_results_cannot_be_set():
    X, y = regression_data(60, 5)
    model = IncrementalPLS(2).fit(X, y)
    with pytest.raises(AttributeError, match="coef_ is a result"):
        model.coef_ = np.zeros((1, 5))


def test_partial_fit_does_not_solve(monkeypatch):
    X, y = regression_data(60, 9)
    solved = []
    original = IncrementalPLS._solution.__globals__["Solution"].of

    def counted(*args, **kwargs):
        solved.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr("plstream.estimators.incremental_pls.Solution.of", counted)
    model = IncrementalPLS(3)
    for start in range(0, 60, 20):
        model.partial_fit(X[start : start + 20], y[start : start + 20])
    assert not solved
    for _ in range(3):
        model.predict(X)
        assert model.coef_.shape == (1, 9)
    assert len(solved) == 1


@pytest.mark.parametrize(("small_bytes", "n_reads"), [(0, 6), (10**6, 1)])
def test_reads_of_the_data(monkeypatch, small_bytes, n_reads):
    """A fit of c components reads the data c + 1 times; small data, which is kept, once."""
    monkeypatch.setattr("plstream.sources.arrays.SMALL_BYTES", small_bytes)
    X, y = regression_data(60, 9)
    rereading = Rereading(ArraySource(X, y[:, None], batch_size=10))
    solve_scaled(rereading.moments, rereading, Scaling.of(rereading.moments, scale=True), 5)
    assert rereading.n_reads == n_reads


def test_pipeline_grid_search_and_output():
    pandas = pytest.importorskip("pandas")
    data = load_diabetes(as_frame=True)
    pipeline = make_pipeline(StandardScaler(), IncrementalPLS()).set_output(transform="pandas")
    search = GridSearchCV(pipeline, {"incrementalpls__n_components": [1, 2, 3, 4]}, cv=3).fit(data.data, data.target)
    reference = GridSearchCV(
        make_pipeline(StandardScaler(), PLSRegression()), {"plsregression__n_components": [1, 2, 3, 4]}, cv=3
    ).fit(data.data, data.target)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], reference.cv_results_["mean_test_score"], rtol=1e-9
    )
    scores = search.best_estimator_.transform(data.data)
    assert isinstance(scores, pandas.DataFrame)
    assert list(scores.columns) == [f"incrementalpls{i}" for i in range(scores.shape[1])]
    assert list(search.best_estimator_[0].feature_names_in_) == list(data.data.columns)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    X, Y = regression_data(40, 4, 2)
    frame = frames.DataFrame({name: X[:, i] for i, name in enumerate("abcd")})
    target = frames.DataFrame({"u": Y[:, 0], "v": Y[:, 1]})
    model = IncrementalPLS(2).fit(frame, target)
    assert relative_error(model.coef_, IncrementalPLS(2).fit(X, Y).coef_) < 1e-12
    assert list(model.feature_names_in_) == list("abcd")
    assert relative_error(model.predict(frame), IncrementalPLS(2).fit(X, Y).predict(X)) < 1e-12


def test_memory_map(tmp_path):
    X, y = regression_data(200, 9)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for solver in ("multipass", "gram"):
        model = IncrementalPLS(3, solver=solver, batch_size=32).fit(mapped, y)
        assert relative_error(model.coef_, PLSRegression(3).fit(X, y).coef_) < 1e-9


def test_metadata_routing():
    from sklearn import config_context

    X, y = regression_data(60, 5)
    weight = np.linspace(0.1, 2, 60)
    with config_context(enable_metadata_routing=True):
        model = IncrementalPLS(2).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipeline.fit(X, y, sample_weight=weight)
    assert (
        relative_error(pipeline[-1].x_mean_ + 1, 1 + weight @ StandardScaler().fit_transform(X) / weight.sum()) < 1e-9
    )


def test_parameters_set_after_the_fit_wait_for_the_next_one():
    X, y = regression_data(60, 5)
    model = IncrementalPLS(2).fit(X, y).set_params(n_components=4)
    assert model.transform(X).shape == (60, 2)
    assert len(model.get_feature_names_out()) == 2
    with pytest.raises(ValueError, match="from 1 to the model's 2"):
        model.predict(X, n_components=3)
    assert model.fit(X, y).transform(X).shape == (60, 4)
    stream = IncrementalPLS(2).partial_fit(X, y).set_params(n_components=4)
    assert stream.transform(X).shape == (60, 2)
    assert stream.partial_fit(X, y).transform(X).shape == (60, 4)
    with pytest.raises(ValueError, match="n_components"):
        stream.set_params(n_components=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="forgetting cannot change"):
        stream.set_params(n_components=2, forgetting=0.9).partial_fit(X, y)


def test_refit_forgets_everything():
    X, y = regression_data(60, 5)
    model = IncrementalPLS(2).partial_fit(X, y * 2)
    model.fit(X[:, :3], y)
    assert model.n_features_in_ == 3
    assert model.solver_ == "multipass"
    assert relative_error(model.coef_, IncrementalPLS(2).fit(X[:, :3], y).coef_) == 0
    assert clone(model).get_params() == model.get_params()
