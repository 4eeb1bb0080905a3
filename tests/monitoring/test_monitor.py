"""T2, Q and their limits against scikit-learn's scores and loadings, dense eigenvalues, and counted rows."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.cross_decomposition import PLSRegression
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from plstream import IncrementalPLS, StreamingPipeline, open_source
from plstream.monitoring import Monitor
from plstream.monitoring.limits import Q_LIMITS, residual_traces

from ..oracles import regression_data
from ..real_data import real_data


def process(n, m, seed, *, n_new=2000, k=3, noise=0.3):
    """Return rows of a process, their y, and new rows of the same: k factors and noise."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n + n_new, k))
    X = factors @ (rng.normal(size=(k, m)) * np.linspace(1, 0.5, k)[:, None]) + noise * rng.normal(size=(n + n_new, m))
    y = factors @ np.linspace(1, 2, k) + 0.1 * rng.normal(size=n + n_new)
    return X[:n], y[:n], X[n:]


def streamed(X, y, c=3, **parameters):
    return IncrementalPLS(c, **parameters).partial_fit(X, y)


def dense(X, y, c, Z, *, scale=True):
    """T2 and Q of Z, and the residuals of X, from scikit-learn's model."""
    pls = PLSRegression(c, scale=scale).fit(X, y)
    deviation = X.std(axis=0, ddof=1) if scale else np.ones(X.shape[1])
    scores = pls.transform(Z)
    t2 = np.sum(scores**2 / pls.x_scores_.var(axis=0, ddof=1), axis=1)
    residuals = (Z - X.mean(axis=0)) / deviation - scores @ pls.x_loadings_.T
    own = (X - X.mean(axis=0)) / deviation - pls.x_scores_ @ pls.x_loadings_.T
    return t2, np.sum(residuals**2, axis=1), own


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("parameters", [{"solver": "gram"}, {"solver": "sketch", "sketch_size": 60}], ids=str)
def test_equals_scikit_learn(scale, parameters):
    X, y = regression_data(150, 12)
    Z = X[100:] + 0.1
    X, y = X[:100], y[:100]
    model = IncrementalPLS(4, scale=scale, **parameters).fit(X, y)
    t2, q, residuals = dense(X, y, 4, Z, scale=scale)
    monitor = Monitor(model)
    np.testing.assert_allclose(monitor.t2(Z), t2, rtol=1e-8)
    np.testing.assert_allclose(monitor.q(Z), q, rtol=1e-8)
    eigenvalues = np.linalg.eigvalsh(residuals.T @ residuals / 99)
    traces = residual_traces(model._solution(), model._fitted.stream.current())
    for k, trace in enumerate(traces[:3], 1):
        assert trace * traces.unit**k == pytest.approx(np.sum(eigenvalues**k), rel=1e-6)


def test_reference_rows_after_multipass():
    X, y, Z = process(300, 15, 0)
    exact, stream = IncrementalPLS(3).fit(X, y), streamed(X, y)
    np.testing.assert_allclose(Monitor(exact).q(Z), Monitor(stream).q(Z), rtol=1e-8)
    again = Monitor(exact, held_out=False).partial_fit(X)
    from_state = Monitor(stream)
    np.testing.assert_allclose(again.t2(Z), from_state.t2(Z), rtol=1e-8)
    assert again.t2_limit_ == pytest.approx(from_state.t2_limit_)
    # One from the moments of Q, the other from the covariance of residuals.
    assert again.q_limit_ == pytest.approx(from_state.q_limit_, rel=0.1)
    assert again.q_limit_ > Monitor(exact).partial_fit(X).q_limit_


def test_reference_rows_give_moments():
    X, y, Z = process(200, 15, 1)
    monitor = Monitor(streamed(X, y), q_limit="box").partial_fit(Z)
    scores = monitor.model.transform(Z)
    centred = scores - scores.mean(axis=0)
    t2 = np.einsum("ij,ij->i", centred @ np.linalg.inv(np.cov(scores.T)), centred)
    np.testing.assert_allclose(monitor.t2(Z), t2, rtol=1e-8)
    q = monitor.q(Z)
    traces = monitor._known().residuals
    unit = traces.unit
    assert traces.first * unit == pytest.approx(q.mean())
    assert 2 * traces.second * unit**2 == pytest.approx(q.var(ddof=1))
    third = np.sum((q - q.mean()) ** 3) / (len(q) - 1)
    assert 8 * traces.third * unit**3 == pytest.approx(third, rel=1e-6)
    assert monitor.n_reference_rows_ == 2000


