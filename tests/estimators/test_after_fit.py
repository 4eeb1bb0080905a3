"""After an exact fit: further rows, merges and monitors."""

import pickle
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from plstream import IncrementalPLS, IncrementalPLSClassifier, load, save
from plstream.estimators.settings import Settings
from plstream.monitoring import DriftTracker, Monitor
from plstream.states import Sketch
from tests.oracles import dense_pls, regression_data, relative_error

pytestmark = pytest.mark.filterwarnings("ignore:fit keeps only:UserWarning")


def seeded(model):
    """Return the state from which training continues after a fit."""
    return model._fitted.streamed(Settings.of(model)).stream.current()


def power_law(n, m, exponent, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * np.arange(1, m + 1) ** -exponent
    return X + 3, X @ rng.normal(size=m) + rng.normal(size=n)


def few_factors(n, m, seed=0):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, 3))
    return factors @ rng.normal(size=(3, m)) + rng.normal(size=(n, m)), factors.sum(axis=1) + 0.5 * rng.normal(size=n)


def sines(W, exact):
    """Return the sine of the largest angle between the spaces of the first components, for each number of these."""
    return [np.linalg.norm(W[:, :k] - exact[:, :k] @ (exact[:, :k].T @ W[:, :k]), 2) for k in range(1, W.shape[1] + 1)]


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("kind", ["one response", "three", "labels", "float32", "weights", "large"])
def test_a_seed_acts_on_the_rotations_as_all_rows_do(kind, scale, monkeypatch):
    X, Y = regression_data(600, 40, 3)
    X[:, 7] = 2.5
    weight = np.random.default_rng(0).uniform(0.5, 3, 600) if kind == "weights" else None
    model = IncrementalPLS(4, scale=scale)
    if kind == "labels":
        model, Y = IncrementalPLSClassifier(4, scale=scale), np.digitize(Y[:, 0], [-1, 0, 1])
    elif kind != "three":
        Y = Y[:, 0]
    if kind == "float32":
        X = X.astype(np.float32)
    if kind == "large":
        monkeypatch.setattr("plstream.rows.blocks.SMALL_BYTES", 0)
    model.fit(X, Y, weight)
    state = seeded(model)
    assert isinstance(state, Sketch)
    rows = np.average(X, axis=0, weights=weight)
    centred = (X.astype(float) - rows) * (np.ones(600) if weight is None else np.sqrt(weight))[:, None]
    for r in (model.x_rotations_ / model.x_scale_[:, None]).T:
        action, square = state.apply(r)
        expected = centred.T @ (centred @ r)
        # A hundredth of the variance or more is lost, so rows are in float32.
        np.testing.assert_allclose(action, expected, rtol=0, atol=3e-6 * np.abs(expected).max())
        assert square == pytest.approx(r @ expected, rel=1e-5)
    total = sum(state.unit**2 * (piece.astype(float) ** 2).sum(axis=0) for piece in state.held.pieces) + state.lost
    np.testing.assert_allclose(total, state.x_squares, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 1e150, 1e-150])
def test_a_seed_has_the_solution_in_any_units(size):
    X, Y = regression_data(600, 40, 2)
    model = IncrementalPLS(3, scale=size == 1).fit(X * size, Y)
    state = seeded(model)
    W = IncrementalPLS(3, scale=size == 1)
    W._fitted = model._fitted.streamed(Settings.of(model)).after(model._fitted.streamed(Settings.of(model)).stream)
    assert max(sines(W.x_weights_, model.x_weights_)) < 1e-4
    assert np.isfinite(state.errors.action.sums).all()


def test_the_solution_stays_bit_identical():
    X, y = regression_data(600, 40)
    model = IncrementalPLS(3).fit(X, y)
    expected = {name: getattr(model, name).copy() for name in ("coef_", "x_rotations_", "vip_", "subspace_error_")}
    Monitor(model)
    IncrementalPLS(3).fit(X, y).merge(model)
    model.partial_fit(X[:3], y[:3], sample_weight=np.zeros(3))
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((1, 40), np.nan), [0.0])
    twin = pickle.loads(pickle.dumps(model))  # noqa: S301
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(model, name), value)
        np.testing.assert_array_equal(getattr(twin, name), value)
    assert model.solver_ == "multipass"
    assert model.partial_fit(X[:1], y[:1]).solver_ == "sketch"


def test_nothing_is_kept_that_grows_with_the_rows():
    models = [IncrementalPLS(2).fit(*regression_data(n, 30)) for n in (700, 7000)]
    sizes = [len(pickle.dumps(model)) for model in models]
    assert abs(sizes[1] - sizes[0]) < 100
    assert sys.getsizeof(models[0]) == sys.getsizeof(models[1]) > 8 * 30 * 4


