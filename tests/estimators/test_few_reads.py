"""``read_tol`` and ``max_reads``: fits of arrays, files and Dask collections that read slow data a few times."""

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from plstream import IncrementalPLS, IncrementalPLSClassifier, load, open_source, save
from plstream.data import Source
from plstream.pls import subspace_sines
from plstream.rows import TrainingRows
from plstream.states import Gram, Sketch
from tests.oracles import regression_data, relative_error


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch):
    """Let small data be read several times, as large data is, and sketches be small."""
    for module in ("plstream.rows.blocks", "plstream.rows.sources"):
        monkeypatch.setattr(f"{module}.SMALL_BYTES", 1000)
    monkeypatch.setattr("plstream.estimators.settings._SKETCH_SIZE", 32)
    monkeypatch.setattr("plstream.estimators.settings._SKETCH_SIZE_PER_COMPONENT", 3)


def spectrum(n=900, m=100, seed=0):
    """Return rows whose variances fall as powers, in directions that no column is."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(m, m)))[0]
    X = rng.normal(size=(n, m)) * np.arange(1, m + 1) ** -0.7 @ turn
    return X + 2, X @ rng.normal(size=m) + 0.3 * rng.normal(size=n)


def error_of(model, exact):
    return max(subspace_sines(model.x_weights_, exact.x_weights_).max(), relative_error(model.coef_, exact.coef_))


def counted(monkeypatch):
    """Return a list with one entry for every read of rows that are in this process."""
    reads = []
    for kind in TrainingRows.__subclasses__():
        if "blocks" in vars(kind) and kind.__name__ != "CollectionRows":

            def blocks(self, start=0, original=kind.blocks):
                reads.append(start)
                return original(self, start)

            monkeypatch.setattr(kind, "blocks", blocks)
    return reads


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("read_tol", [1e-2, 1e-5])
def test_stops_at_the_tolerance(scale, read_tol, monkeypatch):
    X, y = spectrum()
    exact = IncrementalPLS(6, scale=scale).fit(X, y)
    reads = counted(monkeypatch)
    model = IncrementalPLS(6, scale=scale, read_tol=read_tol, solver="multipass").fit(X, y)
    assert model.n_reads_ == len(reads) < exact.n_reads_ == 7
    assert model.solver_ == "multipass"
    assert error_of(model, exact) <= model.subspace_error_.max() <= read_tol
    assert model.subspace_error_.shape == (6,)
    assert model.retained_variance_ == 1.0


def test_few_features_take_one_read():
    X, y = spectrum()
    model, exact = IncrementalPLS(6, read_tol=1e-9).fit(X, y), IncrementalPLS(6).fit(X, y)
    assert (model.n_reads_, model.solver_) == (1, "multipass")
    assert error_of(model, exact) < model.subspace_error_.max() < 1e-9
    assert isinstance(model._fitted.moments, Gram)


@pytest.mark.parametrize("has_room", [True, False])
@pytest.mark.parametrize("forgetting", [1.0, 0.99])
@pytest.mark.parametrize("of_labels", [False, True])
def test_slow_files_with_weights_are_copied(of_labels, forgetting, has_room, tmp_path, monkeypatch):
    """Rows of weight zero do not count, in whole blocks and in parts, whether or not there is room for a copy."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, y = regression_data(500, 12)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    weight[100:200] = 0.0
    model = IncrementalPLS(4, forgetting=forgetting)
    if of_labels:
        y = np.where(y > 0, "high", "low")
        model = IncrementalPLSClassifier(3, class_weight={"high": 3.0}, forgetting=forgetting)
    table = pa.table({f"x{j}": x for j, x in enumerate(X.T)} | {"y": y, "weight": weight})
    pq.write_table(table, tmp_path / "rows.parquet")
    reads = []

    def records(self, start=0, original=Source.records):
        reads.append(start)
        return original(self, start)

    monkeypatch.setattr(Source, "records", records)
    if not has_room:
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(total=0, free=0))
    source = open_source(tmp_path / "rows.parquet", target="y", weight="weight", batch_size=100)
    found = clone(model).fit(source)
    present = weight > 0
    expected = clone(model).fit(X[present], y[present], sample_weight=weight[present])
    assert found.n_reads_ == expected.n_reads_ == model.n_components + 1
    assert len(reads) == (1 if has_room else found.n_reads_)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9, atol=1e-12)


