"""Files that workers open themselves: the same models as in one process."""

import numpy as np
import pytest

from plstream import IncrementalPLS, IncrementalPLSClassifier, IncrementalPLSCV, VIPSelector, open_source
from plstream.data import DataError
from plstream.distributed import OnWorkers
from plstream.distributed.collections import collection_of
from plstream.distributed.workers import Workers
from tests.data.formats import FORMATS, opened
from tests.oracles import relative_error

dask = pytest.importorskip("dask", reason="needs Dask")

rng = np.random.default_rng(5)
X = rng.normal(size=(307, 4)) + np.array([0, 1e6, 0, 3])
Y = X @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=307)
LABELS = np.array(["low", "high", "medium"])[rng.integers(0, 3, size=307)]
WEIGHT = rng.integers(0, 3, size=307).astype(np.float64)


@pytest.fixture(autouse=True)
def _here():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_formats(name, solver, tmp_path):
    source = opened(name, tmp_path, X, Y, batch_size=10)
    if source.reopen is None:
        with pytest.raises(DataError, match="is not a file"):
            OnWorkers(source)
        return
    expected = IncrementalPLS(2, solver=solver).fit(source)
    model = IncrementalPLS(2, solver=solver).fit(OnWorkers(source))
    assert relative_error(model.coef_, expected.coef_) < 1e-9
    assert model.n_samples_seen_ == len(X)
    assert getattr(model, "feature_names_in_", None) is getattr(expected, "feature_names_in_", None) or list(
        model.feature_names_in_
    ) == list(expected.feature_names_in_)
    np.testing.assert_allclose(model.predict(source), expected.predict(source))


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("batch_size", [1, 7, 100, 1000])
def test_ranges_and_whether_they_are_kept(held, batch_size, tmp_path, monkeypatch):
    monkeypatch.setattr(Workers, "can_hold", lambda *_: held)
    source = opened("csv", tmp_path, X, Y, batch_size=batch_size)
    expected = IncrementalPLS(3).fit(X, Y)
    assert relative_error(IncrementalPLS(3).fit(OnWorkers(source)).coef_, expected.coef_) < 1e-9
    stream = IncrementalPLS(3).partial_fit(OnWorkers(source)).partial_fit(OnWorkers(source))
    assert relative_error(stream.coef_, expected.coef_) < 1e-8


def weighted(folder, **others):
    """Return a source of rows with weights, and possibly other or further columns."""
    columns = {"a": X[:, 0], "b": X[:, 2], "c": X[:, 3], "y": Y, "w": WEIGHT, **others}
    roles = {"folds", "groups"} & {*others}
    table = np.column_stack([*columns.values()])
    np.savetxt(folder / "rows.csv", table, "%.17g", ",", header=",".join(columns), comments="")
    return open_source(folder / "rows.csv", "y", weight="w", batch_size=20, **{role: role for role in roles})


@pytest.mark.parametrize("held", [True, False])
def test_weights(held, tmp_path, monkeypatch):
    monkeypatch.setattr(Workers, "can_hold", lambda *_: held)
    expected = IncrementalPLS(2).fit(X[:, [0, 2, 3]], Y, WEIGHT)
    model = IncrementalPLS(2).fit(OnWorkers(weighted(tmp_path)))
    assert relative_error(model.coef_, expected.coef_) < 1e-9
    assert model.n_samples_seen_ == np.count_nonzero(WEIGHT)


@pytest.mark.parametrize("held", [True, False])
def test_missing_values(held, tmp_path, monkeypatch):
    monkeypatch.setattr(Workers, "can_hold", lambda *_: held)
    gaps = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    known = np.where(np.arange(len(Y)) % 50 == 7, np.nan, Y)
    source = opened("csv", tmp_path, gaps, known, batch_size=10)
    expected = IncrementalPLS(2, missing="model").fit(gaps, known)
    model = IncrementalPLS(2, missing="model").fit(OnWorkers(source))
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0.01, atol=1e-3)
    with pytest.raises(DataError, match="there is NaN"):
        IncrementalPLS(2).fit(OnWorkers(source))


def test_labels_of_rows_with_weights_and_missing_values(tmp_path):
    gaps = np.where(np.arange(len(X)) % 20 == 0, np.nan, X[:, 0])
    labels = np.digitize(Y, [np.median(Y)])
    params = {"n_components": 2, "missing": "model"}
    # Opened anew, because a fit changes the source.
    models = [
        IncrementalPLSClassifier(**params).fit(OnWorkers(weighted(tmp_path, a=gaps, y=labels))),
        IncrementalPLSClassifier(**params).partial_fit(OnWorkers(weighted(tmp_path, a=gaps, y=labels)), classes=[0, 1]),
    ]
    expected = IncrementalPLSClassifier(**params).fit(weighted(tmp_path, a=gaps, y=labels))
    for model in models:
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0.1, atol=0.01)


