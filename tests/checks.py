"""The streaming checks that every estimator of the project passes.

``streaming_checks(estimator)`` lists them for one estimator, for use with ``pytest.mark.parametrize``. An estimator may
be excused from a check by name, with the reason why.
"""

import pickle
from collections.abc import Callable
from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from .oracles import regression_data

CHECKS: list[Callable] = []


def streaming_check(function):
    CHECKS.append(function)
    return function


def streaming_checks(estimator, excused=None):
    """Return a pytest parameter for every check; ``excused`` maps names of checks to the reason they do not apply."""
    excused = dict(excused or {})
    parameters = []
    for check in CHECKS:
        reason = excused.pop(check.__name__, None)
        marks = [pytest.mark.skip(reason=reason)] if reason else []
        parameters.append(pytest.param(clone(estimator), check, id=check.__name__, marks=marks))
    assert not excused, f"no such checks: {sorted(excused)}"
    return parameters


def data_for(estimator, n, m):
    """Return X and y: for classifiers y holds three labels, which are numbers, so that one can be made infinite."""
    X, y = regression_data(n, m)
    return X, np.digitize(y, np.quantile(y, [0.3, 0.7])).astype(float) if is_classifier(estimator) else y


def learn(model, X, y, **fit_params):
    """Call ``partial_fit``; for classifiers with all labels, because the first rows may have only one."""
    if is_classifier(model):
        fit_params["classes"] = [0.0, 1.0, 2.0]
    return model.partial_fit(X, y, **fit_params)


def fed(estimator, X, y, sizes, **fit_params):
    """Return a clone that has been fed the rows in chunks of the given sizes, the last size repeated."""
    model, start, sizes = clone(estimator), 0, list(sizes)
    while start < len(X):
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        rows = slice(start, start + size)
        chunk_params = {name: value[rows] for name, value in fit_params.items()}
        learn(model, X[rows], y[rows], **chunk_params)
        start += size
    return model


def assert_same(actual, expected, X, *, rtol=1e-9):
    """Assert that two models have the same scores, but for rounding errors."""
    scores = expected.transform(X)
    np.testing.assert_allclose(actual.transform(X), scores, rtol=0, atol=rtol * np.abs(scores).max())


@streaming_check
def check_chunks_do_not_matter(estimator):
    X, y = data_for(estimator, 70, 8)
    whole = fed(estimator, X, y, [70]).transform(X)
    for sizes in ([1], [7], [1, 68, 1], [33, 37]):
        np.testing.assert_array_equal(fed(estimator, X, y, sizes).transform(X), whole)


@streaming_check
def check_rows_one_by_one(estimator):
    """``learn_one``, ``transform_one`` and ``predict_one`` have the bits of the methods that take rows."""
    if not hasattr(estimator, "learn_one"):
        pytest.skip("takes rows in blocks")
    X, y = data_for(estimator, 60, 8)
    expected, model = (learn(clone(estimator), X[:20], y[:20]) for _ in range(2))
    for i in range(20, 60):
        assert model.learn_one(X[i], y[i]) is model
        expected.partial_fit(X[i : i + 1], y[i : i + 1])
    assert model.n_samples_seen_ == 60
    np.testing.assert_array_equal(model.transform(X), expected.transform(X))
    for x in (X[3], X[3].astype(np.float32)):
        scores = model.transform_one(x)
        np.testing.assert_array_equal(scores, expected.transform(x[None])[0])
        assert scores.dtype == x.dtype
    assert hasattr(model, "predict_one") == hasattr(model, "predict")
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(model.predict_one(X[3]), expected.predict(X[3:4])[0])


@streaming_check
def check_cold_start_with_one_row(estimator):
    X, y = data_for(estimator, 30, 5)
    model = learn(clone(estimator), X[:1], y[:1])
    with np.errstate(all="raise"), pytest.warns(UserWarning, match="component"):
        assert np.isfinite(model.transform(X)).all()
    model.partial_fit(X[1:], y[1:])
    assert_same(model, fed(estimator, X, y, [30]), X)


@streaming_check
def check_rows_without_weight_are_absent(estimator):
    """In the first call and in later ones, whatever such rows contain."""
    if "sample_weight" not in signature(estimator.partial_fit).parameters:
        pytest.skip("takes no weights")
    X, y = data_for(estimator, 60, 5)
    absent, nothing = np.full_like(X[:7], 1e9), np.zeros(7)
    model = learn(clone(estimator), absent, y[:7], sample_weight=nothing)
    for result in (lambda: model.transform(X), lambda: model.n_samples_seen_, lambda: model.predict(X)):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            result()
    # What was said of labels that will come is still known, although these rows have but one.
    first = slice(0, 30) if not is_classifier(estimator) else y == y[0]
    rest = slice(30, 60) if not is_classifier(estimator) else y != y[0]
    model.partial_fit(X[first], y[first])
    model.partial_fit(absent, y[:7], sample_weight=nothing).partial_fit(X[rest], y[rest])
    expected = learn(clone(estimator), X[first], y[first]).partial_fit(X[rest], y[rest])
    np.testing.assert_array_equal(model.transform(X), expected.transform(X))
    assert model.n_samples_seen_ == 60
    assert vars(model).keys() == vars(expected).keys()
    with pytest.raises(ValueError, match="positive weight"):
        clone(estimator).fit(absent, y[:7], sample_weight=nothing)


@streaming_check
def check_one_class_prefix(estimator):
    X, y = data_for(estimator, 60, 5)
    if not is_classifier(estimator):
        y = np.sign(y - np.median(y))
    order = np.argsort(y, kind="stable")
    sorted_rows = fed(estimator, X[order], y[order], [5])
    assert np.isfinite(sorted_rows.transform(X)).all()


