"""A model that predicts while it learns: results reflect the rows before or after a call, and are never stale."""

import numpy as np
import pytest

from plstream import (
    CCIPCA,
    CIPLS,
    IPLS,
    OLPLS,
    SGDPLS,
    IncrementalLDA,
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
)
from plstream.solvers.solution import Solution

X = np.random.default_rng(0).normal(size=(120, 6)) * [5.0, 4.0, 3.0, 2.0, 1.0, 0.5]
VALUES = X @ [1.0, -1.0, 0.5, 0.2, 0.0, 0.0]
LABELS = np.where(VALUES > 0, "high", "low")


def interrupt_solving(monkeypatch, owner, name, then):
    """Let ``then`` happen once, as if in another thread, between solving and keeping the solution."""
    solve, calls = getattr(owner, name), []

    def solve_and_be_late(*args, **kwargs):
        solution = solve(*args, **kwargs)
        calls.append(1)
        if len(calls) == 1:
            then()
        return solution

    monkeypatch.setattr(owner, name, solve_and_be_late)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (IncrementalPLS(2, solver="gram"), VALUES),
        (IncrementalPLS(2, solver="sketch"), VALUES),
        (IncrementalPLSClassifier(2, solver="gram"), LABELS),
        (IncrementalPLSCV(2), VALUES),
        (IncrementalPLSClassifierCV(2), LABELS),
        (CIPLS(2), VALUES),
        (CCIPCA(2), None),
        (IPLS(2, n_pca_components=3), VALUES),
        (OLPLS(2), VALUES),
        (SGDPLS(1, random_state=0), VALUES),
        (IncrementalLDA(), LABELS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_rows_learnt_while_a_solution_is_computed_are_not_lost(model, y, monkeypatch):
    def learn(model, rows):
        return model.partial_fit(X[rows]) if y is None else model.partial_fit(X[rows], y[rows])

    first, later = slice(60), slice(60, 120)
    expected = learn(learn(model.__sklearn_clone__(), first), later).transform(X)
    before = learn(model.__sklearn_clone__(), first).transform(X)
    learn(model, first)
    is_online = hasattr(type(model), "_solve")
    with monkeypatch.context() as patch:
        owner, name = (type(model), "_solve") if is_online else (Solution, "of")
        interrupt_solving(patch, owner, name, lambda: learn(model, later))
        during = model.transform(X)
    # What was asked for before is of the rows before.
    np.testing.assert_array_equal(during, before)
    np.testing.assert_array_equal(model.transform(X), expected)
