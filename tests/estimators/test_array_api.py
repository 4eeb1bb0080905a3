"""Arrays of other libraries give the results of NumPy arrays, with array API dispatch on or off."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone

from plstream import (
    CIPLS,
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSCV,
    InfFS,
    StreamingPipeline,
    open_source,
)
from plstream.monitoring import DriftTracker, Monitor

from ..files.models import CASES, data, learn

pytestmark = [
    pytest.mark.filterwarnings("ignore:The rows so far have only:UserWarning"),
    pytest.mark.filterwarnings("ignore:X and y have only:UserWarning"),
    pytest.mark.filterwarnings("ignore:sketch_size=:UserWarning"),
    pytest.mark.filterwarnings("ignore:The two factors have swapped:UserWarning"),
]
# One of each estimator and kind of y; what the steps of a pipeline do with such arrays is up to scikit-learn.
ONE_OF_EACH = {
    (type(case.model), case.target): case for case in reversed(CASES) if not isinstance(case.model, StreamingPipeline)
}.values()
METHODS = ("transform", "predict", "predict_proba", "decision_function")


class Foreign:
    """An array of a library of its own: what the standard asks for, and nothing of NumPy's."""

    def __init__(self, values, *, on_device=False):
        self._values = np.asarray(values)
        self._on_device = on_device

    def __array_namespace__(self, api_version=None):
        raise AssertionError("there are no functions for these arrays")

    def __dlpack__(self, **_):
        raise BufferError("cannot be exported")

    def __array__(self, dtype=None, copy=None):
        if self._on_device:
            raise TypeError("Cannot convert the memory of device 1\nand more.")
        return self._values.astype(dtype or self._values.dtype)

    def __len__(self):
        return len(self._values)

    shape = property(lambda self: self._values.shape)
    ndim = property(lambda self: self._values.ndim)
    dtype = property(lambda self: self)
    device = property(lambda self: "device 1" if self._on_device else "cpu")


def strict(values):
    if np.asarray(values).dtype.kind == "U":
        # It has no text.
        return values
    return pytest.importorskip("array_api_strict", reason="needs array-api-strict").asarray(values)


LIBRARIES = {"numpy": np.asarray, "foreign": Foreign, "strict": strict}


@pytest.fixture(params=[False, True], ids=["off", "on"])
def dispatch(request, monkeypatch):
    """Switch dispatch on or off. The last test also enables it in SciPy, before SciPy is imported."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    try:
        with config_context(array_api_dispatch=request.param):
            pass
    except ImportError as error:
        pytest.skip(f"scikit-learn cannot dispatch here: {error}")
    return lambda: config_context(array_api_dispatch=request.param)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
def test_fit_and_results(case, library, dispatch):
    X, y = data(case.target)
    convert = LIBRARIES[library]
    expected = clone(case.model).fit(X, y)
    with dispatch():
        model = clone(case.model).fit(convert(X), convert(y))
    for name in METHODS:
        if hasattr(model, name):
            with dispatch():
                found = getattr(model, name)(convert(X))
            assert type(found) is np.ndarray
            np.testing.assert_array_equal(found, getattr(expected, name)(X), err_msg=name)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("case", [case for case in ONE_OF_EACH if case.streams], ids=str)
def test_streams(case, library, dispatch):
    X, y = data(case.target)
    convert = LIBRARIES[library]
    expected, model = clone(case.model), clone(case.model)
    for rows in (slice(40), slice(40, 90)):
        learn(expected, X[rows], y[rows])
        with dispatch():
            labels = (
                {} if y.dtype.kind == "f" or hasattr(model, "n_features_in_") else {"classes": convert(np.unique(y))}
            )
            labels = labels if "classes" in model.partial_fit.__code__.co_varnames else {}
            model.partial_fit(convert(X[rows]), convert(y[rows]), **labels)
    np.testing.assert_array_equal(model.transform(X), expected.transform(X))


@pytest.mark.parametrize("library", LIBRARIES)
def test_other_methods_that_take_arrays(library, dispatch):
    X, y = data("values")
    convert = LIBRARIES[library]
    weight = np.linspace(1, 2, len(X))
    expected = IncrementalPLS(solver="gram").fit(X, y, sample_weight=weight)
    with dispatch():
        model = IncrementalPLS(solver="gram").fit(X, y, sample_weight=convert(weight))
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        np.testing.assert_array_equal(model.transform_y(convert(y)), expected.transform_y(y))
        scores = expected.transform(X)
        np.testing.assert_array_equal(model.inverse_transform(convert(scores)), expected.inverse_transform(scores))
        selector = InfFS(3).fit(X)
        kept = selector.transform(X)
        assert kept.shape == (90, 3)
        assert selector.inverse_transform(convert(kept)).shape == X.shape
        cross_validated = IncrementalPLSCV(3).fit(convert(X), convert(y))
        assert cross_validated.n_components_ == IncrementalPLSCV(3).fit(X, y).n_components_
        source = open_source(convert(X), target=convert(y[:, 0]))
        np.testing.assert_array_equal(IncrementalPLS().fit(source).coef_, IncrementalPLS().fit(X, y[:, 0]).coef_)
        checks = [Monitor(model).check(rows) for rows in (convert(X), X)]
        np.testing.assert_array_equal(checks[0].t2, checks[1].t2)
        tracker = DriftTracker(IncrementalPLS(solver="gram"))
        for rows in (slice(50), slice(50, 90)):
            tracker.partial_fit(convert(X[rows]), convert(y[rows]))
        assert tracker.model.n_samples_seen_ == 90


@pytest.mark.parametrize("model", [IncrementalPLS(), IncrementalPLSClassifier(), IncrementalPLSCV(), CIPLS(), InfFS()])
def test_arrays_of_a_device(model, dispatch):
    X, y = data("many")
    sentence = (
        r"^{} is an array of tests that cannot be converted to NumPy: Cannot convert the memory of device 1\. Pass a "
        r"NumPy array\.$"
    )
    with dispatch():
        with pytest.raises(TypeError, match=sentence.format("X")):
            clone(model).fit(Foreign(X, on_device=True), y)
        fitted = clone(model).fit(X, y)
        with pytest.raises(TypeError, match=sentence.format("X")):
            fitted.transform(Foreign(X, on_device=True))
        if not isinstance(model, InfFS):
            with pytest.raises(TypeError, match=sentence.format("y")):
                clone(model).fit(X, Foreign(y, on_device=True))


def test_arrays_of_objects():
    class Opaque(Foreign):
        def __array__(self, dtype=None, copy=None):
            return np.array(None, dtype=object)

    with pytest.raises(TypeError, match=r"^X is an array of tests that cannot be converted to NumPy: pass a NumPy"):
        IncrementalPLS().fit(Opaque(np.eye(3)), np.arange(3.0))


@pytest.mark.skipif("SCIPY_ARRAY_API" in os.environ, reason="this is how SciPy is now")
def test_with_the_array_api_of_scipy_enabled():
    """SciPy looks at the variable only once, when it is imported."""
    names = [*sys.path, ""]
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONPATH": os.pathsep.join(names)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "IncrementalPLS or other_methods"]
    ended = subprocess.run(  # noqa: S603
        [*command, str(Path(__file__))],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
