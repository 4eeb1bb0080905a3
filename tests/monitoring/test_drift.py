"""Drift: planted changes are detected in the right statistic, and unchanged streams raise no alarm."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn.cross_decomposition import PLSRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from plstream import IncrementalPLS, IncrementalPLSClassifier, IncrementalPLSClassifierCV, StreamingPipeline
from plstream.monitoring import DriftTracker, Monitor

from ..real_data import real_data


def batches(n, seed, change=lambda X, y: (X, y), *, at=0, size=50, m=10):
    """Yield batches of a stream of three factors, changed from one of them on."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(3, m))
    for i in range(n):
        factors = rng.normal(size=(size, 3))
        X = factors @ loadings + 0.3 * rng.normal(size=(size, m))
        y = factors @ [1.0, 2.0, -1.0] + 0.3 * rng.normal(size=size)
        yield change(X, y) if i >= at else (X, y)


def track(stream, model=None, **parameters):
    tracker = DriftTracker(IncrementalPLS(3) if model is None else model, **parameters)
    for X, y in stream:
        tracker.partial_fit(X, y)
    return tracker


def mean_of_a_feature(X, y):
    X[:, 2] += 2 * X[:, 2].std()
    return X, y


def relation(X, y):
    return X, -y


def broken_sensor(X, y):
    X[:, 2] = X[::-1, 2].copy()
    return X, y


@pytest.mark.parametrize(
    ("change", "sign"), [(mean_of_a_feature, "shift"), (relation, "error"), (broken_sensor, "outside")]
)
def test_a_change_shows_within_a_few_batches(change, sign):
    for seed in range(5):
        tracker = track(batches(45, seed, change, at=35))
        assert all(i >= 35 for i, _ in tracker.alarms_)
        first = {name: i for i, batch in reversed(tracker.alarms_) for name in batch.alarms}
        assert first[sign] <= 41
        if sign == "shift":
            batch = dict(tracker.alarms_)[first[sign]]
            assert batch.shifted_feature == "x2"
            assert batch.shift == pytest.approx(2, abs=0.7)
            assert "the mean of x2 is" in tracker.summary()


@pytest.mark.parametrize(("size", "forgetting"), [(50, 1.0), (50, 0.999), (3, 1.0)])
def test_a_stream_that_does_not_change_raises_no_alarm(size, forgetting):
    """Of 1,440 batches none: simulations of 30,000 batches had none."""
    for seed in range(8):
        tracker = track(batches(60, seed, size=size), IncrementalPLS(3, forgetting=forgetting))
        assert not tracker.alarms_
        assert "No significant change" in tracker.summary()


def spectra(n, seed, change="", *, at=0, size=50, rows=2000):
    """Yield batches of spectra of four substances with a baseline, changed from one of them on.

    A new lamp is a gain and a baseline that depend on the wavelength, and a slow one takes so many rows. A new
    ingredient is a substance more, that y depends on.
    """
    rng = np.random.default_rng(seed)
    axis = np.linspace(0, 1, 60)
    centres, widths = rng.uniform(size=(5, 3, 1)), rng.uniform(0.04, 0.15, size=(5, 3, 1))
    pure = (rng.uniform(0.3, 1, size=(5, 3, 1)) * np.exp(-0.5 * ((axis - centres) / widths) ** 2)).sum(axis=1)
    lamp = 0.02 * np.sin(2 * np.pi * (axis * rng.uniform(0.5, 1.5) + rng.uniform()))
    for i in range(n):
        amounts = 1 + 0.3 * rng.normal(size=(size, 4))
        X = amounts @ pure[:4] + 0.02 * rng.normal(size=(size, 1))
        y = amounts @ [1.0, 0.5, 0.0, 0.0] + 0.03 * rng.normal(size=size)
        if i >= at and "ingredient" in change:
            more = 0.05 + 0.15 * np.abs(rng.normal(size=size))
            X, y = X + np.outer(more, pure[4]), y + more
        if i >= at and "lamp" in change:
            X = X * (1 + lamp * min(1.0, (i - at + 1) * size / rows if "slow" in change else 1.0))
        if i >= at and "relation" in change:
            y = y + 0.3 * (amounts[:, 2] - 1)
        yield X + 0.004 * rng.normal(size=X.shape), y


