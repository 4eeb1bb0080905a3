"""VIP against plain loops, scikit-learn's scores, R and identities; and the selector that keeps the best features."""

import json
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.cross_decomposition import CCA, PLSSVD, PLSCanonical, PLSRegression
from sklearn.datasets import load_diabetes, load_linnerud
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from plstream import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalPLS, VIPSelector, vip_scores
from plstream.solvers import importance
from tests.oracles import dense_pls, regression_data
from tests.real_data import real_data

FIGURES = json.loads((Path(__file__).parents[1] / "samples" / "r_vip.json").read_text(encoding="utf-8"))
solvers = pytest.mark.parametrize("solver", ["multipass", "gram", "sketch"])
scales = pytest.mark.parametrize("scale", [True, False])
responses = pytest.mark.parametrize("q", [1, 3])
few_components = pytest.mark.filterwarnings("ignore:.*component:UserWarning")


def plain_vip(W, explained):
    """The formula as it is written, number by number, from W of shape (m, c) and what components explain, (c,)."""
    m, c = W.shape
    scores = []
    for j in range(m):
        total = sum(explained[i] * (W[j, i] / np.sqrt(sum(W[:, i] ** 2))) ** 2 for i in range(c))
        scores.append(np.sqrt(m * total / sum(explained)))
    return np.array(scores)


def plain_vip_of(W, Q, T):
    """VIP overall, and for each column of y, from weights, loadings of y and scores."""
    squares = [t @ t for t in T.T]
    targets = [[q_k[i] ** 2 * squares[i] for i in range(len(squares))] for q_k in Q]
    return plain_vip(W, np.sum(targets, axis=0)), np.array([plain_vip(W, explained) for explained in targets])


def assert_vip(model, expected, rtol=1e-9):
    overall, each = expected
    np.testing.assert_allclose(vip_scores(model), overall, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(vip_scores(model, per_target=True), each, rtol=rtol, atol=rtol)


@responses
@scales
def test_scikit_learn(q, scale):
    X, Y = regression_data(60, 9, q)
    model = PLSRegression(4, scale=scale).fit(X, Y)
    assert_vip(model, plain_vip_of(model.x_weights_, model.y_loadings_, model.x_scores_), 1e-12)


@responses
@scales
@solvers
def test_incremental_pls(solver, q, scale):
    X, Y = regression_data(60, 9, q)
    _, W, _, Q, T = dense_pls(X, Y, 4, scale=scale)
    model = IncrementalPLS(4, scale=scale, solver=solver).fit(X, Y)
    assert_vip(model, plain_vip_of(W, Q, T))
    np.testing.assert_array_equal(vip_scores(model), model.vip_)


@responses
@pytest.mark.parametrize("solver", ["gram", "sketch"])
def test_streams_and_parts(solver, q):
    X, Y = regression_data(90, 9, q)
    _, W, _, Q, T = dense_pls(X, Y, 3)
    expected = plain_vip_of(W, Q, T)
    parts = [IncrementalPLS(3, solver=solver) for _ in range(2)]
    for part, limits in zip(parts, [(0, 1, 8, 40), (40, 61, 90)], strict=True):
        for start, stop in pairwise(limits):
            part.partial_fit(X[start:stop], Y[start:stop])
    assert_vip(parts[0].merge(parts[1]), expected)


@scales
@responses
def test_components_add_up_to_what_the_model_explains(q, scale):
    X, Y = regression_data(50, 8, q)
    model = IncrementalPLS(4, scale=scale).fit(X, Y)
    centred = (Y.reshape(50, q) - model.y_mean_) / model.y_scale_
    left = (Y - model.predict(X)).reshape(50, q) / model.y_scale_
    explained = np.sum(model._solution().y_lengths ** 2)
    assert explained == pytest.approx(np.sum(centred**2) - np.sum(left**2), rel=1e-10)


@pytest.mark.parametrize("method", [PLSCanonical, CCA])
def test_canonical_models_count_what_is_in_their_predictions(method):
    X, Y = regression_data(60, 7, 3)
    model = method(3).fit(X, Y)
    # Scores are uncorrelated, so what components have in predictions adds up, and one can be left out for its part.
    T, Q = model.transform(X), model.y_loadings_
    predictions = (model.predict(X) - Y.mean(axis=0)) / Y.std(axis=0, ddof=1)
    np.testing.assert_allclose(predictions, T @ Q.T, atol=1e-9)
    without = [np.delete(T, i, axis=1) @ np.delete(Q, i, axis=1).T for i in range(3)]
    shares = np.array([np.sum(predictions**2, axis=0) - np.sum(part**2, axis=0) for part in without])
    expected = plain_vip(model.x_weights_, shares.sum(axis=1))
    assert_vip(model, (expected, [plain_vip(model.x_weights_, share) for share in shares.T]), 1e-8)


@pytest.mark.parametrize(
    "model",
    [IncrementalPLS(1), CIPLS(1), CIPLS(1, variant="paper"), CIPLS(1, variant="released"), OLPLS(1), PLSRegression(1)],
    ids=str,
)
def test_one_component_is_its_weights(model):
    X, y = regression_data(80, 6)
    model.fit(X, y)
    expected = np.sqrt(6) * np.abs(model.x_weights_[:, 0])
    assert_vip(model, (expected, expected[None]), 1e-12)


@few_components
@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(3, 30),
    m=st.integers(1, 8),
    q=st.integers(1, 3),
    c=st.integers(1, 4),
    seed=st.integers(0, 1000),
    magnitude=st.sampled_from([1e-150, 1e-8, 1.0, 1e150]),
    model=st.sampled_from([IncrementalPLS(), IncrementalPLS(solver="gram"), CIPLS(), CIPLS(variant="paper"), OLPLS()]),
)
def test_mean_of_squares_is_one(n, m, q, c, seed, magnitude, model):
    X, Y = regression_data(n, m, q, seed=seed)
    if getattr(model, "variant", None) != "paper":  # Its results depend on the units, and overflow.
        X = X * magnitude
    model = clone(model).set_params(n_components=min(c, n - 1, m)).fit(X, Y)
    assert np.mean(vip_scores(model) ** 2) == pytest.approx(1.0)
    each = vip_scores(model, per_target=True)
    assert each.shape == (q, m)
    np.testing.assert_allclose(np.mean(each**2, axis=1), 1.0)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), factor=st.sampled_from([-1.0, 1e-200, -1e200, 3.0]))