def test_default_is_exact_and_reads_are_counted():
    X, y = spectrum()
    assert IncrementalPLS(4).fit(X, y).n_reads_ == 5
    assert IncrementalPLS(4, solver="gram").fit(X, y).n_reads_ == 1
    assert IncrementalPLS(4).partial_fit(X, y).n_reads_ == 1
    small = X[:10, :4]
    assert IncrementalPLS(2).fit(small, y[:10]).n_reads_ == 1
    few = IncrementalPLS(2, read_tol=1e-3).fit(small, y[:10])
    np.testing.assert_array_equal(few.coef_, IncrementalPLS(2).fit(small, y[:10]).coef_)
    assert few.n_reads_ == 1


@pytest.mark.parametrize("max_reads", [1, 2, 3, 9])
def test_never_more_reads_than_allowed(max_reads):
    X, y = spectrum()
    model = IncrementalPLS(3, max_reads=max_reads, solver="multipass")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert model.n_reads_ == min(max_reads, 4)
    if max_reads == 9:
        assert error_of(model, IncrementalPLS(3).fit(X, y)) < 1e-12
        assert not model.subspace_error_.any()


def test_too_few_reads_are_said():
    X, y = spectrum()
    with pytest.warns(UserWarning, match="max_reads=2 is not enough for read_tol=1e-07: the estimated error is"):
        IncrementalPLS(6, max_reads=2, read_tol=1e-7, solver="multipass").fit(X, y)


@pytest.mark.parametrize("solver", ["gram", "sketch"])
@pytest.mark.parametrize("few", [{"read_tol": 1e-3}, {"max_reads": 2}], ids=str)
def test_a_solver_that_reads_once_is_refused(solver, few):
    X, y = spectrum(50, 5)
    with pytest.raises(ValueError, match="reads the data once: with read_tol or max_reads, use solver='auto'"):
        IncrementalPLS(2, solver=solver, **few).fit(X, y)
    # Rows of a stream are read once in any case.
    assert IncrementalPLS(2, solver=solver, **few).partial_fit(X, y).n_reads_ == 1


@pytest.mark.parametrize("bad", [{"read_tol": -1.0}, {"read_tol": None}, {"max_reads": 0}, {"max_reads": 1.5}], ids=str)
def test_bad_parameters(bad):
    X, y = spectrum(50, 5)
    with pytest.raises(ValueError, match=next(iter(bad))):
        IncrementalPLS(2, **bad).fit(X, y)


def test_weights_and_forgetting():
    X, y = spectrum()
    weight = np.random.default_rng(1).integers(0, 3, 900).astype(float)
    for more in ({}, {"forgetting": 0.995}):
        exact = IncrementalPLS(5, **more).fit(X, y, weight)
        model = IncrementalPLS(5, read_tol=1e-6, solver="multipass", **more).fit(X, y, weight)
        assert error_of(model, exact) <= 1e-6
        assert model.n_samples_seen_ == exact.n_samples_seen_


def test_many_classes():
    X, y = load_digits(return_X_y=True)
    exact = IncrementalPLSClassifier(9).fit(X, y)
    model = IncrementalPLSClassifier(9, read_tol=1e-4, solver="multipass", sketch_size=15).fit(X, y)
    assert 1 < model.n_reads_ < 10
    assert error_of(model, exact) <= 1e-4
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-2)


