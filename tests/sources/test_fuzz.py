"""A few rounds of what ``make fuzz`` does at length, and that it would find what it looks for."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

if sys.platform == "win32":
    pytest.skip("needs limits of memory and time", allow_module_level=True)

from . import fuzz, mutations


def test_changed_files_are_refused_or_read():
    # Enough to have some of each format.
    command = [sys.executable, "-m", "tests.sources.fuzz", "200"]
    result = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stderr
    assert "'refused': " in result.stdout.splitlines()[-1]


def test_a_pickle_that_is_run_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setenv(mutations.MARKER, str(tmp_path / "marker"))
    path = tmp_path / "X.npy"
    path.write_bytes(mutations.planted_array(np.random.default_rng(0)))
    original = fuzz.Original("npy", tmp_path / "original", np.zeros((40, 4)), np.zeros(40))
    assert fuzz.outcome_of(original, np.random.default_rng(0)).startswith("read")
    np.load(path, allow_pickle=True)
    with pytest.raises(AssertionError, match="a pickle was run"):
        fuzz.outcome_of(original, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("wrong", "noticed"),
    [
        (lambda *_: 1 / 0, "ZeroDivisionError"),
        (lambda *_: fuzz.os.kill(fuzz.os.getpid(), 11), "the process ended"),
        (
            lambda *_: fuzz.threading.Thread(target=fuzz.threading.Event().wait, name="plstream", daemon=True).start(),
            "left",
        ),
    ],
)
def test_what_goes_wrong_is_told_with_its_round(wrong, noticed, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fuzz, "read", wrong)
    monkeypatch.setattr(fuzz.tempfile, "tempdir", str(tmp_path))
    outcomes, faults = fuzz.fuzz_format("npy", [0, 24], 0)
    assert outcomes == {"FAULT": 2}
    for number, fault in zip((0, 24), faults, strict=True):
        assert fault.startswith(f"npy, round {number}, files in {tmp_path / f'fuzz-0-{number}'}: ")
        assert noticed in fault
    assert capsys.readouterr().err.count("npy, round") == 2
