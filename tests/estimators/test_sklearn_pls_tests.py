"""scikit-learn's tests of PLSRegression, from the installed release, run with IncrementalPLS instead.

Differences that docs/from_scikit_learn.md lists are made up for by a subclass. The tests are not copied: each one that
speaks of PLSRegression is taken from the installed file and collected here under its own name.
"""

from types import CodeType, FunctionType

import numpy as np
import pytest
import sklearn.cross_decomposition

from plstream import IncrementalPLS

suite = pytest.importorskip(
    "sklearn.cross_decomposition.tests.test_pls", reason="scikit-learn is installed without its tests"
)

# Why a test does not apply, and how it fails.
NOT_CONVERGED = "compares to 1e-6 with what NIPALS came to at tol=1e-6, and here PLS is solved directly", AssertionError
DEPRECATED = "is about the parameter Y, which scikit-learn deprecated in 1.5", pytest.fail.Exception
EXCUSED = {
    "test_sanity_check_pls_regression": NOT_CONVERGED,
    "test_sanity_check_pls_regression_constant_column_Y": NOT_CONVERGED,
    "test_sanity_check_pls_regression_constant_column_y": NOT_CONVERGED,
    "test_pls_fit_warning_on_deprecated_Y_argument": DEPRECATED,
    "test_pls_transform_warning_on_deprecated_Y_argument": DEPRECATED,
    "test_pls_inverse_transform_warning_on_deprecated_Y_argument": DEPRECATED,
}

# scikit-learn does not tell of components that X and y do not have, but for those past a constant residual of y.
pytestmark = pytest.mark.filterwarnings("ignore:X and y have only:UserWarning")


class PLSRegression(IncrementalPLS):
    """IncrementalPLS with what it leaves out on purpose."""

    def __init__(self, n_components=2, *, scale=True, max_iter=500, tol=1e-06, copy=True):
        super().__init__(n_components, scale=scale)
        self.max_iter = max_iter
        self.tol = tol
        self.copy = copy

    def fit(self, X, y):
        super().fit(X, y)
        self.x_scores_ = np.asarray(super().transform(X))
        self._write(X, self.copy)
        return self

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X, y)

    def transform(self, X, y=None, copy=True):
        scores = super().transform(X)
        self._write(X, copy)
        return scores if y is None else (scores, self.transform_y(y))

    def predict(self, X, copy=True):
        prediction = super().predict(X)
        self._write(X, copy)
        return prediction

    def _write(self, X, copy):
        """Centre X in place if it may be written to: IncrementalPLS never does so."""
        if not copy:
            X -= self.x_mean_


class ConvergedPLSRegression(sklearn.cross_decomposition.PLSRegression):
    """scikit-learn's PLSRegression, with an inner iteration until convergence."""

    def __init__(self, n_components=2):
        super().__init__(n_components, tol=1e-15, max_iter=100_000)


def speaks_of(code, name):
    """Return whether a function, or one inside it, looks up a name."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return name in code.co_names or any(speaks_of(part, name) for part in inner)


def replaced(value, cls):
    """Return a parameter of a test with the class in place of PLSRegression, also within tuples and pytest.param."""
    if value is suite.PLSRegression:
        return cls
    if not isinstance(value, tuple):
        return value
    parts = [replaced(part, cls) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def contains(value, cls):
    return value is cls or (isinstance(value, tuple) and any(contains(part, cls) for part in value))


def with_class(test, cls):
    """Return one of the tests for a class in place of PLSRegression, or None if it is for other classes alone."""
    looked_up = speaks_of(test.__code__, "PLSRegression")
    marks = []
    for mark in getattr(test, "pytestmark", []):
        if mark.name != "parametrize":
            marks.append(mark)
            continue
        names, values = mark.args[0], [replaced(value, cls) for value in mark.args[1]]
        of_class = [value for value in values if contains(value, cls)]
        looked_up = looked_up or bool(of_class)
        marks.append(pytest.mark.parametrize(names, of_class or values, **mark.kwargs).mark)
    if not looked_up:
        return None
    function = FunctionType(test.__code__, {**vars(suite), "PLSRegression": cls}, test.__name__, test.__defaults__)
    function.pytestmark = marks
    return function


@pytest.fixture
def global_random_seed():
    """What scikit-learn's tests are run with by default."""
    return 42


TESTS = {name: test for name, test in vars(suite).items() if name.startswith("test_") and callable(test)}
for _name, _test in TESTS.items():
    _function = with_class(_test, PLSRegression)
    if _function is not None:
        globals()[_name] = _function
        if _name in EXCUSED:
            _reason, _error = EXCUSED[_name]
            globals()[_name] = pytest.mark.xfail(reason=_reason, raises=_error, strict=True)(_function)


def test_tests_of_scikit_learn_are_found():
    """Tests that use PLSRegression by name or as a parameter are collected, and no others."""
    assert {"test_pls_constant_y", "test_pls_coef_shape", "test_pls_set_output"} <= globals().keys()
    assert not {"test_svd_flip_1d", "test_pls_canonical_basics", "test_loadings_converges"} & globals().keys()


@pytest.mark.parametrize("name", [name for name in TESTS if EXCUSED.get(name) == NOT_CONVERGED])
def test_excused_numbers_are_not_converged(name):
    """Nor does scikit-learn's PLSRegression come to them if it iterates until it has converged."""
    with_class(TESTS[name], sklearn.cross_decomposition.PLSRegression)()
    with pytest.raises(AssertionError, match="not almost equal to 6 decimals"):
        with_class(TESTS[name], ConvergedPLSRegression)()