@pytest.mark.parametrize(
    ("change", "at", "within"), [("lamp, ingredient", 12, 1), ("lamp, ingredient", 50, 1), ("relation", 50, 4)]
)
@pytest.mark.parametrize("forgetting", [1.0, 0.99, 0.95])
def test_a_change_that_the_model_follows_at_once_is_reported(change, at, within, forgetting):
    for seed in range(2):
        tracker = track(spectra(at + 6, seed, change, at=at), IncrementalPLS(5, forgetting=forgetting))
        found = [i - at for i, _ in tracker.alarms_]
        assert found
        assert 0 <= min(found) < within


@pytest.mark.parametrize("forgetting", [1.0, 0.95])
def test_a_slow_change_is_reported_by_the_reference(forgetting):
    for seed in range(2):
        tracker = track(spectra(90, seed, "slow lamp", at=50), IncrementalPLS(5, forgetting=forgetting))
        (first, batch), *_ = tracker.alarms_
        assert 50 < first < 80
        assert "reference" in batch.reasons[0]
        assert tracker.changed_


def test_the_reference_is_the_model_after_thirty_batches():
    stream = list(batches(45, 0))
    tracker = track(stream)
    X, y = (np.concatenate(parts) for parts in zip(*stream[:30], strict=True))
    model = PLSRegression(3).fit(X, y)
    assert [batch.reference is None for batch in tracker.history_] == [i < 30 for i in range(45)]
    Z, z = stream[-1]
    measured = tracker.history_[-1].reference
    assert measured.error == pytest.approx(np.sqrt(np.mean((z - model.predict(Z)) ** 2)) / y.std(ddof=1))

    def q(rows):
        scaled = (rows - X.mean(axis=0)) / X.std(axis=0, ddof=1)
        return np.sum((scaled - model.transform(rows) @ model.x_loadings_.T) ** 2, axis=1)

    assert measured.outside == pytest.approx(q(Z).mean() / (q(X).sum() / (len(X) - 1)))
    shifts = np.abs(Z.mean(axis=0) - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    assert measured[2:] == (pytest.approx(shifts.max()), f"x{shifts.argmax()}")


def test_a_model_that_has_learnt_before_is_the_reference():
    stream = list(batches(30, 0))
    X, y = (np.concatenate(parts) for parts in zip(*stream[:10], strict=True))
    tracker = track(stream[10:], IncrementalPLS(3).partial_fit(X, y))
    assert "after 0 batches" in tracker.summary()
    (Z, z), first = stream[10], tracker.history_[0]
    error = np.sqrt(np.mean((z - PLSRegression(3).fit(X, y).predict(Z)) ** 2)) / y.std(ddof=1)
    assert first.n_seen == 500
    assert first.error == first.reference.error == pytest.approx(error)
    for solver in ("gram", "sketch"):
        few = IncrementalPLS(3, solver=solver).partial_fit(X[:20], y[:20])
        assert track(stream[10:], few).history_[0].reference is None


def test_a_change_is_reported_once_until_it_is_over_or_acknowledged():
    def stream(seed, n, *, changed):
        return batches(n, seed, relation if changed else lambda X, y: (X, y))

    def follow(seed, n, *, changed):
        for X, y in stream(0, seed + n, changed=changed):
            tracker.partial_fit(X, y)
        return [i for i, batch in tracker.alarms_ if "error" in batch.alarms]

    tracker = DriftTracker(IncrementalPLS(3, forgetting=0.99))
    assert follow(0, 50, changed=False) == []
    assert tracker.changed_ == ()
    assert follow(0, 40, changed=True) == [50]
    assert tracker.changed_ == ("error",)
    assert "changed since: error. If the change is permanent, call set_reference." in tracker.summary()
    # Back to what it was: that is no change from the reference, but one from the batches just before.
    once = follow(0, 40, changed=False)
    assert once in ([50], [50, 90])
    assert tracker.changed_ == ()
    assert follow(0, 40, changed=True)[len(once) :] == [130]
    assert tracker.set_reference().changed_ == ()
    assert len(follow(0, 60, changed=True)) == len(once) + 1
    assert follow(0, 5, changed=False)[len(once) + 1 :] == [230]


def test_batches_after_a_change_are_not_the_reference():
    """A change as early as that leaves nothing to compare with but the batches since."""
    tracker = track(batches(70, 0, relation, at=32), IncrementalPLS(3, forgetting=0.99))
    assert [i for i, _ in tracker.alarms_] == [32]
    assert tracker.history_[32].reference is not None
    assert all(batch.reference is None for batch in list(tracker.history_)[33:63])
    assert tracker.history_[-1].reference.error < 2 * tracker.history_[31].error


def test_reasons_say_how_much_and_since_when():
    tracker = track(batches(60, 1, relation, at=50))
    ((_, batch),) = tracker.alarms_
    times = batch.reference.error / np.median([b.reference.error for b in list(tracker.history_)[30:50]])
    assert batch.alarms == ("error",)
    (reason,) = batch.reasons
    assert reason.startswith(f"the error rose to {batch.reference.error:.3g}, ")
    assert float(reason.split(", ")[1].split()[0]) == pytest.approx(times, rel=0.1)
    assert reason.endswith("times what is usual for the reference")
    slow = track(spectra(90, 0, "slow lamp", at=50), IncrementalPLS(5))
    number, batch = slow.alarms_[0]
    assert 40 <= int(batch.reasons[0].split("since about batch ")[1].split(",")[0]) <= number


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("unit", [1000.0, 1e-6])
def test_units_of_y_do_not_matter(scale, unit):
    stream = list(batches(45, 0, relation, at=40))
    expected = track(stream, IncrementalPLS(3, scale=scale))
    actual = track(((X, unit * y) for X, y in stream), IncrementalPLS(3, scale=scale))
    assert [batch.alarms for batch in actual.history_] == [batch.alarms for batch in expected.history_]
    for a, b in zip(actual.history_, expected.history_, strict=True):
        np.testing.assert_allclose(a[2:5], b[2:5], rtol=1e-9)
    assert actual.summary() == expected.summary()
    # The error in deviations of y, which the model without scaling does not divide by.
    X, y = (np.concatenate(parts) for parts in zip(*stream[:39], strict=True))
    model = PLSRegression(3, scale=scale).fit(X, y)
    Z, z = stream[39]
    error = np.sqrt(np.mean((z - model.predict(Z)) ** 2)) / y.std(ddof=1)
    assert actual.history_[39].error == pytest.approx(error)


def test_weights_count():
    rng = np.random.default_rng(0)
    stream = [(X, y, rng.integers(1, 4, size=50)) for X, y in batches(15, 0)]
    weighted, repeated = DriftTracker(IncrementalPLS(3)), DriftTracker(IncrementalPLS(3))
    for X, y, weight in stream[:-1]:
        weighted.partial_fit(X, y, sample_weight=weight.astype(float))
        repeated.partial_fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    X, y, _ = stream[-1]
    for tracker in (weighted, repeated):
        tracker.partial_fit(X, y)
    # n - 1 is not the same for weights and for rows.
    np.testing.assert_allclose(weighted.history_[-1][2:5], repeated.history_[-1][2:5], rtol=2e-3)


@pytest.mark.parametrize(
    "model", [IncrementalPLSClassifier(3), IncrementalPLSClassifierCV(3)], ids=["classifier", "cv"]
)
def test_labels(model):
    def labelled(n, seed, change=lambda X, y: (X, y), at=0):
        return ((X, np.where(y > 0, "high", "low")) for X, y in batches(n, seed, change, at=at))

    tracker = track(labelled(55, 0, relation, at=50), model)
    assert [i for i, _ in tracker.alarms_] == [50]
    assert tracker.history_[50].reference.error > 0.8
    usual = np.mean([batch.reference.error for batch in list(tracker.history_)[30:50]])
    (reason,) = tracker.history_[50].reasons
    assert float(reason.split(", where ")[1].split()[0]) == pytest.approx(usual, rel=0.2)


def test_a_new_class_begins_a_new_reference():
    tracker = track(((X, (y > 0).astype(int)) for X, y in batches(35, 0)), IncrementalPLSClassifier(3))
    assert tracker.history_[-1].reference is not None
    tracker.model.add_class(2)
    for X, y in batches(70, 1):
        tracker.partial_fit(X, np.digitize(y, [0, 3]))
    assert all(batch.reference is None for batch in list(tracker.history_)[35:65])
    assert tracker.history_[-1].reference is not None


def test_a_wrong_label_after_none_is_no_alarm():
    rng = np.random.default_rng(0)
    tracker = DriftTracker(IncrementalPLSClassifier(1))
    for i in range(60):
        X = rng.normal(size=(50, 4))
        X[:, 0] += np.where(X[:, 0] > 0, 5, -5)
        tracker.partial_fit(X, (X[:, 0] > 0) ^ ((np.arange(50) == 7) & (i in {45, 55})))
    errors = [batch.error for batch in tracker.history_]
    assert np.flatnonzero(np.nan_to_num(errors)).tolist() == [45, 55]
    assert not tracker.alarms_


def test_faults_of_a_chemical_plant():
    data = real_data("tennessee/braatz_00_10.npz")
    columns = [*range(22), *range(41, 52)]

    def follow(run):
        tracker = DriftTracker(IncrementalPLS(4, forgetting=0.99))
        for rows in (*np.split(data["d00"], 50), *np.split(data[run][:400], 40)):
            tracker.partial_fit(rows[:, columns], rows[:, 34:36])
        return [i for i, _ in tracker.alarms_]

    assert follow("d00_te") == []
    # A step in the feed, its loss, and the temperature of cooling water: from row 160 on, which is batch 66.
    for fault in (1, 5, 6, 7):
        first = follow(f"d{fault:02}_te")[0]
        assert 66 <= first <= 68


def test_recorded_statistics():
    stream = list(batches(15, 0))
    tracker = track(stream)
    model = IncrementalPLS(3).partial_fit(
        np.concatenate([X for X, _ in stream[:-1]]), np.concatenate([y for _, y in stream[:-1]])
    )
    (X, y), last = stream[-1], tracker.history_[-1]
    before = np.concatenate([X for X, _ in stream[:-1]])
    assert (last.n_rows, last.n_seen) == (50, 700)
    error = np.sqrt(np.mean((y - model.predict(X)) ** 2)) / model.y_scale_[0]
    assert last.error == pytest.approx(error)
    monitor = Monitor(model)
    assert last.outside == pytest.approx(monitor.q(X).mean() / (monitor.q(before).sum() / 699))
    shifts = np.abs(X.mean(axis=0) - before.mean(axis=0)) / before.std(axis=0, ddof=1)
    assert last.shift == pytest.approx(shifts.max())
    assert last.shifted_feature == f"x{shifts.argmax()}"
    assert last.retained_variance == 1.0
    assert last.reference is None
    earlier = PLSRegression(3).fit(
        np.concatenate([X for X, _ in stream[:10]]), np.concatenate([y for _, y in stream[:10]])
    )
    angle = np.degrees(subspace_angles(tracker.model.x_rotations_, earlier.x_rotations_).max())
    assert last.angle == pytest.approx(angle, rel=1e-4)


def test_components_turn_with_the_stream():
    def other_factors(X, y):
        return X[:, ::-1], y

    turned = track(batches(60, 1, other_factors, at=30), IncrementalPLS(3, forgetting=0.99)).history_
    steady = track(batches(60, 1), IncrementalPLS(3, forgetting=0.99)).history_
    assert turned[-1].angle > 60
    assert turned[28].angle == steady[28].angle
    assert steady[-1].angle < turned[-1].angle / 2


def test_memory_is_bounded_and_one_change_is_one_alarm():
    tracker = track(batches(80, 2, relation, at=20), window=10, max_history=7)
    assert (len(tracker.history_), tracker.n_batches_) == (7, 80)
    assert len([i for i, batch in tracker.alarms_ if "error" in batch.alarms]) == 1
    assert all(len(total.usual) <= 10 for total in tracker._sums.values())
    assert all(len(total.usual) <= 100 for total in tracker._reference_sums.values())


def test_batches_of_different_sizes():
    rng = np.random.default_rng(0)
    X, y = (np.concatenate(parts) for parts in zip(*batches(60, 3), strict=True))
    parts = np.cumsum(rng.integers(1, 80, size=60))
    tracker = track(zip(np.split(X, parts[parts < 3000]), np.split(y, parts[parts < 3000]), strict=True))
    assert not tracker.alarms_
    # The first rows are too few to test with.
    tiny = track((X[i : i + 1], y[i : i + 1]) for i in range(40))
    assert [np.isnan(batch.error) for batch in tiny.history_] == [i < 5 for i in range(40)]
    assert np.isfinite(tiny.history_[-1].outside)


def test_kinds_of_rows():
    pandas = pytest.importorskip("pandas")
    stream = list(batches(15, 4))
    expected = track(stream).history_[-1]
    names = [f"n{i}" for i in range(10)]
    frames = track((pandas.DataFrame(X, columns=names), pandas.Series(y)) for X, y in stream).history_[-1]
    assert frames.shifted_feature == expected.shifted_feature.replace("x", "n")
    assert frames[:5] == pytest.approx(expected[:5])
    assert track((sparse.csr_matrix(X), y) for X, y in stream).history_[-1][:5] == pytest.approx(expected[:5])
    columns = track((X, np.c_[y, 1000 * y]) for X, y in stream).history_[-1]
    assert columns[:5] == pytest.approx(expected[:5])


def test_hostile_columns():
    def spoil(X, y):
        X[:, 0], X[:, 1] = 5.0, X[:, 2]
        return 1e8 + X, y

    tracker = track(spoil(X, y) for X, y in batches(40, 5))
    assert not tracker.alarms_
    X, y = spoil(*next(iter(batches(1, 6))))
    X[:, 0] += 100
    # There is no deviation to measure it by, but it is far outside of the model.
    for _ in range(4):
        tracker.partial_fit(X, y)
    assert any("outside" in batch.alarms for _, batch in tracker.alarms_)


@pytest.mark.filterwarnings("ignore:.*component")
def test_responses_that_are_known_exactly_or_constant():
    exact = track((X, X[:, 0]) for X, _ in batches(40, 7))
    assert not exact.alarms_
    constant = track((X, np.ones(len(X))) for X, _ in batches(40, 8))
    assert not constant.alarms_
    assert np.isnan(constant.history_[-1].angle)


def test_failed_calls_change_nothing():
    stream = list(batches(15, 9))
    tracker = track(stream)
    X, y = stream[0]
    before = tracker.history_[-1], tracker.model.n_samples_seen_, tracker._moments.n_rows
    bad = X.copy()
    bad[3, 2] = np.nan
    for arguments in ((bad, y), (X, y[1:]), (X[:, 1:], y), (X, np.r_[y[1:], np.inf])):
        with pytest.raises(ValueError):  # noqa: PT011
            tracker.partial_fit(*arguments)
        assert (tracker.history_[-1], tracker.model.n_samples_seen_, tracker._moments.n_rows) == before
        assert tracker.n_batches_ == 15


def test_a_model_that_cannot_be_solved_has_not_learnt(monkeypatch):
    stream = list(batches(12, 0))
    tracker = track(stream[:11])
    before, coefficients = list(tracker.history_), tracker.model.coef_
    solve = IncrementalPLS._solution

    def fail_when_learnt(model):
        if model.n_samples_seen_ > 11 * 50:
            raise ValueError("no solution")
        return solve(model)

    with monkeypatch.context() as patch:
        patch.setattr(IncrementalPLS, "_solution", fail_when_learnt)
        with pytest.raises(ValueError, match="no solution"):
            tracker.partial_fit(*stream[11])
    np.testing.assert_array_equal(tracker.model.coef_, coefficients)
    assert list(tracker.history_) == before
    assert tracker.partial_fit(*stream[11]).history_ == track(stream).history_


def test_pipelines():
    """Steps that learn nothing: as if the rows were treated before."""
    stream = list(batches(30, 10))
    own = FunctionTransformer(np.tanh)
    tracker = DriftTracker(StreamingPipeline([("own", own), ("pls", IncrementalPLS(2))]))
    same = DriftTracker(IncrementalPLS(2))
    for X, y in stream:
        tracker.partial_fit(X, y)
        same.partial_fit(np.tanh(X), y)
    assert str(tracker.history_) == str(same.history_)
    before = str(tracker.history_), tracker.model.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        tracker.partial_fit(np.full_like(X, np.nan), y)
    assert str(tracker.history_) == before[0]
    np.testing.assert_array_equal(tracker.model.predict(X), before[1])


def test_bad_calls_and_no_batches():
    assert DriftTracker(IncrementalPLS()).summary() == "No batch has been seen yet."
    with pytest.raises(TypeError, match="not PLSRegression"):
        DriftTracker(PLSRegression())
    with pytest.raises(TypeError, match=r"or a StreamingPipeline with one, not Pipeline"):
        DriftTracker(make_pipeline(StandardScaler(), IncrementalPLS()))
    with pytest.raises(ValueError, match="has learnt too few rows to be a reference: call partial_fit"):
        DriftTracker(IncrementalPLS()).set_reference()
    with pytest.raises(ValueError, match="window=3 is too small"):
        DriftTracker(IncrementalPLS(), window=3)


def test_pickle():
    stream = list(batches(30, 10))
    tracker = track(stream[:20])
    twin = pickle.loads(pickle.dumps(tracker))  # noqa: S301
    for X, y in stream[20:]:
        tracker.partial_fit(X, y)
        twin.partial_fit(X, y)
    assert twin.history_ == tracker.history_ or str(twin.history_) == str(tracker.history_)