def test_neither_chunks_nor_the_order_of_rows_matter():
    X, y, Z = process(400, 15, 2)
    order = np.random.default_rng(0).permutation(400)
    expected = Monitor(streamed(X, y)).partial_fit(Z)
    model = IncrementalPLS(3)
    for rows in np.split(order, [1, 2, 50]):
        model.partial_fit(X[rows], y[rows])
    monitor = Monitor(model)
    assert monitor.q_limit_ == pytest.approx(Monitor(streamed(X, y)).q_limit_)
    for part in np.array_split(Z[::-1], [1, 7, 900]):
        monitor.partial_fit(part)
    assert monitor.q_limit_ == pytest.approx(expected.q_limit_)
    np.testing.assert_allclose(monitor.t2(Z), expected.t2(Z), rtol=1e-7)


@pytest.mark.parametrize(
    ("n", "m", "parameters", "n_reference", "tolerance"),
    [
        (1000, 20, {"solver": "gram"}, 0, 0.003),
        (150, 60, {"solver": "gram"}, 0, 0.006),
        (1000, 100, {"solver": "sketch", "sketch_size": 40}, 0, 0.004),
        (60, 100, {"solver": "multipass"}, 200, 0.008),
    ],
    ids=["many rows", "few rows", "sketch", "reference rows"],
)
def test_false_alarms_are_as_many_as_promised(n, m, parameters, n_reference, tolerance):
    """At level 0.99, one row in a hundred of the same process is above each limit, to within the tolerance."""
    rates = []
    for seed in range(25):
        X, y, Z = process(n, m, seed)
        monitor = Monitor(IncrementalPLS(3, **parameters).fit(X, y))
        if n_reference:
            monitor.partial_fit(Z[:n_reference])
        checked = monitor.check(Z[n_reference:])
        rates.append((checked.t2_alarm.mean(), checked.q_alarm.mean()))
    t2_rate, q_rate = np.mean(rates, axis=0)
    assert t2_rate == pytest.approx(0.01, abs=tolerance)
    assert q_rate == pytest.approx(0.01, abs=tolerance)


@pytest.mark.parametrize("q_limit", Q_LIMITS)
def test_other_limits_and_levels(q_limit):
    X, y, Z = process(1000, 20, 3, n_new=20_000)
    for level in (0.9, 0.99):
        checked = Monitor(streamed(X, y), level=level, q_limit=q_limit).check(Z)
        assert checked.q_alarm.mean() == pytest.approx(1 - level, rel=0.6)
        assert checked.t2_alarm.mean() == pytest.approx(1 - level, rel=0.3)
        np.testing.assert_array_equal(checked.alarm, checked.q_alarm | checked.t2_alarm)


def test_false_alarms_on_spectra():
    """Spectra are not normal, so there are more: 4.1 % for T2 and 1.6 % for Q in these splits, at level 0.99."""
    data = real_data("spectra/tecator.npz")
    X, y = data["X"], data["Y_water_fat_protein"][:, 1]
    rates = []
    for seed in range(30):
        order = np.random.default_rng(seed).permutation(len(X))
        checked = Monitor(streamed(X[order[:150]], y[order[:150]])).check(X[order[150:]])
        rates.append((checked.t2_alarm.mean(), checked.q_alarm.mean()))
    assert (np.mean(rates, axis=0) < 0.06).all()


@pytest.mark.parametrize("solver", ["gram", "sketch", "multipass"])
def test_a_fault_is_found_with_its_feature(solver):
    X, y, Z = process(500, 30, 4)
    model = IncrementalPLS(3, solver=solver).fit(X, y)
    monitor = Monitor(model).partial_fit(X)
    # Three deviations of the feature: it would be nothing unusual if it were looked at alone.
    faulty = Z[:200].copy()
    faulty[:, 17] += 3 * X[:, 17].std()
    assert monitor.check(faulty).q_alarm.mean() > 0.95
    contributions = monitor.contributions(faulty, "q")
    assert (contributions.argmax(axis=1) == 17).mean() > 0.95


def test_a_fault_within_the_model_is_found_with_its_feature():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6))
    monitor = Monitor(streamed(X, X @ [3.0, -2, 1, 1, 0, 0] + rng.normal(size=500), c=2))
    faulty = rng.normal(size=(200, 6))
    faulty[:, 1] += 9
    assert monitor.check(faulty).t2_alarm.mean() > 0.9
    assert (monitor.contributions(faulty, "t2").argmax(axis=1) == 1).mean() > 0.9


