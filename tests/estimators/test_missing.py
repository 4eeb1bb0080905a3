"""Missing values in training and in use."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from plstream import (
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSCV,
    VIPSelector,
    open_source,
    save,
)
from plstream import load as load_model
from plstream.distributed import OnWorkers
from plstream.files import export_onnx

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(300, 3))
X = SCORES @ rng.normal(size=(3, 15)) + 0.1 * rng.normal(size=(300, 15)) + 10
y = SCORES @ [3.0, 1.0, -1.0] + 0.1 * rng.normal(size=300)
LABELS = np.digitize(y, [-2, 2])
GAPS = np.where(rng.random(X.shape) < 0.2, np.nan, X)


def model(**how):
    return IncrementalPLS(3, missing="model", **how)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("solver", ["auto", "gram", "sketch"])
def test_close_to_complete_data(solver, scale):
    complete = IncrementalPLS(3, solver=solver, scale=scale).fit(X, y)
    found = model(solver=solver, scale=scale).fit(GAPS, y)
    assert found.score(GAPS, y) > 0.99
    assert found.score(X, y) > 0.995
    np.testing.assert_allclose(found.x_mean_, complete.x_mean_, atol=0.1)
    np.testing.assert_array_equal(found.n_missing_, np.isnan(GAPS).sum(axis=0))
    assert found.n_samples_seen_ == 300


@pytest.mark.parametrize("solver", ["auto", "gram", "sketch"])
def test_complete_data_is_learnt_as_ever(solver):
    known, found = (IncrementalPLS(3, solver=solver, missing=how).fit(X, y) for how in ("error", "model"))
    np.testing.assert_array_equal(found.coef_, known.coef_)
    np.testing.assert_array_equal(found.predict(X), known.predict(X))
    assert not found.n_missing_.any()
    known, found = (IncrementalPLS(3, missing=how).partial_fit(X, y) for how in ("error", "model"))
    np.testing.assert_array_equal(found.coef_, known.coef_)


@settings(deadline=None, max_examples=15)
@given(cuts=st.lists(st.integers(1, 299), max_size=6), solver=st.sampled_from(["gram", "sketch"]))
def test_chunks_do_not_matter(cuts, solver):
    whole = model(solver=solver).partial_fit(GAPS, y)
    parts = model(solver=solver)
    for rows in np.split(np.arange(300), sorted(set(cuts))):
        parts.partial_fit(GAPS[rows], y[rows])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(parts.n_missing_, whole.n_missing_)


def test_one_row_at_a_time():
    stream = model()
    for i in range(12):
        stream.partial_fit(GAPS[i : i + 1], y[i : i + 1])
    whole = model(solver="gram").fit(GAPS[:12], y[:12])
    np.testing.assert_allclose(stream.coef_, whole.coef_, rtol=1e-9)


def test_fit_of_what_is_read_in_blocks():
    big = np.tile(GAPS, (4, 1))
    in_blocks = model(batch_size=100, solver="multipass").fit(sparse.csr_array(big), np.tile(y, 4))
    at_once = model().fit(big, np.tile(y, 4))
    np.testing.assert_allclose(in_blocks.coef_, at_once.coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("solver", ["gram", "sketch"])
def test_merge_equals_one_stream(solver):
    parts = [model(solver=solver).partial_fit(GAPS[rows], y[rows]) for rows in (slice(150), slice(150, 300))]
    merged = parts[0].merge(parts[1])
    whole = model(solver=solver).partial_fit(GAPS, y)
    np.testing.assert_array_equal(merged.n_missing_, whole.n_missing_)
    assert merged.n_samples_seen_ == 300
    np.testing.assert_allclose(merged.predict(X), whole.predict(X), atol=0.05)
    with pytest.raises(ValueError, match="missing is model here, error there"):
        merged.merge(IncrementalPLS(3, solver=solver).partial_fit(X, y))


def test_a_sensor_that_is_off_at_first():
    late = GAPS.copy()
    late[:150, 4] = np.nan
    stream = model()
    for start in range(0, 300, 30):
        stream.partial_fit(late[start : start + 30], y[start : start + 30])
        assert np.isfinite(stream.coef_).all()
    assert stream.score(X, y) > 0.99
    first, second = model().partial_fit(late[:150], y[:150]), model().partial_fit(late[150:], y[150:])
    merged = first.merge(second)
    assert merged.score(X, y) > 0.99
    assert abs(merged.x_mean_[4] - X[:, 4].mean()) < 0.5


def test_a_column_without_values():
    pd = pytest.importorskip("pandas")
    empty = GAPS.copy()
    empty[:, 4] = np.nan
    for data, name in ((empty, "4"), (pd.DataFrame(empty, columns=[f"s{j}" for j in range(15)]), "'s4'")):
        fitted = model().fit(X, y)
        before = fitted.coef_
        with pytest.raises(ValueError, match=f"Column {name} of X has no value in any row"):
            fitted.fit(data, y)
        np.testing.assert_array_equal(fitted.coef_, before)


def test_masked_entries_are_missing():
    """The numbers below a mask must not count, in training or in use."""
    masked, responses = np.ma.masked_invalid(GAPS), np.ma.array(y.copy(), mask=np.arange(300) % 7 == 0)
    masked.data[masked.mask] = responses.data[responses.mask] = 1e6
    expected = model().fit(GAPS, np.where(responses.mask, np.nan, y))
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=r"X contains NaN \(first in row 0"):
            getattr(IncrementalPLS(3), method)(masked, y)
        with pytest.raises(ValueError, match=r"y contains NaN \(first in row 0"):
            getattr(IncrementalPLS(3), method)(X, responses)
    with pytest.raises(ValueError, match="sample_weight contains NaN"):
        IncrementalPLS(3).fit(X, y, sample_weight=np.ma.array(np.ones(300), mask=responses.mask))
    with pytest.raises(ValueError, match="y has masked entries that are not numbers"):
        IncrementalPLSClassifier(3).fit(X, np.ma.array(LABELS.astype(str), mask=responses.mask))
    with pytest.raises(ValueError, match="NaN"):
        IncrementalPLSClassifier(3).fit(X, np.ma.array(LABELS, mask=responses.mask))
    found = model().fit(masked, responses)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.predict(masked), expected.predict(GAPS))
    np.testing.assert_array_equal(IncrementalPLS(3).fit(np.ma.array(X), y).coef_, IncrementalPLS(3).fit(X, y).coef_)


def test_errors_name_the_parameter_the_row_and_the_column():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"nir {j}" for j in range(15)])
    frame.iloc[7, 3] = np.nan
    fitted = IncrementalPLS(3).fit(X[:20], y[:20])
    message = r"X contains NaN \(first in row 7, column 'nir 3'\): drop or replace such values, or set missing='model'"
    for estimator in (IncrementalPLS(3), IncrementalPLS(3, solver="gram")):
        for method in (estimator.fit, estimator.partial_fit):
            with pytest.raises(ValueError, match=message):
                method(frame, y)
    with pytest.raises(ValueError, match=message):
        IncrementalPLSClassifier(3).fit(frame, LABELS)
    named = IncrementalPLS(3).fit(frame.drop(index=7), np.delete(y, 7))
    for method in (named.predict, named.transform):
        with pytest.raises(ValueError, match=message):
            method(frame)
    with pytest.raises(ValueError, match=r"column 3\): drop or replace such values, or set missing='model'"):
        fitted.predict(frame.to_numpy())
    with pytest.raises(ValueError, match=r"y contains NaN .first in row 2, column 0.: .*set missing='model'"):
        IncrementalPLS(3).fit(X, np.where(np.arange(300) == 2, np.nan, y))


@pytest.mark.parametrize("at", [(0, 0), (299, 14)])
def test_infinity_stays_an_error(at):
    bad = GAPS.copy()
    bad[at] = np.inf
    fitted = model().fit(GAPS, y)
    where = rf"infinity \(first in row {at[0]}, column {at[1]}\)"
    for call in (
        lambda: model().fit(bad, y),
        lambda: model(solver="gram").fit(bad, y),
        lambda: model().partial_fit(bad, y),
        lambda: fitted.predict(bad),
        lambda: fitted.transform(bad),
    ):
        with pytest.raises(ValueError, match=where):
            call()


def test_a_row_with_nothing_observed():
    fitted = model().fit(GAPS, y)
    nothing = np.full((1, 15), np.nan)
    np.testing.assert_allclose(fitted.transform(nothing), 0, atol=1e-12)
    np.testing.assert_allclose(fitted.predict(nothing), fitted.intercept_)
    more = model().fit(np.concatenate([GAPS, nothing]), np.append(y, y.mean()))
    np.testing.assert_allclose(more.coef_, fitted.coef_, rtol=0.05, atol=0.01)


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_rows_without_a_response_are_left_out(solver, share):
    known = np.random.default_rng(6).random(300) > share
    labelled = np.where(known, y, np.nan)
    found, alone = model(solver=solver).fit(X, labelled), IncrementalPLS(3, solver=solver).fit(X[known], y[known])
    np.testing.assert_allclose(found.coef_, alone.coef_, rtol=1e-9)
    assert found.n_samples_seen_ == known.sum()
    stream = model().partial_fit(X[:100], labelled[:100]).partial_fit(X[100:], labelled[100:])
    np.testing.assert_allclose(stream.coef_, alone.coef_, rtol=1e-7)
    with pytest.raises(ValueError, match="y has no value in any row"):
        model().fit(X, np.full(300, np.nan))


@pytest.mark.parametrize("given", [X, GAPS], ids=["complete", "gaps"])
@pytest.mark.parametrize("without", [3, 103])
def test_some_blocks_have_rows_without_a_response(given, without):
    labelled = np.where(np.arange(300) == without, np.nan, y)
    expected = model().fit(np.delete(given, without, axis=0), np.delete(y, without))
    blocks = [(given[start : start + 100], labelled[start : start + 100]) for start in range(0, 300, 100)]
    found = model().fit(open_source(blocks, batch_size=100))
    assert found.n_samples_seen_ == 299
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0.01, atol=1e-3)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("first", [0, 100, 200])
def test_some_blocks_have_no_response(first, small, monkeypatch):
    if not small:
        monkeypatch.setattr("plstream.rows.sources.SMALL_BYTES", 0)
    known = (np.arange(300) < first) | (np.arange(300) >= first + 100)
    blocks = [(X[start : start + 50], np.where(known, y, np.nan)[start : start + 50]) for start in range(0, 300, 50)]
    expected = IncrementalPLS(3).fit(X[known], y[known])
    for how in ({}, {"solver": "gram"}, {"read_tol": 1e-9}):
        found = model(**how).fit(open_source(blocks, batch_size=50))
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-7)
        assert found.n_samples_seen_ == 200
    expected = IncrementalPLSCV(3, solver="gram").fit(X[known], y[known])
    for solver in ("auto", "gram"):
        found = IncrementalPLSCV(3, missing="model", solver=solver).fit(open_source(blocks, batch_size=50))
        for name, values in expected.cv_results_.items():
            np.testing.assert_allclose(found.cv_results_[name], values, rtol=1e-6)


def test_one_of_several_responses_is_missing():
    Y = np.column_stack([y, SCORES[:, 0]])
    gappy = Y.copy()
    gappy[np.random.default_rng(7).random(300) < 0.5, 1] = np.nan
    for found in (model().fit(GAPS, gappy), model().partial_fit(GAPS, gappy)):
        assert found.score(X, Y) > 0.98
        alone = IncrementalPLS(3).fit(X[~np.isnan(gappy[:, 1])], Y[~np.isnan(gappy[:, 1])])
        assert found.score(X, Y) > alone.score(X, Y) - 0.01


def test_weights_are_repeated_rows():
    weight = np.random.default_rng(5).integers(0, 3, 300)
    found = model(solver="gram").fit(GAPS, y, sample_weight=weight)
    repeated = model(solver="gram").fit(np.repeat(GAPS, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(found.coef_, repeated.coef_, rtol=1e-6)


def test_forgetting_follows_a_change():
    moved = np.concatenate([GAPS, GAPS + 5])
    found = model(forgetting=0.98).partial_fit(moved, np.tile(y, 2))
    np.testing.assert_allclose(found.x_mean_, X.mean(axis=0) + 5, atol=0.7)
    assert model(forgetting=0.99).fit(GAPS, y).score(X, y) > 0.99


def test_training_continues_after_fit():
    fitted = model().fit(GAPS[:200], y[:200])
    fitted.partial_fit(GAPS[200:], y[200:])
    np.testing.assert_array_equal(fitted.n_missing_, np.isnan(GAPS).sum(axis=0))
    assert fitted.score(X, y) > 0.99
    with pytest.raises(ValueError, match="missing cannot change to 'error' during a stream"):
        fitted.set_params(missing="error").partial_fit(X, y)
    later = IncrementalPLS(3).fit(X[:200], y[:200]).set_params(missing="model").partial_fit(GAPS[200:], y[200:])
    np.testing.assert_array_equal(later.n_missing_, np.isnan(GAPS[200:]).sum(axis=0))


def test_models_in_files(tmp_path):
    for number, fitted in enumerate((model().fit(GAPS, y), model().partial_fit(GAPS, y))):
        path = tmp_path / f"{number}.plstream"
        save(fitted, path)
        for again in (load_model(path), deepcopy(fitted)):
            np.testing.assert_array_equal(again.predict(GAPS), fitted.predict(GAPS))
            np.testing.assert_array_equal(again.n_missing_, fitted.n_missing_)
            again.partial_fit(GAPS[:40], y[:40])
            expected = deepcopy(fitted).partial_fit(GAPS[:40], y[:40])
            np.testing.assert_allclose(again.coef_, expected.coef_, rtol=1e-9)


def test_classes():
    for estimator in (
        IncrementalPLSClassifier(3, missing="model"),
        IncrementalPLSClassifier(3, missing="model", solver="gram"),
    ):
        found = estimator.fit(GAPS, LABELS)
        assert found.score(GAPS, LABELS) > 0.9
        assert found.predict_proba(GAPS[:4]).shape == (4, 3)
        np.testing.assert_array_equal(found.n_missing_, np.isnan(GAPS).sum(axis=0))
    stream = IncrementalPLSClassifier(3, missing="model")
    for start in range(0, 300, 50):
        stream.partial_fit(GAPS[start : start + 50], LABELS[start : start + 50], classes=[0, 1, 2])
    assert stream.score(X, LABELS) > 0.9
    stream.add_class(3).partial_fit(GAPS[:10], np.full(10, 3))
    assert stream.n_samples_seen_ == 310


def test_selection_by_an_estimator_that_takes_missing_values():
    selector = VIPSelector(model(), n_features_to_select=5).fit(GAPS, y)
    assert selector.transform(GAPS).shape == (300, 5)
    selector = VIPSelector(model()).partial_fit(GAPS[:100], y[:100]).partial_fit(GAPS[100:], y[100:])
    assert selector.estimator_.n_missing_.sum() == np.isnan(GAPS).sum()


@pytest.mark.parametrize("unit", [1e-120, 1e120])
def test_extreme_units(unit):
    found = model().fit(GAPS * unit, y)
    expected = model().fit(GAPS, y)
    np.testing.assert_allclose(found.predict(GAPS * unit), expected.predict(GAPS), rtol=1e-6)


def test_hostile_columns():
    hostile = np.column_stack([GAPS, np.full(300, 7.0), GAPS[:, 0] * 1e-8 + 1e6, GAPS[:, 1]])
    hostile[::3, 15] = np.nan
    hostile.flags.writeable = False
    for found in (model().fit(hostile, y), model().partial_fit(np.asfortranarray(hostile, np.float32), y)):
        assert np.isfinite(found.predict(hostile)).all()
        assert found.score(hostile, y) > 0.9


def test_scores_with_fewer_components_and_back():
    fitted = model().fit(GAPS, y)
    assert fitted.transform(GAPS.astype(np.float32)).dtype == np.float32
    assert fitted.transform(GAPS, n_components=2).shape == (300, 2)
    back = fitted.inverse_transform(fitted.transform(GAPS))
    assert np.sqrt(np.mean((back - X) ** 2)) < 0.3
    np.testing.assert_allclose(fitted.predict(sparse.csr_array(GAPS)), fitted.predict(GAPS))


def test_sources(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(GAPS, columns=[f"s{j}" for j in range(15)]).assign(y=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_json(tmp_path / "rows.ndjson", orient="records", lines=True, double_precision=15)
    np.save(tmp_path / "X.npy", GAPS)
    np.save(tmp_path / "y.npy", y)
    expected, stream = model().fit(GAPS, y), model().partial_fit(GAPS, y)
    for name, target in (
        ("rows.csv", "y"),
        ("rows.parquet", "y"),
        ("rows.ndjson", "y"),
        ("X.npy", tmp_path / "y.npy"),
    ):
        source = open_source(tmp_path / name, target=target)
        found = model().fit(source)
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)
        np.testing.assert_allclose(model().partial_fit(source).coef_, stream.coef_, rtol=1e-6)
        np.testing.assert_allclose(found.predict(source), expected.predict(GAPS), rtol=1e-6)
        with pytest.raises(ValueError, match="drop or replace such values, or read it by a model with missing='model'"):
            IncrementalPLS(3).fit(source)


def test_conditions_on_a_column_with_missing_values():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    rows = np.random.default_rng(0).normal(size=(60, 3))
    frame = pd.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "y": rows @ [1.0, 2.0, 0.1], "label": rows[:, 1] > 0})
    frame.loc[3, "a"] = frame.loc[7, "b"] = np.nan
    n_rows = int((frame["a"] > -1).sum())
    for model, target in (
        (IncrementalPLS(missing="model"), "y"),
        (IncrementalPLS(missing="model", solver="multipass"), "y"),
        (IncrementalPLSCV(2, missing="model"), "y"),
        (IncrementalPLSClassifier(missing="model"), "label"),
    ):
        source = open_source(frame, target=target, columns=["a", "b"], where="a > -1")
        assert model.fit(source).n_samples_seen_ == n_rows


def test_integers_and_nulls():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": pa.array([1, None, 3, 4, 7]), "b": [2, 1, 4, 3, 0], "y": [1.0, 2.0, 3.0, 4.0, 9.0]})
    found = IncrementalPLS(1, missing="model").fit(open_source(table, target="y"))
    assert found.n_missing_.tolist() == [1, 0]


def test_dask():
    da, dask = pytest.importorskip("dask.array"), pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        rows, known = da.from_array(GAPS, chunks=(100, 15)), np.where(np.arange(300) % 3 == 0, np.nan, y)
        expected = model().fit(GAPS, y)
        found = model().fit(rows, da.from_array(y, chunks=100))
        np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0.01, atol=1e-3)
        np.testing.assert_array_equal(found.n_missing_, expected.n_missing_)
        np.testing.assert_allclose(found.predict(rows).compute(), found.predict(GAPS))
        stream = model().partial_fit(rows, da.from_array(y, chunks=100))
        assert stream.score(X, y) > 0.99
        labelled = model().fit(rows, da.from_array(known, chunks=100))
        assert labelled.n_samples_seen_ == 200
        np.testing.assert_allclose(labelled.coef_, model().fit(GAPS, known).coef_, rtol=0.01, atol=1e-3)
        with pytest.raises(ValueError, match=r"In block .* contains NaN .* or set missing='model'"):
            IncrementalPLS(3).fit(rows, da.from_array(y, chunks=100))


@pytest.mark.parametrize("kind", ["arrays", "delayed", "frames", "files"])
@pytest.mark.parametrize("weighted", [False, True])
def test_dask_blocks_without_any_response(kind, weighted, tmp_path):
    da, dask = pytest.importorskip("dask.array"), pytest.importorskip("dask")
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    rows = np.arange(300)
    known = np.where((rows < 100) | (rows % 7 == 0), np.nan, y)
    names, weight = [f"x{j}" for j in range(15)], rows % 3 if weighted else None
    frame = pd.DataFrame(X, columns=names).assign(y=known, w=rows % 3)
    blocks = {
        "arrays": lambda values: da.from_array(np.asarray(values), chunks=(100, *np.shape(values)[1:])),
        "delayed": lambda values: [dask.delayed(values[start : start + 100]) for start in (0, 100, 200)],
        "frames": lambda values: dd.from_pandas(values, npartitions=3),
    }
    if kind == "files":
        frame.to_csv(tmp_path / "rows.csv", index=False)
        how = {"weight": "w"} if weighted else {}
        source = open_source(tmp_path / "rows.csv", target="y", columns=names, batch_size=100, **how)
        data = (OnWorkers(source),)
    else:
        data = [blocks[kind](frame[column]) for column in (names, "y", "w")][: 3 if weighted else 2]
    with dask.config.set(scheduler="synchronous"):
        for cls in (IncrementalPLS, IncrementalPLSCV):
            expected = cls(3, missing="model", solver="gram").fit(X, known, weight)
            found = cls(3, missing="model").fit(*data)
            np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-7)
            assert found.n_samples_seen_ == expected.n_samples_seen_
        for name, values in expected.cv_results_.items():
            np.testing.assert_allclose(found.cv_results_[name], values, rtol=1e-6)
        with pytest.raises(ValueError, match="y has no value in any row"):
            model().fit(da.from_array(X, chunks=(100, 15)), da.from_array(np.full(300, np.nan), chunks=100))


def test_onnx_refuses(tmp_path):
    pytest.importorskip("onnx")
    with pytest.raises(ValueError, match="An ONNX graph cannot complete missing values"):
        export_onnx(model().fit(GAPS, y), tmp_path / "model.onnx")