def assert_same_folds(model, expected):
    for name, values in expected.cv_results_.items():
        np.testing.assert_allclose(model.cv_results_[name], values, rtol=1e-6)


@pytest.mark.parametrize("block_length", [1, 5])
def test_rows_of_weight_zero_are_not_counted_for_folds(block_length, tmp_path):
    params = {"max_components": 2, "cv": 3, "block_length": block_length}
    source = weighted(tmp_path)
    expected = IncrementalPLSCV(**params, solver="gram").fit(source)
    assert_same_folds(IncrementalPLSCV(**params).fit(OnWorkers(source)), expected)


@pytest.mark.parametrize("role", ["folds", "groups"])
def test_columns_of_the_files_assign_rows_to_folds(role, tmp_path):
    source = weighted(tmp_path, **{role: np.random.default_rng(0).integers(0, 3, size=len(X))})
    expected = IncrementalPLSCV(2, cv=3, solver="gram").fit(source)
    model = IncrementalPLSCV(2, cv=3).fit(OnWorkers(source))
    assert_same_folds(model, expected)
    assert_same_folds(model.partial_fit(source), expected.partial_fit(OnWorkers(source)))
    with pytest.raises(ValueError, match="Earlier rows were assigned"):
        model.partial_fit(OnWorkers(weighted(tmp_path)))


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("batch_size", [7, 100])
def test_labels(class_weight, batch_size, tmp_path):
    source = opened("csv", tmp_path, X, LABELS, batch_size=batch_size)
    expected = IncrementalPLSClassifier(2, class_weight=class_weight).fit(X, LABELS)
    model = IncrementalPLSClassifier(2, class_weight=class_weight).fit(OnWorkers(source))
    assert relative_error(model.coef_, expected.coef_) < 1e-9
    np.testing.assert_array_equal(model.classes_, ["high", "low", "medium"])
    np.testing.assert_allclose(model.class_count_, expected.class_count_)
    if class_weight is None:
        stream = IncrementalPLSClassifier(2).partial_fit(OnWorkers(source))
        assert relative_error(stream.coef_, expected.coef_) < 1e-9


def test_the_callers_blocks_stay_as_they_are(tmp_path, monkeypatch):
    source = opened("npy", tmp_path, X, Y)
    before = source.block_rows, source.fingerprint()
    monkeypatch.setattr(Workers, "usable", 1000)
    assert max(collection_of(OnWorkers(source), None).blocks.n_rows) < len(X)
    assert (source.block_rows, source.fingerprint()) == before


def test_forgetting(tmp_path):
    source = opened("npy", tmp_path, X, Y, batch_size=10)
    for solver in ("auto", "gram"):
        expected = IncrementalPLS(2, solver=solver, forgetting=0.99).fit(X, Y)
        model = IncrementalPLS(2, solver=solver, forgetting=0.99).fit(OnWorkers(source))
        assert relative_error(model.coef_, expected.coef_) < 1e-9


def test_selection(tmp_path):
    source = opened("csv", tmp_path, X, Y, batch_size=10)
    expected = VIPSelector(IncrementalPLS(2), n_features_to_select=2).fit(X, Y)
    selector = VIPSelector(IncrementalPLS(2), n_features_to_select=2).fit(OnWorkers(source))
    np.testing.assert_allclose(selector.scores_, expected.scores_)


def test_bad_rows_are_reported_as_of_the_file(tmp_path):
    bad = X.copy()
    bad[211, 2] = np.nan
    source = opened("npy", tmp_path, bad, Y, batch_size=10)
    with pytest.raises(DataError, match=r"X\.npy, row 211, column 2, there is NaN"):
        IncrementalPLS(2).fit(OnWorkers(source))


def test_bad_calls(tmp_path):
    source = opened("npy", tmp_path, X, Y)
    with pytest.raises(ValueError, match="y cannot be passed with OnWorkers"):
        IncrementalPLS(2).fit(OnWorkers(source), Y)
    with pytest.raises(ValueError, match="has no target"):
        OnWorkers(open_source(tmp_path / "X.npy"))
    with pytest.raises(TypeError, match="OnWorkers is for fit and partial_fit"):
        IncrementalPLS(2).fit(source).predict(OnWorkers(source))
