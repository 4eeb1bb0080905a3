"""A few rounds of ``make fuzz``."""

import subprocess
import sys
from pathlib import Path

import pytest


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of memory and time")
@pytest.mark.parametrize(("n_rounds", "refused"), [(60, "'refused': "), slow(300, "'refused': 2")])
def test_changed_files_are_refused_or_work(n_rounds, refused):
    assert refused in printed("tests.files.fuzz", n_rounds)


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of memory and time")
@pytest.mark.parametrize("n_rounds", [20, slow(100)])
def test_changed_checkpoints_are_refused_or_lead_to_the_same_model(n_rounds):
    assert "'the same model': " in printed("tests.files.fuzz_checkpoints", n_rounds)


def printed(module, n_rounds):
    command = [sys.executable, "-m", module, str(n_rounds)]
    result = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stderr
    return result.stdout