def test_an_extreme_row_within_the_model_is_found_by_t2_alone():
    X, y, _ = process(500, 30, 5)
    model = streamed(X, y)
    extreme = model.inverse_transform(6 * model.transform(X).std(axis=0)[None])
    checked = Monitor(model).check(extreme)
    assert checked.t2_alarm.all()
    assert not checked.q_alarm.any()
    assert checked.t2[0] == pytest.approx(3 * 36, rel=0.01)


@pytest.mark.parametrize("statistic", ["t2", "q"])
@pytest.mark.parametrize("reference", [True, False])
def test_contributions_sum_to_the_statistic(statistic, reference):
    X, y, Z = process(200, 15, 6)
    monitor = Monitor(streamed(X, y))
    if reference:
        monitor.partial_fit(Z)
    contributions = monitor.contributions(Z, statistic)
    assert contributions.shape == Z.shape
    assert statistic == "t2" or contributions.min() >= 0
    np.testing.assert_allclose(contributions.sum(axis=1), getattr(monitor, statistic)(Z), rtol=1e-8)


def test_the_monitor_is_of_the_model_as_it_was():
    X, y, Z = process(200, 15, 7)
    model = streamed(X, y)
    monitor = Monitor(model)
    before = monitor.t2_limit_, monitor.q_limit_, monitor.q(Z)
    model.partial_fit(100 + 10 * Z[:1000], np.arange(1000.0))
    assert (monitor.t2_limit_, monitor.q_limit_) == before[:2]
    np.testing.assert_array_equal(monitor.q(Z), before[2])


def test_forgotten_rows_count_less():
    X, y, Z = process(3000, 10, 8)
    model = streamed(np.r_[50 + 5 * X, X], np.r_[y, y], forgetting=0.99)
    checked = Monitor(model).check(Z)
    assert checked.alarm.mean() < 0.06
    # As many rows as weigh as much: about 200.
    assert Monitor(model).t2_limit_ == pytest.approx(Monitor(streamed(X[:199], y[:199])).t2_limit_, rel=1e-3)


def test_weights_have_no_unit():
    X, y, Z = process(300, 10, 9)
    expected = Monitor(streamed(X, y, scale=False))
    monitor = Monitor(IncrementalPLS(3, scale=False).partial_fit(X, y, np.full(300, 1e-3)))
    assert monitor.q_limit_ == pytest.approx(expected.q_limit_)
    assert monitor.t2_limit_ == pytest.approx(expected.t2_limit_)
    np.testing.assert_allclose(monitor.t2(Z), expected.t2(Z), rtol=1e-7)


def test_kinds_of_rows(tmp_path):
    X, y, Z = process(300, 12, 10)
    monitor = Monitor(streamed(X, y))
    expected = monitor.check(Z)
    read_only = Z.copy()
    read_only.flags.writeable = False
    for rows in (np.asfortranarray(Z), read_only, sparse.csr_matrix(Z), Z.tolist()):
        np.testing.assert_allclose(monitor.check(rows).q, expected.q)
    np.testing.assert_allclose(monitor.check(Z.astype(np.float32)).t2, expected.t2, rtol=1e-4)
    np.testing.assert_allclose(np.concatenate([monitor.q(row[None]) for row in Z[:5]]), expected.q[:5])
    np.save(tmp_path / "Z.npy", Z)
    source = open_source(tmp_path / "Z.npy", batch_size=130)
    np.testing.assert_allclose(monitor.check(source).t2, expected.t2)
    np.testing.assert_allclose(monitor.contributions(source, "t2"), monitor.contributions(Z, "t2"))
    assert Monitor(streamed(X, y)).partial_fit(source).q_limit_ == pytest.approx(
        Monitor(streamed(X, y)).partial_fit(Z).q_limit_
    )


def test_names_of_features():
    pandas = pytest.importorskip("pandas")
    X, y, Z = process(100, 4, 11)
    names = ["a", "b", "c", "d"]
    monitor = Monitor(streamed(pandas.DataFrame(X, columns=names), y, c=2))
    assert list(monitor.feature_names_) == names
    assert list(Monitor(streamed(X, y, c=2)).feature_names_) == ["x0", "x1", "x2", "x3"]
    with pytest.raises(ValueError, match="feature names"):
        monitor.check(pandas.DataFrame(Z, columns=names[::-1]))


