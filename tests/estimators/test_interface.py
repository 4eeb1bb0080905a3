"""The interface of IncrementalPLS: results, parameters, frames, pipelines."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_diabetes
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, learning_curve
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import PowerTransformer, StandardScaler

from plstream import IncrementalPLS
from plstream.rows import ArrayRows
from plstream.solvers import MultipassGram, Scaling, solve_scaled
from tests.oracles import dense_pls, regression_data, relative_error

scales = pytest.mark.parametrize("scale", [True, False])


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

    monkeypatch.setattr("plstream.estimators.training.Solution.of", counted)
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
    monkeypatch.setattr("plstream.rows.blocks.SMALL_BYTES", small_bytes)
    X, y = regression_data(60, 9)
    rereading = MultipassGram(ArrayRows(X, y[:, None], batch_size=10)).read_moments()
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


# What users of PLSRegression do, of data with one response and with two.
USES = {
    "column of y": lambda cls, X, y, _: cls(3).fit(X, y[:, None]).predict(X),
    "inverse_transform": lambda cls, X, y, _: (model := cls(3).fit(X, y)).inverse_transform(model.transform(X)),
    "coef_": lambda cls, X, y, _: cls(3).fit(X, y).coef_,
    "coef_ of a column of y": lambda cls, X, y, _: cls(3).fit(X, y[:, None]).coef_,
    "cross_val_predict": lambda cls, X, y, _: cross_val_predict(cls(3), X, y),
    "cross_val_score": lambda cls, X, y, _: cross_val_score(cls(3), X, y, scoring="neg_root_mean_squared_error"),
    "learning_curve": lambda cls, X, y, _: learning_curve(cls(3), X, y)[2],
    "logarithm of y": lambda cls, X, y, _: (
        TransformedTargetRegressor(cls(3), func=np.log, inverse_func=np.exp).fit(X, y).predict(X)
    ),
    "transformer of y": lambda cls, X, y, _: (
        TransformedTargetRegressor(cls(3), transformer=PowerTransformer()).fit(X, y).predict(X)
    ),
    "MultiOutputRegressor": lambda cls, X, _, Y: MultiOutputRegressor(cls(3)).fit(X, Y).predict(X),
    "RegressorChain": lambda cls, X, _, Y: RegressorChain(cls(3)).fit(X, Y).predict(X),
    "BaggingRegressor": lambda cls, X, y, _: (
        BaggingRegressor(cls(3), n_estimators=3, random_state=0).fit(X, y).predict(X)
    ),
    "StackingRegressor": lambda cls, X, y, _: (
        StackingRegressor([("pls", cls(3)), ("all", LinearRegression())]).fit(X, y).predict(X)
    ),
    "VotingRegressor": lambda cls, X, y, _: (
        VotingRegressor([("pls", cls(3)), ("all", LinearRegression())]).fit(X, y).predict(X)
    ),
    "RFE": lambda cls, X, y, _: RFE(cls(2), n_features_to_select=4).fit(X, y).ranking_,
    "SelectFromModel": lambda cls, X, y, _: SelectFromModel(cls(2)).fit(X, y).get_support(),
    "permutation_importance": lambda cls, X, y, _: (
        permutation_importance(cls(3).fit(X, y), X, y, n_repeats=2, random_state=0).importances
    ),
}


@pytest.mark.parametrize("use", USES)
def test_in_place_of_plsregression(use):
    X, y = load_diabetes(return_X_y=True)
    results = [
        np.asarray(USES[use](cls, X, y, np.column_stack([y, X[:, 0]]))) for cls in (PLSRegression, IncrementalPLS)
    ]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-8, atol=1e-8 * np.abs(results[0]).max())


def test_scores_feed_the_next_step():
    """In a pipeline and a union of features, where PLSRegression fails, as it returns two arrays."""
    X, y = load_diabetes(return_X_y=True)
    scores = PLSRegression(3).fit(X, y).transform(X)
    pipeline = make_pipeline(IncrementalPLS(3), LinearRegression()).fit(X, y)
    np.testing.assert_allclose(pipeline.predict(X), LinearRegression().fit(scores, y).predict(scores), rtol=1e-9)
    both = make_union(IncrementalPLS(3), StandardScaler()).fit_transform(X, y)
    np.testing.assert_allclose(both[:, :3], scores, rtol=1e-7, atol=1e-9)


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
