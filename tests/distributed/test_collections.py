"""Dask collections in any chunks give the model of one machine; mismatched inputs are refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from plstream import IncrementalPLS, IncrementalPLSClassifier, VIPSelector, open_source
from plstream._core.progress import listening
from plstream.distributed import reduce, workers
from tests.oracles import regression_data, relative_error
from tests.states.test_sketch import smallest_cosine, spectrum_data

dask = pytest.importorskip("dask", reason="needs Dask")
da = pytest.importorskip("dask.array", reason="needs Dask")
dd = pytest.importorskip("dask.dataframe", reason="needs Dask's dataframes")
pandas = pytest.importorskip("pandas")

N, M = 300, 7
X, Y = regression_data(N, M, 2)
y = Y[:, 0]
WEIGHT = np.random.default_rng(0).integers(0, 3, N).astype(float)


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="sync"):
        yield


def array(rows, chunks=41):
    return da.from_array(rows, chunks=(chunks, *((-1,) * (np.ndim(rows) - 1))))


def frame(rows, n=5):
    return dd.from_pandas(pandas.DataFrame(rows, columns=[f"c{i}" for i in range(rows.shape[1])]), npartitions=n)


def series(values, n=5):
    return dd.from_pandas(pandas.Series(values, name="y"), npartitions=n)


def delayed(rows, size=41):
    return [dask.delayed(rows[start : start + size]) for start in range(0, len(rows), size)]


def assert_same(model, expected, tolerance=1e-9):
    assert relative_error(model.coef_, expected.coef_) < tolerance
    assert model.n_samples_seen_ == expected.n_samples_seen_
    assert model.solver_ == expected.solver_
    assert model._fitted.head.is_vector == expected._fitted.head.is_vector


@pytest.mark.parametrize("solver", ["auto", "gram", "sketch"])
@pytest.mark.parametrize("forgetting", [1.0, 0.99])
@pytest.mark.parametrize("target", [y, Y], ids=["vector", "matrix"])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_arrays(solver, forgetting, target, weight):
    model = IncrementalPLS(3, solver=solver, forgetting=forgetting)
    expected = clone(model).fit(X, target, weight)
    weights = None if weight is None else array(weight, 60)
    assert_same(model.fit(array(X), array(target, 50), weights), expected)


@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_dataframes(solver):
    expected = IncrementalPLS(3, solver=solver).fit(X, y)
    for target in (series(y), da.from_array(y, chunks=frame(X).map_partitions(len).compute().tolist())):
        model = IncrementalPLS(3, solver=solver).fit(frame(X), target)
        assert_same(model, expected)
        assert list(model.feature_names_in_) == [f"c{i}" for i in range(M)]
    table = frame(np.column_stack([X, Y]))
    names = list(table.columns)
    model = IncrementalPLS(3, solver=solver).fit(table[names[:M]], table[names[M:]])
    assert_same(model, IncrementalPLS(3, solver=solver).fit(X, Y))


@pytest.mark.parametrize("solver", ["auto", "gram"])
@pytest.mark.parametrize("target", [y, Y], ids=["vector", "matrix"])
def test_delayed_blocks(solver, target):
    expected = IncrementalPLS(3, solver=solver).fit(X, target, WEIGHT)
    model = IncrementalPLS(3, solver=solver).fit(delayed(X), delayed(target), delayed(WEIGHT))
    assert_same(model, expected)
    assert np.allclose(np.concatenate(dask.compute(*model.predict(delayed(X)))), expected.predict(X))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=40).filter(lambda sizes: 9 < sum(sizes) <= len(X)),
    st.sampled_from(["auto", "gram", "sketch"]),
    st.sampled_from([1.0, 0.9]),
    st.booleans(),
)
def test_any_cut(sizes, solver, forgetting, unknown):
    """Chunks of any sizes, empty ones among them, known or not."""
    n = sum(sizes)
    rows, target = X[:n], y[:n]
    collection, response = da.from_array(rows, chunks=(tuple(sizes), M)), da.from_array(target, chunks=(tuple(sizes),))
    if unknown:
        every = da.from_array(np.ones(n, dtype=bool), chunks=(tuple(sizes),))
        collection, response = collection[every], response[every]
    model = IncrementalPLS(2, solver=solver, forgetting=forgetting)
    expected = clone(model).fit(rows, target)
    assert_same(model.fit(collection, response), expected)


@pytest.mark.parametrize("solver", ["auto", "gram", "sketch"])
@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_schedulers(scheduler, solver):
    expected = IncrementalPLS(3, solver=solver, forgetting=0.99).fit(X, y, WEIGHT)
    with dask.config.set(scheduler=scheduler):
        model = IncrementalPLS(3, solver=solver, forgetting=0.99).fit(array(X, 7), array(y), array(WEIGHT))
    assert_same(model, expected)


@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_partial_fit_continues(solver):
    model = IncrementalPLS(3, solver=solver, forgetting=0.99).partial_fit(X[:90], y[:90])
    model.partial_fit(array(X[90:200]), array(y[90:200])).partial_fit(X[200:], y[200:])
    expected = IncrementalPLS(3, solver="gram", forgetting=0.99).fit(X, y)
    assert_same(model, expected)
    first = IncrementalPLS(3, solver=solver).partial_fit(array(X), array(y), array(WEIGHT))
    assert_same(first, IncrementalPLS(3, solver=solver).partial_fit(X, y, WEIGHT))


def test_parameters_changed_during_a_stream():
    model = IncrementalPLS(2, solver="gram").partial_fit(X[:90], y[:90]).set_params(n_components=3)
    assert_same(model.partial_fit(array(X[90:]), array(y[90:])), IncrementalPLS(3, solver="gram").fit(X, y))
    before = vars(model.set_params(forgetting=0.9)).copy()
    with pytest.raises(ValueError, match="forgetting cannot change"):
        model.partial_fit(array(X), array(y))
    assert vars(model) == before


def test_blocks_kept_in_memory_or_made_again(monkeypatch):
    made = []

    def count(block):
        made.append(len(block))
        return block

    counted = array(X, 60).map_blocks(count, dtype=X.dtype, meta=X[:0])
    expected = IncrementalPLS(3).fit(X, y)
    assert_same(IncrementalPLS(3).fit(counted, y), expected)
    assert len(made) == 5
    made.clear()
    monkeypatch.setattr(workers, "_HELD_SHARE", 0.0)
    assert_same(IncrementalPLS(3).fit(counted, y), expected)
    assert len(made) == 4 * 5
    # Rows whose number is not known are kept after they have been counted.
    monkeypatch.undo()
    made.clear()
    assert_same(IncrementalPLS(3).fit(counted[da.ones(N, chunks=60, dtype=bool)], array(y, 60)), expected)
    assert len(made) == 2 * 5


def test_shared_work():
    centred = array(X) - array(X).mean(axis=0)
    assert_same(IncrementalPLS(3).fit(centred, array(y)), IncrementalPLS(3).fit(X, y))
    assert_same(IncrementalPLS(3).fit(array(X).persist(), array(y)), IncrementalPLS(3).fit(X, y))


@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_shared_inputs_of_rows_and_responses_are_computed_once(solver):
    calls = []

    def load(i):
        calls.append(i)
        return np.column_stack([X, y])[i * 30 : i * 30 + 30]

    parts = [da.from_delayed(dask.delayed(load)(i), (30, M + 1), float) for i in range(10)]
    table = da.concatenate(parts)
    model = IncrementalPLS(3, solver=solver).fit(table[:, :M], table[:, M], table[:, 0] ** 2)
    assert_same(model, IncrementalPLS(3, solver=solver).fit(X, y, X[:, 0] ** 2))
    assert sorted(calls) == list(range(10))


def test_processes():
    with dask.config.set(scheduler="processes", num_workers=1):
        model = IncrementalPLS(3, solver="gram").fit(array(X), array(y))
    assert_same(model, IncrementalPLS(3, solver="gram").fit(X, y))


def test_hostile_numbers():
    for rows, target in ((X + 1e8, y), (X * 1e150, y * 1e-150), (X.astype(np.float32), y), (np.asfortranarray(X), y)):
        for solver in ("auto", "gram"):
            expected = IncrementalPLS(2, solver=solver).fit(rows, target)
            model = IncrementalPLS(2, solver=solver).fit(array(rows), array(target))
            assert relative_error(model.predict(rows), expected.predict(rows)) < 1e-6
            assert relative_error(model.x_weights_, expected.x_weights_) < 1e-6


def test_sparse_chunks():
    rows = np.where(np.abs(X - X.mean(axis=0)) < 2, 0, X)
    chunks = array(rows).map_blocks(sparse.csr_matrix, dtype=float, meta=sparse.csr_matrix((0, 0)))
    for solver in ("auto", "gram"):
        model = IncrementalPLS(2, solver=solver).fit(chunks, array(y))
        assert_same(model, IncrementalPLS(2, solver=solver).fit(rows, y))
    assert np.allclose(model.transform(chunks), model.transform(rows))


@pytest.mark.filterwarnings("ignore:sketch_size:UserWarning")
@pytest.mark.parametrize("chunk", [40, 333, 2000])
def test_sketch_is_as_close_as_in_one_process(chunk):
    rows, target = spectrum_data(2000, 120, 0.5)
    exact = IncrementalPLS(4).fit(rows, target)
    model = IncrementalPLS(4, solver="sketch", sketch_size=40)
    alone = clone(model).fit(rows, target)
    model.fit(array(rows, chunk), array(target, chunk))
    error = [np.sqrt(1 - smallest_cosine(one.x_weights_, exact.x_weights_) ** 2) for one in (model, alone)]
    assert error[0] < 2 * error[1] + 1e-6
    assert model.subspace_error_[-1] / 5 < error[0] < 3 * model.subspace_error_[-1]


def test_results_are_lazy():
    model = IncrementalPLS(3).fit(X, Y)
    for rows in (X, X.astype(np.float32)):
        scores, prediction = model.transform(array(rows)), model.predict(array(rows), n_components=2)
        for lazy, expected in ((scores, model.transform(rows)), (prediction, model.predict(rows, n_components=2))):
            assert isinstance(lazy, da.Array)
            assert lazy.chunks == (array(rows).chunks[0], (expected.shape[1],))
            assert lazy.dtype == lazy._meta.dtype == expected.dtype
            np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-5)
    vector = IncrementalPLS(3).fit(X, y)
    assert vector.predict(array(X)).chunks == (array(X).chunks[0],)
    empty = array(X)[array(X)[:, 0] > np.inf]
    assert vector.predict(empty).compute().shape == (0,)
    assert model.transform(empty).compute().shape == (0, 3)


def test_results_of_dataframes():
    model = IncrementalPLS(3).fit(frame(X), series(y))
    assert model.predict(frame(X)).chunks == ((np.nan,) * 5,) or np.isnan(model.predict(frame(X)).chunks[0]).all()
    np.testing.assert_allclose(model.predict(frame(X)), model.predict(frame(X).compute()))
    assert model.transform(frame(X)).compute().shape == (N, 3)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(X)[["c1", "c0", "c2", "c3", "c4", "c5", "c6"]])


def test_selector():
    selector = VIPSelector(IncrementalPLS(2), n_features_to_select=3).fit(array(X), array(y))
    expected = VIPSelector(IncrementalPLS(2), n_features_to_select=3).fit(X, y)
    assert np.array_equal(selector.support_, expected.support_)
    kept = selector.transform(array(X))
    assert isinstance(kept, da.Array)
    np.testing.assert_array_equal(kept.compute(), expected.transform(X))


def test_chunks_along_columns_are_put_together():
    cut = da.from_array(X, chunks=(41, 3))
    with pytest.warns(UserWarning, match="chunked along its columns, 3 chunks per row") as caught:
        model = IncrementalPLS(3).fit(cut, y)
    assert caught[0].filename == __file__
    assert_same(model, IncrementalPLS(3).fit(X, y))
    with pytest.warns(UserWarning, match="chunked along its columns"):
        assert model.transform(cut).chunks[0] == cut.chunks[0]


def test_kinds_of_weights():
    expected = IncrementalPLS(3, solver="gram").fit(X, y, WEIGHT)
    for weight in (WEIGHT, WEIGHT.tolist(), array(WEIGHT)):
        assert_same(IncrementalPLS(3, solver="gram").fit(array(X), y.tolist(), weight), expected)
    assert_same(IncrementalPLS(3).fit(array(X), y, 2.0), IncrementalPLS(3).fit(X, y, np.full(N, 2.0)))


UNKNOWN = array(X)[array(X)[:, 0] > -np.inf]


@pytest.mark.parametrize("solver", ["auto", "gram"])
@pytest.mark.parametrize(
    ("rows", "target", "weight", "message"),
    [
        (array(X), None, None, "y is None"),
        (array(X), array(y[1:]), None, "X has 300 rows, but y has 299"),
        (array(X), y[1:], None, "X has 300 rows, but y has 299"),
        (array(X), array(y), WEIGHT[2:], "X has 300 rows, but sample_weight has 298"),
        (UNKNOWN, y, None, "the number of rows per block of X is unknown"),
        (UNKNOWN, array(y, 100), None, "X has 8 blocks, but y has 3"),
        (UNKNOWN, array(np.r_[y[1:], y[:1]], 41)[: N - 1], None, "In block 7: X has 13 rows, but y has 12"),
        (frame(X), series(y, 3), None, "X has 5 blocks, but y has 3"),
        (delayed(X), delayed(y, 30), None, "X has 8 blocks, but y has 10"),
        (delayed(X), delayed(y[1:]), None, "In block 7: X has 13 rows, but y has 12"),
        (array(y), array(y), None, "two-dimensional"),
        (array(X), array(y), array(-WEIGHT), r"In block \d .*negative"),
        (array(X), array(y), array(0 * WEIGHT), "no row with a positive weight"),
        (array(X[:0]), array(y[:0]), None, "no row with a positive weight"),
        (array(X[:1]), array(y[:1]), None, "the smaller of n_samples=1"),
        (array(X[:, :1]), array(y), None, "n_features=1"),
    ],
)
def test_mismatched_inputs_are_refused(solver, rows, target, weight, message):
    model = IncrementalPLS(2, solver=solver)
    with pytest.raises(ValueError, match=message):
        model.fit(rows, target, weight)
    assert vars(model) == vars(clone(model))


@pytest.mark.parametrize("solver", ["auto", "gram"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["X", "y"])
def test_numbers_that_are_not_finite(solver, value, name):
    bad_X, bad_y = X.copy(), y.copy()
    if name == "X":
        bad_X[250, 4] = value
    else:
        bad_y[250] = value
    model = IncrementalPLS(2, solver=solver).fit(X, y)
    before = vars(model).copy()
    with pytest.raises(ValueError, match=rf"In block 6 \(rows from 246 on\): Input {name} contains .* row 4"):
        model.fit(array(bad_X), array(bad_y))
    assert vars(model) == before


def test_columns_are_checked():
    model = IncrementalPLS(2, solver="gram").fit(frame(X), series(y))
    with pytest.raises(ValueError, match="feature"):
        model.partial_fit(frame(X[:, 1:]), series(y))
    with pytest.raises(ValueError, match="expecting 7 features"):
        model.predict(array(X[:, 1:]))
    with pytest.raises(ValueError, match="multipass"):
        IncrementalPLS(2, solver="multipass").partial_fit(array(X), array(y))


@pytest.mark.parametrize("solver", ["auto", "gram", "sketch"])
def test_memory_is_checked_first(solver, monkeypatch):
    monkeypatch.setattr(workers, "available_bytes", lambda: 10_000_000)
    wide = da.zeros((10**6, 2000), chunks=(10**5, 2000))
    with pytest.raises(
        MemoryError, match=r"1 thread requires about 3[0-9.]+ GB: .* only 7.0 MB may be used: use smaller"
    ):
        IncrementalPLS(2, solver=solver).fit(wide, wide[:, 0])


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_progress(scheduler):
    steps = []
    with listening(steps.append), dask.config.set(scheduler=scheduler):
        IncrementalPLS(2).fit(array(X), y)
        IncrementalPLS(2, solver="gram").fit(frame(X), series(y))
    labels = [step.label for step in steps if step.finished]
    assert labels == ["read 1 of 3", "read 2 of 3", "read 3 of 3", "read 1 of 1"]
    assert [step.done for step in steps[:8]] == sorted(step.done for step in steps[:8])
    assert (steps[0].total, steps[0].unit) == (N, "rows")
    assert (steps[-1].total, steps[-1].unit) == (5, "blocks")


def test_number_of_tasks_does_not_grow_with_blocks(monkeypatch):
    """A state for every one of many small chunks would be more than the data."""
    made = []
    monkeypatch.setattr(reduce, "run_unit", lambda *args: made.append(1) or remote_run(*args))
    tiny = da.from_array(np.tile(X, (2, 1)), chunks=(1, M))
    IncrementalPLS(2, solver="gram").fit(tiny, np.tile(y, 2))
    assert len(made) <= 32


remote_run = reduce.run_unit


@pytest.fixture(scope="module")
def folder_of_parquet(tmp_path_factory):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    folder = tmp_path_factory.mktemp("parts")
    whole = pandas.DataFrame(X, columns=[f"c{i}" for i in range(M)]).assign(y=y, label=np.where(y > 0, "high", "low"))
    for part, rows in enumerate(np.array_split(np.arange(N), 30)):
        whole.iloc[rows].to_parquet(folder / f"part-{part:02}.parquet")
    return folder


@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_dataframes_of_many_files(folder_of_parquet, solver):
    # Optimised separately, y would have fewer blocks than X.
    whole = dd.read_parquet(folder_of_parquet)
    features = [f"c{i}" for i in range(M)]
    assert whole["y"].optimize().npartitions < whole.npartitions == 30
    model = IncrementalPLS(3, solver=solver).fit(whole[features], whole["y"])
    assert_same(model, IncrementalPLS(3, solver=solver).fit(X, y))
    assert list(model.feature_names_in_) == features
    weighted = IncrementalPLS(3, solver=solver).fit(whole[features], whole["y"], sample_weight=whole["c0"] ** 2)
    assert_same(weighted, IncrementalPLS(3, solver=solver).fit(X, y, sample_weight=X[:, 0] ** 2))


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_scores_are_computed_where_the_rows_are(folder_of_parquet, weight, monkeypatch):
    labels = np.where(y > 0, "high", "low")
    regression, classifier = IncrementalPLS(2).fit(X, Y), IncrementalPLSClassifier(2).fit(X, labels)
    expected = regression.score(X, Y, weight), classifier.score(X, labels, weight)
    beside = None if weight is None else array(weight)
    monkeypatch.setattr(type(regression), "predict", None)
    monkeypatch.setattr(type(classifier), "predict", None)
    assert regression.score(array(X), array(Y), beside) == pytest.approx(expected[0], rel=1e-12)
    assert classifier.score(array(X), array(labels), beside) == pytest.approx(expected[1], rel=1e-12)
    if weight is None:
        whole = dd.read_parquet(folder_of_parquet)
        features = whole[[f"c{i}" for i in range(M)]]
        named = IncrementalPLSClassifier(2).fit(features, whole["label"])
        assert named.score(features, whole["label"]) == pytest.approx(expected[1], rel=1e-12)
        assert regression.score(open_source(X, Y, batch_size=7)) == pytest.approx(expected[0], rel=1e-12)
        assert classifier.score(open_source(X, labels, batch_size=7)) == pytest.approx(expected[1], rel=1e-12)


def test_scores_of_constant_responses():
    constant = np.column_stack([np.full(N, 2.0), y])
    model = IncrementalPLS(2).fit(X, constant)
    assert model.score(open_source(X, constant, batch_size=50)) == pytest.approx(model.score(X, constant))
