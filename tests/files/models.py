"""Every estimator of the library in every state worth a file, and how two of them are compared."""

import re
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import Normalizer, StandardScaler

from plstream import (
    CCIPCA,
    CIPLS,
    ILFS,
    IPLS,
    OLPLS,
    SGDPLS,
    IncrementalLDA,
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
    InfFS,
    InfFSS,
    InfFSU,
    StreamingPipeline,
    VIPSelector,
)
from plstream.monitoring import DriftTracker, Monitor


@dataclass
class Case:
    model: Any
    target: str = "value"
    streams: bool = True

    def __str__(self):
        # Without the address of a RandomState: tests have the same name in all processes.
        name = re.sub(r" at 0x\w+", "", f"{self.model}-{self.target}")
        return "".join(name.split())


CASES = [
    Case(IncrementalPLS()),
    Case(StreamingPipeline([("scale", StandardScaler()), ("none", "passthrough"), ("pls", IncrementalPLS())])),
    Case(StreamingPipeline([("norm", Normalizer()), ("pls", IncrementalPLSClassifier(solver="gram"))]), "many"),
    Case(IncrementalPLS(3, scale=False, solver="multipass"), "values", streams=False),
    Case(IncrementalPLS(3, missing="model"), "values"),
    Case(IncrementalPLS(solver="gram", missing="model")),
    Case(IncrementalPLS(solver="gram", forgetting=0.99)),
    Case(IncrementalPLS(3, read_tol=np.float64(1e-4), max_reads=3)),
    Case(IncrementalPLS(np.int64(2), solver="gram", scale=np.bool_(False)), "values"),
    Case(IncrementalPLS(solver="sketch", sketch_size=6)),
    Case(IncrementalPLS(solver="sketch", sketch_size=5, forgetting=np.float64(0.9)), "values"),
    Case(IncrementalPLSCV(3)),
    Case(IncrementalPLSCV(4, cv=3, rule="one-se", block_length=7, scale=False), "values"),
    Case(IncrementalPLSCV(2, cv=2, solver="sketch", sketch_size=6)),
    Case(IncrementalPLSClassifierCV(2), "two"),
    Case(IncrementalPLSClassifierCV(2), "many"),
    Case(IncrementalPLSClassifier(), "many"),
    Case(IncrementalPLSClassifier(3, solver="gram", priors=[0.1, 0.2, 0.3, 0.4]), "many"),
    Case(IncrementalPLSClassifier(solver="gram", class_weight={"no": 2.0, "yes": np.float32(0.5)}), "two"),
    Case(IncrementalPLSClassifier(solver="sketch", sketch_size=6, decision="regression"), "many"),
    *(
        Case(CIPLS(variant=v), t)
        for v in ("normalized", "paper", "released")
        for t in ("value", "values", "two", "many")
    ),
    Case(CIPLS(3, amnesic=1.0)),
    Case(CCIPCA()),
    Case(CCIPCA(amnesic=(5, 20, 100.0))),
    Case(IPLS()),
    Case(IPLS(1), "many"),
    Case(IPLS(n_pca_components=3), "values"),
    Case(IPLS(3, variant="released"), "many"),
    Case(IPLS(1, variant="released")),
    Case(OLPLS(), "two"),
    Case(OLPLS(3, variant="released", eta=0.001, eta_loading=0.001), "many"),
    Case(OLPLS(3), "many"),
    Case(SGDPLS(1, random_state=0)),
    Case(SGDPLS(3, random_state=np.random.RandomState(1)), "many"),
    Case(SGDPLS(algorithm="msg", n_steps=2), "many"),
    Case(SGDPLS(3, variant="released", n_epochs=2, random_state=0), "many"),
    Case(SGDPLS(variant="released", n_epochs=1, random_state=np.random.RandomState(1)), "values"),
    Case(SGDPLS(algorithm="incremental"), "values"),
    Case(IncrementalLDA(), "two"),
    Case(IncrementalLDA(2, shrinkage=0.1), "many"),
    Case(IncrementalLDA(solver="covariance-free"), "many"),
    Case(IncrementalLDA(priors=[0.3, 0.7]), "two"),
    Case(IncrementalLDA(solver="covariance-free", priors=np.array([0.1, 0.2, 0.3, 0.4])), "many"),
    Case(InfFS(), streams=False),
    Case(InfFS(3, supervised=True), "two", streams=False),
    Case(InfFSU("bins"), streams=False),
    Case(InfFSS(alpha=[0.2, 0.3, 0.5]), "two", streams=False),
    Case(InfFSS(0.5, alpha=np.array([0.2, 0.3, 0.5], dtype=np.float32)), "two", streams=False),
    Case(ILFS(), "many", streams=False),
    Case(ILFS(variant="A", update_tokens=False), "two", streams=False),
    Case(VIPSelector(), streams=False),
    Case(VIPSelector(CIPLS(), n_features_to_select=2), "many"),
    Case(VIPSelector(OLPLS(), n_features_to_select=0.4)),
    Case(VIPSelector(IncrementalPLSClassifier(solver="gram")), "many"),
    Case(VIPSelector(IncrementalPLS(solver="gram"), threshold=0.5), "values"),
    Case(VIPSelector(IncrementalPLSCV(3), n_features_to_select=3)),
]
STREAMS = [case for case in CASES if case.streams]
# A graph does not complete missing values.
EXPORTED = [case for case in CASES if getattr(case.model, "missing", "error") == "error"]