def test_pickle():
    X, y, Z = process(100, 10, 12)
    for monitor in (Monitor(streamed(X, y)), Monitor(streamed(X, y)).partial_fit(Z)):
        twin = pickle.loads(pickle.dumps(monitor))  # noqa: S301
        np.testing.assert_array_equal(twin.check(Z).alarm, monitor.check(Z).alarm)


@pytest.mark.parametrize("solver", ["gram", "sketch"])
@pytest.mark.parametrize("unit", [1.0, 1e8, 1e-140, 1e140])
@pytest.mark.parametrize("scale", [True, False])
def test_units_and_offsets(solver, unit, scale):
    X, y, Z = process(300, 10, 13, n_new=500)
    model = streamed(X, y, scale=scale, solver=solver)
    other = streamed(X * unit + unit, y, scale=scale, solver=solver)
    expected, checked = Monitor(model).check(Z), Monitor(other).check(Z * unit + unit)
    np.testing.assert_allclose(checked.t2, expected.t2, rtol=1e-6)
    np.testing.assert_array_equal(checked.q_alarm, expected.q_alarm)


def test_far_from_zero():
    X, y, Z = process(300, 10, 14)
    far = Monitor(streamed(X + 1e8, y)).check(Z + 1e8)
    np.testing.assert_allclose(far.q, Monitor(streamed(X, y)).check(Z).q, rtol=1e-4)


def test_columns_that_are_constant_or_copies():
    X, y, Z = process(300, 10, 15)
    X[:, 3], Z[:, 3] = 7.0, 7.0
    X[:, 4], Z[:, 4] = X[:, 5], Z[:, 5]
    monitor = Monitor(streamed(X, y))
    assert monitor.check(Z).q_alarm.mean() < 0.03
    Z[0, 3] = 12.0
    assert monitor.check(Z[:1]).q_alarm.all()
    assert monitor.contributions(Z[:1], "q")[0, 3] == pytest.approx(25)


@pytest.mark.filterwarnings("ignore:.*component")
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_data_of_low_rank(rank):
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(rank, 6))
    X = rng.normal(size=(100, rank)) @ directions + 3.0
    monitor = Monitor(streamed(X, X.sum(axis=1), c=3))
    # What is left of X is rounding errors, and no alarm.
    checked = monitor.check(rng.normal(size=(100, rank)) @ directions + 3.0)
    assert not checked.q_alarm.any()
    assert checked.t2_alarm.mean() < 0.1
    assert monitor.check(np.eye(6)[:1] * 9).q_alarm.all()
    assert monitor.contributions(X, "t2").shape == X.shape


@pytest.mark.filterwarnings("ignore:.*component")
def test_too_few_rows():
    X, y, Z = process(100, 10, 16)
    with pytest.raises(ValueError, match="too few rows to estimate limits: call partial_fit"):
        Monitor(streamed(X[:5], y[:5])).t2_limit_  # noqa: B018
    with pytest.raises(ValueError, match="4 reference rows are too few for 3 components"):
        Monitor(streamed(X, y)).partial_fit(Z[:4]).check(Z)
    with pytest.raises(ValueError, match="collinear"):
        Monitor(streamed(X, y)).partial_fit(np.repeat(Z[:2], 10, axis=0)).check(Z)
    wide = Monitor(streamed(X[:20].repeat(30, axis=1), y[:20]))
    assert np.isfinite([wide.t2_limit_, wide.q_limit_]).all()


@pytest.mark.parametrize("kind", [Pipeline, StreamingPipeline])
def test_pipelines(kind):
    X, y, _ = process(100, 5, 0)
    pipeline = kind([("scale", StandardScaler()), ("pls", IncrementalPLS(2, solver="gram"))]).fit(X, y)
    monitor, expected = Monitor(pipeline), Monitor(pipeline[-1])
    rows = pipeline[:-1].transform(X)
    np.testing.assert_array_equal(monitor.t2(X), expected.t2(rows))
    np.testing.assert_array_equal(monitor.contributions(X), expected.contributions(rows))
    assert monitor.partial_fit(X).q_limit_ == expected.partial_fit(rows).q_limit_
    # What the pipeline learns later changes neither the model nor the steps of the monitor.
    before = monitor.q(X)
    pipeline.fit(10 * X + 3, y)
    np.testing.assert_array_equal(monitor.q(X), before)