def test_signs_and_lengths_of_weights_do_not_matter(seed, factor):
    rng = np.random.default_rng(seed)
    W, lengths = rng.normal(size=(7, 3)), rng.normal(size=(2, 3))
    expected = importance(W, lengths)
    np.testing.assert_allclose(importance(W * [1.0, factor, 1.0], lengths * [1.0, -1.0, 1.0]), expected, rtol=1e-12)
    # Nor does the unit of y, in which squares may be too large.
    np.testing.assert_allclose(importance(W, lengths * factor), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "model", [IncrementalPLS(3), IncrementalPLS(3, scale=False, solver="gram"), CIPLS(3), OLPLS(3)], ids=str
)
@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e150, 1e-150), (1e-150, 1e150), (1e150, 1e150), (1e-150, 1e-150)])
def test_units_do_not_matter(model, x_unit, y_unit):
    X, Y = regression_data(60, 6, 2)
    expected = clone(model).fit(X, Y)
    assert_vip(clone(model).fit(X * x_unit, Y * y_unit), (vip_scores(expected), vip_scores(expected, per_target=True)))


@pytest.mark.parametrize("x_unit", [1e-150, 1e150])
def test_units_do_not_matter_to_scikit_learn(x_unit):
    X, y = regression_data(60, 6)
    expected = PLSRegression(3).fit(X, y)
    scaled = PLSRegression(3).fit(X, y)
    # Scores as they would be for data that its own fit cannot take.
    scaled._x_scores = scaled.x_scores_ = expected.x_scores_ * (x_unit * 1e30 if x_unit > 1 else x_unit / 1e30)
    scaled.y_loadings_ = expected.y_loadings_ / x_unit
    assert_vip(scaled, (vip_scores(expected), vip_scores(expected, per_target=True)))


@few_components
@pytest.mark.parametrize("model", [IncrementalPLS(3), IncrementalPLS(3, solver="gram"), CIPLS(3)], ids=str)
def test_components_past_the_rank_count_nothing(model):
    X = np.outer(np.arange(20.0), [1.0, 2.0, 0.0, -3.0]) + 1e8
    y = np.sin(np.arange(20.0))
    scaled = getattr(model, "scale", False)
    expected = np.array([1.0, 1.0, 0.0, 1.0] if scaled else [1.0, 2.0, 0.0, 3.0])
    expected *= np.sqrt(4 / np.sum(expected**2))
    assert_vip(model.fit(X, y), (expected, expected[None]), 1e-6)


