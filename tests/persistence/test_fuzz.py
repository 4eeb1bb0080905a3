"""A few rounds of what ``make fuzz`` does at length."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of memory and time")
def test_changed_files_are_refused_or_work():
    assert "'refused': 2" in printed("tests.persistence.fuzz", 300)


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of memory and time")
def test_changed_checkpoints_are_refused_or_lead_to_the_same_model():
    assert "'the same model': " in printed("tests.persistence.fuzz_checkpoints", 100)


def printed(module, n_rounds):
    command = [sys.executable, "-m", module, str(n_rounds)]
    result = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stderr
    return result.stdout