@pytest.mark.parametrize("form", ["npy", "csv"])
def test_of_files(form, tmp_path):
    X, y = spectrum(400, 30)
    if form == "npy":
        np.save(tmp_path / "X.npy", X)
        np.save(tmp_path / "y.npy", y)
        source = open_source(tmp_path / "X.npy", target=tmp_path / "y.npy")
    else:
        np.savetxt(tmp_path / "data.csv", np.column_stack([X, y]), delimiter=",")
        source = open_source(tmp_path / "data.csv", target=-1)
    exact = IncrementalPLS(5).fit(X, y)
    model = IncrementalPLS(5, read_tol=1e-6, solver="multipass").fit(source)
    assert error_of(model, exact) <= 1e-6
    assert model.n_reads_ <= 6


@pytest.mark.parametrize("solver", ["auto", "multipass"])
def test_on_dask(solver):
    dask = pytest.importorskip("dask")
    da = pytest.importorskip("dask.array")
    X, y = spectrum()
    exact = IncrementalPLS(6).fit(X, y)
    with dask.config.set(scheduler="synchronous"):
        model = IncrementalPLS(6, read_tol=1e-4, solver=solver)
        model.fit(da.from_array(X, chunks=(130, 100)), da.from_array(y, chunks=130))
        assert error_of(model, exact) <= 1e-4
        assert model.n_reads_ == 1 if solver == "auto" else 1 < model.n_reads_ < 7
        model.fit(da.from_array(X, chunks=(130, 100)), da.from_array(y, chunks=130), np.ones(900))
        assert error_of(model, exact) <= 1e-4


@pytest.mark.parametrize("solver", ["auto", "multipass"])
def test_is_kept_in_files(solver, tmp_path):
    X, y = spectrum()
    model = IncrementalPLS(5, read_tol=1e-4, solver=solver).fit(X, y)
    save(model, tmp_path / "model.plstream")
    for twin in (load(tmp_path / "model.plstream"), pickle.loads(pickle.dumps(model))):  # noqa: S301
        assert twin.n_reads_ == model.n_reads_
        assert twin.get_params() == model.get_params()
        np.testing.assert_array_equal(twin.subspace_error_, model.subspace_error_)
        np.testing.assert_array_equal(twin.coef_, model.coef_)
        twin.partial_fit(X[:50], y[:50])
        again = clone(model).fit(X, y).partial_fit(X[:50], y[:50])
        np.testing.assert_array_equal(twin.x_mean_, again.x_mean_)
        np.testing.assert_array_equal(twin.coef_, again.coef_)
        assert twin.n_reads_ == model.n_reads_


def test_rows_after_it_cost_less_than_after_an_exact_fit():
    X, y = spectrum(1600, 200)
    model = IncrementalPLS(5, read_tol=1e-5, solver="multipass").fit(X[:1200], y[:1200])
    other = IncrementalPLS(5, solver="multipass").fit(X[:1200], y[:1200])
    before = model.x_weights_.copy()
    assert isinstance(model._fitted.moments, Sketch)
    np.testing.assert_array_equal(model.x_weights_, before)
    for start in range(1200, 1600, 20):
        rows = slice(start, start + 20)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.partial_fit(X[rows], y[rows])
            other.partial_fit(X[rows], y[rows])
            exact = IncrementalPLS(5).fit(X[: rows.stop], y[: rows.stop])
            sines, others = (subspace_sines(each.x_weights_, exact.x_weights_) for each in (model, other))
            assert sines.max() <= 3 * model.subspace_error_.max() + 1e-6
    assert sines.max() < others.max()
    assert model.n_samples_seen_ == 1600
    assert model.solver_ == "sketch"


def test_a_failed_fit_changes_nothing():
    X, y = spectrum()
    model = IncrementalPLS(3, read_tol=1e-3).fit(X, y)
    coefficients, bad = model.coef_.copy(), X.copy()
    bad[700, 3] = np.nan
    with pytest.raises(ValueError, match="row 700, column 3"):
        model.fit(bad, y)
    np.testing.assert_array_equal(model.coef_, coefficients)