def test_zero_columns_of_scikit_learn_count_nothing():
    # Columns without correlations: one component explains the first of them, and nothing is left.
    A = np.random.default_rng(0).normal(size=(30, 5))
    X = np.linalg.qr(A - A.mean(axis=0))[0]
    with pytest.warns(UserWarning, match="y residual is constant at iteration 1"):
        model = PLSRegression(3).fit(X, X[:, 0])
    expected = np.array([np.sqrt(5), 0.0, 0.0, 0.0, 0.0])
    assert_vip(model, (expected, expected[None]))


@few_components
@pytest.mark.parametrize("model", [IncrementalPLS(), CIPLS(), OLPLS()], ids=str)
def test_nothing_explained(model):
    X, Y = regression_data(20, 4, 2)
    Y[:, 1] = 3.0
    each = vip_scores(model.fit(X, Y), per_target=True)
    assert np.mean(each[0] ** 2) == pytest.approx(1.0)
    assert not each[1].any()
    np.testing.assert_allclose(vip_scores(model), each[0])
    assert not vip_scores(model.fit(X, np.ones(20))).any()
    if hasattr(model, "partial_fit"):
        assert not vip_scores(clone(model).partial_fit(X[:1], Y[:1])).any()


def test_classes_of_cipls_are_targets():
    X, y = regression_data(150, 6)
    labels = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    model = CIPLS(2).fit(X, labels)
    parts = [CIPLS(2).fit(X, np.where(labels == name, 1.0, -1.0)) for name in "abc"]
    np.testing.assert_allclose(vip_scores(model, per_target=True), [vip_scores(part) for part in parts], rtol=1e-9)


def test_olpls_is_near_batch_pls():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20_000, 8)) * np.linspace(2.0, 0.5, 8)
    y = X @ rng.normal(size=8) + 0.3 * rng.normal(size=20_000)
    model = OLPLS(2, forgetting=0.9999, eta_loading=0.001).fit(X, y)
    np.testing.assert_allclose(model.vip_, IncrementalPLS(2, scale=False).fit(X, y).vip_, atol=0.05)


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_last_component_has_it_all_in_the_literal_variants(variant):
    X, y = regression_data(400, 10)
    model = CIPLS(2, variant=variant).fit(X, np.where(y > np.median(y), 1, -1))
    np.testing.assert_allclose(vip_scores(model), np.sqrt(10) * np.abs(model.x_weights_[:, 1]), atol=1e-2)


@solvers
def test_equals_r_on_diabetes_and_linnerud(solver):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    expected = FIGURES["diabetes, 3 components, scaled"]
    np.testing.assert_allclose(vip_scores(IncrementalPLS(3, solver=solver).fit(X, y)), expected, rtol=1e-9)
    np.testing.assert_allclose(vip_scores(PLSRegression(3).fit(X, y)), expected, rtol=1e-9)
    data = load_linnerud()
    model = IncrementalPLS(2, solver=solver).fit(data.data, data.target)
    each = np.reshape(FIGURES["linnerud, 2 components, each target"], (3, 3))
    for key in ("linnerud, 2 components", "linnerud, 2 components, by correlations"):
        assert_vip(model, (FIGURES[key], each))


@pytest.mark.parametrize(
    ("key", "n_components", "scale"),
    [
        ("gasoline, 4 components", 4, False),
        ("gasoline, 3 components, scaled", 3, True),
        ("tecator, 6 components", 6, False),
    ],
)
def test_equals_r_on_spectra(key, n_components, scale):
    if key.startswith("gasoline"):
        data = real_data("spectra/pls_gasoline.npz")
        X, y = data["NIR"], data["octane"]
    else:
        data = real_data("spectra/tecator.npz")
        X, y = data["X"], data["Y_water_fat_protein"][:, 1]
    expected = FIGURES[key]
    for model in (
        IncrementalPLS(n_components, scale=scale),
        IncrementalPLS(n_components, scale=scale, solver="sketch"),
        PLSRegression(n_components, scale=scale),
    ):
        selector = VIPSelector(model).fit(X, y)
        np.testing.assert_allclose(selector.scores_[:: expected["every"]], expected["vip"], rtol=1e-7)
        np.testing.assert_array_equal(np.argsort(selector.ranking_)[:10], expected["largest"])


