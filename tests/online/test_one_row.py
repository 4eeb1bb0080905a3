"""One row at a time: inputs that ``learn_one``, ``transform_one`` and ``predict_one`` accept and refuse."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from plstream import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA, load, save

from ..oracles import regression_data

METHODS = [
    CIPLS(),
    CIPLS(variant="paper"),
    CIPLS(variant="released"),
    CCIPCA(),
    IPLS(),
    IPLS(variant="released"),
    OLPLS(),
    OLPLS(variant="released", eta=1e-7, eta_loading=1e-6),
    SGDPLS(1, random_state=0),
    SGDPLS(1, variant="released", n_epochs=1, random_state=0),
    SGDPLS(1, algorithm="msg"),
    SGDPLS(1, algorithm="incremental"),
    IncrementalLDA(),
    IncrementalLDA(solver="covariance-free"),
]
each_method = pytest.mark.parametrize("method", METHODS, ids=str)
X, VALUES = regression_data(40, 6)
Y = regression_data(40, 6, 3)[1]
LABELS = {
    "int": (VALUES > 0).astype(int),
    "three": np.digitize(VALUES, [-2, 2]),
    "bool": VALUES > 0,
    "str": np.where(VALUES > 0, "yes", "no"),
    "bytes": np.where(VALUES > 0, b"yes", b"no"),
    "float": np.where(VALUES > 0, 2.0, 1.0),
}


def begun(method, y):
    """Return a copy that has learnt the first rows."""
    model = pickle.loads(pickle.dumps(method))  # noqa: S301
    return model.partial_fit(X[:20], y[:20])


def target_of(method):
    return LABELS["three"] if isinstance(method, IncrementalLDA) else VALUES


def message_of(call, *arguments):
    """Return what is wrong with a call, or None."""
    try:
        call(*arguments)
    except ValueError as error:
        return str(error)


def assert_same_state(model, expected):
    np.testing.assert_array_equal(model.transform(X), expected.transform(X))
    assert model.n_samples_seen_ == expected.n_samples_seen_


@each_method
def test_several_forms_of_a_row(method):
    y = target_of(method)
    expected = begun(method, y).partial_fit(X[20:21], y[20:21])
    read_only = X[20].copy()
    read_only.flags.writeable = False
    for x in (X[20].tolist(), tuple(X[20]), np.repeat(X, 2, axis=1)[20, ::2], read_only, X[20].astype(">f8")):
        assert_same_state(begun(method, y).learn_one(x, y[20]), expected)
    for dtype in (np.float32, np.float16, np.int16, bool):
        x = X[20].astype(dtype)
        assert_same_state(begun(method, y).learn_one(x, y[20]), begun(method, y).partial_fit(x[None], y[20:21]))


@each_method
def test_bad_rows_change_nothing(method):
    y = target_of(method)
    model, expected = begun(method, y), begun(method, y)
    before = model.transform(X)
    nan, inf = X[20].copy(), X[20].copy()
    nan[2], inf[5] = np.nan, np.inf
    calls = [
        (nan, y[20], "contains NaN.*column 2"),
        (inf, y[20], "contains infinity.*column 5"),
        (X[20, :5], y[20], "x has 5 features, but .* is expecting 6"),
        (np.zeros(0), y[20], "x has 0 features"),
        (X[20:21], y[20], "one-dimensional array, but has 2 dimensions"),
        (3.0, y[20], "one-dimensional array, but has 0 dimensions"),
        ({"a": 1.0}, y[20], "one-dimensional array, but has 0 dimensions"),
        (["a"] * 6, y[20], "[Ss]tring|convert"),
        (X[20] * 1j, y[20], "[Cc]omplex"),
    ]
    if not isinstance(method, CCIPCA):
        calls += [(X[20], np.inf, "y|label"), (X[20], None, "y"), (X[20], y[20:22], "target|one column|1d array")]
    for x, one, message in calls:
        with pytest.raises(ValueError, match=message):
            model.learn_one(x, one)
        np.testing.assert_array_equal(model.transform(X), before)
    for x in (nan, X[20, :5], X[20:21]):
        with pytest.raises(ValueError, match=r"NaN|features|dimension"):
            model.transform_one(x)
    model.set_params(n_components=7)
    with pytest.raises(ValueError, match="n_components cannot change"):
        model.learn_one(X[20], y[20])
    model.set_params(n_components=method.n_components).learn_one(X[20], y[20])
    assert_same_state(model, expected.partial_fit(X[20:21], y[20:21]))


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("method", [CIPLS(target="labels"), IPLS(target="labels"), IncrementalLDA()], ids=str)
def test_labels(method, kind):
    y = LABELS[kind]
    expected = begun(method, y).partial_fit(X[20:], y[20:])
    model, plain = begun(method, y), begun(method, y)
    for x, label in zip(X[20:], y[20:], strict=True):
        model.learn_one(x, label)
        plain.learn_one(x, label.item())
    for one in (model, plain):
        assert_same_state(one, expected)
    if hasattr(model, "predict"):
        assert [model.predict_one(x) for x in X] == expected.predict(X).tolist()
    # Only what partial_fit takes.
    for wrong in (5, 7.5, "maybe", True, np.int8(-3), b"maybe"):
        assert message_of(model.learn_one, X[0], wrong) == message_of(expected.partial_fit, X[:1], [wrong])
        assert_same_state(model, expected)


def test_classes_of_another_type_than_labels():
    """Labels are floats, and the classes that were named integers: integers are refused as in partial_fit."""
    model = CIPLS().partial_fit(X[:20], LABELS["float"][:20], classes=[1, 2])
    expected = CIPLS().partial_fit(X[:20], LABELS["float"][:20], classes=[1, 2]).partial_fit(X[20:21], [2.0])
    assert_same_state(model.learn_one(X[20], 2.0), expected)
    with pytest.raises(ValueError, match="Labels were floats"):
        model.learn_one(X[20], 2)


def test_values():
    expected = begun(CIPLS(), Y).partial_fit(X[20:21], Y[20:21])
    for y in (Y[20], Y[20].tolist(), np.repeat(Y, 2, axis=1)[20, ::2]):
        model = begun(CIPLS(), Y).learn_one(X[20], y)
        assert_same_state(model, expected)
        np.testing.assert_array_equal(model.predict_one(X[0]), expected.predict(X[:1])[0])
    for y in (Y[20, 0], Y[20, :2], "text"):
        with pytest.raises(ValueError, match=r"target|numbers"):
            model.learn_one(X[20], y)
    single = begun(CIPLS(target="values"), VALUES)
    for y in (3, 3.0, np.float32(3), np.int8(3), np.array([3.0]), [3], True, 2**60, -(2**53)):
        expected = begun(CIPLS(target="values"), VALUES).partial_fit(X[20:21], np.array(y).reshape(1))
        assert_same_state(begun(CIPLS(target="values"), VALUES).learn_one(X[20], y), expected)
    assert isinstance(single.predict_one(X[0]), float)


@each_method
def test_first_rows(method):
    y = target_of(method)
    fresh = pickle.loads(pickle.dumps(method))  # noqa: S301
    for call in (fresh.transform_one, getattr(fresh, "predict_one", fresh.transform_one)):
        with pytest.raises(NotFittedError):
            call(X[0])
    if isinstance(method, IncrementalLDA):
        with pytest.raises(ValueError, match=r"only one class.*classes= in the first call of partial_fit"):
            fresh.learn_one(X[0], y[0])
        return
    with pytest.raises(ValueError, match="NaN"):
        fresh.learn_one(np.full(6, np.nan), y[0])
    assert vars(fresh).keys() == vars(method).keys()
    for i in range(30):
        fresh.learn_one(X[i], y[i])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same_state(fresh, pickle.loads(pickle.dumps(method)).partial_fit(X[:30], y[:30]))  # noqa: S301


def test_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    expected = CIPLS().partial_fit(frame[:20], VALUES[:20]).partial_fit(frame[20:21], VALUES[20:21])
    for x in (frame.iloc[20], X[20]):
        model = CIPLS().partial_fit(frame[:20], VALUES[:20]).learn_one(x, VALUES[20])
        np.testing.assert_array_equal(model.x_weights_, expected.x_weights_)
        np.testing.assert_array_equal(model.transform_one(x), expected.transform(frame[20:21])[0])
        assert model.predict_one(x) == expected.predict(frame[20:21])[0]
    with pytest.raises(ValueError, match="feature names"):
        model.learn_one(frame.iloc[20][::-1], VALUES[20])


@pytest.mark.parametrize("method", [CIPLS(6, variant="paper"), CIPLS(2), OLPLS(2), CCIPCA(2), IPLS(2)], ids=str)
def test_overflow_is_an_error_without_a_warning(method):
    model = begun(method, VALUES)
    before = model.transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for unit in (1e170, 1e300):
            with pytest.raises(ValueError, match="no longer finite"):
                model.learn_one(X[20] * unit, VALUES[20])
        if not isinstance(method, CCIPCA):
            with pytest.raises(ValueError, match="no longer finite"):
                model.learn_one(X[20], 1.7e308)
    np.testing.assert_array_equal(model.transform(X), before)


def test_labels_leave_no_trace_in_files(tmp_path):
    """The lookup table of labels is not saved, and a loaded model continues training."""
    model = begun(CIPLS(), LABELS["str"]).learn_one(X[20], "yes")
    save(model, tmp_path / "one")
    save(begun(CIPLS(), LABELS["str"]).partial_fit(X[20:21], ["yes"]), tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert_same_state(load(tmp_path / "one").learn_one(X[21], "no"), model.learn_one(X[21], "no"))


def test_copies_share_nothing_that_is_written():
    model = begun(CIPLS(), VALUES)
    before = model._state
    means, cross = before.x.mean.copy(), before.recursion.cross.copy()
    model.learn_one(X[20], VALUES[20])
    np.testing.assert_array_equal(before.x.mean, means)
    np.testing.assert_array_equal(before.recursion.cross, cross)
    assert model._state is not before
    # A second model that begins has another first row.
    other = begun(CIPLS(), VALUES).fit(X[5:] + 1, VALUES[5:])
    np.testing.assert_array_equal(before.x.mean, means)
    np.testing.assert_allclose(other.x_mean_, X[5:].mean(axis=0) + 1)


def test_score_and_kind():
    from sklearn.base import is_classifier, is_regressor
    from sklearn.model_selection import cross_val_score

    for target, test in (("labels", is_classifier), ("values", is_regressor)):
        assert test(CIPLS(target=target))
        assert not test(CIPLS())
        assert not test(CIPLS(target=target, variant="paper"))
        assert not hasattr(CIPLS(variant="paper"), "score")
    labelled, valued = CIPLS().fit(X, LABELS["str"]), CIPLS().fit(X, VALUES)
    assert is_classifier(labelled)
    assert is_regressor(valued)
    assert labelled.score(X, LABELS["str"]) == np.mean(labelled.predict(X) == LABELS["str"])
    rest = np.sum((VALUES - valued.predict(X)) ** 2) / np.sum((VALUES - VALUES.mean()) ** 2)
    np.testing.assert_allclose(valued.score(X, VALUES), 1 - rest)
    assert cross_val_score(CIPLS(target="labels"), X, LABELS["int"], cv=3).min() > 0.5
