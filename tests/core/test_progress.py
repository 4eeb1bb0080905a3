"""Progress: steps for listeners, a bar on a terminal, and nothing otherwise."""

import io
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from plstream import IncrementalPLS, open_source, show_progress
from plstream._core.progress import ProgressBar, Step, listening


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def all_data_is_large(monkeypatch):
    monkeypatch.setattr("plstream.rows.blocks.SMALL_BYTES", 0)


def test_every_read_is_reported():
    steps = []
    X = np.random.default_rng(0).normal(size=(100, 4))
    with listening(steps.append):
        IncrementalPLS(2, batch_size=40).fit(X, X[:, 0] + X[:, 1] ** 2)
    assert [(step.label, step.done, step.total) for step in steps] == [
        (f"read {i} of 3", done, 100) for i in (1, 2, 3) for done in (40, 80, 100)
    ]
    assert [step.finished for step in steps] == [False, False, True] * 3


def test_bar_on_a_terminal_only():
    X = np.random.default_rng(0).normal(size=(100, 4))
    for stream, shows in ((io.StringIO(), False), (Terminal(), True)):
        with show_progress(stream, wait=0):
            IncrementalPLS(2, batch_size=10).fit(X, X[:, 0] + X[:, 1] ** 2)
        assert ("read 2 of 3" in stream.getvalue()) == shows
        if shows:
            assert stream.getvalue().endswith("\r")


def test_bar_says_what_is_left():
    stream = Terminal()
    ProgressBar(stream, wait=60)(Step("read 1", 10, 1000, 0.1))
    assert stream.getvalue() == ""
    bar = ProgressBar(stream, wait=0)
    bar(Step("read 1", 500, 1000, 2.0))
    assert "read 1: 500 rows, 250/s" in stream.getvalue()
    assert "50%, 2 s left" in stream.getvalue()
    bar(Step("read 1", 600, None, 3.0))
    assert "600 rows" in stream.getvalue()
    bar(Step("ranks", 7, None, 3.0, "features"))
    assert "ranks: 7 features, 2/s" in stream.getvalue()
    bar(Step("read 1", 1000, 1000, 4.0))
    assert stream.getvalue().endswith(" \r")


class Cell:
    """A place in a notebook."""

    def __init__(self):
        self.shown = []

    def update(self, content, *, raw):
        assert raw
        self.shown.append(content["text/plain"])


@pytest.fixture
def notebook(monkeypatch):
    """IPython as in a kernel; the cell in which it displays."""
    cell, package, displaying = Cell(), ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = lambda: SimpleNamespace(kernel=object())
    displaying.display = lambda *_, **__: cell
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", displaying)
    return cell


def test_bar_in_a_notebook(notebook):
    X = np.random.default_rng(0).normal(size=(100, 5))
    with show_progress(wait=0):
        IncrementalPLS().fit(open_source(X, target=X[:, 0], batch_size=10))
    assert "100 rows" in "".join(notebook.shown)
    assert notebook.shown[-1] == ""
    # A shell without a kernel is a terminal, or none.
    sys.modules["IPython"].get_ipython = SimpleNamespace
    notebook.shown.clear()
    with show_progress(wait=0):
        IncrementalPLS().fit(X, X[:, 0])
    assert not notebook.shown


def test_few_messages_to_a_notebook():
    cell = Cell()
    bar = ProgressBar(io.StringIO(), wait=0, cell=cell)
    for done in range(1000):
        bar(Step("read 1", done, 1000, 0.1))
    assert len(cell.shown) < 100
    bar(Step("read 1", 1000, 1000, 0.1))
    assert cell.shown[-2:][0].startswith("read 1: 1,000 rows")