def test_pipelines_in_blocks():
    X, y, _ = process(100, 5, 0)
    pipeline = StreamingPipeline([("scale", StandardScaler()), ("pls", IncrementalPLS(2))]).fit(X, y)
    monitor = Monitor(pipeline)
    np.testing.assert_allclose(monitor.check(open_source(X, batch_size=13)).q, monitor.q(X))
    with pytest.raises(TypeError, match="use a StreamingPipeline"):
        Monitor(Pipeline(pipeline.steps)).q(open_source(X))
    with pytest.raises(TypeError, match="not PLSRegression"):
        Monitor(Pipeline([("scale", StandardScaler()), ("pls", PLSRegression())]))


def test_bad_calls():
    X, y, Z = process(100, 10, 17)
    model = streamed(X, y)
    with pytest.raises(TypeError, match="not PLSRegression"):
        Monitor(PLSRegression().fit(X, y))
    with pytest.raises(NotFittedError):
        Monitor(IncrementalPLS())
    with pytest.raises(ValueError, match="level must be a share between 0 and 1, not 95"):
        Monitor(model, level=95)
    with pytest.raises(ValueError, match="q_limit must be one of 'pearson'"):
        Monitor(model, q_limit="none")
    monitor = Monitor(model).partial_fit(Z)
    before = monitor.q_limit_
    for bad, message in ((np.nan, "row 3, column 2"), (np.inf, "infinity"), (1e200, "overflow")):
        faulty = Z.copy()
        faulty[3, 2] = bad
        for call in (monitor.partial_fit, monitor.check, monitor.q, monitor.contributions):
            with pytest.raises(ValueError, match=message):
                call(faulty)
    with pytest.raises(ValueError, match="features"):
        monitor.check(Z[:, 1:])
    with pytest.raises(ValueError, match="statistic must be 't2' or 'q'"):
        monitor.contributions(Z, "spe")
    assert monitor.q_limit_ == before
    assert monitor.n_reference_rows_ == len(Z)


def test_rows_elsewhere():
    """Statistics of a Dask array are computed later; reference rows would be, too, so these are refused."""
    da = pytest.importorskip("dask.array", reason="needs Dask")
    X, y = regression_data(100, 6)
    monitor, rows = Monitor(streamed(X, y)), da.from_array(X, chunks=(30, 6))
    np.testing.assert_allclose(monitor.t2(rows).compute(scheduler="sync"), monitor.t2(X), rtol=1e-12)
    with pytest.raises(TypeError, match="Reference rows cannot be a Dask collection"):
        monitor.partial_fit(rows)
    assert monitor.n_reference_rows_ == 0


def test_repr_of_a_check():
    X, y = regression_data(100, 6)
    checked = Monitor(streamed(X, y), level=0.9).check(X)
    n, t2, q = checked.alarm.sum(), checked.t2_alarm.sum(), checked.q_alarm.sum()
    assert repr(checked) == f"<Checked: {n} of 100 rows above a limit, {t2} of T2 and {q} of Q>"
    assert len(checked) == 4


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_missing_values(share):
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(4, 30))

    def rows(n):
        scores = rng.normal(size=(n, 4))
        X = scores @ loadings + rng.normal(size=(n, 30))
        return X, np.where(rng.random(X.shape) < share, np.nan, X), scores[:, 0]

    _, gaps, y = rows(2000)
    monitor = Monitor(IncrementalPLS(4, missing="model").partial_fit(gaps, y))
    complete, incomplete, _ = rows(3000)
    for checked in (monitor.check(complete), monitor.check(incomplete)):
        assert checked.t2_alarm.mean() < 0.025
        assert checked.q_alarm.mean() < 0.025
    contributions = monitor.contributions(incomplete, "q")
    assert not contributions[np.isnan(incomplete)].any()
    np.testing.assert_allclose(contributions.sum(axis=1), monitor.q(incomplete))
    t2 = monitor.contributions(incomplete[:50], "t2")
    np.testing.assert_allclose(t2.sum(axis=1), monitor.t2(incomplete[:50]), rtol=1e-6)
    again = Monitor(monitor.model).partial_fit(incomplete).check(rows(3000)[1])
    assert 0.002 < again.q_alarm.mean() < 0.025
    with pytest.raises(ValueError, match="NaN"):
        Monitor(IncrementalPLS(4).fit(complete, complete[:, 0])).check(incomplete)
