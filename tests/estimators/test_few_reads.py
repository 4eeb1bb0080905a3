"""``read_tol`` and ``max_reads``: fits of arrays, files and Dask collections that read slow data a few times."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits

from plstream import IncrementalPLS, IncrementalPLSClassifier, load, open_source, save
from plstream.pls import subspace_sines
from plstream.rows import TrainingRows
from plstream.states import Gram, Sketch
from tests.oracles import regression_data, relative_error


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch):
    """Let small data be read several times, as large data is, and sketches be small."""
    for module in ("plstream.rows.arrays", "plstream.rows.sources"):
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


@pytest.fixture
def slow_file(tmp_path):
    """Return a function that opens rows as a file that is slow to read, and is not copied because it has weights."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def opened(X, y):
        table = pa.table({f"x{j}": x for j, x in enumerate(X.T)} | {"y": y, "weight": np.ones(len(y))})
        pq.write_table(table, tmp_path / "rows.parquet")
        return open_source(tmp_path / "rows.parquet", target="y", weight="weight", batch_size=100)

    return opened


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_slow_files_with_few_features_are_read_once(scale, offset, slow_file, monkeypatch):
    X, y = regression_data(500, 12)
    X = X + offset
    exact = IncrementalPLS(4, scale=scale).fit(X, y)
    source = slow_file(X, y)
    reads = counted(monkeypatch)
    model = IncrementalPLS(4, scale=scale).fit(source)
    assert (model.solver_, model.n_reads_, len(reads)) == ("gram", 1, 1)
    assert not model.subspace_error_.any()
    assert error_of(model, exact) < 1e-9
    # By other solvers, and with too many features for so few components, as always.
    assert IncrementalPLS(4, scale=scale, solver="multipass").fit(source).n_reads_ == 5
    monkeypatch.setattr("plstream.estimators.settings._GRAM_COLUMNS_PER_READ", 2)
    assert IncrementalPLS(4, scale=scale).fit(source).n_reads_ == 5
    # Training continues with the exact matrix.
    model.partial_fit(slow_file(X, 2 * y))
    again = IncrementalPLS(4, scale=scale).fit(np.concatenate([X, X]), np.concatenate([y, 2 * y]))
    assert error_of(model, again) < 1e-8


@given(exponent=st.floats(0, 7), m=st.integers(3, 20), seed=st.integers(0, 2**32 - 1), offset=st.sampled_from([0, 1e8]))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_badly_conditioned_slow_files_are_read_until_exact(exponent, m, seed, offset, slow_file):
    """With a trend shared by all columns, much larger than the rest, errors are as small as by reading X again."""
    rng = np.random.default_rng(seed)
    rest = rng.normal(size=(300, m))
    X = rest + 10.0**exponent * rng.normal(size=(300, 1)) + offset
    y = rest @ rng.normal(size=m) + rng.normal(size=300)
    c = min(m, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = IncrementalPLS(c, scale=False).fit(X, y)
        model = IncrementalPLS(c, scale=False).fit(slow_file(X, y))
        again = IncrementalPLS(c, scale=False, solver="multipass").fit(slow_file(X, y))
    assert 1 <= model.n_reads_ <= c + 1
    event(f"{model.n_reads_} reads")
    assert error_of(model, exact) < max(1e-9, 10 * error_of(again, exact))


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