def spectra(seed, n=210, m=60):
    """Return sums of a few overlapping peaks of unequal heights, and the noisy height of one of the smaller peaks."""
    rng = np.random.default_rng(seed)
    peaks = np.exp(-(((np.linspace(0, 1, m) - rng.uniform(size=(8, 1))) / 0.15) ** 2))
    heights = rng.lognormal(sigma=0.8, size=(n, 8)) * 2.0 ** -np.arange(8)
    return heights @ peaks + 1e-3 * rng.normal(size=(n, m)), heights[:, 3] * (1 + 0.3 * rng.normal(size=n))


@pytest.mark.parametrize("n_components", [3, 4])
@pytest.mark.parametrize("scale", [True, False])
def test_the_stated_error_holds_where_the_residual_has_few_directions(scale, n_components, monkeypatch):
    monkeypatch.setattr("plstream.rows.blocks.SMALL_BYTES", 0)
    largest, last = [], []
    for seed in range(8):
        X, y = spectra(seed)
        model = IncrementalPLS(n_components, scale=scale, solver="multipass").fit(X[:105], y[:105])
        ratios = []
        for end in range(120, 211, 15):
            model.partial_fit(X[end - 15 : end], y[end - 15 : end])
            W = dense_pls(X[:end], y[:end], n_components, scale=scale)[1]
            ratios.append(max(sines(model.x_weights_, W)) / model.subspace_error_.max())
        largest.append(max(ratios))
        last.append(ratios[-1])
    assert np.median(largest) < 0.8
    assert scale or max(largest) < 1
    # Nor is it much too large.
    assert np.median(last) > 0.04


@pytest.mark.parametrize("forgetting", [1.0, 0.98])
@pytest.mark.parametrize("scale", [True, False])
def test_little_data_continues_exactly(forgetting, scale):
    X, Y = regression_data(200, 12, 2)
    model = IncrementalPLS(4, scale=scale, forgetting=forgetting).fit(X[:120], Y[:120])
    for start in range(120, 200, 13):
        model.partial_fit(X[start : start + 13], Y[start : start + 13])
    weight = forgetting ** np.arange(199, -1, -1)
    assert relative_error(model.coef_, dense_pls(X, Y, 4, scale=scale, weight=weight)[0].T) < 1e-9
    assert model.solver_ == "gram"
    np.testing.assert_array_equal(model.subspace_error_, 0)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("data", [power_law(2000, 60, 0.5), power_law(2000, 60, 1.0), few_factors(2000, 60)])
def test_twenty_batches_stay_within_the_stated_error(data, scale):
    X, y = data
    model = IncrementalPLS(4, scale=scale).fit(X[:1000], y[:1000])
    for start in range(1000, 2000, 50):
        rows = slice(start, start + 50)
        model.partial_fit(X[rows], y[rows])
        if start in {1000, 1450, 1950}:
            exact = IncrementalPLS(4, scale=scale).fit(X[: start + 50], y[: start + 50])
            error = np.array(sines(model.x_weights_, exact.x_weights_))
            assert error[0] < 1e-6
            assert (error <= 1.5 * model.subspace_error_ + 1e-6).all()
            stale = IncrementalPLS(4, scale=scale).fit(X[:1000], y[:1000])
            if start == 1950:
                # It is worth it: the model of the first thousand rows is much further off.
                assert np.linalg.norm(model.coef_ - exact.coef_) < 0.6 * np.linalg.norm(stale.coef_ - exact.coef_)


def test_many_rows_before_leave_little_error():
    """The first rows count the more the more there are, and these are known exactly where it matters."""
    X, y = power_law(40_200, 30, 0.5)
    errors = []
    for n in (1000, 40_000):
        model = IncrementalPLS(3).fit(X[:n], y[:n]).partial_fit(X[n : n + 100], y[n : n + 100])
        exact = IncrementalPLS(3).fit(X[: n + 100], y[: n + 100])
        errors.append((max(sines(model.x_weights_, exact.x_weights_)), max(model.subspace_error_)))
    assert errors[1][0] < 0.2 * errors[0][0]
    assert errors[1][1] < 0.3 * errors[0][1]