@streaming_check
def check_fit_then_partial_fit(estimator):
    """A fit is followed by more rows as a stream is, in whatever chunks."""
    X, y = data_for(estimator, 60, 5)
    if getattr(estimator, "n_epochs", None) not in {None, 1}:
        pytest.skip("fit makes several passes, and partial_fit one")
    whole = fed(estimator, X, y, [60])
    for size in (30, 7):
        model = clone(estimator).fit(X[:30], y[:30])
        scores = model.transform(X)
        for start in range(30, 60, size):
            model.partial_fit(X[start : start + size], y[start : start + size])
        assert model.n_samples_seen_ == 60
        assert_same(model, whole, X)
        assert not np.array_equal(model.transform(X), scores)


@streaming_check
def check_input_is_not_modified(estimator):
    X, y = data_for(estimator, 40, 6)
    X_before, y_before = X.copy(), y.copy()
    model = fed(estimator, X, y, [11])
    model.transform(X)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)


@streaming_check
def check_memory_layout_does_not_matter(estimator):
    X, y = data_for(estimator, 40, 6)
    expected = fed(estimator, X, y, [13])
    read_only = X.copy()
    read_only.flags.writeable = False
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    for variant in (np.asfortranarray(X), read_only, strided, X[::-1].copy()[::-1]):
        assert_same(fed(estimator, variant, y, [13]), expected, variant)


@streaming_check
def check_float32_is_accepted(estimator):
    X, y = data_for(estimator, 40, 6)
    single = X.astype(np.float32)
    model = fed(estimator, single, y, [13])
    assert model.transform(single).dtype == np.float32
    assert_same(model, fed(estimator, single.astype(np.float64), y, [13]), single, rtol=1e-5)


@streaming_check
def check_pickle_in_mid_stream(estimator):
    X, y = data_for(estimator, 50, 6)
    model = fed(estimator, X[:23], y[:23], [5])
    twin = pickle.loads(pickle.dumps(model))  # noqa: S301
    for part in (model, twin):
        part.partial_fit(X[23:], y[23:])
    np.testing.assert_array_equal(twin.transform(X), model.transform(X))


@streaming_check
def check_clone_in_mid_stream_is_fresh(estimator):
    X, y = data_for(estimator, 50, 6)
    fresh = clone(fed(estimator, X[:23], y[:23], [5]))
    assert_same(learn(fresh, X[23:], y[23:]), fed(estimator, X[23:], y[23:], [27]), X)


@streaming_check
def check_reading_does_not_disturb_the_stream(estimator):
    X, y = data_for(estimator, 50, 6)
    read = clone(estimator)
    for start in range(0, 50, 10):
        rows = slice(start, start + 10)
        learn(read, X[rows], y[rows]).transform(X)
    np.testing.assert_array_equal(read.transform(X), fed(estimator, X, y, [10]).transform(X))


@streaming_check
def check_features_are_checked_on_every_call(estimator):
    pandas = pytest.importorskip("pandas")
    X, y = data_for(estimator, 30, 5)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = learn(clone(estimator), frame, y)
    with pytest.raises(ValueError, match="feature"):
        model.partial_fit(frame[list("abcd")], y)
    with pytest.raises(ValueError, match="feature names"):
        model.partial_fit(frame[list("edcba")], y)
    with pytest.raises(ValueError, match="feature"):
        model.transform(frame[list("abcd")])
    assert list(model.feature_names_in_) == list("abcde")


@streaming_check
def check_failed_call_changes_nothing(estimator):
    X, y = data_for(estimator, 50, 6)
    bad_X, bad_y = X[30:].copy(), y[30:].copy()
    bad_X[-1, 2] = np.nan
    bad_y[-1] = np.inf
    model = fed(estimator, X[:30], y[:30], [30])
    before = model.transform(X)
    bad_calls = [(bad_X, y[30:]), (X[30:, 1:], y[30:]), (X[:0], y[:0])]
    if get_tags(estimator).target_tags.required:
        bad_calls += [(X[30:], bad_y), (X[30:], y[31:])]
    for arguments in bad_calls:
        with pytest.raises(ValueError):  # noqa: PT011
            model.partial_fit(*arguments)
        np.testing.assert_array_equal(model.transform(X), before)
    unfitted = clone(estimator)
    with pytest.raises(ValueError, match="NaN"):
        learn(unfitted, bad_X, y[30:])
    assert vars(unfitted) == vars(clone(estimator))


@streaming_check
def check_merge_is_associative_and_commutative(estimator):
    X, y = data_for(estimator, 60, 6)
    whole = fed(estimator, X, y, [60])

    def part(i):
        return fed(estimator, X[20 * i : 20 * i + 20], y[20 * i : 20 * i + 20], [9])

    for merged in (
        part(0).merge(part(1)).merge(part(2)),
        part(0).merge(part(1).merge(part(2))),
        part(2).merge(part(0)).merge(part(1)),
    ):
        assert_same(merged, whole, X)
        assert merged.n_samples_seen_ == 60


@streaming_check
def check_merge_leaves_the_other_alone(estimator):
    X, y = data_for(estimator, 60, 6)
    one, other = fed(estimator, X[:30], y[:30], [9]), fed(estimator, X[30:], y[30:], [7])
    before = other.transform(X)
    one.merge(other)
    np.testing.assert_array_equal(other.transform(X), before)
    assert_same(other.partial_fit(X[:30], y[:30]), one, X)
