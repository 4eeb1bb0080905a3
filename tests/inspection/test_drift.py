"""Drift: a change that was planted shows, in what it changes, and a stream that does not change raises no alarm."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn.cross_decomposition import PLSRegression

from plstream import IncrementalPLS
from plstream.inspection import DriftTracker, Monitor


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
    """Of 1,440 batches none: simulations of 30,000 batches had two."""
    for seed in range(8):
        tracker = track(batches(60, seed, size=size), IncrementalPLS(3, forgetting=forgetting))
        assert not tracker.alarms_
        assert "Nothing has changed" in tracker.summary()


def test_what_is_recorded():
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
    assert all(len(total.before) <= 10 for total in tracker._sums.values())


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


def test_bad_calls_and_no_batches():
    assert DriftTracker(IncrementalPLS()).summary() == "There has been no batch yet."
    with pytest.raises(TypeError, match="not of PLSRegression"):
        DriftTracker(PLSRegression())
    with pytest.raises(ValueError, match="window=3 is too few batches"):
        DriftTracker(IncrementalPLS(), window=3)


def test_pickle():
    stream = list(batches(30, 10))
    tracker = track(stream[:20])
    twin = pickle.loads(pickle.dumps(tracker))  # noqa: S301
    for X, y in stream[20:]:
        tracker.partial_fit(X, y)
        twin.partial_fit(X, y)
    assert twin.history_ == tracker.history_ or str(twin.history_) == str(tracker.history_)