def test_chunks_do_not_matter_after_a_fit():
    X, y = regression_data(900, 40)
    models = [IncrementalPLS(3).fit(X[:600], y[:600]) for _ in range(2)]
    models[0].partial_fit(X[600:], y[600:])
    for start in range(600, 900, 7):
        models[1].partial_fit(X[start : start + 7], y[start : start + 7])
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_a_solution_of_all_variance_continues_exactly():
    """Rank three: three components hold all there is of X."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(900, 3)) * [3, 2, 1]
    X, y = scores @ rng.normal(size=(3, 50)), scores.sum(axis=1) + rng.normal(size=900)
    model = IncrementalPLS(3).fit(X[:700], y[:700])
    assert isinstance(seeded(model), Sketch)
    assert relative_error(model.partial_fit(X[700:], y[700:]).coef_, IncrementalPLS(3).fit(X, y).coef_) < 1e-6


@pytest.mark.parametrize("first", ["large", "small", "stream", "sketch"])
@pytest.mark.parametrize("second", ["large", "small", "stream"])
def test_merge(first, second):
    n = {"large": 1200, "small": 30, "stream": 400, "sketch": 400}
    X, y = regression_data(2400, 30)

    def part(kind, rows):
        if kind in {"stream", "sketch"}:
            return IncrementalPLS(3, solver="sketch" if kind == "sketch" else "auto").partial_fit(X[rows], y[rows])
        return IncrementalPLS(3).fit(X[rows], y[rows])

    a, b = slice(n[first]), slice(n[first], n[first] + n[second])
    if (first, second) == ("sketch", "stream"):
        with pytest.raises(ValueError, match="solver_ is sketch here, gram there"):
            part(first, a).merge(part(second, b))
        return
    one, other = part(first, a), part(second, b)
    before = other.coef_.copy()
    merged = one.merge(other)
    np.testing.assert_array_equal(other.coef_, before)
    exact = IncrementalPLS(3).fit(X[: b.stop], y[: b.stop])
    assert merged.n_samples_seen_ == b.stop
    error = np.array(sines(merged.x_weights_, exact.x_weights_))
    assert (error <= 2 * merged.subspace_error_ + 1e-6).all()
    kinds = {first, second}
    assert merged.solver_ == ("sketch" if kinds & {"large", "sketch"} else "gram")
    if not kinds & {"large"}:
        assert relative_error(merged.coef_, exact.coef_) < 1e-9


def test_merge_of_more_features_than_a_sketch_holds():
    X, y = power_law(1500, 400, 1.0)
    one = IncrementalPLS(2, scale=False, sketch_size=100).fit(X[:500], y[:500])
    merged = one.merge(IncrementalPLS(2, scale=False, sketch_size=100).partial_fit(X[500:], y[500:]))
    exact = IncrementalPLS(2, scale=False).fit(X, y)
    assert merged._fitted.stream.state.n_held <= 301
    error = np.array(sines(merged.x_weights_, exact.x_weights_))
    assert (error <= 2 * merged.subspace_error_ + 1e-6).all()
    assert error.max() < 0.1


def test_merge_in_order_after_fits():
    X, y = regression_data(200, 6)
    whole = IncrementalPLS(2, forgetting=0.97).fit(X, y)
    parts = [IncrementalPLS(2, forgetting=0.97).fit(X[i], y[i]) for i in (slice(120), slice(120, 200))]
    assert relative_error(parts[0].merge(parts[1], later=True).coef_, whole.coef_) < 1e-9


def test_forgetting_after_a_fit():
    """With most of the rows of the fit forgotten, what it has not kept does not count."""
    X, y = power_law(3000, 30, 0.5)
    model = IncrementalPLS(3, forgetting=0.99).fit(X[:1000], y[:1000])
    assert isinstance(seeded(model), Sketch)
    model.partial_fit(X[1000:], y[1000:])
    exact = IncrementalPLS(3, forgetting=0.99).fit(X, y)
    assert max(sines(model.x_weights_, exact.x_weights_)) < 1e-4
    with pytest.raises(ValueError, match="forgetting cannot change"):
        model.set_params(forgetting=0.9).partial_fit(X, y)


def test_parameters_may_change_after_a_fit():
    X, y = power_law(2000, 30, 1.0)
    model = IncrementalPLS(2, scale=False).fit(X[:1500], y[:1500])
    model.set_params(n_components=3, scale=True).partial_fit(X[1500:], y[1500:])
    assert model.x_weights_.shape == (30, 3)
    exact = IncrementalPLS(3).fit(X, y)
    assert (np.array(sines(model.x_weights_, exact.x_weights_)) <= 2 * model.subspace_error_ + 1e-6).all()
    with pytest.raises(ValueError, match="sketch_size=3 must be more than n_components=3"):
        IncrementalPLS(3, sketch_size=3).fit(X, y).partial_fit(X, y)


def test_adding_a_class_after_a_fit():
    X, y = regression_data(600, 30)
    labels = np.digitize(y, [-1, 1])
    model = IncrementalPLSClassifier(3).fit(X, labels)
    expected = model.predict_proba(X)
    model.add_class(7)
    np.testing.assert_allclose(model.predict_proba(X)[:, :3], expected, atol=1e-4)
    model.partial_fit(X[:200] + 9, np.full(200, 7))
    assert (model.predict(X[:200] + 9) == 7).mean() > 0.9
    np.testing.assert_allclose(model.class_count_, [*np.bincount(labels), 200])


def test_classes_are_merged_after_fits():
    X, y = regression_data(900, 30)
    labels = np.digitize(y, [-1, 1])
    one = IncrementalPLSClassifier(3).fit(X[labels < 2], labels[labels < 2])
    one.merge(IncrementalPLSClassifier(3).fit(X[labels > 0], labels[labels > 0]))
    assert one.classes_.tolist() == [0, 1, 2]
    assert one.score(X, labels) > IncrementalPLSClassifier(3).fit(X, labels).score(X, labels) - 0.05


def process(n, m, seed):
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(6, m))
    factors = rng.normal(size=(n + 2000, 6)) * [3, 2, 2, 1, 1, 1]
    X = factors @ mixing + 0.5 * rng.normal(size=(n + 2000, m))
    y = factors[:, :3].sum(axis=1) + 0.3 * rng.normal(size=n + 2000)
    return X[:n], y[:n], X[n:]


@pytest.mark.parametrize("more", [0, 300])
def test_limits_after_a_fit(more):
    """From an exact fit, limits of T2 are known, and those of Q about: one normal row in 50 is above, or fewer."""
    rates, limits = [], []
    for seed in range(8):
        X, y, Z = process(1000, 40, seed)
        model = IncrementalPLS(3).fit(X[more:], y[more:])
        if more:
            model.partial_fit(X[:more], y[:more])
        monitor = Monitor(model)
        checked = monitor.check(Z)
        rates.append((checked.t2_alarm.mean(), checked.q_alarm.mean()))
        limits.append(monitor.q_limit_ / Monitor(IncrementalPLS(3).partial_fit(X, y)).q_limit_)
    t2, q = np.mean(rates, axis=0)
    assert t2 == pytest.approx(0.01, abs=0.006)
    assert 0.002 < q < 0.02
    assert np.mean(limits) == pytest.approx(1, abs=0.3)


def test_a_tracker_knows_the_rows_of_a_fit():
    X, y = regression_data(800, 30)
    known = [
        DriftTracker(model)._moments_of_model()
        for model in (IncrementalPLS(2).fit(X, y), IncrementalPLS(2).partial_fit(X, y))
    ]
    for name in ("n_rows", "weight", "x_mean", "x_squares", "y_squares", "cross"):
        np.testing.assert_allclose(getattr(known[0], name), getattr(known[1], name), rtol=1e-9)


def test_rows_on_dask_after_a_fit():
    array = pytest.importorskip("dask.array")
    X, y = power_law(1600, 40, 1.0)
    local = IncrementalPLS(3).fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
    remote = IncrementalPLS(3).fit(*(array.from_array(a[:1000], chunks=(300, *a.shape[1:])) for a in (X, y)))
    remote.partial_fit(*(array.from_array(a[1000:], chunks=(200, *a.shape[1:])) for a in (X, y)))
    assert remote.n_samples_seen_ == 1600
    exact = IncrementalPLS(3).fit(X, y)
    for model in (local, remote):
        assert (np.array(sines(model.x_weights_, exact.x_weights_)) <= 2 * model.subspace_error_ + 1e-6).all()


@pytest.mark.parametrize("rows", [slice(0, 1), slice(0, 3)])
def test_a_fit_without_components_continues(rows):
    X, y = regression_data(700, 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = IncrementalPLS(1).fit(X, np.zeros(700)).partial_fit(X[rows], y[rows])
        assert np.isfinite(model.coef_).all()
        model = clone(model).fit(X[:1], y[:1]).partial_fit(X, y)
    exact = IncrementalPLS(1).fit(np.r_[X[:1], X], np.r_[y[0], y])
    assert relative_error(model.coef_, exact.coef_) < 1e-9


@pytest.mark.parametrize("order", ["partial_fit", "merge", "merged into"])
def test_a_fit_of_fewer_components_than_asked_for_continues(order, tmp_path):
    rng = np.random.default_rng(0)
    X, y = power_law(60, 3000, 1.0)
    R = np.outer(rng.normal(size=60), rng.normal(size=3000))
    with pytest.warns(UserWarning, match="only"):
        model = IncrementalPLS(3).fit(R, R[:, 0])
    if order == "partial_fit":
        model.partial_fit(X, y)
    elif order == "merge":
        model.merge(IncrementalPLS(3).fit(X, y))
    else:
        model = IncrementalPLS(3).fit(X, y).merge(model)
    exact = IncrementalPLS(3).fit(np.r_[R, X], np.r_[R[:, 0], y])
    assert (np.array(sines(model.x_weights_, exact.x_weights_)) <= 2 * model.subspace_error_ + 1e-6).all()
    path = tmp_path / "model.plstream"
    save(model, path)
    loaded = load(path).partial_fit(X, y)
    np.testing.assert_array_equal(loaded.coef_, model.partial_fit(X, y).coef_)
