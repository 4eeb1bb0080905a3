"""Results do not depend on the addresses of arrays, to the last bit.

LLVM has a second loop, without vectors, for arrays that may overlap. It forms sums in another order.
"""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

from plstream import CCIPCA, CIPLS, IPLS, OLPLS, SGDPLS, IncrementalLDA, online

from ..placement import results_by_place

MODULES = [importlib.import_module(f"plstream.online.{found.name}") for found in pkgutil.iter_modules(online.__path__)]
FUNCTIONS = [
    function
    for module in MODULES
    for function in vars(module).values()
    if hasattr(function, "py_func") and function.py_func.__module__ == module.__name__
]
# Those that no other one calls: the estimators do.
RECURSIONS = [
    function
    for function in FUNCTIONS
    if not any(function.py_func.__name__ in other.py_func.__code__.co_names for other in FUNCTIONS)
]
# Those over the entries of vectors.
LOOPS = [function for function in FUNCTIONS if "for j in range(len(" in inspect.getsource(function.py_func)]
FEATURES = [1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 15, 16, 17, 20, 23, 24, 28, 29, 31, 32, 33, 40, 64, 65, 100]


def arguments_of(loop, m, rng):
    """Return a vector for every array that a loop takes, and numbers for all else."""
    kinds = [parameter.annotation for parameter in inspect.signature(loop.py_func).parameters.values()]
    return [
        rng.normal(size=m)
        if "Array" in kind
        else tuple(rng.uniform(0.1, 1, kind.count("float")))
        if kind.startswith("tuple")
        else float(rng.uniform(0.1, 1))
        for kind in kinds
    ]


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.py_func.__name__)
def test_loops(loop):
    rng = np.random.default_rng(0)
    for m in FEATURES:
        for seed in range(3):
            assert len(results_by_place(loop, arguments_of(loop, m, rng), seed)) == 1, m


@pytest.mark.parametrize(
    "method",
    [
        CIPLS(3),
        CIPLS(3, amnesic=1.0),
        CIPLS(3, variant="paper"),
        CIPLS(3, variant="released"),
        CCIPCA(3),
        IPLS(3),
        IPLS(3, variant="released"),
        OLPLS(3),
        OLPLS(3, variant="released", eta=1e-4, eta_loading=1e-4),
        SGDPLS(2, random_state=0),
        SGDPLS(2, variant="released", n_epochs=1, random_state=0),
        SGDPLS(2, algorithm="msg"),
        SGDPLS(2, algorithm="incremental"),
        IncrementalLDA(solver="covariance-free"),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_methods(method, dtype, monkeypatch):
    """Every call of compiled code, with the arrays that the method passes to it."""
    called = set()

    def watched(function):
        name = function.py_func.__name__

        def call(*arguments):
            called.add(name)
            assert len(results_by_place(function, arguments)) == 1, name
            return function(*arguments)

        return call

    for function in RECURSIONS:
        monkeypatch.setattr(f"{function.py_func.__module__}.{function.py_func.__name__}", watched(function))
    for m in (3, 5, 8, 13, 19, 29, 31, 40):
        X = np.random.default_rng(m).normal(size=(7, m)).astype(dtype)
        y = np.arange(7) % 3 if isinstance(method, IncrementalLDA) else X[:, :2].astype(np.float64) ** 2
        method.fit(X[:4], y[:4])
        for i in range(4, 7):
            method.partial_fit(X[i : i + 1], y[i : i + 1])
    assert "subtract_running_means" in called
    assert len(called) > 1
