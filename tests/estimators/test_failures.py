"""Calls that fail at the last moment, or are interrupted, leave models and their copies unchanged."""

from copy import copy

import numpy as np
import pytest

from plstream import IncrementalPLS, IncrementalPLSClassifier, IncrementalPLSClassifierCV, IncrementalPLSCV
from plstream.states import Buffered

from ..oracles import regression_data

X, y = regression_data(300, 5)
LABELS = np.arange(300) % 3
models = pytest.mark.parametrize(
    ("make", "target"),
    [
        (lambda: IncrementalPLS(2), y),
        (lambda: IncrementalPLS(2, solver="sketch", sketch_size=8), y),
        (lambda: IncrementalPLSClassifier(2), LABELS),
        (lambda: IncrementalPLSCV(3, cv=3), y),
        (lambda: IncrementalPLSClassifierCV(3, cv=3), LABELS),
    ],
)


def fail_after(monkeypatch, name, error):
    method = getattr(Buffered, name)

    def late(self, *args, **kwargs):
        method(self, *args, **kwargs)
        raise error

    monkeypatch.setattr(Buffered, name, late)


@models
@pytest.mark.parametrize("method", ["partial_fit", "merge", "add_class"])
@pytest.mark.parametrize("solved", [True, False])
def test_interrupts(make, target, method, solved, monkeypatch):
    model, other = make().partial_fit(X[:100], target[:100]), make().partial_fit(X[200:], target[200:])
    if method == "add_class" and not hasattr(model, "classes_"):
        pytest.skip("There are no classes.")
    before = make().partial_fit(X[:100], target[:100]).coef_
    if solved:
        np.testing.assert_array_equal(model.coef_, before)
    args = {"partial_fit": (X[100:200], target[100:200]), "merge": (other,), "add_class": (7,)}[method]
    with monkeypatch.context() as patch:
        made_by = {"partial_fit": "with_rows", "merge": "merged", "add_class": "with_classes"}[method]
        fail_after(patch, made_by, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            getattr(model, method)(*args)
    assert model.n_samples_seen_ == 100
    np.testing.assert_array_equal(model.coef_, before)
    # Training continues as if there had been no failed call.
    expected = getattr(make().partial_fit(X[:100], target[:100]), method)(*args)
    np.testing.assert_array_equal(getattr(model, method)(*args).coef_, expected.coef_)


@models
def test_shallow_copies_continue_apart(make, target):
    model = make().partial_fit(X[:100], target[:100])
    twin = copy(model)
    model.partial_fit(X[100:200], target[100:200])
    twin.partial_fit(X[200:], target[200:])
    expected = make().partial_fit(X[:200], target[:200])
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    rows = np.r_[:100, 200:300]
    np.testing.assert_allclose(twin.coef_, make().partial_fit(X[rows], target[rows]).coef_, rtol=1e-12)
