"""Every estimator through a file and back: bit-identical, and able to continue training."""

import warnings
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import plstream
from plstream import (
    CIPLS,
    ILFS,
    SGDPLS,
    IncrementalLDA,
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSCV,
    InfFSS,
    VIPSelector,
    load,
    save,
)
from plstream.monitoring import DriftTracker

from .models import CASES, STREAMS, assert_identical, data, fitted, learn, watchers

pytestmark = [
    pytest.mark.filterwarnings("ignore:The rows so far have only:UserWarning"),
    pytest.mark.filterwarnings("ignore:X and y have only:UserWarning"),
    pytest.mark.filterwarnings("ignore:sketch_size=:UserWarning"),
    pytest.mark.filterwarnings("ignore:The two factors have swapped:UserWarning"),
]


@pytest.fixture
def through_file(tmp_path):
    def there_and_back(model):
        save(model, tmp_path / "model.plstream")
        return load(tmp_path / "model.plstream")

    return there_and_back


def test_all_estimators_are_tested():
    estimators = {name for name in plstream.__all__ if isinstance(getattr(plstream, name), type)}
    assert estimators <= {type(case.model).__name__ for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_before_fit(case, through_file):
    model = clone(case.model)
    assert_identical(through_file(model), model)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_after_fit(case, through_file):
    X, y = data(case.target)
    model = fitted(case, X, y)
    twin = through_file(model)
    assert_identical(twin, model)
    assert_identical(twin.transform(X), model.transform(X))
    assert_identical(twin.transform(X[:1].astype(np.float32)), model.transform(X[:1].astype(np.float32)))
    if hasattr(model, "predict"):
        assert_identical(twin.predict(X), model.predict(X))
    if case.streams or "solver='multipass'" in str(case):
        assert_identical(learn(twin, X[:30], y[:30]), learn(model, X[:30], y[:30]))


# The numbers of the paper's own recursions overflow for large data.
SCALED = [
    pytest.param(case, scale, id=f"{case}-{scale}")
    for case in STREAMS
    for scale in (1.0, 1e150, 1e-150)
    if scale == 1.0 or getattr(case.model, "variant", "normalized") == "normalized"
]


@pytest.mark.parametrize(("case", "scale"), SCALED)
def test_in_mid_stream(case, scale, through_file):
    X, y = data(case.target)
    X *= scale
    model, twin = clone(case.model), clone(case.model)
    # Cut between a first row, a few, and the rest; the model is solved only at the last cut but one.
    for rows in (slice(0, 1), slice(1, 30), slice(30, 77), slice(77, 90)):
        twin = through_file(twin)
        assert_identical(twin, model)
        learn(model, X[rows], y[rows])
        learn(twin, X[rows], y[rows])
        if rows.start == 30:
            assert_identical(twin.transform(X), model.transform(X))
    assert_identical(twin, model)
    assert_identical(twin.transform(X), model.transform(X))


WATCHERS = watchers()


@pytest.mark.parametrize("name", WATCHERS)
def test_monitors_and_trackers(name, through_file):
    watcher = deepcopy(WATCHERS[name])
    twin = through_file(watcher)
    assert_identical(twin, watcher)
    if name.startswith("monitor"):
        X = data(n=30, seed=2)[0]
        if "nothing" not in name:
            assert_identical(twin.check(X), watcher.check(X))
            assert_identical(twin.contributions(X, "t2"), watcher.contributions(X, "t2"))
        twin, watcher = twin.partial_fit(X), watcher.partial_fit(X)
        assert_identical(twin, watcher)
        assert_identical(twin.check(X), watcher.check(X))
        return
    X, y = data({"values": "values", "classes": "many"}.get(name.split()[-1], "value"), n=72, seed=2)
    for start in range(0, 72, 9):
        rows = slice(start, start + 9)
        for each in (watcher, twin):
            learn(each, X[rows], y[rows])
        assert_identical(twin, watcher)
    assert twin.summary() == watcher.summary()
    assert_identical(through_file(twin.set_reference()), watcher.set_reference())


def test_a_tracker_that_is_saved_after_every_batch_finds_the_same(through_file):
    assert WATCHERS["tracker after a change"].changed_
    twin = DriftTracker(IncrementalPLS(forgetting=0.9), window=10, max_history=8)
    X, y = data(n=360, seed=1)
    for i in range(40):
        rows = slice(9 * i, 9 * i + 9)
        twin = through_file(twin).partial_fit(X[rows], y[rows] if i < 30 else 5 - 3 * y[rows])
    assert_identical(twin, WATCHERS["tracker after a change"])


@pytest.mark.parametrize("solver", ["gram", "sketch"])
def test_merge_continues(solver, through_file):
    X, y = data()
    model = IncrementalPLS(solver=solver, sketch_size=6 if solver == "sketch" else None)
    one, other = clone(model).partial_fit(X[:40], y[:40]), clone(model).partial_fit(X[40:], y[40:])
    merged = through_file(one).merge(through_file(other))
    assert_identical(merged.transform(X), one.merge(other).transform(X))


def test_cross_validation_of_merged_models(through_file):
    X, y = data()
    one, other = (IncrementalPLSCV(4).fit(X[rows], y[rows]) for rows in (slice(40), slice(40, 90)))
    merged = through_file(one.merge(other))
    assert_identical(merged, one)
    assert_identical(merged.cv_results_, one.cv_results_)


def test_large_sketch_in_float32(through_file):
    X, y = data(n=201, m=60)
    model = IncrementalPLS(solver="sketch", sketch_size=4)
    for start in range(0, 201, 3):
        model.partial_fit(X[start : start + 3].astype(np.float32), y[start : start + 3])
    assert model._fitted.stream.state.held.dtype == np.float32
    assert model._fitted.stream.n_waiting
    assert_identical(through_file(model), model)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_that_wait(dtype, through_file):
    X = sparse.random(300, 200, density=0.02, format="csr", dtype=dtype, random_state=0)
    labels = np.arange(300) % 3
    model = IncrementalPLSClassifier(2, solver="sketch", sketch_size=6)
    for start in range(0, 240, 40):
        model.partial_fit(X[start : start + 40], labels[start : start + 40], classes=[0, 1, 2])
    assert model._fitted.stream.n_waiting > 6
    twin = through_file(model)
    assert_identical(twin, model)
    for each in (twin, model):
        each.partial_fit(X[240:], labels[240:])
    assert_identical(twin.transform(X), model.transform(X))


@pytest.mark.parametrize("kind", ["float32", "int8", "uint64", "bool", "float64", "U", "S", ">i4", "object"])
def test_labels_keep_their_type(kind, through_file):
    X, y = data("two")
    labels = (y == "yes").astype(int)
    labels = np.array(["ja", "neïn"])[labels].astype("U9") if kind in {"U", "object"} else labels
    labels = np.array([b"ja", b"nein"])[labels] if kind == "S" else labels.astype(kind)
    model = CIPLS(target="labels").fit(X, labels) if kind != "object" else ILFS().fit(X, labels)
    twin = through_file(model)
    assert twin.classes_.dtype == model.classes_.dtype
    assert_identical(twin, model)
    if kind != "object":
        assert_identical(twin.predict(X), model.predict(X))


def test_identities_are_kept(through_file):
    X, y = data("many")
    twin = through_file(SGDPLS(random_state=np.random.RandomState(0)).partial_fit(X, y))
    twin.partial_fit(X, y)

    # What learns on is the model of the selector still.
    twin = through_file(VIPSelector(IncrementalPLS(solver="gram").fit(X, y), prefit=True).fit(X))
    assert twin.estimator_ is twin.estimator
    before = twin.scores_
    twin.estimator.partial_fit(X[:, ::-1], y)
    assert not np.array_equal(twin.scores_, before)


def test_frozen_model(through_file):
    X, y = data()
    selector = VIPSelector(FrozenEstimator(IncrementalPLS().fit(X, y))).fit(X, y)
    assert_identical(through_file(selector), selector)


def test_parameters_set_during_a_stream(through_file):
    X, y = data()
    model = IncrementalPLS(solver="gram").partial_fit(X[:50], y[:50]).set_params(n_components=3)
    twin = through_file(model)
    assert twin.n_components == 3
    assert twin.transform(X).shape[1] == 2
    assert_identical(twin.partial_fit(X[50:], y[50:]).transform(X), model.partial_fit(X[50:], y[50:]).transform(X))
    online = through_file(CIPLS().partial_fit(X, y).set_params(n_components=3))
    with pytest.raises(ValueError, match="n_components cannot change"):
        online.partial_fit(X, y)


def test_feature_names_and_output(through_file):
    pandas = pytest.importorskip("pandas")
    X, y = data(m=7)
    frame = pandas.DataFrame(X, columns=["a", "", "ü\U0001f600", "\x00", 'q"', "f" * 300, "\n"])
    model = IncrementalPLS().set_output(transform="pandas").fit(frame, y)
    twin = through_file(model)
    assert_identical(twin, model)
    pandas.testing.assert_frame_equal(twin.transform(frame), model.transform(frame))
    with pytest.raises(ValueError, match="feature names"):
        twin.transform(frame[frame.columns[::-1]])


def test_data_far_from_zero(through_file):
    X, y = data("many")
    for model in (CIPLS(), IncrementalLDA(), IncrementalPLS(solver="gram")):
        model.fit(X + 1e8, y)
        assert_identical(through_file(model), model)


def test_constant_rows(through_file):
    for model in (CIPLS(), IncrementalPLS(solver="gram"), SGDPLS(1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(np.ones((5, 3)), np.zeros(5))
        assert_identical(through_file(model), model)


def test_loaded_arrays_are_as_loops_want_them(through_file):
    X, y = data(m=3000)
    recursion = through_file(CIPLS().partial_fit(X, y))._state.recursion
    assert recursion.actions.ctypes.data % 64 == 0
    assert recursion.actions.flags.writeable


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text()
    | st.floats(width=32).map(np.float32)
    | st.floats(width=16).map(np.float16)
    | st.integers(0, 255).map(np.uint8)
    | st.integers(-(2**63), 2**63 - 1).map(np.int64)
    | st.booleans().map(np.bool_),
    lambda values: st.lists(values, max_size=3) | st.lists(values, max_size=3).map(tuple),
    max_leaves=4,
)


@given(value=plain)
@settings(max_examples=60, deadline=None)
def test_any_plain_parameter(value, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "parameter.plstream"
    save(InfFSS(alpha=value), path)
    assert_identical(load(path).alpha, value)


@given(
    classes=st.lists(st.text(), min_size=2, max_size=5, unique=True)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=5, unique=True)
    | st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=5, unique=True)
)
@settings(max_examples=40, deadline=None)
def test_any_labels(classes, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "labels.plstream"
    # Text that ends with zeros is not what NumPy gives back, and may be there twice.
    labels = np.unique(classes)
    if len(labels) < 2:
        return
    X = np.random.default_rng(0).normal(size=(4 * len(labels), 3))
    y = np.tile(labels, 4)
    model = IncrementalLDA(1).partial_fit(X, y, classes=labels)
    save(model, path)
    twin = load(path)
    assert_identical(twin, model)
    assert_identical(twin.predict(X), model.predict(X))
