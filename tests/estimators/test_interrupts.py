"""Interrupts at any instruction, also repeated ones: a model is as before or as after a call."""

import contextlib
import sys
import warnings
from copy import deepcopy

import numpy as np
import pytest

import plstream
from plstream import (
    CIPLS,
    ILFS,
    SGDPLS,
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSCV,
    VIPSelector,
    open_source,
)
from plstream._core import threads
from plstream.files import fit_source
from plstream.monitoring import DriftTracker, Monitor

from ..files.models import assert_identical, data

# The second interrupt may come where a generator is closed, and there Python can only say so.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
SOURCES = str(plstream.__path__[0])
# What belongs to the process, and would be lost to all later tests. Python looks for signals at calls and jumps, and so
# not between the instructions that take a lock or count its users.
OF_THE_PROCESS = str(threads.__file__)
# Most instructions are of the work itself, and the last ones replace what was there.
LAST, OTHERS = 16, 8


def is_ours(frame, *more):
    name = frame.f_code.co_filename
    return name.startswith((SOURCES, *more)) and name != OF_THE_PROCESS


def interrupted(call, at, again):
    """Call with an interrupt at one of the instructions of the library, and one more at a function called after it.

    Returns whether it was interrupted, and how many instructions there were.
    """
    n_instructions, n_calls = 0, None

    def trace(frame, event, _argument):
        nonlocal n_instructions, n_calls
        if not is_ours(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            n_instructions += 1
            if n_instructions == at:
                n_calls = 0
                raise KeyboardInterrupt
        return trace

    def profile(frame, event, _argument):
        nonlocal n_calls
        if n_calls is not None and is_ours(frame, contextlib.__file__) and event in {"call", "c_call"}:
            n_calls += 1
            if n_calls == again:
                raise KeyboardInterrupt

    before = sys.gettrace(), sys.getprofile()
    try:
        sys.setprofile(profile)
        sys.settrace(trace)
        call()
    except KeyboardInterrupt:
        return True, n_instructions
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return False, n_instructions


X, y = data(n=24, m=3)
MANY = data("many", n=24, m=3)[1]


def prepared():
    """Return models, and what is called of each."""
    random = np.random.RandomState(3)
    return {
        "partial_fit of gram": (IncrementalPLS(1).partial_fit(X, y), lambda model: model.partial_fit(X[:5], y[:5])),
        "first partial_fit": (IncrementalPLS(1), lambda model: model.partial_fit(X, y)),
        "fit": (IncrementalPLS(1).partial_fit(X, y), lambda model: model.fit(X[:8], y[:8])),
        "classes to come": (
            IncrementalPLSClassifier(1).partial_fit(X, MANY, classes=range(4), sample_weight=np.zeros(24)),
            lambda model: model.partial_fit(X, MANY),
        ),
        "folds": (IncrementalPLSCV(1, cv=2).partial_fit(X, y), lambda model: model.partial_fit(X[:5], y[:5])),
        "folds solved": (IncrementalPLSCV(1, cv=2).partial_fit(X, y), lambda model: model.predict(X)),
        "online": (CIPLS(1).partial_fit(X, y), lambda model: model.partial_fit(X[:5], y[:5])),
        "online fit": (CIPLS(1).partial_fit(X, y), lambda model: model.fit(X[:5], y[:5])),
        "random": (SGDPLS(1, random_state=random), lambda model: model.partial_fit(X, MANY)),
        "selector": (VIPSelector(CIPLS(1)).partial_fit(X, y), lambda model: model.partial_fit(X[:5], y[:5])),
        "ranking": (ILFS(1).fit(X[:, ::-1], MANY), lambda model: model.fit(X, MANY)),
        "source": (CIPLS(1), lambda model: fit_source(model, open_source(X, target=y, batch_size=12))),
        "monitor": (Monitor(IncrementalPLS(1).partial_fit(X, y)), lambda model: model.partial_fit(X)),
        "tracker": (
            DriftTracker(IncrementalPLS(1)).partial_fit(X[:12], y[:12]),
            lambda model: model.partial_fit(X[12:], y[12:]),
        ),
    }


PREPARED = prepared()


@pytest.mark.parametrize("name", PREPARED)
def test_before_or_after(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, call = PREPARED[name]
        after = deepcopy(before)
        call(after)
        model = deepcopy(before)
        _, n_instructions = interrupted(lambda: call(model), 0, 0)
        places = [*range(n_instructions - LAST, n_instructions + 1)]
        places += np.linspace(1, n_instructions - LAST, OTHERS, dtype=int).tolist()
        n_interrupted = 0
        for number, at in enumerate(places):
            model = deepcopy(before)
            was_interrupted, _ = interrupted(lambda model=model: call(model), at, 1 + number % 4)
            n_interrupted += was_interrupted
            assert is_like(model, before) or is_like(model, after), at
        assert n_interrupted >= len(places) - 1


def is_like(model, expected):
    try:
        assert_identical(model, expected)
    except AssertionError:
        return False
    return True
