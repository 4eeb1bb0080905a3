"""A few rounds of ``make fuzz``, and that it detects planted errors."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

if sys.platform == "win32":
    pytest.skip("needs limits of memory and time", allow_module_level=True)

from tests.fuzzing import TooLong, time_limit

from . import fuzz, mutations


@pytest.mark.parametrize("n_rounds", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_changed_files_are_refused_or_read(n_rounds):
    # Enough to have some of each format.
    command = [sys.executable, "-m", "tests.data.fuzz", str(n_rounds)]
    result = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stderr
    assert "'refused': " in result.stdout.splitlines()[-1]


def test_a_pickle_that_is_run_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setenv(mutations.MARKER, str(tmp_path / "marker"))
    path = tmp_path / "X.npy"
    path.write_bytes(mutations.planted_array(np.random.default_rng(0)))
    original = fuzz.Original(fuzz.FILES["npy"], tmp_path / "original", np.zeros((40, 4)), np.zeros(40))
    assert fuzz.outcome_of(original, np.random.default_rng(0)).startswith("read")
    np.load(path, allow_pickle=True)
    with pytest.raises(AssertionError, match="a pickle was run"):
        fuzz.outcome_of(original, np.random.default_rng(0))


def use_processor(seconds):
    start = time.process_time()
    while time.process_time() < start + seconds:
        pass


def test_time_is_that_of_the_processor(monkeypatch):
    monkeypatch.setattr("tests.fuzzing.SECONDS", 0.2)
    monkeypatch.setattr("tests.fuzzing.PATIENCE", 60)
    with time_limit():
        time.sleep(0.5)
    with pytest.raises(TooLong, match=r"more than 0\.2 seconds of a processor"), time_limit():
        use_processor(60)
    monkeypatch.setattr("tests.fuzzing.PATIENCE", 0.2)
    with pytest.raises(TooLong, match=r"more than 0\.2 seconds$"), time_limit():
        time.sleep(60)


@pytest.mark.parametrize(
    ("wrong", "limits", "noticed"),
    [
        (lambda *_: 1 / 0, {}, "ZeroDivisionError"),
        (lambda *_: fuzz.os.kill(fuzz.os.getpid(), 11), {}, "the process ended (-11)"),
        (lambda *_: use_processor(60), {"SECONDS": 0.5}, f"the process ended ({-signal.SIGPROF})"),
        (lambda *_: time.sleep(60), {"PATIENCE": 0.5}, "Timeout"),
        (
            lambda *_: fuzz.threading.Thread(target=fuzz.threading.Event().wait, name="plstream", daemon=True).start(),
            {"THREAD_PATIENCE": 0.1},
            "a thread is left: plstream",
        ),
    ],
)
def test_errors_name_their_round(wrong, limits, noticed, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fuzz, "read", wrong)
    for name, limit in limits.items():
        monkeypatch.setattr(fuzz, name, limit)
    monkeypatch.setattr(fuzz.tempfile, "tempdir", str(tmp_path))
    outcomes, faults = fuzz.fuzz_format("npy", [0, 24], 0)
    assert outcomes == {"FAULT": 2}
    for number, fault in zip((0, 24), faults, strict=True):
        assert fault.startswith(f"npy, round {number}, files in {tmp_path / f'fuzz-0-{number}'}: ")
        assert noticed in fault
    assert capsys.readouterr().err.count("npy, round") == 2
