"""Pipelines with missing values, metadata routing and feature names."""

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from plstream import (
    IncrementalPLS,
    IncrementalPLSCV,
    StreamingPipeline,
    load,
    open_source,
    save,
)
from plstream.monitoring import DriftTracker, Monitor
from plstream.plots import CoefficientsDisplay, PredictionDisplay, VIPDisplay
from plstream.report import model_report

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(200, 3))
X = SCORES @ rng.normal(size=(3, 8)) + 0.1 * rng.normal(size=(200, 8)) + 4
Y = SCORES @ rng.normal(size=(3, 2)) + 0.1 * rng.normal(size=(200, 2))
y = Y[:, 0]
GAPS = np.where(rng.random(X.shape) < 0.15, np.nan, X)


def doubled(rows):
    return 2.0 * rows


def pipeline(*steps, last=None):
    return StreamingPipeline([*steps, ("pls", last or IncrementalPLS(3, missing="model"))])


ROW_BY_ROW = ("double", FunctionTransformer(doubled, check_inverse=False))


@settings(deadline=None, max_examples=12)
@given(
    cuts=st.lists(st.integers(1, 199), max_size=5),
    share=st.floats(0, 0.4),
    seed=st.integers(0, 1000),
    solver=st.sampled_from(["gram", "sketch"]),
)
def test_neither_chunks_nor_blocks_matter(cuts, share, seed, solver):
    gaps = np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)
    last = IncrementalPLS(3, missing="model", solver=solver)
    whole = pipeline(ROW_BY_ROW, last=last).partial_fit(gaps, y)
    plain = IncrementalPLS(3, missing="model", solver=solver).partial_fit(2 * gaps, y)
    np.testing.assert_allclose(whole.predict(gaps), plain.predict(2 * gaps), rtol=1e-9, atol=1e-9)
    parts = pipeline(ROW_BY_ROW, last=IncrementalPLS(3, missing="model", solver=solver))
    for rows in np.split(np.arange(200), sorted(set(cuts))):
        parts.partial_fit(gaps[rows], y[rows])
    np.testing.assert_allclose(parts.predict(gaps), whole.predict(gaps), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("steps", [(ROW_BY_ROW,), (("scale", StandardScaler()),)], ids=["row by row", "scaler"])
def test_sources_are_as_arrays(steps, tmp_path):
    np.save(tmp_path / "rows.npy", np.column_stack([GAPS, y]))
    source = open_source(tmp_path / "rows.npy", target=8, batch_size=37)
    found, expected = pipeline(*steps).fit(source), pipeline(*steps).fit(GAPS, y)
    np.testing.assert_allclose(found.predict(GAPS), expected.predict(GAPS), rtol=1e-2, atol=2e-2)
    np.testing.assert_allclose(found.predict(source), found.predict(GAPS), rtol=1e-9)
    streamed = pipeline(*steps).partial_fit(source)
    assert streamed.score(GAPS, y) > 0.98
    with pytest.raises(ValueError, match="NaN"):
        pipeline(*steps, last=IncrementalPLS(3)).fit(source)


def test_dask():
    da = pytest.importorskip("dask.array")
    rows, target = da.from_array(GAPS, chunks=(50, 8)), da.from_array(y, chunks=50)
    found, expected = pipeline(ROW_BY_ROW).fit(rows, target), pipeline(ROW_BY_ROW).fit(GAPS, y)
    np.testing.assert_allclose(found.predict(GAPS), expected.predict(GAPS), rtol=1e-2, atol=2e-2)


def test_cross_validation_files_and_monitor(tmp_path):
    model = pipeline(("scale", StandardScaler()), last=IncrementalPLSCV(5, missing="model")).fit(GAPS, y)
    assert model[-1].best_score_ > 0.98
    save(model, tmp_path / "m.plstream")
    np.testing.assert_array_equal(load(tmp_path / "m.plstream").predict(GAPS), model.predict(GAPS))
    checked = Monitor(model).check(GAPS)
    assert np.isfinite(checked.t2).all()
    assert np.isfinite(checked.q).all()


@pytest.mark.parametrize("last", [IncrementalPLS(3, missing="model"), IncrementalPLSCV(4, missing="model")])
def test_drift(last):
    """Gaps raise no alarm, rows without a response are left out, and a change is found."""
    tracker = DriftTracker(pipeline(ROW_BY_ROW, last=last), window=10, threshold=20)
    alarms = []
    generator = np.random.default_rng(3)
    loadings = generator.normal(size=(3, 8))
    for i in range(45):
        scores = generator.normal(size=(60, 3))
        rows = scores @ loadings + 0.3 * generator.normal(size=(60, 8))
        target = scores.sum(axis=1) + 0.1 * generator.normal(size=60)
        if i >= 35:
            target = -target
        rows[generator.random(rows.shape) < 0.1] = np.nan
        target[::4] = np.nan
        tracker.partial_fit(rows, target)
        if tracker.history_[-1].alarms:
            alarms.append(i)
    assert alarms
    assert min(alarms) >= 35
    assert tracker.history_[-1].n_rows == 45
    n_batches = tracker.n_batches_
    tracker.partial_fit(rows, np.full(60, np.nan))
    assert tracker.n_batches_ == n_batches


def test_complete_rows_are_followed_as_ever():
    trackers = [DriftTracker(IncrementalPLS(3, missing=how), window=10) for how in ("error", "model")]
    for start in range(0, 200, 10):
        for tracker in trackers:
            tracker.partial_fit(X[start : start + 10], Y[start : start + 10])
    for first, second in zip(trackers[0].history_, trackers[1].history_, strict=True):
        np.testing.assert_equal(first, second)


def test_parameters_of_partial_fit_are_routed():
    weight = rng.uniform(0.5, 2, 200)
    expected = pipeline(("norm", Normalizer()), last=IncrementalPLS(3)).partial_fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = pipeline(("norm", Normalizer()), last=IncrementalPLS(3))
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            routed.partial_fit(X, y, sample_weight=weight)
        routed[-1].set_partial_fit_request(sample_weight=True)
        routed.partial_fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(routed.predict(X), expected.predict(X))
        with pytest.raises(TypeError, match="groups"):
            routed.partial_fit(X, y, groups=weight)


def test_names_of_responses_reach_displays_and_reports(tmp_path):
    pd = pytest.importorskip("pandas")
    targets = pd.DataFrame(Y, columns=["fat", "water"])
    for model in (IncrementalPLS(3), IncrementalPLSCV(3)):
        model.fit(X, targets)
        save(model, tmp_path / f"{type(model).__name__}.plstream")
        for each in (model, load(tmp_path / f"{type(model).__name__}.plstream")):
            assert list(CoefficientsDisplay.from_estimator(each, draw=False).values) == ["fat", "water"]
            assert PredictionDisplay.from_estimator(each, X, Y, target=1, draw=False).name == "water"
        model.partial_fit(X, Y)
        assert list(CoefficientsDisplay.from_estimator(model, draw=False).values) == ["fat", "water"]
    assert "RMSE of water" in model_report(model).html()
    one = IncrementalPLS(3).fit(X, targets["fat"])
    assert PredictionDisplay.from_estimator(one, X, y, draw=False).name == "fat"
    assert PredictionDisplay.from_estimator(IncrementalPLS(3).fit(X, y), X, y, draw=False).name == "y"
    in_pipeline = pipeline(("scale", StandardScaler()), last=IncrementalPLS(3)).fit(X, targets)
    assert PredictionDisplay.from_estimator(in_pipeline, X, Y, draw=False).name == "fat"


def test_names_of_columns_that_are_numbers_are_an_axis(tmp_path):
    pd = pytest.importorskip("pandas")
    waves = 1100.0 + 2.5 * np.arange(8)
    model = IncrementalPLS(3).fit(pd.DataFrame(X, columns=waves), y)
    np.testing.assert_array_equal(model.feature_axis_, waves)
    save(model, tmp_path / "m.plstream")
    display = VIPDisplay.from_estimator(load(tmp_path / "m.plstream"), draw=False)
    assert display.feature_names.tolist() == [f"{wave:g}" for wave in waves]
    for other in (X, pd.DataFrame(X)):
        assert not hasattr(model.fit(other, y), "feature_axis_")
    model.fit(pd.DataFrame(X, columns=waves), y)
    assert not hasattr(model.fit(open_source(X, target=y)), "feature_axis_")