@pytest.mark.parametrize(
    "model", [Ridge(), CCIPCA(), IPLS(), SGDPLS(), PLSSVD(), VIPSelector(), IncrementalPLS], ids=str
)
def test_models_without_vip_are_refused(model):
    with pytest.raises(TypeError, match=r"IncrementalPLS, CIPLS and OLPLS.* not for"):
        vip_scores(model)
    X, y = regression_data(20, 4)
    for unsuitable in (VIPSelector(model), VIPSelector(model, prefit=True)):
        with pytest.raises(TypeError, match=r"VIP is defined for .* not for"):
            unsuitable.fit(X, y)


@pytest.mark.parametrize(
    "model", [IncrementalPLS(), CIPLS(), PLSRegression(), FrozenEstimator(PLSCanonical())], ids=str
)
def test_not_fitted(model):
    with pytest.raises(NotFittedError):
        vip_scores(model)
    selector = VIPSelector(model)
    X, _ = regression_data(20, 4)
    for name in ("scores_", "ranking_", "support_", "n_features_in_", "feature_names_in_", "estimator_"):
        assert not hasattr(selector, name)
    for call in (selector.get_support, selector.get_feature_names_out, lambda: selector.transform(X)):
        with pytest.raises(NotFittedError):
            call()


def informative_data(n=300):
    """Eight features, of which only 2 and 5 matter."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 8))
    return X, X[:, 2] - X[:, 5] + 0.1 * rng.normal(size=n)


def test_threshold():
    X, y = informative_data()
    selector = VIPSelector().fit(X, y)
    np.testing.assert_array_equal(selector.get_support(indices=True), [2, 5])
    np.testing.assert_array_equal(selector.transform(X), X[:, [2, 5]])
    np.testing.assert_array_equal(selector.scores_, selector.estimator_.vip_)
    assert sorted(selector.ranking_[[2, 5]]) == [1, 2]
    # It may be changed without fitting the model again.
    assert selector.set_params(threshold=0.0).get_support().all()
    with pytest.raises(ValueError, match="threshold"):
        selector.set_params(threshold=-1.0).get_support()
    selector.set_params(threshold=5.0)
    with pytest.warns(UserWarning, match="No features were selected"):
        assert selector.transform(X).shape == (300, 0)


@pytest.mark.parametrize("m", [1, 2, 3, 7])
def test_scores_of_exactly_one_pass(m):
    x = np.random.default_rng(0).normal(size=(50, 1))
    for seed in range(5):
        y = x[:, 0] + np.random.default_rng(seed).normal(size=50)
        assert VIPSelector(IncrementalPLS(1)).fit(np.repeat(x, m, axis=1), y).get_support().all()


def test_number_of_features():
    X, y = informative_data()
    selector = VIPSelector(n_features_to_select=3, threshold=9.0).fit(X, y)
    assert selector.get_support().sum() == 3
    np.testing.assert_array_equal(selector.support_, selector.ranking_ <= 3)
    assert selector.set_params(n_features_to_select=0.25).transform(X).shape == (300, 2)
    assert selector.set_params(n_features_to_select=1.0).get_support().all()
    with pytest.warns(UserWarning, match="X has 8 features, fewer than n_features_to_select=9"):
        assert selector.set_params(n_features_to_select=9).get_support().all()
    for wrong in (0, 1.5, "all"):
        with pytest.raises(ValueError, match="n_features_to_select"):
            selector.set_params(n_features_to_select=wrong).get_support()


def test_inverse_transform():
    X, y = informative_data()
    selector = VIPSelector().fit(X, y)
    back = selector.inverse_transform(selector.transform(X))
    np.testing.assert_array_equal(back, X * selector.get_support())
    some = sparse.csr_array(X)
    np.testing.assert_allclose(VIPSelector().fit(some, y).scores_, selector.scores_, rtol=1e-9)
    np.testing.assert_array_equal(selector.transform(some).toarray(), X[:, [2, 5]])


def test_labels():
    X, y = informative_data(2000)
    labels = np.where(y > 0, "high", "low")
    selector = VIPSelector(CIPLS()).fit(X, labels)
    np.testing.assert_array_equal(selector.get_support(indices=True), [2, 5])
    with pytest.raises(ValueError, match="y must hold numbers"):
        VIPSelector().fit(X, labels)


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    X, y = informative_data()
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    selector = VIPSelector().set_output(transform="pandas").fit(frame, y)
    assert list(selector.feature_names_in_) == list("abcdefgh")
    assert list(selector.get_feature_names_out()) == ["c", "f"]
    assert list(selector.transform(frame).columns) == ["c", "f"]
    with pytest.raises(ValueError, match="feature names"):
        selector.transform(frame[list("hgfedcba")])
    assert list(VIPSelector(selector.estimator_, prefit=True).get_feature_names_out()) == ["c", "f"]


def test_pipelines_and_grid_search():
    X, y = informative_data()
    pipeline = make_pipeline(VIPSelector(), LinearRegression())
    assert pipeline.fit(X, y).score(X, y) > 0.95
    search = GridSearchCV(
        pipeline,
        {"vipselector__n_features_to_select": [1, 2], "vipselector__estimator": [None, PLSRegression(1)]},
        cv=3,
    )
    search.fit(X, y)
    assert search.best_params_["vipselector__n_features_to_select"] == 2
    assert "vipselector__estimator__n_components" in make_pipeline(VIPSelector(CIPLS())).get_params()


def test_clone_and_pickle():
    X, y = informative_data()
    selector = VIPSelector(CIPLS(3), n_features_to_select=2).fit(X, y)
    copy = clone(selector)
    assert not hasattr(copy, "estimator_")
    np.testing.assert_array_equal(copy.fit(X, y).scores_, selector.scores_)
    twin = pickle.loads(pickle.dumps(selector))  # noqa: S301
    np.testing.assert_array_equal(twin.transform(X), selector.transform(X))


def test_estimator_is_cloned():
    X, y = informative_data()
    model = IncrementalPLS()
    assert VIPSelector(model).fit(X, y).estimator_ is not model
    assert not hasattr(model, "solver_")
    assert VIPSelector().fit(X, y).estimator is None


def test_prefit():
    X, y = informative_data()
    model = IncrementalPLS(solver="gram").fit(X[:20], y[:20])
    selector = VIPSelector(model, prefit=True)
    np.testing.assert_array_equal(selector.scores_, model.vip_)
    assert selector.transform(X).shape[1] == selector.get_support().sum()
    assert selector.n_features_in_ == 8
    assert selector.fit(X).estimator_ is model
    model.partial_fit(X[20:], y[20:])
    np.testing.assert_array_equal(selector.scores_, model.vip_)
    for unfitted in (None, IncrementalPLS(), FrozenEstimator(IncrementalPLS())):
        for call in (
            lambda e: VIPSelector(e, prefit=True).fit(X, y),
            lambda e: VIPSelector(e, prefit=True).transform(X),
        ):
            with pytest.raises(NotFittedError, match="prefit=True, the estimator must already be fitted"):
                call(unfitted)


def test_frozen_models():
    X, y = informative_data()
    model = PLSRegression().fit(X, y)
    np.testing.assert_array_equal(vip_scores(FrozenEstimator(model)), vip_scores(model))
    for selector in (VIPSelector(FrozenEstimator(model)), VIPSelector(FrozenEstimator(model), prefit=True)):
        np.testing.assert_array_equal(clone(selector).fit(X[:10], -y[:10]).scores_, vip_scores(model))


@pytest.mark.parametrize("model", [None, IncrementalPLS(3, solver="sketch"), CIPLS(), OLPLS()], ids=str)
def test_partial_fit(model):
    X, y = informative_data()
    selector, alone = VIPSelector(model), IncrementalPLS() if model is None else clone(model)
    for start in range(0, 300, 50):
        rows = slice(start, start + 50)
        selector.partial_fit(X[rows], y[rows])
        alone.partial_fit(X[rows], y[rows])
    np.testing.assert_array_equal(selector.scores_, alone.vip_)
    np.testing.assert_array_equal(selector.get_support(indices=True), [2, 5])


def test_no_partial_fit():
    X, y = informative_data()
    for selector, reason in (
        (VIPSelector(PLSRegression()), "PLSRegression has no partial_fit"),
        (VIPSelector(CIPLS().fit(X, y), prefit=True), "is not trained by the selector"),
        (VIPSelector(FrozenEstimator(CIPLS().fit(X, y))), "is not trained by the selector"),
    ):
        assert not hasattr(selector, "partial_fit")
        with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as error:
            selector.partial_fit(X, y)
        assert reason in str(error.value.__cause__)


def test_a_stream_is_solved_only_when_a_result_is_needed(monkeypatch):
    X, y = informative_data()
    monkeypatch.setattr(IncrementalPLS, "_solution", None)
    VIPSelector().partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])


def test_fit_starts_again():
    X, y = informative_data()
    selector = VIPSelector(IncrementalPLS(solver="gram")).partial_fit(X, X[:, 0])
    np.testing.assert_array_equal(selector.fit(X, y).get_support(indices=True), [2, 5])
    # Then training continues.
    assert selector.partial_fit(X, y).estimator_.n_samples_seen_ == 600


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_failed_calls_change_nothing(method):
    X, y = informative_data()
    selector = VIPSelector(IncrementalPLS(solver="gram")).partial_fit(X, y)
    fresh = VIPSelector(IncrementalPLS(solver="gram"))
    before = selector.scores_
    bad_X = X.copy()
    bad_X[7, 3] = np.nan
    for arguments in [(bad_X, y), (X, y[1:]), (X, None), (X[:0], y[:0])]:
        for model in (selector, fresh):
            with pytest.raises(ValueError):  # noqa: PT011
                getattr(model, method)(*arguments)
        np.testing.assert_array_equal(selector.scores_, before)
        assert vars(fresh).keys() == vars(VIPSelector()).keys()
    with pytest.raises(TypeError, match="unknown"):
        getattr(selector, method)(X, y, unknown=1)
    assert selector.estimator_.n_samples_seen_ == 300


@pytest.mark.parametrize("method", ["fit", "fit_transform", "partial_fit"])
def test_weights(method):
    X, y = informative_data()
    weight = np.linspace(0.0, 2.0, 300)
    expected = IncrementalPLS(solver="gram").fit(X, y, sample_weight=weight).vip_
    selector = VIPSelector(IncrementalPLS(solver="gram"))
    getattr(selector, method)(X, y, sample_weight=weight)
    np.testing.assert_allclose(selector.scores_, expected, rtol=1e-12)


def test_a_first_call_without_weight():
    X, y = informative_data()
    selector = VIPSelector(IncrementalPLS()).partial_fit(X, y, sample_weight=np.zeros(300))
    for result in (lambda: selector.scores_, lambda: selector.support_, lambda: selector.transform(X)):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            result()
    expected = VIPSelector(IncrementalPLS()).partial_fit(X, y)
    np.testing.assert_array_equal(selector.partial_fit(X, y).scores_, expected.scores_)


def test_metadata_routing():
    X, y = informative_data()
    weight = np.linspace(0.0, 2.0, 300)
    expected = IncrementalPLS(solver="gram").fit(X, y, sample_weight=weight).vip_
    with sklearn.config_context(enable_metadata_routing=True):
        model = IncrementalPLS(solver="gram")
        model.set_fit_request(sample_weight=True).set_partial_fit_request(sample_weight=True)
        whole = VIPSelector(model).fit(X, y, sample_weight=weight)
        pipeline = make_pipeline(VIPSelector(model), LinearRegression().set_fit_request(sample_weight=False))
        pipeline.fit(X, y, sample_weight=weight)
        parts = VIPSelector(model)
        for rows in (slice(100), slice(100, 300)):
            parts.partial_fit(X[rows], y[rows], sample_weight=weight[rows])
        for selector in (whole, pipeline[0], parts):
            np.testing.assert_allclose(selector.scores_, expected, rtol=1e-9)
        labels = VIPSelector(CIPLS().set_partial_fit_request(classes=True))
        labels.partial_fit(X, np.where(y > 0, "a", "b"), classes=["a", "b", "c"])
        assert len(labels.estimator_.classes_) == 3
        with pytest.raises(ValueError, match="sample_weight"):
            VIPSelector().fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int64, bool])
def test_other_types_of_numbers(kind):
    X, y = informative_data()
    X = np.maximum(10 * X, 0).astype(kind)
    selector = VIPSelector(n_features_to_select=2).fit(X, y)
    np.testing.assert_allclose(selector.scores_, vip_scores(PLSRegression().fit(X, y)), rtol=1e-9)
    assert selector.transform(X).dtype == kind


def test_input_is_not_modified():
    X, y = informative_data()
    frozen_X, frozen_y = np.asfortranarray(X), y.copy()
    frozen_X.flags.writeable = frozen_y.flags.writeable = False
    selector = VIPSelector().fit(frozen_X, frozen_y)
    np.testing.assert_allclose(selector.scores_, VIPSelector().fit(X, y).scores_, rtol=1e-9)
    selector.scores_[:] = 0.0
    assert selector.scores_.any()