def data(target="value", n=90, m=10, seed=0):
    """Return rows and what y may be: one response, three, or the labels of two classes or four."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) * np.geomspace(3, 0.5, m) + rng.normal(size=m)
    Y = X @ rng.normal(size=(m, 3)) + rng.normal(size=(n, 3))
    bins = np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.25, 0.5, 0.75]))
    return X, {"value": Y[:, 0], "values": Y, "two": np.where(bins > 1, "yes", "no"), "many": bins}[target]


def learn(model, X, y):
    """Call ``partial_fit``, with all classes if y holds labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if y.dtype.kind == "f":
            return model.partial_fit(X, y)
        inner = getattr(model, "estimator", model)
        classes = ["no", "yes"] if y.dtype.kind == "U" else [0, 1, 2, 3]
        return model.partial_fit(X, y, classes=classes) if not isinstance(inner, CCIPCA) else model.partial_fit(X)


def fitted(case, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(case.model).fit(X, y)


@cache
def watchers(m=10):
    """Return monitors and trackers in every state worth a file, by name: made once, to be copied before a change."""
    X, y = data(n=60, m=m)
    labels = data("many", n=60, m=m)[1]
    frugal = {"solver": "sketch", "sketch_size": 6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "monitor": Monitor(IncrementalPLS().partial_fit(X, y), level=0.9, q_limit="box"),
            "monitor of a sketch": Monitor(IncrementalPLS(**frugal).fit(X, data("values", n=60, m=m)[1])),
            "monitor that knows nothing": Monitor(IncrementalPLS(3, scale=False).fit(X[:5], y[:5]), held_out=False),
            "monitor of reference rows": Monitor(IncrementalPLS().fit(X, y)).partial_fit(X[:20]),
            "monitor that was asked": asked(Monitor(IncrementalPLSCV(3).fit(X, y)).partial_fit(X)),
            "monitor of classes": Monitor(IncrementalPLSClassifier(solver="gram").fit(X, labels)),
            "monitor of a constant": Monitor(IncrementalPLS().partial_fit(X, np.zeros(60))).partial_fit(X),
            "tracker": DriftTracker(IncrementalPLS(3, forgetting=0.99), window=12, threshold=7.0, max_history=20),
            "tracker of a few rows": tracked(DriftTracker(IncrementalPLS()), m, 3),
            "tracker with a reference": tracked(DriftTracker(IncrementalPLS(2, scale=False), window=10), m, 25),
            "tracker after a change": tracked(
                DriftTracker(IncrementalPLS(forgetting=0.9), window=10, max_history=8), m, 40, change=30
            ),
            "tracker of a fitted model": tracked(DriftTracker(IncrementalPLS(**frugal).fit(X, y)), m, 4),
            "tracker of values": tracked(DriftTracker(IncrementalPLSCV(2), window=10), m, 12, "values"),
            "tracker of classes": tracked(DriftTracker(IncrementalPLSClassifier(), window=10), m, 14, "many"),
        }


def asked(monitor):
    assert monitor.t2_limit_ > 0
    return monitor


def tracked(tracker, m, n_batches, target="value", change=None):
    """Let a tracker follow batches, some with a different y."""
    X, y = data(target, n=9 * n_batches, m=m, seed=1)
    for i in range(n_batches):
        rows = slice(9 * i, 9 * i + 9)
        learn(tracker, X[rows], y[rows] if change is None or i < change else 5 - 3 * y[rows])
    return tracker


def assert_identical(actual, expected, where="model"):
    """Assert that two objects are alike to the last bit, with the types and the layout of arrays.

    A scalar of NumPy is like the number that it is: that is what a file holds of it.
    """
    actual, expected = (each.item() if isinstance(each, np.generic) else each for each in (actual, expected))
    assert type(actual) is type(expected), where
    if isinstance(expected, np.ndarray):
        assert actual.dtype == expected.dtype, where
        assert actual.shape == expected.shape, where
        assert actual.flags.writeable == expected.flags.writeable, where
        assert actual.flags.aligned, where
        if expected.size:
            assert actual.flags.c_contiguous == expected.flags.c_contiguous, where
            assert actual.flags.f_contiguous == expected.flags.f_contiguous, where
        if expected.dtype == object:
            assert actual.tolist() == expected.tolist(), where
        else:
            assert actual.tobytes() == expected.tobytes(), where
    elif isinstance(expected, dict):
        assert actual.keys() == expected.keys(), where
        for name in expected:
            assert_identical(actual[name], expected[name], f"{where}.{name}")
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected), where
        for i, pair in enumerate(zip(actual, expected, strict=True)):
            assert_identical(*pair, f"{where}.{i}")
    elif isinstance(expected, np.random.RandomState):
        assert_identical(actual.get_state(), expected.get_state(), where)
    elif type(expected).__module__.startswith("plstream") or isinstance(expected, FrozenEstimator):
        state = type(expected).__getstate__
        own_state = any(
            "__getstate__" in vars(kind) for kind in type(expected).__mro__ if kind.__module__.startswith("plstream")
        )
        assert_identical(*((state if own_state else vars)(each) for each in (actual, expected)), where)
    else:
        assert repr(actual) == repr(expected), where
