"""Data in a folder of its own, and the command as a function."""

import io
import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from plstream import IncrementalPLS, open_source, save
from plstream.cli import main


@pytest.fixture(autouse=True)
def _needs_typer():
    pytest.importorskip("typer", reason="the command line needs plstream[cli]")


@pytest.fixture(autouse=True)
def _default_signals():
    """Let signals do what they do by default: tests that run in the background, or under nohup, may ignore some."""
    numbers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in numbers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def arrays():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)) + 10
    y = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=300)
    return SimpleNamespace(X=X, y=y, labels=np.where(y > y.mean(), "high", "low"), names=list("abcde"))


@pytest.fixture
def folder(tmp_path, monkeypatch, arrays):
    """A folder with the data in several formats, which is the current one."""
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", arrays.X)
    np.save("y.npy", arrays.y)
    np.save("labels.npy", arrays.labels)
    lines = [",".join([*arrays.names, "y", "kind"])]
    for row, value, label in zip(arrays.X.tolist(), arrays.y.tolist(), arrays.labels, strict=True):
        lines.append(",".join([*map(repr, row), repr(value), label]))
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def model(folder):
    model = IncrementalPLS(2).fit(open_source("data.csv", target="y", exclude="kind"))
    save(model, folder / "model.plstream")
    return model


class FakeInput:
    """Standard input with these bytes in it."""

    def __init__(self, content):
        self.buffer = io.BufferedReader(io.BytesIO(content))


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command, and return its exit code and what it wrote."""

    def run(*arguments, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", FakeInput(stdin))
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        written = capsys.readouterr()
        return SimpleNamespace(code=code, out=written.out, err=written.err)

    return run


@pytest.fixture
def done(run):
    """Run the command, which must succeed and say nothing on standard error; return its output."""

    def done(*arguments, **options):
        result = run(*arguments, **options)
        assert (result.code, result.err) == (0, "")
        return result.out

    return done


@pytest.fixture
def refused(run):
    """Run the command, which must fail as wrong with one line; return that."""

    def refused(*arguments, code=2, **options):
        result = run(*arguments, **options)
        assert (result.code, result.out) == (code, "")
        assert result.err.startswith("plstream: ")
        assert result.err.count("\n") == 1
        assert result.err.endswith("\n")
        return result.err

    return refused
